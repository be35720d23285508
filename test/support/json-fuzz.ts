/** Generated and damaged JSON documents, judged by our check and by the engine's parser. */
import { isUtf8 } from 'node:buffer'
import { isEnvelope } from '../../src/base/http/envelope.ts'
import type { JsonValue } from '../../src/base/http/body/json.ts'
import { checkJson, JsonCheck, NotJson } from '../../src/base/http/body/json-check.ts'
import { damage, envelopeText, valueText } from './json-texts.ts'
import { below, type Random, randomFrom, several } from './seeded-random.ts'

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
