import { setImmediate } from 'node:timers/promises'

/** Milliseconds of work that nobody notices in between. */
const SLICE = 8
/** Steps between two looks at the clock. */
const STEPS = 256

/**
 * Work that may be long, in slices: whoever steps through it asks after each step, and waits where there is something to
 * wait for, so that the event loop serves others in between.
 */
export class Slices {
  #steps = 0
  #end = performance.now() + SLICE

  /** Something to wait for, once the slice is over. @param steps how much was done since, as the caller counts */
  pause(steps = 1): Promise<void> | undefined {
    this.#steps += steps
    if (this.#steps < STEPS) return undefined
    this.#steps = 0
    return performance.now() < this.#end ? undefined : this.#turn()
  }

  async #turn(): Promise<void> {
    await setImmediate()
    this.#end = performance.now() + SLICE
  }
}
