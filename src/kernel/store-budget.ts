/** How long one request may wait for the store, over all that it asks of it (T5.5). */
import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Milliseconds. A request that got no further by then is answered 503, within half a second: some of that is left for
 * the hash of a password.
 */
const STORE_TIME = 400

/** The time of one request. Only waiting counts: what it does between two questions, hashing a password, does not. */
export class StoreBudget {
  #used = 0
  /** How many questions are open, and since when there is one. */
  #open = 0
  #since = 0
  #over = false

  /** Milliseconds; undefined when the request has been answered: what it left behind has time as everybody. */
  left(): number | undefined {
    if (this.#over) return undefined
    return STORE_TIME - this.#used - (this.#open > 0 ? performance.now() - this.#since : 0)
  }

  /** A question is asked; what it answers is called when that is settled. */
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

/** Does the work of one request, all whose questions to the store share one time. */
export async function withStoreBudget<T>(work: () => Promise<T>): Promise<T> {
  const budget = new StoreBudget()
  try {
    return await budgets.run(budget, work)
  } finally {
    budget.end()
  }
}

/** That of the request that this code works for, if it works for one. */
export const budget = (): StoreBudget | undefined => budgets.getStore()
