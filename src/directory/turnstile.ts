/**
 * Lets a few jobs run at once and a bounded number wait, in order. Hashes would otherwise take all threads of the
 * pool that token checks, DNS and files need too (C6.3.5).
 */
export class Turnstile {
  readonly #places: number
  readonly #seats: number
  #running = 0
  readonly #waiting: (() => void)[] = []

  /** `places` run, `seats` wait. */
  constructor(places: number, seats: number) {
    this.#places = places
    this.#seats = seats
  }

  get full(): boolean {
    return this.#running >= this.#places && this.#waiting.length >= this.#seats
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** Callers ask `full` first: this one waits, however long the queue is. */
  async pass<T>(job: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#places) await this.#turn()
    else this.#running++
    try {
      return await job()
    } finally {
      this.#leave()
    }
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
    })
  }

  /** The place goes to the next in line directly, so that no newcomer takes it in between. */
  #leave(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#running--
    else next()
  }
}
