/** How many refusals are recorded singly, and how the others are counted (C12.1.5). */
import type { AuditEntry, AuditTrail, RefusalRecord } from '../../../base/contracts/records/audit.ts'
import { siteOf } from '../../../base/http/head/addresses.ts'
import { type After, after as realAfter, type Clock } from '../../../base/kernel/clock.ts'

/** How long refusals are counted together, in milliseconds. It begins with the first refusal. */
const WINDOW = 60_000

interface Limits {
  /** Records of one event with one reason and one source. */
  readonly singly: number
  /** How many sources have refusals recorded singly. */
  readonly sources: number
  /** Records in all. */
  readonly records: number
}

/** Nobody without credentials may fill the disk. */
const UNPROVEN: Limits = { singly: 10, sources: 1000, records: 10_000 }
/** A client that is in a loop must not fill it either. Its operator is known, so more is kept. */
const PROVEN: Limits = { singly: 100, sources: 1000, records: 10_000 }

interface SuppressionParts {
  readonly trail: Pick<AuditTrail, 'note'>
  readonly clock: Clock
  readonly after?: After
}

/** Records refusals singly up to a limit. Refusals beyond it are counted, and recorded as one when their minute ends. */
export class Suppression {
  readonly #parts: SuppressionParts
  #proven: Counts | undefined
  #unproven: Counts | undefined
  /** Clock.monotonic(): the end of the minute. */
  #until = -Infinity
  #cancel: () => void = () => undefined

  constructor(parts: SuppressionParts) {
    this.#parts = parts
  }

  /** @param entry makes the record; called only if it is recorded singly */
  refuse({ event, reason, address, client }: RefusalRecord, entry: () => AuditEntry): void {
    this.#begin()
    const isSingle =
      client === undefined
        ? (this.#unproven ??= new Counts(UNPROVEN)).take(siteOf(address), event, reason)
        : (this.#proven ??= new Counts(PROVEN)).take(client, event, reason)
    if (isSingle) this.#parts.trail.note(entry())
  }

  /** Ends the minute: records what was counted. */
  end(): void {
    this.#cancel()
    this.#until = -Infinity
    const { trail } = this.#parts
    for (const { source, ...counted } of this.#unproven?.beyond() ?? [])
      trail.note(suppressed(counted, { actor: { kind: 'anonymous' }, personal: addressOf(source) }))
    for (const { source, ...counted } of this.#proven?.beyond() ?? [])
      trail.note(suppressed(counted, { actor: { kind: 'client', client: source } }))
    this.#unproven = this.#proven = undefined
  }

  #begin(): void {
    const { clock, after = realAfter } = this.#parts
    const now = clock.monotonic()
    if (now < this.#until) return
    this.end()
    this.#until = now + WINDOW
    this.#cancel = after(WINDOW, () => this.end())
  }
}

interface Counted {
  /** A network as `siteOf` writes it, or a client. Undefined: all that had no count of their own. */
  readonly source: string | undefined
  readonly event: string | undefined
  readonly reason: string | undefined
  readonly count: number
}

const suppressed = (
  { event, reason, count }: Omit<Counted, 'source'>,
  who: Pick<AuditEntry, 'actor' | 'personal'>,
): AuditEntry => ({
  event: 'audit.suppressed',
  outcome: 'refused',
  reason,
  ...who,
  change: event === undefined ? { count } : { count, event },
})

/** The network of a site, as CIDR. */
const addressOf = (site: string | undefined): AuditEntry['personal'] =>
  site === undefined
    ? undefined
    : { 'actor.address': site.includes(':') ? `${site}::/56` : site.includes('.') ? `${site}.0/24` : site }

interface Count {
  readonly event: string
  readonly reason: string
  /** How many were recorded singly. */
  singly: number
  beyond: number
}

/** The refusals of one kind of source in one minute. Its memory is bounded by the limits: each count begins with a record. */
class Counts {
  readonly #limits: Limits
  readonly #sources = new Map<string, Map<string, Count>>()
  #records = 0
  #rest = 0

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Whether this one is to be recorded singly. */
  take(source: string, event: string, reason: string): boolean {
    const count = this.#countOf(source, event, reason)
    const { singly, records } = this.#limits
    if (count === undefined) this.#rest++
    else if (count.singly >= singly || this.#records >= records) count.beyond++
    else {
      count.singly++
      this.#records++
      return true
    }
    return false
  }

  #countOf(source: string, event: string, reason: string): Count | undefined {
    const key = `${event} ${reason}`
    const known = this.#sources.get(source)
    const found = known?.get(key)
    if (found !== undefined) return found
    const { sources, records } = this.#limits
    if (this.#records >= records || (known === undefined && this.#sources.size >= sources)) return undefined
    const count = { event, reason, singly: 0, beyond: 0 }
    if (known === undefined) this.#sources.set(source, new Map([[key, count]]))
    else known.set(key, count)
    return count
  }

  *beyond(): Generator<Counted> {
    for (const [source, counts] of this.#sources)
      for (const { event, reason, beyond } of counts.values())
        if (beyond > 0) yield { source, event, reason, count: beyond }
    if (this.#rest > 0) yield { source: undefined, event: undefined, reason: undefined, count: this.#rest }
  }
}
