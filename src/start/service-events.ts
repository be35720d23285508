/** Events of the audit trail that a service has once, however many processes serve (C12.3). */
import { type AuditTrail, NO_TRAIL } from '../contracts/audit.ts'
import type { Clock } from '../kernel/clock.ts'
import { type AuditedChange, plainFacts } from '../audit/audited-change.ts'
import type { Configuration } from '../settings/configuration.ts'
import { countWorkers } from '../processes/worker-pool.ts'
import type { State } from './state.ts'
import { KeyEvents } from './key-events.ts'
import type { KeysPlan } from '../keys/service-keys.ts'
import { digestFiles } from './reload-record.ts'
import { VERSION } from './version.ts'
import { WindowWatch } from './window-watch.ts'

export interface ServiceEventParts {
  readonly audit: AuditTrail | undefined
  readonly state: Pick<State, 'maintenance' | 'store' | 'feed'>
  /** Absent in a sidecar. */
  readonly keysPlan: KeysPlan | undefined
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
    { audit = NO_TRAIL, state: { maintenance, store, feed }, keysPlan: plan, files }: ServiceEventParts,
    clock: Clock,
  ) {
    const { workers } = configuration
    this.#audit = audit
    this.#windows = new WindowWatch({ switches: () => maintenance.list(), audit, clock })
    this.#keys = plan && new KeyEvents({ plan, store, audit, clock, mark: () => feed.keys?.mark })
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

  /** A command has recorded what it does. That it announces a key is not told again. */
  reported({ event, on }: AuditedChange): void {
    if (event === 'keys.announced' && on?.id !== undefined) this.#keys?.skipAnnouncement(on.id)
  }

  #note(event: 'service.started' | 'service.stopped', change: object): void {
    this.#audit.note({ event, outcome: 'success', actor: { kind: 'service' }, change: plainFacts(change) })
  }
}
