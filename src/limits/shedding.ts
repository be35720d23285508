/** How often `Shedding.tick` is to be called, in milliseconds. If it is called later, the difference is the loop's delay. */
export const TICK_MS = 50

/** The median of so many delays counts, so that one long pause decides nothing. */
const KEPT = 7
/** Milliseconds between two steps, so that one can be seen to work before the next. */
const STEP_MS = 500
const MORE = 0.25
const LESS = 0.05

/**
 * Refuses a share of the new calls while the event loop is late, so that those let in are answered in time. The share
 * grows by quarters while the median delay is over the threshold, and shrinks by twentieths once it is under half of
 * it: it settles where the loop keeps up, and does not swing between all and nothing.
 */
export class Shedding {
  readonly #delays = new Float64Array(KEPT)
  #next = 0
  #last: number | undefined
  #steppedAt = -Infinity
  /** The share of calls that are refused: 0 to 1. Only `tick` changes it. */
  share = 0
  /** Part of a call that is still to be refused. */
  #due = 0
  /** Milliseconds of delay above which calls are refused; 0 refuses none. */
  threshold = 0

  /** Measures, and steps if it is time. @param now milliseconds, monotonic */
  tick(now: number): void {
    if (this.#last !== undefined) this.#measure(Math.max(0, now - this.#last - TICK_MS))
    this.#last = now
    if (this.threshold === 0) this.share = 0
    else if (now - this.#steppedAt >= STEP_MS) this.#step(now)
  }

  /** What `refuses` would answer. */
  wouldRefuse(): boolean {
    return this.#due + this.share >= 1
  }

  /** Whether this call is one to refuse. Spread evenly: of a share of a quarter every fourth. */
  refuses(): boolean {
    this.#due += this.share
    if (this.#due < 1) return false
    this.#due -= 1
    return true
  }

  #measure(delay: number): void {
    this.#delays[this.#next] = delay
    this.#next = (this.#next + 1) % KEPT
  }

  #step(now: number): void {
    const delay = this.#delays.toSorted()[(KEPT - 1) / 2] ?? 0
    if (delay > this.threshold) this.share = Math.min(1, this.share + MORE)
    else if (delay < this.threshold / 2) this.share = Math.max(0, this.share - LESS)
    else return
    // Twentieths do not add up in binary: the remainder of the last one counts as 0.
    if (this.share < LESS / 2) this.share = 0
    this.#steppedAt = now
  }
}
