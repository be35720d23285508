/** The rows that a query has found in one day: where each stands, and where its outcome stands. */
import type { RowOutcome } from '../../contracts/audit-query.ts'
import type { LineHead } from './query.ts'
import type { Segment } from './segments.ts'

/** Rows of one day in one answer, at most: they take 72 bytes each until the day is sorted. */
const MOST_ROWS = 4_000_000

/** Too many rows in one day. The message is for people. */
export class TooManyRows extends Error {
  constructor(day: string) {
    super(`there are more than ${MOST_ROWS} rows on ${day}: name a part of the day by \`from\` and \`until\``)
  }
}

/** Where a line stands. */
export interface Place {
  readonly segment: Segment
  readonly offset: number
  readonly length: number
}

const OUTCOMES: readonly RowOutcome[] = ['open', 'success', 'refused', 'failed']

/** The numbers of a row, in this order. A `settledSegment` of -1: there is no outcome. */
const COLUMNS = [
  'time',
  'seq',
  'segment',
  'offset',
  'length',
  'outcome',
  'settledSegment',
  'settledOffset',
  'settledLength',
] as const
type Column = (typeof COLUMNS)[number]
const AT = Object.fromEntries(COLUMNS.map((name, at) => [name, at])) as Record<Column, number>
const WIDTH = COLUMNS.length

/** Rows as plain numbers: a million objects would take three times the memory. */
export class RowTable {
  readonly #day: string
  readonly #segments: Segment[] = []
  readonly #numberOf = new Map<Segment, number>()
  #cells = new Float64Array(1024 * WIDTH)
  #count = 0

  constructor(day: string) {
    this.#day = day
  }

  /** Adds a row and gives its number. Throws TooManyRows. */
  add({ time, seq }: Pick<LineHead, 'time' | 'seq'>, place: Place, outcome: RowOutcome): number {
    if (this.#count === MOST_ROWS) throw new TooManyRows(this.#day)
    const row = this.#count++
    if (this.#cells.length < this.#count * WIDTH) this.#grow()
    this.#set(row, 'time', time)
    this.#set(row, 'seq', seq)
    this.#set(row, 'segment', this.#number(place.segment))
    this.#set(row, 'offset', place.offset)
    this.#set(row, 'length', place.length)
    this.#set(row, 'outcome', OUTCOMES.indexOf(outcome))
    this.#set(row, 'settledSegment', -1)
    return row
  }

  settle(row: number, outcome: RowOutcome, place: Place): void {
    this.#set(row, 'outcome', OUTCOMES.indexOf(outcome))
    this.#set(row, 'settledSegment', this.#number(place.segment))
    this.#set(row, 'settledOffset', place.offset)
    this.#set(row, 'settledLength', place.length)
  }

  time = (row: number): number => this.#cell(row, 'time')
  seq = (row: number): number => this.#cell(row, 'seq')
  writer = (row: number): string => this.#segment(this.#cell(row, 'segment')).writer
  outcome = (row: number): RowOutcome => OUTCOMES[this.#cell(row, 'outcome')] ?? 'open'

  place(row: number): Place {
    const segment = this.#segment(this.#cell(row, 'segment'))
    return { segment, offset: this.#cell(row, 'offset'), length: this.#cell(row, 'length') }
  }

  settled(row: number): Place | undefined {
    const number = this.#cell(row, 'settledSegment')
    if (number < 0) return undefined
    const segment = this.#segment(number)
    return { segment, offset: this.#cell(row, 'settledOffset'), length: this.#cell(row, 'settledLength') }
  }

  /** The rows that are wanted, by time, then writer, then seq. */
  sorted(wanted: (row: number) => boolean): readonly number[] {
    const rows: number[] = []
    for (let row = 0; row < this.#count; row++) if (wanted(row)) rows.push(row)
    return rows.sort((a, b) => this.compare(a, this.time(b), this.writer(b), this.seq(b)))
  }

  /** Below zero if the row comes before what stands at this time. */
  compare(row: number, time: number, writer: string, seq: number): number {
    const apart = this.time(row) - time
    if (apart !== 0) return apart
    const name = this.writer(row)
    return name === writer ? this.seq(row) - seq : name < writer ? -1 : 1
  }

  #cell(row: number, column: Column): number {
    return this.#cells[row * WIDTH + AT[column]] ?? -1
  }

  #set(row: number, column: Column, value: number): void {
    this.#cells[row * WIDTH + AT[column]] = value
  }

  #segment(number: number): Segment {
    const segment = this.#segments[number]
    if (segment === undefined) throw new RangeError(`there is no segment ${number}`)
    return segment
  }

  #number(segment: Segment): number {
    const known = this.#numberOf.get(segment)
    if (known !== undefined) return known
    this.#segments.push(segment)
    this.#numberOf.set(segment, this.#segments.length - 1)
    return this.#segments.length - 1
  }

  #grow(): void {
    const larger = new Float64Array(this.#cells.length * 2)
    larger.set(this.#cells)
    this.#cells = larger
  }
}
