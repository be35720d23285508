/** How configuration files are read, with what extensions add to them. */
import { type ClientCheck, clientFormOf, type ClientRules } from '../../identity/directory/records/schema.ts'
import { type TProperties, type TSchema, withForms, withKeys, withShapes } from '../../base/config/schema.ts'
import type { AddedBackends, AddedKind } from '../../gateway/backends/kinds.ts'
import type { Environment } from '../../base/config/validate.ts'
import type { AddedChecks } from './added-checks.ts'
import type { SharedStoreKind } from './shared-stores.ts'
import { configurationSchema, type ReadConfiguration, readConfiguration } from './configuration.ts'

/** What an extension adds to the configuration. */
export interface AddedSettings extends Partial<Pick<AddedChecks, 'checks' | 'partChecks' | 'trail'>> {
  /**
   * Keys with their schemas, by the section that they are in: its path from the top level (`''`), such as `issuers.*`. The core
   * carries their values unread.
   */
  readonly keys?: Readonly<Record<string, TProperties>>
  /** Keys of the core, by the same sections, in a form that takes more: further words of a choice. */
  readonly forms?: Readonly<Record<string, TProperties>>
  /** Checks of the keys in `directory.clients.*`. They run for clients of the store too. */
  readonly clientChecks?: readonly ClientCheck[]
  readonly clientRules?: ClientRules
  /** Kinds of backends. */
  readonly backends?: Readonly<Record<string, AddedKind>>
  /** Kinds of stores that several nodes share. */
  readonly stores?: Readonly<Record<string, SharedStoreKind>>
  /** How backends of kind `stream` upgrade connections. One extension has it at most. */
  readonly upgrade?: AddedBackends['upgrade']
  /** A line that `postern init` writes for it. */
  readonly first?: string
}

/** What is needed to read and check configuration files. */
export interface Settings {
  /** The schema of a whole file. */
  readonly schema: typeof configurationSchema
  /** What extensions add to the checks. */
  readonly added: AddedChecks
  /** Reads a file. Reports the schema's problems only. */
  readonly read: (file: string, environment: Environment) => ReadConfiguration
}

const schemasOf = (kinds: Readonly<Record<string, { readonly schema: TSchema }>>): TProperties =>
  Object.fromEntries(Object.entries(kinds).map(([kind, { schema }]) => [kind, schema]))

/** The member of the one extension that has it. Throws TypeError if two have it. */
function onlyOne<Key extends 'trail' | 'upgrade'>(
  added: readonly AddedSettings[],
  key: Key,
): AddedSettings[Key] {
  const [first, second] = added.map((each) => each[key]).filter((value) => value !== undefined)
  if (second !== undefined) throw new TypeError(`two extensions have \`${key}\``)
  return first
}

export function settingsWith(added: readonly AddedSettings[]): Settings {
  const kinds = new Map(added.flatMap(({ backends = {} }) => Object.entries(backends)))
  const withKinds = added.reduce(
    (of, { backends = {}, stores = {} }) =>
      withShapes(withShapes(of, ['backends', '*'], schemasOf(backends)), ['store'], schemasOf(stores)),
    configurationSchema,
  )
  const withAllForms = added
    .flatMap(({ forms = {} }) => Object.entries(forms))
    .reduce((of, [place, forms]) => withForms(of, place.split('.').filter(Boolean), forms), withKinds)
  const schema = added
    .flatMap(({ keys = {} }) => Object.entries(keys))
    .reduce((of, [place, keys]) => withKeys(of, place.split('.').filter(Boolean), keys), withAllForms)
  return {
    schema,
    added: {
      backends: { kinds, upgrade: onlyOne(added, 'upgrade') },
      checks: added.flatMap(({ checks = [] }) => checks),
      partChecks: added.flatMap(({ partChecks = [] }) => partChecks),
      clientForm: clientFormOf(added),
      trail: onlyOne(added, 'trail'),
      stores: new Map(added.flatMap(({ stores = {} }) => Object.entries(stores))),
    },
    read: (file, environment) => readConfiguration(schema, file, environment),
  }
}
