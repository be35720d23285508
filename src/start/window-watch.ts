/** Tells the audit trail when planned maintenance begins and ends by the clock (C9.1, C12.3): once for each service. */
import type { AuditEntry, AuditTrail } from '../contracts/audit.ts'
import type { Clock } from '../kernel/clock.ts'
import { type KeptSwitch, switchFacts } from '../maintenance/records.ts'
import { isInForce } from '../maintenance/switch.ts'

export interface WindowWatchParts {
  readonly switches: () => readonly KeptSwitch[]
  readonly audit: Pick<AuditTrail, 'note'>
  readonly clock: Clock
}

/** Milliseconds between two looks. */
const INTERVAL = 1000

/** Configured switches are numbered, so a reload may give the id of one to another: what closes tells them apart. */
const keyOf = ({ id, from, until }: KeptSwitch): string => `${id} ${from ?? ''} ${until ?? ''}`

/** What an operator switches, or a reload brings, has a record of its own; this tells only what the clock does. */
export class WindowWatch {
  readonly #parts: WindowWatchParts
  /** At the last look: those that were planned, and those in force. */
  #planned = new Map<string, KeptSwitch>()
  #inForce = new Map<string, KeptSwitch>()
  #timer: NodeJS.Timeout | undefined

  constructor(parts: WindowWatchParts) {
    this.#parts = parts
    this.#remember(parts.clock.now())
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
    const [planned, inForce] = [this.#planned, this.#inForce]
    this.#remember(now)
    for (const [key, entry] of this.#inForce) if (planned.has(key)) this.#note('maintenance.began', entry)
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
