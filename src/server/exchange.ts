import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { TLSSocket } from 'node:tls'
import type { Carrier } from '../contracts/backend.ts'
import type { Answer, Exchange, Upgrade } from '../contracts/exchange.ts'
import { clientOrigin, type TrustedProxies } from '../http/addresses.ts'
import { declaredBody, hasNoContent, type Head } from '../http/head.ts'
import { type HeadRules, readTarget, type RequestTarget } from '../http/request-target.ts'
import { type Clock, timerMs } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { newRequestId } from '../kernel/ids.ts'
import { type Connection, lingerThenClose, type Wire } from './connection.ts'
import { NoBody, RequestBody, type SlowBodies } from './request-body.ts'
import { UpgradeResponse } from './upgrades.ts'

export interface ReadingRules extends HeadRules {
  readonly trustedProxies: TrustedProxies | undefined
  readonly clock: Clock
  readonly watch: SlowBodies
  /** The scheme of the listener. It holds where no trusted proxy says which one the client used. */
  readonly scheme: 'http' | 'https'
}

const CONTINUE = /(?:^|[\s,])100-continue(?:$|[\s,])/i

export class IncomingExchange implements Exchange {
  readonly id = newRequestId()
  readonly head: Head
  readonly target: RequestTarget | Fault
  readonly clientAddress: string
  readonly scheme: 'http' | 'https'
  readonly startedAt: number
  readonly wire: Wire
  readonly connection: Connection
  /** Undefined where the head declares no body. */
  readonly declared: RequestBody | undefined
  #noBody: NoBody | undefined
  refusal: Fault | undefined
  readonly upgrade: Upgrade | undefined
  /** One listener of the response calls them all, because most calls have several. */
  #atEnd: (() => void)[] | undefined

  constructor(wire: Wire, connection: Connection, rules: ReadingRules) {
    this.upgrade = wire.response instanceof UpgradeResponse ? wire.response.upgrade : undefined
    this.startedAt = rules.clock.monotonic()
    this.wire = wire
    this.connection = connection
    this.head = readHead(wire, connection)
    this.target = readTarget(this.head, rules)
    const origin = rules.trustedProxies && clientOrigin(this.head, rules.trustedProxies)
    this.clientAddress = origin?.address ?? connection.peer
    this.scheme = origin?.scheme ?? rules.scheme
    // The head may have failed its checks. Then anything but a plain 0 counts as a body.
    this.declared = declaredBody(this.head) === 0 ? undefined : this.#declare(rules.watch)
  }

  #declare(watch: SlowBodies): RequestBody {
    const { request, response } = this.wire
    // RFC 9110 §10.1.1: an expectation in HTTP/1.0 is ignored. One that is not 100-continue may be answered 417, which
    // the contract has no row for: it is ignored too.
    const expects = request.httpVersion === '1.1' && CONTINUE.test(request.headers.expect ?? '')
    return new RequestBody(request, response, watch, expects)
  }

  get body(): Readable {
    return this.declared ?? (this.#noBody ??= new NoBody())
  }

  get carrier(): Carrier {
    return this.wire.carrier
  }

  get gone(): boolean {
    const { response } = this.wire
    return (response.destroyed && !response.writableFinished) || this.upgrade?.socket.destroyed === true
  }

  onGone(listener: () => void): void {
    const { response } = this.wire
    this.onEnd(() => {
      if (!response.writableFinished) listener()
    })
  }

  onEnd(listener: () => void): void {
    const { response } = this.wire
    if (response.destroyed) queueMicrotask(listener)
    else if (this.#atEnd !== undefined) this.#atEnd.push(listener)
    else {
      const listeners = [listener]
      this.#atEnd = listeners
      response.on('close', () => {
        for (const each of listeners) each()
      })
    }
  }
}

function readHead({ request }: Wire, { remoteAddress }: Connection): Head {
  return {
    method: request.method ?? '',
    rawTarget: request.url ?? '',
    httpVersion: request.httpVersion,
    rawHeaders: request.rawHeaders,
    headers: request.headers,
    remoteAddress,
  }
}

/** Headers that only the server writes, whatever a door or an upstream put into an answer (RFC 9110 §7.6.1). */
const OURS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-request-id',
])

/** Most headers have a name of another length: then nothing more is compared. */
const LENGTHS_OF_OURS: ReadonlySet<number> = new Set([...OURS].map((name) => name.length))

const isOurs = (name: string): boolean => LENGTHS_OF_OURS.has(name.length) && OURS.has(name.toLowerCase())

/**
 * Sends an answer, with its X-Request-Id (C2.6). A stream that fails, or is not as long as it was said to be, cuts the
 * connection, so that a truncated answer never looks whole (C8.4).
 *
 * The connection is closed after it where the door says so, where `closing` (a drain), and where the request's body
 * was not read to its end (C4.17): the next request would begin somewhere inside it. So does a request that could not
 * be read (C4.1), since more of it may have been misread.
 *
 * A client that does not read its answer is cut off (T5.3), because what it has not read is held in memory.
 *
 * @param patience milliseconds that it has for each piece of up to PIECE bytes
 * @throws TypeError from node if the status or a header cannot be sent as it is (control characters, say): then
 *   nothing was sent
 */
export function writeAnswer(
  exchange: IncomingExchange,
  answer: Answer,
  closing: boolean,
  patience: number,
): void {
  const { request, response, carrier } = exchange.wire
  if (response.destroyed) {
    discard(answer)
    return
  }
  const bodiless = hasNoContent(answer.status)
  const { headers, length } = headersOf(exchange, answer, bodiless)
  const last = mustClose(exchange, answer, closing)
  if (last) headers.push('Connection', 'close')
  // Node would send chunks to an HTTP/1.0 client that says "TE: chunked"; it reads until the end instead.
  if (request.httpVersion === '1.0') response.useChunkedEncodingByDefault = false
  carrier.takeReply()
  response.writeHead(answer.status, headers)
  if (last) closeAfterwards(exchange)
  if (bodiless || request.method === 'HEAD') {
    discard(answer)
    response.end()
  } else if (answer.body instanceof Readable) void sendStream(answer.body, length, exchange, patience)
  else if (length !== undefined && length > PIECE)
    void sendStream(Readable.from(piecesOf(answer.body ?? '')), length, exchange, patience)
  else {
    endTogether(response, answer.body, length)
    expectFlush(response, patience)
  }
}

/** Bytes of head and body that node writes together without another allocation. */
const JOINED = 15 * 1024

/**
 * Head and body in one write: node joins them if both are text, and makes two buffers of them, whose `writev` costs
 * twice as much, if the body is bytes. Latin-1 has one character for each byte, so that nothing is changed by it; text
 * that has as many bytes as characters is ASCII, and the same in Latin-1. Never as UTF-8: node would write the head in
 * it too, and what an upstream put into a header would arrive as other bytes.
 *
 * @param length of the body in bytes
 */
function endTogether(response: ServerResponse, body: Buffer | string | undefined, length?: number): void {
  if (typeof body === 'string' && body.length === length) response.end(body, 'latin1')
  else if (typeof body === 'string') endTogether(response, Buffer.from(body))
  else if (body !== undefined && body.length > 0 && body.length < JOINED)
    response.end(body.toString('latin1'), 'latin1')
  else response.end(body)
}

/** Bytes that are written together. Of a larger piece it would not be known how much the client has read. */
const PIECE = 64 * 1024

function* piecesOf(body: string | Buffer): Generator<Buffer> {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE)
}

/** 205 has no content but is framed like answers that have some (RFC 9110 §15.3.6). */
const lengthOfNone = (status: number): number | undefined => (status === 205 ? 0 : undefined)

function headersOf(
  exchange: IncomingExchange,
  { status, headers, body, ascii }: Answer,
  bodiless: boolean,
): { headers: string[]; length: number | undefined } {
  const sent: string[] = ['X-Request-Id', exchange.id]
  let declared: string | undefined
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined) continue
    if (isOurs(name)) {
      if (name.toLowerCase() === 'content-length') declared = String(value)
    } else if (typeof value === 'string') sent.push(name, value)
    else for (const each of value) sent.push(name, each)
  }
  const length = bodiless
    ? lengthOfNone(status)
    : ascii === true && typeof body === 'string'
      ? body.length
      : lengthOf(body, declared, exchange.head.method)
  if (length !== undefined) sent.push('Content-Length', String(length))
  return { headers: sent, length }
}

/** In bytes. Of a stream the declared length, or undefined. */
function lengthOf(body: Answer['body'], declared: string | undefined, method: string): number | undefined {
  if (typeof body === 'string' || Buffer.isBuffer(body)) return Buffer.byteLength(body)
  const known = declared !== undefined && /^[0-9]{1,15}$/.test(declared) ? Number(declared) : undefined
  if (body !== undefined) return known
  return method === 'HEAD' ? known : 0
}

function mustClose(
  { upgrade, connection, declared, target }: IncomingExchange,
  answer: Answer,
  closing: boolean,
): boolean {
  const unread = declared !== undefined && !declared.readToEnd
  return (
    closing ||
    unread ||
    target instanceof Fault ||
    upgrade !== undefined || // node reads no more requests from it
    answer.close === true ||
    connection.closing
  )
}

/** Replaces node's socket.destroySoon(), which doesn't wait: the client can read the last answer before the close. */
function closeAfterwards({ wire, connection, declared }: IncomingExchange): void {
  const { request } = wire
  const { socket } = request
  connection.closing = true
  socket.destroySoon = () => {
    declared?.destroy()
    request.resume()
    lingerThenClose(socket)
  }
}

/** Passes a stream on, no faster than the client reads; whichever of the two fails ends the other. */
async function sendStream(
  body: Readable,
  length: number | undefined,
  { wire }: IncomingExchange,
  patience: number,
): Promise<void> {
  const { request, response } = wire
  response.once('close', () => body.destroy())
  try {
    // Node would hold the head back until the first piece, which may take minutes in an event stream.
    if (length === undefined) response.flushHeaders()
    let sent = 0
    for await (const chunk of body as AsyncIterable<Buffer>) {
      sent += chunk.length
      if (length !== undefined && sent > length) break
      if (!response.write(chunk)) await drained(response, patience)
    }
    if (length !== undefined && sent !== length) throw new RangeError('the body is not as long as declared')
    response.end()
    expectFlush(response, patience)
  } catch {
    // The failure is recorded by whoever made the stream. Here the connection is cut: where only the end of the connection
    // ends the body, a plain end would make the body look whole (T5.2).
    if (length === undefined && request.httpVersion === '1.0') cut(request.socket)
    else response.destroy()
  }
}

/** TLS has no reset (node throws) and needs none: an end without close_notify is known to be a cut. */
const cut = (socket: Socket): unknown =>
  socket instanceof TLSSocket ? socket.destroy() : socket.resetAndDestroy()

const drained = (response: ServerResponse, patience: number): Promise<void> =>
  new Promise((resolve) => {
    if (response.destroyed) resolve()
    const late = setTimeout(() => response.destroy(), timerMs(patience))
    const done = (): void => {
      clearTimeout(late)
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })

/** After the last piece. Most answers have left the process by then, and need no timer. */
function expectFlush(response: ServerResponse, patience: number): void {
  if (response.writableLength === 0 || response.destroyed) return
  const late = setTimeout(() => response.destroy(), timerMs(patience))
  response.once('finish', () => clearTimeout(late)).once('close', () => clearTimeout(late))
}

function discard({ body }: Answer): void {
  if (body instanceof Readable) body.on('error', () => undefined).destroy()
}
