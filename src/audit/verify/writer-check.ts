/** Checks the segments of one writer: its chain, what was signed of it, and the personal values (C12.4.6). */
import { type Chunk, chunkBuffer, chunksOf, eachLine } from '../find/chunks.ts'
import { type Segment, sizeOf } from '../find/segments.ts'
import { MANIFEST_FILE, type RemovedSegment } from '../manifest/manifest.ts'
import { type Findings, recordsFrom } from './findings.ts'
import { BesideReader, checkValues, personalHashes } from './personal-check.ts'
import { ChainHasher, readRecordLine, type RecordLine } from './record-line.ts'
import type { HeadAt } from './signed-heads.ts'
import type { TrailFacts } from './trail-facts.ts'
import { besideOf } from '../segment.ts'

export interface WriterCheckParts {
  readonly writer: string
  /** In the order of their numbers. */
  readonly segments: readonly Segment[]
  /** In the order of their `seq`. */
  readonly heads: readonly HeadAt[]
  /** Segments of this writer that retention has removed. */
  readonly removed: readonly RemovedSegment[]
  /** Whether its end was signed: it wrote nothing behind its last head. */
  readonly hasLeft: boolean
  readonly findings: Findings
  readonly facts: TrailFacts
  /** Called with the bytes that were read. */
  readonly progress: (bytes: number) => void
}

interface Link {
  readonly seq: number
  readonly hash: string
}

/** What the first record of a segment says of the one before. */
interface Opening {
  readonly segment: Segment
  readonly before: Link | undefined
  /** Behind it the records of this segment were written again, in a later one. */
  cut: number
}

const BEFORE = /[{,]"before":\{"writer":"[^"]*","seq":(\d+),"hash":"([A-Za-z0-9_-]{43})"\}/
const NUL = '\0'
const STRAY = 'this value belongs to no record, or is not in its place'
const EMPTY: Link = { seq: 0, hash: '' }
const hasher = new ChainHasher()
const buffer = chunkBuffer()

export class WriterCheck {
  readonly #parts: WriterCheckParts
  readonly #lastHead: HeadAt | undefined
  /** The last record that its process has told as durable; a later head was found on the disk. */
  readonly #told: number
  /** The record that was checked last, and the one before it. */
  #last = EMPTY
  #before = EMPTY
  /** The next head to compare. */
  #head = 0
  #lastGood = 0
  #isForged = false
  #isClosed = false
  #isAdded = false
  readonly #open = new Set<number>()
  #file = ''
  #line = 0
  #beside: BesideReader | undefined
  #unreadable: { readonly line: number; readonly hasNul: boolean } | undefined
  /** Whether the rest of the segment is what a power cut left. */
  #isTorn = false
  /** Whether the rest of the segment is of another writer. */
  #isForeign = false
  #wasForeign = false
  #day = ''

  constructor(parts: WriterCheckParts) {
    this.#parts = parts
    this.#lastHead = parts.heads.at(-1)
    this.#told = parts.heads.findLast(({ found }) => !found)?.seq ?? 0
  }

  check(): void {
    const openings = openingsOf(this.#parts.segments)
    const [first] = openings
    if (first?.before !== undefined) this.#start(first)
    for (const opening of openings) this.#segment(opening)
    this.#checkEnd()
    this.#parts.facts.open += this.#open.size
  }

  /** Of a writer whose first segments are gone. */
  #start({ segment, before = EMPTY }: Opening): void {
    const { removed, findings, heads } = this.#parts
    if (!removed.some(({ number, seq }) => number < segment.number && seq >= before.seq))
      findings.add(
        nameOf(segment),
        1,
        `${recordsFrom(1, before.seq)} of this writer are missing: its first files`,
      )
    this.#last = before
    this.#lastGood = before.seq
    this.#head = heads.findIndex(({ seq }) => seq > before.seq)
    if (this.#head === -1) this.#head = heads.length
  }

  #segment({ segment, cut }: Opening): void {
    const { path, personalPath } = segment
    this.#file = nameOf(segment)
    this.#line = 0
    this.#unreadable = undefined
    this.#isTorn = false
    this.#isForeign = false
    this.#day = segment.day
    this.#beside = new BesideReader(personalPath, (line) => this.#findBeside(line, STRAY))
    this.#parts.facts.segments += 1
    let read = 0
    for (const { bytes, offset } of chunksOf(path, buffer)) {
      eachLine(bytes, undefined, (start, end) => this.#takeLine(bytes, start, end, cut))
      read = offset + bytes.length
      this.#parts.progress(bytes.length)
    }
    this.#beside.close()
    this.#parts.facts.torn += Math.max(0, sizeOf(path) - read)
  }

  #takeLine(bytes: Buffer, start: number, end: number, cut: number): void {
    this.#line += 1
    if (this.#isTorn || this.#isForeign) return
    const text = bytes.toString('latin1', start, end)
    const record = readRecordLine(text)
    if (record === undefined) {
      this.#unreadable ??= { line: this.#line, hasNul: text.includes(NUL) }
      return
    }
    if (this.#unreadable !== undefined && this.#isTornAt(this.#unreadable)) return
    if (record.writer !== this.#parts.writer) this.#tellForeign(record)
    else if (record.seq > cut) this.#parts.facts.rewritten += 1
    else this.#takeRecord(record, (hash) => hasher.hashOf(hash, bytes, start, end))
  }

  /** A power cut may leave zeros where blocks were not written yet. Then nothing from there on was durable. */
  #isTornAt({ line, hasNul }: { readonly line: number; readonly hasNul: boolean }): boolean {
    this.#unreadable = undefined
    this.#isTorn = hasNul && this.#last.seq >= (this.#lastHead?.seq ?? 0)
    if (!this.#isTorn) this.#find('this line is not a record, or not any more', line)
    return this.#isTorn
  }

  #tellForeign({ writer }: RecordLine): void {
    this.#find(`the records in this file are of another writer, ${writer}`)
    this.#isForeign = true
    this.#wasForeign = true
  }

  #takeRecord(record: RecordLine, hashBehind: (before: string) => string): void {
    const { seq, hash } = record
    const expected = this.#last.seq + 1
    const isNext = seq === expected && hashBehind(this.#last.hash) === hash
    if (!isNext && !this.#tellBreak(record, expected, hashBehind)) return
    if (!record.time.startsWith(this.#day)) this.#tellMoved(record)
    if (this.#isClosed) this.#find('a record behind the end of its writer')
    this.#before = this.#last
    this.#last = record
    this.#compareHeads(record)
    if (this.#parts.hasLeft && seq > (this.#lastHead?.seq ?? 0)) this.#tellAdded(seq)
    this.#parts.facts.record(record, seq <= (this.#lastHead?.seq ?? 0))
    this.#read(record)
  }

  /** Whoever asks for a day finds what stands in its folder. Told once for each file. */
  #tellMoved({ time }: RecordLine): void {
    this.#day = ''
    this.#find(`the records from this one on are of ${time.slice(0, 10)}: the file was moved to another day`)
  }

  /** Told once for each writer. */
  #tellAdded(seq: number): void {
    if (this.#isAdded) return
    this.#isAdded = true
    this.#find(`the records from ${seq} on were added behind the end of this writer, which was signed`)
  }

  /** Whether the chain goes on from this record. */
  #tellBreak({ seq, hash }: RecordLine, expected: number, hashBehind: (before: string) => string): boolean {
    if (seq > expected) this.#find(`${recordsFrom(expected, seq - 1)} missing before this one`)
    else if (seq === expected) this.#find(`record ${seq} was changed`)
    else if (seq === this.#last.seq && hashBehind(this.#before.hash) === hash) {
      this.#find(`record ${seq} stands here a second time; the one before was put there`)
      this.#last = this.#before
      return true
    } else {
      this.#find(`record ${seq} is not in its place, behind record ${this.#last.seq}`)
      return false
    }
    return true
  }

  #compareHeads({ seq, hash }: RecordLine): void {
    const { heads } = this.#parts
    for (let head = heads[this.#head]; head !== undefined && head.seq <= seq; head = heads[this.#head]) {
      this.#head += 1
      if (head.seq < seq) continue
      if (head.hash === hash) this.#good(head)
      else if (!this.#isForged) {
        this.#isForged = true
        this.#find(
          `${recordsFrom(this.#lastGood + 1, seq)}: not what was signed at ${head.time} (${MANIFEST_FILE}, line ${head.line})`,
        )
      }
    }
  }

  #good({ seq, found }: HeadAt): void {
    if (found) this.#parts.facts.foundLate += seq - this.#lastGood
    this.#lastGood = seq
  }

  #read(record: RecordLine): void {
    const { event, seq, text } = record
    if (event === 'audit.redacted') this.#parts.facts.redacted(record)
    if (event === 'writer.closed') this.#isClosed = true
    if (text.includes('","outcome":"pending"')) this.#open.add(seq)
    else if (event !== 'call.body_ended') this.#settle(text)
    this.#checkPersonal(record)
  }

  #settle(text: string): void {
    const at = text.indexOf(',"intent":')
    if (at !== -1) this.#open.delete(Number.parseInt(text.slice(at + ',"intent":'.length, at + 32), 10))
  }

  #checkPersonal(record: RecordLine): void {
    const lines = this.#beside?.take(record.seq) ?? []
    const hashes = personalHashes(record.text)
    if (hashes === undefined && lines.length === 0) return
    const { problems, missing } = checkValues(hashes ?? {}, lines)
    for (const { line, what } of problems) this.#findBeside(line, what)
    if (missing > 0)
      this.#parts.facts.missing(this.#file, this.#line, record, missing, record.seq <= this.#told)
  }

  #checkEnd(): void {
    const { heads, removed, segments, findings, writer } = this.#parts
    const head = this.#lastHead
    if (head === undefined || this.#last.seq >= head.seq || this.#wasForeign) return
    if (removed.some(({ seq }) => seq >= head.seq)) return
    if (segments.length > 0)
      this.#find(
        `${recordsFrom(this.#last.seq + 1, head.seq)}, signed at ${head.time}, missing behind this line`,
      )
    else findings.add(MANIFEST_FILE, heads[0]?.line, `all files of the writer ${writer} are missing`)
  }

  #findBeside(line: number, what: string): void {
    this.#parts.findings.add(besideOf(this.#file), line, what)
  }

  #find(what: string, line = this.#line): void {
    this.#parts.findings.add(this.#file, line, what)
  }
}

export const nameOf = ({ day, writer, number }: Segment): string => `${day}/${writer}.${number}.jsonl`

/** The first records of segments, and behind which record each is superseded by a later one (C12.4.3). */
function openingsOf(segments: readonly Segment[]): readonly Opening[] {
  const openings = segments.map((segment): Opening => ({ segment, before: beforeOf(segment), cut: Infinity }))
  let cut = Infinity
  for (const opening of openings.toReversed()) {
    opening.cut = cut
    cut = Math.min(cut, opening.before?.seq ?? Infinity)
  }
  return openings
}

function beforeOf({ path }: Segment): Link | undefined {
  const reading = chunksOf(path, buffer)
  const chunk = reading.next().value as Chunk | undefined
  const text = chunk === undefined ? '' : chunk.bytes.toString('latin1', 0, chunk.bytes.indexOf(0x0a))
  reading.return(undefined)
  if (readRecordLine(text)?.event !== 'writer.opened') return undefined
  const [, seq, hash] = BEFORE.exec(text) ?? []
  return hash === undefined ? undefined : { seq: Number(seq), hash }
}
