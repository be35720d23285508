/** The common parts of the ways to a store: SQLite's thread, and the connections of a store that nodes share. */
import { performance } from 'node:perf_hooks'
import { Fault } from '../../../base/kernel/faults.ts'

/** How many requests may wait at once: more than can be answered in time. Any further one fails at once. */
export const QUEUE_LIMIT = 1000
/** The least time for a verb, in milliseconds. If less is left, the verb fails at once. */
export const MIN_TIME = 10
/** The value of Retry-After, in seconds. */
const RETRY_AFTER = 1

export const unavailable = (detail: string): Fault =>
  new Fault('identity_unavailable', { detail: `store: ${detail}`, retryAfter: RETRY_AFTER })

export const tooMany = (): Fault => unavailable('too many wait for it')

export const spentBefore = (): Fault => unavailable('what this request asked before took too long')

/** Refusals alike, in a row, of one kind of write. One alone may have had a cause of its own. */
const ALIKE = 2
/** How long a refusal counts, in milliseconds: perhaps nobody has tried to write since. */
const RECENT = 30_000

interface Refusals {
  readonly reason: string
  readonly count: number
  readonly at: number
}

/** Whether a store answers but takes no writes. By kind of write: a full disk still takes what fits in place. */
export class RefusedWrites {
  readonly #monotonic: () => number
  /** By the kind of write. */
  readonly #refusals = new Map<string, Refusals>()

  constructor(monotonic: () => number = () => performance.now()) {
    this.#monotonic = monotonic
  }

  /** In words, without an address; undefined if writes are taken as far as anybody knows. */
  get reason(): string | undefined {
    const since = this.#monotonic() - RECENT
    return this.#refusals.values().find(({ count, at }) => count >= ALIKE && at >= since)?.reason
  }

  refused(write: string, reason: string): void {
    const before = this.#refusals.get(write)
    const count = before?.reason === reason ? before.count + 1 : 1
    this.#refusals.set(write, { reason, count, at: this.#monotonic() })
  }

  taken(write: string): void {
    this.#refusals.delete(write)
  }
}
