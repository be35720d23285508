import { HISTOGRAM_CELLS } from './ledger-plan.ts'
import { BUCKETS } from './metric-families.ts'

const SUM = HISTOGRAM_CELLS - 1

/** What was counted since the last time: cells by their number. Plain data, so that it can cross to another process. */
export interface Delta {
  readonly cells: readonly number[]
  readonly amounts: readonly number[]
}

/** Where one process counts. What it hands over costs what was counted, however many cells there are. */
export class Ledger {
  readonly #cells: Float64Array
  /** Cells that may hold something; one that went up and down again can be in it twice. */
  #touched: number[] = []

  constructor(size: number) {
    this.#cells = new Float64Array(size)
  }

  add(cell: number, amount = 1): void {
    const before = this.#cells[cell] ?? 0
    if (before === 0) this.#touched.push(cell)
    this.#cells[cell] = before + amount
  }

  /** @param at the histogram's first cell */
  observe(at: number, seconds: number): void {
    let bucket = 0
    while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] ?? 0)) bucket += 1
    this.add(at + bucket)
    this.add(at + SUM, seconds)
  }

  /** Answers what was counted since the last call, and forgets it. */
  take(): Delta {
    const cells: number[] = []
    const amounts: number[] = []
    for (const cell of this.#touched) {
      const amount = this.#cells[cell] ?? 0
      if (amount === 0) continue
      cells.push(cell)
      amounts.push(amount)
      this.#cells[cell] = 0
    }
    this.#touched = []
    return { cells, amounts }
  }
}
