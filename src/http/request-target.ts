import { LRUCache } from 'lru-cache'
import { Fault } from '../kernel/faults.ts'
import { isKnownAuthority } from './authorities.ts'
import type { Authorities } from './authorities.ts'
import { CANONICAL_PATH, canonicalSegment, refuseTarget } from './path-segment.ts'

/** Characters; RFC 9112 §3 recommends at least 8000 octets. */
export const DEFAULT_TARGET_LIMIT = 8192

class JudgedTarget {
  /** Keeps the type nominal: neither an object literal nor `{ ...target, path }` is a request target. */
  declare protected readonly judged: true
  /** Canonical, with its leading `/`. */
  readonly path: string
  /** The canonical path's segments, still escaped, without the empty one before the leading `/`. `/` has none. */
  readonly segments: readonly string[]
  /** Empty, or `?` and what follows it, byte for byte as sent. Never part of a decision. */
  readonly query: string

  constructor(path: string, segments: readonly string[], query: string) {
    this.path = path
    this.segments = Object.freeze(segments)
    this.query = query
    Object.freeze(this)
  }
}

/** A target that was parsed and judged. Only parseRequestTarget makes one; only one of these is matched or forwarded. */
export type RequestTarget = JudgedTarget

/**
 * The one parser of request targets (C3.4, C3.6): gateway, identity and upgrades all go through it.
 *
 * The path's rules don't hold in the query, which is forwarded as it is: `\`, `;`, `%00` or a bad escape pass there.
 * Refused in it is only what can't stand in a request line (controls, space, bytes outside ASCII) and `#`, after
 * which some parsers stop reading.
 *
 * @param raw the target exactly as in the request line
 * @param limit characters
 * @throws Fault target_too_long, bad_target (`say` names the rule), bad_authority; outside for `*`
 */
export function parseRequestTarget(
  raw: string,
  authorities: Authorities,
  limit = DEFAULT_TARGET_LIMIT,
): RequestTarget {
  if (raw.length > limit) throw new Fault('target_too_long')
  const local = raw.startsWith('/') ? raw : originForm(raw, authorities)
  const mark = local.indexOf('?')
  const path = mark === -1 ? local : local.slice(0, mark)
  const query = mark === -1 ? '' : judgedQuery(local.slice(mark))
  const known = canonicalAsSent(path)
  if (known !== undefined) return query === '' ? known : new JudgedTarget(known.path, known.segments, query)
  const segments = canonicalSegments(path, authorities)
  return new JudgedTarget(`/${segments.join('/')}`, segments, query)
}

// Most calls ask for what another one asked for. A flood of distinct paths costs their parsing and no more memory than
// that of so many targets, which their paths may be cut from.
const KNOWN_PATH_LENGTH = 256
const knownPaths = new LRUCache<string, JudgedTarget>({ max: 500 })

/** The target, without a query, of a path that is canonical as it was sent: the same for all who send it. */
function canonicalAsSent(path: string): JudgedTarget | undefined {
  const known = knownPaths.get(path)
  if (known !== undefined || !CANONICAL_PATH.test(path)) return known
  const target = new JudgedTarget(path, path.slice(1).split('/'), '')
  if (path.length <= KNOWN_PATH_LENGTH) knownPaths.set(path, target)
  return target
}

/** The rest of an absolute-form target (RFC 9112 §3.2.2), whose authority must be ours. */
function originForm(raw: string, authorities: Authorities): string {
  if (raw === '*') throw new Fault('outside')
  const [prefix, scheme = '', authority = ''] = /^(https?:)\/\/([^/?#\\]*)/i.exec(raw) ?? []
  if (prefix === undefined) refuseTarget('form')
  if (!isKnownAuthority(authorities, scheme.toLowerCase(), authority)) throw new Fault('bad_authority')
  const rest = raw.slice(prefix.length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

const QUERY_REFUSED = /[^!"$-~]/

function judgedQuery(query: string): string {
  const [offender] = QUERY_REFUSED.exec(query) ?? []
  if (offender === undefined) return query
  return refuseTarget(offender === '#' ? 'fragment' : offender > '\x7f' ? 'foreign' : 'control')
}

/** The careful way, for a path that is not canonical as sent: made so, or refused. */
function canonicalSegments(path: string, authorities: Authorities): readonly string[] {
  if (path === '/') return []
  const sent = path.slice(1).split('/')
  const slashed = sent.length > 1 && sent.at(-1) === ''
  const segments = (slashed ? sent.slice(0, -1) : sent).map(canonicalSegment)
  if (slashed && !mayEndInSlash(`/${segments.join('/')}`, authorities)) refuseTarget('empty')
  return segments
}

const mayEndInSlash = (path: string, authorities: Authorities): boolean =>
  authorities.slashAllowedBelow.some((prefix) => path.startsWith(prefix))

/** The text that a canonical segment stands for: for path parameters and codes. Never holds `/`, `\`, `;` or controls. */
export const decodeSegment = (segment: string): string =>
  segment.includes('%') ? decodeURIComponent(segment) : segment
