import { toFault } from '../kernel/faults.ts'
import type { Authorities } from './authorities.ts'
import { parseRequestTarget } from './request-target.ts'

/** A URL, as far as a request to it tells it. */
export interface HttpUrl {
  /** Scheme, host and port as `URL.origin` writes them. */
  readonly origin: string
  /** With its leading slash. */
  readonly path: string
  /** Empty, or `?` and what follows it. */
  readonly query: string
}

/** RFC 3986 appendix B. */
const REFERENCE = /^(?:([^:/?#]+):)?(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?(?:#.*)?$/s
/** A host name, an address, a port: no user information, which is another's (RFC 9110 §4.2.4), and no escapes. */
const AUTHORITY = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$/
const SCHEMES: ReadonlySet<string> = new Set(['http', 'https'])

/**
 * The URL that a reference in an upstream's answer stands for (RFC 3986 §5.2), without its fragment. Its path is judged as
 * that of any request (C3.4), but may end in a slash. So dot segments are resolved in relative references alone, and only
 * as they are written: nobody who means well sends others.
 * @param base the URL that was answered
 * @returns a text that says why, if it is none
 */
export function resolveReference(reference: string, base: HttpUrl): HttpUrl | string {
  const [matched, scheme, authority, path = '', query] = REFERENCE.exec(reference) ?? []
  if (matched === undefined) return 'it is no URL'
  const origin = originOf(scheme, authority, base.origin)
  if (origin === undefined) return 'it is no http or https URL'
  if (authority !== undefined) return judged(origin, path === '' ? '/' : path, query)
  if (path === '') return { origin, path: base.path, query: query ?? base.query }
  return judged(origin, path.startsWith('/') ? path : merged(path, base.path), query)
}

function originOf(
  scheme: string | undefined,
  authority: string | undefined,
  base: string,
): string | undefined {
  if (scheme !== undefined && (!SCHEMES.has(scheme.toLowerCase()) || authority === undefined))
    return undefined
  if (authority === undefined) return base
  if (!AUTHORITY.test(authority)) return undefined
  return URL.parse(`${scheme ?? base.slice(0, base.indexOf(':'))}://${authority}`)?.origin
}

/** RFC 3986 §5.2.3 and §5.2.4. What climbs above the root keeps its dots, and is then refused. */
function merged(path: string, base: string): string {
  const segments = base.split('/').slice(1, -1)
  const given = path.split('/')
  for (const [index, segment] of given.entries()) {
    const isLast = index === given.length - 1
    if (segment === '..' && segments.length > 0) segments.pop()
    else if (segment !== '.') segments.push(segment)
    if (isLast && (segment === '.' || segment === '..') && segments.at(-1) !== '..') segments.push('')
  }
  return `/${segments.join('/')}`
}

const NO_AUTHORITIES: Authorities = { known: new Set(), slashAllowedBelow: [] }

function judged(origin: string, path: string, query = ''): HttpUrl | string {
  const slashed = path.length > 1 && path.endsWith('/')
  try {
    const target = parseRequestTarget(`${slashed ? path.slice(0, -1) : path}${query}`, NO_AUTHORITIES)
    return { origin, path: slashed ? `${target.path}/` : target.path, query: target.query }
  } catch (thrown) {
    const { facts, code } = toFault(thrown)
    return facts.say ?? code
  }
}

/** Whether a path is below another one, which is empty or has no slash at its end. */
export const isBelow = (path: string, base: string): boolean => path === base || path.startsWith(`${base}/`)

const LONGEST_TOLD = 200

const withoutUser = (text: string): string => text.slice(text.lastIndexOf('@') + 1)

/**
 * A reference for the log: without user information, query and fragment, which may hold secrets, and without characters
 * that a reader of the log would take for something else.
 */
export function referenceForLog(reference: string): string {
  const [, scheme, authority, path = ''] = REFERENCE.exec(reference.slice(0, 10 * LONGEST_TOLD)) ?? []
  const place = authority === undefined ? '' : `//${withoutUser(authority)}`
  // Without "//" user information may stand in what is the scheme and the first segment, by the letter of the syntax.
  const [first = ''] = path.split('/', 1)
  const text = first.includes('@')
    ? withoutUser(path)
    : `${scheme === undefined ? '' : `${scheme}:`}${place}${path}`
  return text.slice(0, LONGEST_TOLD).replaceAll(/[^!-~]/g, (character) => encodeURI(character.toWellFormed()))
}
