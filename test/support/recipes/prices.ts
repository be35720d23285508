import { once } from 'node:events'
import { WebSocketServer } from 'ws'
import { record } from './recorder.ts'
import { freePort } from '../free-port.ts'
import type { Service, Surroundings } from './service.ts'

/** A service that tells the price of a fund to whoever sends its code over a websocket. */
export async function startPrices({ portFor, onRequest }: Surroundings): Promise<Service> {
  const hidden = await freePort()
  const server = new WebSocketServer({ port: hidden, host: '127.0.0.1' })
  await once(server, 'listening')
  server.on('connection', (socket) =>
    socket.on('message', (code: Buffer) => socket.send(`{"Fund":"${code.toString()}","Price":"1.2345"}`)),
  )
  const recorder = await record(await portFor(9000), hidden, onRequest)
  return {
    received: () => recorder.requests,
    stop: async () => {
      await recorder.stop()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
