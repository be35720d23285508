/** The rows that a query has found in one day: first where each is, then as lines of JSON. */
import type { AuditRow, RowOutcome, TrailRecord } from '../../../base/contracts/records/audit-query.ts'
import type { AuditCall } from '../../../base/contracts/records/audit.ts'
import { cleanLine } from '../../../base/kernel/clean-text.ts'
import { personalHash } from '../format/record.ts'
import { FileWindows } from '../format/lines.ts'
import { PersonalFile, type PersonalHashes, type PersonalValue } from './personal.ts'
import { parseTrailRecord } from './query.ts'
import type { Segment } from '../format/segments.ts'

/** Rows of one day in one answer, at most: they take 72 bytes each until the day is sorted. */
const MOST_ROWS = 4_000_000

/** Too many rows in one day. The message is for people. */
class TooManyRows extends Error {
  constructor(day: string) {
    super(`there are more than ${MOST_ROWS} rows on ${day}: name a part of the day by \`from\` and \`until\``)
  }
}

/** Where a line is. */
export interface LineLocation {
  readonly segment: Segment
  readonly offset: number
  readonly length: number
}

const OUTCOMES: readonly RowOutcome[] = ['open', 'success', 'refused', 'failed']

// The numbers of a row. A place is three of them: segment, offset, length; a segment of -1: there is no outcome.
const TIME = 0
const SEQ = 1
const OUTCOME = 2
const PLACE = 3
const SETTLED = 6
const WIDTH = 9

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
  add(time: number, seq: number, place: LineLocation, outcome: RowOutcome): number {
    if (this.#count === MOST_ROWS) throw new TooManyRows(this.#day)
    const row = this.#count++
    const at = row * WIDTH
    if (this.#cells.length < at + WIDTH) this.#grow()
    this.#cells[at + TIME] = time
    this.#cells[at + SEQ] = seq
    this.#cells[at + OUTCOME] = OUTCOMES.indexOf(outcome)
    this.#setPlace(at + PLACE, place)
    this.#cells[at + SETTLED] = -1
    return row
  }

  settle(row: number, outcome: RowOutcome, place: LineLocation): void {
    this.#cells[row * WIDTH + OUTCOME] = OUTCOMES.indexOf(outcome)
    this.#setPlace(row * WIDTH + SETTLED, place)
  }

  time = (row: number): number => this.#cell(row * WIDTH + TIME)
  seq = (row: number): number => this.#cell(row * WIDTH + SEQ)
  writer = (row: number): string => this.#segments[this.#cell(row * WIDTH + PLACE)]?.writer ?? ''
  outcome = (row: number): RowOutcome => OUTCOMES[this.#cell(row * WIDTH + OUTCOME)] ?? 'open'
  place = (row: number): LineLocation | undefined => this.#placeAt(row * WIDTH + PLACE)
  settled = (row: number): LineLocation | undefined => this.#placeAt(row * WIDTH + SETTLED)

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

  #cell(at: number): number {
    return this.#cells[at] ?? -1
  }

  #placeAt(at: number): LineLocation | undefined {
    const segment = this.#segments[this.#cell(at)]
    return segment && { segment, offset: this.#cell(at + 1), length: this.#cell(at + 2) }
  }

  #setPlace(at: number, { segment, offset, length }: LineLocation): void {
    let number = this.#numberOf.get(segment)
    if (number === undefined) {
      number = this.#segments.push(segment) - 1
      this.#numberOf.set(segment, number)
    }
    this.#cells[at] = number
    this.#cells[at + 1] = offset
    this.#cells[at + 2] = length
  }

  #grow(): void {
    const larger = new Float64Array(this.#cells.length * 2)
    larger.set(this.#cells)
    this.#cells = larger
  }
}

/** How many `.personal.jsonl` files have their last place remembered. */
const MOST_FILES = 256

/** Reads rows: a record, or a call's intent with its outcome, with the personal values in their places. `close` it. */
export class RowReader {
  readonly #files = new FileWindows()
  readonly #personal = new Map<string, PersonalFile>()

  /**
   * The row as one line of JSON, without a line end; with `singly` its record alone. Undefined if its segment has been
   * removed meanwhile.
   */
  line(table: RowTable, row: number, singly = false): string | undefined {
    const record = this.#read(table.place(row))
    if (record === undefined) return undefined
    if (singly) return cleanLine(JSON.stringify(record))
    const settled = this.#read(table.settled(row))
    return cleanLine(JSON.stringify({ ...joined(record, settled), outcome: table.outcome(row) }))
  }

  close(): void {
    this.#files.close()
  }

  #read(place: LineLocation | undefined): ReadRecord | undefined {
    if (place === undefined) return undefined
    const { segment, offset, length } = place
    const bytes = this.#files.read(segment.path, offset, length)
    const record = parseTrailRecord(bytes.toString('utf8', 0, length))
    if (record === undefined) return undefined
    const { personal, ...rest } = record
    return personal === undefined
      ? rest
      : restore(rest, personal, this.#valuesOf(segment.personalPath, record.seq))
  }

  #valuesOf(path: string, seq: number): readonly PersonalValue[] {
    const known = this.#personal.get(path)
    if (known !== undefined) return known.find(seq)
    if (this.#personal.size >= MOST_FILES) this.#personal.clear()
    const file = new PersonalFile(this.#files, path)
    this.#personal.set(path, file)
    return file.find(seq)
  }
}

type ReadRecord = Omit<TrailRecord, 'personal'> & Pick<AuditRow, 'erased' | 'altered'>

/** An intent and its outcome as one. Of what both have, that of the outcome counts: it is the later one. */
function joined(record: ReadRecord, settled: ReadRecord | undefined) {
  if (settled === undefined) return record
  const { seq, time, reason, change } = settled
  return {
    ...record,
    reason: reason ?? record.reason,
    call: { ...record.call, ...settled.call } satisfies AuditCall,
    change: record.change === undefined && change === undefined ? undefined : { ...record.change, ...change },
    erased: together(record.erased, settled.erased),
    altered: together(record.altered, settled.altered),
    settled: { seq, time },
  }
}

const together = (a: readonly string[] = [], b: readonly string[] = []): readonly string[] | undefined =>
  a.length + b.length === 0 ? undefined : [...new Set([...a, ...b])]

/** Puts personal values where they belong. One that does not fit its hash is left out. */
function restore(record: ReadRecord, hashes: PersonalHashes, values: readonly PersonalValue[]): ReadRecord {
  const erased: string[] = []
  const altered: string[] = []
  for (const [name, expected] of Object.entries(hashes)) {
    const found = values.find((value) => value.name === name)
    if (found === undefined) erased.push(name)
    else if (personalHash(found.salt, found.value) !== expected) altered.push(name)
    else setAt(record, name.split('.'), found.value)
  }
  return {
    ...record,
    ...(erased.length > 0 && { erased }),
    ...(altered.length > 0 && { altered }),
  }
}

/** Names that lead out of plain data. */
const FORBIDDEN = new Set(['__proto__', 'prototype', 'constructor'])

/** Sets the member at a path such as `on.params.memberId`; what is missing on the way is made. */
function setAt(into: Record<string, unknown>, path: readonly string[], value: string): void {
  if (path.some((part) => FORBIDDEN.has(part))) return
  const [first = '', ...rest] = path
  if (rest.length === 0) {
    into[first] = value
    return
  }
  const inner = into[first]
  const next = typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>) : {}
  into[first] = next
  setAt(next, rest, value)
}

/** A row from its line. */
export const readRow = (line: string): AuditRow => JSON.parse(line) as AuditRow
