/** Answers a query from the files of the trail, day by day, in the order of time (C12.5). */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import type {
  AuditQuery,
  Position,
  ReadProgress,
  RowOutcome,
  ScanEnd,
  ScanRequest,
  ScanStep,
  UncoveredTime,
  UnreadableLine,
} from '../../../base/contracts/records/audit-query.ts'
import { endsIntent } from '../../../base/kernel/audit-events.ts'
import { MANIFEST_FILE, readManifestLine } from '../format/manifest.ts'
import { type Chunk, chunksOf, eachLine } from '../format/lines.ts'
import { asksMore, fits, fitsOutcome, FOLLOWERS, headFits, needlesOf, parseTrailRecord } from './query.ts'
import { HEAD_BYTES, type LineHead, readHead } from '../format/record-line.ts'
import { type LineLocation, RowReader, RowTable } from './rows.ts'
import { type Segment, Segments, sizeOf } from '../format/segments.ts'

/** Rows that are handed over at once. */
const BATCH = 256
/** Bytes between two reports of progress. */
const PROGRESS = 16 * 1024 * 1024
/** Unreadable lines that are shown one by one. */
const MOST_UNREADABLE = 10

/** Throws the system's error if a folder or a file cannot be read, and TooManyRows. */
export function* scan(request: ScanRequest, progress: (progress: ReadProgress) => void): Generator<ScanStep> {
  const { folders, query } = request
  const segments = new Segments(folders)
  const days = namedDays(segments.days(), request)
  const total = days.flatMap((day) => segments.of(day)).reduce((sum, { path }) => sum + sizeOf(path), 0)
  const work = new Scan(request, segments, (done) => progress({ done, total }))
  for (const day of days) {
    yield* work.day(day, segments.of(day))
    if (work.isFull) break
  }
  yield* work.rest()
  progress({ done: total, total })
  const uncovered = uncoveredOf(query, folders, segments, Date.now())
  yield { kind: 'end', ...work.end(), ...(uncovered && { uncovered }) }
}

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

/** The days that a query names. */
function namedDays(days: readonly string[], { query, after }: ScanRequest): readonly string[] {
  const { from, until } = query
  const first = from === undefined ? '' : dayOf(from)
  const last = until === undefined ? '9999-12-31' : dayOf(until - 1)
  return days.filter((day) => day >= first && day <= last && day >= (after?.day ?? ''))
}

const INTENT = '"intent":'
/** With more open intents than this, all outcomes are looked at; with fewer, each is searched for. */
const FEW = 8

const outcomeOf = (outcome: string): RowOutcome =>
  outcome === 'success' || outcome === 'refused' || outcome === 'failed' ? outcome : 'open'

/** A segment that is scanned, and what has been found. */
interface Matching {
  readonly segment: Segment
  readonly table: RowTable
  /** The rows of the open intents of its writer, by their seq. */
  readonly intents: Map<number, number>
}

class Scan {
  readonly #request: ScanRequest
  readonly #segments: Segments
  readonly #progress: (done: number) => void
  readonly #asksMore: boolean
  /** A text that every line which fits contains. Undefined where so many lines fit that it is quicker to look at each. */
  readonly #needle: Buffer | undefined
  readonly #needles: readonly (readonly string[])[]
  readonly #unreadable: UnreadableLine[] = []
  #unreadableCount = 0
  #lines: string[] = []
  #rows = 0
  #last: Position | undefined
  #read = 0
  #shown = 0

  constructor(request: ScanRequest, segments: Segments, progress: (done: number) => void) {
    this.#request = request
    this.#segments = segments
    this.#progress = progress
    const groups = needlesOf(request.query)
    this.#asksMore = asksMore(request.query)
    const needle = this.#asksMore ? groups.find((group) => group.length === 1)?.[0] : undefined
    this.#needle = needle === undefined ? undefined : Buffer.from(needle)
    this.#needles = groups.filter(([first]) => first !== needle)
  }

  get isFull(): boolean {
    return this.#rows >= (this.#request.limit ?? Infinity)
  }

  /** The rows of one day. The outcomes of its last intents may be in the next day's segments. */
  *day(day: string, segments: readonly Segment[]): Generator<ScanStep> {
    const table = new RowTable(day)
    /** By writer. */
    const open = new Map<string, Map<number, number>>()
    for (const segment of segments) {
      const intents = open.get(segment.writer) ?? new Map<number, number>()
      open.set(segment.writer, intents)
      this.#scan({ segment, table, intents })
    }
    for (const [writer, intents] of open)
      if (intents.size > 0) settleLater(this.#segments.nextOf(writer, day), table, intents)
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

  #scan(matching: Matching): void {
    const last = this.#segments.lastSeq(matching.segment)
    for (const chunk of chunksOf(matching.segment.path)) {
      this.#match(chunk, matching, last)
      if (this.#needle !== undefined) settleChunk(chunk, matching)
      this.#read += chunk.bytes.length
      if (this.#read - this.#shown < PROGRESS) continue
      this.#shown = this.#read
      this.#progress(this.#read)
    }
  }

  #match(chunk: Chunk, matching: Matching, last: number): void {
    const { segment, table, intents } = matching
    const { query } = this.#request
    eachLine(chunk.bytes, this.#needle, (bytes, start, end) => {
      const head = headAt(bytes, start, end)
      const place = { segment, offset: chunk.offset + start, length: end - start }
      if (head === undefined) {
        this.#skip(place)
        return
      }
      // Asked before it settles its intent: the events of calls are rows if they are asked for by name.
      const isOutcome = head.intent !== undefined && intents.has(head.intent) && !FOLLOWERS.has(head.event)
      if (this.#needle === undefined) settle(head, place, matching)
      if (isOutcome || head.seq > last || !headFits(head, query)) return
      if (this.#asksMore && !this.#restFits(bytes.toString('utf8', start, end))) return
      const row = table.add(Date.parse(head.time), head.seq, place, outcomeOf(head.outcome))
      if (head.outcome === 'pending' && query.singly !== true) intents.set(head.seq, row)
    })
  }

  #skip({ segment: { path }, offset }: LineLocation): void {
    this.#unreadableCount += 1
    if (this.#unreadable.length < MOST_UNREADABLE) this.#unreadable.push({ path, offset })
  }

  #restFits(line: string): boolean {
    if (!this.#needles.every((group) => group.some((needle) => line.includes(needle)))) return false
    const record = parseTrailRecord(line)
    return record !== undefined && fits(record, this.#request.query)
  }

  *#show(day: string, table: RowTable, reader: RowReader): Generator<ScanStep> {
    const { query, after } = this.#request
    const isBehind = (row: number): boolean =>
      after?.day !== day || table.compare(row, after.time, after.writer, after.seq) > 0
    const rows = table.sorted((row) => fitsOutcome(table.outcome(row), query) && isBehind(row))
    for (const row of rows) {
      if (this.isFull) break
      const line = reader.line(table, row, query.singly)
      if (line === undefined) continue
      this.#lines.push(line)
      this.#rows += 1
      this.#last = { day, time: table.time(row), writer: table.writer(row), seq: table.seq(row) }
      if (this.#lines.length === BATCH) yield* this.rest()
    }
  }
}

const headAt = (bytes: Buffer, start: number, end: number): LineHead | undefined =>
  readHead(bytes.toString('latin1', start, Math.min(end, start + HEAD_BYTES)))

function settleLater(later: readonly Segment[], table: RowTable, intents: Map<number, number>): void {
  for (const segment of later)
    for (const chunk of chunksOf(segment.path)) {
      if (intents.size === 0) return
      settleChunk(chunk, { segment, table, intents })
    }
}

/** Finds outcomes of open intents. An intent is before its outcome, in segments of the same writer. */
function settleChunk(chunk: Chunk, matching: Matching): void {
  const { segment, intents } = matching
  if (intents.size === 0) return
  const needles = intents.size > FEW ? [INTENT] : [...intents.keys()].map((seq) => `${INTENT}${seq},`)
  for (const needle of needles)
    eachLine(chunk.bytes, Buffer.from(needle), (bytes, start, end) => {
      const head = headAt(bytes, start, end)
      if (head) settle(head, { segment, offset: chunk.offset + start, length: end - start }, matching)
    })
}

function settle(
  { event, outcome, intent }: LineHead,
  place: LineLocation,
  { table, intents }: Matching,
): void {
  const row = intent === undefined ? undefined : intents.get(intent)
  if (row === undefined || intent === undefined || !endsIntent(event) || outcomeOf(outcome) === 'open') return
  table.settle(row, outcomeOf(outcome), place)
  intents.delete(intent)
}

/**
 * The part of the named time that the trail lacks: an answer without rows must not look like a time without changes. Undefined if
 * no time was named, or all of it is there. Throws the system's error if a folder cannot be read.
 *
 * @param now milliseconds since the epoch
 */
function uncoveredOf(
  { from, until }: Pick<AuditQuery, 'from' | 'until'>,
  folders: readonly string[],
  segments: Segments,
  now: number,
): UncoveredTime | undefined {
  if (from === undefined && until === undefined) return undefined
  if (from !== undefined && from > now) return { all: true, begins: undefined, removedFrom: undefined }
  const begins = beginOf(segments)
  const first = begins === undefined ? Infinity : Date.parse(begins)
  const all = until !== undefined && until <= first
  if (!all && begins !== undefined && (from === undefined || from >= first)) return undefined
  return { all: all || begins === undefined, begins, removedFrom: earliest(folders.map(removedFrom)) }
}

/** The time of the first record that the trail has. */
function beginOf(segments: Segments): string | undefined {
  for (const day of segments.days()) {
    const begin = earliest(segments.of(day).map((segment) => segments.opening(segment)?.time))
    if (begin !== undefined) return begin
  }
  return undefined
}

const earliest = (times: readonly (string | undefined)[]): string | undefined =>
  times.filter((time) => time !== undefined).toSorted()[0]

const REMOVED = ',"removed":['

/** When the trail was signed first, if its manifest names segments that retention has removed. */
function removedFrom(folder: string): string | undefined {
  let first: string | undefined
  for (const { bytes, offset } of chunksOf(join(folder, MANIFEST_FILE))) {
    if (offset === 0) first = readManifestLine(bytes.toString('utf8', 0, bytes.indexOf('\n')))?.time
    if (bytes.includes(REMOVED)) return first
  }
  return undefined
}
