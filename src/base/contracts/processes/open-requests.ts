import { setImmediate } from 'node:timers'
import type { After } from '../../kernel/clock.ts'

/** A request that was not answered: the worker has ended (`gone`) or is too late (`late`). It may have been carried out. */
export class WorkerRequestError extends Error {
  override readonly name = 'WorkerRequestError'
  readonly end: 'gone' | 'late'

  constructor(end: 'gone' | 'late', message: string) {
    super(message)
    this.end = end
  }
}

interface PendingRequest {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

const GONE = 'the worker process ended'

/** The open requests to one worker process. Each settles: answered, at its deadline, or when the worker ends. */
export class OpenRequests {
  readonly #after: After
  readonly #waiting = new Map<number, PendingRequest>()
  #numbers = 0
  #gone = false

  constructor(after: After) {
    this.#after = after
  }

  /**
   * Sends a request and resolves with its result. Rejects with WorkerRequestError, or with the error that the worker reports.
   *
   * @param ms the time that the worker has to answer
   * @param send gets the request's id and returns whether the request could be sent
   */
  give(ms: number, send: (id: number) => boolean): Promise<unknown> {
    if (this.#gone) return Promise.reject(new WorkerRequestError('gone', GONE))
    const id = (this.#numbers += 1)
    return new Promise((resolve, reject) => {
      const late = `the worker process did not answer within ${ms / 1000} s`
      const forget = this.#after(ms, () => this.#take(id)?.reject(new WorkerRequestError('late', late)))
      this.#waiting.set(id, {
        resolve: (value) => {
          forget()
          resolve(value)
        },
        reject: (error) => {
          forget()
          reject(error)
        },
      })
      if (!send(id)) this.#take(id)?.reject(new WorkerRequestError('gone', GONE))
    })
  }

  done(id: number, value: unknown): void {
    this.#take(id)?.resolve(value)
  }

  failed(id: number, error: Error): void {
    this.#take(id)?.reject(error)
  }

  /** Rejects all requests: the worker has ended. */
  end(): void {
    this.#gone = true
    for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(new WorkerRequestError('gone', GONE))
  }

  /** Undefined for an answer that comes too late. */
  #take(id: number): PendingRequest | undefined {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    return waiting
  }
}

const TICK_MS = 250

interface Due {
  readonly at: number
  readonly work: () => void
}

/**
 * Time in which this process ran; the deadlines of workers are measured in it. While this process is stopped, the
 * machine sleeps or one task blocks the event loop, answers are not read, so no worker can be called late. So it counts
 * ticks, and a tick that comes late counts as one.
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

  readonly after: After = (ms, work) => {
    const due = { at: this.#ran + ms, work }
    this.#waiting.add(due)
    return () => void this.#waiting.delete(due)
  }

  /** Called every TICK_MS. Answers that have arrived are read before due work runs, hence the setImmediate. */
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
