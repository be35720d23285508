import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Below the ports that a system gives out by itself (Linux: from 32768 on). Else another test that listens on port 0 may
 * get the same one before the server listens on it, or while the server is started again.
 */
const FIRST = 20_000
/** Each process that runs tests has ports of its own. */
const OF_PROCESS = 300
const PROCESSES = 40

const from = FIRST + (Number(process.env['VITEST_POOL_ID'] ?? 0) % PROCESSES) * OF_PROCESS
let next = randomInt(OF_PROCESS)

/** A port of loopback that nothing listens on, for a server that cannot choose one itself. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < OF_PROCESS; tries += 1) {
    const port = from + (next++ % OF_PROCESS)
    if (await isFree(port)) return port
  }
  throw new Error(`no port from ${from} on is free`)
}

/** An address of loopback where nobody listens. That of a server that was closed may be another test's next. */
export const urlOfNobody = async (): Promise<string> => `http://127.0.0.1:${await freePort()}`

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
