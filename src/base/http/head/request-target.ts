import { LRUCache } from 'lru-cache'
import { quoteClean } from '../../kernel/clean-text.ts'
import { Fault, toFault } from '../../kernel/faults.ts'
import { checkHead, type Head } from './head.ts'

/** The authorities under which this service is known: those of `auth_url` and `base_url`, and nothing else. */
export interface Authorities {
  /** `host` or `host:port`, lower case, without a scheme's default port. */
  readonly known: ReadonlySet<string>
  /** Canonical path prefixes below which one trailing slash is allowed (C3.4): `/connect/`, after the URL's own path. */
  readonly slashAllowedBelow: readonly string[]
}

/** No name of a service: a path is all that may be given. */
export const NO_AUTHORITIES: Authorities = { known: new Set(), slashAllowedBelow: [] }

/** Compiles absolute http or https URLs once, at load. Throws TypeError if one is no URL. */
export function compileAuthorities(urls: readonly string[]): Authorities {
  const parsed = urls.map((url) => new URL(url))
  return Object.freeze({
    known: new Set(parsed.map((url) => canonicalAuthority(url.protocol, url.host))),
    slashAllowedBelow: [...new Set(parsed.map((url) => `${url.pathname.replace(/\/$/, '')}/connect/`))],
  })
}

const DEFAULT_PORT: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

/**
 * One spelling per authority. Decisions (RFC 9110 §4.2.3, RFC 3986 §6.2):
 * - the host is compared without regard to case, and one trailing dot is dropped: DNS knows no difference;
 * - an empty port and the port that is the default of the target's own scheme count as none;
 * - the scheme itself is not compared, because TLS may end in front of us and C3.6 speaks of the authority only;
 * - nothing else is folded: user information, escapes, leading zeros and other spellings of an IP address
 *   stay as they are and so match nothing; nor does what holds a second port.
 */
function canonicalAuthority(scheme: string, authority: string): string {
  const [, host = '', port = ''] = /^(\[[^\]]*\]|[^:]*)(?::([0-9]*))?$/.exec(authority.toLowerCase()) ?? []
  const name = host.endsWith('.') ? host.slice(0, -1) : host
  return port === '' || port === DEFAULT_PORT[scheme] ? name : `${name}:${port}`
}

/** Whether an absolute-form target's scheme (`http:`, lower case) and authority are those of this service (C3.6). */
const isOwnAuthority = (authorities: Authorities, scheme: string, authority: string): boolean =>
  authorities.known.has(canonicalAuthority(scheme, authority))

/**
 * Why a target is refused (C3.4), as the client reads it. Fixed text: nothing of the target is ever repeated. Neither
 * quotes nor backslashes, which an error_description may not hold (RFC 6749 §5.2).
 */
export const TARGET_RULES = {
  form: 'It must begin with a slash, or be an absolute http or https URL.',
  empty: 'The path holds an empty segment or ends in a slash.',
  dots: 'The path holds a segment of one or two dots.',
  separator: 'The path holds an encoded slash or backslash.',
  backslash: 'The path holds a backslash.',
  semicolon: 'The path holds a semicolon, plain or encoded.',
  fragment: 'It holds a number sign (#).',
  control: 'It holds a plain space, or a control character, plain or encoded.',
  foreign: 'It holds a character outside ASCII that is not escaped.',
  escape: 'The path holds a percent sign that two hexadecimal digits do not follow.',
  nested: 'The path is escaped twice.',
  utf8: 'The path holds escapes that are not UTF-8.',
} as const

/** @throws Fault bad_target, saying which rule */
function refuseTarget(rule: keyof typeof TARGET_RULES): never {
  throw new Fault('bad_target', { say: TARGET_RULES[rule] })
}

/**
 * What may stand in a segment as it is: RFC 3986 pchar without ";" and "%", and the ten characters (`"<>[]^{|}` and the
 * grave accent) that no grammar allows there and parsers pass. They have no second meaning in a path, so they
 * are not refused, and not escaped either: they arrive upstream as they were sent.
 */
const SEGMENT_CHARACTER = '[!"$&-.0-:<->@-\\[\\]-~]'

/** A whole path that is canonical already: most are, and then this one expression is all that is spent on it. */
export const CANONICAL_PATH = new RegExp(`^(?:/(?!\\.{1,2}(?:/|$))${SEGMENT_CHARACTER}+)+$`)

const NO_SEGMENT_CHARACTER = new RegExp(`(?!%|${SEGMENT_CHARACTER})[^]`)
const UNRESERVED = /[A-Za-z0-9\-._~]/

type Rule = keyof typeof TARGET_RULES

/** The rule that a character breaks which may not be in a segment. */
function ruleOf(code: number): Rule {
  if (code <= 0x20 || code === 0x7f) return 'control'
  if (code >= 0x80) return 'foreign'
  return code === 0x5c ? 'backslash' : code === 0x3b ? 'semicolon' : 'fragment'
}

const ENCODED_REFUSALS: Readonly<Record<number, Rule>> = {
  0x2f: 'separator',
  0x5c: 'separator',
  0x3b: 'semicolon',
}

/** The result of each escaped byte: itself where unreserved (RFC 3986 §6.2.2.2), otherwise its escape in upper case. */
const ESCAPES: readonly { readonly text: string; readonly refused: Rule | undefined }[] = Array.from(
  { length: 256 },
  (_, byte) => {
    const character = String.fromCharCode(byte)
    const hex = byte.toString(16).toUpperCase().padStart(2, '0')
    return {
      text: UNRESERVED.test(character) ? character : `%${hex}`,
      refused: byte < 0x20 || byte === 0x7f ? 'control' : ENCODED_REFUSALS[byte],
    }
  },
)

/** In canonical form: an escape that would appear if somebody unescaped once more, IIS's `%u` spelling included. */
const NESTED_ESCAPE = /%25(?:[0-9A-Fa-f]{2}|[Uu][0-9A-Fa-f]{4})/
/** The control characters U+0080 to U+009F in UTF-8: C2 is only ever a leading byte. */
const ESCAPED_C1 = /%C2%[89]/

/** The canonical form of one segment as sent. Throws Fault `bad_target` by the rules of C3.4. */
export function canonicalSegment(sent: string): string {
  if (sent === '') refuseTarget('empty')
  const odd = NO_SEGMENT_CHARACTER.exec(sent)
  if (odd !== null) refuseTarget(ruleOf(sent.charCodeAt(odd.index)))
  const segment = sent.includes('%') ? canonicalEscapes(sent) : sent
  if (segment === '.' || segment === '..') refuseTarget('dots')
  return segment
}

function canonicalEscapes(sent: string): string {
  // Checks look at the result: `%25%32%65` is `%252e` only once the unreserved `2` and `e` are decoded.
  const segment = sent.replace(/%([0-9A-Fa-f]{2})?/g, (_, hex: string | undefined) => canonicalEscape(hex))
  if (NESTED_ESCAPE.test(segment)) refuseTarget('nested')
  if (ESCAPED_C1.test(segment)) refuseTarget('control')
  if (!isUtf8(segment)) refuseTarget('utf8')
  return segment
}

/** Whether the escapes of a segment are UTF-8. */
function isUtf8(segment: string): boolean {
  try {
    return decodeURIComponent(segment) !== ''
  } catch {
    return false
  }
}

function canonicalEscape(hex: string | undefined): string {
  const escape = hex === undefined ? undefined : ESCAPES[Number.parseInt(hex, 16)]
  if (escape === undefined) refuseTarget('escape')
  if (escape.refused !== undefined) refuseTarget(escape.refused)
  return escape.text
}

/** The longest request target, in characters; RFC 9112 §3 recommends at least 8000 octets. */
export const DEFAULT_TARGET_LIMIT = 8192

class CheckedTarget {
  /** Keeps the type nominal: neither an object literal nor `{ ...target, path }` is a request target. */
  declare protected readonly checked: true
  /** Canonical, with its leading `/`. */
  readonly path: string
  /** The canonical path's segments, still escaped, without the empty one before the leading `/`. `/` has none. */
  readonly segments: readonly string[]
  /** Empty, or `?` and what follows it, byte for byte as sent. Never part of a decision. */
  readonly query: string
  /** Whether the path was sent with the slash at its end that `path` leaves out. Only what was signed by the caller has it. */
  readonly slashed: boolean
  #quotedPath: string | undefined

  constructor(path: string, segments: readonly string[], query: string, slashed = false) {
    this.path = path
    this.segments = Object.freeze(segments)
    this.query = query
    this.slashed = slashed
    Object.freeze(this)
  }

  /** The path as `quoteClean` writes it for the log. Kept, because most calls share their target. */
  get quotedPath(): string {
    return (this.#quotedPath ??= quoteClean(this.path))
  }
}

/** A target that was parsed and checked. Only parseRequestTarget makes one; only one of these is matched or forwarded. */
export type RequestTarget = CheckedTarget

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
  const query = mark === -1 ? '' : checkedQuery(local.slice(mark))
  const known = canonicalAsSent(path)
  if (known !== undefined) return query === '' ? known : new CheckedTarget(known.path, known.segments, query)
  const segments = canonicalSegments(path, authorities)
  return new CheckedTarget(`/${segments.join('/')}`, segments, query, path.length > 1 && path.endsWith('/'))
}

// Most calls ask for what another one asked for. A flood of distinct paths costs their parsing and no more memory than
// that of so many targets, which their paths may be cut from.
const KNOWN_PATH_LENGTH = 256
const knownPaths = new LRUCache<string, CheckedTarget>({ max: 500 })

/** The target, without a query, of a path that is canonical as it was sent: the same for all who send it. */
function canonicalAsSent(path: string): CheckedTarget | undefined {
  const known = knownPaths.get(path)
  if (known !== undefined || !CANONICAL_PATH.test(path)) return known
  const target = new CheckedTarget(path, path.slice(1).split('/'), '')
  if (path.length <= KNOWN_PATH_LENGTH) knownPaths.set(path, target)
  return target
}

/** The rest of an absolute-form target (RFC 9112 §3.2.2), whose authority must be ours. */
function originForm(raw: string, authorities: Authorities): string {
  if (raw === '*') throw new Fault('outside')
  const [prefix, scheme = '', authority = ''] = /^(https?:)\/\/([^/?#\\]*)/i.exec(raw) ?? []
  if (prefix === undefined) refuseTarget('form')
  if (!isOwnAuthority(authorities, scheme.toLowerCase(), authority)) throw new Fault('bad_authority')
  const rest = raw.slice(prefix.length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

const QUERY_REFUSED = /[^!"$-~]/

function checkedQuery(query: string): string {
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

/** The text that a canonical segment means: for path parameters and codes. Never holds `/`, `\`, `;` or controls. */
export const decodeSegment = (segment: string): string =>
  segment.includes('%') ? decodeURIComponent(segment) : segment

/** The limits of characters of the target, of bytes of the header lines, and of header lines. */
interface HeadLimits {
  readonly target: number
  readonly headers: number
  readonly headerCount: number
}

export interface HeadRules {
  readonly authorities: Authorities
  readonly limits: HeadLimits
}

/** The target, or the fault of the first check that fails: limits, head, then target (C4.1). */
export function readRequestTarget(head: Head, { authorities, limits }: HeadRules): RequestTarget | Fault {
  try {
    if (head.rawTarget.length > limits.target) throw new Fault('target_too_long')
    checkHeaderSize(head.rawHeaders, limits)
    checkHead(head)
    return parseRequestTarget(head.rawTarget, authorities, limits.target)
  } catch (thrown) {
    return toFault(thrown)
  }
}

function checkHeaderSize(rawHeaders: readonly string[], limits: HeadLimits): void {
  let size = 0
  for (const part of rawHeaders) size += part.length + 2 // `: ` and the line's end
  if (size > limits.headers || rawHeaders.length > limits.headerCount * 2)
    throw new Fault('headers_too_large')
}
