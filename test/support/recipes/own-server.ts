import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { record } from './recorder.ts'
import { freePort } from '../free-port.ts'
import type { Service, Surroundings } from './service.ts'

export type Handler = (request: IncomingMessage, response: ServerResponse) => unknown

export interface StartedServer {
  stop(): Promise<void>
}

/** A server of this process. */
export async function listen(handler: Handler, port: number): Promise<StartedServer> {
  const server = createServer((request, response) => void handler(request, response)).listen(
    port,
    '127.0.0.1',
  )
  await once(server, 'listening')
  return {
    stop: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** A service that is a server of this process, behind a recorder. */
export async function ownService({ portFor, onRequest }: Surroundings, handler: Handler): Promise<Service> {
  const hidden = await freePort()
  const server = await listen(handler, hidden)
  const recorder = await record(await portFor(9000), hidden, onRequest)
  return {
    received: () => recorder.requests,
    stop: async () => {
      await recorder.stop()
      await server.stop()
    },
  }
}
