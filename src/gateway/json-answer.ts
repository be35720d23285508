import { isAscii, isUtf8 } from 'node:buffer'
import { Transform, type TransformCallback } from 'node:stream'
import { isEnvelope, shapeOf, TEXT_AROUND, type PayloadShape } from '../http/envelope.ts'
import { JsonScan, NotJson } from '../http/json-scan.ts'
import type { JsonValue } from '../http/json-value.ts'
import { Fault } from '../kernel/faults.ts'

/** The fault of an upstream's JSON that is none (C8.4). */
const notJson = (detail: string, cause?: unknown): Fault => new Fault('upstream_broken', { detail, cause })

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const

/** Without the byte order mark that no JSON begins with (RFC 8259 §8.1), though many senders write one. */
export const withoutBom = (bytes: Buffer): Buffer =>
  BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte) ? bytes.subarray(BYTE_ORDER_MARK.length) : bytes

/** The value of a body that is there whole. Throws Fault `upstream_broken` unless it is JSON in UTF-8. */
function parseWhole(bytes: Buffer, text: string | undefined): JsonValue {
  if (text === undefined && !isUtf8(bytes)) throw notJson('the upstream answered JSON that is not UTF-8')
  try {
    return JSON.parse(text ?? bytes.toString()) as JsonValue
  } catch (cause) {
    throw notJson('the upstream answered JSON that does not parse', cause)
  }
}

/** JSON that is verified as it passes: the bytes, without their byte order mark, wherever they were cut. */
class PassingJson {
  readonly #scan: JsonScan
  #bom = 0

  /** @param envelope whether it must be one */
  constructor(envelope: boolean) {
    this.#scan = new JsonScan(envelope)
  }

  /** Throws Fault `upstream_broken` where they are no JSON. */
  pass(chunk: Buffer): Buffer {
    const bytes = this.#bom < BYTE_ORDER_MARK.length ? this.#afterBom(chunk) : chunk
    this.#check(() => this.#scan.write(bytes))
    return bytes
  }

  /** Throws Fault `upstream_broken` where they are no whole document. */
  end(): void {
    this.#check(() => this.#scan.end())
  }

  /** A mark that is not whole is left where it was: no JSON begins so. */
  #afterBom(chunk: Buffer): Buffer {
    let at = 0
    while (at < chunk.length && chunk[at] === BYTE_ORDER_MARK[this.#bom]) {
      at++
      this.#bom++
    }
    if (at === chunk.length && this.#bom < BYTE_ORDER_MARK.length) return chunk.subarray(at)
    if (this.#bom > 0 && this.#bom < BYTE_ORDER_MARK.length)
      throw notJson('the upstream answered half a byte order mark')
    this.#bom = BYTE_ORDER_MARK.length
    return chunk.subarray(at)
  }

  #check(step: () => void): void {
    try {
      step()
    } catch (thrown) {
      if (thrown instanceof NotJson)
        throw notJson(`the upstream streamed JSON that is none: ${thrown.message}`)
      throw thrown
    }
  }
}

/** An upstream's own envelope that is there whole, as it came. Throws Fault `upstream_broken` if it is none (C8.4). */
export function verifyEnvelope(bytes: Buffer, text: string | undefined): void {
  if (!isEnvelope(parseWhole(bytes, text)))
    throw notJson('the upstream answered something else than an envelope')
}

const BLANK = 0x20

/**
 * An upstream's own envelope that streams through: it breaks where it is none, so that the client is cut off (C8.4).
 * @param declared whether its length was told to the client: then its last byte waits for the verdict, as an answer of
 *   that length would look whole; and a byte order mark becomes blanks, which JSON may begin with
 */
export function envelopeStream(declared: boolean): Transform {
  const json = new PassingJson(true)
  let held: Buffer | undefined
  const give = (chunk: Buffer): Buffer => {
    const bytes = json.pass(chunk)
    if (!declared) return bytes
    const given = Buffer.concat([
      held ?? Buffer.alloc(0),
      Buffer.alloc(chunk.length - bytes.length, BLANK),
      bytes,
    ])
    held = given.subarray(-1)
    return given.subarray(0, -1)
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      attempt(done, () => give(chunk))
    },
    flush(done) {
      attempt(done, () => (json.end(), held))
    },
  })
}

/** Hands what a step gives to a stream, or the fault that it throws. */
export function attempt(done: TransformCallback, step: () => Buffer | undefined): void {
  let given: Buffer | undefined
  try {
    given = step()
  } catch (thrown) {
    done(thrown as Error)
    return
  }
  done(null, given?.length === 0 ? undefined : given)
}

interface Wrapping {
  readonly before: Buffer
  readonly after: Buffer
  /** Whether the payload itself is left out. */
  readonly empty: boolean
}

const wrappingOf = (shape: PayloadShape): Wrapping => {
  const [before, after] = TEXT_AROUND[shape]
  return { before: Buffer.from(before), after: Buffer.from(after), empty: shape === 'null' }
}

const WRAPPINGS: Readonly<Record<PayloadShape, Wrapping>> = {
  object: wrappingOf('object'),
  array: wrappingOf('array'),
  scalar: wrappingOf('scalar'),
  null: wrappingOf('null'),
}
const EMPTY_ENVELOPE = Buffer.from(TEXT_AROUND.null.join(''))

/**
 * A bare JSON payload as an envelope, its bytes untouched (C8.6). It is parsed all the same, by the engine's own
 * parser, so that an upstream's broken JSON never goes out as ours. ASCII, which most of it is, is text as well as
 * bytes: the text that was parsed goes on, and is spared a copy. Throws Fault `upstream_broken`.
 */
export function wrapJson(bytes: Buffer): Buffer | string {
  const payload = withoutBom(bytes)
  const text = asciiOf(payload)
  const value = parseWhole(payload, text)
  if (value === null) return EMPTY_ENVELOPE
  const shape = shapeOf(value)
  const [textBefore, textAfter] = TEXT_AROUND[shape]
  if (text !== undefined) return `${textBefore}${text}${textAfter}`
  const { before, after } = WRAPPINGS[shape]
  return Buffer.concat([before, payload, after])
}

/** The text of bytes that are ASCII alone. */
export const asciiOf = (bytes: Buffer): string | undefined =>
  isAscii(bytes) ? bytes.toString('latin1') : undefined

const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])
const FIRST_BYTES: ReadonlyMap<number, Wrapping> = new Map([
  [0x7b, WRAPPINGS.object],
  [0x5b, WRAPPINGS.array],
  [0x6e, WRAPPINGS.null],
])

/**
 * The same for a payload too large to hold: told apart by its first byte, it streams through in constant memory, and
 * breaks where it is no JSON, so that the client is cut off (C8.4). What surrounds it is whole only behind a whole one.
 */
export function wrapJsonStream(): Transform {
  const json = new PassingJson(false)
  let chosen: Wrapping | undefined
  let empty = true
  const give = (chunk: Buffer): Buffer => {
    empty &&= chunk.length === 0
    const bytes = json.pass(chunk)
    if (chosen) return chosen.empty ? NOTHING : bytes
    const first = bytes.find((byte) => !BLANKS.has(byte))
    if (first === undefined) return NOTHING
    chosen = FIRST_BYTES.get(first) ?? WRAPPINGS.scalar
    return chosen.empty ? chosen.before : Buffer.concat([chosen.before, bytes])
  }
  const end = (): Buffer => {
    if (empty) return EMPTY_ENVELOPE
    json.end()
    return (chosen ?? WRAPPINGS.scalar).after
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      attempt(done, () => give(chunk))
    },
    flush(done) {
      attempt(done, end)
    },
  })
}

const NOTHING = Buffer.alloc(0)
