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

interface ListeningHandle {
  onconnection: (...told: unknown[]) => void
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
    socket.onconnection = (...told) => {
      this.#accepted += 1
      Reflect.apply(onconnection, socket, told)
    }
    this.#sockets.add(socket)
  }
}
