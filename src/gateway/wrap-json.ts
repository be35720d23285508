import { isAscii } from 'node:buffer'
import { Transform } from 'node:stream'
import type { JsonValue } from '../http/json-value.ts'
import { attempt, parseWhole, PassingJson, withoutBom } from './verify-json.ts'

/** What surrounds a bare payload in an envelope (C8.6), by what the payload is. */
interface Wrapping {
  readonly before: Buffer
  readonly after: Buffer
  /** The same two as text. */
  readonly around: readonly [string, string]
  /** Whether the payload itself is left out. */
  readonly empty: boolean
}

const wrapping = (before: string, after: string, empty = false): Wrapping => ({
  before: Buffer.from(before),
  after: Buffer.from(after),
  around: [before, after],
  empty,
})

const OBJECT = wrapping('{"Errors":[],"Data":', '}')
const ARRAY = wrapping('{"Errors":[],"Data":{"Items":', '}}')
const SCALAR = wrapping('{"Errors":[],"Data":{"Value":', '}}')
const NULL = wrapping('{"Errors":[],"Data":{', '}}', true)
export const EMPTY_ENVELOPE = Buffer.concat([NULL.before, NULL.after])

const wrappingOf = (value: JsonValue): Wrapping =>
  Array.isArray(value) ? ARRAY : typeof value === 'object' ? OBJECT : SCALAR

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
  const { before, after, around } = wrappingOf(value)
  return text === undefined
    ? Buffer.concat([before, payload, after], before.length + payload.length + after.length)
    : `${around[0]}${text}${around[1]}`
}

/** The text of bytes that are ASCII alone. */
export const asciiOf = (bytes: Buffer): string | undefined =>
  isAscii(bytes) ? bytes.toString('latin1') : undefined

const BLANK = new Set([0x20, 0x09, 0x0a, 0x0d])
const FIRST_BYTES: ReadonlyMap<number, Wrapping> = new Map([
  [0x7b, OBJECT],
  [0x5b, ARRAY],
  [0x6e, NULL],
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
    const first = bytes.find((byte) => !BLANK.has(byte))
    if (first === undefined) return NOTHING
    chosen = FIRST_BYTES.get(first) ?? SCALAR
    return chosen.empty ? chosen.before : Buffer.concat([chosen.before, bytes])
  }
  const end = (): Buffer => {
    if (empty) return EMPTY_ENVELOPE
    json.end()
    return (chosen ?? SCALAR).after
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
