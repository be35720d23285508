/**
 * Numbered cells that count, and the plan that says what each cell means. Labels combine to far more series than are
 * ever counted (each fault at each action). So a plan lists the axes only, and the series of a cell is computed.
 */
import { BUCKETS, type CountedFamily } from './metric-family.ts'

/** Labels that vary together, each with its column of values. */
export type Axis = Readonly<Record<string, readonly string[]>>

/** The series of one family: one for each combination of a row from every axis. Their cells are adjacent. */
export interface Block {
  readonly family: CountedFamily
  /** The row of the last axis changes fastest. */
  readonly axes: readonly Axis[]
  /** The number of the first cell. */
  readonly at: number
  /** The number of series. */
  readonly count: number
  /** Of a sparse family: these series are printed from the start all the same. */
  readonly shown?: boolean
}

/** Plain data, so that it can be sent to another process. */
export type Plan = readonly Block[]

/** One cell for each bucket, one for values beyond the last bound, one for the sum. */
export const HISTOGRAM_CELLS = BUCKETS.length + 2

/** The number of cells of a series. */
export const widthOf = ({ type }: CountedFamily): number => (type === 'histogram' ? HISTOGRAM_CELLS : 1)

export const rowsOf = (axis: Axis): number => Object.values(axis)[0]?.length ?? 0

/**
 * Numbers the cells of all families at load, so that counting needs no look-up by string. Equal configurations give
 * equal numbers in every process.
 */
export class MetricPlan {
  readonly blocks: Block[] = []
  size = 0

  /** Adds every combination of the axes' rows. Returns the number of the first cell. */
  plan(family: CountedFamily, ...axes: readonly Axis[]): number {
    return this.#add({ family, axes })
  }

  /** The same for the series of a sparse family that are printed from the start, at 0. */
  show(family: CountedFamily, ...axes: readonly Axis[]): number {
    return this.#add({ family, axes, shown: true })
  }

  #add(block: Pick<Block, 'family' | 'axes' | 'shown'>): number {
    const { family, axes } = block
    const at = this.size
    const count = axes.reduce((product, axis) => product * rowsOf(axis), 1)
    this.blocks.push({ ...block, at, count })
    this.size += count * widthOf(family)
    return at
  }
}

export const holds = ({ family, at, count }: Block, cell: number): boolean =>
  cell >= at && cell < at + count * widthOf(family)

/** The series of a cell, as the row of each axis. */
export function seriesAt({ family, axes, at }: Block, cell: number): readonly number[] {
  let left = Math.floor((cell - at) / widthOf(family))
  return axes
    .map(rowsOf)
    .reverse()
    .map((rows) => {
      const row = left % rows
      left = Math.floor(left / rows)
      return row
    })
    .reverse()
}

const SUM = HISTOGRAM_CELLS - 1

/** What was counted since the last time: cell numbers, and the amount of each. Plain data, to be sent to another process. */
export interface Delta {
  readonly cells: readonly number[]
  readonly amounts: readonly number[]
}

export const NOTHING: Delta = { cells: [], amounts: [] }

/** The counts of one process. `take` costs time for the cells that were counted, not for all cells. */
export class MetricCounts {
  readonly #cells: Float64Array
  /** Cells that may differ from zero. A cell that went back to zero in between can be listed twice. */
  #touched: number[] = []

  constructor(size: number) {
    this.#cells = new Float64Array(size)
  }

  add(cell: number, amount = 1): void {
    const before = this.#cells[cell] ?? 0
    if (before === 0) this.#touched.push(cell)
    this.#cells[cell] = before + amount
  }

  /** Counts a duration in the histogram whose first cell is `at`. */
  observe(at: number, seconds: number): void {
    let bucket = 0
    while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] ?? 0)) bucket += 1
    this.add(at + bucket)
    this.add(at + SUM, seconds)
  }

  /** Returns what was counted since the last call, and resets it. */
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
