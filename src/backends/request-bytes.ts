import { Fault } from '../kernel/faults.ts'
import type { HeaderLines } from './request-headers.ts'

/** How the body of a request ends. Absent: there is none. */
export type RequestFraming = number | 'chunked' | undefined

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TARGET = /^\/[\x21-\x7e]*$/
/** Methods of which a request without a body says so (RFC 9110 §8.6). */
const EXPECTING: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

/** Made here, of what is sent, and nowhere else. */
const FRAMING: ReadonlySet<string> = new Set(['host', 'connection', 'content-length', 'transfer-encoding'])

export interface RequestHead {
  readonly method: string
  /** Origin-form: what was judged (T1.6). */
  readonly path: string
  /** Its `host`, which comes first if there is one, stands for that of the target. */
  readonly lines: HeaderLines
}

/** Names that were found to be good: the same few in call after call, and no more than this many, nor longer ones. */
const known = new Set<string>()
const MOST_KNOWN = 1000
const LONGEST_KNOWN = 64

function isName(name: string): boolean {
  if (known.has(name)) return true
  if (!TOKEN.test(name) || FRAMING.has(name)) return false
  if (known.size < MOST_KNOWN && name.length <= LONGEST_KNOWN) known.add(name)
  return true
}

const bad = (what: string): Fault => new Fault('internal', { detail: `${what} that cannot be sent` })

/**
 * The head of a request as bytes, in latin-1 (RFC 9112 §3). The last look at what goes upstream: nothing that could end a
 * line, or a head, early. Throws Fault `internal`.
 * @param host what Host says unless the lines begin with one
 * @param keep whether the connection shall be kept
 */
export function requestBytes(
  { method, path, lines }: RequestHead,
  framing: RequestFraming,
  host: string,
  keep: boolean,
): string {
  if (!METHOD.test(method)) throw bad('a method')
  if (!TARGET.test(path)) throw bad('a target')
  const hasHost = lines[0] === 'host'
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${checked((hasHost ? lines[1] : undefined) ?? host)}\r\n`
  text += keep ? 'connection: keep-alive\r\n' : 'connection: close\r\n'
  for (let at = hasHost ? 2 : 0; at < lines.length; at += 2) {
    const name = lines[at] ?? ''
    if (!isName(name)) throw bad('a header name')
    text += `${name}: ${checked(lines[at + 1] ?? '')}\r\n`
  }
  if (framing === 'chunked') return `${text}transfer-encoding: chunked\r\n\r\n`
  if (framing !== undefined) return `${text}content-length: ${framing}\r\n\r\n`
  return EXPECTING.has(method) ? `${text}content-length: 0\r\n\r\n` : `${text}\r\n`
}

function checked(value: string): string {
  if (!VALUE.test(value)) throw bad('a header value')
  return value
}
