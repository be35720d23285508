/** Events of the audit trail that a service has once, however many processes serve (C12.3). */
import { plainFacts } from '../../base/contracts/records/audited-change.ts'
import { type AuditEntry, type AuditTrail, NO_TRAIL } from '../../base/contracts/records/audit.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { isInForce } from '../../gateway/maintenance/switch.ts'
import { type KeptSwitch, switchFacts } from '../../gateway/maintenance/records.ts'
import type { KeyWork } from '../../operate/operation/key-work.ts'
import { countWorkers } from '../../base/contracts/processes/worker-pool.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { KeyEvents } from '../parts/key-events.ts'
import { digestFiles } from '../parts/reload.ts'
import type { State } from '../parts/state.ts'
import { VERSION } from '../parts/version.ts'

interface ServiceEventParts {
  readonly audit: AuditTrail | undefined
  readonly state: Pick<State, 'maintenance' | 'store' | 'feed'>
  /** Absent in a sidecar. */
  readonly keys: Pick<KeyWork, 'plan' | 'announced'> | undefined
  /** The files of the configuration; none if it comes from no file. */
  readonly files: Iterable<string>
}

/** Events that the clock, the start and the end of the service cause. */
export class ServiceEvents {
  readonly #audit: AuditTrail
  readonly #windows: WindowWatch
  readonly #keys: KeyEvents | undefined
  readonly #started: object

  constructor(
    configuration: Configuration,
    { audit = NO_TRAIL, state: { maintenance, store, feed }, keys, files }: ServiceEventParts,
    clock: Clock,
  ) {
    const { workers } = configuration
    this.#audit = audit
    this.#windows = new WindowWatch({ switches: () => maintenance.list(), audit, clock })
    this.#keys = keys && new KeyEvents({ ...keys, store, audit, clock, mark: () => feed.keys?.mark })
    this.#started = { version: VERSION, workers: countWorkers(workers), files: digestFiles(files, audit) }
  }

  start(): void {
    if (!this.#audit.on) return
    this.#note('service.started', this.#started)
    this.#windows.start()
    this.#keys?.start()
  }

  /** To be called before the store and the trail are closed. */
  async stop(): Promise<void> {
    this.#windows.stop()
    await this.#keys?.stop()
  }

  /** The last record of the service. */
  noteStopped(connectionsCut: number): void {
    this.#note('service.stopped', { connectionsCut })
  }

  #note(event: 'service.started' | 'service.stopped', change: object): void {
    this.#audit.note({ event, outcome: 'success', actor: { kind: 'service' }, change: plainFacts(change) })
  }
}

interface WindowWatchParts {
  readonly switches: () => readonly KeptSwitch[]
  readonly audit: Pick<AuditTrail, 'note'>
  readonly clock: Clock
}

/** Milliseconds between two looks. */
const INTERVAL = 1000

/** Configured switches are numbered, so a reload may give the id of one to another: what closes tells them apart. */
const keyOf = ({ id, from, until }: KeptSwitch): string => `${id} ${from ?? ''} ${until ?? ''}`

/**
 * Records when planned maintenance begins and ends by the clock (C9.1, C12.3). A switch by an operator, or by a reload,
 * has a record of its own.
 */
export class WindowWatch {
  readonly #parts: WindowWatchParts
  #lastLook: number
  /** At the last look: those that were planned, and those in force. */
  #planned = new Map<string, KeptSwitch>()
  #inForce = new Map<string, KeptSwitch>()
  #timer: NodeJS.Timeout | undefined

  constructor(parts: WindowWatchParts) {
    this.#parts = parts
    this.#lastLook = parts.clock.now()
    this.#remember(this.#lastLook)
  }

  start(): void {
    this.#timer ??= setInterval(() => this.look(), INTERVAL).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Compares with the last look. */
  look(): void {
    const now = this.#parts.clock.now()
    const [planned, inForce, lastLook] = [this.#planned, this.#inForce, this.#lastLook]
    this.#lastLook = now
    this.#remember(now)
    // One may have been planned, and have begun, since the last look.
    const hasBegunSince = ({ from, setAt }: KeptSwitch): boolean =>
      from !== undefined && from > lastLook && setAt !== undefined && setAt < from
    for (const [key, entry] of this.#inForce)
      if (planned.has(key) || (!inForce.has(key) && hasBegunSince(entry)))
        this.#note('maintenance.began', entry)
    for (const [key, entry] of inForce)
      if (!this.#inForce.has(key) && entry.until !== undefined && entry.until <= now)
        this.#note('maintenance.ended', entry)
  }

  #remember(now: number): void {
    const all = this.#parts.switches().map((entry) => [keyOf(entry), entry] as const)
    this.#inForce = new Map(all.filter(([, entry]) => isInForce(entry, now)))
    this.#planned = new Map(all.filter(([, { from }]) => from !== undefined && from > now))
  }

  #note(event: AuditEntry['event'], entry: KeptSwitch): void {
    this.#parts.audit.note({
      event,
      outcome: 'success',
      actor: { kind: 'service', claimed: entry.by, via: 'schedule' },
      on: { kind: 'switch', id: entry.id },
      change: switchFacts(entry),
      why: entry.reason,
    })
  }
}
