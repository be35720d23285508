import { type After, after as systemAfter, type Clock, systemClock } from '../kernel/clock.ts'

/**
 * A time limit that is set anew at each step of a call. It has one timer, which looks at the clock when it fires: a timer
 * for each step would cost more than the step.
 */
export class Deadline {
  readonly #expired: () => void
  readonly #after: After
  readonly #clock: Pick<Clock, 'monotonic'>
  /** Monotonic milliseconds, as is `#firesAt`. */
  #expiresAt = Infinity
  /** When the timer fires; Infinity without a timer. */
  #firesAt = Infinity
  #cancelTimer: (() => void) | undefined

  /**
   * @param expired called when the limit is over: once, unless it is set again
   */
  constructor(
    expired: () => void,
    after: After = systemAfter,
    clock: Pick<Clock, 'monotonic'> = systemClock,
  ) {
    this.#expired = expired
    this.#after = after
    this.#clock = clock
  }

  /** Sets the limit to so many milliseconds from now, in place of the one before. */
  set(ms: number): void {
    const now = this.#clock.monotonic()
    this.#expiresAt = now + ms
    if (this.#expiresAt < this.#firesAt) this.#startTimer(now)
  }

  /** Removes the limit, until it is set again. The timer goes on: the next limit is likely to come soon. */
  lift(): void {
    this.#expiresAt = Infinity
  }

  /** Removes the limit and the timer. */
  stop(): void {
    this.#expiresAt = this.#firesAt = Infinity
    this.#cancelTimer?.()
  }

  #startTimer(now: number): void {
    this.#cancelTimer?.()
    this.#firesAt = this.#expiresAt
    this.#cancelTimer = this.#after(this.#expiresAt - now, this.#onTimer)
  }

  readonly #onTimer = (): void => {
    this.#firesAt = Infinity
    if (this.#expiresAt === Infinity) return
    const now = this.#clock.monotonic()
    if (now < this.#expiresAt) this.#startTimer(now)
    else this.#expired()
  }
}
