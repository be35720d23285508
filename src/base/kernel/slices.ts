import { performance } from 'node:perf_hooks'
import { setImmediate } from 'node:timers/promises'

/** Milliseconds of work before other events get a turn. */
const SLICE = 8
/** Steps between two readings of the clock. */
const STEPS = 256

/** Lets the event loop serve other calls in between: after each step the work awaits what `pause` returns. */
export class Slices {
  #steps = 0
  #end = performance.now() + SLICE

  /** Returns a promise to await if the slice is over. `steps`: how many steps were made since the last call. */
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
