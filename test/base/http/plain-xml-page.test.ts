import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import type { XmlSection } from '../../../src/gateway/backends/forward/schema/answer-schema.ts'
import { compileXml } from '../../../src/gateway/backends/forward/compile-answers.ts'
import { Problems } from '../../../src/base/config/problems.ts'
import { plainEnvelope } from '../../../src/gateway/conversion/answers.ts'
import { parseJson, stringifyJson } from '../../../src/base/http/body/json.ts'
import { writePlainXml } from '../../../src/base/http/xml/plain-write.ts'
import { ANSWER_LIMITS, BODY_LIMITS, type PlainXmlRules } from '../../../src/base/http/xml/plain-document.ts'

const page = readFileSync(new URL('../../../src/base/http/xml/plain-xml.md', import.meta.url), 'utf8')

const rulesOf = (section: XmlSection): PlainXmlRules => {
  const problems = new Problems()
  const { rules } = compileXml(
    section,
    { format: 'xml', payload: 'bare', inherited: undefined },
    ['xml'],
    problems,
  )
  if (rules === undefined || problems.failed) throw new Error(JSON.stringify(problems.list))
  return rules
}

const examples = page
  .split('\n### ')
  .filter((section) => section.startsWith('Example: '))
  .map((section): [string, Partial<Record<string, string>>] => [
    section.slice('Example: '.length, section.indexOf('\n')),
    Object.fromEntries(
      [...section.matchAll(/```(\w+(?: \w+)?)\n(.*?)```/gs)].map(([, info, text]) => [info, text]),
    ),
  ])

const json = (bytes: Buffer): string => stringifyJson(parseJson(bytes))
const dataOf = (text: string): string => `{"Errors":[],"Data":${json(Buffer.from(text))}}`

/** The rows of the table below a line: first and second column, without their code marks. */
const rowsBelow = (line: string): readonly (readonly [string, string])[] =>
  [...(page.split(line)[1] ?? '').split('\n\n')[1]!.matchAll(/^\| `([^`]+)`(.*?) \| (.+?) +\|$/gm)].map(
    ([, code, more, why]) => [`${code!}${more!.trim()}`, why!.trim()] as const,
  )

describe('the page of a service’s own XML', () => {
  it('has examples of each direction', () => expect(examples.length).toBeGreaterThanOrEqual(6))

  it.each(examples)('C7.7 is right about %s', (_, blocks) => {
    const { 'xml sent': sent, 'xml answered': answered, 'json body': body, xml } = blocks
    const rules = rulesOf(parse(blocks['yaml xml'] ?? 'dialect: plain') as XmlSection)
    if (answered !== undefined)
      expect(plainEnvelope(Buffer.from(sent!), undefined, rules, 'xml').toString()).toBe(answered.trim())
    else if (body !== undefined)
      expect(writePlainXml(parseJson(Buffer.from(body)), rules)).toBe(
        `<?xml version="1.0" encoding="UTF-8"?>${xml!.trim()}`,
      )
    else
      expect(json(plainEnvelope(Buffer.from(sent!), undefined, rules, 'json'))).toBe(dataOf(blocks['json']!))
  })

  const lost = rowsBelow('document.')
  it('has a table of what JSON cannot hold', () => expect(lost).toHaveLength(6))

  it.each(lost)('C7.7 is right that %s is refused', (row, why) => {
    const [xml = '', as] = row.split(', ')
    const rules = rulesOf({
      dialect: 'plain',
      ...(as === 'stripped' && { namespaces: 'strip' as const }),
      ...(as === 'a number' && { numbers: ['Size'] }),
      ...(as === 'a boolean' && { booleans: ['Open'] }),
    })
    const refusal = expect.objectContaining({ code: 'answer_unmappable' })
    expect(() => plainEnvelope(Buffer.from(xml), undefined, rules, 'json')).toThrow(refusal)
    expect(() => plainEnvelope(Buffer.from(xml), undefined, rules, 'json')).toThrow(why)
    expect(plainEnvelope(Buffer.from(xml), undefined, rules, 'xml').toString()).toContain(xml)
  })

  const refused = rowsBelow('gets nothing:')
  it('has a table of bodies that are refused', () => expect(refused).toHaveLength(10))

  it.each(refused)('C7.7 is right that %s is refused as a body', (body, why) => {
    const rules = rulesOf({ dialect: 'plain', root: 'Fund', attributes: { version: '2' } })
    expect(() => writePlainXml(parseJson(Buffer.from(body)), rules)).toThrow(
      expect.objectContaining({
        code: 'body_malformed',
        facts: expect.objectContaining({ say: expect.stringContaining(why) }),
      }),
    )
  })

  it('C7.7 has the limits of the code', () => {
    const columns = (of: keyof typeof BODY_LIMITS): string =>
      `\\| ${String(ANSWER_LIMITS[of])} +\\| ${String(BODY_LIMITS[of])} +\\|`
    for (const [text, of] of [
      ['elements inside each other', 'depth'],
      ['elements and attributes', 'nodes'],
      ['attributes of one element', 'attributes'],
      ['references \\(`&…;`\\)', 'references'],
    ] as const)
      expect(page).toMatch(new RegExp(`\\| ${text} +${columns(of)}`))
  })
})
