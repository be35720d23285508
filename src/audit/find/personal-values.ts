/** Finds the personal values of a record in the file beside (C12.2.3). They stand there in the order of the records. */
import type { FileWindows } from './file-window.ts'

/** The longest line: a value of 256 bytes, of which each may be written as `\u0000`. */
const LONGEST_LINE = 2048
/** Bytes that are searched for the values of one record: 64 of them at most, each a line. */
const SPAN = 192 * 1024
const LINE_END = 0x0a
/** A personal value as it is kept: with the random salt that its hash was made with. */
export interface PersonalValue {
  /** Where it belongs in the record: `actor.address`. */
  readonly name: string
  /** base64url. */
  readonly salt: string
  readonly value: string
}

/** Files of which the last place is remembered. */
const MOST_PLACES = 256

export class PersonalValues {
  readonly #files: FileWindows
  /** By file: where the last values were found. The next ones mostly follow. */
  readonly #places = new Map<string, number>()

  constructor(files: FileWindows) {
    this.#files = files
  }

  /** The values of the record `seq`. Those that were erased are missing. */
  of(path: string, seq: number): readonly PersonalValue[] {
    const after = this.#places.get(path)
    const near = after === undefined ? [] : this.#from(path, after, seq)
    return near.length > 0 ? near : this.#from(path, placeOf(this.#files, path, seq), seq)
  }

  #from(path: string, start: number, seq: number): readonly PersonalValue[] {
    const bytes = this.#files.read(path, start, SPAN).subarray(0, SPAN)
    const needle = Buffer.from(`{"seq":${seq},`)
    const values: PersonalValue[] = []
    for (let at = bytes.indexOf(needle); at >= 0;) {
      const end = bytes.indexOf(LINE_END, at)
      if (end < 0) break
      const value = readValue(bytes.toString('utf8', at, end))
      if (value !== undefined) values.push(value)
      this.#remember(path, start + end + 1)
      const next = end + 1
      at = bytes.subarray(next, next + needle.length).equals(needle) ? next : -1
    }
    return values
  }

  #remember(path: string, place: number): void {
    if (this.#places.size >= MOST_PLACES) this.#places.clear()
    this.#places.set(path, place)
  }
}

/** Where a line of the file begins, less than SPAN before the values of this record. */
function placeOf(files: FileWindows, path: string, seq: number): number {
  let low = 0
  let high = files.size(path)
  while (high - low > SPAN / 8) {
    const middle = Math.floor((low + high) / 2)
    const line = lineAfter(files, path, middle)
    if (line !== undefined && line.start < high && line.seq < seq) low = line.start
    else high = middle
  }
  return low
}

const SEQ = /^\{"seq":(\d+),/

/** The first line that begins behind an offset. */
function lineAfter(
  files: FileWindows,
  path: string,
  offset: number,
): { readonly start: number; readonly seq: number } | undefined {
  const bytes = files.read(path, offset, 2 * LONGEST_LINE, 2 * LONGEST_LINE)
  const end = bytes.indexOf(LINE_END)
  if (end < 0) return undefined
  const [, seq] = SEQ.exec(bytes.toString('latin1', end + 1, end + 32)) ?? []
  return seq === undefined ? undefined : { start: offset + end + 1, seq: Number(seq) }
}

function readValue(line: string): PersonalValue | undefined {
  try {
    const value = JSON.parse(line) as Partial<PersonalValue>
    const whole = [value.name, value.salt, value.value].every((each) => typeof each === 'string')
    return whole ? (value as PersonalValue) : undefined
  } catch {
    return undefined
  }
}
