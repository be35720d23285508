/**
 * Bodies that are made of random values, and what readers that are not ours make of them: JSON.parse, URLSearchParams, and
 * Python's expat.
 */
import { spawnSync } from 'node:child_process'
import { isDeepStrictEqual } from 'node:util'
import { fileURLToPath } from 'node:url'
import { parseTemplate } from '../../src/gateway/backends/templates/parse.ts'
import { buildBody } from '../../src/gateway/backends/templates/body.ts'
import type { BodyRecipe, BodyTree } from '../../src/base/contracts/calls/templates.ts'
import { parseJson } from '../../src/base/http/body/json.ts'
import { below, oneOf, type Random, randomFrom, several } from './seeded-random.ts'

type Format = BodyRecipe['format']

const HOSTILE = [
  ...[
    '"',
    "'",
    '`',
    '\\',
    '<',
    '>',
    '&',
    ']]>',
    '<![CDATA[',
    '<!--',
    '-->',
    '<?x?>',
    '&amp;',
    '&#10;',
    '&lt;',
    '%41',
    '%',
  ],
  ...[
    '{{',
    '}}',
    '{business}',
    '{body/a}',
    '${x}',
    '#{x}',
    '+',
    '=',
    ';',
    '?',
    '#',
    '/',
    ':',
    '@',
    '[',
    ']',
    ',',
    ' ',
    '  ',
  ],
  ...[
    '\n',
    '\r',
    '\r\n',
    '\t',
    '\u00a0',
    '\u2028',
    '\u2029',
    '\ufeff',
    '\u{1f600}',
    'é',
    'ｃ',
    '\u0085',
    '\u007f',
    '\u202e',
  ],
  ...['__proto__', 'constructor', 'null', 'true', '1e5', '-0', '\ufffd', '\u{10ffff}', '\ud7ff', '\ue000'],
]
const CONTROLS = ['\0', '\u0001', '\b', '\u000b', '\u001f', '\uffff', '\ufffe']

const isUnfit = (character: number): boolean =>
  (character < 0x20 && ![9, 10, 13].includes(character)) || character === 0xfffe || character === 0xffff

function randomCharacter(random: Random, format: Format): string {
  for (;;) {
    const point = below(random, oneOf(random, [0x80, 0x800, 0x1_0000, 0x11_0000]))
    if (point >= 0xd800 && point <= 0xdfff) continue
    if (format !== 'xml' || !isUnfit(point)) return String.fromCodePoint(point)
  }
}

const randomText = (random: Random, format: Format): string =>
  several(random, 12, () => {
    const kind = random()
    if (kind < 0.5) return oneOf(random, HOSTILE)
    if (kind < 0.6 && format !== 'xml') return oneOf(random, CONTROLS)
    return randomCharacter(random, format)
  }).join('')

const leaf = (text: string): BodyTree => {
  const template = parseTemplate(text)
  if (typeof template === 'string') throw new TypeError(template)
  return { kind: 'template', template }
}

const members = (entries: Readonly<Record<string, BodyTree>>): BodyTree => ({
  kind: 'members',
  members: Object.entries(entries),
})

/** The places in which a text may stand: alone and beside text, of the client and of the business. */
const PLACES = { a: leaf('{body/a}'), b: leaf('{business.v}'), c: leaf('<{body/a}&"{business.v}{{') }
const LIST: BodyTree = {
  kind: 'list',
  items: [leaf('{body/a}'), leaf('{body/absent}'), leaf('{business.v}')],
}

const TEMPLATES: Readonly<Record<Format, BodyTree>> = {
  json: members({ ...PLACES, list: LIST, all: leaf('{body}') }),
  form: members({ ...PLACES, list: LIST }),
  xml: members({
    root: members({
      '@a': PLACES.a,
      '@c': PLACES.c,
      t: members({ '@b': PLACES.b, '#text': PLACES.a }),
      ...PLACES,
      list: LIST,
    }),
  }),
}

interface Case {
  readonly a: string
  readonly v: string
}

const besideText = ({ a, v }: Case): string => `<${a}&"${v}{`

/** What a reader must find. */
const EXPECTED: Readonly<Record<Format, (given: Case) => unknown>> = {
  json: (given) => {
    const { a, v } = given
    return { a, b: v, c: besideText(given), list: [a, v], all: { a, [v]: a } }
  },
  form: (given) => {
    const { a, v } = given
    return [...Object.entries({ a, b: v, c: besideText(given) }), ['list', a], ['list', v]]
  },
  xml: (given) => {
    const { a, v } = given
    const c = besideText(given)
    const of = (name: string, text: string, attributes = {}): unknown => [name, attributes, text, []]
    const inside = [of('t', a, { b: v }), of('a', a), of('b', v), of('c', c), of('list', a), of('list', v)]
    return ['root', { a, c }, '', inside]
  },
}

const READERS: Readonly<Record<Format, (bodies: readonly Buffer[]) => readonly unknown[]>> = {
  json: (bodies) => bodies.map((each) => JSON.parse(each.toString()) as unknown),
  form: (bodies) => bodies.map((each) => [...new URLSearchParams(each.toString())]),
  xml: readByExpat,
}

const PROGRAM = fileURLToPath(new URL('read-xml.py', import.meta.url))

function readByExpat(bodies: readonly Buffer[]): readonly unknown[] {
  const input = JSON.stringify(bodies.map((each) => each.toString('base64')))
  const { status, stdout, stderr } = spawnSync('python3', [PROGRAM], {
    input,
    encoding: 'utf8',
    maxBuffer: 1024 ** 3,
  })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as unknown[]
}

/** Bodies that are read back as something else. */
export function differences(format: Format, count: number, seed: number): readonly string[] {
  const random = randomFrom(seed)
  const recipe: BodyRecipe = { format, type: 'x/y', template: TEMPLATES[format], set: [], require: [] }
  const cases = Array.from({ length: count }, (): Case => ({
    a: randomText(random, format),
    // A member of the client's too: `a` is another one.
    v: `v${randomText(random, format)}`,
  }))
  const bodies = cases.map(({ a, v }) => {
    const value = parseJson(Buffer.from(JSON.stringify({ a, [v]: a })))
    const client = { value, bytes: undefined, as: undefined, write: undefined }
    return Buffer.from(buildBody(recipe, { 'business.v': v }, client, Infinity) ?? [])
  })
  return READERS[format](bodies).flatMap((read, at) => {
    const wanted = EXPECTED[format](cases[at]!)
    return isDeepStrictEqual(read, wanted) ? [] : [`${JSON.stringify(cases[at])}: ${bodies[at]?.toString()}`]
  })
}
