import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Answer, WrappedBytes } from '../../base/contracts/calls/exchange.ts'
import { hasNoContent } from '../../base/http/head/head.ts'
import {
  BytesInPieces,
  isPieces,
  Passage,
  type PieceSink,
  type PieceSource,
  type Stage,
} from '../../base/http/body/pieces.ts'
import { timerMs } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { Wire } from './connection.ts'
import type { IncomingExchange } from './exchange.ts'

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
 * be read (C4.1), because more of it may have been misread.
 *
 * A client that does not read its answer is cut off (T5.3), because what it has not read is held in memory.
 *
 * @param patience milliseconds that it has for each PIECE bytes
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
  try {
    response.writeHead(answer.status, headers)
  } catch (thrown) {
    discard(answer)
    throw thrown
  }
  if (last) exchange.connection.closeAfterAnswer()
  if (bodiless || request.method === 'HEAD') {
    discard(answer)
    response.end()
    return
  }
  const { body } = answer
  const pieces = isPieces(body) ? body : asPieces(body, request.socket, length)
  if (pieces !== undefined) new PieceWriter(exchange, length, patience).write(pieces)
  else {
    endTogether(response, body as WholeBody, length)
    expectFlush(exchange.wire, patience, () => response.destroy())
  }
}

/** The most bytes of a body that are written together. */
const TOGETHER = 256 * 1024 + 64

/** TLS does not tell how much of one write has left. */
const mostTogether = (socket: Socket): number => (socket instanceof TLSSocket ? PIECE : TOGETHER)

/** A whole body that is too long to be written at once. */
function asPieces(body: WholeBody, socket: Socket, length = 0): PieceSource | undefined {
  if (body === undefined || length <= mostTogether(socket)) return undefined
  if (typeof body === 'string') return new BytesInPieces(Buffer.from(body))
  if (Buffer.isBuffer(body)) return new BytesInPieces(body)
  return new Passage(new BytesInPieces(body.bytes), around(body))
}

function around({ before, after }: WrappedBytes): Stage {
  let isBegun = false
  return {
    piece: (bytes) => {
      if (isBegun) return bytes
      isBegun = true
      return Buffer.concat([Buffer.from(before), bytes])
    },
    end: () => Buffer.from(after),
  }
}

/** The most bytes of head and body that node writes together without another allocation. */
const JOINED = 15 * 1024

/**
 * Head and body in one write. A short body is given to node as text, which it joins with the head: a `writev` of several
 * buffers costs twice as much. Latin-1 has one character for each byte, so that nothing is changed by it; text that has
 * as many bytes as characters is ASCII, and the same in Latin-1. Never as UTF-8: node would write the head in it too, and
 * what an upstream put into a header would arrive as other bytes. A longer body is not copied: head, text and bytes are
 * one `writev`.
 *
 * @param length of the body in bytes
 */
function endTogether(response: ServerResponse, body: WholeBody, length = 0): void {
  if (typeof body === 'string') {
    if (body.length === length) response.end(body, 'latin1')
    else endTogether(response, Buffer.from(body), length)
  } else if (body === undefined || length === 0) response.end()
  else if (Buffer.isBuffer(body)) {
    if (length < JOINED) response.end(body.toString('latin1'), 'latin1')
    else response.end(body)
  } else if (length < JOINED) response.end(body.before + body.bytes.toString('latin1') + body.after, 'latin1')
  else {
    response.cork()
    response.write(body.before, 'latin1')
    response.write(body.bytes)
    response.end(body.after, 'latin1')
  }
}

type WholeBody = Exclude<Answer['body'], PieceSource>

/** How many bytes a client has to take in its time. */
const PIECE = 64 * 1024

/** 205 has no content but is framed like answers that have some (RFC 9110 §15.3.6). */
const lengthOfNone = (status: number): number | undefined => (status === 205 ? 0 : undefined)

function headersOf(
  exchange: IncomingExchange,
  { status, headers, body }: Answer,
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
  const length = bodiless ? lengthOfNone(status) : lengthOf(body, declared, exchange.head.method)
  if (length !== undefined) sent.push('Content-Length', String(length))
  return { headers: sent, length }
}

/** The length of a body in bytes. Of a stream the declared length, or undefined. */
function lengthOf(body: Answer['body'], declared: string | undefined, method: string): number | undefined {
  if (Buffer.isBuffer(body)) return body.length
  if (typeof body === 'string') return Buffer.byteLength(body)
  if (body !== undefined && 'bytes' in body) return lengthOfWrapped(body)
  const known = declared !== undefined && /^[0-9]{1,15}$/.test(declared) ? Number(declared) : undefined
  if (body !== undefined) return known
  return method === 'HEAD' ? known : 0
}

const lengthOfWrapped = ({ before, bytes, after }: WrappedBytes): number =>
  before.length + bytes.length + after.length

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

/** Passes a body on, no faster than the client reads; whichever of the two fails ends the other. */
class PieceWriter implements PieceSink {
  readonly #exchange: IncomingExchange
  readonly #response: ServerResponse
  readonly #length: number | undefined
  readonly #patience: number
  #source: PieceSource | undefined
  #sent = 0
  #hasFailed = false
  #isChecking = false
  /** Ends the wait for the client. Undefined while nothing is waited for. */
  #stopWaiting: (() => void) | undefined

  constructor(exchange: IncomingExchange, length: number | undefined, patience: number) {
    this.#exchange = exchange
    this.#response = exchange.wire.response
    this.#length = length
    this.#patience = patience
  }

  write(source: PieceSource): void {
    this.#source = source
    this.#response.on('drain', this.#goOn).once('close', () => {
      this.#stopWaiting?.()
      source.cancel()
    })
    // Node would hold the head back until the first piece, which may take minutes in an event stream.
    if (this.#length === undefined) this.#response.flushHeaders()
    source.read(this)
  }

  piece(bytes: Buffer): void {
    if (this.#response.destroyed || this.#hasFailed) return
    this.#sent += bytes.length
    if (this.#length !== undefined && this.#sent > this.#length) {
      this.fail()
      return
    }
    // Node writes at the end of this tick. Only then it is known how much the client's socket has taken.
    if (this.#response.write(bytes) || this.#isChecking) return
    this.#isChecking = true
    this.#source?.pause()
    process.nextTick(this.#check)
  }

  readonly #check = (): void => {
    this.#isChecking = false
    const response = this.#response
    if (response.writableEnded || response.destroyed) return
    if (response.writableLength === 0) this.#source?.resume()
    else this.#stopWaiting ??= expectProgress(this.#exchange.wire.request.socket, this.#patience, this.#cut)
  }

  readonly #goOn = (): void => {
    if (this.#stopWaiting === undefined) return
    this.#stopWaiting()
    this.#stopWaiting = undefined
    this.#source?.resume()
  }

  end(last?: Buffer): void {
    if (last !== undefined) this.piece(last)
    if (this.#response.destroyed || this.#hasFailed) return
    if (this.#length !== undefined && this.#sent !== this.#length) {
      this.fail()
      return
    }
    this.#stopWaiting?.()
    this.#response.end()
    expectFlush(this.#exchange.wire, this.#patience, this.#cut)
  }

  /**
   * The maker of the body records the failure. Here the connection is cut: where only the end of the connection
   * ends the body, a plain end would make the body look whole (T5.2).
   */
  fail(): void {
    this.#hasFailed = true
    // After node has written what came before.
    process.nextTick(this.#cut)
  }

  readonly #cut = (): void => {
    const { request, response } = this.#exchange.wire
    if (this.#length === undefined && request.httpVersion === '1.0') cut(request.socket)
    else response.destroy()
  }
}

/** TLS has no reset (node throws) and needs none: an end without close_notify is known to be a cut. */
const cut = (socket: Socket): unknown =>
  socket instanceof TLSSocket ? socket.destroy() : socket.resetAndDestroy()

/** After the last write. Most answers have left the process by then, and need no timer. */
function expectFlush({ request, response }: Wire, patience: number, late: () => void): void {
  if (response.writableLength === 0 || response.destroyed) return
  const stop = expectProgress(request.socket, patience, late)
  response.once('finish', stop).once('close', stop)
}

/**
 * Calls `late` when the kernel has taken fewer than `PIECE` bytes in one `patience`. TLS does not tell how much it has taken:
 * there all that was written has to leave in one.
 *
 * @returns a function that ends it
 */
function expectProgress(socket: Socket, patience: number, late: () => void): () => void {
  let taken = takenBytes(socket)
  const check = (): void => {
    const before = taken
    taken = takenBytes(socket)
    if (taken - before < PIECE) late()
    else timer.refresh()
  }
  const timer = setTimeout(check, timerMs(patience))
  return () => clearTimeout(timer)
}

interface Handle {
  /** The bytes of all writes, those under way included. */
  readonly bytesWritten?: number
  /** The bytes of the writes under way that the kernel has not taken. */
  readonly writeQueueSize?: number
}

/** Node's own timeouts of sockets read the same. */
function takenBytes(socket: Socket): number {
  const { bytesWritten = 0, writeQueueSize = 0 } =
    (socket as { readonly _handle?: Handle | null })._handle ?? {}
  return bytesWritten - writeQueueSize
}

function discard({ body }: Answer): void {
  if (isPieces(body)) body.cancel()
}
