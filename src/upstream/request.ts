import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { cannotBeSent, checkedValue, isToken, type HeaderText } from '../http/header-text.ts'

export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  readonly headers: HeaderText
  /** What Host says in place of the target's own. */
  readonly host: string | undefined
  readonly body: Buffer | Readable | undefined
  /** In bytes, of a stream that has one. */
  readonly length: number | undefined
  /** See UpstreamReader. */
  readonly eager: boolean
  /** Over a connection that was not used before, for the attempt after one that failed. */
  readonly fresh: boolean
}

export function framingOf({ body, length }: UpstreamRequest): RequestFraming {
  if (body === undefined) return undefined
  return Buffer.isBuffer(body) ? body.length : (length ?? 'chunked')
}

/** Bytes of a body that go into one write with the head: two buffers at once cost twice as much. */
const JOINED = 15 * 1024

/** Writes a head and its whole body. */
export function writeTogether(socket: Socket, head: string, body: Buffer): void {
  if (body.length <= JOINED) {
    socket.write(head + body.toString('latin1'), 'latin1')
    return
  }
  socket.cork()
  socket.write(head, 'latin1')
  socket.write(body)
  socket.uncork()
}

/** How the body of a request ends. Absent: there is none. */
export type RequestFraming = number | 'chunked' | undefined

const TARGET = /^\/[\x21-\x7e]*$/
/** Methods of which a request without a body says so (RFC 9110 §8.6). */
const EXPECTING: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

export interface RequestHead {
  readonly method: string
  /** Origin-form: what was judged (T1.6). */
  readonly path: string
  readonly headers: HeaderText
}

/**
 * The head of a request as bytes, in latin-1 (RFC 9112 §3). The last look at what goes upstream: nothing that could end a
 * line, or a head, early. Throws Fault `internal`.
 * @param keep whether the connection shall be kept
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
  return EXPECTING.has(method) ? `${text}content-length: 0\r\n\r\n` : `${text}\r\n`
}
