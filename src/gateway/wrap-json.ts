import { isAscii } from 'node:buffer'
import { Transform } from 'node:stream'
import type { JsonValue } from '../http/json-value.ts'
import { Fault } from '../kernel/faults.ts'

/** What surrounds a bare payload in an envelope (C8.6), by what the payload is. */
interface Wrapping {
  readonly before: Buffer
  readonly after: Buffer
  /** The same two as text. */
  readonly around: readonly [string, string]
}

const wrapping = (before: string, after: string): Wrapping => ({
  before: Buffer.from(before),
  after: Buffer.from(after),
  around: [before, after],
})

const OBJECT = wrapping('{"Errors":[],"Data":', '}')
const ARRAY = wrapping('{"Errors":[],"Data":{"Items":', '}}')
const SCALAR = wrapping('{"Errors":[],"Data":{"Value":', '}}')
export const EMPTY_ENVELOPE = Buffer.from('{"Errors":[],"Data":{}}')

const wrappingOf = (value: JsonValue): Wrapping =>
  Array.isArray(value) ? ARRAY : typeof value === 'object' ? OBJECT : SCALAR

const broken = (detail: string, cause?: unknown): Fault => new Fault('upstream_broken', { detail, cause })

/**
 * A bare JSON payload as an envelope, its bytes untouched (C8.6). It is parsed all the same, by the engine's own
 * parser, so that an upstream's broken JSON never goes out as ours. ASCII, which most of it is, is text as well as
 * bytes: the text that was parsed goes on, and is spared a copy. Throws Fault `upstream_broken`.
 */
export function wrapJson(bytes: Buffer): Buffer | string {
  const payload = withoutBom(bytes)
  const text = isAscii(payload) ? payload.toString('latin1') : undefined
  const value = parse(text ?? payload.toString())
  if (value === null) return EMPTY_ENVELOPE
  const { before, after, around } = wrappingOf(value)
  return text === undefined
    ? Buffer.concat([before, payload, after], before.length + payload.length + after.length)
    : `${around[0]}${text}${around[1]}`
}

function parse(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch (cause) {
    throw broken('the upstream answered JSON that does not parse', cause)
  }
}

const withoutBom = (bytes: Buffer): Buffer =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes

const BLANK = new Set([0x20, 0x09, 0x0a, 0x0d])
const FIRST_BYTES: ReadonlyMap<number, Wrapping> = new Map([
  [0x7b, OBJECT],
  [0x5b, ARRAY],
])

/**
 * The same for a payload too large to hold: told apart by its first byte, it streams through in constant memory, and
 * whether its JSON is whole is for the client to see, as with any stream.
 */
export function wrapJsonStream(): Transform {
  let chosen: Wrapping | undefined
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (chosen) {
        done(null, chunk)
        return
      }
      const bytes = withoutBom(chunk)
      const first = bytes.find((byte) => !BLANK.has(byte))
      if (first === undefined) {
        done()
        return
      }
      chosen = FIRST_BYTES.get(first) ?? SCALAR
      this.push(chosen.before)
      done(null, bytes)
    },
    flush(done) {
      done(null, chosen ? chosen.after : EMPTY_ENVELOPE)
    },
  })
}
