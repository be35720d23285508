/**
 * Operations in the process of a command, while no service runs: the same handlers on what the service would open. Nothing
 * is loaded or opened that the operation does not need; the trail is opened with its first record, so that what is refused before
 * it was begun leaves nothing behind.
 */
import type { TrailLock } from '../../operate/trail/lock.ts'
import { ConfigurationError, Problems } from '../../base/config/problems.ts'
import type { Environment } from '../../base/config/validate.ts'
import { type AuditEntry, type AuditTrail, NO_TRAIL } from '../../base/contracts/records/audit.ts'
import { NO_RECORDER, type Recorder } from '../../base/contracts/records/recorder.ts'
import type { Store } from '../../base/contracts/records/store.ts'
import type { Editors } from '../../identity/directory/editors/editors.ts'
import { systemClock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { whyUnwritable } from '../../base/files/file-modes.ts'
import { messageOf } from '../../base/kernel/thrown.ts'
import type { OperationContext, QueriedTrail, TrailEraser } from '../../operate/operation/context.ts'
import type { KeyWork } from '../../operate/operation/key-work.ts'
import { oneAtATime } from '../../base/kernel/in-turn.ts'
import { OpenIntents } from '../../operate/operation/open-intents.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { serviceUrls } from '../../gateway/server/schema.ts'
import { splitListenAddress } from '../../base/kernel/listen-address.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { ANSWER_COMMAND_WITHIN } from '../../state/stores/open-store.ts'
import { openSqliteToRead } from '../../state/stores/read-store.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'
import type { EditorParts } from '../parts/in-force.ts'
import { keysPlanOf, OpenedKeys } from '../parts/key-plan.ts'
import type { State } from '../parts/state.ts'
import type { OwnedTrail } from '../../operate/hooks/kept-trail.ts'
import { hasPeopleElsewhere, STATE_PARTS, SETTINGS, trailOpenerOf } from './settings.ts'

/**
 * The trail of a command. `none`: none is kept, or the operation leaves no record. A lock: of its folder; it is handed over.
 * `unopened`: why nothing can be recorded; an act that takes away is done nevertheless.
 */
export type TrailHere = 'none' | { readonly lock: TrailLock } | { readonly unopened: string }

export interface HereParts {
  readonly configuration: Configuration
  readonly environment: Environment
  readonly trail: TrailHere
  /** Whether nothing is changed: a data folder that cannot be written will do then. */
  readonly reads: boolean
  /** Waits until other processes know of a change. Tests pass their own. */
  readonly pause?: EditorParts['pause']
}

const CANNOT_WRITE = 'the audit trail cannot be written'

/** The trail of a command: opened with its first record. */
class CommandTrail implements AuditTrail {
  readonly on = true
  readonly #configuration: Configuration
  readonly #trail: Exclude<TrailHere, 'none'>
  #owner: Promise<OwnedTrail | undefined> | undefined
  #trouble: string | undefined
  #closed: Promise<void> | undefined
  /** Records that were late, are lost or could not be signed, as events of the log. */
  readonly problems: string[] = []
  readonly #notes: Promise<void>[] = []
  /** Why what was done is not recorded; undefined if it is. */
  unrecorded: string | undefined

  constructor(configuration: Configuration, trail: Exclude<TrailHere, 'none'>) {
    this.#configuration = configuration
    this.#trail = trail
  }

  /** Why nothing can be recorded; undefined if it can. */
  async trouble(): Promise<string | undefined> {
    await this.#open()
    return this.#trouble
  }

  get refusal(): string {
    return this.#trouble ?? CANNOT_WRITE
  }

  #open(): Promise<OwnedTrail | undefined> {
    this.#owner ??= this.#openOwner().catch((thrown: unknown) => {
      this.#trouble = messageOf(thrown)
      return undefined
    })
    return this.#owner
  }

  async #openOwner(): Promise<OwnedTrail | undefined> {
    if ('unopened' in this.#trail) {
      this.#trouble = this.#trail.unopened
      return undefined
    }
    const note: Recorder['note'] = (level, event) => {
      if (level === 'error') this.problems.push(event)
    }
    const { lock } = this.#trail
    return (await trailOpenerOf(this.#configuration))?.open(this.#configuration, {
      clock: systemClock,
      recorder: { note },
      lock,
      here: true,
    })
  }

  async #opened(): Promise<AuditTrail | undefined> {
    return (await this.#open())?.trail
  }

  async require(entry: AuditEntry): Promise<number> {
    const trail = await this.#opened()
    if (trail === undefined) throw new Fault('audit_unavailable')
    return trail.require(entry)
  }

  async settle(entry: AuditEntry): Promise<void> {
    await (await this.#opened())?.settle(entry)
  }

  /** A record that is late or lost is told of when the command ends. */
  async keep(entry: AuditEntry): Promise<boolean> {
    const trail = await this.#opened()
    if (trail === undefined) this.unrecorded = this.#trouble
    else await trail.keep(entry)
    return true
  }

  note(entry: AuditEntry): void {
    this.#notes.push(
      this.#opened().then((trail) => {
        if (trail === undefined) this.unrecorded = this.#trouble
        else trail.note(entry)
      }),
    )
  }

  refuse(): void {
    // Nobody is let in here who could cause many refusals.
  }

  bodyHash(): ReturnType<AuditTrail['bodyHash']> {
    return NO_TRAIL.bodyHash()
  }

  /** As the owner of the trail does. Rejects with Fault `audit_unavailable` if the trail cannot be opened. */
  async redact(...order: Parameters<TrailEraser['redact']>): ReturnType<TrailEraser['redact']> {
    const owner = await this.#open()
    if (owner === undefined) throw new Fault('audit_unavailable')
    return owner.redact(...order)
  }

  /** Gives the lock back. May be called again. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close())
  }

  async #close(): Promise<void> {
    await Promise.all(this.#notes)
    const owner = await this.#owner
    if (owner !== undefined) await owner.close()
    else if ('lock' in this.#trail) this.#trail.lock.release()
  }
}

/** The parts that operations of a command work on. */
export class OperatedHere implements AsyncDisposable {
  readonly context: OperationContext
  readonly #parts: HereParts
  readonly #trail: CommandTrail | undefined
  readonly #opened = new AsyncDisposableStack()
  #state: Promise<State> | undefined
  #editors: Promise<Editors> | undefined
  #keys: Promise<OpenedKeys> | undefined

  constructor(parts: HereParts) {
    this.#parts = parts
    this.#trail = parts.trail === 'none' ? undefined : new CommandTrail(parts.configuration, parts.trail)
    const trail = this.#trail
    this.#opened.defer(() => trail?.close())
    const audit: AuditTrail = trail ?? NO_TRAIL
    const recorder = NO_RECORDER
    const intents = new OpenIntents(audit)
    this.#opened.defer(() => intents.close())
    const editors = (): Promise<Editors> => (this.#editors ??= this.#openEditors())
    const canRecord = async (): Promise<void> => {
      if ((await this.#trail?.trouble()) !== undefined) throw new Fault('audit_unavailable')
    }
    this.context = {
      audit,
      recorder,
      clock: systemClock,
      authUrl: () => authUrlOf(parts.configuration),
      editors,
      canRecord,
      intents,
      trail: trail && this.#queried(trail),
      trailOwner: trail,
      keys: () => this.#keyWork(),
    }
  }

  /** Why what was done is not recorded; undefined if it is. */
  get unrecorded(): string | undefined {
    return this.#trail?.unrecorded
  }

  /** Records of the trail that were late, are lost or could not be signed, as events of the log. */
  get problems(): readonly string[] {
    return this.#trail?.problems ?? []
  }

  /** Why something was not done, where Fault `audit_unavailable` says so. */
  get refusal(): string {
    return this.#trail?.refusal ?? CANNOT_WRITE
  }

  /** The lock is given back before the files are read, which may take minutes. */
  #queried(trail: CommandTrail): QueriedTrail {
    const { configuration } = this.#parts
    return {
      async *query(...request) {
        const opener = await trailOpenerOf(configuration)
        if (opener !== undefined) yield* opener.query(configuration, ...request)
      },
      note: async (entry) => {
        trail.note(entry)
        await trail.close()
      },
    }
  }

  /** Reading leaves no file behind, and is possible also where no file can be made. */
  async #directoryState(): Promise<EditorParts['state']> {
    const { configuration, reads } = this.#parts
    const { data, store } = configuration
    if (store.kind !== 'sqlite') return this.#openState()
    if (reads) return readState(openSqliteToRead(data))
    const why = whyUnwritable(data)
    if (why !== undefined)
      throw new StoreError(`nothing was changed: the data folder ${data} cannot be written (${why})`)
    return this.#openState()
  }

  #openState(): Promise<State> {
    this.#state ??= openStateOf(this.#parts.configuration).then((state) => this.#opened.use(state))
    return this.#state
  }

  async #openEditors(): Promise<Editors> {
    const { configuration, environment, pause } = this.#parts
    const reading = { environment, clientForm: SETTINGS.added.clientForm }
    const state = await this.#directoryState()
    const problems = new Problems()
    const { openConfiguredEditors } = await import('../parts/in-force.ts')
    const { place } = await keysPlanOf(configuration, { kinds: SETTINGS.added.stores, store: state.store })
    const editors = await openConfiguredEditors(
      configuration,
      { ...reading, state, place, clock: systemClock, pause, hasPeopleElsewhere },
      problems,
    )
    if (problems.failed) throw new ConfigurationError(problems)
    return editors
  }

  async #keyWork(): Promise<KeyWork | undefined> {
    const { configuration, reads } = this.#parts
    if (isSidecar(configuration)) return undefined
    this.#keys ??= OpenedKeys.open(configuration, reads, SETTINGS.added.stores).then((opened) =>
      this.#opened.use(opened),
    )
    const keys = await this.#keys
    return {
      plan: keys.plan,
      clock: keys.clock,
      store: () => keys.store(),
      elsewhere: configuration.store.kind === 'memory',
      announced: new Set(),
      inTurn: oneAtATime(),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A request that failed may have left something that is still being opened.
    await Promise.allSettled([this.#keys, this.#state])
    await this.#opened.disposeAsync()
  }
}

/** As the service will have it: a port that the system chooses is not known before. */
const authUrlOf = ({ server }: Configuration): string =>
  serviceUrls(server, splitListenAddress(server.listen).port).authUrl

async function openStateOf(configuration: Configuration): Promise<State> {
  const { openState } = await import('../parts/state.ts')
  const { openMeasures } = await import('../parts/measures.ts')
  return openState(configuration, {
    clock: systemClock,
    recorder: NO_RECORDER,
    audit: NO_TRAIL,
    measures: openMeasures(configuration, false),
    ...STATE_PARTS,
    answerWithin: ANSWER_COMMAND_WITHIN,
  })
}

function readState(store: Store): EditorParts['state'] {
  const refuse = (): Promise<never> => Promise.reject(new StoreError('The store is open to be read only.'))
  return { store, feed: { append: refuse }, tokenRevoker: { end: refuse } }
}
