import { Buffer } from 'node:buffer'
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { Answer, Exchange } from '../../base/contracts/calls/exchange.ts'
import { type DecisionEvent, type Recorder, WITHOUT_ACTION } from '../../base/contracts/records/recorder.ts'
import type { AcceptLines } from '../../base/http/head/accept.ts'
import type { Head } from '../../base/http/head/head.ts'
import { isHeaderValue, isToken } from '../../base/http/head/header-text.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault, type FaultCode } from '../../base/kernel/faults.ts'
import { newRequestId } from '../../base/kernel/ids.ts'
import { connectionOf, lingerThenClose, type OpenExchange } from './connection.ts'

/** Renders a fault as the envelope does under `/api`, in the format that Accept asks for (C2.3, C2.4). */
export type RenderFault = (fault: Fault, accept: AcceptLines) => Answer

export interface UnreadableParts {
  readonly renderFault: RenderFault
  readonly recorder: Recorder
  readonly clock: Clock
  readonly limits: { readonly target: number }
  readonly scheme: 'http' | 'https'
}

interface ClientError extends Error {
  readonly code?: string | undefined
  /** A Buffer (fastify's type says otherwise): the bytes that were being read, not always from the beginning of the request. */
  readonly rawPacket?: unknown
}

/** Errors of the parser (llhttp) and of node that are a fault of their own; the rest is `unreadable_request`. */
const FAULTS_BY_CODE: ReadonlyMap<string, FaultCode> = new Map([
  ['HPE_INVALID_VERSION', 'unsupported_http_version'],
  ['HPE_INVALID_CONTENT_LENGTH', 'bad_framing'],
  ['HPE_UNEXPECTED_CONTENT_LENGTH', 'bad_framing'],
  ['HPE_INVALID_TRANSFER_ENCODING', 'bad_framing'],
  ['HPE_INVALID_EOF_STATE', 'client_gone'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'request_timeout'],
])

/**
 * Answers what never became a request (C2.3): bytes that cannot be read, heads that are too large or too late. For
 * `clientError` of node, which also reports connections that broke: those are dropped.
 */
export function answerUnreadable(error: ClientError, socket: Socket, parts: UnreadableParts): void {
  const code = error.code ?? ''
  const isParsers = code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT'
  // No answer where nothing ever came, or where the last answer was sent.
  if (!isParsers || socket.bytesRead === 0 || !socket.writable) {
    if (!connectionOf(socket).closing) socket.destroy()
    return
  }
  const packet = Buffer.isBuffer(error.rawPacket) ? error.rawPacket.toString('latin1') : ''
  refuse(socket, faultOf(error, code, packet, parts), packet, parts)
}

function faultOf(error: ClientError, code: string, packet: string, { limits }: UnreadableParts): Fault {
  const facts = { cause: error, detail: `${code} ${error.message}` }
  if (code !== 'HPE_HEADER_OVERFLOW')
    return new Fault(FAULTS_BY_CODE.get(code) ?? 'unreadable_request', facts)
  return new Fault(isInsideTarget(packet, limits.target) ? 'target_too_long' : 'headers_too_large', facts)
}

/**
 * Node bounds the target and the headers together and does not report which went over. What it was reading tells: a
 * first line longer than targets may be, or a packet from the middle of one, without a line end or a space.
 */
const isInsideTarget = (packet: string, limit: number): boolean => {
  const firstLine = packet.slice(0, packet.search(/[\r\n]|$/))
  return /^[A-Z]+ \S+/.test(firstLine) ? firstLine.length > limit : !/[\s:]/.test(packet)
}

/** CONNECT (C3.6): its socket is handed over by node, without a response. */
export function answerConnect(request: IncomingMessage, parts: UnreadableParts): void {
  request.socket.on('error', () => undefined)
  refuse(request.socket, new Fault('connect_refused'), `accept: ${request.headers.accept ?? ''}\r\n`, parts)
}

function refuse(socket: Socket, fault: Fault, packet: string, parts: UnreadableParts): void {
  const connection = connectionOf(socket)
  if (connection.closing) return
  connection.closing = true
  if (connection.current !== undefined) {
    endBehind(connection.current, socket, fault)
    return
  }
  const id = newRequestId()
  const answer = parts.renderFault(fault, acceptIn(packet))
  lingerThenClose(socket, answerBytes(answer, id, new Date(parts.clock.now()), packet.startsWith('HEAD ')))
  record(id, socket, fault, parts)
}

/**
 * Ends a connection with an open request. Unreadable bytes behind it get no answer: it would pass for that request's.
 */
function endBehind({ wire, declared }: OpenExchange, socket: Socket, fault: Fault): void {
  // A client that ends in the middle of a body has left. The reader of the body gets to know it.
  if (fault.code === 'client_gone') {
    socket.destroy()
    return
  }
  // Its own body may be what broke. Its answer says close.
  if (!wire.request.complete) declared?.break(fault)
  wire.response.once('close', () => {
    if (!socket.destroyed && socket.writable) lingerThenClose(socket)
  })
}

/** The Accept lines found in a head that could not be read (C2.4). */
const acceptIn = (packet: string): AcceptLines =>
  [
    ...packet
      .split(/\r?\n\r?\n/, 1)
      .join('')
      .matchAll(/^accept:[ \t]*([^\r\n]*)/gim),
  ].map((match) => match[1] ?? '')

function record(
  id: string,
  socket: Socket,
  fault: Fault,
  { recorder, clock, scheme }: UnreadableParts,
): void {
  recorder.decision(undecided(strayExchange(id, socket, fault, { clock, scheme }), fault, 0))
}

/** An exchange for the record of bytes that never became a request. */
function strayExchange(
  id: string,
  socket: Socket,
  fault: Fault,
  { clock, scheme }: Pick<UnreadableParts, 'clock' | 'scheme'>,
): Exchange {
  const remoteAddress = socket.remoteAddress ?? ''
  const head: Head = {
    method: '',
    rawTarget: '',
    httpVersion: '',
    rawHeaders: [],
    headers: {},
    remoteAddress,
  }
  return {
    id,
    head,
    target: fault,
    body: Readable.from([]),
    clientAddress: remoteAddress,
    scheme,
    startedAt: clock.monotonic(),
    // Never used: it reaches no door, and so no backend.
    carrier: { carry: (forwarding) => forwarding.failed(fault) },
    hold: () => false,
    onGone: () => undefined,
    onEnd: () => undefined,
  }
}

/**
 * An answer as bytes, for a connection on which there was no request that could be read. It is the last one there. Only the
 * part of its body that is in memory is sent.
 * @param head no body is sent, for a request that was probably HEAD
 */
function answerBytes(answer: Answer, id: string, now: Date, head: boolean): Buffer {
  const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0)
  const lines = [
    `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}`,
    `X-Request-Id: ${id}`,
    ...Object.entries(answer.headers).flatMap(([name, value]) => headerLines(name, value)),
    `Date: ${now.toUTCString()}`,
    `Content-Length: ${bytes.length}`,
    'Connection: close',
  ]
  const start = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  return head ? start : Buffer.concat([start, bytes])
}

function headerLines(name: string, value: string | readonly string[]): readonly string[] {
  const values = typeof value === 'string' ? [value] : value
  return values
    .filter((each) => isToken(name) && isHeaderValue(each) && name.toLowerCase() !== 'content-length')
    .map((each) => `${name}: ${each}`)
}

/** The event of a request that reached no door, or whose door failed. */
export const undecided = (exchange: Exchange, fault: Fault, totalMs: number): DecisionEvent => ({
  exchange,
  door: 'none',
  fault,
  status: fault.status,
  ...WITHOUT_ACTION,
  totalMs,
})
