/**
 * Templates of what an upstream is sent (C8.7). A text with placeholders is parsed and compiled once, for the place where
 * it stands (a path, a query, a header), and filled for each call.
 */
import type { Call } from '../contracts/backend.ts'
import { followedBy, headerLine, type HeaderText, NO_HEADERS } from '../http/header-text.ts'
import { compileQueryFilter, compileRefuseHidden, type RefuseHidden } from '../http/query.ts'
import { canonicalSegment, decodeSegment } from '../http/request-target.ts'
import { Fault } from '../kernel/faults.ts'

interface Placeholder {
  readonly kind: 'placeholder'
  readonly name: string
  /** The quotation marks that stand both before and behind it. */
  readonly quotes: readonly string[]
}

type TemplatePart = { readonly kind: 'text'; readonly text: string } | Placeholder

/** A parsed text: no two parts of kind text stand side by side. */
export type Template = readonly TemplatePart[]

const TOKEN = /\{\{|\}\}|\{[A-Za-z][A-Za-z0-9_]*\}|[{}]|[^{}]+/g
const DOUBLE: Readonly<Record<string, string>> = { '{{': '{', '}}': '}' }

const QUOTES = ["'", '"', '`'] as const

/**
 * Parses `member-{memberId}.json`. `{{` and `}}` stand for the braces themselves.
 * @param around the rest of the text of which this is a part
 * @returns what is wrong with it, if anything is
 */
export function parseTemplate(source: string, around = { before: '', behind: '' }): Template | string {
  const parts: TemplatePart[] = []
  for (const { 0: token, index } of source.matchAll(TOKEN)) {
    if (token === '{' || token === '}')
      return `has a "${token}" that belongs to no placeholder; expected {name}, or "${token}${token}" for the brace itself`
    const text = DOUBLE[token] ?? token
    const last = parts.at(-1)
    if (text === token && token.startsWith('{')) {
      const before = around.before + source.slice(0, index)
      const behind = source.slice(index) + around.behind
      const quotes = QUOTES.filter((mark) => before.includes(mark) && behind.includes(mark))
      parts.push({ kind: 'placeholder', name: token.slice(1, -1), quotes })
    } else if (last?.kind === 'text') parts.splice(-1, 1, { kind: 'text', text: last.text + text })
    else parts.push({ kind: 'text', text })
  }
  return parts
}

export const placeholdersOf = (template: Template): readonly string[] => [
  ...new Set(template.flatMap((part) => (part.kind === 'placeholder' ? [part.name] : []))),
]

export const textOf = (template: Template): string =>
  template.map((part) => (part.kind === 'text' ? part.text : '')).join('')

function solePlaceholder(template: Template): Placeholder | undefined {
  const [part, ...others] = template
  return part?.kind === 'placeholder' && others.length === 0 ? part : undefined
}

export const soleName = (template: Template): string | undefined => solePlaceholder(template)?.name

/** An action as templates, modules and data files name it: without the types of parameters, `{memberId}` for `{memberId:uuid}`. */
export const withoutTypes = (action: string): string =>
  action.replace(/\{([^:{}]+):(?:[^{}]|\{[^}]*\})*\}/g, '{$1}')

/** Index of the action's first segment in `/api/{version}/b/{business}/{area}/…` and `/api/{version}/f/{business}/{fund}/{area}/…`. */
const ACTION_AT = { business: 5, fund: 6 } as const

const actionSegments = ({ target, action }: Call): readonly string[] =>
  target.segments.slice(ACTION_AT[action.level])

type Find = (call: Call) => string | undefined

/** What the built-in placeholders stand for, decoded. */
export const BUILT_IN: Readonly<Record<string, Find>> = {
  business: ({ business }) => business,
  fund: ({ fund }) => fund,
  subject: ({ principal }) => principal?.subject,
  client: ({ principal }) => principal?.client,
  issuer: ({ principal }) => principal?.issuerName,
  area: ({ action }) => action.area,
  action: (call) => actionSegments(call).map(decodeSegment).join('/'),
  version: ({ target }) => target.segments[1],
  actionVersion: ({ version }) => String(version),
}

export const isBuiltIn = (name: string): boolean => Object.hasOwn(BUILT_IN, name)

/** Finds what a name stands for: a built-in one, or one of the action's path parameters. */
const findValue = (name: string): Find =>
  (isBuiltIn(name) ? BUILT_IN[name] : undefined) ??
  (({ params }) => (Object.hasOwn(params, name) ? params[name] : undefined))

/** The fault of a value that is never sent. @param why for the log; holds nothing of the value */
const unsendable = (name: string, why: string): Fault =>
  new Fault('unsendable_value', { detail: `{${name}} cannot be sent: ${why}`, unchanged: true })

/** @throws Fault `unsendable_argument` for a value that could end its quotation, also as services read it (NFKC) */
function checkQuoted(value: string, { name, quotes }: Placeholder): void {
  if (quotes.length === 0) return
  const read = value.normalize('NFKC')
  if (read.includes('\\') || quotes.some((mark) => read.includes(mark)))
    throw new Fault('unsendable_argument', {
      say: `What stands for ${name} holds a quotation mark or a backslash. Leave it out.`,
    })
}

/** Unreserved characters (RFC 3986 §2.3), and no dot segment: nobody reads these in two ways, wherever they stand. */
const PLAIN = /^(?!\.{1,2}$)[A-Za-z0-9._~-]+$/

/** What encodeURIComponent leaves, though it is reserved (RFC 3986 §2.2). */
const LEFT = /[!'()*]/g

/** A text, percent-encoded: only unreserved characters stay. @throws URIError for half a surrogate pair */
export const percentEncode = (text: string): string =>
  PLAIN.test(text)
    ? text
    : encodeURIComponent(text).replace(
        LEFT,
        (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
      )

function percentEncoded(value: string, name: string): string {
  try {
    return percentEncode(value)
  } catch {
    throw unsendable(name, 'it is no Unicode text')
  }
}

/**
 * A segment that a value is, or is part of. Checked as a whole, because text beside a value may give it another
 * meaning.
 * @param name of the placeholder to blame
 * @throws Fault `unsendable_value` for one that C3.4 would refuse
 */
function checkSegment(segment: string, name: string): string {
  if (PLAIN.test(segment)) return segment
  try {
    if (canonicalSegment(segment) === segment) return segment
  } catch (thrown) {
    throw unsendable(name, thrown instanceof Fault ? (thrown.facts.say ?? thrown.code) : String(thrown))
  }
  throw unsendable(name, 'it has another canonical form')
}

/** One segment, percent-encoded: decoding it once gives the value. @throws Fault `unsendable_value` */
export const encodeSegment = (value: string, name: string): string =>
  PLAIN.test(value) ? value : checkSegment(percentEncoded(value, name), name)

/** Whether a text would be another one if somebody decoded it: `%41`, and IIS's `%u0041`. */
export const holdsEscape = (text: string): boolean => /%(?:[0-9A-Fa-f]{2}|[Uu][0-9A-Fa-f]{4})/.test(text)

/** How values stand in a place. Both throw Fault `unsendable_value`, naming the placeholder to blame. */
interface Encoding {
  readonly value: (value: string, name: string) => string
  /** Checks a value with the text beside it, once each value is good by itself. */
  readonly whole: (text: string, name: string) => string
}

const SEGMENT: Encoding = { value: encodeSegment, whole: checkSegment }

/** Decoded text. Each value is one that C3.4 takes as a segment, and text beside it makes no escape of it. */
const TEXT: Encoding = {
  value: (value, name) => {
    if (!PLAIN.test(value)) encodeSegment(value, name)
    return value
  },
  whole: (text, name) => {
    if (holdsEscape(text)) throw unsendable(name, 'with the text beside it, it is an escape')
    return text
  },
}

const VISIBLE_ASCII = /^[!-~]+$/

/** There is no way to encode other characters that all upstreams would decode. */
const HEADER: Encoding = {
  value: (value, name) => {
    if (PLAIN.test(value)) return value
    encodeSegment(value, name)
    if (!VISIBLE_ASCII.test(value)) throw unsendable(name, 'a header holds visible ASCII only')
    return value
  },
  whole: TEXT.whole,
}

type Fill = (call: Call) => string
type Filled = string | Fill

function joined(parts: readonly Filled[]): Filled {
  const fills: { readonly before: string; readonly fill: Fill }[] = []
  let text = ''
  for (const part of parts)
    if (typeof part === 'string') text += part
    else {
      fills.push({ before: text, fill: part })
      text = ''
    }
  const behind = text
  const [first, ...others] = fills
  if (first === undefined) return behind
  if (others.length === 0) {
    const { before, fill } = first
    return before + behind === '' ? fill : (call) => before + fill(call) + behind
  }
  return (call) => {
    let filled = ''
    for (const { before, fill } of fills) filled += before + fill(call)
    return filled + behind
  }
}

function compilePlaceholder(placeholder: Placeholder, encode: Encoding['value']): Fill {
  const { name } = placeholder
  const find = findValue(name)
  return (call) => {
    const value = find(call)
    if (value === undefined || value === '') throw unsendable(name, 'this call has no such value')
    checkQuoted(value, placeholder)
    return encode(value, name)
  }
}

function compileTemplate(template: Template, { value, whole }: Encoding): Filled {
  const filled = joined(
    template.map((part) => (part.kind === 'text' ? part.text : compilePlaceholder(part, value))),
  )
  const [blamed = ''] = placeholdersOf(template)
  return typeof filled === 'string' || template.length === 1 ? filled : (call) => whole(filled(call), blamed)
}

/** The path that a call is sent to, in place of the client's. */
export interface PathTemplate {
  /**
   * Between the slashes; the last one is empty if the path ends in a slash. `{action}` alone stands for all segments of
   * the action, and `{fund}` alone for none in a call at business level.
   */
  readonly segments: readonly Template[]
  readonly placeholders: readonly string[]
  /** @throws Fault `unsendable_value`, `unsendable_argument` */
  readonly render: Fill
}

/** Unreserved characters and few others: nothing that any upstream reads as something else. */
const LITERAL = /^[A-Za-z0-9._~!$&'()*+,=:@-]*$/

/** Compiles `/companies/{business}/members/{memberId}.json`. @returns what is wrong with it, if anything is */
export function compilePathTemplate(source: string): PathTemplate | string {
  if (!source.startsWith('/')) return 'must begin with "/"'
  const texts = source.slice(1).split('/')
  const segments: Template[] = []
  let end = 0
  for (const [index, text] of texts.entries()) {
    const start = end + 1
    end = start + text.length
    const around = { before: source.slice(0, start), behind: source.slice(end) }
    if (text === '' && index < texts.length - 1) return 'has an empty segment'
    const segment = parseSegment(text, around)
    if (typeof segment === 'string') return segment
    segments.push(segment)
  }
  const path = joined(segments.flatMap(compileSegment))
  return {
    segments,
    placeholders: placeholdersOf(segments.flat()),
    render: typeof path === 'string' ? () => path : (call) => orRoot(path(call)),
  }
}

const orRoot = (path: string): string => (path === '' ? '/' : path)

function parseSegment(
  text: string,
  around: { readonly before: string; readonly behind: string },
): Template | string {
  if (text === '.' || text === '..') return 'has a segment of dots'
  const segment = parseTemplate(text, around)
  if (typeof segment === 'string') return segment
  return LITERAL.test(textOf(segment))
    ? segment
    : 'has characters that may not stand in a path as they are; a query goes into `query`'
}

/** Placeholders that stand for no segment, or for several: with the slashes. */
const WHOLE: Readonly<Record<string, Fill>> = {
  action: (call) => actionSegments(call).reduce((path, segment) => `${path}/${segment}`, ''),
  fund: ({ fund }) => (fund === undefined ? '' : `/${encodeSegment(fund, 'fund')}`),
}

function compileSegment(segment: Template): readonly Filled[] {
  const sole = solePlaceholder(segment)
  const whole = sole !== undefined && Object.hasOwn(WHOLE, sole.name) ? WHOLE[sole.name] : undefined
  if (sole === undefined || whole === undefined) return ['/', compileTemplate(segment, SEGMENT)]
  const find = findValue(sole.name)
  return [
    (call) => {
      checkQuoted(find(call) ?? '', sole)
      return whole(call)
    },
  ]
}

interface QueryTemplateRules {
  /** What is added, by name. */
  readonly query: ReadonlyMap<string, Template>
  /** Names of the only pairs of a client that pass; undefined: all but those that are added. */
  readonly queryOnly: readonly string[] | undefined
  /** Whether what a second decoding would change is refused. */
  readonly strictQuery: boolean
}

/**
 * Makes the query that is sent of the client's: both are empty, or begin with `?`.
 * @throws Fault `unsendable_value`, `unsendable_argument`
 */
export type QueryTemplate = (call: Call, query: string) => string

/** Undefined where the client's query goes on as it is. */
export function compileQueryTemplate(rules: QueryTemplateRules): QueryTemplate | undefined {
  const { query, queryOnly, strictQuery } = rules
  const taken = [...query.keys()]
  const filter = compileQueryFilter({ taken, only: queryOnly, strict: strictQuery })
  if (filter === undefined) return undefined
  if (taken.length === 0) return (_call, given) => filter(given)
  const refuseHidden = compileRefuseHidden(taken)
  const added = joined(
    [...query].flatMap(([name, template]) => [
      `&${percentEncode(name)}=`,
      compileQueryValue(template, refuseHidden),
    ]),
  )
  return (call, given) => {
    const passed = given === '' ? '' : filter(given)
    const pairs = typeof added === 'string' ? added : added(call)
    return passed === '' || passed === '?' ? `?${pairs.slice(1)}` : passed + pairs
  }
}

function compileQueryValue(template: Template, refuseHidden: RefuseHidden): Filled {
  const text = compileTemplate(template, TEXT)
  if (typeof text === 'string') return percentEncode(text)
  return (call) => {
    const value = text(call)
    if (PLAIN.test(value)) return value
    // It may have a path parameter in it, which the client chose.
    refuseHidden(value, 'value')
    return percentEncode(value)
  }
}

export interface FixedHeader {
  /** As the configuration spells it. */
  readonly written: string
  /** In lower case. */
  readonly name: string
  readonly template: Template
}

/** Headers of the configuration, by folded name: see `foldName`. */
export type FixedHeaders = ReadonlyMap<string, FixedHeader>

/** Writes the lines. @throws Fault `unsendable_value`, `unsendable_argument` */
export type FixedHeaderWriter = (call: Call) => HeaderText

/** Undefined where there are none. */
export function compileFixedHeaders(headers: FixedHeaders): FixedHeaderWriter | undefined {
  let same = NO_HEADERS
  const made: FixedHeaderWriter[] = []
  for (const { name, template } of headers.values()) {
    const text = compileTemplate(template, HEADER)
    if (typeof text === 'string') same = followedBy(same, headerLine(name, text))
    else made.push((call) => headerLine(name, text(call)))
  }
  if (same === NO_HEADERS && made.length === 0) return undefined
  return (call) => {
    let lines = same
    for (const make of made) lines = followedBy(lines, make(call))
    return lines
  }
}

export interface RequestTemplates {
  /** Undefined: the path of the client's request. */
  readonly path: PathTemplate | undefined
  readonly query: ReadonlyMap<string, Template>
  readonly headers: FixedHeaders
}

export function placeholdersIn({ path, query, headers }: RequestTemplates): ReadonlySet<string> {
  const texts = [...query.values(), ...[...headers.values()].map(({ template }) => template)]
  return new Set([...(path?.placeholders ?? []), ...texts.flatMap(placeholdersOf)])
}
