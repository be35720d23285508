import type { IncomingHttpHeaders } from 'node:http'
import { isIPv6 } from 'node:net'
import { Fault, type FaultCode } from '../../kernel/faults.ts'

/** Whether an answer of this status has no content (RFC 9110 §6.4.1, §15.3.6); 205 has a length of 0. */
export const hasNoContent = (status: number): boolean => status === 204 || status === 205 || status === 304

/** One request without its body, as it came off the wire. Made once, by `gateway/server/`; read by everyone. */
export interface Head {
  readonly method: string
  /** The request target exactly as sent: nothing may use it but `parseRequestTarget`. */
  readonly rawTarget: string
  /** "1.0" or "1.1". */
  readonly httpVersion: string
  /** Name, value, name, value … in order and case as received (node's rawHeaders). */
  readonly rawHeaders: readonly string[]
  /** By lower-case name; node joins what may repeat with ", ". */
  readonly headers: IncomingHttpHeaders
  /** The peer's address as the socket gives it. */
  readonly remoteAddress: string
}

/** The body that the framing headers declare: its length in bytes, or that it comes in chunks. 0 is no body (C7.4). */
export type BodyDeclaration = number | 'chunked'

/**
 * Methods of searches and collections (RFC 3253, 4791, 4918, 5323, and QUERY): actions and services may have these too
 * (C3.3).
 */
export const FURTHER_METHODS = [
  'PROPFIND',
  'PROPPATCH',
  'REPORT',
  'SEARCH',
  'QUERY',
  'MKCOL',
  'MKCALENDAR',
] as const

/** The methods that this service knows at all: the Allow of an answer to TRACE (RFC 9110 §15.5.6). */
export const SUPPORTED_METHODS = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
  ...FURTHER_METHODS,
] as const

const VERSIONS: ReadonlySet<string> = new Set(['1.0', '1.1'])

/** Headers that decide about a head. `_` counts as `-`: what CGI made equal may be equal behind us (T2.3). */
interface Lines {
  host: string | undefined
  contentLength: string | undefined
  transferEncoding: string | undefined
  contentType: string | undefined
  authorization: string | undefined
}

interface LineRule {
  readonly name: string
  readonly key: keyof Lines
  /** The fault of a second line. */
  readonly repeated: FaultCode
}

const HOST: LineRule = { name: 'host', key: 'host', repeated: 'bad_host' }
const TYPE: LineRule = { name: 'content-type', key: 'contentType', repeated: 'repeated_header' }
const AUTHORIZATION: LineRule = { name: 'authorization', key: 'authorization', repeated: 'repeated_header' }
const LENGTH: LineRule = { name: 'content-length', key: 'contentLength', repeated: 'bad_framing' }
const ENCODING: LineRule = { name: 'transfer-encoding', key: 'transferEncoding', repeated: 'bad_framing' }
const CONNECTION = 'connection'

/** By the length of the name, so that most headers of a request cost one look. All lengths differ. */
const RULES: readonly (LineRule | undefined)[] = Array.from({ length: 18 }, (_, length) =>
  [HOST, TYPE, AUTHORIZATION, LENGTH, ENCODING].find((rule) => rule.name.length === length),
)

/** Names that no `Connection` may make hop-by-hop: the message would change its length or its place (T2.1). */
const FRAMING: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding'])

/**
 * Checks the head of a request but for its target (C3.6, C4.1), in one pass over its header lines.
 *
 * Host is asked of every version, HTTP/1.0 too, and need not be one of ours: nothing is decided by it.
 *
 * @returns what the framing declares of the body
 * @throws Fault unsupported_http_version, connect_refused, trace_refused (with Allow), bad_host, repeated_header,
 *   bad_framing
 */
export function checkHead(head: Head): BodyDeclaration {
  // A request line that says HTTP/2.0 is no HTTP/2, nor is 0.9 with headers.
  if (!VERSIONS.has(head.httpVersion)) throw new Fault('unsupported_http_version')
  if (head.method === 'CONNECT') throw new Fault('connect_refused')
  if (head.method === 'TRACE') throw new Fault('trace_refused', { allow: SUPPORTED_METHODS })
  const lines = readLines(head.rawHeaders)
  if (lines.host === undefined || !isHost(lines.host)) throw new Fault('bad_host')
  return declaration(lines, head.httpVersion)
}

function readLines(rawHeaders: readonly string[]): Lines {
  const lines: Lines = {
    host: undefined,
    contentLength: undefined,
    transferEncoding: undefined,
    contentType: undefined,
    authorization: undefined,
  }
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    const value = rawHeaders[at + 1] ?? ''
    const rule = RULES[name.length]
    if (rule !== undefined) takeLine(lines, rule, name, value)
    else if (name.length === CONNECTION.length && name.toLowerCase() === CONNECTION) checkConnection(value)
  }
  return lines
}

function takeLine(lines: Lines, rule: LineRule, name: string, value: string): void {
  const lower = name.toLowerCase()
  if (lower !== rule.name) {
    // `Transfer_Encoding: chunked` frames nothing here and may frame something behind us.
    if (rule.repeated === 'bad_framing' && folded(lower) === rule.name) throw new Fault('bad_framing')
    return
  }
  if (lines[rule.key] !== undefined) throw new Fault(rule.repeated, { say: `Repeated: ${rule.name}.` })
  lines[rule.key] = value
}

const folded = (lower: string): string => lower.replaceAll('_', '-')

function checkConnection(value: string): void {
  if (value === 'keep-alive' || value === 'close') return
  const named = value.split(',').map((name) => folded(name.trim().toLowerCase()))
  if (named.some((name) => FRAMING.has(name))) {
    throw new Fault('bad_framing', { say: 'Connection may not name Host or a framing header.' })
  }
}

const HOST_SYNTAX = /^(?:\[([0-9A-Fa-f:.]+)\]|[A-Za-z0-9._~-]+)(?::([0-9]{0,5}))?$/
const MAX_PORT = 65_535

/**
 * `host[:port]` (RFC 9110 §7.2). Narrower than RFC 3986's reg-name: no escapes and none of `!$&'()*+,;=`, which no
 * name in DNS has and which would let one value pass for two.
 */
function isHost(value: string): boolean {
  const match = HOST_SYNTAX.exec(value)
  if (match === null || Number(match[2] ?? '') > MAX_PORT) return false
  return match[1] === undefined || isIPv6(match[1])
}

/** Digits that a number holds exactly. */
const LENGTH_SYNTAX = /^[0-9]{1,15}$/

/**
 * The declared body (RFC 9112 §6.3), without the RFC's leniences: lines that two recipients could read differently are
 * refused.
 */
function declaration({ contentLength, transferEncoding }: Lines, httpVersion: string): BodyDeclaration {
  if (transferEncoding !== undefined) {
    // RFC 9112 §6.1: chunks in HTTP/1.0, or together with a length, are framing that somebody got wrong.
    const sound = contentLength === undefined && httpVersion !== '1.0'
    if (!sound || transferEncoding.toLowerCase() !== 'chunked') throw new Fault('bad_framing')
    return 'chunked'
  }
  if (contentLength === undefined) return 0
  if (!LENGTH_SYNTAX.test(contentLength)) throw new Fault('bad_framing')
  return Number(contentLength)
}

/** For a head that has passed checkHead. */
export function declaredBody(head: Head): BodyDeclaration {
  if (head.headers['transfer-encoding'] !== undefined) return 'chunked'
  return Number(head.headers['content-length'] ?? 0)
}

/** Methods that ask for nothing to be changed (RFC 9110 §9.2.1), so that a call may be sent again without harm. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PROPFIND', 'REPORT', 'SEARCH', 'QUERY'])

export const isSafe = (method: string): boolean => SAFE.has(method)

/** Methods whose content has no meaning (RFC 9110 §9.3.1); receivers disagree on where it ends. */
export const isBodiless = (method: string): boolean => method === 'GET' || method === 'HEAD'
