import type { Readable } from 'node:stream'
import { cannotBeSent, checkedValue, isToken, type HeaderText } from '../http/header-text.ts'

export interface UpstreamRequest extends RequestHead {
  /** The Host header, in place of the target's own. */
  readonly host: string | undefined
  readonly body: Buffer | Readable | undefined
  /** Bytes of a streamed body, if they are known. */
  readonly length: number | undefined
  /** Whether a short answer is handed over whole: see UpstreamReader. */
  readonly eager: boolean
  /** Whether to use a connection that served no call before, as a further attempt at a call does. */
  readonly fresh: boolean
}

export interface RequestHead {
  readonly method: string
  /** Origin-form: the target that was authorized (T1.6). */
  readonly path: string
  readonly headers: HeaderText
}

/** How the body of a request ends: after so many bytes, or with the last chunk. Undefined: it has none. */
export type RequestFraming = number | 'chunked' | undefined

export function requestFraming({ body, length }: UpstreamRequest): RequestFraming {
  if (body === undefined) return undefined
  return Buffer.isBuffer(body) ? body.length : (length ?? 'chunked')
}

const TARGET = /^\/[\x21-\x7e]*$/
/** Methods whose requests say so where they have no body (RFC 9110 §8.6). */
const EXPECTS_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

/**
 * The head of a request, to be sent in latin-1 (RFC 9112 §3). Checks for the last time that nothing ends a line or the
 * head early.
 * @param keep whether the connection is to be kept
 * @throws Fault `internal`
 */
export function requestBytes(
  { method, path, headers }: RequestHead,
  framing: RequestFraming,
  host: string,
  keep: boolean,
): string {
  if (method !== 'GET' && !isToken(method)) throw cannotBeSent('a method')
  if (!TARGET.test(path)) throw cannotBeSent('a target')
  const connection = keep ? 'keep-alive' : 'close'
  const text = `${method} ${path} HTTP/1.1\r\nhost: ${checkedValue(host)}\r\nconnection: ${connection}\r\n${headers}`
  if (framing === 'chunked') return `${text}transfer-encoding: chunked\r\n\r\n`
  if (framing !== undefined) return `${text}content-length: ${framing}\r\n\r\n`
  return EXPECTS_BODY.has(method) ? `${text}content-length: 0\r\n\r\n` : `${text}\r\n`
}
