/** Milliseconds. Times without answers that are closer than that count as one. */
const APART = 10_000
/** Milliseconds. What was written so long before the first failure may be without an answer: the deadline of a verb, and more. */
const BEFORE = 5000

/** When the database did not answer this process. Times are those of the store's clock, in milliseconds since the epoch. */
export class Silence {
  #from: number | undefined
  /** Undefined: it goes on. */
  #until: number | undefined = 0

  failed(now: number): void {
    if (this.#until === undefined) return
    if (this.#from === undefined || now - this.#until > APART) this.#from = now
    this.#until = undefined
  }

  answered(now: number): void {
    this.#until ??= now
  }

  /** Milliseconds from a time to the end of the silence in which it lies; 0 if it lies in none. */
  after(time: number, now: number): number {
    if (this.#from === undefined || time < this.#from - BEFORE) return 0
    return Math.max(0, (this.#until ?? now) - time)
  }
}
