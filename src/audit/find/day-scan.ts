/** Scans segments for the records that answer a query, and joins intents with their outcomes. */
import type { AuditQuery, RowOutcome, TrailRecord, UnreadableLine } from '../../contracts/audit-query.ts'
import { chunkBuffer, chunksOf, eachLine, type Chunk } from './chunks.ts'
import {
  asksMore,
  fits,
  FOLLOWERS,
  headFits,
  isTrailRecord,
  type LineHead,
  needlesOf,
  readHead,
} from './query.ts'
import type { Place, RowTable } from './row-table.ts'
import type { Segment, Segments } from './segments.ts'

export interface ScanReport {
  /** Bytes that were just read. */
  readonly read: (bytes: number) => void
  readonly unreadable: (line: UnreadableLine) => void
}

const INTENT = '"intent":'
/** With more open intents than this, all outcomes are looked at; with fewer, each is searched for. */
const FEW = 8
/** Bytes that the beginning of a line takes at most. */
const HEAD_BYTES = 768
/** Followers that do not end the call. */
const GOES_ON: ReadonlySet<string> = new Set(['call.body_ended'])

const outcomeOf = (outcome: string): RowOutcome =>
  outcome === 'success' || outcome === 'refused' || outcome === 'failed' ? outcome : 'open'

/** Rows of intents whose outcome was not met yet: by writer, then by seq. */
type OpenIntents = Map<string, Map<number, number>>

/** A segment that is scanned, and what has been found. */
interface Matching {
  readonly segment: Segment
  readonly table: RowTable
  /** Of its writer. */
  readonly intents: Map<number, number>
}

export class DayScan {
  readonly #query: AuditQuery
  readonly #asksMore: boolean
  /** Stands in every line that fits. Undefined where so many lines fit that it is quicker to look at each. */
  readonly #needle: Buffer | undefined
  readonly #needles: readonly (readonly string[])[]
  readonly #report: ScanReport
  readonly #buffer = chunkBuffer()

  constructor(query: AuditQuery, report: ScanReport) {
    const groups = needlesOf(query)
    this.#query = query
    this.#asksMore = asksMore(query)
    const needle = this.#asksMore ? groups.find((group) => group.length === 1)?.[0] : undefined
    this.#needle = needle === undefined ? undefined : Buffer.from(needle)
    this.#needles = groups.filter(([first]) => first !== needle)
    this.#report = report
  }

  /** Adds the rows of one day. The outcomes of its last intents may stand in the next day's segments. */
  scan(day: string, segments: Segments, table: RowTable): void {
    const open: OpenIntents = new Map()
    for (const segment of segments.of(day)) {
      const matching = { segment, table, intents: intentsOf(open, segment), last: segments.lastSeq(segment) }
      for (const chunk of chunksOf(segment.path, this.#buffer)) {
        this.#match(chunk, matching)
        if (this.#needle !== undefined) settleChunk(chunk, matching)
        this.#report.read(chunk.bytes.length)
      }
    }
    for (const [writer, intents] of open)
      if (intents.size > 0) this.#settleLater(segments.nextOf(writer, day), table, intents)
  }

  #settleLater(later: Iterable<Segment>, table: RowTable, intents: Map<number, number>): void {
    for (const segment of later)
      for (const chunk of chunksOf(segment.path, this.#buffer)) {
        if (intents.size === 0) return
        settleChunk(chunk, { segment, table, intents })
      }
  }

  #match({ bytes, offset }: Chunk, matching: Matching & { readonly last: number }): void {
    const { segment, table, intents, last } = matching
    eachLine(bytes, this.#needle, (start, end) => {
      const head = readHead(bytes.toString('latin1', start, Math.min(end, start + HEAD_BYTES)))
      if (head === undefined) {
        this.#report.unreadable({ path: segment.path, offset: offset + start })
        return
      }
      const place = { segment, offset: offset + start, length: end - start }
      const isOutcome = this.#isOutcome(head, intents)
      if (this.#needle === undefined) settle(head, place, matching)
      if (isOutcome || head.seq > last || !headFits(head, this.#query)) return
      if (this.#asksMore && !this.#restFits(bytes.toString('utf8', start, end))) return
      const row = table.add(head, place, outcomeOf(head.outcome))
      if (head.outcome === 'pending' && this.#query.singly !== true) intents.set(head.seq, row)
    })
  }

  /** Whether it is a part of a row that was found. The events of calls are rows if they are asked for by name. */
  #isOutcome({ event, intent }: LineHead, intents: Map<number, number>): boolean {
    return intent !== undefined && intents.has(intent) && !FOLLOWERS.has(event)
  }

  #restFits(line: string): boolean {
    if (!this.#needles.every((group) => group.some((needle) => line.includes(needle)))) return false
    const record = readRecord(line)
    return record !== undefined && fits(record, this.#query)
  }
}

function intentsOf(open: OpenIntents, { writer }: Segment): Map<number, number> {
  const known = open.get(writer)
  if (known !== undefined) return known
  const intents = new Map<number, number>()
  open.set(writer, intents)
  return intents
}

/** Finds outcomes of open intents. An intent stands before its outcome, in segments of the same writer. */
function settleChunk({ bytes, offset }: Chunk, matching: Matching): void {
  const { segment, intents } = matching
  if (intents.size === 0) return
  const needles = intents.size > FEW ? [INTENT] : [...intents.keys()].map((seq) => `${INTENT}${seq},`)
  for (const needle of needles)
    eachLine(bytes, Buffer.from(needle), (start, end) => {
      const head = readHead(bytes.toString('latin1', start, Math.min(end, start + HEAD_BYTES)))
      if (head) settle(head, { segment, offset: offset + start, length: end - start }, matching)
    })
}

function settle({ event, outcome, intent }: LineHead, place: Place, { table, intents }: Matching): void {
  const row = intent === undefined ? undefined : intents.get(intent)
  if (row === undefined || intent === undefined || GOES_ON.has(event) || outcomeOf(outcome) === 'open') return
  table.settle(row, outcomeOf(outcome), place)
  intents.delete(intent)
}

/** Undefined if the line is no record. */
export function readRecord(line: string): TrailRecord | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isTrailRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
