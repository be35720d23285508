/** Limits the total time that one request waits for the store (T5.5). */
import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Milliseconds, unless the store needs longer. After them the request is answered 503, within half a second in total: the remainder is for hashing a
 * password.
 */
const STORE_TIME = 400

/** The store time of one request. Only waiting for the store counts, not hashing a password in between. */
export class StoreBudget {
  #used = 0
  /** Queries that are open, and the time since when at least one is. */
  #open = 0
  #since = 0
  #over = false
  readonly #all: number

  constructor(all = STORE_TIME) {
    this.#all = all
  }

  /** Milliseconds left. Undefined once the request was answered: work that goes on afterwards has no budget. */
  left(): number | undefined {
    if (this.#over) return undefined
    return this.#all - this.#used - (this.#open > 0 ? performance.now() - this.#since : 0)
  }

  /** Begins a query. The returned function must be called when the query has settled. */
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

const budgets = new AsyncLocalStorage<StoreBudget>()

/** Runs the work of one request, whose store queries share one budget of `ms`. Rejects as the work does. */
export async function withStoreBudget<T>(work: () => Promise<T>, ms?: number): Promise<T> {
  const budget = new StoreBudget(ms)
  try {
    return await budgets.run(budget, work)
  } finally {
    budget.end()
  }
}

/** The budget of the current request. Undefined outside of requests. */
export const budget = (): StoreBudget | undefined => budgets.getStore()
