import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BodySchema } from '../../../src/base/http/body/body-schema.ts'
import {
  type JsonObject,
  type JsonValue,
  parseJson,
  stringifyJson,
} from '../../../src/base/http/body/json.ts'
import { ENVELOPE_SCHEMA, readXml } from '../../../src/base/http/xml/read.ts'
import { writeXml, writeXmlEnvelope } from '../../../src/base/http/xml/write.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { anyText } from '../../support/any-text.ts'

const XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'

const json = (xml: string, schema?: BodySchema): string => stringifyJson(readXml(Buffer.from(xml), schema))

const refusal = (xml: string | Uint8Array, schema?: BodySchema): string => {
  try {
    return `read as ${stringifyJson(readXml(typeof xml === 'string' ? Buffer.from(xml) : xml, schema))}`
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    expect(thrown.code).toBe('body_malformed')
    expect(thrown.status).toBe(400)
    return thrown.facts.say ?? ''
  }
}

describe('XML to JSON without a schema', () => {
  it.each([
    ['<a/>', '""'],
    ['<a>text</a>', '"text"'],
    ['<a> \n </a>', '" \\n "'],
    ['<Any><B>1</B></Any>', '{"B":"1"}'],
    ['<a><b>007</b><c>true</c><d/></a>', '{"b":"007","c":"true","d":""}'],
    ['<a>\n  <b>x</b>\n</a>', '{"b":"x"}'],
    ['<a><b type="number">1e5</b></a>', '{"b":1e5}'],
    ['<a type="number">12345678901234567890.10</a>', '12345678901234567890.10'],
    ['<a type="number">-0</a>', '-0'],
    ['<a type="boolean">false</a>', 'false'],
    ['<a type="string">1</a>', '"1"'],
    ['<a type="array"/>', '[]'],
    ['<a type="array"> </a>', '[]'],
    ['<a type="object"/>', '{}'],
    ['<a type="object"><b/></a>', '{"b":""}'],
    ['<a type="array"><b>1</b><b>2</b></a>', '["1","2"]'],
    ['<a type="array"><Item type="array"><Item/></Item></a>', '[[""]]'],
    [`<a ${XSI} xsi:nil="true"/>`, 'null'],
    [`<a ${XSI}><b xsi:nil="1"></b><c xsi:nil="false"/></a>`, '{"b":null,"c":""}'],
    [`<a><b ${XSI} xsi:nil="true"/></a>`, '{"b":null}'],
    ['<a xmlns="urn:x" xmlns:xsd="urn:y"><b>1</b></a>', '{"b":"1"}'],
    ['<a>x<!-- y -->z</a>', '"xz"'],
    ['<!-- c --><a><!-- c --><b/><!-- c --></a><!-- c -->', '{"b":""}'],
    ['<!-- <!DOCTYPE a> --><a/>', '""'],
    ['<a><![CDATA[<!DOCTYPE &amp;]]></a>', '"<!DOCTYPE &amp;"'],
    ['<a>1<![CDATA[ <2> ]]>3</a>', '"1 <2> 3"'],
    ['<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x1F600;</a>', '"<>&\\"\'A😀"'],
    ['<a>x\r\ny&#13;z</a>', '"x\\ny\\rz"'],
    ['<a><_x0031_st/><_x_/><_x005F_x_/></a>', '{"1st":"","":"","_x_":""}'],
    ['<a><__proto__><b/></__proto__><constructor/></a>', '{"__proto__":{"b":""},"constructor":""}'],
    ['\u{FEFF}<?xml version="1.0" encoding="utf-8" standalone="yes"?>\n<a/>\n', '""'],
    ['<?xml version="1.1"?><a/>', '""'],
    ["<?xml version='1.0'?><a/>", '""'],
  ])('C7.5 reads %s', (xml, expected) => expect(json(xml)).toBe(expected))

  it.each([
    ['<a><b/><b/></a>', 'line 1, column 11: the element b is repeated'],
    ['<a><A/><_x0041_/></a>', 'the element _x0041_ is repeated'],
    ['<a>x<b/></a>', 'both text and elements'],
    ['<a><b/>x</a>', 'both text and elements'],
    ['<a><b/><![CDATA[x]]></a>', 'both text and elements'],
    ['<a b="c"/>', 'the attribute b is not known'],
    ['<a xml:lang="en"/>', 'the attribute xml:lang is not known'],
    [`<a ${XSI} xsi:type="b"/>`, 'the attribute xsi:type is not known'],
    ['<a type="date">x</a>', 'the type date is not known'],
    ['<a type="integer">1</a>', 'the type integer is not known'],
    ['<a type="null"/>', 'the type null is not known'],
    ['<a xsi:nil="true"/>', 'xsi is not declared'],
    ['<a xmlns:xsi="urn:x" xsi:nil="true"/>', 'xmlns:xsi is not http'],
    [`<a><b ${XSI}/><c xsi:nil="true"/></a>`, 'xsi is not declared'],
    [`<a ${XSI} xsi:nil="yes"/>`, 'xsi:nil is neither true nor false'],
    [`<a ${XSI} xsi:nil="constructor"/>`, 'xsi:nil is neither true nor false'],
    [`<a ${XSI} xsi:nil="true">x</a>`, 'marked as null, but not empty'],
    [`<a ${XSI} xsi:nil="true"><b/></a>`, 'holds elements'],
    [`<a ${XSI} xsi:nil="true" type="number"/>`, 'contradict each other'],
    ['<a xmlns:b=""/>', 'bound to nothing'],
    ['<a xmlns:b="http://www.w3.org/XML/1998/namespace"/>', 'which is reserved'],
    ['<a xmlns:b="http://www.w3.org/2000/xmlns/"/>', 'which is reserved'],
    ['<a xmlns:b="http://www.w3.org/2000/xmlns&#47;"/>', 'which is reserved'],
    ['<a xmlns="http://www.w3.org/XML/1998/namespace"/>', 'which is reserved'],
    ['<a><b xmlns="http://www.w3.org/2000/xmlns/"/></a>', 'which is reserved'],
    ['<a xmlns:xmlns="urn:x"/>', 'the attribute xmlns:xmlns is not known'],
    ['<x:a xmlns:x="urn:x"/>', 'the element x:a has a prefix'],
    ['<a><?php echo ?></a>', 'a processing instruction is not allowed'],
    ['<?xml-stylesheet href="a"?><a/>', 'a processing instruction is not allowed'],
    ['<!DOCTYPE a><a/>', 'a document type declaration is not allowed'],
    [
      '<?xml version="1.0"?> <!-- c -->\n<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
      'document type declaration',
    ],
    ['<a>&b;</a>', 'undefined entity'],
    ['<?xml version="1.0" encoding="ISO-8859-1"?><a/>', 'the only encoding is UTF-8'],
    ['<?xml version="1.0" encoding="UTF-16"?><a/>', 'the only encoding is UTF-8'],
    ['\u{FEFF}\u{FEFF}<a/>', 'more than one byte order mark'],
    ['<a type="number"></a>', 'is to be a number'],
    ['<a type="number">007</a>', 'is to be a number'],
    ['<a type="number"> 1</a>', 'is to be a number'],
    ['<a type="number">+1</a>', 'is to be a number'],
    ['<a type="number">0x10</a>', 'is to be a number'],
    ['<a type="number">NaN</a>', 'is to be a number'],
    ['<a type="number"><b/></a>', 'is to be a number, but holds elements'],
    ['<a type="boolean">TRUE</a>', 'is to be true or false'],
    ['<a type="boolean">1</a>', 'is to be true or false'],
    ['<a type="string"><b/></a>', 'is to be text, but holds elements'],
    ['<a type="array">x</a>', 'is to be an array, but holds text'],
    ['<a type="array"><b/><c/></a>', 'the element c stands in an array of b'],
    ['<a type="object">x</a>', 'is to be an object, but holds text'],
    ['<a><_xD800_/></a>', 'half a surrogate pair'],
    ['', 'root element'],
    [' ', 'root element'],
    ['{"a":1}', 'text data outside of root node'],
    ['<a>\n<b>\n</a>', 'XML line 3, column 4: unexpected close tag'],
  ])('C7.5 refuses %s', (xml, say) => expect(refusal(xml)).toContain(say))

  it.each([
    ['UTF-16 with a mark', Buffer.from('\u{FEFF}<a/>', 'utf16le')],
    ['UTF-16 without one', Buffer.from('<a/>', 'utf16le')],
    ['Latin-1', Buffer.from('<a>é</a>', 'latin1')],
    ['overlong UTF-8', Buffer.from([0x3c, 0x61, 0x3e, 0xc0, 0xaf, 0x3c, 0x2f, 0x61, 0x3e])],
    ['a surrogate in UTF-8', Buffer.from([0x3c, 0x61, 0x3e, 0xed, 0xa0, 0x80, 0x3c, 0x2f, 0x61, 0x3e])],
  ])('C7.5 refuses %s', (_, bytes) => expect(refusal(bytes)).not.toContain('read as'))

  it('C2.6 tells a long or strange name back short and printable', () => {
    const say =
      refusal(`<a><${'\u{202C}é'.repeat(1000)} b="c"/></a>`) + refusal(`<a ${'b'.repeat(10_000)}="c"/>`)
    expect(say.length).toBeLessThan(400)
    expect(say).not.toMatch(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u)
  })
})

const FUND: BodySchema = {
  type: 'object',
  properties: {
    Code: { type: 'string' },
    Size: { type: 'integer' },
    Rate: { type: ['number', 'null'] },
    Open: { type: 'boolean' },
    Tags: { type: 'array', items: { type: 'string' } },
    Owners: { type: 'array', items: { type: 'object', properties: { Age: { type: 'integer' } } } },
    Grid: { type: 'array', items: { type: 'array', items: { type: 'number' } } },
    Address: { type: 'object', additionalProperties: { type: 'number' } },
    Free: {},
    Id: { type: ['string', 'number'] },
    Loose: { items: { type: 'number' } },
  },
}

describe('documents that follow each other', () => {
  const MARK = '\u{FFFD}'
  const many = (count: number, name: (at: number) => string): string =>
    `<a>${Array.from({ length: count }, (_, at) => `<${name(at)}/>`).join('')}</a>`

  it('C7.5, T4.4 half a surrogate pair in one is nothing to the others', () => {
    expect(json(`<a type="array"><${MARK}>1</${MARK}></a>`)).toBe('["1"]')
    for (const name of ['_xD800_', '_xDC00_a', 'a_xD800_'])
      expect(refusal(`<a><${name}>1</${name}></a>`)).toContain('half a surrogate pair')
    expect(json(`<a type="array"><${MARK}>1</${MARK}><${MARK}>2</${MARK}></a>`)).toBe('["1","2"]')
    expect(refusal(`<a><${MARK}>1</${MARK}><b/><${MARK}>2</${MARK}></a>`)).toContain('is repeated')
  })

  it('C7.5, T4.4 a repeated key is refused, however many names and spellings came before', () => {
    const before = [
      '<a/>',
      many(900, (at) => `n${at}`),
      many(300, (at) => `m${at}`),
      many(20, (at) => `${'l'.repeat(80)}${at}`),
    ]
    for (const text of before) {
      readXml(Buffer.from(text))
      for (const [one, other] of [
        ['A', '_x0041_'],
        ['n5', '_x006E_5'],
        ['_x005F_x_', '_x005F__x0078__'],
        ['l'.repeat(80), 'l'.repeat(80)],
      ] as const) {
        expect(refusal(`<a><${one}/><b/><${other}/></a>`)).toContain('is repeated')
        expect(refusal(`<a><${other}/><b/><${one}/></a>`)).toContain('is repeated')
      }
    }
  })
})

describe('XML to JSON by a schema', () => {
  it.each([
    ['<F/>', '{}'],
    ['<F><Code>007</Code></F>', '{"Code":"007"}'],
    ['<F><Size>12</Size><Rate>1.50</Rate><Open>true</Open></F>', '{"Size":12,"Rate":1.50,"Open":true}'],
    [`<F ${XSI}><Rate xsi:nil="true"/></F>`, '{"Rate":null}'],
    ['<F><Id>7</Id></F>', '{"Id":"7"}'],
    ['<F><Id type="number">7</Id></F>', '{"Id":7}'],
    ['<F><Free>7</Free></F>', '{"Free":"7"}'],
    ['<F><Free type="number">7</Free></F>', '{"Free":7}'],
    ['<F><Unknown>7</Unknown></F>', '{"Unknown":"7"}'],
    ['<F><Tags/></F>', '{"Tags":[]}'],
    ['<F><Tags>\n</Tags></F>', '{"Tags":[]}'],
    ['<F><Tags><Item>a</Item></Tags></F>', '{"Tags":["a"]}'],
    ['<F><Tags><Tag>a</Tag><Tag>b</Tag></Tags></F>', '{"Tags":["a","b"]}'],
    ['<F><Tags>a</Tags><Tags>b</Tags></F>', '{"Tags":["a","b"]}'],
    ['<F><Tags>a</Tags></F>', '{"Tags":["a"]}'],
    ['<F><Owners><Owner><Age>5</Age></Owner></Owners></F>', '{"Owners":[{"Age":5}]}'],
    ['<F><Owners><Age>5</Age></Owners><Owners/></F>', '{"Owners":[{"Age":5},{}]}'],
    ['<F><Grid><R><C>1</C><C>2</C></R><R/></Grid></F>', '{"Grid":[[1,2],[]]}'],
    ['<F><Address/></F>', '{"Address":{}}'],
    ['<F><Address><Zip>1</Zip></Address></F>', '{"Address":{"Zip":1}}'],
    ['<F><Loose><Item>1</Item></Loose></F>', '{"Loose":[1]}'],
  ])('C7.5 reads %s', (xml, expected) => expect(json(xml, FUND)).toBe(expected))

  it.each([
    ['<F>x</F>', 'does not hold what is expected: object'],
    ['<F type="array"/>', 'is marked as array, but object is expected'],
    ['<F><Size>x</Size></F>', 'the element Size does not hold what is expected: number'],
    ['<F><Size></Size></F>', 'does not hold what is expected: number'],
    ['<F><Size><a/></Size></F>', 'does not hold what is expected: number'],
    ['<F><Rate/></F>', 'does not hold what is expected: number or null'],
    ['<F><Open>yes</Open></F>', 'does not hold what is expected: boolean'],
    ['<F><Code type="number">1</Code></F>', 'is marked as number, but string is expected'],
    [`<F ${XSI}><Code xsi:nil="true"/></F>`, 'is marked as null, but string is expected'],
    ['<F><Code>a</Code><Code>b</Code></F>', 'the element Code is repeated'],
    ['<F><Unknown/><Unknown/></F>', 'the element Unknown is repeated'],
    ['<F><Tags><Tag>a</Tag></Tags><Tags>b</Tags></F>', 'the element Tags does not hold'],
    ['<F><Owners>x</Owners></F>', 'does not hold what is expected: object'],
    ['<F><Address>x</Address></F>', 'does not hold what is expected: object'],
  ])('C7.5 refuses %s', (xml, say) => expect(refusal(xml, FUND)).toContain(say))
})

/** Every value that JSON can say, hostile keys and odd literals among them. */
const jsonValues = (): fc.Arbitrary<JsonValue> => {
  const text = fc
    .oneof(fc.string({ unit: 'grapheme' }), anyText(), fc.constantFrom('', ' ', '\r\n\t', ']]>'))
    .map((each) => each.toWellFormed().replace(/[\0-\x08\x0B\x0C\x0E-\x1F\u{FFFE}\u{FFFF}]/gu, ''))
  const key = fc.oneof(
    anyText().map((each) => each.toWellFormed()),
    fc.constantFrom(
      '',
      'a><b',
      '__proto__',
      'xml',
      'xmlns',
      'type',
      '_x0041_',
      '_x_',
      '@',
      '#text',
      ':',
      '1',
      'Item',
    ),
    fc.constantFrom('constructor', 'toString', 'hasOwnProperty', '?xml', 'xsi:nil', '_x0041 ', 'Ω', '-'),
  )
  const literal = fc.constantFrom('1e5', '1.0', '-0', '1E+2', '12345678901234567890', '0.10', '1e400', '7')
  return fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 6, withCrossShrink: true },
      text,
      fc.constant(null),
      fc.boolean(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      literal.map((each) => JSON.rawJSON(each)),
      fc.array(tie('value'), { maxLength: 4 }),
      fc
        .array(fc.tuple(key, tie('value')), { maxLength: 5 })
        .map((members): JsonObject => Object.fromEntries<JsonValue>(members)),
    ),
  })).value
}

/** Members in one order: JSON objects have none. */
const canonical = (value: JsonValue): string =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each) && !JSON.isRawJSON(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  )

describe('JSON to XML to JSON', () => {
  it('C7.5 T4.4 is the identity for every JSON value', () => {
    fc.assert(
      fc.property(jsonValues(), fc.boolean(), (value, named) => {
        const items = named ? { a: 'b', '': 'c', __proto__: 'd', Item: 'Items' } : {}
        const back = readXml(writeXml(value, 'Root', items))
        expect(canonical(back)).toBe(canonical(value))
      }),
      { numRuns: 3000 },
    )
  })

  it('C7.5 is the identity for the data of an envelope too', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), jsonValues()), (data) => {
        const xml = writeXmlEnvelope(data)
        expect(canonical(readXml(xml, ENVELOPE_SCHEMA))).toBe(canonical({ Errors: [], Data: data }))
      }),
    )
  })

  it('C7.5 keeps the literals of JSON that came as bytes', () => {
    const text = '{"a":[1.0,1e5,-0,12345678901234567890,0.1],"b":{"__proto__":null,"":[[]]}}'
    expect(stringifyJson(readXml(writeXml(parseJson(Buffer.from(text)))))).toBe(text)
  })
})
