import type { Socket } from 'node:net'
import { plainAddress } from '../http/forwarded.ts'
import type { RequestBody } from './request-body.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ReplyCarrier } from './carrier.ts'

/**
 * With so many no further bytes are read until they are served. Not fewer, since a connection that is not read does not
 * show that its client has left; nor would it be of use: one packet holds more.
 */
const MOST_WAITING = 256

/** An exchange, as far as its connection has to do with it. */
export interface OpenExchange {
  readonly wire: Wire
  /** Undefined where the head declares no body. */
  readonly declared: RequestBody | undefined
}

/**
 * What is going on on one connection. Node hands over pipelined requests all at once; here they run one after the
 * other, so that nothing that follows an answer with `Connection: close` is carried out (RFC 9112 §9.6), and one
 * connection cannot have hundreds of calls in flight.
 */
export class Connection {
  /** The peer's address as the socket gives it. Read once: it stays, and asking for it costs. */
  readonly remoteAddress: string
  /** The same in its one spelling. */
  readonly peer: string
  #current: OpenExchange | undefined
  readonly #waiting: { readonly entrant: OpenExchange; readonly run: () => void }[] = []
  /** Nothing more is served on it: the answer that says so is on its way, or unreadable bytes came. */
  closing = false

  constructor(socket: Socket) {
    this.remoteAddress = socket.remoteAddress ?? ''
    this.peer = plainAddress(this.remoteAddress) ?? this.remoteAddress
  }

  /** The exchange whose answer is not yet sent to its end. */
  get current(): OpenExchange | undefined {
    return this.#current?.wire.response.writableFinished === false ? this.#current : undefined
  }

  /** Whether anything that came on it is not answered yet, or its answer not yet off node's hands. */
  get isBusy(): boolean {
    return this.#waiting.length > 0 || this.#current?.wire.response.closed === false
  }

  /** Runs an exchange at once, or when those before it are answered; or never, if the connection closes first. */
  enter<E extends OpenExchange>(exchange: E, run: (exchange: E) => void): void {
    if (this.closing) return
    const busy = this.current
    if (busy === undefined && this.#waiting.length === 0) {
      this.#current = exchange
      run(exchange)
      return
    }
    this.#waiting.push({ entrant: exchange, run: () => run(exchange) })
    // Once the packet is read to its end: node resumes the socket after every request in it.
    if (this.#waiting.length >= MOST_WAITING) process.nextTick(this.#hold, exchange.wire.request.socket)
    if (this.#waiting.length === 1) busy?.wire.response.once('close', this.#next)
  }

  readonly #hold = (socket: Socket): void => {
    if (this.#waiting.length > 0) socket.pause()
  }

  readonly #next = (): void => {
    const next = this.#waiting.shift()
    if (this.closing || next === undefined) return
    const { request, response } = next.entrant.wire
    if (request.socket.destroyed) return
    this.#current = next.entrant
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
/** How much a client may go on sending after we have answered and ended; how long: `CHECKS` times `CHECK_MS`. */
const LINGER_BYTES = 4 * 1024 * 1024

/**
 * Ends a connection on which the client may still be sending, so that it can read the answer first. Closing at once
 * would make the kernel send a reset for the bytes that nobody reads, and a reset discards what the client has not
 * read yet (RFC 9112 §9.6). So: end our side, throw away what still comes, for a bounded time and amount.
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
