import { Buffer, isUtf8 } from 'node:buffer'
import { JSON_CHECK } from './json-check.wasm.ts'

/** In UTF-8. JSON must not begin with one (RFC 8259 §8.1), but many senders write it. */
export const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const

export const hasByteOrderMark = (bytes: Uint8Array): boolean =>
  BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte)

/** A document that is no JSON, or not of the shape that was promised. `message` says where, in bytes from 0. */
export class NotJson extends Error {
  override readonly name = 'NotJson'
}

/** The exports of `json-check.wat`. Its memory holds the record of one open document, and one piece of it. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly PIECE: { readonly value: number }
  readonly MOST_PIECE: { readonly value: number }
  readonly begin: (envelope: number) => void
  /** @returns the place of the first byte that is wrong, or a negative number */
  readonly check: (length: number) => number
  readonly verdict: () => number
  readonly recordLength: () => number
}

/** The part that is used here: TypeScript has its types in those of browsers only. */
declare const WebAssembly: {
  readonly Module: new (binary: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: unknown }
}

const { memory, PIECE, MOST_PIECE, begin, check, verdict, recordLength } = new WebAssembly.Instance(
  new WebAssembly.Module(Buffer.from(JSON_CHECK, 'base64')),
).exports as Exports
const MEMORY = new Uint8Array(memory.buffer)
const AT: number = PIECE.value
const MOST: number = MOST_PIECE.value

/** The piece is right as far as its grammar goes, and not all ASCII. */
const NOT_ASCII = -2

const WHOLE = 0
/** What `verdict` says of a document that was stopped; the first where more follows one that is whole. */
const WHY = ['is no JSON', 'is no JSON', 'is nested more than 10000 levels deep', 'is no envelope']
const NO_ENVELOPE = 3

/**
 * Whether bytes are one JSON document in UTF-8 (RFC 8259), found out piece by piece as they pass, in constant memory. With
 * `envelope` whether it is an envelope (C2.1) too. The last of a repeated member counts, as in JSON.parse. No byte order
 * mark.
 */
export class JsonCheck {
  #record: Uint8Array
  #passed = 0
  /** A sequence of UTF-8 that the last piece began and did not end. */
  #cut = NOTHING

  constructor(envelope = false) {
    begin(Number(envelope))
    this.#record = savedRecord()
  }

  /** @throws NotJson as soon as it is known */
  write(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length; from += MOST) this.#writePiece(bytes.subarray(from, from + MOST))
  }

  /** @throws NotJson if the document is not whole */
  end(): void {
    MEMORY.set(this.#record)
    checkEnd(this.#passed)
  }

  #writePiece(bytes: Uint8Array): void {
    MEMORY.set(this.#record)
    MEMORY.set(bytes, AT)
    const result = check(bytes.length)
    if (result >= 0 || result === NOT_ASCII || this.#cut.length > 0) this.#checkText(bytes, result)
    this.#record = savedRecord()
    this.#passed += bytes.length
  }

  /** The first error counts: a byte that is no UTF-8, or the one that the grammar stopped at. */
  #checkText(bytes: Uint8Array, stoppedAt: number): void {
    const read = stoppedAt >= 0 ? bytes.subarray(0, stoppedAt) : bytes
    const text = this.#cut.length > 0 ? Buffer.concat([this.#cut, read]) : read
    if (!beginsUtf8(text)) throw notJson(WHY[WHOLE], this.#passed - this.#cut.length + lengthOfUtf8(text))
    if (stoppedAt >= 0) throw notJson(WHY[verdict()], this.#passed + stoppedAt)
    this.#cut = Uint8Array.from(text.subarray(text.length - openBytes(text)))
  }
}

/** The same for a document that is whole. @throws NotJson */
export function checkJson(bytes: Uint8Array, envelope = false): void {
  if (bytes.length <= MOST) {
    begin(Number(envelope))
    MEMORY.set(bytes, AT)
    const result = check(bytes.length)
    if (result < 0 && (result !== NOT_ASCII || isUtf8(bytes))) {
      checkEnd(bytes.length)
      return
    }
  }
  const pieces = new JsonCheck(envelope)
  pieces.write(bytes)
  pieces.end()
}

const savedRecord = (): Uint8Array => MEMORY.slice(0, recordLength())

function checkEnd(length: number): void {
  const ended = verdict()
  if (ended === WHOLE) return
  throw ended === NO_ENVELOPE && length > 0
    ? new NotJson('it is no envelope: its Errors is no list of errors, or its Data no object')
    : new NotJson(`it ends at byte ${length}`)
}

const notJson = (why: string | undefined, at: number): NotJson => new NotJson(`it ${why} at byte ${at}`)

const NOTHING = new Uint8Array(0)
const FIRST_OF_MANY = 0xc0
const ASCII = 0x80
/** The least and the greatest byte that continues a sequence. */
const CONTINUATIONS = [0x80, 0xbf] as const

/** Whether the bytes are UTF-8; their last sequence may be incomplete. */
const beginsUtf8 = (text: Uint8Array): boolean => isUtf8(text.subarray(0, text.length - openBytes(text)))

/** How many bytes at the end begin a sequence that others can end. */
function openBytes(text: Uint8Array): number {
  for (let count = 1; count <= 3; count++) {
    const byte = text[text.length - count] ?? 0
    if (byte >= FIRST_OF_MANY) return isOpen(text.subarray(text.length - count), byte) ? count : 0
    if (byte < ASCII) return 0
  }
  return 0
}

/** Every beginning that is right is ended by bytes that are all the least, or all the greatest (RFC 3629 §4). */
function isOpen(sequence: Uint8Array, first: number): boolean {
  const missing = (first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4) - sequence.length
  return (
    missing > 0 &&
    CONTINUATIONS.some((byte) => isUtf8(Buffer.concat([sequence, Buffer.alloc(missing, byte)])))
  )
}

/** The place of the first byte with which a text is no UTF-8. */
function lengthOfUtf8(text: Uint8Array): number {
  let [right, wrong] = [0, text.length]
  while (wrong - right > 1) {
    const middle = (right + wrong) >> 1
    if (beginsUtf8(text.subarray(0, middle))) right = middle
    else wrong = middle
  }
  return right
}
