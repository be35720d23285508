import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { plainAddress } from '../http/addresses.ts'
import type { ReplyCarrier } from './carrier.ts'
import type { RequestBody } from './request-body.ts'

/**
 * Requests that may wait on one connection. With so many, no further bytes are read until they are served. A lower number
 * would be of no use, since one packet can hold more; and while a connection is not read, nobody notices that its client
 * has left.
 */
const MOST_WAITING = 256

export interface OpenExchange {
  readonly wire: Wire
  /** The request's body. Undefined if the head declares none. */
  readonly declared: RequestBody | undefined
}

/**
 * Runs the requests of one connection one after the other. Node hands over pipelined requests all at once. But nothing that
 * follows an answer with `Connection: close` may be carried out (RFC 9112 §9.6), and one connection must not have hundreds
 * of calls in flight.
 */
export class Connection {
  /** The peer's address as the socket gives it. Read once, because it does not change and reading it costs time. */
  readonly remoteAddress: string
  /** The same address in its canonical spelling. */
  readonly peer: string
  #current: OpenExchange | undefined
  readonly #waiting: { readonly exchange: OpenExchange; readonly run: () => void }[] = []
  /** True if no further request is served: an answer with `Connection: close` is being sent, or unreadable bytes came. */
  closing = false

  constructor(socket: Socket) {
    this.remoteAddress = socket.remoteAddress ?? ''
    this.peer = plainAddress(this.remoteAddress) ?? this.remoteAddress
  }

  /** The exchange whose answer is not sent to its end yet. */
  get current(): OpenExchange | undefined {
    return this.#current?.wire.response.writableFinished === false ? this.#current : undefined
  }

  /** Whether a request is not answered yet, or its answer has not left node yet. */
  get isBusy(): boolean {
    return this.#waiting.length > 0 || this.#current?.wire.response.closed === false
  }

  /** Runs an exchange when those before it are answered, at once if there are none. Never, if the connection closes first. */
  enter<E extends OpenExchange>(exchange: E, run: (exchange: E) => void): void {
    if (this.closing) return
    const busy = this.current
    if (busy === undefined && this.#waiting.length === 0) {
      this.#current = exchange
      run(exchange)
      return
    }
    this.#waiting.push({ exchange, run: () => run(exchange) })
    // On the next tick, when the whole packet is read: node resumes the socket after every request in it.
    if (this.#waiting.length >= MOST_WAITING) process.nextTick(this.#pause, exchange.wire.request.socket)
    if (this.#waiting.length === 1) busy?.wire.response.once('close', this.#next)
  }

  readonly #pause = (socket: Socket): void => {
    if (this.#waiting.length > 0) socket.pause()
  }

  readonly #next = (): void => {
    const next = this.#waiting.shift()
    if (this.closing || next === undefined) return
    const { request, response } = next.exchange.wire
    if (request.socket.destroyed) return
    this.#current = next.exchange
    if (this.#waiting.length === 0) request.socket.resume()
    else response.once('close', this.#next)
    next.run()
  }
}

const connections = new WeakMap<Socket, Connection>()

export function connectionOf(socket: Socket): Connection {
  const known = connections.get(socket)
  if (known !== undefined) return known
  const connection = new Connection(socket)
  connections.set(socket, connection)
  return connection
}

const CHECK_MS = 50
const CHECKS = 20
/** Bytes that a client may still send after our end. It may send for `CHECKS` times `CHECK_MS`. */
const LINGER_BYTES = 4 * 1024 * 1024

/**
 * Ends a connection on which the client may still be sending, so that it can read the answer first. Closing at once
 * would make the kernel send a reset for the bytes that nobody reads, and a reset discards what the client has not
 * read yet (RFC 9112 §9.6). So our side is ended, and what still comes is thrown away, for a bounded time and amount.
 *
 * @param last bytes to send before the end
 */
export function lingerThenClose(socket: Socket, last?: Buffer): void {
  if (last === undefined) socket.end()
  else socket.end(last)
  const bound = socket.bytesRead + LINGER_BYTES
  let checks = 0
  const timer = setInterval(() => {
    checks += 1
    if (checks >= CHECKS || socket.bytesRead > bound) socket.destroy()
  }, CHECK_MS)
  socket.once('close', () => {
    clearInterval(timer)
  })
  socket.resume()
}

/** One request: node's pair, and what Fastify's reply to it is used for. */
export interface Wire {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly carrier: ReplyCarrier
}
