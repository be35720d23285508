import { describe, expect, it } from 'vitest'
import { Fault } from '../../../src/base/kernel/faults.ts'
import type { JsonObject, JsonValue } from '../../../src/base/http/body/json.ts'
import type { ItemNames } from '../../../src/base/http/xml/key-sequences.ts'
import { unescapeName } from '../../../src/base/http/xml/syntax.ts'
import { xmlOfJson } from '../../../src/base/http/xml/xml-writer.ts'
import { writeXml, writeXmlEnvelope, writeXmlErrors } from '../../../src/base/http/xml/write.ts'

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
const LIMITS = { depth: 200, nodes: 1_000_000, most: Infinity }
const NIL = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'

const written = (value: JsonValue, items?: ItemNames): string => {
  const xml = writeXml(value, 'R', items).toString()
  expect(xml.startsWith(DECLARATION)).toBe(true)
  return xml.slice(DECLARATION.length)
}

const faultOf = (write: () => unknown): string => {
  try {
    write()
  } catch (thrown) {
    if (thrown instanceof Fault) return `${thrown.code} ${thrown.status}`
    throw thrown
  }
  return 'none'
}

describe('JSON to XML', () => {
  it.each<[JsonValue, string]>([
    ['text', '<R>text</R>'],
    ['', '<R/>'],
    [' \t\n', '<R> \t\n</R>'],
    ['a\r\nb', '<R>a&#13;\nb</R>'],
    ['<&>"\']]>', '<R>&lt;&amp;&gt;"\']]&gt;</R>'],
    ['&lt;', '<R>&amp;lt;</R>'],
    ['😀\u{85}\u{2028}', '<R>😀\u{85}\u{2028}</R>'],
    [12.5, '<R type="number">12.5</R>'],
    [1e21, '<R type="number">1e+21</R>'],
    [JSON.rawJSON('1.0'), '<R type="number">1.0</R>'],
    [true, '<R type="boolean">true</R>'],
    [false, '<R type="boolean">false</R>'],
    [null, `<R ${NIL} xsi:nil="true"/>`],
    [[], '<R type="array"/>'],
    [[1], '<R type="array"><Item type="number">1</Item></R>'],
    [[[], ['a']], '<R type="array"><Item type="array"/><Item type="array"><Item>a</Item></Item></R>'],
    [[''], '<R type="array"><Item/></R>'],
    [{}, '<R type="object"/>'],
    [{ a: {} }, '<R><a type="object"/></R>'],
    [{ a: 'x', b: { c: true } }, '<R><a>x</a><b><c type="boolean">true</c></b></R>'],
    [{ a: null, b: [null] }, `<R ${NIL}><a xsi:nil="true"/><b type="array"><Item xsi:nil="true"/></b></R>`],
    [[null], `<R ${NIL} type="array"><Item xsi:nil="true"/></R>`],
  ])('C7.5 writes %j', (value, xml) => expect(written(value)).toBe(xml))

  it.each<[string, unknown, string]>([
    [
      'NaN and infinity as null',
      { a: NaN, b: [-Infinity] },
      `<R ${NIL}><a xsi:nil="true"/><b type="array"><Item xsi:nil="true"/></b></R>`,
    ],
    [
      'what toJSON says',
      { at: new Date(0), own: { toJSON: (key: string) => [key] } },
      '<R><at>1970-01-01T00:00:00.000Z</at><own type="array"><Item>own</Item></own></R>',
    ],
    ['nothing of an undefined member', { a: undefined, b: 1 }, '<R><b type="number">1</b></R>'],
    ['an object whose members are undefined as an empty one', { a: undefined }, '<R type="object"/>'],
    [
      'null for an undefined item',
      [undefined, 1],
      `<R ${NIL} type="array"><Item xsi:nil="true"/><Item type="number">1</Item></R>`,
    ],
    ['nothing of a member that is a function', { a: () => 1, b: '' }, '<R><b/></R>'],
  ])('C7.5 writes of a value what JSON says of it: %s', (_, value, xml) =>
    expect(written(value as JsonValue)).toBe(xml),
  )

  it.each<[string, string]>([
    ['{"10":1,"b":2,"1":3}', '10 b 1'],
    ['{"b":{"2":1,"1":2},"0":[{"1":1,"0":2}]}', 'b 2 1 0 Item 1 0'],
    ['{"1":1,"1.0":2,"01":3,"0":4,"4294967295":5,"-1":6}', '1 1.0 01 0 4294967295 -1'],
  ])('C7.5 writes the members of a JSON text in its order: %s', (json, names) => {
    for (const text of [json, json, ` ${json.replaceAll(':', ' : ')}`]) {
      const xml = xmlOfJson(Buffer.from(text), {
        layout: { kind: 'document', root: 'R' },
        items: {},
        ...LIMITS,
      })
      const found = Array.from(xml.toString().matchAll(/<([^ />?]+)/g), ([, name]) =>
        unescapeName(name ?? ''),
      )
      expect(found.join(' ')).toBe(`R ${names}`)
    }
  })

  it('C7.5 names the items of an array within an array Item, whatever the member before it holds', () => {
    const items = { Tags: 'Tag' }
    expect(written([{ Tags: 1 }, [2]], items)).toBe(
      '<R type="array"><Item><Tags type="number">1</Tags></Item><Item type="array"><Item type="number">2</Item></Item></R>',
    )
    expect(written({ Tags: [[1], { Tags: '' }, [2]] }, items)).toBe(
      '<R><Tags type="array"><Tag type="array"><Item type="number">1</Item></Tag><Tag><Tags/></Tag>' +
        '<Tag type="array"><Item type="number">2</Item></Tag></Tags></R>',
    )
  })

  it("C7.5 names an array's items by the singular that the action configures, for that member alone", () => {
    const items = { Funds: 'Fund', Tags: '1 tag' }
    expect(written({ Funds: [['a']], Tags: ['b'], Other: ['c'], constructor: ['d'] }, items)).toBe(
      '<R><Funds type="array"><Fund type="array"><Item>a</Item></Fund></Funds>' +
        '<Tags type="array"><_x0031__x0020_tag>b</_x0031__x0020_tag></Tags>' +
        '<Other type="array"><Item>c</Item></Other><constructor type="array"><Item>d</Item></constructor></R>',
    )
  })

  it('T4.2 lets no key become markup, an attribute or the name of an element with another key', () => {
    const keys = [
      'a><b',
      'a b="c"',
      '@',
      '@type',
      '#text',
      '?xml',
      '!--',
      '/R',
      '__proto__',
      '&amp;',
      '__cdata',
    ]
    const value = JSON.parse(`{${keys.map((key) => `${JSON.stringify(key)}:"v"`).join()}}`) as JsonObject
    const names = [...written(value).matchAll(/<([^/>]+)>v<\/\1>/g)].map(([, name]) => name)
    expect(names).toHaveLength(keys.length)
    for (const name of names) expect(name).toMatch(/^[A-Za-z_][\w.-]*$/)
  })

  it('C7.5 writes a member named __proto__ below a null too', () => {
    const value = JSON.parse('{"__proto__":{"a":null}}') as JsonObject
    expect(written(value)).toBe(`<R ${NIL}><__proto__><a xsi:nil="true"/></__proto__></R>`)
  })

  it.each<[string, JsonValue]>([
    ['NUL', 'a\0'],
    ['a control character', '\x1B'],
    ['U+FFFE', '\u{FFFE}'],
    ['U+FFFF', { a: ['\u{FFFF}'] }],
    ['a lone high surrogate', '\uD800'],
    ['a lone low surrogate', 'x\uDC00y'],
    ['a key with half a surrogate pair', { '\uD800': 'a' }],
    ['a value that JSON cannot say', 1n as unknown as JsonValue],
  ])('C7.5 T4.4 answers 500 for %s', (_, value) => {
    expect(faultOf(() => writeXml(value))).toBe('answer_unconvertible 500')
  })

  it('C7.5 writes 256 levels, which is more than the builder does by itself, and answers 500 for more', () => {
    const nested = (levels: number): JsonValue => {
      let value: JsonValue = 'x'
      for (let level = 0; level < levels; level++) value = [value]
      return value
    }
    expect(written(nested(256)).split('<Item')).toHaveLength(257)
    expect(faultOf(() => writeXml(nested(257)))).toBe('answer_unconvertible 500')
    expect(faultOf(() => writeXml(nested(100_000)))).toBe('answer_unconvertible 500')
  })
})

describe('XML envelopes', () => {
  it('C2.2 C7.5 writes a success whose own elements carry no mark', () => {
    const data = { Funds: [{ Code: 'A' }], TotalCount: 1 }
    expect(writeXmlEnvelope(data, { Funds: 'Fund' }).toString()).toBe(
      `${DECLARATION}<ApiResponse><Errors/><Data><Funds type="array"><Fund><Code>A</Code></Fund></Funds>` +
        '<TotalCount type="number">1</TotalCount></Data></ApiResponse>',
    )
  })

  it('C2.2 C7.5 writes errors whose own elements carry no mark, and an empty Data', () => {
    const errors = [
      { code: 'A', message: 'x & y' },
      { code: 'B', message: '' },
    ]
    expect(writeXmlErrors(errors)).toBe(
      `${DECLARATION}<ApiResponse><Errors><Error><Code>A</Code><Message>x &amp; y</Message></Error>` +
        '<Error><Code>B</Code><Message/></Error></Errors><Data/></ApiResponse>',
    )
  })

  it('C7.5 marks what the data names like the envelope', () => {
    expect(writeXmlEnvelope({ Errors: [], Data: {}, Code: 1 }).toString()).toContain(
      '<Data><Errors type="array"/><Data type="object"/><Code type="number">1</Code></Data>',
    )
  })

  it('C7.5 declares xsi at the root for a null in the data', () => {
    expect(writeXmlEnvelope({ A: null }).toString()).toContain(
      `<ApiResponse ${NIL}><Errors/><Data><A xsi:nil="true"/></Data>`,
    )
  })
})
