/** A reload: reads and checks a configuration, opens it in every process, then puts it in force. Or refuses, unchanged. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import {
  type AuditedChange,
  noteChange,
  type Operator,
  plainFacts,
  recordGiving,
  recordTaking,
} from '../../base/contracts/records/audited-change.ts'
import { ConfigurationError, problemLines, Problems } from '../../base/config/problems.ts'
import { compileScopes } from '../../base/config/scopes/schema.ts'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { Store } from '../../base/contracts/records/store.ts'
import type { RevocationCause, TokenRevoker } from '../../base/contracts/records/tokens.ts'
import { compileDirectory, type RecordReading } from '../../identity/directory/records/compile.ts'
import type { Holdings, Loss } from '../../identity/directory/records/holdings.ts'
import type { JsonObject } from '../../base/http/body/json.ts'
import { type After, after as systemAfter, type Clock, systemClock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { ReloadOutcome } from '../../operate/operation/context.ts'
import { ContentsChanged, type WorkerPool } from '../../base/contracts/processes/worker-pool.ts'
import { type AccessRight, accessOf, compareAccess } from '../../operate/settings/access.ts'
import type { Settings } from '../../operate/settings/settings.ts'
import { type Configuration, fixedChanges, onlyTakesAway } from '../../operate/settings/configuration.ts'
import { NOTHING_STORED } from '../../operate/settings/parties.ts'
import type { RevocationRules } from '../../state/stores/feed/revocations.ts'
import type { ConfigurationStanding, PassingCause } from '../../operate/watch/status/status.ts'
import { digestOfHoldings, lossesServed, recordHoldings, servedHoldings } from './holdings-record.ts'
import { unfitSeals } from './key-plan.ts'
import { checkConfiguration, loadConfiguration } from '../../operate/settings/check-configuration.ts'

/** Most rows of access, and most files, that one record names; their numbers are always in it. */
const MOST_ROWS = 100
const MOST_FILES = 100

/** By file name: the HMAC of a file's bytes under the key of the deployment, as `postern audit hash` prints it. */
type FileDigests = Readonly<Record<string, string>>

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

/** The access that one configuration gives, kept as long as it is in force. */
interface ServedAccess {
  readonly configuration: Configuration
  readonly holdings: Holdings
  readonly files: FileDigests
}

/** Whether clients, users or businesses are in files, which may have changed since they were read. */
const usesFiles = ({ directory: { files } }: Configuration): boolean => Object.keys(files).length > 0

/** The same, without clients, users and businesses. */
const withoutPeople = (configuration: Configuration): Configuration => ({
  ...configuration,
  directory: { ...configuration.directory, clients: {}, users: {}, businesses: {}, files: {} },
})

async function rowsOf(configuration: Configuration, reading: RecordReading): Promise<readonly AccessRight[]> {
  const problems = new Problems()
  const parts = { ...reading, stored: NOTHING_STORED, clock: systemClock }
  const rows = await accessOf(configuration, parts, problems)
  return problems.failed ? [] : rows
}

/** A row for each business at which a client or a user may have tokens: for directories in files. */
const rowsOfHoldings = ({ clients, users }: Holdings): AccessRight[] => [
  ...[...clients].flatMap(([who, { mayHold, businesses }]) =>
    mayHold ? businesses.map((where): AccessRight => ({ kind: 'client', who, what: 'access', where })) : [],
  ),
  ...[...users.values()].flatMap(({ username: who, mayHold, access }) =>
    mayHold
      ? Object.entries(access).map(([where, what]): AccessRight => ({ kind: 'user', who, what, where }))
      : [],
  ),
]

/** By user name. */
type Subjects = ReadonlyMap<string, string>

const subjectsOf = (...all: readonly Holdings[]): Subjects =>
  new Map(
    all.flatMap(({ users }) => [...users].map(([subject, { username }]) => [username, subject] as const)),
  )

/** It names users by their `sub`: a user name may be a name that a law lets them have erased. */
const textOf =
  (subjects: Subjects) =>
  ({ kind, who, what, where }: AccessRight): string =>
    [kind, kind === 'user' ? (subjects.get(who) ?? '') : who, what, where].filter(Boolean).join('  ')

function fileChanges(before: FileDigests, after: FileDigests): JsonObject {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return plainFacts(
    Object.fromEntries([...names].map((name) => [name, { before: before[name], after: after[name] }])),
  )
}

/**
 * The member `change` of `configuration.reloaded`: `files` by name, `gained` and `lost` as texts (at most 100 each, with
 * their numbers). Clients and users of the store are not compared, because a reload changes none of them.
 */
async function describeReload(
  before: ServedAccess,
  after: ServedAccess,
  reading: RecordReading,
): Promise<JsonObject> {
  const inFiles = usesFiles(before.configuration) || usesFiles(after.configuration)
  const rows = async ({ configuration, holdings }: ServedAccess): Promise<readonly AccessRight[]> =>
    inFiles
      ? [...(await rowsOf(withoutPeople(configuration), reading)), ...rowsOfHoldings(holdings)]
      : rowsOf(configuration, reading)
  const { gained, lost } = compareAccess(await rows(before), await rows(after))
  const text = textOf(subjectsOf(before.holdings, after.holdings))
  return {
    files: fileChanges(before.files, after.files),
    gainedCount: gained.length,
    gained: gained.slice(0, MOST_ROWS).map(text),
    lostCount: lost.length,
    lost: lost.slice(0, MOST_ROWS).map(text),
  }
}

/** The cause of ending what people may no longer have. */
const LOST: RevocationCause = { via: 'change of the configuration' }

export interface ReloaderParts extends RecordReading {
  /** The configuration file. */
  readonly file: string
  /** Every file of the configuration in force. */
  readonly files: Iterable<string>
  readonly settings: Settings
  readonly pool: Pick<WorkerPool<Configuration>, 'holdingsDigest' | 'prepare' | 'commit' | 'abort'>
  readonly rules: Pick<RevocationRules, 'revoke'>
  readonly tokenRevoker: TokenRevoker
  readonly store: Store
  /** Called before the configuration is in force. Rejects with a Fault if the store cannot record it. */
  readonly adopting: (configuration: Configuration) => Promise<void>
  readonly recorder: Pick<Recorder, 'note'>
  readonly audit: AuditTrail
  /** Called when another configuration is in force. */
  readonly changed: (configuration: Configuration) => void
  /** Called with the files that were read, even if their configuration is refused. */
  readonly read: (files: ReadonlySet<string>) => void
}

/** Attempts at reading files that change meanwhile. */
const ATTEMPTS = 3

/** Most problems that a record names. */
const MOST_PROBLEMS = 20

type Refused = Extract<ReloadOutcome, { outcome: 'refused' }>

const refused = (...problems: string[]): Refused => ({ outcome: 'refused', problems })

const PASSING: Readonly<Record<PassingCause, string>> = {
  store: 'the store is out of reach, and what the files change must be compared with what it holds',
  trail: 'the audit trail cannot be written, so nothing that gives access is put in force',
  files: 'its files change while they are read',
  unknown: 'it could not be opened, though it has no problem; the log tells more',
}

/** For now: nothing is wrong with the files. */
const refusedNow = (cause: PassingCause): Refused => ({
  ...refused(`${PASSING[cause]} — it is tried again by itself`),
  cause,
})

/** The cause that keeps a configuration without a mistake from being opened. */
const causeOf = (thrown: unknown): PassingCause =>
  thrown instanceof Fault && thrown.code === 'identity_unavailable' ? 'store' : 'unknown'

export class Reloader {
  readonly #parts: ReloaderParts
  #configuration: Configuration
  #holdings: Holdings
  #files: FileDigests
  /** The last refusal that was recorded, until another order is given. */
  #recorded: { readonly operator: Operator; readonly problems: readonly string[] } | undefined

  private constructor(configuration: Configuration, holdings: Holdings, parts: ReloaderParts) {
    this.#parts = parts
    this.#configuration = configuration
    this.#holdings = holdings
    this.#files = digestFiles(parts.files, parts.audit)
  }

  /** Opens it for the configuration in force. Rejects with ContentsChanged if its files have changed since. */
  static async open(configuration: Configuration, parts: ReloaderParts): Promise<Reloader> {
    const holdings = await readHoldings(configuration, parts)
    if (holdings === undefined || digestOfHoldings(holdings) !== parts.pool.holdingsDigest)
      throw new ContentsChanged()
    return new Reloader(configuration, holdings, parts)
  }

  /** The people and their rights in the configuration in force. */
  get holdings(): Holdings {
    return this.#holdings
  }

  /** Must not be called again before it settles. Rejects only if a part of the service failed. */
  async reload(operator: Operator): Promise<ReloadOutcome> {
    const outcome = await this.#tryReload(operator)
    const level = outcome.outcome === 'reloaded' ? 'info' : 'error'
    this.#parts.recorder.note(level, `configuration_${outcome.outcome}`, { ...outcome, ...operator })
    if (outcome.outcome === 'refused') this.#noteRefusal(outcome.problems, operator)
    return outcome
  }

  /** Records it once for an order that is tried again and again: each attempt is in the log. */
  #noteRefusal(problems: readonly string[], operator: Operator): void {
    const refusal = { operator, problems }
    if (this.#recorded?.operator === operator && isDeepStrictEqual(this.#recorded, refusal)) return
    this.#recorded = refusal
    const change = { problems: problems.slice(0, MOST_PROBLEMS), count: problems.length }
    const act: AuditedChange = { event: 'configuration.refused', change: plainFacts(change) }
    noteChange(this.#parts.audit, operator, act, 'refused')
  }

  async #tryReload(operator: Operator): Promise<ReloadOutcome> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++)
      try {
        return await this.#readAndServe(operator)
      } catch (error) {
        if (!(error instanceof ContentsChanged)) throw error
      }
    return refusedNow('files')
  }

  /** Rejects with ContentsChanged if the workers read other contents than this process. */
  async #readAndServe(operator: Operator): Promise<ReloadOutcome> {
    const { file, environment, settings, pool, read, changed, recorder } = this.#parts
    const { configuration, problems } = loadConfiguration(settings, file, environment)
    read(problems.files)
    const files = digestFiles(problems.files, this.#parts.audit)
    if (configuration === undefined) return this.#refuse()
    const fixed = fixedChanges(this.#configuration, configuration)
    if (fixed.length > 0)
      return refused(...fixed.map((path) => `${path}  cannot change while the service runs — restart it`))
    const unfit = await this.#refuseSeals(configuration)
    if (unfit !== undefined) return unfit
    const holdings = await readHoldings(configuration, this.#parts)
    if (holdings === undefined) return this.#refuse()
    try {
      if ((await pool.prepare(configuration)) !== digestOfHoldings(holdings)) {
        await pool.abort()
        throw new ContentsChanged()
      }
    } catch (error) {
      if (error instanceof ContentsChanged) throw error
      return this.#refuse(error)
    }
    let losses: readonly Loss[]
    try {
      losses = await lossesServed(this.#holdings, holdings, this.#parts.store)
      // The rules are made before the swap, so that a reload is refused if the store is out of reach. After the swap
      // everything is ended once more, including what began in between.
      await this.#parts.adopting(configuration)
      await this.#makeRules(losses)
    } catch (error) {
      await pool.abort()
      if (!(error instanceof Fault)) throw error
      recorder.note('error', 'reload_failed', { cause: error })
      return refusedNow('store')
    }
    try {
      await this.#commit(configuration, holdings, files, operator)
    } catch (error) {
      if (!(error instanceof Fault && error.code === 'audit_unavailable')) throw error
      await pool.abort()
      return refusedNow('trail')
    }
    this.#files = files
    this.#configuration = configuration
    this.#holdings = holdings
    changed(configuration)
    await this.#end(losses).catch((cause: unknown) => {
      // The rules made before the swap hold. The next start compares with the last record and ends the rest.
      recorder.note('error', 'revocation_after_reload_failed', { cause, rules: losses.length })
    })
    return { outcome: 'reloaded', warnings: problemLines(problems), revoked: losses.length }
  }

  async #refuseSeals(configuration: Configuration): Promise<Refused | undefined> {
    const { recorder, store } = this.#parts
    try {
      const kinds = this.#parts.settings.added.stores
      const unfit = await unfitSeals(this.#configuration, configuration, { kinds, store })
      return unfit === undefined ? undefined : refused(`store.seal  ${unfit}`)
    } catch (thrown) {
      if (!(thrown instanceof Fault)) throw thrown
      recorder.note('error', 'reload_failed', { cause: thrown })
      return refusedNow('store')
    }
  }

  /** Puts what was prepared in force. Rejects with Fault `audit_unavailable` if that must be recorded before, and cannot be. */
  async #commit(
    configuration: Configuration,
    holdings: Holdings,
    files: FileDigests,
    operator: Operator,
  ): Promise<void> {
    const { audit, pool, settings } = this.#parts
    const before = { configuration: this.#configuration, holdings: this.#holdings, files: this.#files }
    // A file that was touched, or a reload that was asked for twice, puts nothing else in force.
    const isSame = isDeepStrictEqual([before.configuration, before.files], [configuration, files])
    if (!audit.on || isSame) return pool.commit()
    const change = await describeReload(before, { configuration, holdings, files }, this.#parts)
    const act: AuditedChange = { event: 'configuration.reloaded', change }
    const takes = onlyTakesAway(settings.schema, this.#configuration, configuration)
    const record = takes ? recordTaking : recordGiving
    await record(audit, operator, act, () => pool.commit())
  }

  async #makeRules(losses: readonly Loss[]): Promise<void> {
    for (const { tokens } of losses) await this.#parts.rules.revoke(tokens, undefined, LOST)
  }

  async #end(losses: readonly Loss[]): Promise<void> {
    const { tokenRevoker, store } = this.#parts
    for (const { tokens, consents } of losses) await tokenRevoker.end(tokens, { consents, cause: LOST })
    await recordHoldings(this.#holdings, store)
  }

  /** Lists every problem, as `postern check` does: a worker reports only that there is one. */
  async #refuse(cause?: unknown): Promise<ReloadOutcome> {
    const { file, environment, settings, recorder } = this.#parts
    let problems: Problems
    try {
      problems = await checkConfiguration(settings, file, environment)
    } catch (thrown) {
      recorder.note('error', 'reload_failed', { cause: thrown })
      return refusedNow(causeOf(thrown))
    }
    if (problems.failed) return refused(...problemLines(problems))
    const found = cause instanceof ConfigurationError ? problemLines(cause.problems) : []
    if (found.length > 0) return refused(...found)
    // No problem is found now, but there was one before: the files have changed.
    if (cause === undefined) throw new ContentsChanged()
    recorder.note('error', 'reload_failed', { cause })
    return refusedNow(causeOf(cause))
  }
}

/**
 * Compiles the directory only to read the people and their rights. Undefined if it has problems: entries left out for
 * them would count as removed.
 */
export async function readHoldings(
  configuration: Configuration,
  reading: RecordReading,
): Promise<Holdings | undefined> {
  const { scopes, directory } = configuration
  const problems = new Problems()
  const catalogue = compileScopes(scopes, problems)
  const compiled = await compileDirectory(directory, catalogue, problems, reading)
  return problems.failed ? undefined : servedHoldings({ configuration, directory: compiled, catalogue })
}

/** Milliseconds until a refused configuration is tried again: doubled each time, up to the longest. */
const FIRST_WAIT = 1000
const LONGEST_WAIT = 30_000

/** The fate of the configuration files that were read: for the metrics and for the status. */
export class ConfigurationLoads {
  readonly #clock: Pick<Clock, 'now'>
  readonly #after: After
  /** When the configuration in force was read, milliseconds since the epoch. */
  loadedAt: number
  /** The last reload, if it was refused. */
  refused: ConfigurationStanding['refused']
  readonly #again: (order: Operator) => void
  #attempts = 0
  #cancel: () => void = () => undefined

  /** @param again carries out an order once more */
  constructor(clock: Pick<Clock, 'now'>, again: (order: Operator) => void, after: After = systemAfter) {
    this.#clock = clock
    this.#again = again
    this.#after = after
    this.loadedAt = clock.now()
  }

  /**
   * A reload has ended. One that was refused for something that passes is tried again until it is in force, its files
   * turn out to have a mistake, or another one is ordered, such as by a change of the files.
   */
  ended(outcome: ReloadOutcome, order: Operator): void {
    this.stop()
    const at = this.#clock.now()
    if (outcome.outcome === 'reloaded') {
      this.loadedAt = at
      this.refused = undefined
      this.#attempts = 0
      return
    }
    const { cause, problems } = outcome
    this.refused = { at, via: order.via, problems, cause }
    if (cause === undefined) {
      this.#attempts = 0
      return
    }
    const wait = Math.min(FIRST_WAIT * 2 ** this.#attempts, LONGEST_WAIT)
    this.#attempts += 1
    this.#cancel = this.#after(wait, () => this.#again(order))
  }

  /** Tries nothing again by itself. */
  stop(): void {
    this.#cancel()
    this.#cancel = () => undefined
  }
}
