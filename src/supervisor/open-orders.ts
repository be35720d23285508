import type { After } from '../kernel/clock.ts'

/** An order that was not answered: the worker is no more (`gone`), or had no more time (`late`), and nobody knows. */
export class OrderError extends Error {
  override readonly name = 'OrderError'
  readonly end: 'gone' | 'late'

  constructor(end: 'gone' | 'late', message: string) {
    super(message)
    this.end = end
  }
}

interface PendingOrder {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

const GONE = 'the worker process ended'

/**
 * The orders to one worker process that are not answered yet. Every one of them ends: with its answer, at its deadline,
 * or with the worker, and at once if the worker is gone already.
 */
export class OpenOrders {
  readonly #after: After
  readonly #waiting = new Map<number, PendingOrder>()
  #numbers = 0
  #gone = false

  constructor(after: After) {
    this.#after = after
  }

  /**
   * Sends an order and waits for what comes of it. Rejects with OrderError, or with what the worker tells.
   *
   * @param ms how long the worker has
   * @param send is given the order's number, and answers whether there is anybody to send to
   */
  give(ms: number, send: (ask: number) => boolean): Promise<unknown> {
    if (this.#gone) return Promise.reject(new OrderError('gone', GONE))
    const ask = (this.#numbers += 1)
    return new Promise((resolve, reject) => {
      const late = `the worker process did not answer within ${ms / 1000} s`
      const forget = this.#after(ms, () => this.#take(ask)?.reject(new OrderError('late', late)))
      this.#waiting.set(ask, {
        resolve: (value) => {
          forget()
          resolve(value)
        },
        reject: (error) => {
          forget()
          reject(error)
        },
      })
      if (!send(ask)) this.#take(ask)?.reject(new OrderError('gone', GONE))
    })
  }

  done(ask: number, value: unknown): void {
    this.#take(ask)?.resolve(value)
  }

  failed(ask: number, error: Error): void {
    this.#take(ask)?.reject(error)
  }

  /** The worker is gone. */
  end(): void {
    this.#gone = true
    for (const ask of [...this.#waiting.keys()]) this.#take(ask)?.reject(new OrderError('gone', GONE))
  }

  /** An answer that comes too late finds nobody. */
  #take(ask: number): PendingOrder | undefined {
    const waiting = this.#waiting.get(ask)
    this.#waiting.delete(ask)
    return waiting
  }
}

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
