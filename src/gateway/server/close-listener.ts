import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { type Clock, timerMs } from '../../base/kernel/clock.ts'
import { connectionOf, lingerThenClose } from './connection.ts'

const SWEEP_MS = 50
/** After how many turns of the event loop without a new connection none is waiting: each turn accepts one. */
const QUIET_TURNS = 3
/** The longest wait for a quiet turn: under a flood of connections there is never one. */
const LONGEST_WAIT_FOR_QUIET_MS = 100

interface CloseTimes {
  /** How long new connections are still accepted, in milliseconds, so that a load balancer can notice. */
  readonly lameDuck: number
  /** After how long without a byte an idle connection is closed, in milliseconds. */
  readonly silence: number
  /** After how long calls in flight are cut, in milliseconds. */
  readonly drain: number
}

interface ClosingParts {
  readonly server: Server
  readonly connections: OpenConnections
  /** Ends the tunnels, with the reason for their clients. */
  readonly endTunnels: () => void
  /** Stops listening; resolves when all connections are closed. */
  readonly stop: () => PromiseLike<unknown>
  readonly clock: Clock
}

/**
 * Closes a listener (T5.10). A connection is closed after an answer that said `Connection: close`, or after a while of
 * silence, but not while a request may be on its way. Tunnels are ended at once, because no answer of theirs ends.
 */
export class ListenerEnd {
  readonly #parts: ClosingParts
  readonly #times: CloseTimes
  #sweep: NodeJS.Timeout | undefined
  /** True if every answer is to close its connection. */
  hasBegun = false

  constructor(parts: ClosingParts, times: CloseTimes) {
    this.#parts = parts
    this.#times = times
  }

  /** Starts to drain. New connections are accepted until `close`. */
  begin(): void {
    if (this.hasBegun) return
    this.hasBegun = true
    const { connections, clock, endTunnels } = this.#parts
    const limit = Math.min(this.#times.silence, this.#times.drain)
    const sweep = (): void => connections.endSilent(clock.monotonic(), limit)
    this.#sweep = setInterval(sweep, SWEEP_MS)
    sweep()
    endTunnels()
  }

  /** Resolves with the number of connections that were cut in the middle of a call. */
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

/** Waits until no connection waits to be accepted: the kernel would reset it when the listening socket is closed. */
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

/**
 * The open connections of a listener. Node's own list can't be used to end them: `closeIdleConnections`, which `close`
 * calls too, destroys connections that have not sent anything yet, and their first request may be on the way (T5.10).
 */
export class OpenConnections {
  /** By peer if TLS is used, because there are two sockets then: the TCP connection and the TLS one. Otherwise by socket. */
  readonly #open = new Map<unknown, Socket>()

  /** @param server that does not listen yet */
  constructor(server: Server, secure: boolean) {
    server.closeIdleConnections = () => undefined
    const keyOf = secure ? peerOf : (socket: Socket) => socket
    server.on('connection', (socket: Socket) => {
      const key = keyOf(socket)
      this.#open.set(key, socket)
      socket.on('close', () => this.#open.delete(key))
    })
    // If the peer has reset the connection meanwhile, the TLS socket has no address: it must not be added under another key.
    if (secure)
      server.on('secureConnection', (socket: Socket) => {
        const key = keyOf(socket)
        if (this.#open.has(key)) this.#open.set(key, socket)
      })
  }

  get size(): number {
    return this.#open.size
  }

  /** The number of connections on which a call is under way. */
  get busy(): number {
    return [...this.#open.values()].filter(isBusy).length
  }

  /**
   * Ends idle connections on which no byte has come for `limit`. To be called repeatedly while the listener drains: the time
   * of a connection begins with the first call that finds it.
   *
   * @param now milliseconds of a monotonic clock
   * @param limit milliseconds
   */
  endSilent(now: number, limit: number): void {
    for (const socket of this.#open.values()) if (connectionOf(socket).isSilent(now, limit)) end(socket)
  }

  destroy(): void {
    for (const socket of this.#open.values()) socket.destroy()
  }
}

const peerOf = (socket: Socket): unknown =>
  socket.remotePort === undefined ? socket : `${socket.remoteAddress} ${socket.remotePort}`

const isBusy = (socket: Socket): boolean => connectionOf(socket).isBusy

/** A request that comes after all is not carried out, and its client may send it again (RFC 9112 §9.6). */
function end(socket: Socket): void {
  const connection = connectionOf(socket)
  if (connection.closing) return
  connection.closing = true
  lingerThenClose(socket)
}
