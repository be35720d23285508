/** What one process takes of the machine: memory, processor time, and how long its event loop keeps others waiting. */
import { totalmem } from 'node:os'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { FAMILIES } from './families.ts'
import { reading } from './gauges.ts'
import type { GaugeReading } from '../../../base/contracts/processes/reports.ts'

/** The time between two samples of the event loop's delay, in milliseconds. */
const SAMPLE_MS = 20
/** The length of a window, in milliseconds. The delay that is shown is the largest of the present window and the one before. */
const WINDOW_MS = 15_000

/** How many bytes the processes of this service may take together: the container's limit, or the memory of the machine. */
export const memoryLimit = (constrained = process.constrainedMemory(), total = totalmem()): number =>
  constrained > 0 && constrained < total ? constrained : total

export class ProcessLoad {
  /** Value of the label `process`: `main`, or `worker-N`. */
  readonly name: string
  readonly #delay = monitorEventLoopDelay({ resolution: SAMPLE_MS })
  #windowBegan = performance.now()
  #largestBefore = 0
  #microsecondsTold = 0

  constructor(name: string) {
    this.name = name
    this.#delay.enable()
  }

  /** Seconds of processor time, of all threads, since the last call. */
  takeProcessorSeconds(): number {
    const { user, system } = process.cpuUsage()
    const seconds = (user + system - this.#microsecondsTold) / 1e6
    this.#microsecondsTold = user + system
    return seconds
  }

  readings(): readonly GaugeReading[] {
    return [
      reading(FAMILIES.processMemory, process.memoryUsage.rss(), this.name),
      reading(FAMILIES.processDelay, this.#largestDelay() / 1000, this.name),
    ]
  }

  /** The largest delay of the event loop, in milliseconds. */
  #largestDelay(): number {
    // The histogram counts the time from one sample to the next.
    const largest = Math.max(0, this.#delay.max / 1e6 - SAMPLE_MS)
    const shown = Math.max(largest, this.#largestBefore)
    if (performance.now() - this.#windowBegan >= WINDOW_MS) {
      this.#windowBegan = performance.now()
      this.#largestBefore = largest
      this.#delay.reset()
    }
    return shown
  }
}
