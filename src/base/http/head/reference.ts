import { toFault } from '../../kernel/faults.ts'
import { NO_AUTHORITIES, parseRequestTarget } from './request-target.ts'

/** The parts of a URL that a request to it has. */
export interface HttpUrl {
  /** Scheme, host and port as `URL.origin` writes them. */
  readonly origin: string
  /** With its leading slash. */
  readonly path: string
  /** Empty, or `?` and what follows it. */
  readonly query: string
}

/** The parts of a reference (RFC 3986 appendix B). */
const REFERENCE = /^(?:([^:/?#]+):)?(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?(?:#.*)?$/s
/** A host name, an address, a port: no user information, which is another's (RFC 9110 §4.2.4), and no escapes. */
const AUTHORITY = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$/
const SCHEMES: ReadonlySet<string> = new Set(['http', 'https'])

/**
 * The URL that a reference in an upstream's answer stands for (RFC 3986 §5.2), without its fragment. Its path is
 * checked as that of any request (C3.4), but may end in a slash. So dot segments are resolved in relative references
 * alone, and only where they are not escaped.
 * @param base the URL that was answered
 * @returns a text that says why, if it is none
 */
export function resolveReference(reference: string, base: HttpUrl): HttpUrl | string {
  const [matched, scheme, authority, path = '', query] = REFERENCE.exec(reference) ?? []
  if (matched === undefined) return 'it is no URL'
  const origin = originOf(scheme, authority, base.origin)
  if (origin === undefined) return 'it is no http or https URL'
  if (authority !== undefined) return checked(origin, path === '' ? '/' : path, query)
  if (path === '') return { origin, path: base.path, query: query ?? base.query }
  return checked(origin, path.startsWith('/') ? path : merged(path, base.path), query)
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

/** Resolves a path (RFC 3986 §5.2.3 and §5.2.4). A path that climbs above the root keeps its dots, and is then refused. */
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

function checked(origin: string, path: string, query = ''): HttpUrl | string {
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

const LONGEST_LOGGED = 200

const withoutUser = (text: string): string => text.slice(text.lastIndexOf('@') + 1)

/** A reference for the log, without what may hold secrets (user information, query, fragment) or is not plain text. */
export function referenceForLog(reference: string): string {
  const [, scheme, authority, path = ''] = REFERENCE.exec(reference.slice(0, 10 * LONGEST_LOGGED)) ?? []
  const place = authority === undefined ? '' : `//${withoutUser(authority)}`
  // Without "//" user information may be in the scheme and the first segment, by the letter of the syntax.
  const [first = ''] = path.split('/', 1)
  const text = first.includes('@')
    ? withoutUser(path)
    : `${scheme === undefined ? '' : `${scheme}:`}${place}${path}`
  return text
    .slice(0, LONGEST_LOGGED)
    .replaceAll(/[^!-~]/g, (character) => encodeURI(character.toWellFormed()))
}

/** One value of a Link header (RFC 8288 §3). */
export interface LinkValue {
  /** The text between `<` and `>`. */
  readonly target: string
  readonly parameters: readonly LinkParameter[]
}

export interface LinkParameter {
  readonly name: string
  /** Unquoted; empty if it has none. */
  readonly value: string
}

const WHITE = '[ \\t]*'
const START = new RegExp(`(?:${WHITE},)*${WHITE}<([^<>]*)>`, 'y')
const PARAMETER = new RegExp(
  `${WHITE};${WHITE}(?:([!#$%&'*+\\-.^_\`|~0-9A-Za-z]+)(?:${WHITE}=${WHITE}(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s";,]*)))?)?`,
  'y',
)
const END = new RegExp(`${WHITE}(?:,|$)`, 'y')
const NOTHING_MORE = /[ \t,]*$/y

/** The values of a Link header; undefined for one that cannot be read to its end: nobody knows what its rest means. */
export function parseLink(header: string): readonly LinkValue[] | undefined {
  const links: LinkValue[] = []
  let at = 0
  while (matchAt(NOTHING_MORE, header, at) === undefined) {
    const target = matchAt(START, header, at)
    if (target === undefined) return undefined
    at = START.lastIndex
    const parameters: LinkParameter[] = []
    for (let found = matchAt(PARAMETER, header, at); found; found = matchAt(PARAMETER, header, at)) {
      at = PARAMETER.lastIndex
      const [, name, quoted, token] = found
      if (name !== undefined)
        parameters.push({
          name: name.toLowerCase(),
          value: quoted?.replaceAll(/\\(.)/g, '$1') ?? token ?? '',
        })
    }
    if (matchAt(END, header, at) === undefined) return undefined
    at = END.lastIndex
    links.push({ target: target[1] ?? '', parameters })
  }
  return links
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}

export const writeLink = (links: readonly LinkValue[]): string =>
  links
    .map(({ target, parameters }) => [`<${target}>`, ...parameters.map(parameterText)].join('; '))
    .join(', ')

/** The value of a parameter such as `title*`, which is never quoted (RFC 8187 §3.2.1). */
const EXTENDED_VALUE = /^[!#$%&'+.^_`|~0-9A-Za-z-]+$/

function parameterText({ name, value }: LinkParameter): string {
  if (value === '') return name
  if (name.endsWith('*') && EXTENDED_VALUE.test(value)) return `${name}=${value}`
  return `${name}="${value.replaceAll(/["\\]/g, '\\$&')}"`
}
