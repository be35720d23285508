import { describe, expect, it } from 'vitest'
import { wrapPayload } from '../../../src/base/http/envelope.ts'
import { checkJson, NotJson } from '../../../src/base/http/body/json-check.ts'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
  stringifyJson,
} from '../../../src/base/http/body/json.ts'
import type { ItemNames } from '../../../src/base/http/xml/key-sequences.ts'
import { ENVELOPE_SCHEMA, readXml } from '../../../src/base/http/xml/read.ts'
import { escapeName, isXmlText } from '../../../src/base/http/xml/syntax.ts'
import { writeXml } from '../../../src/base/http/xml/write.ts'
import type { Layout } from '../../../src/base/http/xml/writer-rules.ts'
import { xmlOfJson } from '../../../src/base/http/xml/xml-writer.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { canonicalXml } from '../../support/canonical-xml.ts'
import { ACCEPTED, EITHER, REFUSED } from '../../support/json-test-suite.ts'
import { sized } from '../../support/long.ts'
import { needing } from '../../support/machine.ts'
import { jsonCases, xmlCases } from '../../support/xml-fuzz.ts'

const CASES = sized(5_000, 50_000)
const SEED = 20_261_130
const JSON_LIMITS = { depth: 200, nodes: 1_000_000 }
const XML_LIMITS = { bytes: Infinity, depth: Infinity, nodes: Infinity, references: Infinity }

/** What is written, or why nothing is. */
function written(bytes: Buffer, layout: Layout, items: ItemNames = {}): Buffer | string {
  try {
    return xmlOfJson(bytes, { ...JSON_LIMITS, layout, items, most: Infinity })
  } catch (thrown) {
    return refusal(thrown)
  }
}

function refusal(thrown: unknown): string {
  if (thrown instanceof NotJson) return 'body_malformed'
  if (thrown instanceof Fault) return thrown.code
  throw thrown
}

function parsed(bytes: Buffer): { readonly value: JsonValue } | string {
  try {
    return { value: parseJson(bytes, JSON_LIMITS) }
  } catch (thrown) {
    return refusal(thrown)
  }
}

/** The part of a value that the XML holds, or why it holds none. */
function partOf(bytes: Buffer, { kind }: Layout): { readonly part: JsonValue } | string {
  const read = parsed(bytes)
  if (typeof read === 'string') return read
  const { value } = read
  const part =
    kind === 'document'
      ? value
      : kind === 'payload' || value === null
        ? wrapPayload(value)
        : ((value as JsonObject)['Data'] ?? null)
  return hasUnfit(part) ? 'answer_unconvertible' : { part }
}

function hasUnfit(value: JsonValue): boolean {
  if (typeof value === 'string') return !isXmlText(value)
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return false
  return Object.values<JsonValue>(value as JsonObject).some(hasUnfit)
}

/** A letter before each key: objects put those first that look like an index. */
function inOrder(bytes: Buffer): JsonValue {
  const text = withoutMark(bytes)
    .toString()
    .replace(/"(?:[^"\\]|\\.)*"([ \t\r\n]*:)?/g, (string, colon?: string) =>
      colon === undefined ? string : `"k${string.slice(1)}`,
    )
  return parseJson(Buffer.from(text), JSON_LIMITS)
}

const MARK = Buffer.from('\u{FEFF}')
const withoutMark = (bytes: Buffer): Buffer =>
  bytes.subarray(0, MARK.length).equals(MARK) ? bytes.subarray(MARK.length) : bytes

/** The names of all elements within one, in the order of the text. */
function namesIn(value: JsonValue, items: ItemNames, key?: string): readonly string[] {
  if (Array.isArray(value)) {
    const item = key !== undefined && Object.hasOwn(items, key) ? (items[key] ?? '') : 'Item'
    return value.flatMap((each) => [escapeName(item), ...namesIn(each, items)])
  }
  if (!isJsonObject(value)) return []
  return Object.entries<JsonValue>(value).flatMap(([prefixed, member]) => {
    const name = prefixed.slice(1)
    return [escapeName(name), ...namesIn(member, items, name)]
  })
}

function expectedNames(bytes: Buffer, { kind }: Layout, items: ItemNames): readonly string[] {
  const value = inOrder(bytes)
  if (kind === 'document') return ['R', ...namesIn(value, items)]
  const member = Array.isArray(value) ? 'kItems' : 'kValue'
  const whole = value === null || isJsonObject(value) ? value : { [member]: value }
  const data = kind === 'envelope' && isJsonObject(value) ? (value['kData'] ?? null) : whole
  return ['ApiResponse', 'Errors', 'Data', ...namesIn(data, items)]
}

const namesOf = (xml: string): readonly string[] =>
  Array.from(xml.matchAll(/<([^ \t\n\r/>?!]+)/g), ([, name]) => name ?? '')

function readBack(xml: Buffer, { kind }: Layout): JsonValue {
  if (kind === 'document') return readXml(xml, undefined, XML_LIMITS)
  return (readXml(xml, ENVELOPE_SCHEMA, XML_LIMITS) as JsonObject)['Data'] ?? null
}

function isOfEnvelope(bytes: Buffer): boolean {
  try {
    checkJson(withoutMark(bytes), true)
    return true
  } catch {
    return false
  }
}

const DOCUMENT: Layout = { kind: 'document', root: 'R' }
const LAYOUTS: readonly Layout[] = [DOCUMENT, { kind: 'payload' }, { kind: 'envelope' }]

/** Python's names are those of the fourth edition. */
const isOldName = (name: string): boolean => /^[\wéÄ名·\u{301}.-]+$/u.test(name)
const hasOldNames = (xml: Buffer): boolean => namesOf(xml.toString()).every(isOldName)

function refusedByPython(documents: readonly Buffer[]): readonly string[] {
  const canonical = canonicalXml(documents)
  return documents.filter((_, at) => canonical[at] === undefined).map(String)
}

describe(`JSON to XML, of ${CASES} generated and damaged documents`, () => {
  it.each(LAYOUTS)(
    'C7.5 C8.6 T4.4 reads back what parseJson reads, in the order of the text, or refuses: $kind',
    (layout) => {
      const counts = { read: 0, body_malformed: 0, answer_unconvertible: 0 }
      for (const { bytes, items } of jsonCases(CASES, SEED)) {
        if (layout.kind === 'envelope' && !isOfEnvelope(bytes)) continue
        const [xml, expected] = [written(bytes, layout, items), partOf(bytes, layout)]
        const shown = bytes.toString('latin1')
        if (typeof xml === 'string' || typeof expected === 'string') {
          expect(xml, shown).toBe(expected)
          counts[xml as keyof typeof counts]++
          continue
        }
        expect(stringifyJson(readBack(xml, layout)), shown).toBe(stringifyJson(expected.part))
        expect(namesOf(xml.toString()), shown).toEqual(expectedNames(bytes, layout, items))
        counts.read++
      }
      expect(counts.read).toBeGreaterThan(CASES / 8)
      expect(counts.body_malformed).toBeGreaterThan(CASES / 500)
      expect(counts.answer_unconvertible).toBeGreaterThan(CASES / 500)
    },
  )

  it('C7.5 T4.2 writes what Python’s parser takes', needing('python3'), () => {
    const documents = [...jsonCases(CASES, SEED)].flatMap(({ bytes, items }) => {
      const xml = written(bytes, isOfEnvelope(bytes) ? { kind: 'envelope' } : DOCUMENT, items)
      return typeof xml === 'string' || !hasOldNames(xml) ? [] : [xml]
    })
    expect(documents.length).toBeGreaterThan(CASES / 4)
    expect(refusedByPython(documents)).toEqual([])
  })
})

describe(`XML to JSON, of ${CASES} generated and damaged documents`, () => {
  it('C7.5 T4.4 reads the same again of what is written of it, with and without a schema', () => {
    const counts = { read: 0, refused: 0 }
    for (const { bytes, schema, limits } of xmlCases(CASES, SEED))
      for (const each of [undefined, schema]) {
        const value = valueOf(() => readXml(bytes, each, limits))
        if (value === undefined) counts.refused++
        else {
          const again = readXml(writeXml(value), undefined, XML_LIMITS)
          expect(stringifyJson(again), bytes.toString('latin1')).toBe(stringifyJson(value))
          counts.read++
        }
      }
    expect(Math.min(counts.read, counts.refused)).toBeGreaterThan(CASES / 3)
  })

  it('T4.2 reads no document that Python’s parser refuses', needing('python3'), () => {
    const documents = [...xmlCases(CASES, SEED)]
      .filter(({ bytes }) => hasOldNames(bytes) && valueOf(() => readXml(bytes)) !== undefined)
      .map(({ bytes }) => bytes)
    expect(documents.length).toBeGreaterThan(CASES / 5)
    expect(refusedByPython(documents)).toEqual([])
  })
})

/** Undefined: it is refused by a fault of bodies. */
function valueOf(read: () => JsonValue): JsonValue | undefined {
  try {
    return read()
  } catch (thrown) {
    expect(thrown).toMatchObject({ code: 'body_malformed' })
    return undefined
  }
}

describe('T4.5 JSON to XML', () => {
  const sayOf = (bytes: Buffer): readonly [string, string] => {
    const xml = written(bytes, DOCUMENT)
    return [bytes.toString('latin1').slice(0, 200), typeof xml === 'string' ? xml : 'written']
  }
  const expectedOf = (bytes: Buffer): readonly [string, string] => {
    const expected = partOf(bytes, DOCUMENT)
    return [bytes.toString('latin1').slice(0, 200), typeof expected === 'string' ? expected : 'written']
  }

  it('accepts and refuses of JSONTestSuite what parseJson does', () => {
    for (const text of [...ACCEPTED, ...REFUSED, ...EITHER]) {
      const bytes = Buffer.from(text, 'latin1')
      expect(sayOf(bytes)).toEqual(expectedOf(bytes))
    }
  })

  it('accepts and refuses every single byte, alone and within what surrounds it, as parseJson does', () => {
    for (let byte = 0; byte < 256; byte++)
      for (const [before, after] of [
        ['', ''],
        ['"', '"'],
        ['"\\', '"'],
        ['"\\u00', '0"'],
        ['{"', '":1}'],
        ['{"\\', '":1}'],
        ['{"a"', ':1}'],
        ['{"a":1', '"b":2}'],
        ['1', ''],
        ['[1', '2]'],
        ['{', '}'],
        ['tru', ''],
        ['"\u{ffbe}', '"'],
      ] as const) {
        const bytes = Buffer.concat([Buffer.from(before), Buffer.of(byte), Buffer.from(after)])
        expect(sayOf(bytes)).toEqual(expectedOf(bytes))
      }
  })

  it('takes a surrogate pair where both halves are escaped, and no other two escapes for one', () => {
    const units = ['0041', 'd7ff', 'd800', 'dbff', 'dc00', 'dfff', 'e000', 'ffff', 'D83D', 'De00']
    for (const high of units)
      for (const low of units)
        for (const text of [
          `"\\u${high}\\u${low}"`,
          `{"\\u${high}\\u${low}":1}`,
          `"\\u${high}\\n\\u${low}"`,
        ]) {
          const bytes = Buffer.from(text)
          expect(sayOf(bytes)).toEqual(expectedOf(bytes))
        }
    expect(sayOf(Buffer.from('"\\ud83d\\ude00"'))[1]).toBe('written')
    expect(sayOf(Buffer.from('"\\ud83d\\ue000"'))[1]).toBe('body_malformed')
  })

  it('refuses every text that ends early, and what is behind the bytes that are given does not count', () => {
    const whole = Buffer.from('{"a":[1.5e3,"\\u00e9\\ud83d\\ude00","é😀",true,null,{"b c":{}}],"a1":-0}')
    for (let end = 0; end < whole.length; end++)
      expect(sayOf(whole.subarray(0, end))[1]).toBe('body_malformed')
    expect(sayOf(whole)[1]).toBe('written')
  })
})
