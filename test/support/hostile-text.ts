import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import ts from 'typescript'
import { headerValue } from '../../src/gateway/backends/forward/request.ts'
import { convertAnswer, plainEnvelope } from '../../src/gateway/conversion/answers.ts'
import { compileNegotiation } from '../../src/base/http/head/accept.ts'
import { FORMATS } from '../../src/base/http/body/body-schema.ts'
import { parseForm } from '../../src/base/http/body/form.ts'
import { parseJson, parseNumberLiteral } from '../../src/base/http/body/json.ts'
import { writePlainXml } from '../../src/base/http/xml/plain-write.ts'
import type { PlainXmlRules } from '../../src/base/http/xml/plain-document.ts'
import { compileQueryFilter } from '../../src/base/http/head/query.ts'
import { printable } from '../../src/base/http/body/read-body.ts'
import { parseLink } from '../../src/base/http/head/reference.ts'
import { CANONICAL_PATH, canonicalSegment } from '../../src/base/http/head/request-target.ts'
import { readXml } from '../../src/base/http/xml/read.ts'
import { escapeName, escapeText, isXmlText, toXmlText, unescapeName } from '../../src/base/http/xml/syntax.ts'
import { cleanLine, quoteClean } from '../../src/base/kernel/clean-text.ts'
import { redact } from '../../src/operate/watch/log/redact.ts'
import { sourceFiles } from './source-files.ts'

/** T2.9: texts that are made to be slow to search, and what searches them. */

const MEBIBYTE = 1024 ** 2

export interface Expression {
  readonly where: string
  readonly regex: RegExp
}

/**
 * Regular expressions that the source writes out, and those that it puts together and exports: the next one is attacked
 * without anyone thinking of it.
 */
export function collect(): readonly Expression[] {
  const found: Expression[] = []
  for (const file of sourceFiles(new URL('../../src', import.meta.url).pathname)) {
    const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
    const visit = (node: ts.Node): void => {
      if (ts.isRegularExpressionLiteral(node)) {
        const end = node.text.lastIndexOf('/')
        const regex = new RegExp(node.text.slice(1, end), node.text.slice(end + 1))
        const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1
        found.push({ where: `${basename(file)}:${line} ${node.text.slice(0, 60)}`, regex })
      }
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  return [...found, { where: 'CANONICAL_PATH', regex: CANONICAL_PATH }]
}

const ANY = [
  ...Array.from({ length: 95 }, (_, code) => String.fromCharCode(code + 32)),
  ...['\t', '\n', '\r', '\0', '\x7f', '\u00a0', '\u00e9', '\u2028', '\u{1f600}'],
]

/** What escapes stand for: one character of each. */
const ESCAPED: Readonly<Record<string, string>> = {
  t: '\t',
  n: '\n',
  r: '\r',
  s: ' ',
  d: '1',
  w: 'a',
  b: ' ',
}
const MOST_CHARACTERS = 16

/** The characters that an expression is made of, and some that its negated classes and ranges may take. */
const ownCharacters = (source: string): readonly string[] =>
  [
    ...new Set([
      ...['a', ' ', '1'],
      ...(source.match(/\\?[^]/gu) ?? []).map((each) =>
        each.length === 1 ? each : (ESCAPED[each.slice(1)] ?? each.slice(1)),
      ),
    ]),
  ].slice(0, MOST_CHARACTERS)

/** What may be repeated to hurt an expression: its characters, and each of its words, alone and before one of its signs. */
function ownPumps({ source }: RegExp): readonly string[] {
  const words = [...new Set(source.match(/[A-Za-z0-9]{2,}/g))].slice(0, 6)
  const own = [...new Set(source.replace(/\\[a-zA-Z]/g, ''))]
    .filter((each) => /[^\w\\]/.test(each))
    .slice(0, 8)
  return [
    ...ownCharacters(source),
    ...words,
    ...words.flatMap((word) => [`${word}a`, ...own.map((sign) => word + sign)]),
  ]
}

export const repeated = (pump: string, length: number): string => pump.repeat(Math.ceil(length / pump.length))

export const apply = (regex: RegExp) => (text: string) =>
  regex.global ? text.replace(regex, '') : ((regex.lastIndex = 0), regex.test(text))

/** What stands before and behind what is repeated, so that an expression begins later, or fails at the end. */
const FRAMES = [
  ['', ''],
  ['', '\u0001'],
  ['a', '\n\u0001'],
] as const

/** Texts of any length for one expression; `all` of them, or those of its own words. */
export const shapesOf = (regex: RegExp, all: boolean) =>
  [...ownPumps(regex), ...(all ? ANY : [])].flatMap((pump) =>
    FRAMES.map(
      ([before, end]) =>
        (length: number) =>
          before + repeated(pump, length) + end,
    ),
  )

const bytes = (text: string): Buffer => Buffer.from(text)
const negotiation = compileNegotiation({ vendor: 'postern', defaultFormat: 'json' })

/** Whatever reads what a client may send. */
const PLAIN_XML: PlainXmlRules = {
  root: 'a',
  attributes: {},
  stripNamespaces: true,
  paths: {
    type: undefined,
    isArray: false,
    children: new Map([['a', { type: 'number', isArray: false, children: new Map() }]]),
  },
}

const plain = (text: string): void => {
  for (const to of ['xml', 'json'] as const)
    try {
      plainEnvelope(bytes(text), undefined, PLAIN_XML, to)
    } catch {
      // refused: what counts is how long that took
    }
}

/** An answer in JSON for who asks for XML. What the writer refuses is read as a value too, which says the fault. */
const write = (json: string): unknown =>
  convertAnswer({
    kind: 'answer',
    bytes: bytes(json),
    answerFormat: { format: 'json', payload: 'bare' },
    to: 'xml',
    items: {},
    limit: 8 * MEBIBYTE,
  })

const filterQuery = compileQueryFilter({ taken: ['business'], only: undefined, strict: false })

export const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  'the filter of a query': (text) => filterQuery?.(`?a=%20${text}`),
  'the filter of a query, encoded': (text) => filterQuery?.(`?a=${encodeURIComponent(text.toWellFormed())}`),
  cleanLine,
  quoteClean,
  redact: (text) => redact(new Error(text, { cause: { [text]: [text] } })),
  printable,
  headerValue,
  escapeName,
  unescapeName,
  escapeText,
  isXmlText,
  toXmlText,
  parseNumberLiteral,
  canonicalSegment,
  parseForm: (text) => parseForm(bytes(text)),
  parseJson: (text) => parseJson(bytes(text)),
  'parseJson, in a string': (text) => parseJson(bytes(`["${text}"]`)),
  readXml: (text) => readXml(bytes(text), undefined, { bytes: 8 * MEBIBYTE }),
  'readXml, in an element': (text) => readXml(bytes(`<a>${text}</a>`), undefined, { bytes: 8 * MEBIBYTE }),
  'readXml, as a name': (text) => readXml(bytes(`<${text}/>`), undefined, { bytes: 8 * MEBIBYTE }),
  'JSON to XML': write,
  'JSON to XML, in a string': (text) => write(`["${text}"]`),
  'JSON to XML, as a key': (text) => write(`{"${text}":1}`),
  'JSON to XML, as a number': (text) => write(`[1${text}]`),
  'JSON to XML, as keys and values': (text) => write(`{"a":[${text}]}`),
  'plain XML': (text) => plain(text),
  'plain XML, in an element': (text) => plain(`<a>${text}</a>`),
  'plain XML, in an attribute': (text) => plain(`<a b="${text}"/>`),
  'plain XML, of texts in JSON': (text) => writePlainXml({ b: text, '@c': text }, PLAIN_XML),
  'plain XML, of a name in JSON': (text) => writePlainXml({ [text]: '' }, PLAIN_XML),
  parseLink,
  'parseLink, behind a link': (text) => parseLink(`<a>${text}`),
  'parseLink, in a quoted parameter': (text) => parseLink(`<a>; title="${text}"`),
  formatOfErrors: (text) => negotiation.formatOfErrors(text),
  ...Object.fromEntries(Object.entries(FORMATS).map(([name, { test }]) => [`format ${name}`, test])),
}

export const HOSTILE = [
  ...[
    'eyJ',
    'eyJa.',
    'eyJa..',
    'Bearer ',
    'Basic  ',
    'Bearer a',
    '_x',
    '_x005F_',
    '%',
    '%41',
    '%25',
    '+',
    '&',
    '&a=',
  ],
  ...[
    'a',
    ' ',
    '"',
    '\\',
    '\\u00',
    '{"a":',
    '[',
    '[[]',
    '1',
    '1e',
    '1.',
    '-',
    '<',
    '<!--',
    '<a>',
    ']]>',
    '&#1;',
    '<!---->',
    '<?a?>',
    '<![CDATA[]]>',
    '<!DOCTYPE ',
  ],
  ...[
    'a/b;',
    ',',
    ';q=0.',
    '*/*,',
    'a@',
    'a.',
    '2001-',
    '\u00e9',
    '\u{1f600}',
    '\u2028',
    '\t',
    '\r\n',
    '.',
    '../',
    '=',
    '<a>,',
    '<a>; b="c", ',
    '; a=b',
    ', ',
  ],
]
