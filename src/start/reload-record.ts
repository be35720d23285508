/** What the audit trail keeps of a reload: which files changed, and who gains and loses access (C12.3). */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { Environment } from '../config/validate.ts'
import { Problems } from '../config/problems.ts'
import type { AuditTrail } from '../contracts/audit.ts'
import type { Holdings } from '../directory/holdings.ts'
import type { JsonObject } from '../http/json.ts'
import { systemClock } from '../kernel/clock.ts'
import { plainFacts } from '../audit/audited-change.ts'
import { NOTHING_STORED } from '../settings/parties.ts'
import { accessOf, compareAccess, type Access } from '../settings/access.ts'
import type { Configuration } from '../settings/configuration.ts'

/** Most rows of access, and most files, that one record names; their numbers are always told. */
const MOST_ROWS = 100
const MOST_FILES = 100

/** By file name: the HMAC of a file's bytes under the key of the deployment, as `postern audit hash` prints it. */
export type FileDigests = Readonly<Record<string, string>>

/** Folders, and files that are gone, are left out. */
export function digestFiles(files: Iterable<string>, audit: Pick<AuditTrail, 'bodyHash'>): FileDigests {
  const digests: Record<string, string> = {}
  for (const file of [...files].slice(0, MOST_FILES)) {
    const hash = audit.bodyHash()
    try {
      hash.update(readFileSync(file))
    } catch {
      continue
    }
    digests[basename(file)] = hash.digest()
  }
  return digests
}

/** What one configuration says about access, kept as long as it is in force. */
export interface ServedAccess {
  readonly configuration: Configuration
  readonly holdings: Holdings
  readonly files: FileDigests
}

/** Whether clients, users or businesses stand in files, which may have changed since they were read. */
const usesFiles = ({ directory: { files } }: Configuration): boolean => Object.keys(files).length > 0

/** The same, without clients, users and businesses. */
const withoutPeople = (configuration: Configuration): Configuration => ({
  ...configuration,
  directory: { ...configuration.directory, clients: {}, users: {}, businesses: {}, files: {} },
})

async function rowsOf(configuration: Configuration, environment: Environment): Promise<readonly Access[]> {
  const problems = new Problems()
  const parts = { environment, stored: NOTHING_STORED, clock: systemClock }
  const rows = await accessOf(configuration, parts, problems)
  return problems.failed ? [] : rows
}

/** A row for each business at which a client or a user may have tokens: for directories in files. */
const rowsOfHoldings = ({ clients, users }: Holdings): Access[] => [
  ...[...clients].flatMap(([who, { mayHold, businesses }]) =>
    mayHold ? businesses.map((where): Access => ({ kind: 'client', who, what: 'access', where })) : [],
  ),
  ...[...users.values()].flatMap(({ username: who, mayHold, access }) =>
    mayHold
      ? Object.entries(access).map(([where, what]): Access => ({ kind: 'user', who, what, where }))
      : [],
  ),
]

/** By user name. */
type Subjects = ReadonlyMap<string, string>

const subjectsOf = (...all: readonly Holdings[]): Subjects =>
  new Map(
    all.flatMap(({ users }) => [...users].map(([subject, { username }]) => [username, subject] as const)),
  )

/** Users are told by their `sub`: a user name may be a name that a law lets them have erased. */
const textOf =
  (subjects: Subjects) =>
  ({ kind, who, what, where }: Access): string =>
    [kind, kind === 'user' ? (subjects.get(who) ?? '') : who, what, where].filter(Boolean).join('  ')

function fileChanges(before: FileDigests, after: FileDigests): JsonObject {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return plainFacts(
    Object.fromEntries([...names].map((name) => [name, { before: before[name], after: after[name] }])),
  )
}

/**
 * The member `change` of `configuration.reloaded`: `files` by name, `gained` and `lost` as texts (at most 100 each, with
 * their numbers). Clients and users of the store are not compared, since a reload changes none of them.
 */
export async function describeReload(
  before: ServedAccess,
  after: ServedAccess,
  environment: Environment,
): Promise<JsonObject> {
  const inFiles = usesFiles(before.configuration) || usesFiles(after.configuration)
  const rows = async ({ configuration, holdings }: ServedAccess): Promise<readonly Access[]> =>
    inFiles
      ? [...(await rowsOf(withoutPeople(configuration), environment)), ...rowsOfHoldings(holdings)]
      : rowsOf(configuration, environment)
  const { gained, lost } = compareAccess(await rows(before), await rows(after))
  const text = textOf(subjectsOf(before.holdings, after.holdings))
  return {
    files: fileChanges(before.files, after.files),
    ...{ gainedCount: gained.length, gained: gained.slice(0, MOST_ROWS).map(text) },
    ...{ lostCount: lost.length, lost: lost.slice(0, MOST_ROWS).map(text) },
  }
}
