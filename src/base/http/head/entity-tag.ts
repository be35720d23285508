import { createHash } from 'node:crypto'
import type { Head } from './head.ts'

interface EntityTag {
  readonly weak: boolean
  /** The text between the quotes. */
  readonly opaque: string
}

/** `*`: whatever version there is. A list: one of these. */
export type TagCondition = '*' | readonly EntityTag[]

/**
 * `"` may stand in no tag, but a comma may: so a list is read member by member. White space stands in one place only
 * before a comma: in two, a long run of it would take time in proportion to its square (T2.9).
 */
const MEMBER = /[ \t]*(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*)?(?:,|$)/y

/** A list of tags. Undefined: it is none. Empty members count for nothing (RFC 9110 §5.6.1.2). */
function readTags(header: string): readonly EntityTag[] | undefined {
  const tags: EntityTag[] = []
  let at = 0
  while (at < header.length) {
    MEMBER.lastIndex = at
    const found = MEMBER.exec(header)
    if (found === null) return undefined
    at = MEMBER.lastIndex
    const [, weak, opaque] = found
    if (opaque !== undefined) tags.push({ weak: weak !== undefined, opaque })
  }
  return tags
}

/** Members of a list. A client keeps some versions of a document, not hundreds. */
const MOST_TAGS = 100

export function readTagCondition(header: string): TagCondition | undefined {
  if (header.trim() === '*') return '*'
  const tags = readTags(header)
  return tags === undefined || tags.length === 0 || tags.length > MOST_TAGS ? undefined : tags
}

/** The one tag that an `ETag` or an `If-Range` holds; undefined if it holds none. */
export function readTag(header: string): EntityTag | undefined {
  const [, weak, opaque] = ONE.exec(header) ?? []
  return opaque === undefined ? undefined : { weak: weak !== undefined, opaque }
}

const ONE = /^(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/

export const tagText = ({ weak, opaque }: EntityTag): string => `${weak ? 'W/' : ''}"${opaque}"`

/** A condition, or a single tag, with other opaque parts. A text that is no list of tags stays as it came, and so does `*`. */
export function withOpaque(header: string, change: (opaque: string) => string): string {
  const tags = readTags(header) ?? []
  const changed = tags.map((tag) => ({ ...tag, opaque: change(tag.opaque) }))
  const same = changed.every(({ opaque }, at) => opaque === tags[at]?.opaque)
  return same ? header : changed.map(tagText).join(', ')
}

/** The strong comparison of `If-Match` (RFC 9110 §8.8.3.2): a weak tag fits nothing. */
export const fitsStrongly = (condition: TagCondition, opaque: string): boolean =>
  condition === '*' || condition.some((tag) => !tag.weak && tag.opaque === opaque)

/** The weak comparison of `If-None-Match`. */
export const fitsWeakly = (condition: TagCondition, opaque: string): boolean =>
  condition === '*' || condition.some((tag) => tag.opaque === opaque)

/** A document that is made once for a configuration, and answered as it is from then on. */
export interface ReadyDocument {
  readonly body: Buffer
  /** Headers of a 200, with `ETag`. */
  readonly headers: Readonly<Record<string, string>>
  /** Headers of a 304 (RFC 9110 §15.4.5): those of `headers` that say how long it may be kept, and which version it is. */
  readonly unchangedHeaders: Readonly<Record<string, string>>
  /** The entity tag, with its quotes. */
  readonly tag: string
}

interface ReadyAnswer {
  readonly status: 200 | 304
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
}

const KEPT_IN_304: ReadonlySet<string> = new Set(['ETag', 'Cache-Control', 'Vary'])

/** @param headers without `ETag`, which is made from the bytes: the same bytes have the same tag in every process */
export function readyDocument(body: Buffer, headers: Readonly<Record<string, string>>): ReadyDocument {
  const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  const all = { ...headers, ETag: tag }
  const kept = Object.entries(all).filter(([name]) => KEPT_IN_304.has(name))
  return { body, headers: all, unchangedHeaders: Object.fromEntries(kept), tag }
}

/** 304 if the client has this version (RFC 9110 §13.1.2), otherwise the document. For GET and HEAD. */
export const answerReady = (document: ReadyDocument, { headers }: Pick<Head, 'headers'>): ReadyAnswer =>
  isKnown(headers['if-none-match'], document.tag)
    ? { status: 304, headers: document.unchangedHeaders, body: undefined }
    : { status: 200, headers: document.headers, body: document.body }

/** A header that cannot be read states no condition: the document is answered. */
function isKnown(ifNoneMatch: string | undefined, tag: string): boolean {
  const condition = ifNoneMatch === undefined ? undefined : readTagCondition(ifNoneMatch)
  return condition !== undefined && fitsWeakly(condition, tag.slice(1, -1))
}
