import { BUCKETS, type MetricFamily } from './metric-families.ts'

/**
 * Which cell counts what. Labels combine to far more series than are ever counted (each fault at each action), so a
 * plan names none of them: it says what combines, and whoever needs the series of a cell computes it.
 */

/** Labels that vary together, and their values side by side: the columns of a table. */
export type Axis = Readonly<Record<string, readonly string[]>>

/** The series of one family, one for each choice of a row from every axis. Their cells lie side by side. */
export interface Block {
  readonly family: MetricFamily
  /** From one series to the next it is the last that moves first. */
  readonly axes: readonly Axis[]
  /** Its first cell. */
  readonly at: number
  /** How many series it has. */
  readonly count: number
}

/** Plain data, so that it can cross to another process. */
export type Plan = readonly Block[]

/** Buckets, those beyond the last bound, and the sum. */
export const HISTOGRAM_CELLS = BUCKETS.length + 2

/** How many cells a series of the family has. */
export const widthOf = ({ type }: MetricFamily): number => (type === 'histogram' ? HISTOGRAM_CELLS : 1)

export const rowsOf = (axis: Axis): number => Object.values(axis)[0]?.length ?? 0

/**
 * The blocks of all families, numbered at load: whoever counts adds to a cell by its number, and nothing is looked up
 * by string. Equal configurations give equal numbers, in every process.
 */
export class MetricPlan {
  readonly blocks: Block[] = []
  size = 0

  /** Plans every combination of the axes' rows. Answers the first cell. */
  plan(family: MetricFamily, ...axes: readonly Axis[]): number {
    const at = this.size
    const count = axes.reduce((product, axis) => product * rowsOf(axis), 1)
    this.blocks.push({ family, axes, at, count })
    this.size += count * widthOf(family)
    return at
  }
}

export const holds = ({ family, at, count }: Block, cell: number): boolean =>
  cell >= at && cell < at + count * widthOf(family)

/** The series that a cell of the block belongs to: a row of each axis. */
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

/** A row of an axis, as an axis of one row. */
export const rowAlone = (axis: Axis, row: number): Axis =>
  Object.fromEntries(Object.entries(axis).map(([label, values]) => [label, [values[row] ?? '']]))

const SUM = HISTOGRAM_CELLS - 1

/** What was counted since the last time: cells by their number. Plain data, so that it can cross to another process. */
export interface Delta {
  readonly cells: readonly number[]
  readonly amounts: readonly number[]
}

/** Where one process counts. What it hands over costs what was counted, however many cells there are. */
export class MetricCounts {
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
