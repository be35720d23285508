import { Fault } from '../../kernel/faults.ts'

/** The one reader of media types (RFC 9110 §8.3.1, §5.6): no two places read the same bytes differently (T4.1). */
interface MediaType {
  /** `type/subtype` in lower case. */
  readonly type: string
  /** In order, repeats too; names in lower case, values without quotes, case kept. */
  readonly parameters: readonly MediaParameter[]
}

interface MediaParameter {
  readonly name: string
  readonly value: string
  readonly quoted: boolean
}

// Sticky and without overlapping alternatives: linear on any input.
const TYPE = /[ \t]*([!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+)/y
const PARAMETER =
  /[ \t]*;[ \t]*(?:([!#$%&'*+.^_`|~\w-]+)=(?:([!#$%&'*+.^_`|~\w-]+)|"((?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*)"))?/y
const TRAILING = /[ \t]*$/y

/** A media type or range with its parameters; undefined if malformed. Empty parameters (`a/b;`) are legal. */
export function parseMediaType(text: string): MediaType | undefined {
  TYPE.lastIndex = 0
  const type = TYPE.exec(text)?.[1]
  if (type === undefined) return undefined
  const parameters: MediaParameter[] = []
  let end = TYPE.lastIndex
  for (;;) {
    PARAMETER.lastIndex = end
    const match = PARAMETER.exec(text)
    if (match === null) break
    end = PARAMETER.lastIndex
    const [, name, token, quoted] = match
    if (name === undefined) continue
    const value = token ?? quoted?.replace(/\\(.)/gs, '$1') ?? ''
    parameters.push({ name: name.toLowerCase(), value, quoted: token === undefined })
  }
  TRAILING.lastIndex = end
  return TRAILING.test(text) ? { type: type.toLowerCase(), parameters } : undefined
}

/** For schemas: a media type or a range, with or without parameters. */
export const MEDIA_TYPE_TEXT = {
  pattern: "^[!#$%&'*+.^_`|~A-Za-z0-9-]+/[!#$%&'*+.^_`|~A-Za-z0-9-]+([ \\t]*;.*)?$",
  expected: 'a media type or range, such as "text/csv" or "image/*"',
} as const

/** For schemas: a map by media types without parameters. */
export const MEDIA_TYPE_KEYS = {
  keys: "^[A-Za-z0-9][!#$%&'+.^_`|~A-Za-z0-9-]*/[A-Za-z0-9][!#$%&'+.^_`|~A-Za-z0-9-]*$",
  expectedKeys: 'a media type without parameters, such as "application/json-rpc"',
} as const

/** Whether every charset that the parameters name is UTF-8, in any case (C7.2, C7.4). True if none is named. */
const isUtf8 = ({ parameters }: MediaType): boolean =>
  parameters.every(({ name, value }) => name !== 'charset' || value.toLowerCase() === 'utf-8')

/** Whether `range` (`a/b`, `a/*` or `*\/*`) includes all that `type` includes. Both in lower case. */
export const covers = (range: string, type: string): boolean =>
  range === type || range === '*/*' || (range.endsWith('/*') && type.startsWith(range.slice(0, -1)))

/** The members of a comma-separated list (RFC 9110 §5.6.1), empty ones left out; a comma within quotes divides nothing. */
function splitList(list: string): readonly string[] {
  const members: string[] = []
  let start = 0
  let quoted = false
  for (let at = 0; at < list.length; at++) {
    const char = list[at]
    if (quoted && char === '\\') at++
    else if (char === '"') quoted = !quoted
    else if (char === ',' && !quoted) {
      members.push(list.slice(start, at))
      start = at + 1
    }
  }
  members.push(list.slice(start))
  return members.filter((member) => /[^ \t]/.test(member))
}

/** One readable member of Accept (RFC 9110 §12.5.1). */
export interface AcceptRange {
  /** In lower case: `a/b`, `a/*` or any. */
  readonly type: string
  /** 0 to 1; 0 excludes. */
  readonly q: number
  /** 2 for a type, 1 for `a/*`, 0 for any. */
  readonly specificity: 0 | 1 | 2
  /** Its place in the client's order. */
  readonly order: number
  /** False if it asks for a charset other than UTF-8: then it names a type, but matches nothing (C7.2). */
  readonly matches: boolean
}

const QVALUE = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

const specificityOf = (type: string): AcceptRange['specificity'] => {
  if (type === '*/*') return 0
  return type.endsWith('/*') ? 1 : 2
}

function parseRange(member: string, order: number): AcceptRange | undefined {
  const media = parseMediaType(member)
  if (media === undefined) return undefined
  const [weight, second] = media.parameters.filter(({ name }) => name === 'q')
  if (second !== undefined) return undefined
  if (weight !== undefined && (weight.quoted || !QVALUE.test(weight.value))) return undefined
  return {
    type: media.type,
    q: Number(weight?.value ?? 1),
    specificity: specificityOf(media.type),
    order,
    matches: isUtf8(media),
  }
}

/**
 * The ranges of Accept in the client's order, malformed members left out. Undefined where the client states no
 * preference: no header, or one without members. Each line is split by itself, so that an unclosed quote in one
 * cannot swallow the next.
 */
export function parseAccept(lines: readonly string[]): readonly AcceptRange[] | undefined {
  const members = lines.flatMap(splitList)
  if (members.length === 0) return undefined
  return members.map(parseRange).filter((range) => range !== undefined)
}

/** By q, then specificity, then the client's order (C7.2). For Array.sort. */
export const byPreference = (a: AcceptRange, b: AcceptRange): number =>
  b.q - a.q || b.specificity - a.specificity || a.order - b.order

/**
 * The range that says how welcome one type is, of those that include it: the most specific one (RFC 9110
 * §12.5.1); of equally specific ones an exclusion, else the most preferred. Undefined: not acceptable.
 */
export function decisiveRange(standing: readonly AcceptRange[]): AcceptRange | undefined {
  let found: AcceptRange | undefined
  for (const range of standing) {
    const closer = range.specificity - (found?.specificity ?? -1)
    const wins = found === undefined || closer > 0 || (closer === 0 && found.q > 0 && outranks(range, found))
    if (wins) found = range
  }
  return found !== undefined && found.q > 0 ? found : undefined
}

const outranks = (range: AcceptRange, other: AcceptRange): boolean => range.q === 0 || range.q > other.q

export type BodyKind = 'json' | 'xml' | 'form'

interface BodyFacts {
  /** The header's value; undefined if it was not sent. An empty value was sent. */
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
  /** Whether the request carries a body of more than zero bytes, as far as its framing says. */
  readonly hasBody: boolean
}

/** The canonical media type of each kind: what is forwarded is what was checked (T4.1). */
export const MEDIA_TYPE_OF: Readonly<Record<BodyKind, string>> = {
  json: 'application/json',
  xml: 'application/xml',
  form: 'application/x-www-form-urlencoded',
}

const KIND_OF: ReadonlyMap<string, BodyKind> = new Map([
  [MEDIA_TYPE_OF.json, 'json'],
  [MEDIA_TYPE_OF.xml, 'xml'],
  [MEDIA_TYPE_OF.form, 'form'],
])
const ALL_KINDS: readonly BodyKind[] = ['json', 'xml', 'form']

/** The type that a body without a Content-Type may be taken for (RFC 9110 §8.3). */
const UNSTATED = 'application/octet-stream'

/**
 * A Content-Type value (RFC 9110 §8.3), or undefined if malformed. A repeated parameter is malformed: readers
 * disagree on which one counts. Two types in one value never parse, because a comma is no part of a type.
 */
export function parseContentType(value: string): MediaType | undefined {
  const media = parseMediaType(value)
  if (media === undefined) return undefined
  const names = new Set(media.parameters.map(({ name }) => name))
  return names.size === media.parameters.length ? media : undefined
}

/** Further types of bodies, in lower case, and what they are parsed as (C7.4). */
export type BodyTypes = ReadonlyMap<string, BodyKind>

/** How the body is parsed; `none` without one (C7.4). Throws Fault `unsupported_media_type`, also without a body. */
export function checkContentType(
  facts: BodyFacts,
  allowed: readonly BodyKind[] = ALL_KINDS,
  types?: BodyTypes,
): BodyKind | 'none' {
  if (!isIdentity(facts.contentEncoding)) throw unsupported(allowed, types)
  const kind = facts.contentType === undefined ? 'xml' : kindOf(facts.contentType, types)
  const supported = kind !== undefined && allowed.includes(kind)
  const stated = facts.contentType !== undefined || facts.hasBody
  if (stated && !supported) throw unsupported(allowed, types)
  return facts.hasBody && kind !== undefined ? kind : 'none'
}

/**
 * The same for an action with `consumes` of its own, types or ranges (C7.1): the type sent, in lower case, or `none`.
 * It replaces C7.4: any charset and coding pass, because such a body is not read here but streamed as it is.
 */
export function checkOwnContentType(facts: BodyFacts, consumes: readonly string[]): string {
  if (facts.contentType === undefined && !facts.hasBody) return 'none'
  const type = facts.contentType === undefined ? UNSTATED : parseContentType(facts.contentType)?.type
  if (type === undefined || !consumes.some((range) => covers(typeOf(range), type)))
    throw new Fault('unsupported_media_type', { offered: consumes })
  return facts.hasBody ? type : 'none'
}

const typeOf = (range: string): string => parseMediaType(range)?.type ?? range.toLowerCase()

function kindOf(value: string, types: BodyTypes | undefined): BodyKind | undefined {
  const media = parseContentType(value)
  if (media === undefined || !isUtf8(media)) return undefined
  return KIND_OF.get(media.type) ?? types?.get(media.type)
}

/** Whether a type, in lower case, is one that all bodies may have. */
export const isParsedType = (type: string): boolean => KIND_OF.has(type)

const isIdentity = (contentEncoding: string | undefined): boolean =>
  contentEncoding === undefined ||
  splitList(contentEncoding).every((coding) => coding.trim().toLowerCase() === 'identity')

/** The fault's own text names all kinds. */
const unsupported = (allowed: readonly BodyKind[], types: BodyTypes | undefined): Fault =>
  new Fault(
    'unsupported_media_type',
    allowed === ALL_KINDS && types === undefined
      ? {}
      : {
          offered: [...allowed.map((kind) => MEDIA_TYPE_OF[kind]), ...(types?.keys() ?? [])].map(
            (type) => `${type} in UTF-8, not compressed`,
          ),
        },
  )
