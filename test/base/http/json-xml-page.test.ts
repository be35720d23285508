import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { BodySchema } from '../../../src/base/http/body/body-schema.ts'
import { errorsEnvelope, errorsOf, isEnvelope, successEnvelope } from '../../../src/base/http/envelope.ts'
import { parseJson, stringifyJson } from '../../../src/base/http/body/json.ts'
import { ENVELOPE_SCHEMA, readXml, XML_LIMITS } from '../../../src/base/http/xml/read.ts'
import type { ItemNames } from '../../../src/base/http/xml/key-sequences.ts'
import { writeXml } from '../../../src/base/http/xml/write.ts'

const page = readFileSync(new URL('../../../src/base/http/xml/json-xml.md', import.meta.url), 'utf8')

type Blocks = Partial<Record<string, string>>

const examples = page
  .split('\n### ')
  .filter((section) => section.startsWith('Example: '))
  .map((section): [string, Blocks] => [
    section.slice('Example: '.length, section.indexOf('\n')),
    Object.fromEntries(
      [...section.matchAll(/```(\w+(?: \w+)?)\n(.*?)```/gs)].map(([, info, text]) => [info, text]),
    ),
  ])

/** As sent: without the white space between elements and the newline that ends the block. */
const compact = (xml: string): string => xml.replace(/>\s+</g, '><').trim()
const withoutDeclaration = (xml: string): string =>
  xml.replace(/^<\?xml version="1.0" encoding="UTF-8"\?>/, '')
const same = (text: string): string => stringifyJson(parseJson(Buffer.from(text)))

function writeEnvelope(text: string): string {
  const value = parseJson(Buffer.from(text))
  if (!isEnvelope(value)) throw new Error('the example is no envelope')
  const errors = errorsOf(value)
  return (errors ? errorsEnvelope('xml', errors) : successEnvelope('xml', value.Data)).toString()
}

describe('the page of the mapping', () => {
  it('has examples of both directions', () => expect(examples.length).toBeGreaterThanOrEqual(9))

  it.each(examples)('C7.5 is right about %s', (_, { json, xml, ...blocks }) => {
    const { 'xml read': read, 'json envelope': envelope } = blocks
    const schema = JSON.parse(blocks['json schema'] ?? 'null') as BodySchema | null
    if (read !== undefined) {
      expect(stringifyJson(readXml(Buffer.from(read), schema ?? undefined))).toBe(same(json!))
    } else if (envelope !== undefined) {
      expect(withoutDeclaration(writeEnvelope(envelope))).toBe(compact(xml!))
      expect(stringifyJson(readXml(Buffer.from(xml!), ENVELOPE_SCHEMA))).toBe(same(envelope))
    } else {
      const items = JSON.parse(blocks['json items'] ?? '{}') as ItemNames
      const written = writeXml(parseJson(Buffer.from(json!)), 'ApiResponse', items).toString()
      expect(withoutDeclaration(written)).toBe(compact(xml!))
      expect(stringifyJson(readXml(Buffer.from(xml!)))).toBe(same(json!))
    }
  })

  const refused = [...page.matchAll(/^\| `(<.*)` +\| ([^|]+?) +\|$/gm)].map(
    ([, xml, why]) => [xml!, why!] as const,
  )

  it('has a table of what is refused', () => expect(refused.length).toBeGreaterThanOrEqual(15))

  it.each(refused)('C7.5 is right that %s is refused', (xml, why) => {
    expect(() => readXml(Buffer.from(xml))).toThrow(
      expect.objectContaining({
        code: 'body_malformed',
        facts: expect.objectContaining({ say: expect.stringContaining(why) }),
      }),
    )
  })

  it('C7.5 names the bounds', () => {
    const bounds = [...page.matchAll(/^\| [^|]+\| (\d+) +\|$/gm)].map(([, bound]) => Number(bound))
    const { depth, nodes, attributes, references } = XML_LIMITS
    expect(bounds).toEqual([depth, nodes, attributes, references])
  })
})
