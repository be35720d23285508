import { describe, expect, it } from 'vitest'
import { Fault } from '../../src/base/kernel/faults.ts'
import { readXml } from '../../src/base/http/xml/read.ts'
import { HEAVY_XML, many } from '../support/heavy-documents.ts'

/** T4.2 to T4.4: what XML bodies are used for. What is refused here never becomes a value, so nothing can go on. */

const refusal = (xml: string | Uint8Array): string => {
  try {
    readXml(typeof xml === 'string' ? Buffer.from(xml) : xml)
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.code === 'body_malformed') return thrown.facts.say ?? ''
    throw thrown
  }
  return 'accepted'
}

/** Not well formed by XML 1.0 (production or constraint named), none of them with a DTD. */
const NOT_WELL_FORMED: readonly (readonly [string, string])[] = [
  ['[1] no root', ''],
  ['[1] white space only', ' \n'],
  ['[1] two roots', '<a/><b/>'],
  ['[1] text before the root', 'x<a/>'],
  ['[1] text after the root', '<a/>x'],
  ['[1] a reference after the root', '<a/>&#32;'],
  ['[1] CDATA before the root', '<![CDATA[x]]><a/>'],
  ['[1] CDATA after the root', '<a/><![CDATA[]]>'],
  ['[1] a close tag alone', '</a>'],
  ['[1] a stray close tag', '<a/></a>'],
  ['[2] NUL', '<a>\0</a>'],
  ['[2] a control character', '<a>\x07</a>'],
  ['[2] U+FFFE', '<a>\u{FFFE}</a>'],
  ['[2] U+FFFF in an attribute', '<a type="\u{FFFF}"/>'],
  ['[2] a control character in a comment', '<a><!-- \x01 --></a>'],
  ['[2] a control character in CDATA', '<a><![CDATA[\x01]]></a>'],
  ['[4] a name that starts with a digit', '<1a/>'],
  ['[4] a name that starts with a hyphen', '<-a/>'],
  ['[4] a name that starts with a full stop', '<.a/>'],
  ['[4] a space before the name', '< a/>'],
  ['[4] no name', '<>x</>'],
  ['[5] a character that no name holds', '<a$b/>'],
  ['[10] < in an attribute', '<a type="<"/>'],
  ['[10] & in an attribute', '<a type="&"/>'],
  ['[10] an attribute without quotes', '<a type=number>1</a>'],
  ['[10] an attribute with unlike quotes', '<a type="number\'>1</a>'],
  ['[10] an attribute that is not closed', '<a type="number>1</a>'],
  ['[14] ]]> in text', '<a>]]></a>'],
  ['[14] ]]]> in text', '<a>]]]></a>'],
  ['[14] a bare &', '<a>a & b</a>'],
  ['[14] a bare <', '<a>1 < 2</a>'],
  ['[15] -- in a comment', '<a><!-- a -- b --></a>'],
  ['[15] a comment that ends with --->', '<a><!-- a ---></a>'],
  ['[15] a comment that is not closed', '<a><!-- a</a>'],
  ['[15] a comment within a tag', '<a <!-- b --> />'],
  ['[15] <!-> as a comment', '<a><!-></a>'],
  ['[16] an instruction without a target', '<a><? b ?></a>'],
  ['[16] an instruction that is not closed', '<a><?b</a>'],
  ['[17] an instruction named XML', '<a><?XML b?></a>'],
  ['[18] CDATA in lower case', '<a><![cdata[b]]></a>'],
  ['[18] CDATA with a space', '<a><![ CDATA[b]]></a>'],
  ['[18] CDATA that is not closed', '<a><![CDATA[b]]</a>'],
  ['[22] white space before the declaration', ' <?xml version="1.0"?><a/>'],
  ['[22] a declaration within', '<a><?xml version="1.0"?></a>'],
  ['[22] two declarations', '<?xml version="1.0"?><?xml version="1.0"?><a/>'],
  ['[23] a declaration without a version', '<?xml encoding="UTF-8"?><a/>'],
  ['[23] an empty declaration', '<?xml?><a/>'],
  ['[23] a declaration in upper case', '<?XML version="1.0"?><a/>'],
  ['[23] a declaration out of order', '<?xml version="1.0" standalone="yes" encoding="UTF-8"?><a/>'],
  ['[23] a declaration that is no instruction', '<?xml version="1.0"><a/>'],
  ['[23] an unknown part of the declaration', '<?xml version="1.0" valid="no"?><a/>'],
  ['[24] no quotes about the version', '<?xml version=1.0?><a/>'],
  ['[26] another version', '<?xml version="2.0"?><a/>'],
  ['[26] a version with a space', '<?xml version=" 1.0"?><a/>'],
  ['[32] standalone in upper case', '<?xml version="1.0" standalone="YES"?><a/>'],
  ['[80] no space before the encoding', '<?xml version="1.0"encoding="UTF-8"?><a/>'],
  ['[81] an encoding that starts with a digit', '<?xml version="1.0" encoding="8-UTF"?><a/>'],
  ['[39] a tag that is not closed', '<a><b></a>'],
  ['[39] tags that cross', '<a><b></a></b>'],
  ['[39] a close tag in another case', '<a></A>'],
  ['[39] a document that ends early', '<a>'],
  ['[40] no space between attributes', '<a xmlns="b"type="object"/>'],
  ['[40] an attribute twice', '<a type="object" type="object"/>'],
  ['[40] a tag that ends in the middle', '<a type="object"'],
  ['[41] an attribute without a value', '<a type/>'],
  ['[42] a close tag with an attribute', '<a></a type="b">'],
  ['[42] a close tag with a slash', '<a></a/>'],
  ['[42] a space before the name of a close tag', '<a></ a>'],
  ['[44] a slash and a space', '<a / >'],
  ['[66] a character reference without digits', '<a>&#;</a>'],
  ['[66] a reference to NUL', '<a>&#0;</a>'],
  ['[66] a reference to a control character', '<a>&#x1B;</a>'],
  ['[66] a reference to half a surrogate pair', '<a>&#xD800;</a>'],
  ['[66] a reference to U+FFFE', '<a>&#xFFFE;</a>'],
  ['[66] a reference beyond Unicode', '<a>&#x110000;</a>'],
  ['[66] a reference with X', '<a>&#X41;</a>'],
  ['[66] hex digits without x', '<a>&#4A;</a>'],
  ['[66] no semicolon', '<a>&#65</a>'],
  ['[66] spaces in a reference', '<a>& #65;</a>'],
  ['[68] an entity that nothing declares', '<a>&nbsp;</a>'],
  ['[68] an entity in upper case', '<a>&AMP;</a>'],
  ['[68] an entity without a semicolon', '<a>&amp</a>'],
  ['[68] an entity without a name', '<a>&;</a>'],
  ['namespaces: an unbound prefix', '<b:a/>'],
  ['namespaces: an empty prefix', '<:a/>'],
  ['namespaces: two colons', '<a:b:c xmlns:a="urn:x"/>'],
]

describe('XML that is not well formed', () => {
  it.each(NOT_WELL_FORMED)('T4.2 refuses %s', (_, xml) => expect(refusal(xml)).not.toBe('accepted'))

  it('T4.2 refuses each of a document’s truncations', () => {
    const xml = '<?xml version="1.0"?><a><!--c--><b type="number">1</b><c>x<![CDATA[y]]>&amp;</c></a>'
    expect(refusal(xml)).toBe('accepted')
    for (let end = 0; end < xml.length; end++)
      expect(refusal(xml.slice(0, end)), xml.slice(0, end)).not.toBe('accepted')
  })
})

const LAUGHS = Array.from({ length: 9 }, (_, i) => `<!ENTITY l${i + 1} "${`&l${i};`.repeat(10)}">`).join('')

describe('document types and entities', () => {
  it.each([
    ['an internal subset', '<!DOCTYPE a [<!ELEMENT a ANY>]><a/>'],
    ['an external one', '<!DOCTYPE a SYSTEM "http://127.0.0.1/a.dtd"><a/>'],
    ['an external entity', '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'],
    ['a parameter entity', '<!DOCTYPE a [<!ENTITY % b SYSTEM "http://127.0.0.1/"> %b;]><a/>'],
    ['entities of entities', `<!DOCTYPE a [<!ENTITY l0 "lol">${LAUGHS}]><a>&l9;</a>`],
    ['one behind a comment', '<?xml version="1.0"?><!-- - --> <!DOCTYPE a><a/>'],
    ['one in lower case', '<!doctype a><a/>'],
    ['one within', '<a><!DOCTYPE a></a>'],
    ['one after the root', '<a/><!DOCTYPE a>'],
    ['XInclude', '<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="file:///etc/passwd"/></a>'],
    ['a schema location', '<a xsi:schemaLocation="urn:a http://127.0.0.1/"/>'],
    ['a style sheet', '<?xml-stylesheet href="http://127.0.0.1/"?><a/>'],
  ])('T4.3 refuses %s', (_, xml) => expect(refusal(xml)).not.toBe('accepted'))
})

describe('heavy XML', () => {
  it.each(HEAVY_XML)('T4.3 refuses %s', (_, xml) => {
    expect(refusal(xml)).not.toBe('accepted')
  })

  it('T4.3 accepts what stays within the bounds', () => {
    expect(refusal(many('<a>', 100) + many('</a>', 100))).toBe('accepted')
    expect(refusal(many('<a>', 101) + many('</a>', 101))).toContain('deeper than 100')
    expect(refusal(`<a type="array">${many('<a/>', 49_998)}</a>`)).toBe('accepted')
    expect(refusal(`<a type="array">${many('<a/>', 49_999)}</a>`)).toContain('more than 50000')
    expect(refusal(`<a>${many('&lt;', 50_000)}</a>`)).toBe('accepted')
    expect(refusal(`<a>${many('&lt;', 50_001)}</a>`)).toContain('more than 50000 references')
  })

  it('T4.3 takes names like __proto__ and constructor for data', () => {
    const value = readXml(Buffer.from('<a><__proto__><polluted>1</polluted></__proto__><constructor/></a>'))
    expect(JSON.stringify(value)).toBe('{"__proto__":{"polluted":"1"},"constructor":""}')
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })
})

describe('silent changes', () => {
  it.each(['007', '1e5', '0x1F', '12345678901234567890', 'true', 'null', ' ', '', '1.0', 'NaN'])(
    'T4.4 keeps the text %j as it stands where nothing says that it is more',
    (text) => expect(readXml(Buffer.from(`<a>${text}</a>`))).toBe(text),
  )

  it('T4.4 tells empty, null and absent apart', () => {
    const xsi = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    expect(JSON.stringify(readXml(Buffer.from(`<a ${xsi}><b/><c xsi:nil="true"/></a>`)))).toBe(
      '{"b":"","c":null}',
    )
  })
})
