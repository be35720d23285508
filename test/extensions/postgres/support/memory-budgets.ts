import type { BudgetGrant, BudgetUse, Budgets } from '../../../../src/extensions/postgres/leased-buckets.ts'

interface Kept {
  tokens: number
  at: number
  readonly known: Set<string>
}

/** Budgets in memory. Every answer takes a turn of the event loop. */
export class MemoryBudgets implements Budgets {
  readonly #now: () => number
  readonly #kept = new Map<string, Kept>()
  /** Requests are answered with an error as long as it is set. */
  isAway = false
  /** How many requests came. */
  requests = 0

  constructor(now: () => number) {
    this.#now = now
  }

  async exchange(
    who: string,
    number: number,
    reports: readonly BudgetUse[],
  ): Promise<readonly BudgetGrant[]> {
    this.requests += 1
    await Promise.resolve()
    if (this.isAway) throw new Error('the store is out of reach')
    return reports.map((report) => this.#one(`${who}:${number}`, report))
  }

  level(key: string): number {
    return this.#kept.get(key)?.tokens ?? Number.NaN
  }

  #one(id: string, { key, perMs, burst, spent, want }: BudgetUse): BudgetGrant {
    const now = this.#now()
    const kept = this.#kept.get(key) ?? { tokens: burst, at: now, known: new Set<string>() }
    this.#kept.set(key, kept)
    kept.tokens = Math.min(burst, kept.tokens + (now - kept.at) * perMs)
    kept.at = now
    if (kept.known.has(id)) return { key, granted: 0, level: kept.tokens }
    kept.known.add(id)
    kept.tokens -= spent
    const granted = Math.max(0, Math.floor(Math.min(want, kept.tokens)))
    kept.tokens -= granted
    return { key, granted, level: kept.tokens }
  }
}
