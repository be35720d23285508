import { rowsOf, seriesAt, widthOf, type Axis, type Block } from './metric-counts.ts'
import { BUCKETS, type CountedFamily } from './metric-family.ts'
import { sampleName } from './text-format.ts'

interface Series {
  /** The numbers of its rows, in one. */
  readonly key: number
  /** The total of each cell. */
  readonly cells: number[]
  /** Whether it is printed before it was counted. */
  isShown: boolean
  /** What its samples are called, in the order in which they are printed. Made when they are first printed. */
  names?: readonly string[]
}

/** A block, with the number of each of its rows in the totals. */
export interface NumberedBlock {
  readonly block: Block
  /** By axis, then by row. */
  readonly numbers: readonly Uint32Array[]
}

/**
 * The most rows of an axis. The first axis is not limited: it may have a row for each action. With this radix the key of
 * three axes is an exact integer.
 */
const RADIX = 2 ** 16

/**
 * The totals of one family, added up by label over all plans. Rows are numbered in the order in which plans name them.
 * The numbers of a series' rows form its key, so the output is in the order of the plans.
 */
export class FamilyTotals {
  readonly #family: CountedFamily
  readonly #axes: RowNumbers[] = []
  readonly #series = new Map<number, Series>()
  /** In the order of the plans. Undefined while there are series that are not in it. */
  #inOrder: readonly Series[] | undefined

  constructor(family: CountedFamily) {
    this.#family = family
  }

  /**
   * Numbers the rows of a block. Creates its series, unless the family is sparse and they are not shown: those are created
   * when they are first counted. Throws RangeError if an axis other than the first has more than 65,536 rows.
   */
  number(block: Block): NumberedBlock {
    const numbers = block.axes.map((axis, at) => (this.#axes[at] ??= new RowNumbers(axis)).of(axis))
    const numbered = { block, numbers }
    if (this.#family.sparse !== true || block.shown === true)
      for (let series = 0; series < block.count; series++)
        this.#seriesOf(numbered, block.at + series * widthOf(this.#family)).isShown = true
    return numbered
  }

  add(numbered: NumberedBlock, cell: number, amount: number): void {
    const { cells } = this.#seriesOf(numbered, cell)
    const offset = (cell - numbered.block.at) % cells.length
    cells[offset] = (cells[offset] ?? 0) + amount
  }

  /** The samples as they are printed, in the order of the plans. */
  lines(): readonly string[] {
    this.#inOrder ??= [...this.#series.values()].sort((one, other) => one.key - other.key)
    return this.#inOrder
      .filter(({ cells, isShown }) => isShown || cells[0] !== 0)
      .flatMap((series) => this.#linesOf(series))
  }

  #linesOf(series: Series): readonly string[] {
    const names = (series.names ??= this.#namesOf(series))
    const values = this.#family.type === 'histogram' ? histogramValues(series.cells) : series.cells
    return names.map((name, at) => `${name} ${values[at] ?? 0}`)
  }

  #namesOf({ key }: Series): readonly string[] {
    const { name, type } = this.#family
    const labels = this.#labelsOf(key)
    return type === 'histogram' ? histogramNames(name, labels) : [sampleName(name, labels)]
  }

  #seriesOf({ block, numbers }: NumberedBlock, cell: number): Series {
    const key = keyOf(seriesAt(block, cell).map((row, axis) => numbers[axis]?.[row] ?? 0))
    const found = this.#series.get(key)
    if (found !== undefined) return found
    const cells = Array.from({ length: widthOf(this.#family) }, () => 0)
    const made: Series = { key, cells, isShown: false }
    this.#series.set(key, made)
    this.#inOrder = undefined
    return made
  }

  #labelsOf(key: number): readonly (readonly [string, string])[] {
    const values = new Map(
      rowsAt(key, this.#axes.length).flatMap((row, at) => this.#axes[at]?.labels(row) ?? []),
    )
    return this.#family.labels.map((label) => [label, values.get(label) ?? ''])
  }
}

function histogramNames(name: string, labels: readonly (readonly [string, string])[]): readonly string[] {
  const bounds = [...BUCKETS.map(String), '+Inf']
  return [
    ...bounds.map((bound) => sampleName(`${name}_bucket`, [...labels, ['le', bound]])),
    sampleName(`${name}_sum`, labels),
    sampleName(`${name}_count`, labels),
  ]
}

/** In the order of `histogramNames`: of each bucket, what is in it or below. */
function histogramValues(cells: readonly number[]): readonly number[] {
  let count = 0
  const buckets = Array.from({ length: BUCKETS.length + 1 }, (_, at) => (count += cells[at] ?? 0))
  return [...buckets, cells[BUCKETS.length + 1] ?? 0, count]
}

function keyOf([first = 0, ...others]: readonly number[]): number {
  if (others.some((row) => row >= RADIX)) throw new RangeError(`a label has more than ${RADIX} values`)
  return others.reduce((key, row) => key * RADIX + row, first)
}

/** The row numbers in a key, one for each axis. */
function rowsAt(key: number, axes: number): readonly number[] {
  const rows: number[] = []
  let left = key
  while (rows.length < axes - 1) {
    rows.unshift(left % RADIX)
    left = Math.floor(left / RADIX)
  }
  return axes === 0 ? [] : [left, ...rows]
}

/** Numbers the rows of one axis over all plans, in the order in which they first occur. */
class RowNumbers {
  readonly #labels: readonly string[]
  readonly #rows: (readonly string[])[] = []
  readonly #numbers = new Map<string, number>()

  constructor(axis: Axis) {
    this.#labels = Object.keys(axis)
  }

  of(axis: Axis): Uint32Array {
    const columns = this.#labels.map((label) => axis[label] ?? [])
    return Uint32Array.from({ length: rowsOf(axis) }, (_, at) =>
      this.#numberOf(columns.map((column) => column[at] ?? '')),
    )
  }

  /** The label names and values of the row with this number. */
  labels(row: number): readonly (readonly [string, string])[] {
    return this.#labels.map((label, at) => [label, this.#rows[row]?.[at] ?? ''])
  }

  #numberOf(values: readonly string[]): number {
    const key = values.length === 1 ? (values[0] ?? '') : JSON.stringify(values)
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    this.#numbers.set(key, this.#rows.length)
    return this.#rows.push(values) - 1
  }
}
