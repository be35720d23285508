/**
 * Entity tags of representations (C8.6). An upstream's tag is of its own bytes; Postern makes several representations of
 * them. Each gets the upstream's tag with a mark behind it, so that no two have the same tag (RFC 9110 §8.8.1), and
 * conditions go to the upstream with its own tag again.
 */
import { createHash } from 'node:crypto'
import { readTag, readTagCondition, tagText, withOpaque } from '../http/entity-tag.ts'
import type { Operation } from './action-table.ts'
import type { Decision } from './pipeline.ts'

type Represented = Pick<Decision, 'negotiated' | 'operation'>

/** What ends an opaque part that is marked. */
const MARK = /-(?:json|xml|own)\.[\w-]{8}$/

/** Of bytes that pass as they came without an envelope. Only a tag that ends like a mark gets it. */
const OWN = '-own.upstream'

/** To be raised when the same answer of an upstream becomes other bytes than before, by another version of Postern. */
const EDITION = 1

const marks = new WeakMap<Operation, Map<string, string>>()

/** The mark of a representation: a digest of all that decides which bytes are made of an upstream's. */
function markOf({ negotiated, operation }: Represented): string {
  if (negotiated.kind === 'own') return OWN
  const { contentType, version, format } = negotiated
  const own = marks.get(operation) ?? new Map<string, string>()
  marks.set(operation, own)
  const key = `${version} ${contentType}`
  const known = own.get(key)
  if (known !== undefined) return known
  const { backend, items } = operation
  const facts = [EDITION, key, backend.format, backend.payload, backend.data, backend.xml, items]
  const digest = createHash('sha256').update(JSON.stringify(facts, withMaps)).digest('base64url')
  const mark = `-${format}.${digest.slice(0, 8)}`
  own.set(key, mark)
  return mark
}

const withMaps = (_name: string, value: unknown): unknown => (value instanceof Map ? [...value] : value)

/**
 * An upstream's `ETag` as the client gets it. What is no entity tag stays as it came.
 * @param isExact whether the same bytes of the upstream always become the same bytes: else the tag is weak
 */
export function tagOf(etag: string, decision: Represented, isExact: boolean): string {
  const tag = readTag(etag)
  if (tag === undefined) return etag
  const { opaque } = tag
  const mark = markOf(decision)
  return tagText({
    weak: tag.weak || !isExact,
    opaque: mark === OWN && !MARK.test(opaque) ? opaque : opaque + mark,
  })
}

/**
 * The `ETag` of a 304. To a client whose tag has no mark, which it got before there were marks, that tag is confirmed: of
 * another one it would have no answer to go on with (RFC 9111 §4.3.4).
 * @param asked the client's If-None-Match, if any
 */
export function confirmedTag(etag: string, decision: Represented, asked: string | undefined): string {
  const marked = tagOf(etag, decision, true)
  const [given, shown] = [readTag(etag)?.opaque, readTag(marked)?.opaque]
  const condition = (asked !== undefined && readTagCondition(asked)) || '*'
  if (condition === '*' || condition.some(({ opaque }) => opaque === shown)) return marked
  const old = condition.find(({ opaque }) => opaque === given)
  return old === undefined ? marked : tagText(old)
}

const CONDITIONS = ['if-match', 'if-none-match', 'if-range'] as const

/**
 * Takes the marks out of a call's conditions. Of a GET or HEAD only that of the representation which is asked for: a
 * client that has another one must not be told that it has this one. A change is of the data, whatever its representation.
 * The other tags stay marked, and so fit nothing of the upstream's.
 */
export function unmarkConditions(
  headers: Record<string, string>,
  decision: Represented,
  method: string,
): void {
  for (const name of CONDITIONS) {
    const value = headers[name]
    if (value === undefined) continue
    const only = method === 'GET' || method === 'HEAD' ? markOf(decision) : undefined
    headers[name] = withOpaque(value, (opaque) => {
      const mark = MARK.exec(opaque)
      return mark === null || (only !== undefined && mark[0] !== only) ? opaque : opaque.slice(0, mark.index)
    })
  }
}
