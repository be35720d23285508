/**
 * The configuration in force, and next to it the file on disk (C11.5.4). Imported only where a configuration is looked at:
 * commands do not need its schema.
 */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { problemLines, Problems } from '../../base/config/problems.ts'
import { viewOf, withoutSecrets } from '../../base/config/schema.ts'
import type { Entry, Store } from '../../base/contracts/records/store.ts'
import { everyMark } from '../../identity/directory/records/marks.ts'
import { type AccessChange, accessOf, compareAccess } from '../settings/access.ts'
import { changedSettings, type Configuration, fixedChanges } from '../settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { NOTHING_STORED, type PartiesParts, readStored, STORED_KINDS } from '../settings/parties.ts'
import type { Settings } from '../settings/settings.ts'
import type { ServiceContext } from '../operation/context.ts'
import { checkConfiguration, loadConfiguration } from '../settings/check-configuration.ts'

/** The configuration does not come from a file, or cannot be read: each line is a problem. */
export interface NoFile {
  readonly unreadable: readonly string[]
}

/** What a reload would say of a file. Each line says where the problem is, what it is and what to do. No secret. */
export interface FileCheck {
  /** Whether a reload would put it in force. */
  readonly fits: boolean
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
  /** Key paths that differ and that only a restart changes: a reload refuses them. */
  readonly needsRestart: readonly string[]
}

/** What a reload of the file would change. */
export interface FileDifference extends AccessChange {
  readonly same: boolean
  /** Key paths that differ: no values, which may be secret. Their number is `changedCount`. */
  readonly changed: readonly string[]
  readonly changedCount: number
  readonly needsRestart: readonly string[]
  /** False if the store has more than MOST_STORED clients or users: then only those of the configuration are compared. */
  readonly withStored: boolean
}

const MOST_STORED = 10_000

const NO_FILE: NoFile = { unreadable: ['the configuration does not come from a file'] }

/** A configuration as it may be shown. */
export const shownConfiguration = (
  configuration: Configuration,
  { schema }: Pick<Settings, 'schema'>,
): unknown => withoutSecrets(viewOf(schema), configuration)

const digests = new WeakMap<Configuration, string>()

/** SHA-256 of a configuration, without its secrets. */
export function configurationDigest(
  configuration: Configuration,
  settings: Pick<Settings, 'schema'>,
): string {
  const known = digests.get(configuration)
  if (known !== undefined) return known
  const digest = createHash('sha256')
    .update(JSON.stringify(shownConfiguration(configuration, settings)))
    .digest('hex')
  digests.set(configuration, digest)
  return digest
}

/** Reads the file and checks it, as a reload would. Nothing is put in force. */
export async function checkFile({
  file,
  environment,
  settings,
  configuration: inForce,
}: ServiceContext): Promise<FileCheck | NoFile> {
  if (file === undefined) return NO_FILE
  const problems = await checkConfiguration(settings, file, environment)
  const { configuration } = loadConfiguration(settings, file, environment)
  const needsRestart = configuration === undefined ? [] : fixedChanges(inForce(), configuration)
  return {
    fits: !problems.failed && needsRestart.length === 0,
    problems: problemLines(problems, 'error'),
    warnings: problemLines(problems, 'warning'),
    needsRestart,
  }
}

/**
 * Rejects with Fault `identity_unavailable` if the store cannot be read.
 *
 * @param mostPaths how many paths of settings that differ are named
 */
export async function compareFile(
  { file, environment, settings, clock, store, configuration }: ServiceContext,
  mostPaths: number,
): Promise<FileDifference | NoFile> {
  if (file === undefined) return NO_FILE
  const { configuration: next, problems } = loadConfiguration(settings, file, environment)
  if (next === undefined) return { unreadable: problemLines(problems) }
  const before = configuration()
  const changed = changedSettings(before, next)
  const { stored, withStored } = await storedPeople(before, store)
  const parts: PartiesParts = { environment, clientForm: settings.added.clientForm, stored, clock }
  const [old, rows] = [await accessOf(before, parts, new Problems()), await accessOf(next, parts, problems)]
  if (problems.failed) return { unreadable: problemLines(problems) }
  return {
    same: isDeepStrictEqual(before, next),
    changed: changed.slice(0, mostPaths),
    changedCount: changed.length,
    needsRestart: fixedChanges(before, next),
    ...compareAccess(old, rows),
    withStored,
  }
}

async function storedPeople(
  configuration: Configuration,
  store: Pick<Store, 'list'>,
): Promise<{ readonly stored: PartiesParts['stored']; readonly withStored: boolean }> {
  if (isSidecar(configuration)) return { stored: NOTHING_STORED, withStored: true }
  const lists = new Map<string, readonly Entry[]>()
  for (const kind of STORED_KINDS)
    lists.set(kind, await store.list(kind, { after: undefined, limit: MOST_STORED + 1 }))
  const marks = await Array.fromAsync(everyMark(store))
  if ([...lists.values()].some(({ length }) => length > MOST_STORED))
    return { stored: NOTHING_STORED, withStored: false }
  const valuesOf = (kind: string) => (lists.get(kind) ?? []).map(({ value }) => value)
  return { stored: readStored(valuesOf, marks), withStored: true }
}
