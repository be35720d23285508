import type { After } from '../kernel/after.ts'

const TICK_MS = 250

interface Due {
  readonly at: number
  readonly work: () => void
}

/**
 * Time in which this process ran: what others are given to answer is measured in it. While the process is stopped, the
 * machine sleeps or one task holds it up, answers lie unread, and nobody can be said to be late. So ticks are counted,
 * and a tick that comes late counts as one.
 */
export class RunningTime {
  #ran = 0
  #timer: NodeJS.Timeout | undefined
  readonly #waiting = new Set<Due>()

  start(): void {
    this.#timer ??= setInterval(() => this.tick(), TICK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Like `after`, in running time. */
  readonly after: After = (ms, work) => {
    const due = { at: this.#ran + ms, work }
    this.#waiting.add(due)
    return () => void this.#waiting.delete(due)
  }

  /** What is due every TICK_MS. What has come in meanwhile is read before anybody is found to be late. */
  tick(): void {
    this.#ran += TICK_MS
    setImmediate(() => this.#run())
  }

  #run(): void {
    for (const due of this.#waiting) {
      if (due.at > this.#ran) continue
      this.#waiting.delete(due)
      due.work()
    }
  }
}
