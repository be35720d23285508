import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { connectionOf } from './connection.ts'
import { lingerThenClose } from './linger.ts'

/** What a connection had sent, and since when it has sent nothing more. */
interface Silence {
  readonly bytes: number
  readonly since: number
}

/**
 * The connections of a listener. Node's own list can't be used to end them: `closeIdleConnections`, which `close` calls
 * too, destroys those that have not sent anything yet, and their first request may be on the way (T5.10).
 */
export class OpenConnections {
  /** By peer where TLS is spoken, since the connection and what is read from it are two sockets then. */
  readonly #open = new Map<unknown, Socket>()
  /** Filled while the listener drains. */
  readonly #silences = new WeakMap<Socket, Silence>()

  /** Follows a server that does not listen yet. */
  constructor(server: Server, secure: boolean) {
    server.closeIdleConnections = () => undefined
    const keyOf = secure ? peerOf : (socket: Socket) => socket
    server.on('connection', (socket: Socket) => {
      const key = keyOf(socket)
      this.#open.set(key, socket)
      socket.once('close', () => this.#open.delete(key))
    })
    // A peer that has reset its connection meanwhile has no address any more: nobody would take it out again.
    if (secure)
      server.on('secureConnection', (socket: Socket) => {
        const key = keyOf(socket)
        if (this.#open.has(key)) this.#open.set(key, socket)
      })
  }

  /** Those on which a call is under way, or that are none of HTTP's any more. */
  get busy(): number {
    return [...this.#open.values()].filter(isBusy).length
  }

  /**
   * Ends those on which nothing is under way and nothing came for so long. To be called again and again while the
   * listener drains: for each, the time begins with the first call.
   *
   * @param now, limit milliseconds of a monotonic clock
   */
  endSilent(now: number, limit: number): void {
    for (const socket of this.#open.values()) {
      const bytes = socket.bytesRead
      const known = this.#silences.get(socket)
      if (known === undefined || known.bytes !== bytes || isBusy(socket))
        this.#silences.set(socket, { bytes, since: now })
      else if (now - known.since >= limit) end(socket)
    }
  }

  /** Cuts all of them. */
  destroy(): void {
    for (const socket of this.#open.values()) socket.destroy()
  }
}

const peerOf = (socket: Socket): unknown =>
  socket.remotePort === undefined ? socket : `${socket.remoteAddress} ${socket.remotePort}`

const isBusy = (socket: Socket): boolean => connectionOf(socket).isBusy

/** Should a request come after all, it is not carried out, and its client may send it again (RFC 9112 §9.6). */
function end(socket: Socket): void {
  const connection = connectionOf(socket)
  if (connection.closing) return
  connection.closing = true
  lingerThenClose(socket)
}
