/** Answers a query from the files of the trail, day by day, in the order of time (C12.5). */
import type {
  Position,
  Progress,
  ScanEnd,
  ScanRequest,
  ScanStep,
  UnreadableLine,
} from '../../contracts/audit-query.ts'
import { DayScan } from './day-scan.ts'
import { uncoveredOf } from './extent.ts'
import { LastSegments } from './last-segments.ts'
import { fitsOutcome } from './query.ts'
import { RowReader } from './row.ts'
import { RowTable } from './row-table.ts'
import { Segments, sizeOf } from './segments.ts'

/** Rows that are handed over at once. */
const BATCH = 256
/** Bytes between two reports of progress. */
const PROGRESS = 16 * 1024 * 1024
/** Unreadable lines that are told one by one. */
const MOST_UNREADABLE = 10

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

/** The days that a query names. Throws the system's error if a folder cannot be read. */
function namedDays(segments: Segments, { query, after }: ScanRequest): readonly string[] {
  const { from, until } = query
  const first = from === undefined ? '' : dayOf(from)
  const last = until === undefined ? '9999-12-31' : dayOf(until - 1)
  return segments.days().filter((day) => day >= first && day <= last && day >= (after?.day ?? ''))
}

/** Throws the system's error if a folder or a file cannot be read, and TooManyRows. */
export function* scan(order: ScanRequest, progress: (progress: Progress) => void): Generator<ScanStep> {
  const { folders, lastOf } = order
  const segments = lastOf === undefined ? new Segments(folders) : new LastSegments(folders, lastOf)
  const days = namedDays(segments, order)
  const total = days.flatMap((day) => segments.of(day)).reduce((sum, { path }) => sum + sizeOf(path), 0)
  const work = new ScanWork(order, segments, (done) => progress({ done, total }))
  for (const day of days) {
    yield* work.day(day)
    if (work.isFull) break
  }
  yield* work.rest()
  progress({ done: total, total })
  const uncovered = uncoveredOf(order.query, folders, segments, Date.now())
  yield { kind: 'end', ...work.end(), ...(uncovered && { uncovered }) }
}

class ScanWork {
  readonly #order: ScanRequest
  readonly #segments: Segments
  readonly #scan: DayScan
  readonly #unreadable: UnreadableLine[] = []
  #unreadableCount = 0
  #lines: string[] = []
  #rows = 0
  #last: Position | undefined
  #bytes = 0
  #told = 0

  constructor(order: ScanRequest, segments: Segments, progress: (done: number) => void) {
    this.#order = order
    this.#segments = segments
    this.#scan = new DayScan(order.query, {
      read: (bytes) => {
        this.#bytes += bytes
        if (this.#bytes - this.#told < PROGRESS) return
        this.#told = this.#bytes
        progress(this.#bytes)
      },
      unreadable: (line) => {
        this.#unreadableCount++
        if (this.#unreadable.length < MOST_UNREADABLE) this.#unreadable.push(line)
      },
    })
  }

  get isFull(): boolean {
    return this.#rows >= (this.#order.limit ?? Infinity)
  }

  *day(day: string): Generator<ScanStep> {
    const table = new RowTable(day)
    this.#scan.scan(day, this.#segments, table)
    const reader = new RowReader()
    try {
      yield* this.#show(day, table, reader)
    } finally {
      reader.close()
    }
  }

  /** The rows that are not handed over yet. */
  *rest(): Generator<ScanStep> {
    const lines = this.#lines
    this.#lines = []
    if (lines.length > 0) yield { kind: 'rows', lines }
  }

  end(): ScanEnd {
    return {
      rows: this.#rows,
      ...(this.isFull && this.#last !== undefined && { last: this.#last }),
      unreadable: this.#unreadable,
      unreadableCount: this.#unreadableCount,
    }
  }

  *#show(day: string, table: RowTable, reader: RowReader): Generator<ScanStep> {
    const { query, after } = this.#order
    const isBehind = (row: number): boolean =>
      after?.day !== day || table.compare(row, after.time, after.writer, after.seq) > 0
    const rows = table.sorted((row) => fitsOutcome(table.outcome(row), query) && isBehind(row))
    for (const row of rows) {
      if (this.isFull) break
      const line = reader.line(table, row, query.singly)
      if (line === undefined) continue
      this.#lines.push(line)
      this.#rows++
      this.#last = { day, time: table.time(row), writer: table.writer(row), seq: table.seq(row) }
      if (this.#lines.length === BATCH) yield* this.rest()
    }
  }
}
