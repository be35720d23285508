import { describe, expect, it } from 'vitest'
import type { JsonValue } from '../../../src/base/http/body/json.ts'
import { decodeXml } from '../../../src/base/http/xml/decode.ts'
import { ANSWER_LIMITS, type PlainXmlRules } from '../../../src/base/http/xml/plain-document.ts'
import { readPlainXml } from '../../../src/base/http/xml/plain-read.ts'
import { writePlainXml } from '../../../src/base/http/xml/plain-write.ts'

const KEEP: PlainXmlRules = {
  root: undefined,
  attributes: {},
  stripNamespaces: false,
  paths: { type: undefined, isArray: false, children: new Map() },
}
const STRIP: PlainXmlRules = { ...KEEP, stripNamespaces: true }

const read = (xml: string, rules = KEEP): JsonValue =>
  readPlainXml(decodeXml(Buffer.from(xml), undefined), ANSWER_LIMITS, rules)

describe('what is read of a service’s own XML', () => {
  it('T4.3 has every name as it is', () => {
    const names = ['constructor', '__proto__', 'hasOwnProperty', 'toString', 'prototype', 'a.b', 'é']
    const { r } = read(`<r>${names.map((name) => `<${name} ${name}="1">x</${name}>`).join('')}</r>`) as {
      r: Record<string, JsonValue>
    }
    expect(Object.keys(r)).toEqual(names)
    for (const name of names)
      expect(Object.entries(r[name] ?? {})).toEqual([
        [`@${name}`, '1'],
        ['#text', 'x'],
      ])
  })

  it('C7.7 has texts as they are written', () => {
    const text = ' 007 &lt;\n&#65; 1e5 0x1F true '
    const value = read(`<a b="${text}">${text}</a>`)
    expect(value).toEqual({ a: { '@b': ' 007 < A 1e5 0x1F true ', '#text': ' 007 <\nA 1e5 0x1F true ' } })
    expect(read(writePlainXml(value, KEEP))).toEqual(value)
  })

  it('C7.7 has no prefixes and declarations where they are stripped', () => {
    const xml = '<f:a xmlns:f="urn:f" xmlns="urn:d" f:b="1"><f:c/><d xmlns="urn:e"/></f:a>'
    expect(read(xml, STRIP)).toEqual({ a: { '@b': '1', c: '', d: '' } })
  })

  it.each(['\u1680', '\uFEFF'])('C7.7 refuses a name that holds %j, white space to JavaScript', (blank) => {
    expect(() => read(`<a${blank}b/>`)).toThrow(expect.objectContaining({ code: 'answer_unmappable' }))
  })
})
