/**
 * node:cluster hands a connection to a worker and waits for its word. A worker that dies first never gives it, and the
 * connection stays open in the supervisor with nobody to answer it: its client would wait for as long as it has
 * patience. Node has no hook for this; what is relied on here are its own messages (`newconn` out, `ack` back), which
 * test/interop/processes.test.ts pins. Should they ever change, we are back at the waiting client, and nothing else.
 */
import type { ChildProcess } from 'node:child_process'

interface ClusterMessage {
  readonly cmd?: unknown
  readonly act?: unknown
  readonly seq?: unknown
  readonly ack?: unknown
}

interface Handle {
  close(): void
}

const isCluster = (message: unknown): message is ClusterMessage =>
  typeof message === 'object' && message !== null && (message as ClusterMessage).cmd === 'NODE_CLUSTER'

const isHandle = (value: unknown): value is Handle =>
  typeof value === 'object' && value !== null && 'close' in value && typeof value.close === 'function'

/** Closes the connections that were offered to a worker process which ends before it took them: they fail at once. */
export function closeLostConnections(child: ChildProcess): void {
  const offered = new Map<unknown, Handle>()
  const send = child.send.bind(child) as (...sent: unknown[]) => boolean
  child.send = (...sent: unknown[]): boolean => {
    const [message, handle] = sent
    if (isCluster(message) && message.act === 'newconn' && isHandle(handle)) offered.set(message.seq, handle)
    return send(...sent)
  }
  child.on('internalMessage', (message: unknown) => {
    if (isCluster(message)) offered.delete(message.ack)
  })
  child.once('exit', () => {
    for (const handle of offered.values()) handle.close()
    offered.clear()
  })
}
