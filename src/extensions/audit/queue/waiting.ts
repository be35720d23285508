/** Those who wait until a record is written, or durable, each for as long as the timeout of the trail. */
import type { After, Clock } from '../../../base/kernel/clock.ts'
import { reaches } from './record-ring.ts'

/** Somebody who waits until a record is written, or durable. One of the two is called, once. */
interface Waiter {
  /** Behind the record. */
  readonly end: number
  readonly reached: () => void
  /** The time is over, or the trail cannot be written. */
  readonly late: () => void
}

interface Entry extends Waiter {
  /** In monotonic milliseconds. */
  deadline: number
}

interface WaitingParts {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly after: After
  /** How long each may wait, in milliseconds. */
  readonly timeout: number
  /** Called before somebody is late: what was reached may not be known yet, where this thread was busy. */
  readonly look?: () => void
}

/** Callers that wait, in the order of the records, with one timer for all. */
export class Waiting {
  readonly #parts: WaitingParts
  readonly #entries: Entry[] = []
  #cancel: (() => void) | undefined

  constructor(parts: WaitingParts) {
    this.#parts = parts
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0
  }

  add({ end, reached, late }: Waiter): void {
    const { clock, timeout } = this.#parts
    this.#entries.push({ end, reached, late, deadline: clock.monotonic() + timeout })
    if (this.#cancel === undefined) this.#wind(timeout)
  }

  /** Everything before this position is written, or durable. */
  reach(position: number): void {
    while (this.#entries[0] !== undefined && reaches(position, this.#entries[0].end))
      this.#entries.shift()?.reached()
  }

  /** The time of all who wait begins anew. */
  renew(): void {
    const deadline = this.#parts.clock.monotonic() + this.#parts.timeout
    for (const entry of this.#entries) entry.deadline = deadline
  }

  /** Nobody needs to wait any longer. */
  expireAll(): void {
    for (const { late } of this.#entries.splice(0)) late()
  }

  stop(): void {
    this.#cancel?.()
  }

  #expire(): void {
    this.#parts.look?.()
    const now = this.#parts.clock.monotonic()
    while (this.#entries[0] !== undefined && this.#entries[0].deadline <= now) this.#entries.shift()?.late()
    const [next] = this.#entries
    if (next !== undefined) this.#wind(next.deadline - now)
  }

  #wind(ms: number): void {
    this.#cancel = this.#parts.after(ms, () => {
      this.#cancel = undefined
      this.#expire()
    })
  }
}
