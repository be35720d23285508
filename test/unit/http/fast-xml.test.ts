import { XMLParser } from 'fast-xml-parser'
import { describe, expect, it } from 'vitest'
import { buildRoot, elementOf, isSplit, parseRoot, textOf } from '../../../src/http/plain-xml/fast-xml.ts'

/** What parseRoot is written around. Where one of these fails, the library has changed, and fast-xml.ts may be simpler. */
describe('traps of fast-xml-parser', () => {
  const order = { preserveOrder: true, ignoreAttributes: false } as const

  it('T4.2 it takes what is not well-formed', () => {
    expect(new XMLParser(order).parse('<a><b></a>')).toBeDefined()
  })

  it('T4.3 it refuses some names, and renames others', () => {
    expect(() => new XMLParser(order).parse('<constructor/>')).toThrow()
    expect(new XMLParser(order).parse('<toString/>')).toEqual([{ __toString: [] }])
  })

  it('C7.7 it transforms the name of an empty element twice', () => {
    const names: string[] = []
    new XMLParser({ ...order, transformTagName: (name) => (names.push(name), `.${name}`) }).parse('<a/>')
    expect(names.length).toBeGreaterThan(1)
  })

  it('C7.7 it does not tell CDATA from text', () => {
    const parser = new XMLParser({ ...order, processEntities: false })
    expect(parser.parse('<a><![CDATA[&lt;]]></a>')).toEqual(parser.parse('<a>&lt;</a>'))
  })

  it.each(['\u1680', '\uFEFF'])('C7.7 it ends a name at %j', (blank) => {
    const [root] = new XMLParser(order).parse(`<a${blank}b/>`) as Record<string, unknown>[]
    expect(Object.keys(root ?? {})).not.toContain(`a${blank}b`)
    expect(isSplit(`a${blank}b`)).toBe(true)
  })
})

describe('what is parsed and built', () => {
  it('C7.7 has every name as it is', () => {
    const names = ['constructor', '__proto__', 'hasOwnProperty', 'toString', 'prototype', 'a.b', 'é']
    const root = parseRoot(
      `<r>${names.map((name) => `<${name} ${name}="1">x</${name}><${name}/>`).join('')}</r>`,
      'keep',
    )
    const found = root.content.map((node) => elementOf(node))
    expect(found.map((element) => element?.name)).toEqual(names.flatMap((name) => [name, name]))
    expect(found.map((element) => element?.attributes && Object.keys(element.attributes)[0])).toEqual(
      names.flatMap((name) => [`@${name}`, undefined]),
    )
    expect(found.map((element) => element && textOf(element))).toEqual(names.flatMap(() => ['x', '']))
  })

  it('C7.7 has texts as they are written', () => {
    const text = ' 007 &lt;\n&#65; 1e5 0x1F true '
    const root = parseRoot(`<a b="${text}">${text}</a>`, 'keep')
    expect(textOf(root)).toBe(text)
    expect(root.attributes).toEqual({ '@b': text })
    expect(buildRoot('a', { '@': { b: 'true' }, '#text': text })).toBe(`<a b="true">${text}</a>`)
  })

  it('C7.7 has no prefixes and declarations where they are stripped', () => {
    const root = parseRoot('<f:a xmlns:f="urn:f" xmlns="urn:d" f:b="1"><f:c/></f:a>', 'strip')
    expect(root).toMatchObject({ name: 'a', attributes: { '@b': '1' } })
    expect(root.content.map((node) => elementOf(node)?.name)).toEqual(['c'])
  })
})
