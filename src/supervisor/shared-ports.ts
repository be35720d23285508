/**
 * The listening sockets that node:cluster holds for the workers. It closes one when the last worker lets go of it, and with
 * it all connections that wait to be handed over; a busy machine has dozens of them. So at the end a socket is closed
 * first, when nothing waits in the kernel, and the workers leave when what was accepted has been handed over.
 *
 * Node has no name for these sockets: they are found by its channel for servers that listen, as those that their server
 * has let go of. Where none is found, the workers leave at once, and what waits then is lost.
 */
import { subscribe } from 'node:diagnostics_channel'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ChildProcess } from 'node:child_process'

interface ListeningHandle {
  onconnection: (...args: unknown[]) => void
  close(): void
}

/** Turns of the event loop in which nobody connects, after which no connection waits: each turn accepts one. */
const QUIET_TURNS = 3
/** Under a flood of connections there is no quiet. */
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
  #accepted = 0

  /** To be made before a worker listens. */
  constructor() {
    subscribe('tracing:net.server.listen:asyncEnd', (message) => {
      const { server } = message as { readonly server: { readonly _handle: unknown } }
      const handle = server._handle
      setImmediate(() => {
        if (server._handle === null && isListening(handle)) this.#follow(handle)
      })
    })
  }

  /** Takes no more connections; those that were made by then are handed over. */
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
      Reflect.apply(onconnection, socket, args)
    }
    this.#sockets.add(socket)
  }
}

/**
 * What node:cluster has no words for, done with its own messages (`newconn` out, `ack` back, `close` in), which
 * test/interop/processes.test.ts pins. Should they ever change, a worker that dies leaves a client waiting for as long
 * as it has patience, one that is replaced may lose a connection in a thousand, and nothing else.
 *
 * - A connection is handed to a worker, and its word waited for. Of a worker that dies first it never comes, and the
 *   connection stays open in the supervisor with nobody to answer it.
 * - A worker that stops listening tells it by a message, and what is handed to it meanwhile it gives back; unless it has
 *   ended by then. Taken out of the rotation by the supervisor, it is handed nothing any more before it hears that it
 *   is to stop, since both come by the same channel.
 * - When the last worker stops listening, the supervisor does, and drops the connections that it has not handed over.
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

/** The connections that are offered to one worker process and not taken yet. */
export class OfferedConnections {
  readonly #child: ChildProcess
  readonly #offered = new Map<unknown, Handle>()
  /** What node calls the listeners that the worker takes part in: ours, and what a module may have opened. */
  readonly #keys = new Set<unknown>()

  constructor(child: ChildProcess) {
    this.#child = child
    const send = child.send.bind(child) as (...sent: unknown[]) => boolean
    child.send = (...sent: unknown[]): boolean => {
      const [message, handle] = sent
      if (isCluster(message)) this.#look(message, handle)
      return send(...sent)
    }
    child.on('internalMessage', (message: unknown) => {
      if (isCluster(message)) this.#offered.delete(message.ack)
    })
    // They fail at once.
    child.once('exit', () => {
      for (const handle of this.#offered.values()) handle.close()
      this.#offered.clear()
    })
  }

  get count(): number {
    return this.#offered.size
  }

  /** From now on nothing is offered to it. If nothing is offered to any other either, the port is closed at once. */
  stop(): void {
    for (const key of this.#keys) this.#child.emit('internalMessage', { cmd: CLUSTER, act: 'close', key })
  }

  #look({ act, key, seq }: ClusterMessage, handle: unknown): void {
    if (key !== undefined) this.#keys.add(key)
    if (act === 'newconn' && isHandle(handle)) this.#offered.set(seq, handle)
  }
}
