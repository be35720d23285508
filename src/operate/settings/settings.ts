/** Reading and checking configuration files, with what extensions add to them. */
import type { Problems } from '../../base/config/problems.ts'
import { type TProperties, withKeys } from '../../base/config/schema.ts'
import type { Environment } from '../../base/config/validate.ts'
import {
  type AddedChecks,
  checkConfiguration,
  type LoadedConfiguration,
  loadConfiguration,
} from './check-configuration.ts'
import { configurationSchema, type ReadConfiguration, readConfiguration } from './configuration.ts'

/** What an extension adds to the configuration. */
export interface AddedSettings extends Partial<AddedChecks> {
  /**
   * Keys with their schemas, by the section that they stand in: its path from the top level (`''`), such as `issuers.*`. The core
   * carries their values unread.
   */
  readonly keys: Readonly<Record<string, TProperties>>
  /** A line that `postern init` writes for it. */
  readonly first?: string
}

export interface Settings {
  /** Of a whole file. */
  readonly schema: typeof configurationSchema
  /** Reads a file. Reports the schema's problems only. */
  readonly read: (file: string, environment: Environment) => ReadConfiguration
  /** Reads a file for serving. Runs only the cheap checks; `openParts` makes the others. */
  readonly load: (file: string, environment: Environment) => LoadedConfiguration
  /**
   * Reads a file and reports every problem. Writes nothing and opens no connection.
   *
   * @param strict also warns of what is legal, and could be better for clients
   */
  readonly check: (file: string, environment: Environment, strict?: boolean) => Promise<Problems>
}

export function settingsWith(added: readonly AddedSettings[]): Settings {
  const schema = added
    .flatMap(({ keys }) => Object.entries(keys))
    .reduce((of, [place, keys]) => withKeys(of, place.split('.').filter(Boolean), keys), configurationSchema)
  const all: AddedChecks = {
    checks: added.flatMap(({ checks = [] }) => checks),
    partChecks: added.flatMap(({ partChecks = [] }) => partChecks),
  }
  const read: Settings['read'] = (file, environment) => readConfiguration(schema, file, environment)
  return {
    ...{ schema, read },
    load: (file, environment) => loadConfiguration(read(file, environment), environment, all),
    check: (file, environment, strict) =>
      checkConfiguration(read(file, environment), environment, all, strict),
  }
}
