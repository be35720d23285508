import type { Socket } from 'node:net'
import type { IncomingExchange } from './incoming-exchange.ts'

/** More than this and no further bytes are read until they are served. */
const MOST_WAITING = 32

/**
 * What is going on on one connection. Node hands over pipelined requests all at once; here they run one after the
 * other, so that nothing that follows an answer with `Connection: close` is carried out (RFC 9112 §9.6), and one
 * connection cannot have hundreds of calls in flight.
 */
export class Connection {
  #current: IncomingExchange | undefined
  readonly #waiting: IncomingExchange[] = []
  /** Nothing more is served on it: the answer that says so is on its way, or unreadable bytes came. */
  closing = false

  /** The exchange whose answer is not yet sent to its end. */
  get current(): IncomingExchange | undefined {
    return this.#current?.wire.response.writableFinished === false ? this.#current : undefined
  }

  /** Whether anything that came on it is not answered yet, or its answer not yet off node's hands. */
  get isBusy(): boolean {
    return this.#waiting.length > 0 || this.#current?.wire.response.closed === false
  }

  /** Runs an exchange at once, or when those before it are answered; or never, if the connection closes first. */
  enter(exchange: IncomingExchange, run: (exchange: IncomingExchange) => void): void {
    if (this.closing) return
    const busy = this.current
    if (busy === undefined && this.#waiting.length === 0) {
      this.#current = exchange
      run(exchange)
      return
    }
    this.#waiting.push(exchange)
    if (this.#waiting.length >= MOST_WAITING) exchange.wire.request.socket.pause()
    if (this.#waiting.length === 1) busy?.wire.response.once('close', () => this.#next(run))
  }

  #next(run: (exchange: IncomingExchange) => void): void {
    const exchange = this.#waiting.shift()
    if (this.closing || exchange === undefined || exchange.wire.request.socket.destroyed) return
    this.#current = exchange
    if (this.#waiting.length === 0) exchange.wire.request.socket.resume()
    else exchange.wire.response.once('close', () => this.#next(run))
    run(exchange)
  }
}

const connections = new WeakMap<Socket, Connection>()

export function connectionOf(socket: Socket): Connection {
  const known = connections.get(socket)
  if (known !== undefined) return known
  const connection = new Connection()
  connections.set(socket, connection)
  return connection
}
