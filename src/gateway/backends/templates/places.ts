/**
 * Templates in their places (C8.7): a path, a query, a header, a host, a credential. Each is compiled once, and filled for
 * each call. The place decides how values are written there.
 */
import type { BodyMaking, Call } from '../../../base/contracts/calls/backend.ts'
import { MASK, type Placeholder, type Template } from '../../../base/contracts/calls/templates.ts'
import { followedBy, headerLine, type HeaderText, NO_HEADERS } from '../../../base/http/head/header-text.ts'
import {
  compileFindTaken,
  compileQueryFilter,
  type FindHidden,
  type KeptNames,
} from '../../../base/http/head/query.ts'
import { canonicalSegment } from '../../../base/http/head/request-target.ts'
import { Fault } from '../../../base/kernel/faults.ts'
import { placeholdersOfBody } from './body-tree.ts'
import {
  type Around,
  MASKED,
  masked,
  parseTemplate,
  placeholdersIn,
  solePlaceholder,
  fixedText,
} from './parse.ts'
import { actionSegments, asText, findValue, isClients, unsendable } from './sources.ts'

/** An action as templates, modules and data files name it: without the types of parameters, `{memberId}` for `{memberId:uuid}`. */
export const withoutTypes = (action: string): string =>
  action.replace(/\{([^:{}]+):(?:[^{}]|\{[^}]*\})*\}/g, '{$1}')

/** Between quotation marks a service reads some characters as their end. NFKC: some normalise before they read. */
function checkQuoted(value: string, placeholder: Placeholder): void {
  const read = value.normalize('NFKC')
  if (read.includes('\\') || placeholder.quotes.some((mark) => read.includes(mark)))
    throw unsendable(placeholder, 'holds a quotation mark or a backslash')
}

const UNRESERVED = /^[A-Za-z0-9._~-]+$/

/** Outside quotation marks, in a text with one of these, a value could be read as more than one: OData, FIQL, `$filter`. */
const DIVIDES = /['"`(),=; ]/

/**
 * Checks a value that is next to other text.
 * @throws Fault `unsendable_argument`, `unsendable_value`
 */
type CheckBeside = (value: string) => void

/** @param whole the text without its placeholders. Undefined: nothing is to be checked */
function compileCheckBeside(placeholder: Placeholder, whole: string): CheckBeside | undefined {
  if (placeholder.quotes.length > 0) return (value) => checkQuoted(value, placeholder)
  if (!DIVIDES.test(whole)) return undefined
  return (value) => {
    if (!UNRESERVED.test(value))
      throw unsendable(placeholder, 'holds something else than letters, digits, ".", "_", "~" and "-"')
  }
}

/** Unreserved characters (RFC 3986 §2.3), and no dot segment: nobody reads these in two ways, wherever they are. */
const PLAIN = /^(?!\.{1,2}$)[A-Za-z0-9._~-]+$/

/** Reserved characters that encodeURIComponent leaves (RFC 3986 §2.2). */
const LEFT = /[!'()*]/g

/** A text, percent-encoded: only unreserved characters stay. @throws URIError for half a surrogate pair */
export const percentEncode = (text: string): string =>
  PLAIN.test(text)
    ? text
    : encodeURIComponent(text).replace(
        LEFT,
        (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
      )

function percentEncoded(value: string, placeholder: Placeholder): string {
  try {
    return percentEncode(value)
  } catch {
    throw unsendable(placeholder, 'is no Unicode text')
  }
}

/**
 * A segment that is a value, or has one as a part. Checked as a whole, because text next to a value may give it another
 * meaning.
 * @param blamed a placeholder of it
 * @throws Fault `unsendable_argument`, `unsendable_value` for one that C3.4 would refuse
 */
function checkSegment(segment: string, blamed: Placeholder): string {
  if (PLAIN.test(segment)) return segment
  try {
    if (canonicalSegment(segment) === segment) return segment
  } catch (thrown) {
    const why = thrown instanceof Fault ? (thrown.facts.say ?? thrown.code) : String(thrown)
    throw unsendable(blamed, `cannot be a segment of a path (${why})`)
  }
  throw unsendable(blamed, 'has another canonical form')
}

/**
 * One segment, percent-encoded: decoding it once gives the value.
 * @throws Fault `unsendable_argument`, `unsendable_value`
 */
export const encodeSegment = (value: string, placeholder: Placeholder): string =>
  PLAIN.test(value) ? value : checkSegment(percentEncoded(value, placeholder), placeholder)

/** Whether a text would be another one if somebody decoded it: `%41`, and IIS's `%u0041`. */
export const holdsEscape = (text: string): boolean => /%(?:[0-9A-Fa-f]{2}|[Uu][0-9A-Fa-f]{4})/.test(text)

/** How values are written in a place. Both throw Fault `unsendable_argument` or `unsendable_value`. */
interface Encoding {
  readonly value: (value: string, placeholder: Placeholder) => string
  /** Checks a value with the text next to it, once each value is good by itself. */
  readonly whole: (text: string, blamed: Placeholder) => string
}

const SEGMENT: Encoding = { value: encodeSegment, whole: checkSegment }

/** Decoded text. Each value is one that C3.4 takes as a segment, and text next to it makes no escape of it. */
const TEXT: Encoding = {
  value: (value, placeholder) => {
    if (!PLAIN.test(value)) encodeSegment(value, placeholder)
    return value
  },
  whole: (text, blamed) => {
    if (holdsEscape(text)) throw unsendable(blamed, 'is an escape, with the text beside it')
    return text
  },
}

const VISIBLE_ASCII = /^[!-~]+$/

/** There is no way to encode other characters that all upstreams would decode. */
const HEADER: Encoding = {
  value: (value, placeholder) => {
    if (PLAIN.test(value)) return value
    encodeSegment(value, placeholder)
    if (!VISIBLE_ASCII.test(value))
      throw unsendable(placeholder, 'holds other characters than visible ASCII, which a header cannot')
    return value
  },
  whole: TEXT.whole,
}

type Fill = (call: Call) => string
/** A text without placeholders, or a function that makes it for a call. */
export type Filled = string | Fill

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

/** @param whole the text without its placeholders; undefined: the placeholder stands alone in it */
function compilePlaceholder(placeholder: Placeholder, encode: Encoding['value'], whole = ''): Fill {
  const find = findValue(placeholder.to)
  const checkBeside = compileCheckBeside(placeholder, whole)
  return (call) => {
    const value = asText(find(call), placeholder)
    if (value === '') throw unsendable(placeholder, 'is empty')
    checkBeside?.(value)
    return encode(value, placeholder)
  }
}

/** @param whole the text of which it is a part, without placeholders */
function compileTemplate(
  template: Template,
  { value, whole }: Encoding,
  around = fixedText(template),
): Filled {
  const filled = joined(
    template.map((part) => {
      if (part.kind === 'text') return part.text
      return compilePlaceholder(part, value, template.length === 1 ? undefined : around)
    }),
  )
  const [blamed] = placeholdersIn(template)
  if (typeof filled === 'string' || template.length === 1 || blamed === undefined) return filled
  return (call) => whole(filled(call), blamed)
}

/** The path that a call is sent to, in place of the client's. */
export interface PathTemplate {
  /**
   * Between the slashes; the last one is empty if the path ends in a slash. `{action}` alone stands for all segments of
   * the action, and `{fund}` alone for none in a call at business level.
   */
  readonly segments: readonly Template[]
  readonly placeholders: readonly Placeholder[]
  /** @throws Fault `unsendable_value`, `unsendable_argument` */
  readonly render: Fill
}

/** Unreserved characters and few others: nothing that any upstream reads as something else. */
const LITERAL = /^[A-Za-z0-9._~!$&'()*+,=:@-]*$/

/** A slash within braces belongs to a placeholder: `{body/Address/City}`. */
const SEGMENTS = /\/(?<text>(?:\{[^{}]*\}|[^/])*)/g

/** Compiles `/companies/{business}/members/{memberId}.json`. @returns what is wrong with it, if anything is */
export function compilePathTemplate(source: string): PathTemplate | string {
  if (!source.startsWith('/')) return 'must begin with "/"'
  const found = [...source.matchAll(SEGMENTS)]
  const segments: Template[] = []
  for (const [at, { 0: whole, index, groups }] of found.entries()) {
    const text = groups?.['text'] ?? ''
    const around = { before: source.slice(0, index), behind: source.slice(index + whole.length) }
    if (text === '' && at < found.length - 1) return 'has an empty segment'
    const segment = parseSegment(text, around)
    if (typeof segment === 'string') return segment
    segments.push(segment)
  }
  return pathOf(segments)
}

function pathOf(segments: readonly Template[]): PathTemplate {
  const text = segments.map(fixedText).join('/')
  const path = joined(segments.flatMap((segment) => compileSegment(segment, text)))
  return {
    segments,
    placeholders: segments.flatMap(placeholdersIn),
    render: typeof path === 'string' ? () => path : (call) => orRoot(path(call)),
  }
}

/** @param secrets names of values of the business that are not shown (C14.1) */
export const maskedPath = ({ segments }: PathTemplate, secrets: ReadonlySet<string>): PathTemplate =>
  pathOf(segments.map((segment) => masked(segment, secrets)))

const orRoot = (path: string): string => (path === '' ? '/' : path)

function parseSegment(text: string, around: Around): Template | string {
  if (text === '.' || text === '..') return 'has a segment of dots'
  const segment = parseTemplate(text, around)
  if (typeof segment === 'string') return segment
  return LITERAL.test(fixedText(segment))
    ? segment
    : 'has characters that may not stand in a path as they are; a query goes into `query`'
}

/** Fills a placeholder that is a whole segment and stands for no segment, or for several: with the slashes. */
function severalSegments(placeholder: Placeholder): Fill | undefined {
  const { to } = placeholder
  if (to.kind === 'segments') {
    const find = findValue(to)
    return (call) => {
      const texts = asText(find(call), placeholder).split('/')
      return texts.reduce((path, text) => `${path}/${encodeSegment(text, placeholder)}`, '')
    }
  }
  if (to.kind !== 'name') return undefined
  if (to.name === 'action')
    return (call) => actionSegments(call).reduce((path, segment) => `${path}/${segment}`, '')
  if (to.name === 'fund')
    return ({ fund }) => (fund === undefined ? '' : `/${encodeSegment(fund, placeholder)}`)
  return undefined
}

/** @param around the text of the whole path, without placeholders */
function compileSegment(segment: Template, around: string): readonly Filled[] {
  const sole = solePlaceholder(segment)
  const several = sole && severalSegments(sole)
  if (sole === undefined || several === undefined) return ['/', compileTemplate(segment, SEGMENT, around)]
  const checkBeside = compileCheckBeside(sole, '')
  if (checkBeside === undefined) return [several]
  const find = findValue(sole.to)
  return [
    (call) => {
      checkBeside(asText(find(call) ?? '', sole))
      return several(call)
    },
  ]
}

interface QueryTemplateRules {
  /** The parameters that are added, by name. */
  readonly query: ReadonlyMap<string, Template>
  /** Names of the only pairs of a client that pass; undefined: all but those that are added. */
  readonly queryOnly: readonly string[] | undefined
  /** Whether a value that a second decoding would change is refused. */
  readonly strictQuery: boolean
  /** Names of the business in other places. Undefined: there are none. */
  readonly keptOut?: { readonly query: KeptNames } | undefined
}

/**
 * Makes the query that is sent from the client's: each is empty, or begins with `?`.
 * @throws Fault `unsendable_value`, `unsendable_argument`
 */
export type QueryTemplate = (call: Call, query: string) => string

/** Undefined where the client's query is sent on as it is. */
export function compileQueryTemplate(rules: QueryTemplateRules): QueryTemplate | undefined {
  const { query, queryOnly, strictQuery, keptOut } = rules
  const taken = [...query.keys()]
  const filter = compileQueryFilter({ taken, only: queryOnly, strict: strictQuery, kept: keptOut?.query })
  if (filter === undefined) return undefined
  const findHidden = compileFindTaken(taken, keptOut?.query)
  if (taken.length === 0 || findHidden === undefined) return (_call, given) => filter(given)
  const added = joined(
    [...query].flatMap(([name, template]) => [
      `&${percentEncode(name)}=`,
      compileQueryValue(template, findHidden),
    ]),
  )
  return (call, given) => {
    const passed = given === '' ? '' : filter(given)
    const pairs = typeof added === 'string' ? added : added(call)
    return passed === '' || passed === '?' ? `?${pairs.slice(1)}` : passed + pairs
  }
}

function compileQueryValue(template: Template, findHidden: FindHidden): Filled {
  const at = template.indexOf(MASKED)
  if (at !== -1) {
    const sides = [template.slice(0, at), template.slice(at + 1)] as const
    const [before, behind] = sides.map((side) => compileQueryValue(side, findHidden)) as [Filled, Filled]
    return joined([before, MASK, behind])
  }
  const text = compileTemplate(template, TEXT)
  if (typeof text === 'string') return percentEncode(text)
  const placeholders = placeholdersIn(template)
  const blamed = placeholders.find(({ to }) => isClients(to)) ?? placeholders[0]
  return (call) => {
    const value = text(call)
    if (PLAIN.test(value)) return value
    if (blamed !== undefined && findHidden(value, 'value') !== undefined)
      throw unsendable(blamed, 'holds a parameter of the query that only this service sets')
    return percentEncode(value)
  }
}

/** A text that may hold any value. Its sender says what it cannot hold. */
export const compileFreeText = (template: Template): Filled =>
  joined(
    template.map((part) => {
      if (part.kind === 'text') return part.text
      const find = findValue(part.to)
      return (call) => asText(find(call), part)
    }),
  )

export interface FixedHeader {
  /** The name as the configuration spells it. */
  readonly written: string
  /** The name in lower case. */
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

/** A template of which nothing is ever left out, and its path within its section. */
export interface CertainTemplate {
  readonly at: readonly string[]
  readonly template: Template
}

export interface RequestTemplates {
  /** Undefined: the path of the client's request. */
  readonly path: PathTemplate | undefined
  readonly query: ReadonlyMap<string, Template>
  readonly headers: FixedHeaders
  /** Undefined: no template names the client's body, and it is sent on. */
  readonly bodyUse?: BodyMaking | undefined
}

interface WithCertain extends RequestTemplates {
  /** The credentials of `auth`. */
  readonly credentials?: { readonly templates: readonly CertainTemplate[] } | undefined
  /** The templates of `target` and `host`. */
  readonly varying?: { readonly templates: readonly CertainTemplate[] } | undefined
}

/** The placeholders of all these templates. */
export const placeholdersOf = ({
  path,
  query,
  headers,
  credentials,
  varying,
  bodyUse,
}: WithCertain): readonly Placeholder[] => [
  ...(bodyUse?.recipe === undefined ? [] : placeholdersOfBody(bodyUse.recipe)),
  ...(path?.placeholders ?? []),
  ...[...query.values()].flatMap(placeholdersIn),
  ...[...headers.values()].flatMap(({ template }) => placeholdersIn(template)),
  ...[...(credentials?.templates ?? []), ...(varying?.templates ?? [])].flatMap(({ template }) =>
    placeholdersIn(template),
  ),
]
