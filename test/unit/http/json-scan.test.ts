import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isEnvelope } from '../../../src/http/envelope.ts'
import type { JsonValue } from '../../../src/http/json.ts'
import { JsonScan } from '../../../src/http/json-scan.ts'

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** What the engine says: UTF-8, and JSON. */
function parsed(bytes: Uint8Array): { readonly value: JsonValue } | undefined {
  try {
    return { value: JSON.parse(strict.decode(bytes)) as JsonValue }
  } catch {
    return undefined
  }
}

/** Scans bytes in pieces that are cut at these places. */
function passes(bytes: Uint8Array, cuts: readonly number[] = [], envelope = false): boolean {
  const scan = new JsonScan(envelope)
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  try {
    let from = 0
    for (const to of [...places, bytes.length]) {
      scan.write(bytes.subarray(from, to))
      from = to
    }
    scan.end()
    return true
  } catch (thrown) {
    expect((thrown as Error).name).toBe('NotJson')
    return false
  }
}

const bytesOf = (text: string): Buffer => Buffer.from(text)
const cuts = fc.array(fc.nat(500), { maxLength: 8 })
const spaces = fc.constantFrom(undefined, 1, '\t')
const document = fc
  .tuple(fc.jsonValue({ maxDepth: 5 }), spaces)
  .map(([value, space]) => JSON.stringify(value, null, space))
/** A document with some bytes replaced, put in or taken away. */
const mutated = fc
  .tuple(
    document,
    fc.array(
      fc.tuple(
        fc.nat(300),
        fc.nat(2),
        fc.oneof(fc.nat(255), fc.constantFrom(...bytesOf('"\\{}[],:.-+eE0u \n'))),
      ),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([text, changes]) => {
    let bytes = [...bytesOf(text)]
    for (const [place, deleted, byte] of changes)
      bytes = bytes.toSpliced(place % (bytes.length + 1), deleted, byte)
    return Buffer.from(bytes)
  })

const SAMPLES = [
  ...[
    '',
    ' ',
    'null',
    ' true ',
    'false',
    'nul',
    'nullx',
    'null null',
    '0',
    '-0',
    '01',
    '-',
    '1.',
    '.5',
    '1.5e',
    '1e+5',
    '1E-05',
    '+1',
  ],
  ...[
    '""',
    '"',
    '"\\"',
    '"\\u00',
    '"\\u00zz"',
    '"\\ud800"',
    '"\\x"',
    '"a\nb"',
    '"\x7f"',
    '{}',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{a:1}',
  ],
  ...[
    '[]',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[1]]',
    '{]',
    '[}',
    '{"a":[{"b":null}]}',
    '<html></html>',
    "{'a':1}",
    '[1,2',
    '{"a":1',
    'NaN',
    'Infinity',
  ],
]
const BYTES = [
  ...[
    [0x22, 0xc3, 0xa9, 0x22],
    [0x22, 0xc0, 0x80, 0x22],
    [0x22, 0xe0, 0x80, 0x80, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
  ],
  ...[
    [0x22, 0xf0, 0x9f, 0x98, 0x80, 0x22],
    [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22],
    [0x22, 0xf5, 0x80, 0x80, 0x80, 0x22],
    [0x22, 0x80, 0x22],
  ],
  ...[
    [0x22, 0xc3, 0x22],
    [0xa0, 0x31],
    [0x22, 0xff, 0x22],
    [0xef, 0xbb, 0xbf, 0x31],
    [0x22, 0xef, 0xbb, 0xbf, 0x22],
  ],
].map((each) => Buffer.from(each))

describe('C8.4 a scan of JSON in pieces', () => {
  it.each([...SAMPLES.map(bytesOf), ...BYTES].map((bytes) => [bytes.toString('latin1'), bytes]))(
    'says of %j what JSON.parse says, cut anywhere',
    (_text, bytes) => {
      const expected = parsed(bytes) !== undefined
      expect(passes(bytes)).toBe(expected)
      for (let cut = 0; cut <= bytes.length; cut++) expect(passes(bytes, [cut])).toBe(expected)
      expect(passes(bytes, [...bytes.keys()])).toBe(expected)
    },
  )

  it('passes every document', () => {
    fc.assert(fc.property(document, cuts, (text, places) => passes(bytesOf(text), places)))
  })

  it('says of broken documents what JSON.parse says', () => {
    fc.assert(
      fc.property(mutated, cuts, (bytes, places) => {
        expect(passes(bytes, places)).toBe(parsed(bytes) !== undefined)
      }),
      { numRuns: 2000 },
    )
  })

  it('bounds the depth, and needs no more than a byte for each level', () => {
    const nested = (depth: number) => bytesOf('['.repeat(depth) + ']'.repeat(depth))
    expect(passes(nested(10_000))).toBe(true)
    expect(passes(nested(10_001))).toBe(false)
  })
})

const entry = fc.record({ Code: fc.string(), Message: fc.string() })
const errors = fc.oneof(
  { weight: 3, arbitrary: fc.array(entry, { maxLength: 3 }) },
  fc.array(fc.jsonValue({ maxDepth: 1 })),
  fc.jsonValue({ maxDepth: 1 }),
)
const data = fc.oneof(
  fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })),
  fc.jsonValue({ maxDepth: 1 }),
)
const member = fc.oneof(
  fc.tuple(fc.constantFrom('"Errors"', '"\\u0045rrors"'), errors),
  fc.tuple(fc.constantFrom('"Data"', '"D\\u0061ta"'), data),
  fc.tuple(
    fc.string().map((key) => JSON.stringify(key)),
    fc.jsonValue({ maxDepth: 2 }),
  ),
)
const envelopeText = fc
  .array(member, { maxLength: 5 })
  .map((members) => `{${members.map(([key, value]) => `${key}:${JSON.stringify(value)}`).join(',')}}`)

/** Its codes and messages apart, which a scan does not read. */
function isEnvelopeByShape(value: JsonValue): boolean {
  const { Errors } = value as { Errors?: unknown }
  const shaped =
    Array.isArray(Errors) &&
    Errors.every((each) => typeof each === 'object' && each !== null && !Array.isArray(each))
  return shaped && isEnvelope({ ...(value as object), Errors: [] })
}

describe('C2.1 a scan of an envelope in pieces', () => {
  it('says what isEnvelope says of the whole, entries of Errors apart', () => {
    fc.assert(
      fc.property(envelopeText, cuts, (text, places) => {
        const value = JSON.parse(text) as JsonValue
        expect(passes(bytesOf(text), places, true)).toBe(isEnvelopeByShape(value))
      }),
      { numRuns: 2000 },
    )
  })

  it.each([
    ['{"Errors":[],"Data":{}}', true],
    [' {"More":1,"Data":{"Errors":5,"Data":[]},"Errors":[{"Code":"a","Message":"b"},{}]} ', true],
    ['{"Errors":[],"Data":{}', false],
    ['{"Errors":[]}', false],
    ['{"Errors":[5],"Data":{}}', false],
    ['{"Errors":[{},5],"Data":{}}', false],
    ['{"Errors":[{},[]],"Data":{}}', false],
    ['{"Errors":{},"Data":{}}', false],
    ['{"Errors":[],"Data":{},"Data":1}', false],
    ['[{"Errors":[],"Data":{}}]', false],
    ['"Errors"', false],
    ['null', false],
    ['<html></html>', false],
  ])('%s: %s', (text, expected) => {
    for (let cut = 0; cut <= text.length; cut++) expect(passes(bytesOf(text), [cut], true)).toBe(expected)
  })
})
