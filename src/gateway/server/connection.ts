import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { plainAddress } from '../../base/http/head/addresses.ts'
import type { ReplyCarrier } from './carrier.ts'
import type { IncomingBody } from './request-body.ts'

/**
 * How many requests may wait on one connection. With so many, no further bytes are read until they are served. A lower number
 * would be of no use, because one packet can hold more; and while a connection is not read, nobody notices that its client
 * has left.
 */
const MOST_WAITING = 256

export interface OpenExchange {
  readonly wire: Wire
  /** The request's body. Undefined if the head declares none. */
  readonly declared: IncomingBody | undefined
  /** Called when its response is closed, if it was run. */
  ended(): void
}

interface Waiting {
  readonly exchange: OpenExchange
  readonly run: () => void
}

/**
 * Runs the requests of one connection one after the other. Node hands over pipelined requests all at once. But nothing that
 * follows an answer with `Connection: close` may be carried out (RFC 9112 §9.6), and one connection must not have hundreds
 * of calls in flight.
 */
export class Connection {
  readonly #socket: Socket
  #remoteAddress: string | undefined
  #peer: string | undefined
  #current: OpenExchange | undefined
  readonly #waiting: Waiting[] = []
  /** For `isSilent`: the bytes that had come, and since when no others have. */
  #bytes = -1
  #silentSince = 0
  /** True if no further request is served: an answer with `Connection: close` is being sent, or unreadable bytes came. */
  closing = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** The peer's address as the socket gives it. Read once, because it does not change and reading it costs time. */
  get remoteAddress(): string {
    return (this.#remoteAddress ??= this.#socket.remoteAddress ?? '')
  }

  /** The same address in its canonical spelling. */
  get peer(): string {
    return (this.#peer ??= plainPeer(this.remoteAddress))
  }

  /** The exchange whose answer is not sent to its end yet. */
  get current(): OpenExchange | undefined {
    return this.#current?.wire.response.writableFinished === false ? this.#current : undefined
  }

  /** Whether a request is not answered yet, or its answer has not left node yet. */
  get isBusy(): boolean {
    return this.#waiting.length > 0 || this.#current !== undefined
  }

  /**
   * Whether the connection is idle and no byte has come for `limit`. To be called repeatedly: the time begins with the
   * first call.
   *
   * @param now milliseconds of a monotonic clock
   * @param limit milliseconds
   */
  isSilent(now: number, limit: number): boolean {
    const { bytesRead } = this.#socket
    if (bytesRead === this.#bytes && !this.isBusy) return now - this.#silentSince >= limit
    this.#bytes = bytesRead
    this.#silentSince = now
    return false
  }

  /** Runs an exchange when those before it are answered, at once if there are none. Never, if the connection closes first. */
  enter<E extends OpenExchange>(exchange: E, run: (exchange: E) => void): void {
    if (this.closing) return
    if (this.current === undefined && this.#waiting.length === 0) {
      this.#begin(exchange)
      run(exchange)
      return
    }
    this.#waiting.push({ exchange, run: () => run(exchange) })
    // On the next tick, when the whole packet is read: node resumes the socket after every request in it.
    if (this.#waiting.length >= MOST_WAITING) process.nextTick(() => this.#pause())
  }

  /** Closes the connection after the answer of the current exchange, so that the client can read it first. */
  closeAfterAnswer(): void {
    this.closing = true
    // Node calls it when the answer is sent. Its own closes at once, and the client could not read the answer.
    this.#socket.destroySoon = () => {
      this.#current?.declared?.destroy()
      this.#current?.wire.request.resume()
      lingerThenClose(this.#socket)
    }
  }

  #begin(exchange: OpenExchange): void {
    this.#current = exchange
    exchange.wire.response.on('close', () => this.#end(exchange))
  }

  #pause(): void {
    if (this.#waiting.length > 0) this.#socket.pause()
  }

  /**
   * Lets go of the exchange, too: V8 takes a closed socket for alive until it collects the old generation of the heap, and
   * with it everything that the socket leads to.
   */
  #end(exchange: OpenExchange): void {
    if (this.#current === exchange) this.#current = undefined
    exchange.ended()
    if (this.#current === undefined) this.#next()
  }

  #next(): void {
    const next = this.#waiting.shift()
    if (next === undefined || this.closing || this.#socket.destroyed) {
      this.#waiting.length = 0
      return
    }
    this.#begin(next.exchange)
    if (this.#waiting.length === 0) this.#socket.resume()
    next.run()
  }
}

/** Node reads IPv6 by an object of C++. One address often opens many connections, such as that of a load balancer. */
let lastAddress = ''
let lastPeer = ''

function plainPeer(address: string): string {
  if (address !== lastAddress) {
    lastPeer = plainAddress(address) ?? address
    lastAddress = address
  }
  return lastPeer
}

const CONNECTION = Symbol('connection')

interface KnownSocket extends Socket {
  [CONNECTION]?: Connection | undefined
}

/** Kept on the socket: a WeakMap would keep every closed connection until the old generation of the heap is collected. */
export function connectionOf(socket: KnownSocket): Connection {
  return (socket[CONNECTION] ??= new Connection(socket))
}

const CHECK_MS = 50
const CHECKS = 20
/** How many bytes a client may still send after our end. It may send for `CHECKS` times `CHECK_MS`. */
const LINGER_BYTES = 4 * 1024 * 1024

interface Lingering {
  /** The most that `socket.bytesRead` may become. */
  readonly most: number
  checks: number
}

const lingering = new Map<Socket, Lingering>()
let sweeper: NodeJS.Timeout | undefined

function sweepLingering(): void {
  for (const [socket, state] of lingering) {
    state.checks += 1
    if (state.checks < CHECKS && socket.bytesRead <= state.most) continue
    lingering.delete(socket)
    socket.destroy()
  }
  if (lingering.size > 0) return
  clearInterval(sweeper)
  sweeper = undefined
}

function endLingering(this: Socket): void {
  lingering.delete(this)
}

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
  lingering.set(socket, { most: socket.bytesRead + LINGER_BYTES, checks: 0 })
  sweeper ??= setInterval(sweepLingering, CHECK_MS)
  socket.on('close', endLingering)
  socket.resume()
}

/** One request: node's pair, and what Fastify's reply to it is used for. */
export interface Wire {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly carrier: ReplyCarrier
}
