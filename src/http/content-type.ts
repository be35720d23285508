import { Fault } from '../kernel/faults.ts'
import { covers, parseMediaType, isUtf8, splitList, type MediaType } from './media-type.ts'

/** What a body is parsed as. */
export type BodyKind = 'json' | 'xml' | 'form'

/** What a request says about its body. */
export interface BodyFacts {
  /** The header's value; undefined if it was not sent. An empty value was sent. */
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
  /** Whether the request carries a body of more than zero bytes, as far as its framing tells. */
  readonly hasBody: boolean
}

/** The canonical media type of each kind: what is forwarded is what was judged (T4.1). */
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

/** RFC 9110 §8.3: what a body without a Content-Type may be taken for. */
const UNSTATED = 'application/octet-stream'

/**
 * A Content-Type value (RFC 9110 §8.3), or undefined if malformed. A repeated parameter is malformed: readers
 * disagree on which one counts. Two types in one value never parse, since a comma is no part of a type.
 */
export function parseContentType(value: string): MediaType | undefined {
  const media = parseMediaType(value)
  if (media === undefined) return undefined
  const names = new Set(media.parameters.map(({ name }) => name))
  return names.size === media.parameters.length ? media : undefined
}

/**
 * C7.4: what the body is to be parsed as; `none` without a body. Throws Fault `unsupported_media_type`, also without
 * a body if the header is there and not supported.
 */
export function checkContentType(
  facts: BodyFacts,
  allowed: readonly BodyKind[] = ALL_KINDS,
): BodyKind | 'none' {
  if (!isIdentity(facts.contentEncoding)) throw unsupported(allowed)
  const kind = facts.contentType === undefined ? 'xml' : kindOf(facts.contentType)
  const supported = kind !== undefined && allowed.includes(kind)
  const stated = facts.contentType !== undefined || facts.hasBody
  if (stated && !supported) throw unsupported(allowed)
  return facts.hasBody && kind !== undefined ? kind : 'none'
}

/**
 * The same for an action with `consumes` of its own, types or ranges (C7.1): the type sent, in lower case, or `none`.
 * It replaces C7.4: any charset and coding pass, since such a body is not read here but streamed as it is.
 */
export function checkOwnContentType(facts: BodyFacts, consumes: readonly string[]): string {
  if (facts.contentType === undefined && !facts.hasBody) return 'none'
  const type = facts.contentType === undefined ? UNSTATED : parseContentType(facts.contentType)?.type
  if (type === undefined || !consumes.some((range) => covers(typeOf(range), type)))
    throw new Fault('unsupported_media_type', { offered: consumes })
  return facts.hasBody ? type : 'none'
}

const typeOf = (range: string): string => parseMediaType(range)?.type ?? range.toLowerCase()

function kindOf(value: string): BodyKind | undefined {
  const media = parseContentType(value)
  return media !== undefined && isUtf8(media) ? KIND_OF.get(media.type) : undefined
}

const isIdentity = (contentEncoding: string | undefined): boolean =>
  contentEncoding === undefined ||
  splitList(contentEncoding).every((coding) => coding.trim().toLowerCase() === 'identity')

/** The fault's own text names all kinds. */
const unsupported = (allowed: readonly BodyKind[]): Fault =>
  new Fault(
    'unsupported_media_type',
    allowed === ALL_KINDS
      ? {}
      : { offered: allowed.map((kind) => `${MEDIA_TYPE_OF[kind]} in UTF-8, not compressed`) },
  )
