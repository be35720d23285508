import { BUCKETS, type MetricFamily } from './metric-families.ts'

/** One time series of a counter or histogram, and where its cells begin. */
export interface Child {
  readonly family: MetricFamily
  /** In the order of the family's labels. */
  readonly values: readonly string[]
  readonly at: number
}

/** Buckets, those beyond the last bound, and the sum. */
export const HISTOGRAM_CELLS = BUCKETS.length + 2
const SUM = BUCKETS.length + 1

/** What was counted since the last time: cells by their number. Plain data, so that it can cross to another process. */
export interface Delta {
  readonly cells: readonly number[]
  readonly amounts: readonly number[]
}

/**
 * The children of all families, numbered at load: whoever counts adds to a cell by its number, and nothing is looked
 * up by string. Equal configurations give equal numbers, in every process.
 */
export class LedgerPlan {
  readonly children: Child[] = []
  size = 0

  /** Plans every combination of the labels' values; cells lie in the order of the last label first. */
  plan(family: MetricFamily, ...labels: readonly (readonly string[])[]): number {
    const base = this.size
    const combinations = labels.reduce<readonly (readonly string[])[]>(
      (rows, values) => rows.flatMap((row) => values.map((value) => [...row, value])),
      [[]],
    )
    for (const values of combinations) this.planOne(family, values)
    return base
  }

  planOne(family: MetricFamily, values: readonly string[]): number {
    const at = this.size
    this.children.push({ family, values, at })
    this.size += family.type === 'histogram' ? HISTOGRAM_CELLS : 1
    return at
  }
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
