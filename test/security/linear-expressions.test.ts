import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { parseJson } from '../../src/http/json.ts'
import { parseForm } from '../../src/http/form.ts'
import { parseNumberLiteral } from '../../src/http/number-literal.ts'
import { printable } from '../../src/http/say.ts'
import { escapeName, unescapeName } from '../../src/http/xml-name.ts'
import { readXml } from '../../src/http/xml-read.ts'
import { escapeText, isXmlText, toXmlText } from '../../src/http/xml-text.ts'
import { FORMATS } from '../../src/http/body-formats.ts'
import { CANONICAL_PATH, canonicalSegment } from '../../src/http/path-segment.ts'
import { compileNegotiation } from '../../src/http/accept.ts'
import { headerValue } from '../../src/backends/forward/upstream-identity.ts'
import { cleanLine, quoteClean, redact } from '../../src/operations/log/redact.ts'
import { sourceFiles } from '../support/source-files.ts'

/**
 * T2.9: every regular expression of the source, wherever it is applied, and the functions that read what clients send.
 * The expressions are collected from the code, so that the next one is attacked without anyone thinking of it.
 */

const SMALL = 16 * 1024
const MEBIBYTE = 1024 ** 2
/** Milliseconds. A linear one takes less than one; a quadratic one makes a hundred million steps. */
const SUSPICIOUS = 8
/** Four times the text: 4 if linear, 16 if quadratic. */
const MOST_GROWTH = 9

interface Expression {
  readonly where: string
  readonly regex: RegExp
}

/** Regular expressions that the source writes out, and those that it puts together and exports. */
function collect(): readonly Expression[] {
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

/** What may be repeated to hurt an expression: any character, and each word of its own, alone and before one. */
function pumpsFor({ source }: RegExp): readonly string[] {
  const words = [...new Set(source.match(/[A-Za-z0-9]{2,}/g))].slice(0, 6)
  const own = [...new Set(source.replace(/\\[a-zA-Z]/g, ''))]
    .filter((each) => /[^\w\\]/.test(each))
    .slice(0, 8)
  return [...ANY, ...words, ...words.flatMap((word) => [`${word}a`, ...own.map((sign) => word + sign)])]
}

const repeated = (pump: string, length: number): string => pump.repeat(Math.ceil(length / pump.length))

function msOf(work: () => unknown): number {
  const start = performance.now()
  try {
    work()
  } catch {
    // refused: what counts is how long that took
  }
  return performance.now() - start
}

const fastest = (work: () => unknown): number => Math.min(...[1, 2, 3].map(() => msOf(work)))

/** How much longer four times the text takes; undefined where it is too quick to tell, which is as good. */
function growthOf(work: (text: string) => unknown, shape: (length: number) => string): number | undefined {
  const short = shape(SMALL)
  if (msOf(() => work(short)) < SUSPICIOUS) return undefined
  const before = fastest(() => work(short))
  if (before < SUSPICIOUS) return undefined
  const long = shape(4 * SMALL)
  return fastest(() => work(long)) / before
}

const apply = (regex: RegExp) => (text: string) =>
  regex.global ? text.replace(regex, '') : ((regex.lastIndex = 0), regex.test(text))

/** What stands before and behind what is repeated, so that an expression begins later, or fails at the end. */
const FRAMES = [
  ['', ''],
  ['', '\u0001'],
  ['a', '\n\u0001'],
] as const

const shapesOf = (regex: RegExp) =>
  pumpsFor(regex).flatMap((pump) =>
    FRAMES.map(
      ([before, end]) =>
        (length: number) =>
          before + repeated(pump, length) + end,
    ),
  )

describe('T2.9 regular expressions take time in proportion to the text', () => {
  const expressions = collect()

  it('are found', () => {
    expect(expressions.length).toBeGreaterThan(100)
  })

  it.each(expressions)('$where', ({ regex }) => {
    const work = apply(regex)
    for (const shape of shapesOf(regex)) {
      const growth = growthOf(work, shape)
      if (growth !== undefined) expect(growth, JSON.stringify(shape(40))).toBeLessThan(MOST_GROWTH)
    }
  })

  it('tells a quadratic one', () => {
    const growth = growthOf(apply(/eyJ[\w-]+\.[\w-]+/g), (length) => repeated('eyJ', length))
    expect(growth).toBeGreaterThan(MOST_GROWTH)
  })
})

const bytes = (text: string): Buffer => Buffer.from(text)
const negotiation = compileNegotiation({ vendor: 'postern', defaultFormat: 'json' })

/** Whatever reads what a client may send. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
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
  formatOfErrors: (text) => negotiation.formatOfErrors(text),
  ...Object.fromEntries(Object.entries(FORMATS).map(([name, { test }]) => [`format ${name}`, test])),
}

const HOSTILE = [
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
  ],
]

describe('T2.9 readers of what clients send take time in proportion to it', () => {
  it.each(Object.entries(READERS))('%s, at 1 MiB of each hostile shape', (_name, read) => {
    for (const pump of HOSTILE) {
      const growth = growthOf(read, (length) => repeated(pump, length))
      if (growth !== undefined) expect(growth, JSON.stringify(pump)).toBeLessThan(MOST_GROWTH)
      // A quadratic reader would need minutes: the test's own time is the bound.
      msOf(() => read(repeated(pump, MEBIBYTE)))
    }
  })
})
