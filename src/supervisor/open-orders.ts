import type { After } from '../kernel/after.ts'

/** An order that was not answered: the worker is no more (`gone`), or had no more time (`late`), and nobody knows. */
export class OrderError extends Error {
  override readonly name = 'OrderError'
  readonly end: 'gone' | 'late'

  constructor(end: 'gone' | 'late', message: string) {
    super(message)
    this.end = end
  }
}

interface Waiting {
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
  readonly #waiting = new Map<number, Waiting>()
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
  #take(ask: number): Waiting | undefined {
    const waiting = this.#waiting.get(ask)
    this.#waiting.delete(ask)
    return waiting
  }
}
