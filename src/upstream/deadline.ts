import { timerMs } from '../kernel/after.ts'

/**
 * By when something has to happen. There is one timer, which looks at the time when it fires: setting one for every step
 * of every call would cost more than the step.
 */
export class Deadline {
  readonly #passed: () => void
  #at = Infinity
  #timer: NodeJS.Timeout | undefined
  #firesAt = Infinity

  /** @param passed called when it has passed: once, unless it is set again */
  constructor(passed: () => void) {
    this.#passed = passed
  }

  /** Milliseconds from now, in place of what was set before. */
  set(ms: number): void {
    const now = performance.now()
    this.#at = now + ms
    if (this.#at < this.#firesAt) this.#arm(now, ms)
  }

  /** Nothing has to happen. */
  lift(): void {
    this.#at = Infinity
  }

  /** For good. */
  stop(): void {
    this.#at = Infinity
    clearTimeout(this.#timer)
  }

  #arm(now: number, ms: number): void {
    clearTimeout(this.#timer)
    const within = timerMs(ms)
    this.#firesAt = now + within
    this.#timer = setTimeout(this.#look, within).unref()
  }

  readonly #look = (): void => {
    this.#firesAt = Infinity
    if (this.#at === Infinity) return
    const now = performance.now()
    if (now < this.#at) this.#arm(now, this.#at - now)
    else this.#passed()
  }
}
