/**
 * Ends the sockets that node:cluster shares, without losing connections.
 *
 * node:cluster closes a listening socket when its last worker leaves, and drops the connections that are not handed over
 * yet; a busy machine has dozens. So here the socket is closed first, once no connection waits in the kernel. The workers
 * leave when all accepted connections are handed over.
 *
 * Node has no API for these sockets. They are found by its diagnostics channel for listening servers: a server of
 * node:cluster has given its handle away. If none is found, the workers leave at once and waiting connections are lost.
 */
import { subscribe } from 'node:diagnostics_channel'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ChildProcess } from 'node:child_process'
import { performance } from 'node:perf_hooks'
import { setImmediate } from 'node:timers'
import { descriptorOf } from '../../base/files/descriptors.ts'

interface ListeningHandle {
  onconnection: (...args: unknown[]) => void
  close(): void
}

/** Turns of the event loop without a connection after which none waits: each turn accepts one. */
const QUIET_TURNS = 3
/** A bound, because a flood of connections never leaves a quiet turn. */
const LONGEST_WAIT_FOR_QUIET_MS = 1000

const isListening = (value: unknown): value is ListeningHandle =>
  typeof value === 'object' &&
  value !== null &&
  'onconnection' in value &&
  typeof value.onconnection === 'function' &&
  'close' in value &&
  typeof value.close === 'function'

export class SharedPorts {
  readonly #sockets = new Set<ListeningHandle>()
  readonly #takes: (descriptor: number) => boolean
  #accepted = 0

  /**
   * Must be created before a worker listens.
   * @param takes whether a connection with this descriptor is handed over; it is closed at once where not
   */
  constructor(takes: (descriptor: number) => boolean) {
    this.#takes = takes
    subscribe('tracing:net.server.listen:asyncEnd', (message) => {
      const { server } = message as { readonly server: { readonly _handle: unknown } }
      const handle = server._handle
      setImmediate(() => {
        if (server._handle === null && isListening(handle)) this.#follow(handle)
      })
    })
  }

  /** Stops accepting. Connections that were accepted before are still handed over. */
  async close(): Promise<void> {
    const deadline = performance.now() + LONGEST_WAIT_FOR_QUIET_MS
    let [turns, known] = [0, this.#accepted]
    while (turns < QUIET_TURNS && performance.now() < deadline) {
      await nextTurn()
      turns = known === this.#accepted ? turns + 1 : 0
      known = this.#accepted
    }
    for (const socket of this.#sockets) socket.close()
    this.#sockets.clear()
  }

  #follow(socket: ListeningHandle): void {
    const { onconnection } = socket
    socket.onconnection = (...args) => {
      this.#accepted += 1
      const [, accepted] = args
      if (isHandle(accepted) && !this.#takes(descriptorOf({ _handle: accepted }))) {
        accepted.close()
        return
      }
      Reflect.apply(onconnection, socket, args)
    }
    this.#sockets.add(socket)
  }
}

/*
 * OfferedConnections uses internal messages of node:cluster (`newconn` out, `ack` back, `close` in), because it has no API
 * for this. test/interop/processes.test.ts pins them. If they change, a client of a worker that dies waits until its own
 * timeout, and a replaced worker may lose one connection in a thousand.
 *
 * - node:cluster offers a connection to a worker and waits for its `ack`. If the worker dies before, the connection would
 *   stay open in the supervisor with no process to answer it.
 * - A worker that stops listening sends `close`, and returns connections that are offered meanwhile, unless it has ended
 *   by then. If the supervisor takes it out of the rotation first, nothing is offered to it any more: the request to close
 *   comes later on the same channel.
 * - When the last worker stops listening, so does the supervisor, and drops the connections that are not handed over.
 */

interface ClusterMessage {
  readonly cmd?: unknown
  readonly act?: unknown
  readonly key?: unknown
  readonly seq?: unknown
  readonly ack?: unknown
}

interface Handle {
  close(): void
}

const CLUSTER = 'NODE_CLUSTER'

const isCluster = (message: unknown): message is ClusterMessage =>
  typeof message === 'object' && message !== null && (message as ClusterMessage).cmd === CLUSTER

const isHandle = (value: unknown): value is Handle =>
  typeof value === 'object' && value !== null && 'close' in value && typeof value.close === 'function'

/** The connections that were offered to one worker process and that it has not accepted yet. */
export class OfferedConnections {
  readonly #child: ChildProcess
  readonly #offered = new Map<unknown, Handle>()
  /** Node's keys of the listeners that the worker shares: ours, and those that a backend module opened. */
  readonly #keys = new Set<unknown>()

  constructor(child: ChildProcess) {
    this.#child = child
    const send = child.send.bind(child) as (...sent: unknown[]) => boolean
    child.send = (...sent: unknown[]): boolean => {
      const [message, handle] = sent
      if (isCluster(message)) this.#inspect(message, handle)
      return send(...sent)
    }
    child.on('internalMessage', (message: unknown) => {
      if (isCluster(message)) this.#offered.delete(message.ack)
    })
    // Their clients then see a closed connection instead of waiting.
    child.once('exit', () => {
      for (const handle of this.#offered.values()) handle.close()
      this.#offered.clear()
    })
  }

  get count(): number {
    return this.#offered.size
  }

  /** Takes the worker out of the rotation. If it was the last one in it, node:cluster closes the port at once. */
  stop(): void {
    for (const key of this.#keys) this.#child.emit('internalMessage', { cmd: CLUSTER, act: 'close', key })
  }

  #inspect({ act, key, seq }: ClusterMessage, handle: unknown): void {
    if (key !== undefined) this.#keys.add(key)
    if (act === 'newconn' && isHandle(handle)) this.#offered.set(seq, handle)
  }
}
