/** Texts with placeholders, of which parts of upstream requests are made (C8.7). */
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

/** The names of a template's placeholders, each once. */
export const placeholdersOf = (template: Template): readonly string[] => [
  ...new Set(template.flatMap((part) => (part.kind === 'placeholder' ? [part.name] : []))),
]

/** Index of the action's first segment in `/api/{version}/b/{business}/{area}/…` and `/api/{version}/f/{business}/{fund}/{area}/…`. */
const ACTION_AT = { business: 5, fund: 6 } as const

/** The segments of the action, in canonical form: parameters as the client gave them. */
const actionSegments = ({ target, action }: Pick<Call, 'target' | 'action'>): readonly string[] =>
  target.segments.slice(ACTION_AT[action.level])

/** What the built-in placeholders stand for, decoded. */
export const BUILT_IN: Readonly<Record<string, (call: Call) => string | undefined>> = {
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

/** The fault of a value that is never sent (C8.7). @param why for the log; holds nothing of the value */
const unsendable = (name: string, why: string): Fault =>
  new Fault('unsendable_value', { detail: `{${name}} cannot be sent: ${why}`, unchanged: true })

/**
 * Throws Fault `unsendable_argument` for a value that could end the quotation in which it stands. Services also read other
 * forms of a mark as the mark (NFKC).
 */
function checkQuoted(value: string, { name, quotes }: Placeholder): void {
  if (quotes.length === 0) return
  const read = value.normalize('NFKC')
  if (read.includes('\\') || quotes.some((mark) => read.includes(mark)))
    throw new Fault('unsendable_argument', {
      say: `What stands for ${name} holds a quotation mark or a backslash. Leave it out.`,
    })
}

/** Finds what a placeholder stands for in a call: of a built-in name, or of one of the action's path parameters. */
function compilePlaceholder(placeholder: Placeholder): (call: Call) => string {
  const { name } = placeholder
  const find = isBuiltIn(name)
    ? BUILT_IN[name]
    : ({ params }: Call) => (Object.hasOwn(params, name) ? params[name] : undefined)
  return (call) => {
    const value = find?.(call)
    if (value === undefined || value === '') throw unsendable(name, 'this call has no such value')
    checkQuoted(value, placeholder)
    return value
  }
}

// Values of a call as they stand in a request to an upstream (C8.7): none that C3.4 would refuse as a segment.

/** Unreserved characters (RFC 3986 §2.3), and no dot segment: nobody reads these in two ways. */
const PLAIN = /^(?!\.{1,2}$)[A-Za-z0-9._~-]+$/

/**
 * A value as one percent-encoded segment: UTF-8, unreserved characters as they are, all others encoded, so that decoding
 * it once gives the value.
 * @throws Fault `unsendable_value`
 */
export const encodeSegment = (value: string, name: string): string =>
  PLAIN.test(value) ? value : checkSegment(percentEncoded(value, name), name)

/**
 * A segment that a value is part of. Judged as a whole, because text beside a value may give it another meaning.
 * @param name of the placeholder to blame
 * @throws Fault `unsendable_value`
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

/** Whether a value stands for itself wherever it is put. */
const isPlain = (value: string): boolean => PLAIN.test(value)

/** Throws Fault `unsendable_value` for a value that C3.4 would refuse as a segment. */
const checkValue = (value: string, name: string): void => void encodeSegment(value, name)

/** Whether a text would be another one if somebody decoded it: `%41`, and IIS's `%u0041`. */
export const holdsEscape = (text: string): boolean => /%(?:[0-9A-Fa-f]{2}|[Uu][0-9A-Fa-f]{4})/.test(text)

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

/** A text that is the same for all calls, or made for each. @throws Fault `unsendable_value` */
type Text = string | ((call: Call) => string)

/** Throws Fault `unsendable_value` for a value that may not be sent in this place. */
type CheckValue = (value: string, name: string) => void

const NO_CHECK: CheckValue = () => undefined

/**
 * Compiles a template of a header or of a value in the query: decoded text. Each value is one that C3.4 takes as a
 * segment (C8.7), and text beside it makes no escape of it.
 */
function compileText(template: Template, check: CheckValue = NO_CHECK): Text {
  const [blamed] = placeholdersOf(template)
  if (blamed === undefined) return template.map((part) => (part.kind === 'text' ? part.text : '')).join('')
  const parts = template.map((part) => {
    if (part.kind === 'text') return part.text
    const { name } = part
    const valueIn = compilePlaceholder(part)
    return (call: Call): string => {
      const value = valueIn(call)
      if (isPlain(value)) return value
      checkValue(value, name)
      check(value, name)
      return value
    }
  })
  const [only] = parts
  if (parts.length === 1 && only !== undefined) return only
  return (call) => {
    let text = ''
    for (const part of parts) text += typeof part === 'string' ? part : part(call)
    if (holdsEscape(text)) throw unsendable(blamed, 'with the text beside it, it is an escape')
    return text
  }
}

/** The path that a call is sent to, in place of the client's (C8.7). */
export interface PathTemplate {
  /**
   * Between the slashes; the last one is empty if the path ends in a slash. `{action}` alone stands for all segments of
   * the action, and `{fund}` alone for none in a call at business level.
   */
  readonly segments: readonly Template[]
  /** The names of its placeholders. */
  readonly placeholders: readonly string[]
  /** @throws Fault `unsendable_value` */
  readonly render: (call: Call) => string
}

/** Unreserved characters and few others: nothing that any upstream reads as something else. */
const LITERAL = /^[A-Za-z0-9._~!$&'()*+,=:@-]*$/

/**
 * Compiles `/companies/{business}/members/{memberId}.json`.
 * @returns what is wrong with it, if anything is
 */
export function compilePathTemplate(source: string): PathTemplate | string {
  if (!source.startsWith('/')) return 'must begin with "/"'
  const texts = source.slice(1).split('/')
  const segments: Template[] = []
  let end = 0
  for (const [index, text] of texts.entries()) {
    const start = end + 1
    end = start + text.length
    const around = { before: source.slice(0, start), behind: source.slice(end) }
    const segment = parseSegment(text, index === texts.length - 1, around)
    if (typeof segment === 'string') return segment
    segments.push(segment)
  }
  const parts = joinTexts(segments.map(compileSegment))
  return {
    segments,
    placeholders: placeholdersOf(segments.flat()),
    render: (call) => {
      let path = ''
      for (const part of parts) path += typeof part === 'string' ? part : part(call)
      return path === '' ? '/' : path
    },
  }
}

/** One text in place of several that follow each other. */
function joinTexts(renderers: readonly SegmentRenderer[]): readonly SegmentRenderer[] {
  const joined: SegmentRenderer[] = []
  for (const each of renderers) {
    const last = joined.at(-1)
    if (typeof each === 'string' && typeof last === 'string') joined.splice(-1, 1, last + each)
    else joined.push(each)
  }
  return joined
}

function parseSegment(
  text: string,
  isLast: boolean,
  around: { readonly before: string; readonly behind: string },
): Template | string {
  if (text === '' && !isLast) return 'has an empty segment'
  if (text === '.' || text === '..') return 'has a segment of dots'
  const segment = parseTemplate(text, around)
  if (typeof segment === 'string') return segment
  const isPlain = segment.every((part) => part.kind === 'placeholder' || LITERAL.test(part.text))
  return isPlain
    ? segment
    : 'has characters that may not stand in a path as they are; a query goes into `query`'
}

/** The placeholder that a segment is, if it is nothing but one. */
const solePlaceholder = (segment: Template): Placeholder | undefined => {
  const [part, ...others] = segment
  return part?.kind === 'placeholder' && others.length === 0 ? part : undefined
}

export const soleName = (segment: Template): string | undefined => solePlaceholder(segment)?.name

/** A segment with the slash before it, or what makes it for each call. */
type SegmentRenderer = string | ((call: Call) => string)

const WHOLE: Readonly<Record<string, (call: Call) => string>> = {
  action: (call) => actionSegments(call).reduce((path, segment) => `${path}/${segment}`, ''),
  fund: ({ fund }) => (fund === undefined ? '' : `/${encodeSegment(fund, 'fund')}`),
}

function compileSegment(segment: Template): SegmentRenderer {
  const sole = solePlaceholder(segment)
  if (sole === undefined) return compileMixed(segment)
  const { name } = sole
  const whole = Object.hasOwn(WHOLE, name) ? WHOLE[name] : undefined
  if (whole)
    return (call) => {
      checkQuoted(BUILT_IN[name]?.(call) ?? '', sole)
      return whole(call)
    }
  const value = compilePlaceholder(sole)
  return (call) => `/${encodeSegment(value(call), name)}`
}

/** Text alone, or text and placeholders. */
function compileMixed(segment: Template): SegmentRenderer {
  const [blamed] = placeholdersOf(segment)
  if (blamed === undefined)
    return `/${segment.map((part) => (part.kind === 'text' ? part.text : '')).join('')}`
  const parts = segment.map((part) => {
    if (part.kind === 'text') return part.text
    const value = compilePlaceholder(part)
    return (call: Call) => encodeSegment(value(call), part.name)
  })
  return (call) => {
    let text = ''
    for (const part of parts) text += typeof part === 'string' ? part : part(call)
    return `/${checkSegment(text, blamed)}`
  }
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
  const refuseHidden = compileRefuseHidden(taken)
  const pairs = [...query].map(([name, template]) => compilePair(name, template, refuseHidden))
  if (pairs.length === 0) return (_call, given) => filter(given)
  return (call, given) => {
    const passed = given === '' ? '' : filter(given)
    let sent = ''
    for (const pair of pairs) sent += typeof pair === 'string' ? pair : pair(call)
    return passed === '' || passed === '?' ? `?${sent.slice(1)}` : passed + sent
  }
}

/** A pair with its separator, or what makes it for each call. */
function compilePair(name: string, template: Template, refuseHidden: RefuseHidden): Text {
  const start = `&${percentEncode(name)}=`
  // A value may have a path parameter in it, which the client chose.
  const encoded = (value: string): string => {
    if (isPlain(value)) return value
    refuseHidden(value, 'value')
    return percentEncode(value)
  }
  const sole = solePlaceholder(template)
  if (sole !== undefined) {
    const find = compilePlaceholder(sole)
    return (call) => {
      const value = find(call)
      checkValue(value, sole.name)
      return start + encoded(value)
    }
  }
  const text = compileText(template)
  return typeof text === 'function' ? (call) => start + encoded(text(call)) : start + percentEncode(text)
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

/** Writes the lines. @throws Fault `unsendable_value` */
export type FixedHeaderWriter = (call: Call) => HeaderText

const VISIBLE_ASCII = /^[!-~]+$/

/** There is no way to encode other characters that all upstreams would decode. */
const requireVisibleAscii: CheckValue = (value, name) => {
  if (!VISIBLE_ASCII.test(value)) throw unsendable(name, 'a header holds visible ASCII only')
}

/** Undefined where there are none. */
export function compileFixedHeaders(headers: FixedHeaders): FixedHeaderWriter | undefined {
  let same = NO_HEADERS
  const made: ((call: Call) => HeaderText)[] = []
  for (const { name, template } of headers.values()) {
    const text = compileText(template, requireVisibleAscii)
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
