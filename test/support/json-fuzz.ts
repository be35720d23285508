/** Generated and damaged JSON documents, judged by our check and by the engine's parser. */
import { isUtf8 } from 'node:buffer'
import { isEnvelope } from '../../src/base/http/envelope.ts'
import type { JsonValue } from '../../src/base/http/body/json.ts'
import { checkJson, JsonCheck, NotJson } from '../../src/base/http/body/json-check.ts'
import { below, oneOf, type Random, randomFrom, several } from './seeded-random.ts'

export interface JsonVerdict {
  readonly kind: 'both accept' | 'both refuse' | 'only we accept' | 'only we refuse' | 'pieces differ'
  readonly why: string
}

/** Whether the engine takes bytes for JSON, or for an envelope. */
export function engineAccepts(bytes: Buffer, envelope: boolean): boolean {
  if (!isUtf8(bytes)) return false
  try {
    const value = JSON.parse(bytes.toString()) as JsonValue
    return !envelope || isEnvelope(value)
  } catch {
    return false
  }
}

/** What our check says of a whole document; undefined if it accepts it. */
export const faultOf = (bytes: Uint8Array, envelope: boolean): string | undefined =>
  messageOf(() => checkJson(bytes, envelope))

/** The same of one that comes in pieces, cut at these places. */
export const faultInPieces = (
  bytes: Uint8Array,
  cuts: readonly number[],
  envelope: boolean,
): string | undefined =>
  messageOf(() => {
    const check = new JsonCheck(envelope)
    let from = 0
    for (const to of [...cuts, bytes.length]) {
      check.write(bytes.subarray(from, to))
      from = to
    }
    check.end()
  })

function messageOf(step: () => void): string | undefined {
  try {
    step()
    return undefined
  } catch (thrown) {
    if (thrown instanceof NotJson) return thrown.message
    throw thrown
  }
}

export function* fuzzJson(cases: number, seed: number): Generator<JsonVerdict> {
  const random = randomFrom(seed)
  for (let count = 0; count < cases; count++) {
    const envelope = below(random, 2) === 0
    yield judged(bytesFor(random, envelope), envelope, random)
  }
}

/** Documents up to this length are cut at every place. */
const SHORT = 60

function judged(bytes: Buffer, envelope: boolean, random: Random): JsonVerdict {
  const fault = faultOf(bytes, envelope)
  const places = Array.from({ length: bytes.length }, (_, at) => at)
  const ways =
    bytes.length <= SHORT
      ? [...places.map((at) => [at]), places]
      : [several(random, 8, () => below(random, bytes.length)).toSorted((a, b) => a - b)]
  const differing = ways.find((cuts) => faultInPieces(bytes, cuts, envelope) !== fault)
  const why = `${envelope ? 'envelope ' : ''}${JSON.stringify(bytes.subarray(-500).toString('latin1'))}: ${fault}`
  if (differing)
    return {
      kind: 'pieces differ',
      why: `${why}; cut at ${differing.join()}: ${faultInPieces(bytes, differing, envelope)}`,
    }
  const accepted = engineAccepts(bytes, envelope)
  if (fault === undefined) return { kind: accepted ? 'both accept' : 'only we accept', why }
  return { kind: accepted ? 'only we refuse' : 'both refuse', why }
}

function bytesFor(random: Random, envelope: boolean): Buffer {
  const text = envelope && below(random, 8) > 0 ? envelopeText(random) : valueText(random, 0)
  const bytes = Buffer.from(text)
  const damaged = below(random, 2) === 0 ? damage(random, bytes) : bytes
  // A long document, whose interesting part stands where a piece of 48 KiB ends.
  if (below(random, 50) > 0) return damaged
  return Buffer.concat([Buffer.alloc(48 * 1024 - below(random, damaged.length + 1), ' '), damaged])
}

const TEXTS = [
  ...['', 'a', 'Errors', 'Data', 'Code', 'Message', 'Errors ', 'Messages', 'hello world, a longer text'],
  ...['é', '€uro', '😀', 'x'.repeat(15), 'x'.repeat(16), 'x'.repeat(17), 'y'.repeat(40)],
  ...['q"q', 'b\\b', '\n\t', '\u0000', '\ud800', '\u2028', '\u007f'],
]
const NUMBERS = ['0', '-0', '1', '-12', '1.5', '1e5', '1E+5', '0.25e-10', '9'.repeat(20), '1e999']
const BLANKS = [' ', '\n', '\n    ', '\t', '\r\n', ' '.repeat(20), `\n${' '.repeat(15)}`]

const blank = (random: Random): string => (below(random, 6) > 0 ? '' : oneOf(random, BLANKS))
const around = (random: Random, text: string): string => blank(random) + text + blank(random)
const joined = (random: Random, most: number, make: () => string): string =>
  several(random, most, make).join(`${blank(random)},`)

/** A string, some of its characters escaped though they need not be. */
function stringText(random: Random, text: string): string {
  const written = Array.from(text, (character) => {
    if (character.length > 1 || below(random, 12) > 0) return JSON.stringify(character).slice(1, -1)
    const digits = character.charCodeAt(0).toString(16).padStart(4, '0')
    return `\\u${below(random, 2) === 0 ? digits : digits.toUpperCase()}`
  })
  return `"${written.join('')}"`
}

function valueText(random: Random, depth: number): string {
  const kind = below(random, depth > 4 ? 6 : 9)
  if (kind === 0) return around(random, oneOf(random, NUMBERS))
  if (kind === 1) return around(random, oneOf(random, ['true', 'false', 'null']))
  if (kind < 6) return around(random, stringText(random, oneOf(random, TEXTS)))
  if (kind === 6)
    return around(random, `[${joined(random, 3, () => valueText(random, depth + 1))}${blank(random)}]`)
  return around(
    random,
    `{${joined(random, 3, () => memberText(random, TEXTS, valueText(random, depth + 1)))}}`,
  )
}

const memberText = (random: Random, names: readonly string[], value: string): string =>
  `${around(random, stringText(random, oneOf(random, names)))}:${value}`

const envelopeText = (random: Random): string =>
  around(random, `{${joined(random, 5, () => topMember(random))}}`)

function topMember(random: Random): string {
  const kind = below(random, 5)
  if (kind === 0) return memberText(random, TEXTS, valueText(random, 2))
  if (kind < 3) return memberText(random, ['Errors'], blank(random) + errorsText(random))
  return memberText(random, ['Data'], below(random, 4) > 0 ? '{}' : valueText(random, 2))
}

const errorsText = (random: Random): string =>
  below(random, 5) === 0 ? valueText(random, 3) : `[${joined(random, 2, () => errorText(random))}]`

function errorText(random: Random): string {
  const kind = below(random, 4)
  if (kind === 0) return valueText(random, 3)
  if (kind < 3) return around(random, '{"Code":"a","Message":"b"}')
  const names = ['Code', 'Message', 'Code', 'Message', 'x', 'Errors']
  const value = (): string =>
    below(random, 6) > 0 ? stringText(random, oneOf(random, TEXTS)) : valueText(random, 3)
  return `{${joined(random, 4, () => memberText(random, names, value()))}}`
}

const TELLING = [
  ...Buffer.from('"\\{}[],:.-+eE0u19tfn \n\t\u0000\u001f\u007f/bnr'),
  ...[0x80, 0x9f, 0xa0, 0xbf, 0xc0, 0xc3, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff],
]

/** One or two bytes replaced, put in or taken away. */
function damage(random: Random, bytes: Buffer): Buffer {
  let damaged = [...bytes]
  for (let left = 1 + below(random, 2); left > 0; left--) {
    const byte = below(random, 8) > 0 ? oneOf(random, TELLING) : below(random, 256)
    const put = below(random, 3) > 0 ? [byte] : []
    damaged = damaged.toSpliced(below(random, damaged.length + 1), below(random, 3), ...put)
  }
  return Buffer.from(damaged)
}
