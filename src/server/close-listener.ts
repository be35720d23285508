import type { Server } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'

const POLL_MS = 50

export interface CloseTimes {
  /** Milliseconds that new connections are still served, so that whoever balances load can notice. */
  readonly lameDuck: number
  /** Milliseconds after which what is still in flight is cut. */
  readonly drain: number
}

/** As much of fastify as is needed to close it. */
export interface Closable {
  readonly server: Server
  close(): PromiseLike<unknown>
  /** Ends the connections that are no HTTP any more, of which node's own server knows nothing. */
  endTunnels(): void
}

/**
 * Closes a server whose answers say `Connection: close` by now. Fastify's close() alone took 73 s with one keep-alive
 * call in flight, since nothing ends a connection that falls idle later: so idle ones are looked for again and again.
 *
 * @returns how many connections were cut
 */
export async function closeListener(app: Closable, { lameDuck, drain }: CloseTimes): Promise<number> {
  if ((await countConnections(app)) > 0) await wait(lameDuck)
  const closed = app.close()
  const sweep = setInterval(() => app.server.closeIdleConnections(), POLL_MS)
  let cut = 0
  const bound = setTimeout(() => {
    void countConnections(app).then((count) => (cut = count))
    app.endTunnels()
    app.server.closeAllConnections()
  }, drain)
  await closed
  clearInterval(sweep)
  clearTimeout(bound)
  return cut
}

const countConnections = (app: Closable): Promise<number> =>
  new Promise((resolve) => {
    app.server.getConnections((error, count) => resolve(error === null ? count : 0))
  })
