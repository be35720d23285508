/** Checks the personal values of records against the hashes in their lines (C12.2.3). */
import { hash } from 'node:crypto'
import { chunkBuffer, chunksOf, eachLine } from '../find/chunks.ts'

const MEMBER = ',"personal":{'
const SEQ = /^\{"seq":(\d+),/

/** A line of the file beside. */
interface BesideLine {
  readonly seq: number
  readonly line: number
  readonly text: string
}

/** The file beside a segment, read once from its beginning to its end, as its records are. */
export class BesideReader {
  readonly #lines: Generator<BesideLine, undefined>
  readonly #stray: (line: number) => void
  #next: BesideLine | undefined
  /** The record that was asked for last. */
  #seq = 0

  /** @param stray called with each line that belongs to no record, or stands behind the lines of a later one */
  constructor(path: string, stray: (line: number) => void) {
    this.#lines = besideLines(path)
    this.#stray = stray
    this.#step()
  }

  /** The lines of this record. */
  take(seq: number): readonly BesideLine[] {
    this.#seq = seq
    let next = this.#next
    for (; next !== undefined && next.seq < seq; next = this.#step()) this.#stray(next.line)
    if (next?.seq !== seq) return NONE
    const taken: BesideLine[] = []
    for (; next !== undefined && next.seq === seq; next = this.#step()) taken.push(next)
    return taken
  }

  #step(): BesideLine | undefined {
    this.#next = this.#lines.next().value
    return this.#next
  }

  /** Lines of later records are legal: values are written before their records, which a power cut may take. */
  close(): void {
    for (let next = this.#next; next !== undefined; next = this.#step())
      if (next.seq <= this.#seq) this.#stray(next.line)
    this.#lines.return(undefined)
  }
}

const NONE: readonly BesideLine[] = []

function* besideLines(path: string): Generator<BesideLine, undefined> {
  let line = 0
  for (const { bytes } of chunksOf(path, chunkBuffer())) {
    const lines: BesideLine[] = []
    eachLine(bytes, undefined, (start, end) => {
      line += 1
      const text = bytes.toString('utf8', start, end)
      const [, seq] = SEQ.exec(text) ?? []
      if (seq !== undefined) lines.push({ seq: Number(seq), line, text })
    })
    yield* lines
  }
  return undefined
}

type Hashes = Readonly<Record<string, string>>

/** The hashes of a record's personal values, by name. `text`: its line, of which each character is a byte. */
export function personalHashes(text: string): Hashes | undefined {
  const start = text.lastIndexOf(MEMBER)
  if (start === -1) return undefined
  const end = text.lastIndexOf('},"hash":"') + 1
  return (
    (parseBytes(text.slice(start + MEMBER.length - 1, end)) as Hashes | undefined) ??
    // It was the member of another object.
    (parseBytes(text) as { personal?: Hashes } | undefined)?.personal
  )
}

/** Undefined if it is no JSON: the line was changed. */
function parseBytes(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'latin1').toString('utf8')) as unknown
  } catch {
    return undefined
  }
}

export interface PersonalProblem {
  /** Of the file beside. */
  readonly line: number
  readonly what: string
}

/** What is wrong with the values of one record. */
export interface CheckedValues {
  readonly problems: readonly PersonalProblem[]
  /** How many of the values that the record names are not there. */
  readonly missing: number
}

const WHOLE: CheckedValues = { problems: [], missing: 0 }

export function checkValues(
  hashes: Readonly<Record<string, string>>,
  lines: readonly BesideLine[],
): CheckedValues {
  const names = Object.keys(hashes)
  if (lines.length === 0) return { problems: [], missing: names.length }
  const problems: PersonalProblem[] = []
  const present = new Set<string>()
  for (const { line, text } of lines) {
    const { name, salt, value } = readValue(text)
    present.add(name)
    const expected = Object.hasOwn(hashes, name) ? hashes[name] : undefined
    if (expected === undefined) problems.push({ line, what: 'this value does not belong to its record' })
    else if (saltedHash(salt, value) !== expected)
      problems.push({ line, what: 'this personal value was changed' })
  }
  const missing = names.filter((name) => !present.has(name)).length
  return problems.length === 0 && missing === 0 ? WHOLE : { problems, missing }
}

interface ReadValue {
  readonly name: string
  readonly salt: string
  readonly value: string
}

const UNREADABLE: ReadValue = { name: '', salt: '', value: '' }
/** As the writer makes it, if nothing in it is escaped. */
const PLAIN = /^\{"seq":\d+,"name":"([^"\\]*)","salt":"([^"\\]*)","value":"([^"\\]*)"\}$/

function readValue(text: string): ReadValue {
  const [, name, salt, value] = PLAIN.exec(text) ?? []
  return name !== undefined && salt !== undefined && value !== undefined
    ? { name, salt, value }
    : parseValue(text)
}

function parseValue(text: string): ReadValue {
  try {
    const { name, salt, value } = JSON.parse(text) as Partial<Record<keyof ReadValue, unknown>>
    return typeof name === 'string' && typeof salt === 'string' && typeof value === 'string'
      ? { name, salt, value }
      : UNREADABLE
  } catch {
    return UNREADABLE
  }
}

const scratch = Buffer.alloc(16 * 1024)

/** As `personalHash`, without the copies. */
function saltedHash(salt: string, value: string): string {
  if (value.length > scratch.length / 4 || salt.length > 64) return ''
  const end = scratch.write(salt, 'base64url')
  return hash('sha256', scratch.subarray(0, end + scratch.write(value, end)), 'base64url')
}
