/** Checks the segments of a trail: its chain, what was signed of it, and the personal values (C12.4.6). */
import { endsIntent } from '../../../base/kernel/audit-events.ts'
import { MANIFEST_FILE } from '../format/manifest.ts'
import { besideOf, segmentName } from '../format/segment.ts'
import { type CheckedManifest, type TrailFindings, type HeadAt, recordsFrom } from './check-manifest.ts'
import { FileWindows, readLines } from '../format/lines.ts'
import { checkPersonalValues, hashesIn, PersonalFile } from './personal.ts'
import { chainedHash, readRecordLine, type RecordLine, subjectsOf } from '../format/record-line.ts'
import { type Segment, type Segments, sizeOf } from '../format/segments.ts'
import type { ChainHead } from '../format/record.ts'

interface ChainCheckParts {
  /** The name of the trail. */
  readonly writer: string
  readonly listed: Segments
  /** Its segments, in the order of their numbers. */
  readonly segments: readonly Segment[]
  readonly manifest: Pick<CheckedManifest, 'heads' | 'found' | 'ends' | 'isClosed' | 'removed'>
  readonly findings: TrailFindings
  readonly facts: TrailFacts
  /** Called with the bytes that were read. */
  readonly progress: (bytes: number) => void
}

const NUL = '\0'
const STRAY = 'this value belongs to no record, or is not in its place'
const EMPTY: ChainHead = { seq: 0, hash: '' }

export class ChainCheck {
  readonly #parts: ChainCheckParts
  readonly #files = new FileWindows()
  readonly #lastHead: HeadAt | undefined
  /** The record that was checked last, and the one before it. */
  #last = EMPTY
  #before = EMPTY
  /** The next head to compare. */
  #head = 0
  #lastGood = 0
  #isForged = false
  #isClosed = false
  readonly #added = new Set<number>()
  readonly #open = new Set<number>()
  #file = ''
  #number = 0
  #line = 0
  /** The record behind which the rest of the segment does not count. */
  #cut = Infinity
  /** The last record that it may have: with it the writer has ended, and the next start has found the segment. */
  #limit = Infinity
  /** Whether a record of the segment counts. */
  #counts = false
  /** The last record of the segment that does not. */
  #uncounted: ChainHead | undefined
  #personal: PersonalFile | undefined
  #unreadable: { readonly line: number; readonly hasNul: boolean } | undefined
  /** Whether the rest of the segment is what a power cut left. */
  #isTorn = false
  /** Whether the rest of the segment is of another writer. */
  #isForeign = false
  #wasForeign = false
  #day = ''

  constructor(parts: ChainCheckParts) {
    const { heads } = parts.manifest
    this.#parts = parts
    this.#lastHead = heads.at(-1)
  }

  check(): void {
    const { segments, facts } = this.#parts
    // A start that was killed may have left one without a whole record.
    const first = segments.find((segment) => this.#parts.listed.opening(segment) !== undefined)
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

  /**
   * For each segment the record behind which its records were written again, in a later one (C12.4.3). Where nothing was durable, the
   * later one names none: behind a segment that does, it was put there.
   */
  #cuts(): readonly number[] {
    const { segments, listed } = this.#parts
    const named = segments.findIndex((segment) => this.#namedBy(segment) !== undefined)
    const isFirst = (at: number): boolean => named === -1 || at < named
    let cut = Infinity
    const cuts = [...segments.entries()].toReversed().map(([at, segment]) => {
      const own = cut
      const begins = listed.opening(segment) !== undefined && isFirst(at) ? 0 : Infinity
      cut = Math.min(cut, this.#namedBy(segment)?.seq ?? begins)
      return own
    })
    return cuts.toReversed()
  }

  /** Begins with a trail whose first segments are gone: retention has signed which was the last record of theirs. */
  #start(first: Segment, before: ChainHead): void {
    const { findings } = this.#parts
    const { heads } = this.#parts.manifest
    const removed = [...this.#parts.manifest.removed.values()]
    const isSigned = removed.some(
      ({ number, seq, hash }) => number < first.number && seq === before.seq && hash === before.hash,
    )
    if (!isSigned)
      findings.add(
        segmentName(first),
        1,
        `${recordsFrom(1, before.seq)} are missing: the first files of the trail`,
      )
    this.#last = before
    this.#lastGood = before.seq
    this.#head = heads.findIndex(({ seq }) => seq > before.seq)
    if (this.#head === -1) this.#head = heads.length
  }

  #segment(segment: Segment, cut: number): void {
    const { path, personalPath } = segment
    const { facts, progress } = this.#parts
    this.#begin(segment, cut)
    const personal = new PersonalFile(this.#files, personalPath, (line) => this.#findBeside(line, STRAY))
    this.#personal = personal
    facts.segments += 1
    const read = readLines(path, (bytes, start, end) => this.#takeLine(bytes, start, end), { progress })
    personal.end()
    const torn = Math.max(0, sizeOf(path) - read)
    facts.torn += torn
    const hasMore = torn > 0 || this.#unreadable !== undefined || this.#isTorn
    // A start that was killed may have left a segment without a whole record.
    const seq = Math.min(cut, this.#last.seq)
    if (hasMore && (this.#counts || this.#foundBehind(seq, segment))) this.#findBehindEnd(seq, 'bytes')
  }

  /** Whether a segment was there when the writer began again behind an end. */
  #foundBehind(seq: number, { number }: Segment): boolean {
    const { ends, isClosed } = this.#parts.manifest
    const end = ends.get(seq)
    return end !== undefined && number <= (end.begins ?? (isClosed ? Infinity : 0))
  }

  #begin(segment: Segment, cut: number): void {
    this.#file = segmentName(segment)
    this.#number = segment.number
    this.#line = 0
    this.#cut = cut
    this.#limit = this.#limitOf(segment)
    this.#counts = false
    this.#uncounted = undefined
    this.#unreadable = undefined
    this.#isTorn = false
    this.#isForeign = false
    // Another start may have gone on with the chain.
    this.#isClosed = false
    this.#day = segment.day
  }

  #limitOf({ number }: Segment): number {
    const { ends, isClosed } = this.#parts.manifest
    let limit = Infinity
    for (const [seq, { until = isClosed ? Infinity : 0 }] of ends)
      if (number <= until && seq < limit) limit = seq
    return limit
  }

  #takeLine(bytes: Buffer, start: number, end: number): void {
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
    else if (record.seq > this.#limit && this.#limit <= this.#cut) this.#findBehindEnd(this.#limit, 'records')
    else if (record.seq > this.#cut)
      this.#takeUncounted(record, (before) => chainedHash(before, bytes, start, end))
    else this.#takeRecord(record, (before) => chainedHash(before, bytes, start, end))
  }

  /** A power cut may leave zeros where blocks were not written yet. Then nothing from there on was durable. */
  #isTornAt({ line, hasNul }: { readonly line: number; readonly hasNul: boolean }): boolean {
    this.#unreadable = undefined
    this.#isTorn = hasNul && this.#last.seq >= Math.min(this.#cut, this.#lastHead?.seq ?? 0)
    if (!this.#isTorn) this.#find('this line is not a record, or not any more', line)
    return this.#isTorn
  }

  #findForeign({ writer }: RecordLine): void {
    this.#find(`the records in this file are of another trail, ${writer}`)
    this.#isForeign = true
    this.#wasForeign = true
  }

  #takeRecord(record: RecordLine, hashBehind: (before: string) => string): void {
    const { seq, hash } = record
    const expected = this.#last.seq + 1
    const isNext = seq === expected && hashBehind(this.#last.hash) === hash
    if (!isNext && !this.#isNextAfterBreak(record, expected, hashBehind)) return
    if (!record.time.startsWith(this.#day)) this.#findMoved(record)
    if (this.#isClosed) this.#find('a record behind the end of the writer')
    this.#before = this.#last
    this.#last = record
    this.#counts = true
    this.#compareHeads(record)
    this.#parts.facts.record(record, seq <= (this.#lastHead?.seq ?? 0))
    this.#read(record)
  }

  /** A query for a day finds the records in the folder of that day. One finding for each file. */
  #findMoved({ time }: RecordLine): void {
    this.#day = ''
    this.#find(`the records from this one on are of ${time.slice(0, 10)}: the file was moved to another day`)
  }

  /**
   * A failed write or a kill may leave records behind the last durable one. They follow it in the chain, and were never signed. Other
   * records were put there; or the later segment was, which names an earlier record than was signed. One finding for each file.
   */
  #takeUncounted(record: RecordLine, hashBehind: (before: string) => string): void {
    const { seq, hash } = record
    const before = this.#uncounted ?? this.#last
    if (before.seq < this.#cut) return
    const follows = seq === before.seq + 1 && hashBehind(before.hash) === hash
    if (!follows)
      this.#find(`record ${seq} does not follow record ${before.seq}: it was changed or put there`)
    else if (this.#parts.manifest.heads.some((head) => head.hash === hash))
      this.#find(
        `record ${seq} was signed, but a later file goes on behind record ${this.#cut}: that file was put there`,
      )
    this.#uncounted = follows ? record : EMPTY
  }

  /** At its end the writer had written all: nothing behind it is left of a failed write or a kill. One finding for each end. */
  #findBehindEnd(seq: number, what: 'records' | 'bytes'): void {
    const end = this.#parts.manifest.ends.get(seq)
    if (end === undefined || this.#added.has(seq)) return
    this.#added.add(seq)
    this.#find(
      `${what} were added behind record ${seq}: the writer had ended with it, as signed at ${end.time} (${MANIFEST_FILE}, line ${end.line})`,
    )
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
    const { heads } = this.#parts.manifest
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
    else if (intent !== undefined && endsIntent(event)) this.#open.delete(intent)
    this.#checkPersonal(record)
  }

  #checkPersonal(record: RecordLine): void {
    const lines = this.#personal?.take(record.seq) ?? []
    const hashes = hashesIn(record.text)
    if (hashes === undefined && lines.length === 0) return
    const { problems, missing } = checkPersonalValues(hashes ?? {}, lines)
    for (const { line, what } of problems) this.#findBeside(line, what)
    // A removal that was cut off takes the values first.
    if (missing > 0 && !this.#parts.manifest.removed.has(this.#number))
      this.#parts.facts.missing(this.#file, this.#line, record, missing, this.#wasDurable(record))
  }

  /** Whether the writer has said that the record is durable. A later head may have been found on the disk. */
  #wasDurable({ seq }: RecordLine): boolean {
    const { found } = this.#parts.manifest
    return seq <= (this.#lastHead?.seq ?? 0) && !found.some(({ after, until }) => seq > after && seq <= until)
  }

  #checkEnd(): void {
    const { segments, findings, manifest } = this.#parts
    const { heads } = manifest
    const head = this.#lastHead
    if (head === undefined || this.#last.seq >= head.seq || this.#wasForeign) return
    if (segments.length > 0)
      this.#find(
        `${recordsFrom(this.#last.seq + 1, head.seq)}, signed at ${head.time}, missing behind this line`,
      )
    else findings.add(MANIFEST_FILE, heads[0]?.line, 'all files of the trail are missing')
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

/** Numbers that a verification counts besides its findings. */
export class TrailFacts {
  records = 0
  segments = 0
  /** Records behind the last signed head. */
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
