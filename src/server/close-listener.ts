import type { Server } from 'node:http'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { type Clock, timerMs } from '../kernel/clock.ts'
import type { Socket } from 'node:net'
import { connectionOf, lingerThenClose } from './connection.ts'

const SWEEP_MS = 50
/** Turns of the event loop without a new connection, after which none waits to be accepted: each turn accepts one. */
const QUIET_TURNS = 3
/** Under a flood of connections there is no quiet. */
const LONGEST_WAIT_FOR_QUIET_MS = 100

export interface CloseTimes {
  /** Milliseconds that new connections are still served, so that whoever balances load can notice. */
  readonly lameDuck: number
  /** Milliseconds that a connection on which nothing is under way must be silent before it is closed. */
  readonly silence: number
  /** Milliseconds after which what is still in flight is cut. */
  readonly drain: number
}

export interface ListenerParts {
  readonly server: Server
  readonly connections: OpenConnections
  /** Ends the connections that are no HTTP any more, and tells their clients why. */
  readonly endTunnels: () => void
  /** Stops listening; resolves when all connections are closed. */
  readonly stop: () => PromiseLike<unknown>
  readonly clock: Clock
}

/**
 * How a listener ends (T5.10). No connection is closed while a request may be on its way: only after an answer that
 * said `Connection: close`, or a while of silence. Websockets are told at once: nothing ends them by itself.
 */
export class ListenerEnd {
  readonly #parts: ListenerParts
  readonly #times: CloseTimes
  #sweep: NodeJS.Timeout | undefined

  constructor(parts: ListenerParts, times: CloseTimes) {
    this.#parts = parts
    this.#times = times
  }

  /** From now on answers are to close their connections. */
  get hasBegun(): boolean {
    return this.#sweep !== undefined
  }

  /** New connections are taken all the same, until `close`. */
  begin(): void {
    if (this.hasBegun) return
    const { connections, clock, endTunnels } = this.#parts
    const limit = Math.min(this.#times.silence, this.#times.drain)
    const sweep = (): void => connections.endSilent(clock.monotonic(), limit)
    this.#sweep = setInterval(sweep, SWEEP_MS)
    sweep()
    endTunnels()
  }

  /** @returns how many connections were cut within a call */
  async close(lameDuck = this.#times.lameDuck): Promise<number> {
    this.begin()
    await wait(timerMs(lameDuck))
    await untilQuiet(this.#parts.server)
    const closed = this.#parts.stop()
    let cut = 0
    const bound = setTimeout(() => {
      cut = this.#parts.connections.busy
      this.#parts.connections.destroy()
    }, timerMs(this.#times.drain))
    await closed
    clearInterval(this.#sweep)
    clearTimeout(bound)
    return cut
  }
}

/** A connection that waits to be accepted when the listening socket is closed would be reset by the kernel. */
async function untilQuiet(server: Server): Promise<void> {
  let turns = 0
  const heard = (): void => void (turns = 0)
  server.on('connection', heard)
  const deadline = performance.now() + LONGEST_WAIT_FOR_QUIET_MS
  while (turns < QUIET_TURNS && performance.now() < deadline) {
    turns += 1
    await nextTurn()
  }
  server.off('connection', heard)
}

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
