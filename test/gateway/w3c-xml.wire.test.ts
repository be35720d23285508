import { SaxesParser } from 'saxes'
import { describe, expect, it } from 'vitest'
import { plainEnvelope } from '../../src/gateway/conversion/answers.ts'
import { checkPlainBody } from '../../src/gateway/conversion/bodies.ts'
import { type JsonValue, parseJson, stringifyJson } from '../../src/base/http/body/json.ts'
import { writePlainXml } from '../../src/base/http/xml/plain-write.ts'
import type { PlainXmlRules } from '../../src/base/http/xml/plain-document.ts'
import { Fault } from '../../src/base/kernel/faults.ts'
import { canonicalXml } from '../support/canonical-xml.ts'
import { needing } from '../support/machine.ts'
import { W3C_DOCUMENTS, type W3cDocument } from '../support/w3c-xml/documents.ts'

const NO_RULES = { type: undefined, isArray: false, children: new Map() } as const
const KEEP: PlainXmlRules = { root: undefined, attributes: {}, stripNamespaces: false, paths: NO_RULES }
const STRIP: PlainXmlRules = { ...KEEP, stripNamespaces: true }

const codeOf = (thrown: unknown): string => {
  if (thrown instanceof Fault) return thrown.code
  throw thrown
}

/** The envelope of a document, or the code of the fault that it is instead. */
function envelopeOf(
  { bytes }: Pick<W3cDocument, 'bytes'>,
  to: 'json' | 'xml' = 'xml',
  rules = KEEP,
): Buffer | string {
  try {
    return plainEnvelope(bytes, undefined, rules, to)
  } catch (thrown) {
    return codeOf(thrown)
  }
}

const kind = (wanted: W3cDocument['kind']): readonly W3cDocument[] =>
  W3C_DOCUMENTS.filter((each) => each.kind === wanted && each.bytes.length > 0)
const WELL_FORMED = kind('well-formed')
const NOT_WELL_FORMED = kind('not-well-formed')

/** Their entities are declared in a DTD that is never read. */
const WITH_ENTITIES = [
  'valid-not-sa-031',
  'v-pe00',
  'ibm-valid-P09-ibm09v03.xml',
  'ibm-valid-P32-ibm32v02.xml',
  'rmt-e2e-19',
]

describe('well-formed documents of the W3C', () => {
  it('C7.7 are all read, but for those whose entities are declared elsewhere', () => {
    const refused = WELL_FORMED.filter((each) => typeof envelopeOf(each) === 'string')
    expect(refused.map(({ id }) => id)).toEqual(WITH_ENTITIES)
    expect(WELL_FORMED.length).toBeGreaterThan(120)
  })

  it('C7.7 are canonically equal within an envelope, as Python reads them', needing('python3'), () => {
    const canonical = canonicalXml(WELL_FORMED.map(({ bytes }) => bytes))
    const envelopes = WELL_FORMED.map((each) => envelopeOf(each))
    const ours = canonicalXml(envelopes)
    const compared = WELL_FORMED.flatMap(({ id }, at) => {
      // It does not know names that came with the fifth edition, nor XML 1.1.
      if (canonical[at] === undefined || WITH_ENTITIES.includes(id)) return []
      return [[id, ours[at], `<ApiResponse><Errors></Errors><Data>${canonical[at]}</Data></ApiResponse>`]]
    })
    for (const [id, found, expected] of compared) expect(found, id).toBe(expected)
    expect(compared.length).toBeGreaterThan(100)
  })

  it.each([
    ['with namespaces', KEEP],
    ['without', STRIP],
  ])('C7.7 are the same in JSON after XML was written of it, %s', (_, rules) => {
    const dataOf = (bytes: Buffer): JsonValue | string => {
      const envelope = envelopeOf({ bytes }, 'json', rules)
      return typeof envelope === 'string' ? envelope : (parseJson(envelope) as { Data: JsonValue }).Data
    }
    const codes = new Set<string>()
    let same = 0
    for (const { id, bytes } of WELL_FORMED) {
      const first = dataOf(bytes)
      if (typeof first === 'string') {
        codes.add(first)
        continue
      }
      const xml = writePlainXml(first, rules)
      const second = dataOf(Buffer.from(xml))
      expect(stringifyJson(second), id).toBe(stringifyJson(first))
      expect(writePlainXml(second, rules), id).toBe(xml)
      same++
    }
    expect([...codes].sort()).toEqual(['answer_unmappable', 'body_malformed'])
    expect(same).toBeGreaterThan(100)
  })
})

const accepts = (read: () => unknown): boolean => {
  try {
    read()
    return true
  } catch {
    return false
  }
}

describe('documents of the W3C that are not well-formed', () => {
  it('T4.2 are refused, but for two whose names the fifth edition allows: fewer than saxes accepts', () => {
    const accepted = NOT_WELL_FORMED.filter((each) => typeof envelopeOf(each) !== 'string')
    const bySaxes = NOT_WELL_FORMED.filter(({ bytes }) =>
      accepts(() => new SaxesParser({ xmlns: true }).write(bytes.toString()).close()),
    )
    expect(accepted.map(({ id }) => id)).toEqual(['rmt-016', 'rmt-019'])
    expect(accepted.length).toBeLessThanOrEqual(bySaxes.length)
    expect(NOT_WELL_FORMED.length).toBeGreaterThan(300)
  })

  it('T4.2 are refused in JSON and as bodies too', () => {
    const inJson = NOT_WELL_FORMED.filter((each) => typeof envelopeOf(each, 'json') !== 'string')
    const asBodies = NOT_WELL_FORMED.filter(({ bytes }) =>
      accepts(() => checkPlainBody(bytes, KEEP, undefined)),
    )
    expect(inJson.map(({ id }) => id)).toEqual(['rmt-016', 'rmt-019'])
    expect(asBodies.map(({ id }) => id)).toEqual(['rmt-016', 'rmt-019'])
  })

  it('C7.7 are those of Namespaces in XML as well', () => {
    for (const each of kind('no-namespaces')) expect(envelopeOf(each), each.id).toBe('body_malformed')
  })
})
