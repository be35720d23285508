/** Limits the total time that one request waits for the store (T5.5). */
import { AsyncLocalStorage } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'

/**
 * How long one request may wait for the store, in milliseconds, unless the store says otherwise. So long, because a
 * slow disk shall make logins slow, and not fail them.
 */
export const STORE_TIME = 5000

/** What the queries of one piece of work may take. */
export interface Budget {
  /** How many milliseconds are left. Undefined once the work is over: anything that continues afterwards has no budget. */
  left(): number | undefined
  /** Begins a query. The returned function must be called when the query has settled. */
  spend(): () => void
}

/** The store time of one request. Only waiting for the store counts, not hashing a password in between. */
class StoreBudget implements Budget {
  #used = 0
  /** Queries that are open, and the time since when at least one is. */
  #open = 0
  #since = 0
  #over = false
  readonly #all: number

  constructor(all = STORE_TIME) {
    this.#all = all
  }

  left(): number | undefined {
    if (this.#over) return undefined
    return this.#all - this.#used - (this.#open > 0 ? performance.now() - this.#since : 0)
  }

  spend(): () => void {
    if (this.#open === 0) this.#since = performance.now()
    this.#open += 1
    return () => {
      this.#open -= 1
      if (this.#open === 0) this.#used += performance.now() - this.#since
    }
  }

  end(): void {
    this.#over = true
  }
}

/** Milliseconds that each query may take while a process starts. */
const STARTING = 5000

/** For work that no caller waits for: each query may take long, and there may be any number of them. */
class StartBudget implements Budget {
  #over = false

  left(): number | undefined {
    return this.#over ? undefined : STARTING
  }

  spend(): () => void {
    return () => undefined
  }

  end(): void {
    this.#over = true
  }
}

const budgets = new AsyncLocalStorage<Budget | undefined>()

/** Runs the work of one request, whose store queries share one budget of `ms`. Rejects as the work does. */
export async function withStoreBudget<T>(work: () => Promise<T>, ms?: number): Promise<T> {
  return within(new StoreBudget(ms), work)
}

/** A query may take 5 s: on a busy machine a start is slow, and does not fail. Rejects as the work does. */
export const withStartBudget = <T>(work: () => Promise<T>): Promise<T> => within(new StartBudget(), work)

async function within<T>(budget: Budget & { end(): void }, work: () => Promise<T>): Promise<T> {
  try {
    return await budgets.run(budget, work)
  } finally {
    budget.end()
  }
}

const ahead = new AsyncLocalStorage<true>()

/** Runs work that all calls are judged by (the change feed, the keys): it waits behind no request, however many there are. */
export const aheadOfRequests = <T>(work: () => T): T => outsideBudgets(() => ahead.run(true, work))

export const goesFirst = (): boolean => ahead.getStore() === true

/** Runs work that many callers share outside the budget of the one that happens to begin it. */
export const outsideBudgets = <T>(work: () => T): T => budgets.run(undefined, work)

/**
 * Waits for work that many callers share, as long as the budget of this one allows.
 * @param most milliseconds at most
 * @returns what the work resolves with, or what `late` does once the time is over
 */
export async function waitInBudget<T>(
  work: Promise<T>,
  late: () => T,
  most = Number.POSITIVE_INFINITY,
): Promise<T> {
  const time = budget()
  const left = Math.min(most, time?.left() ?? most)
  if (left === Number.POSITIVE_INFINITY) return work
  const settled = time?.spend()
  const over = Promise.withResolvers<T>()
  const timer = setTimeout(() => over.resolve(Promise.try(late)), Math.max(0, left))
  try {
    return await Promise.race([work, over.promise])
  } finally {
    clearTimeout(timer)
    settled?.()
  }
}

/** The budget of the current request or start. Undefined outside of both. */
export const budget = (): Budget | undefined => budgets.getStore()
