import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { cannotBeSent, checkedValue, type HeaderText, isToken } from '../../base/http/head/header-text.ts'
import { Fault } from '../../base/kernel/faults.ts'

/** The timeouts of a request, in milliseconds. */
export interface UpstreamTimeouts {
  readonly connect: number
  /** The longest time from the request on the wire to the head of the response. */
  readonly firstByte: number
  /** The longest time between two pieces of a body. */
  readonly idle: number
}

export interface UpstreamRequest extends RequestHead {
  /** The Host header, in place of the target's own. */
  readonly host: string | undefined
  readonly body: Buffer | Readable | undefined
  /** The length of a streamed body in bytes, if it is known. */
  readonly length: number | undefined
  /** Whether a short answer is handed over whole: see UpstreamReader. */
  readonly eager: boolean
  /** Takes room for an answer that is handed over whole; false: there is none left. Absent: it need not be taken. */
  readonly hold?: (bytes: number) => boolean
  /** Whether to use a connection that served no call before, as a further attempt at a call does. */
  readonly fresh: boolean
  /** The timeouts in place of the pool's. `connect` counts where a connection is opened for the request. */
  readonly timeouts: UpstreamTimeouts | undefined
}

interface RequestHead {
  readonly method: string
  /** Origin-form: the target that was authorized (T1.6). */
  readonly path: string
  readonly headers: HeaderText
}

/** How the body of a request ends: after so many bytes, or with the last chunk. Undefined: it has none. */
export type RequestFraming = number | 'chunked' | undefined

function requestFraming({ body, length }: UpstreamRequest): RequestFraming {
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

/** The head of a request. @param host as that of `writeRequest` @throws Fault `internal` */
export const requestHead = (request: UpstreamRequest, host: string, keep: boolean): string =>
  requestBytes(request, requestFraming(request), request.host ?? host, keep)

/** The most bytes of a body that are written together with the head: two writes cost twice as much. */
const MAX_JOINED = 15 * 1024

/**
 * Writes a request, except for a streamed body: answers its upload, which the caller starts.
 * @param host the Host header, unless the request has one
 * @param keep whether the connection is to be kept
 * @throws Fault `internal` for a head that must not be sent
 */
export function writeRequest(
  socket: Socket,
  request: UpstreamRequest,
  host: string,
  keep: boolean,
  events: UploadEvents,
): Upload | undefined {
  const { body } = request
  const head = requestHead(request, host, keep)
  if (Buffer.isBuffer(body)) writeWithBody(socket, head, body)
  else socket.write(head, 'latin1')
  if (!(body instanceof Readable)) return undefined
  return new Upload(body, request.length, socket, events)
}

function writeWithBody(socket: Socket, head: string, body: Buffer): void {
  if (body.length <= MAX_JOINED) {
    socket.write(head + body.toString('latin1'), 'latin1')
    return
  }
  socket.cork()
  socket.write(head, 'latin1')
  socket.write(body)
  socket.uncork()
}

export interface UploadEvents {
  readonly done: () => void
  readonly failed: (error: unknown) => void
  /** From now on the upload waits for the upstream (true) or for the client (false). */
  readonly waiting: (forUpstream: boolean) => void
}

/**
 * Writes a streamed body to an upstream, no faster than the upstream reads: unchanged where its length was declared,
 * otherwise in chunks. A body that is shorter or longer than declared fails. The stream belongs to its owner: it is never
 * destroyed.
 */
export class Upload {
  readonly #body: Readable
  readonly #socket: Socket
  readonly #declared: number | undefined
  readonly #events: UploadEvents
  #sent = 0

  constructor(body: Readable, declared: number | undefined, socket: Socket, events: UploadEvents) {
    this.#body = body
    this.#socket = socket
    this.#declared = declared
    this.#events = events
  }

  /** Whether the upload waits for the client. */
  get isReading(): boolean {
    return !this.#body.isPaused()
  }

  start(): void {
    if (this.#body.destroyed || this.#body.readableEnded) {
      // Somebody else read what it held: it must not look like an empty body.
      this.#fail(this.#body.errored ?? new Fault('client_gone'))
      return
    }
    this.#socket.on('drain', this.#onDrain)
    this.#body
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClose)
  }

  /** Reads no further. The owner of the stream sees that it was not read to its end. */
  stop(): void {
    this.#socket.off('drain', this.#onDrain)
    this.#body.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose)
    this.#body.pause()
    // The error listener stays: an error without a listener would end the process.
  }

  readonly #onData = (piece: Buffer): void => {
    this.#sent += piece.length
    if (this.#declared !== undefined && this.#sent > this.#declared) {
      this.#fail(new Fault('client_gone', { detail: 'the body is longer than its declared length' }))
      return
    }
    if (!this.#write(piece)) {
      this.#body.pause()
      this.#events.waiting(true)
    }
  }

  #write(piece: Buffer): boolean {
    if (this.#declared !== undefined || piece.length === 0) return this.#socket.write(piece)
    this.#socket.cork()
    this.#socket.write(`${piece.length.toString(16)}\r\n`, 'latin1')
    this.#socket.write(piece)
    const goesOn = this.#socket.write('\r\n', 'latin1')
    this.#socket.uncork()
    return goesOn
  }

  readonly #onDrain = (): void => {
    this.#events.waiting(false)
    this.#body.resume()
  }

  readonly #onEnd = (): void => {
    if (this.#declared !== undefined && this.#sent !== this.#declared) {
      this.#fail(new Fault('client_gone', { detail: 'the body is shorter than its declared length' }))
      return
    }
    this.stop()
    if (this.#declared === undefined) this.#socket.write('0\r\n\r\n', 'latin1')
    this.#events.done()
  }

  readonly #onError = (error: unknown): void => this.#fail(error)

  readonly #onClose = (): void => {
    if (!this.#body.readableEnded) this.#fail(this.#body.errored ?? new Fault('client_gone'))
  }

  #fail(error: unknown): void {
    this.stop()
    this.#events.failed(error)
  }
}
