/** Personal values (C12.2.3): a `.personal.jsonl` file has them in the order of the records, which hold their hashes. */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { personalHash } from '../format/record.ts'
import { syncFolder } from '../format/segment.ts'
import { type FileWindows, type LineVisitor, readLines } from '../format/lines.ts'
import { parseBytes, readRecordLine, subjectsOf } from '../format/record-line.ts'
import { type Segment, Segments } from '../format/segments.ts'

const LINE_END = 0x0a
/** The most bytes of a line: a value of 256 bytes, each of which may be written as `\u0000`. */
const LONGEST_LINE = 2048
/** Bytes that are searched for the values of one record: 64 of them at most, each a line. */
const SPAN = 192 * 1024

/** A line of a `.personal.jsonl` file. */
interface PersonalLine {
  readonly seq: number
  /** 1, 2, …, if the file was read from its beginning. */
  readonly line: number
  readonly text: string
}

const NONE: readonly PersonalLine[] = []
const SEQ = /^\{"seq":(\d+),/

/** The record that a line of a `.personal.jsonl` file belongs to; undefined if it is no such line. */
function seqOf(text: string): number | undefined {
  const [, seq] = SEQ.exec(text) ?? []
  return seq === undefined ? undefined : Number(seq)
}

/** The `.personal.jsonl` file next to a segment, read in the order of the records. */
export class PersonalFile {
  readonly #files: FileWindows
  readonly #path: string
  readonly #stray: (line: number) => void
  /** A part of the file, and where it begins. */
  #bytes: Buffer = Buffer.alloc(0)
  #offset = 0
  /** Where the next line begins and ends, in that part. */
  #at = 0
  #end = 0
  #next: PersonalLine | undefined
  #line = 0
  /** Whether no line follows in the file. */
  #isEnded = false
  /** The record that was asked for last. */
  #seq = 0

  /** @param stray called with each line that belongs to no record, or is behind the lines of a later one */
  constructor(files: FileWindows, path: string, stray: (line: number) => void = () => undefined) {
    this.#files = files
    this.#path = path
    this.#stray = stray
  }

  /** The lines of a record behind those that were taken before. */
  take(seq: number): readonly PersonalLine[] {
    this.#seq = seq
    let next = this.#peek()
    for (; next !== undefined && next.seq < seq; next = this.#step()) this.#stray(next.line)
    if (next?.seq !== seq) return NONE
    const taken: PersonalLine[] = []
    for (; next?.seq === seq; next = this.#step()) taken.push(next)
    return taken
  }

  /** To be called behind the last record. Lines of later ones are legal: a power cut may have taken these. */
  end(): void {
    for (let next = this.#peek(); next !== undefined; next = this.#step())
      if (next.seq <= this.#seq) this.#stray(next.line)
  }

  /** The values of a record, wherever they are. Erased values are missing. */
  find(seq: number): readonly PersonalValue[] {
    // The values of the next row mostly follow, or are near.
    const isFound =
      this.#peek()?.seq === seq ||
      this.#goTo(seq, this.#offset + this.#at) ||
      this.#goTo(seq, this.#placeOf(seq))
    return isFound ? this.take(seq).flatMap(({ text }) => readValue(text) ?? []) : []
  }

  #peek(): PersonalLine | undefined {
    while (this.#next === undefined) {
      const end = this.#bytes.indexOf(LINE_END, this.#at)
      if (end < 0) {
        if (this.#isEnded || !this.#readOn()) return undefined
        continue
      }
      const text = this.#bytes.toString('utf8', this.#at, end)
      const seq = seqOf(text)
      this.#line += 1
      this.#end = end + 1
      if (seq === undefined) this.#at = this.#end
      else this.#next = { seq, line: this.#line, text }
    }
    return this.#next
  }

  #step(): PersonalLine | undefined {
    this.#at = this.#end
    this.#next = undefined
    return this.#peek()
  }

  /** Whether there is another line. */
  #readOn(): boolean {
    const rest = this.#bytes.length - this.#at
    this.#offset += this.#at
    this.#bytes = this.#files.read(this.#path, this.#offset, rest + 1)
    this.#at = 0
    this.#isEnded = !this.#bytes.includes(LINE_END)
    return !this.#isEnded
  }

  /** Whether the lines of the record are near a place. Then they are the next ones. */
  #goTo(seq: number, place: number): boolean {
    const bytes = this.#files.read(this.#path, place, SPAN)
    const at = bytes.subarray(0, SPAN).indexOf(`{"seq":${seq},`)
    if (at < 0) return false
    this.#bytes = bytes
    this.#offset = place
    this.#at = at
    this.#next = undefined
    this.#isEnded = false
    return true
  }

  /** Where a line of the file begins, less than SPAN before the values of this record. */
  #placeOf(seq: number): number {
    let low = 0
    let high = this.#files.size(this.#path)
    while (high - low > SPAN / 8) {
      const middle = Math.floor((low + high) / 2)
      const line = this.#lineAfter(middle)
      if (line !== undefined && line.start < high && line.seq < seq) low = line.start
      else high = middle
    }
    return low
  }

  /** The first line that begins behind an offset. */
  #lineAfter(offset: number): { readonly start: number; readonly seq: number } | undefined {
    const bytes = this.#files.read(this.#path, offset, 2 * LONGEST_LINE, 2 * LONGEST_LINE)
    const end = bytes.indexOf(LINE_END)
    const seq = end < 0 ? undefined : seqOf(bytes.toString('latin1', end + 1, end + 32))
    return seq === undefined ? undefined : { start: offset + end + 1, seq }
  }
}

/** A value as it is kept: with the random salt that its hash was made with. */
export interface PersonalValue {
  /** Where it belongs in the record: `actor.address`. */
  readonly name: string
  /** base64url. */
  readonly salt: string
  readonly value: string
}

/** As the writer makes it, if nothing in it is escaped. */
const PLAIN = /^\{"seq":\d+,"name":"([^"\\]*)","salt":"([^"\\]*)","value":"([^"\\]*)"\}$/

function readValue(text: string): PersonalValue | undefined {
  const [, name, salt, value] = PLAIN.exec(text) ?? []
  return name !== undefined && salt !== undefined && value !== undefined
    ? { name, salt, value }
    : parseValue(text)
}

function parseValue(text: string): PersonalValue | undefined {
  try {
    const { name, salt, value } = JSON.parse(text) as Partial<Record<keyof PersonalValue, unknown>>
    return typeof name === 'string' && typeof salt === 'string' && typeof value === 'string'
      ? { name, salt, value }
      : undefined
  } catch {
    return undefined
  }
}

export type PersonalHashes = Readonly<Record<string, string>>

const MEMBER = ',"personal":{'

/** The hashes of a record's values, by name. `text`: its line, each character of which is a byte. */
export function hashesIn(text: string): PersonalHashes | undefined {
  const start = text.lastIndexOf(MEMBER)
  if (start === -1) return undefined
  const end = text.lastIndexOf('},"hash":"') + 1
  return (
    (parseBytes(text.slice(start + MEMBER.length - 1, end)) as PersonalHashes | undefined) ??
    // It was the member of another object.
    (parseBytes(text) as { personal?: PersonalHashes } | undefined)?.personal
  )
}

/** What is wrong with the values of one record. */
interface CheckedValues {
  /** The lines of the `.personal.jsonl` file that are wrong. */
  readonly problems: readonly { readonly line: number; readonly what: string }[]
  /** How many of the values that the record names are not there. */
  readonly missing: number
}

export function checkPersonalValues(hashes: PersonalHashes, lines: readonly PersonalLine[]): CheckedValues {
  const missing = new Set(Object.keys(hashes))
  const problems: { line: number; what: string }[] = []
  for (const { line, text } of lines) {
    const { name = '', salt = '', value = '' } = readValue(text) ?? {}
    missing.delete(name)
    if (!Object.hasOwn(hashes, name))
      problems.push({ line, what: 'this value does not belong to its record' })
    else if (personalHash(salt, value) !== hashes[name])
      problems.push({ line, what: 'this personal value was changed' })
  }
  return { problems, missing: missing.size }
}

/** Whose values are meant: a subject, or the one of which only the SHA-256 is known. */
export type MeantSubject = { readonly subject: string } | { readonly digest: string }

export const digestOfSubject = (subject: string): string => hash('sha256', subject, 'base64url')

/** The values of a subject in one file. */
export interface SubjectValues {
  readonly subject: string
  /** The `.personal.jsonl` file next to a segment. */
  readonly path: string
  /** The `seq` of the records. */
  readonly seqs: ReadonlySet<number>
  readonly values: number
}

/** The segments that a trail has now. */
export const segmentsOf = (folder: string): readonly Segment[] => new Segments([folder]).all()

/** Finds what is to be erased in these segments: the values of all records whose actor or object is the subject. */
export function findSubjectValues(
  segments: readonly Segment[],
  meant: MeantSubject,
): readonly SubjectValues[] {
  const isMeant = isMeantBy(meant)
  return segments
    .map(({ path, personalPath }) => valuesIn(personalPath, recordsOf(path, meant, isMeant)))
    .filter(({ values }) => values > 0)
}

/** A trail names few people often, so each is hashed once. */
function isMeantBy(meant: MeantSubject): (subject: string) => boolean {
  if ('subject' in meant) return (subject) => subject === meant.subject
  const known = new Map<string, boolean>()
  return (subject) => {
    const isMeant = known.get(subject) ?? digestOfSubject(subject) === meant.digest
    known.set(subject, isMeant)
    return isMeant
  }
}

type RecordsOf = Pick<SubjectValues, 'subject' | 'seqs'>

function recordsOf(path: string, meant: MeantSubject, isMeant: ReturnType<typeof isMeantBy>): RecordsOf {
  const needle = Buffer.from('subject' in meant ? JSON.stringify(meant.subject) : MEMBER)
  const seqs = new Set<number>()
  let subject = ''
  const visit: LineVisitor = (bytes, start, end) => {
    const text = bytes.toString('latin1', start, end)
    const record = readRecordLine(text)
    if (record === undefined || hashesIn(text) === undefined) return
    const found = subjectsOf(text).all.find(isMeant)
    if (found === undefined) return
    subject = found
    seqs.add(record.seq)
  }
  readLines(path, visit, { needle })
  return { subject, seqs }
}

function valuesIn(path: string, { subject, seqs }: RecordsOf): SubjectValues {
  let values = 0
  if (seqs.size > 0) eachValue(path, (_line, seq) => (values += seqs.has(seq) ? 1 : 0))
  return { path, subject, seqs, values }
}

function eachValue(path: string, visit: (line: string, seq: number) => void): void {
  readLines(path, (bytes, start, end) => {
    const line = bytes.toString('utf8', start, end)
    visit(line, seqOf(line) ?? Number.NaN)
  })
}

/**
 * Writes the files anew, without the values, each as a whole. The records stay as they are, so the chain still verifies. The
 * caller records the erasure before, and holds the lock of the folder. Nothing may write to these segments any more: a file
 * is replaced by another of its name. Rejects with the system's error; a part may be done then.
 */
export async function eraseSubjectValues(found: readonly SubjectValues[]): Promise<void> {
  for (const { path, seqs } of found) {
    const kept: string[] = []
    eachValue(path, (line, seq) => {
      if (!seqs.has(seq)) kept.push(`${line}\n`)
    })
    await replaceFile(path, kept.join(''))
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.new`
  await rm(draft, { force: true })
  {
    await using file = await open(draft, 'wx', 0o600)
    await file.writeFile(text)
    await file.sync()
  }
  await rename(draft, path)
  await syncFolder(dirname(path))
}
