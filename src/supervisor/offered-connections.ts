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
import type { ChildProcess } from 'node:child_process'

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
