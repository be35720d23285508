/** Checks the segments of one writer: its chain, what was signed of it, and the personal values (C12.4.6). */
import { MANIFEST_FILE, type RemovedSegment } from '../format/manifest.ts'
import { besideOf, segmentName } from '../format/segment.ts'
import { type TrailFindings, type HeadAt, recordsFrom } from './check-manifest.ts'
import { FileWindows, readLines } from '../format/lines.ts'
import { checkPersonalValues, hashesIn, PersonalFile } from './personal.ts'
import { chainedHash, readRecordLine, type RecordLine, subjectsOf } from '../format/record-line.ts'
import { type Segment, type Segments, sizeOf } from '../format/segments.ts'
import type { ChainHead } from '../format/record.ts'

interface WriterCheckParts {
  readonly writer: string
  readonly listed: Segments
  /** The segments of this writer, in the order of their numbers. */
  readonly segments: readonly Segment[]
  /** In the order of their `seq`. */
  readonly heads: readonly HeadAt[]
  /** Segments of this writer that retention has removed. */
  readonly removed: readonly RemovedSegment[]
  /** Whether its end was signed: it wrote nothing behind its last head. */
  readonly hasLeft: boolean
  readonly findings: TrailFindings
  readonly facts: TrailFacts
  /** Called with the bytes that were read. */
  readonly progress: (bytes: number) => void
}

const NUL = '\0'
const STRAY = 'this value belongs to no record, or is not in its place'
const EMPTY: ChainHead = { seq: 0, hash: '' }

export class WriterCheck {
  readonly #parts: WriterCheckParts
  readonly #files = new FileWindows()
  readonly #lastHead: HeadAt | undefined
  /** The last record that its process has reported as durable; a later head was found on the disk. */
  readonly #reported: number
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
  #personal: PersonalFile | undefined
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
    this.#reported = parts.heads.findLast(({ found }) => !found)?.seq ?? 0
  }

  check(): void {
    const { segments, facts } = this.#parts
    const [first] = segments
    const before = first && this.#namedBy(first)
    if (first !== undefined && before !== undefined) this.#start(first, before)
    for (const [at, cut] of this.#cuts().entries()) {
      const segment = segments[at]
      if (segment !== undefined) this.#segment(segment, cut)
    }
    this.#checkEnd()
    this.#files.close()
    facts.open += this.#open.size
  }

  /** The record that the first one of a segment names as the last before it. */
  #namedBy(segment: Segment): ChainHead | undefined {
    return this.#parts.listed.opening(segment)?.before
  }

  /** For each segment the record behind which its records were written again, in a later one (C12.4.3). */
  #cuts(): readonly number[] {
    let cut = Infinity
    const cuts = this.#parts.segments.toReversed().map((segment) => {
      const own = cut
      cut = Math.min(cut, this.#namedBy(segment)?.seq ?? Infinity)
      return own
    })
    return cuts.toReversed()
  }

  /** Begins with a writer whose first segments are gone. */
  #start(first: Segment, before: ChainHead): void {
    const { removed, findings, heads } = this.#parts
    if (!removed.some(({ number, seq }) => number < first.number && seq >= before.seq))
      findings.add(
        segmentName(first),
        1,
        `${recordsFrom(1, before.seq)} of this writer are missing: its first files`,
      )
    this.#last = before
    this.#lastGood = before.seq
    this.#head = heads.findIndex(({ seq }) => seq > before.seq)
    if (this.#head === -1) this.#head = heads.length
  }

  #segment(segment: Segment, cut: number): void {
    const { path, personalPath, day } = segment
    const { facts, progress } = this.#parts
    this.#file = segmentName(segment)
    this.#line = 0
    this.#unreadable = undefined
    this.#isTorn = false
    this.#isForeign = false
    this.#day = day
    this.#personal = new PersonalFile(this.#files, personalPath, (line) => this.#findBeside(line, STRAY))
    facts.segments += 1
    const read = readLines(path, (bytes, start, end) => this.#takeLine(bytes, start, end, cut), { progress })
    this.#personal.end()
    facts.torn += Math.max(0, sizeOf(path) - read)
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
    if (record.writer !== this.#parts.writer) this.#findForeign(record)
    else if (record.seq <= cut) this.#takeRecord(record, (before) => chainedHash(before, bytes, start, end))
  }

  /** A power cut may leave zeros where blocks were not written yet. Then nothing from there on was durable. */
  #isTornAt({ line, hasNul }: { readonly line: number; readonly hasNul: boolean }): boolean {
    this.#unreadable = undefined
    this.#isTorn = hasNul && this.#last.seq >= (this.#lastHead?.seq ?? 0)
    if (!this.#isTorn) this.#find('this line is not a record, or not any more', line)
    return this.#isTorn
  }

  #findForeign({ writer }: RecordLine): void {
    this.#find(`the records in this file are of another writer, ${writer}`)
    this.#isForeign = true
    this.#wasForeign = true
  }

  #takeRecord(record: RecordLine, hashBehind: (before: string) => string): void {
    const { seq, hash } = record
    const expected = this.#last.seq + 1
    const isNext = seq === expected && hashBehind(this.#last.hash) === hash
    if (!isNext && !this.#isNextAfterBreak(record, expected, hashBehind)) return
    if (!record.time.startsWith(this.#day)) this.#findMoved(record)
    if (this.#isClosed) this.#find('a record behind the end of its writer')
    this.#before = this.#last
    this.#last = record
    this.#compareHeads(record)
    if (this.#parts.hasLeft && seq > (this.#lastHead?.seq ?? 0)) this.#findAdded(seq)
    this.#parts.facts.record(record, seq <= (this.#lastHead?.seq ?? 0))
    this.#read(record)
  }

  /** A query for a day finds the records in the folder of that day. One finding for each file. */
  #findMoved({ time }: RecordLine): void {
    this.#day = ''
    this.#find(`the records from this one on are of ${time.slice(0, 10)}: the file was moved to another day`)
  }

  /** One finding for each writer. */
  #findAdded(seq: number): void {
    if (this.#isAdded) return
    this.#isAdded = true
    this.#find(`the records from ${seq} on were added behind the end of this writer, which was signed`)
  }

  /** Says what broke the chain before this record. True if the chain continues from here. */
  #isNextAfterBreak(
    { seq, hash }: RecordLine,
    expected: number,
    hashBehind: (before: string) => string,
  ): boolean {
    if (seq > expected) this.#find(`${recordsFrom(expected, seq - 1)} missing before this one`)
    else if (seq === expected) this.#find(`record ${seq} was changed`)
    else if (seq === this.#last.seq && hashBehind(this.#before.hash) === hash) {
      this.#find(`record ${seq} stands here a second time; the one before was put there`)
      this.#last = this.#before
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
    const { event, seq, outcome, intent } = record
    if (event === 'audit.redacted') this.#parts.facts.redacted(record)
    if (event === 'writer.closed') this.#isClosed = true
    if (outcome === 'pending') this.#open.add(seq)
    else if (intent !== undefined && event !== 'call.body_ended') this.#open.delete(intent)
    this.#checkPersonal(record)
  }

  #checkPersonal(record: RecordLine): void {
    const lines = this.#personal?.take(record.seq) ?? []
    const hashes = hashesIn(record.text)
    if (hashes === undefined && lines.length === 0) return
    const { problems, missing } = checkPersonalValues(hashes ?? {}, lines)
    for (const { line, what } of problems) this.#findBeside(line, what)
    if (missing > 0)
      this.#parts.facts.missing(this.#file, this.#line, record, missing, record.seq <= this.#reported)
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

/** Values of a subject that are missing in a file. */
interface Erased {
  readonly file: string
  readonly line: number
  readonly subjects: readonly string[]
  /** Whether their process has reported the record as durable. Otherwise a power cut may have left it without values. */
  readonly reported: boolean
  /** The time of the latest record. */
  time: string
  values: number
}

/** Numbers that a verification counts besides its findings, of all writers of a trail. */
export class TrailFacts {
  records = 0
  segments = 0
  writers = 0
  /** Records behind the last signed head of their writer. */
  unsigned = 0
  firstUnsigned: string | undefined
  lastRecord: string | undefined
  /** Intents without an outcome. */
  open = 0
  /** Records that were signed when they were found, after their process had been killed. */
  foundLate = 0
  /** Bytes that were left behind by power cuts and failed writes. */
  torn = 0
  readonly #redacted = new Map<string, string>()
  readonly #erased = new Map<string, Erased>()

  record({ time }: RecordLine, isSigned: boolean): void {
    this.records += 1
    if (this.lastRecord === undefined || time > this.lastRecord) this.lastRecord = time
    if (isSigned) return
    this.unsigned += 1
    if (this.firstUnsigned === undefined || time < this.firstUnsigned) this.firstUnsigned = time
  }

  /** A record says that the values of a subject were erased. */
  redacted({ text, time }: RecordLine): void {
    const { about } = subjectsOf(text)
    if (about !== undefined && time > (this.#redacted.get(about) ?? '')) this.#redacted.set(about, time)
  }

  /** Values of a record are missing. */
  missing(file: string, line: number, { text, time }: RecordLine, values: number, reported: boolean): void {
    const subjects = subjectsOf(text).all
    const key = JSON.stringify([file, subjects, reported])
    const known = this.#erased.get(key)
    if (known === undefined) this.#erased.set(key, { file, line, subjects, reported, time, values })
    else {
      known.values += values
      if (time > known.time) known.time = time
    }
  }

  /**
   * The numbers of missing values: those that a redaction after their record explains, those that a power cut may
   * explain, and the others.
   */
  erasures(): { readonly explained: number; readonly torn: number; readonly others: readonly Erased[] } {
    const all = [...this.#erased.values()]
    const unexplained = all.filter(
      ({ subjects, time }) => !subjects.some((subject) => (this.#redacted.get(subject) ?? '') >= time),
    )
    const others = unexplained.filter(({ reported }) => reported)
    const sum = (some: readonly Erased[]): number => some.reduce((total, { values }) => total + values, 0)
    return { explained: sum(all) - sum(unexplained), torn: sum(unexplained) - sum(others), others }
  }
}
