/** JSON that is to become XML, and XML of Postern's dialect (C7.5), made by chance: right documents and damaged ones. */
import type { BodySchema } from '../../src/base/http/body/body-schema.ts'
import type { ItemNames } from '../../src/base/http/xml/key-sequences.ts'
import {
  around,
  blank,
  damage,
  envelopeText,
  errorsText,
  NUMBERS,
  stringText,
  tellingOf,
  TEXTS,
  valueText,
} from './json-texts.ts'
import { below, oneOf, type Random, randomFrom, several } from './seeded-random.ts'

export interface JsonCase {
  readonly bytes: Buffer
  /** One object for many documents, as an action has one, or a new one. */
  readonly items: ItemNames
  /** `server.limits.answer`, which is very low at times. */
  readonly limit: number
  readonly schema: BodySchema
}

export interface XmlCase {
  readonly bytes: Buffer
  readonly schema: BodySchema | undefined
  readonly limits: Readonly<Record<string, number>>
  readonly inOnePiece: boolean
  readonly limit: number
}

const LIMIT = 16 * 1024 ** 2
const chance = (random: Random, one: number): boolean => below(random, one) === 0

export const JSON_SCHEMAS: readonly BodySchema[] = [
  { type: 'object' },
  { type: ['object', 'array', 'string'], properties: { Code: { type: 'string' }, Id: { type: 'number' } } },
]

const ITEMS: readonly ItemNames[] = [
  {},
  { Funds: 'Fund', Id: 'Id', Name: 'Names', b: 'B', '1': 'One', type: 'Type' },
  { Funds: 'Fund', Tags: '1 tag', Items: 'Entry', Data: 'Datum', a: 'é', k1: 'x'.repeat(70) },
  { '': 'empty', ['__proto__']: 'p', a: '_x0041_', '10': ':', Code: '' },
]

const KEYS = [
  ...['Id', 'Code', 'Name', 'a', 'b', 'Tags', 'Funds', 'Data', 'Errors', 'Item', 'Items', 'Value', 'Message'],
  ...['10', '1', '0', '007', '4294967294', '4294967295', '-1', '1.5', '9007199254740993'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'toJSON', 'rawJSON', 'length'],
  ...[
    '',
    '_',
    '_x',
    'x_',
    '_x_',
    '_x0041_',
    '_x005F_',
    '_x005f_x_',
    'a_x00',
    '_x004',
    '_x12345',
    'a_x0041_b',
  ],
  ...[
    'a:b',
    'xsi:nil',
    'xmlns',
    '#text',
    '@',
    '@type',
    '?xml',
    'type',
    'a b',
    'a><b',
    '-a',
    '.b',
    'a-b.c',
    '&',
  ],
  ...[
    'é',
    'Ä_x',
    '名',
    '€',
    '😀',
    'x😀',
    'ｃ',
    '\u00b7a',
    'a\u0301',
    '\ufffe',
    'a\uffff',
    '\u0000',
    '\ufeff',
  ],
  ...['"', '\\', '\n', 'a"b', '\u2028', 'x'.repeat(62), 'x'.repeat(63), 'y'.repeat(64), 'é'.repeat(40)],
]
const WORDS = [
  ...TEXTS.filter((text) => text !== '\u0000' && text !== '\ud800'),
  ...[
    '<&>',
    ']]>',
    '<![CDATA[',
    '\r',
    'a\r\nb',
    ' ',
    ' \t\n',
    '\ufeff',
    '\ufffd',
    'ｃ',
    '\uf8ff',
    '\uffee',
    '\u0085',
  ],
  ...['&amp;', '&#13;', '"', '\\', '\u{10ffff}', '\ud7ff\ue000', '_x0041_', '\u{1fffe}', 'y'.repeat(150)],
]
/** XML can hold none of them, JSON all but the halves. */
const UNFIT = [
  '\u0000',
  'a\u001f',
  '\u000b',
  '\ufffe',
  'b\uffff',
  '\ufffe\uffff',
  '\ud800',
  'a\udc00b',
  '\udc00\ud800',
]
const WRONG = [
  ...[
    '01',
    '1.',
    '-',
    '.5',
    '1e',
    '1e+',
    '+1',
    'NaN',
    'Infinity',
    '-Infinity',
    '0x1',
    '00',
    '1_0',
    '--1',
    '1.e5',
  ],
  ...[
    'tru',
    'nul',
    'True',
    'undefined',
    'nulll',
    "'a'",
    '"\\x"',
    '"\\u12"',
    '"\\ud800\\u0041"',
    '"\\ud83d\\ue000"',
    '"\\udbff\\udbff"',
    '"\\ud83d\\ude0"',
    '"\\ud83d "',
    '[1,]',
    '{,}',
    '{"a"}',
  ],
]
const MORE_NUMBERS = [
  ...NUMBERS,
  '-0.0',
  '0e0',
  '1.50',
  '12345678901234567890',
  '-0e-0',
  '1E400',
  '2e-7',
  '42',
  '7',
]

/** A member of a shape: how its key is written mostly, and what it holds. */
interface ShapeMember {
  readonly key: string
  readonly spelling: string
  readonly value: (random: Random, depth: number) => string
}
type Shape = readonly ShapeMember[]

const keyText = (key: string): string => `"${JSON.stringify(key).slice(1, -1)}"`

function leafText(random: Random): string {
  if (chance(random, 150)) return stringText(random, oneOf(random, UNFIT))
  if (chance(random, 500)) return oneOf(random, WRONG)
  const kind = below(random, 10)
  if (kind < 2) return oneOf(random, MORE_NUMBERS)
  if (kind < 4) return oneOf(random, ['true', 'false', 'null', 'null', '[]', '{}', '[ ]', '{\n}'])
  return stringText(random, oneOf(random, WORDS))
}

const listText = (random: Random, most: number, make: () => string): string =>
  `[${several(random, most, make).join(chance(random, 6) ? ' , ' : ',')}]`

const VALUES: readonly ShapeMember['value'][] = [
  leafText,
  leafText,
  leafText,
  (random) => oneOf(random, MORE_NUMBERS),
  (random) => listText(random, 4, () => leafText(random)),
  (random) => listText(random, 2, () => listText(random, 2, () => leafText(random))),
  (random, depth) => (depth > 2 ? leafText(random) : recordText(random, oneOf(random, NESTED), depth + 1)),
  (random, depth) =>
    depth > 1
      ? leafText(random)
      : listText(random, 3, () => recordText(random, oneOf(random, NESTED), depth + 1)),
]

function shapeOf(random: Random, keys: readonly string[], most: number): Shape {
  const chosen = [...new Set([...several(random, most, () => oneOf(random, keys)), oneOf(random, keys)])]
  return chosen.map((key) => {
    const colon = chance(random, 5) ? `${blank(random)}:` : ':'
    const text = chance(random, 8) ? stringText(random, key) : keyText(key)
    return { key, spelling: text + colon, value: oneOf(random, VALUES) }
  })
}

/** The shapes of objects within objects are always the same. */
const NESTED = Array.from({ length: 6 }, (_, seed) => shapeOf(randomFrom(seed), KEYS, 4))

/** An object mostly like others of its shape: some members are left out, moved, spelled otherwise or there twice. */
function recordText(random: Random, shape: Shape, depth = 0): string {
  let members = chance(random, 3) ? shape.filter(() => !chance(random, 5)) : shape
  if (chance(random, 8)) members = members.toReversed()
  if (chance(random, 8)) members = [...members, ...shapeOf(random, KEYS, 1)].filter(isFirst)
  if (chance(random, 150)) members = [...members, oneOf(random, shape)]
  const written = members.map(({ key, spelling, value }) => {
    const name = chance(random, 15) ? `${stringText(random, key)}${blank(random)}:` : spelling
    return `${blank(random)}${name}${blank(random)}${value(random, depth)}`
  })
  return `{${written.join(chance(random, 10) ? `${blank(random)},` : ',')}${blank(random)}}`
}

const isFirst = ({ key }: ShapeMember, at: number, all: Shape): boolean =>
  all.findIndex((each) => each.key === key) === at

/** Objects with more members than are known in a row or behind one, and with keys of about the longest that are. */
function wideText(random: Random): string {
  const kind = below(random, 3)
  if (kind === 0) {
    const count = 60 + below(random, 12)
    const first = below(random, 3)
    const keys = Array.from({ length: count }, (_, at) => `k${first + at}`)
    const twice = chance(random, 6) ? [oneOf(random, keys)] : []
    const last = chance(random, 3) ? [oneOf(random, KEYS)] : []
    const text = `{${[...keys, ...last, ...twice].map((key) => `${keyText(key)}:${leafText(random)}`).join()}}`
    return chance(random, 2) ? text : `[${text},${text}]`
  }
  const make = (): string => {
    const key = kind === 1 ? `n${below(random, 14)}` : 'l'.repeat(58 + below(random, 10))
    const more = chance(random, 6) ? `,"${key}":2` : ''
    return `{"Id":1,"${key}":${leafText(random)},"b":""${more}}`
  }
  return `[${Array.from({ length: 4 + below(random, 14) }, make).join()}]`
}

/** More members than are known of one action. */
function manyText(random: Random): string {
  const first = below(random, 1000)
  const records = Array.from({ length: 70 }, (_, row) => {
    const members = Array.from({ length: 8 }, (_each, at) => `"m${first + row * 8 + at}":${at}`)
    return `{${members.join()}}`
  })
  return `[${[...records, ...records.slice(0, 5), ...records.slice(-5)].join()}]`
}

/** About as deep as clients and upstreams may go, and as a document of a value may be. */
function deepText(random: Random): string {
  const depth = oneOf(random, [97, 197, 253]) + below(random, 6)
  const kind = below(random, 3)
  const isObject = Array.from({ length: depth }, () => kind === 0 || (kind === 1 && chance(random, 2)))
  const before = isObject.map((object) => (object ? '{"a":' : '['))
  const behind = isObject.map((object) => (object ? '}' : ']')).toReversed()
  return `${before.join('')}${oneOf(random, ['1', '""', 'null', '[]', '{}', '"\u0001"'])}${behind.join('')}`
}

/** Short JSON of long XML. */
function growingText(random: Random): string {
  const key = oneOf(random, ['Tags', 'Funds', 'k1', 'x'.repeat(80)])
  const item = oneOf(random, ['1', 'null', '[]', '{}', '""', `{"${'y'.repeat(90)}":1}`, '"<<<<<<<<"'])
  const end = chance(random, 8) ? oneOf(random, [',', ']', '"\u0001"', '"\\ufffe"']) : ''
  return `{"${key}":[${Array.from({ length: 1 + below(random, 120) }, () => item).join()}${end}]}`
}

function envelopeOf(random: Random, data: () => string): string {
  const member = (key: string, value: string): string =>
    `${around(random, chance(random, 10) ? stringText(random, key) : `"${key}"`)}:${around(random, value)}`
  const errors = chance(random, 6) ? errorsText(random) : '[]'
  const further = (): string =>
    member(
      oneOf(random, chance(random, 12) ? KEYS : ['More', 'Total', 'data', '1', 'é']),
      chance(random, 3)
        ? stringText(random, oneOf(random, [...UNFIT, 'a', '']))
        : chance(random, 2)
          ? 'null'
          : data(),
    )
  const own = [member('Errors', errors), member('Data', chance(random, 25) ? leafText(random) : data())]
  const members = [
    ...(chance(random, 4) ? [further()] : []),
    ...(chance(random, 3) ? own.toReversed() : own),
    ...(chance(random, 4) ? [further()] : []),
    ...(chance(random, 40) ? [oneOf(random, own)] : []),
  ]
  if (chance(random, 40)) members.splice(below(random, members.length), 1)
  if (chance(random, 6)) members.splice(below(random, members.length), 0, further())
  return around(random, `{${members.join()}}`)
}

const LONG = `[${'1,'.repeat(100_000)}1]`

function jsonText(random: Random, shapes: readonly Shape[]): string {
  const kind = below(random, 100)
  if (kind < 24) return recordText(random, oneOf(random, shapes))
  if (kind < 32) {
    const isMixed = chance(random, 2)
    return listText(random, 6, () =>
      isMixed && chance(random, 2)
        ? listText(random, 2, () => leafText(random))
        : recordText(random, oneOf(random, shapes.slice(0, 3))),
    )
  }
  if (kind < 38) return valueText(random, 0)
  if (kind < 42) return around(random, leafText(random))
  if (kind < 76) {
    const record = (): string => recordText(random, oneOf(random, shapes))
    return envelopeOf(random, () =>
      chance(random, 4) ? oneOf(random, ['{}', '{ }', '{"a":null}', '{"":[]}']) : record(),
    )
  }
  if (kind < 82) return envelopeText(random)
  if (kind < 92) return growingText(random)
  if (kind < 96) return wideText(random)
  if (kind < 99) return deepText(random)
  if (chance(random, 200)) return LONG
  return chance(random, 4)
    ? manyText(random)
    : oneOf(random, ['', ' ', 'null', ' null ', '\ufeff', '{}', '[]', '""', '0'])
}

const MARK = '\ufeff'

export function* jsonCases(cases: number, seed: number): Generator<JsonCase> {
  const random = randomFrom(seed)
  let shapes: readonly Shape[] = []
  for (let count = 0; count < cases; count++) {
    // An upstream's answers are alike for a while.
    if (count % 200 === 0) shapes = Array.from({ length: 8 }, () => shapeOf(random, KEYS, 8))
    const text = (chance(random, 25) ? MARK.repeat(1 + below(random, 2)) : '') + jsonText(random, shapes)
    const bytes = Buffer.from(text)
    const items = oneOf(random, ITEMS)
    yield {
      bytes: chance(random, 3) ? damage(random, bytes) : bytes,
      items: chance(random, 4) ? { ...items } : items,
      limit: chance(random, 6) ? below(random, oneOf(random, [40, 400])) : LIMIT,
      schema: oneOf(random, JSON_SCHEMAS),
    }
  }
}

/** What a member holds mostly, by its name. */
type Kind = 'text' | 'number' | 'boolean' | 'null' | 'array' | 'object' | 'mixed' | 'empty'
const KINDS: readonly Kind[] = ['text', 'text', 'number', 'boolean', 'null', 'array', 'object', 'empty']
const MOSTLY: Readonly<Record<string, Kind>> = {
  ...{
    Code: 'text',
    Members: 'number',
    Open: 'boolean',
    Closed: 'null',
    Tags: 'array',
    Rows: 'array',
    Tag: 'text',
  },
  ...{
    Address: 'object',
    Extra: 'object',
    Grid: 'array',
    Locality: 'text',
    Maybe: 'number',
    Either: 'array',
  },
  ...{ Errors: 'array', Data: 'object' },
}
const NAMES = [
  ...Object.keys(MOSTLY),
  ...[
    'a',
    'b',
    'Item',
    '_x0061_',
    '_x0043_ode',
    '_x_',
    '_x005F_x_',
    '_x0031_',
    '_x0031_0',
    '__proto__',
    'constructor',
  ],
  ...['é', '_x00E9_', '名', '😀', '_xD83D__xDE00_', '_x', '_x004', 'a-b.c', 'type', '_x005f_x0061_'],
]
const ODD_NAMES = [
  '_xD800_',
  'a_xDC00_',
  '_xD83D_',
  'xsi:nil',
  'f:Fund',
  ':a',
  'a:',
  '1a',
  '-a',
  'a b',
  'ａ',
  '',
]

const STRING: BodySchema = { type: 'string' }
const NUMBER: BodySchema = { type: 'number' }
const LOCALITY: BodySchema = { type: 'object', properties: { Locality: STRING } }
const XML_SCHEMAS: readonly BodySchema[] = [
  {
    type: 'object',
    properties: {
      Code: STRING,
      Members: { type: 'integer' },
      Open: { type: 'boolean' },
      Closed: { type: 'null' },
      Tags: { type: 'array', items: STRING },
      Tag: { type: 'array', items: STRING },
      Grid: { type: 'array', items: { type: 'array', items: NUMBER } },
      Rows: { items: LOCALITY },
      Address: LOCALITY,
      Extra: { type: 'object', additionalProperties: NUMBER },
      Maybe: { type: ['number', 'null'] },
      Either: { type: ['array', 'string', 'object'], items: NUMBER, properties: { a: NUMBER } },
      a: {},
      b: { type: ['boolean', 'number'] },
      '😀': { type: 'array' },
    },
  },
  {
    properties: { Code: { type: ['string', 'null'] }, a: { type: 'array', items: LOCALITY } },
    additionalProperties: STRING,
  },
  { type: 'object', additionalProperties: { type: 'array', items: { type: ['object', 'number'] } } },
  { type: 'array', items: { type: 'object', properties: { Code: STRING, Tags: { items: NUMBER } } } },
  { items: STRING },
  { type: ['number', 'string'] },
  { type: ['array', 'object'], additionalProperties: true, items: NUMBER },
]

const PIECES = [
  ...[
    'a',
    'text',
    ' ',
    '\n',
    '\t',
    '\r\n',
    '42',
    'true',
    'é',
    '😀',
    '&amp;',
    '&lt;',
    '&gt;',
    '&quot;',
    '&apos;',
    '&#65;',
  ],
  ...[
    '&#x1F600;',
    '&#13;',
    ']]',
    '>',
    '"',
    '<![CDATA[x]]>',
    '<![CDATA[<&]]>',
    '<![CDATA[]]>',
    '<!-- c -->',
    '<!---->',
  ],
]
const ODD_PIECES = [
  ...[
    '&nbsp;',
    '&',
    '&#0;',
    '&#xD800;',
    '&#xFFFE;',
    ']]>',
    '\u0001',
    '\ufffe',
    '\uffff',
    '<',
    '<?p i?>',
    '<!-- a -- b -->',
  ],
  ...[
    '<!DOCTYPE a>',
    '<![CDATA[',
    '</',
    '\ud800',
    '&#99999999;',
    '\u000b',
    '<![cdata[x]]>',
    '<?xml version="1.0"?>',
  ],
]
const XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
const DECLARATIONS = [
  XSI,
  XSI,
  XSI,
  'xmlns="urn:a"',
  'xmlns:f="urn:f"',
  "xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'",
]
const ODD_ATTRIBUTES = [
  ...[
    'id="1"',
    'xmlns:xsi="urn:x"',
    'xmlns:f=""',
    'xmlns:xml="urn:x"',
    'xmlns:a:b="c"',
    'type="date"',
    'type=""',
    'a',
  ],
  ...[
    'xmlns="http://www.w3.org/2000/xmlns/"',
    'xmlns:q="http://www.w3.org/XML/1998/namespace"',
    'xsi:nil="yes"',
  ],
  ...[
    'xsi:type="a"',
    'type="number" type="number"',
    'xml:lang="en"',
    'a="<"',
    'b="&x;"',
    'type=number',
    'xsi:nil=""',
  ],
]

function attributesText(random: Random, kind: Kind, isMarked: boolean): string {
  const attributes: string[] = []
  if (isMarked && kind === 'null') attributes.push(`xsi:nil="${oneOf(random, ['true', 'true', '1'])}"`)
  else if (isMarked && kind !== 'mixed' && kind !== 'empty')
    attributes.push(`type="${kind === 'text' ? 'string' : kind}"`)
  else if (isMarked) attributes.push(`type=${oneOf(random, ["'array'", '"object"', '"string"'])}`)
  if (chance(random, 200))
    attributes.push(`type="${oneOf(random, ['string', 'number', 'boolean', 'array', 'object'])}"`)
  if (chance(random, 40)) attributes.push(`xsi:nil="${oneOf(random, ['true', 'false', '0'])}"`)
  if (chance(random, 15)) attributes.push(oneOf(random, DECLARATIONS))
  if (chance(random, 300)) attributes.push(oneOf(random, ODD_ATTRIBUTES))
  if (chance(random, 10)) attributes.reverse()
  return attributes.map((each) => (chance(random, 20) ? '\n ' : ' ') + each).join('')
}

const piecesText = (random: Random): string =>
  several(random, 3, () => oneOf(random, chance(random, 200) ? ODD_PIECES : PIECES)).join('')

const nameOf = (random: Random, names: readonly string[]): string =>
  oneOf(random, chance(random, 600) ? ODD_NAMES : names)

const space = (random: Random): string =>
  chance(random, 8) ? oneOf(random, [' ', '\n  ', '\r\n', '<!-- c -->', '\t']) : ''

function contentText(random: Random, kind: Kind, depth: number, isMarked: boolean): string {
  const inner = (names: readonly string[]): string =>
    space(random) + elementText(random, nameOf(random, names), depth + 1, isMarked)
  const members = (): string => {
    const names = several(random, 5, () => oneOf(random, NAMES))
    const written = chance(random, 25) ? names : [...new Set(names)]
    return written.map((name) => inner([name])).join('') + space(random)
  }
  const deep = depth > 4
  switch (kind) {
    case 'number':
      return oneOf(random, chance(random, 30) ? ['007', ' 7', '1.', '', 'a', '+1'] : MORE_NUMBERS)
    case 'boolean':
      return oneOf(random, chance(random, 30) ? ['yes', ' true', 'TRUE', '1', ''] : ['true', 'false'])
    case 'null':
      return chance(random, 15) ? oneOf(random, [' ', 'a', '<!-- c -->', '<a/>']) : ''
    case 'empty':
      return chance(random, 3) ? oneOf(random, [' ', '\n', '<![CDATA[]]>', '<!-- c -->']) : ''
    case 'array': {
      const names = chance(random, 20)
        ? ['Item', 'b']
        : [oneOf(random, ['Item', 'Tag', 'Code', 'Locality', 'Members', 'Grid'])]
      return deep ? '' : several(random, 4, () => inner(names)).join('') + space(random)
    }
    case 'object':
      return deep ? '' : members()
    case 'mixed':
      return deep ? 'a' : piecesText(random) + members() + piecesText(random)
    default:
      return piecesText(random)
  }
}

function elementText(random: Random, name: string, depth: number, isMarked: boolean, root = ''): string {
  const usual = Object.hasOwn(MOSTLY, name) ? MOSTLY[name] : undefined
  const other = chance(random, 200) ? 'mixed' : oneOf(random, KINDS)
  const kind =
    depth === 0 ? (chance(random, 8) ? other : 'object') : chance(random, 12) ? other : (usual ?? other)
  const isNowMarked = chance(random, 10) ? !isMarked : isMarked
  const start = `${name}${root}${attributesText(random, kind, isNowMarked && depth > 0)}`
  const content = contentText(random, kind, depth, isMarked)
  if (content === '' && !chance(random, 4)) return `<${start}${chance(random, 10) ? ' ' : ''}/>`
  const end = chance(random, 400) ? nameOf(random, NAMES) : name
  return `<${start}>${content}</${end}${chance(random, 20) ? ' ' : ''}>`
}

const PROLOGS = [
  '<?xml version="1.0"?>',
  '<?xml version="1.0" encoding="UTF-8"?>',
  "<?xml version='1.0' encoding='utf-8'?>\n",
  '<!-- c -->',
  '\n',
  MARK,
]
const ODD_PROLOGS = [
  ...[
    '<?xml version="1.1"?>',
    '<?xml version="1.0" encoding="ISO-8859-1"?>',
    '<!DOCTYPE a>',
    '<!DOCTYPE a [<!ENTITY b "c">]>',
    '<?p i?>',
  ],
  ...[
    MARK + MARK,
    ' <?xml version="1.0"?>',
    'text',
    '<?xml?>',
    '<?xml encoding="UTF-8"?>',
    '<!--',
    '<!-- c --><!DOCTYPE a><?p?>',
  ],
]

function deepXml(random: Random): string {
  const depth = oneOf(random, [97, 197]) + below(random, 6)
  const mark = oneOf(random, ['', ' type="array"', ' type="object"'])
  return `<a${mark}>`.repeat(depth) + oneOf(random, ['', 'x', '<b/>']) + '</a>'.repeat(depth)
}

function envelopeXml(random: Random, root: string): string {
  const data = elementText(random, 'Data', 1, true)
  const errors = chance(random, 3)
    ? '<Errors><Error><Code>a</Code><Message>b</Message></Error></Errors>'
    : chance(random, 8)
      ? elementText(random, 'Errors', 1, chance(random, 2))
      : '<Errors/>'
  const more = chance(random, 8) ? elementText(random, nameOf(random, NAMES), 1, true) : ''
  return `<ApiResponse${root}>${errors}${space(random)}${data}${more}</ApiResponse>`
}

function xmlText(random: Random): string {
  const kind = below(random, 100)
  if (kind < 2) return deepXml(random)
  const isMarked = chance(random, 2)
  const root = isMarked && !chance(random, 15) ? ` ${XSI}` : ''
  const prolog = chance(random, 5) ? oneOf(random, chance(random, 10) ? ODD_PROLOGS : PROLOGS) : ''
  const behind = chance(random, 15)
    ? oneOf(random, ['\n', '<!-- c -->', ...(chance(random, 4) ? ['<a/>', 'a', '<?p?>', '&amp;'] : [])])
    : ''
  const element =
    kind < 35
      ? envelopeXml(random, root)
      : elementText(random, nameOf(random, ['R', 'Fund', 'a']), 0, isMarked, root)
  return prolog + element + behind
}

const TELLING = tellingOf('<>/&;"\'= !?-[]:._x#ax0\n\t\r\u0000\u000b')

/** One or two tags left out, repeated, put elsewhere or in each other's place. */
function moveTags(random: Random, text: string): string {
  const parts = text.split(/(<[^<>]*>)/)
  const places = parts.flatMap((part, at) => (part.startsWith('<') ? [at] : []))
  if (places.length === 0) return text
  for (let left = 1 + below(random, 2); left > 0; left--) {
    const [at, other] = [oneOf(random, places), oneOf(random, places)]
    const tag = parts[at] ?? ''
    const kind = below(random, 5)
    if (kind === 0) parts[at] = ''
    else if (kind === 1) parts[at] = tag + tag
    else if (kind === 2) parts[other] = tag
    else if (kind === 3) [parts[at], parts[other]] = [parts[other] ?? '', tag]
    else
      parts[at] = tag.startsWith('</')
        ? tag.replace('</', '<')
        : tag.replace(/\/?>$/, tag.endsWith('/>') ? '>' : '/>')
  }
  return parts.join('')
}

const LOW = [
  { depth: 2 },
  { nodes: 4 },
  { attributes: 1 },
  { references: 1 },
  { bytes: 60 },
  { depth: 3, nodes: 6, attributes: 2, references: 2 },
]

export function* xmlCases(cases: number, seed: number): Generator<XmlCase> {
  const random = randomFrom(seed)
  for (let count = 0; count < cases; count++) {
    const whole = xmlText(random)
    const kind = below(random, 10)
    const bytes = Buffer.from(kind < 2 || kind === 3 ? moveTags(random, whole) : whole)
    yield {
      bytes: kind === 2 || kind === 3 ? damage(random, bytes, TELLING) : bytes,
      schema: chance(random, 3) ? oneOf(random, XML_SCHEMAS) : XML_SCHEMAS[0],
      limits: chance(random, 8) ? oneOf(random, LOW) : {},
      inOnePiece: chance(random, 5),
      limit: chance(random, 20) ? below(random, 300) : LIMIT,
    }
  }
}
