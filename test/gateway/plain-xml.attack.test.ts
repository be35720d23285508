import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { plainEnvelope } from '../../src/gateway/conversion/answers.ts'
import { checkPlainBody } from '../../src/gateway/conversion/bodies.ts'
import { type JsonValue, parseJson, stringifyJson } from '../../src/base/http/body/json.ts'
import { decodeBodyXml } from '../../src/base/http/xml/decode.ts'
import { writePlainXml } from '../../src/base/http/xml/plain-write.ts'
import { BODY_LIMITS, type PlainXmlRules } from '../../src/base/http/xml/plain-document.ts'
import { readPlainXml } from '../../src/base/http/xml/plain-read.ts'
import { isXmlText } from '../../src/base/http/xml/syntax.ts'
import { Fault } from '../../src/base/kernel/faults.ts'
import { anyText } from '../support/any-text.ts'
import { canonicalXml } from '../support/canonical-xml.ts'
import { HEAVY_XML, many } from '../support/heavy-documents.ts'
import { sized } from '../support/long.ts'
import { needing } from '../support/machine.ts'

/** T4.2 to T4.4 for XML of a service's own (C7.7): it passes as it is written, and so must not break its envelope. */

/** How many documents are made of pieces. */
const MANY = sized(1500, 4000)

const RULES: PlainXmlRules = {
  root: undefined,
  attributes: {},
  stripNamespaces: false,
  paths: { type: undefined, isArray: false, children: new Map() },
}

/** The result, or the code of the fault and what it says. */
function attempt<T>(read: () => T): T | string {
  try {
    return read()
  } catch (thrown) {
    if (thrown instanceof Fault) return `${thrown.code}: ${thrown.facts.say ?? thrown.facts.detail ?? ''}`
    throw thrown
  }
}

const spliced = (xml: string | Uint8Array, contentType?: string): Buffer | string =>
  attempt(() => plainEnvelope(Buffer.from(xml), contentType, RULES, 'xml'))
const mapped = (xml: string): JsonValue | string =>
  attempt(
    () => (parseJson(plainEnvelope(Buffer.from(xml), undefined, RULES, 'json')) as { Data: JsonValue }).Data,
  )
const asBody = (xml: string): string =>
  attempt(() => {
    checkPlainBody(Buffer.from(xml), RULES, undefined)
    return 'accepted'
  })

const around = (canonical: string): string =>
  `<ApiResponse><Errors></Errors><Data>${canonical}</Data></ApiResponse>`

/** Whatever of it is accepted is canonically the same within its envelope. @returns how many are accepted */
function expectSame(documents: readonly string[]): number {
  const given = documents.map((xml) => ({ xml, envelope: spliced(xml) }))
  const accepted = given.filter(({ envelope }) => typeof envelope !== 'string')
  const originals = canonicalXml(accepted.map(({ xml }) => xml))
  const envelopes = canonicalXml(accepted.map(({ envelope }) => envelope))
  for (const [at, { xml }] of accepted.entries())
    expect(envelopes[at], JSON.stringify(xml)).toBe(around(originals[at] ?? 'no XML'))
  return accepted.length
}

describe('documents that try to leave their envelope', () => {
  const ESCAPES = [
    '</Data></ApiResponse>',
    '<a/></Data><Errors><Error/></Errors><Data>',
    '<a/><Errors/>',
    '<a></Data></a>',
    '<a/>]]>',
    '<a>]]></a>',
    '<a>]]<!---->></a>',
    '<a>]<!---->]<?b?>></a>',
    '<a>]]<?b?><!---->></a>',
    '<a>\r<!---->\n</a>',
    '<a>&<!---->amp;</a>',
    '<a>&#60;/Data&#62;</a>',
    '<a><![CDATA[</Data>]]></a>',
    '<a><![CDATA[<!-- ]]>x<!-- ]]> --></a>',
    '<a><![CDATA[]]]]><![CDATA[>]]></a>',
    '<a b="</Data>"/>',
    '<a b=">"/>',
    "<a b='&quot;></Data>'/>",
    '<a/><!-- </Data> -->',
    '<a><!-- </a> --><?b </a>?></a>',
    '<a/><?b </Data>?>',
    '<?xml version="1.0"?><?xml version="1.0"?><a/>',
    '<a/><?xml version="1.0"?>',
    '<a><?xml version="1.0"?></a>',
    '<a xmlns="urn:a"><ApiResponse xmlns=""/></a>',
    '<Data><Data/></Data>',
    '<a><!--</a>',
    '\uFEFF\uFEFF<a/>',
    '<a>\uFFFE</a>',
    '<a>\0</a>',
    '<a/>\0',
    '<!DOCTYPE a [<!ENTITY b "</Data>">]><a>&b;</a>',
    '<!DOCTYPE a SYSTEM "]>" ><a/>',
    "<!DOCTYPE a SYSTEM '[' ><a/>",
    '<!DOCTYPE a SYSTEM "><!--"><a/><!-- -->',
    '<!DOCTYPE a><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    '<!-- <!DOCTYPE a [ --><a/>',
    '<?b <!DOCTYPE a [?><a/>',
  ]

  it('T4.4 are refused, or the same within it', needing('python3'), () => {
    expect(expectSame(ESCAPES)).toBeGreaterThan(15)
  })

  const piece = fc.constantFrom(
    ...['<', '>', '&', ']', ']]', ']]>', '\r', '\n', '\r\n', ' ', 'a', '"', "'", '&lt;', '&#13;', '&#x5D;'],
    ...['<!--', '-->', '<!---->', '<?p', '?>', '<?p ]?>', '<![CDATA[', '<![CDATA[]]>', '<![CDATA[]]]>'],
    ...[
      '<a>',
      '</a>',
      '<a/>',
      '<a b="',
      "<a b='>'/>",
      '</Data>',
      '<x:a xmlns:x="u">',
      '</x:a>',
      '\u0085',
      '\u2028',
    ],
  )
  /** Pieces that stand anywhere in an element: few documents of them are refused. */
  const sound = fc.constantFrom(
    ...[
      '>',
      ']',
      ']]',
      '\r',
      '\n',
      ' ',
      'a',
      '"',
      '&lt;',
      '&#13;',
      '&#x5D;',
      '<!---->',
      '<!-- </a> -->',
      '<?p ]]> ?>',
    ],
    ...[
      '<![CDATA[]]>',
      '<![CDATA[]]]>',
      '<![CDATA[<!-- ]]>',
      '<a b="]]>"/>',
      '<x:a xmlns:x="u" x:b="&#10;\n"/>',
      '<a>]]</a>',
    ],
  )

  it('T4.4 are the same within it or refused, whatever they are made of', needing('python3'), () => {
    const wild = fc.sample(fc.array(piece, { maxLength: 8 }), MANY)
    const tame = fc.sample(fc.array(sound, { maxLength: 12 }), MANY)
    const documents = [...wild, ...tame].map((pieces) => `<r>${pieces.join('')}</r>`)
    expect(expectSame(documents)).toBeGreaterThan(MANY / 2)
  })

  it('T4.4 are the same in JSON after XML was written of them, or lose something and are refused', () => {
    let same = 0
    for (const pieces of fc.sample(fc.array(sound, { maxLength: 8 }), MANY)) {
      const xml = `<r>${pieces.join('')}</r>`
      const value = mapped(xml)
      if (typeof value === 'string') {
        expect(value, xml).toMatch(/^answer_unmappable: .*both text and elements|^body_malformed: /)
        continue
      }
      expect(stringifyJson(mapped(writePlainXml(value, RULES))), xml).toBe(stringifyJson(value))
      same++
    }
    expect(same).toBeGreaterThan(MANY / 10)
  })
})

describe('heavy documents', () => {
  it.each(HEAVY_XML)('T4.3 refuses %s as a body', (_, xml) => {
    expect(asBody(xml)).toMatch(/^body_malformed/)
  })

  it.each(HEAVY_XML.filter(([name]) => !/siblings|references/.test(name)))(
    'T4.3 refuses %s as an answer, in both formats',
    (_, xml) => {
      expect(spliced(xml)).toMatch(/^body_malformed/)
      expect(mapped(xml)).toMatch(/^body_malformed/)
    },
  )

  it('T4.3 accepts what stays within the bounds', () => {
    expect(asBody(many('<a>', 100) + many('</a>', 100))).toBe('accepted')
    expect(asBody(many('<a>', 101) + many('</a>', 101))).toContain('deeper than 100')
    expect(asBody(`<a>${many('<a/>', 49_999)}</a>`)).toBe('accepted')
    expect(asBody(`<a>${many('<a/>', 50_000)}</a>`)).toContain('more than 50000')
    expect(asBody(`<a>${many('&lt;', 50_001)}</a>`)).toContain('more than 50000 references')
    const attributes = (count: number): string =>
      Array.from({ length: count }, (_, at) => ` a${at}=""`).join('')
    expect(asBody(`<a${attributes(256)}/>`)).toBe('accepted')
    expect(asBody(`<a${attributes(257)}/>`)).toContain('more than 256 attributes')
    expect(spliced(many('<a>', 200) + many('</a>', 200))).toBeInstanceOf(Buffer)
    expect(spliced(many('<a>', 201) + many('</a>', 201))).toContain('deeper than 200')
    expect(spliced(`<a>${many('&lt;', 1_000_001)}</a>`)).toContain('more than 1000000 references')
  })

  it('T4.3 namespaces cost no more where elements declare many and are deep', () => {
    const declared = Array.from({ length: 200 }, (_, at) => ` xmlns:a${at}="urn:${at}"`).join('')
    const deep = `${many(`<a${declared}>`, 99)}${many('<a0:b/>', 25_000)}${many('</a>', 99)}`
    expect(asBody(deep)).toBe('accepted')
  })

  it('T4.7, C8.8 parts below many declarations are refused before these are all made anew', () => {
    const declared = Array.from({ length: 250 }, (_, at) => ` xmlns:a${at}="x"`).join('')
    const xml = Buffer.from(`<r${declared}>${many('<a/>', sized(100_000, 400_000))}</r>`)
    expect(attempt(() => plainEnvelope(xml, undefined, RULES, 'xml', ['r', 'a']))).toMatch(
      /^answer_too_large/,
    )
  })

  it('T4.7, C8.8 declarations that ended cost the parts behind them nothing', () => {
    const ended = Array.from({ length: 100_000 }, (_, at) => `<x xmlns:a${at}="x"/>`).join('')
    const xml = Buffer.from(`<r>${ended}${many('<a/>', 100_000)}</r>`)
    expect(plainEnvelope(xml, undefined, RULES, 'xml', ['r', 'a'])).toHaveLength(400_087)
  })
})

describe('documents that lie about their encoding', () => {
  const declared = (encoding: string): string => `<?xml version="1.0" encoding="${encoding}"?><a>é</a>`
  it.each([
    ['a UTF-8 mark before declared Latin-1', `\uFEFF${declared('ISO-8859-1')}`],
    ['a UTF-8 mark before declared UTF-16', `\uFEFF${declared('UTF-16')}`],
    ['a UTF-16 mark before declared UTF-8', Buffer.from(`\uFEFF${declared('UTF-8')}`, 'utf16le')],
    ['declared UTF-16 in bytes of UTF-8', declared('UTF-16')],
    ['UTF-16 without a mark', Buffer.from(declared('UTF-16'), 'utf16le')],
    ['UTF-16 that ends in the middle', Buffer.from('\uFEFF<a/>', 'utf16le').subarray(0, -1)],
    ['half a surrogate pair in UTF-16', Buffer.from('\uFEFF<a>\uD800</a>', 'utf16le')],
    ['UTF-32', Buffer.from([0xff, 0xfe, 0, 0, 0x3c, 0, 0, 0, 0x61, 0, 0, 0])],
    ['UTF-7', declared('UTF-7')],
    ['EBCDIC', Buffer.from([0x4c, 0x6f, 0xa7, 0x94, 0x93])],
    ['an overlong slash in UTF-8', Buffer.from([0x3c, 0x61, 0x3e, 0xc0, 0xaf, 0x3c, 0x2f, 0x61, 0x3e])],
    [
      'half a surrogate pair in UTF-8',
      Buffer.from([0x3c, 0x61, 0x3e, 0xed, 0xa0, 0x80, 0x3c, 0x2f, 0x61, 0x3e]),
    ],
    ['windows-1252', declared('windows-1252')],
    [
      'a declaration further behind than it is looked for',
      `<?xml version="1.0"${' '.repeat(2000)}encoding="ISO-8859-1"?><a/>`,
    ],
  ])('T4.3 are refused: %s', (_, xml) => {
    expect(spliced(xml)).toMatch(/^body_malformed/)
  })

  it('C7.7 Latin-1 is not windows-1252', () => {
    const xml = Buffer.concat([
      Buffer.from('<?xml version="1.0" encoding="iso-8859-1"?><a>'),
      Buffer.from([0x80, 0xe9]),
      Buffer.from('</a>'),
    ])
    expect(spliced(xml).toString()).toContain('<a>\u0080é</a>')
  })

  it('C7.7 a charset that is told overrules the declaration, and a mark overrules both', () => {
    expect(spliced(declared('ISO-8859-1'), 'text/xml; charset="UTF-8"').toString()).toContain('<a>é</a>')
    expect(spliced('<a>é</a>', 'text/xml; charset=iso-8859-1').toString()).toContain('<a>Ã©</a>')
    expect(spliced('\uFEFF<a>é</a>', 'text/xml; charset=iso-8859-1').toString()).toContain('<a>é</a>')
    expect(spliced(declared('ISO-8859-1'), 'text/xml; charset=us-ascii')).toMatch(/^body_malformed/)
    expect(spliced(Buffer.from('<a/>', 'utf16le'), 'text/xml; charset=utf-16')).toMatch(/^body_malformed/)
  })
})

describe('XML 1.1', () => {
  it('C7.7 is read as XML 1.0, unless a character has another meaning there', () => {
    const version = (text: string): string => `<?xml version="1.1"?><a>${text}</a>`
    expect(spliced(version('b')).toString()).toContain('<a>b</a>')
    for (const text of ['\u0085', '\u2028', '\u0080', '&#1;'])
      expect(spliced(version(text))).toMatch(/^body_malformed/)
  })
})

/** A value that the mapping can say: names of XML, no null, no list of one, text beside attributes only. */
const representable = (): fc.Arbitrary<JsonValue> => {
  const text = anyText({ maxLength: 8 }).filter(isXmlText)
  const name = fc.oneof(
    fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', 'a', 'é', 'a.b-c_d'),
    fc.stringMatching(/^[A-Za-z_][\w.-]{0,5}$/),
  )
  const object = (members: readonly (readonly [string, JsonValue])[]): JsonValue =>
    Object.setPrototypeOf(Object.fromEntries(members), null) as JsonValue
  const attributes = fc.uniqueArray(
    fc.tuple(
      name.map((each) => `@${each}`),
      text,
    ),
    {
      selector: ([key]) => key,
      minLength: 1,
      maxLength: 3,
    },
  )
  const { element } = fc.letrec<{ element: JsonValue; members: (readonly [string, JsonValue])[] }>((tie) => ({
    element: fc.oneof(
      { depthSize: 'small' },
      text,
      fc
        .tuple(
          attributes,
          text.filter((each) => each !== ''),
        )
        .map(([given, inner]) => object([...given, ['#text', inner]])),
      tie('members').map(object),
      fc.tuple(attributes, tie('members')).map(([given, members]) => object([...given, ...members])),
    ),
    members: fc.uniqueArray(
      fc.tuple(name, fc.oneof(tie('element'), fc.array(tie('element'), { minLength: 2, maxLength: 3 }))),
      { selector: ([key]) => key, minLength: 1, maxLength: 3 },
    ),
  }))
  return fc.tuple(name, element).map((member) => object([member]))
}

describe('JSON as XML of a service’s own', () => {
  it('C7.7 comes back the same, where the mapping can say it', () => {
    fc.assert(
      fc.property(representable(), (value) => {
        const xml = Buffer.from(writePlainXml(value, RULES))
        expect(stringifyJson(readPlainXml(decodeBodyXml(xml), BODY_LIMITS, RULES))).toBe(stringifyJson(value))
      }),
      { numRuns: sized(300, 1000) },
    )
  })

  it('T4.2 is well-formed or refused, whatever its keys and texts are', needing('python3'), () => {
    const key = fc.oneof(
      fc.string({ unit: 'grapheme-ascii', maxLength: 6 }),
      fc.constantFrom(
        '#text',
        '@a',
        '@xmlns',
        '@xmlns:b',
        'b:c',
        '@b:c',
        '?xml',
        '!--',
        'a><b',
        '@a="b" c',
        '@',
        '#',
        '',
      ),
    )
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        anyText({ maxLength: 6 }),
        fc.constantFrom('urn:b', ']]>', '<a>', '&lt;', null, true, 1.5, '\0', '\uFFFE'),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(key, tie('value'), { maxKeys: 4 }),
      ),
    }))
    const written = fc
      .sample(value as fc.Arbitrary<JsonValue>, MANY)
      .map((each) =>
        attempt(() => Buffer.from(writePlainXml(each, { ...RULES, root: 'Fund', attributes: { v: '1' } }))),
      )
    const accepted = written.filter((each) => typeof each !== 'string')
    for (const [at, text] of canonicalXml(accepted).entries())
      expect(text, accepted[at]?.toString()).toMatch(/^<Fund[ >].*<\/Fund>$/s)
    expect(accepted.length).toBeGreaterThan(MANY / 8)
    for (const each of written) if (typeof each === 'string') expect(each).toMatch(/^body_malformed: /)
  })
})
