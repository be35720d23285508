import { connect, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { WebsocketTunnel } from '../../../src/extensions/websocket/tunnel.ts'
import { eventually } from '../../support/eventually.ts'
import { listen } from '../../support/upstream-connections.ts'

/** A connection: the side of whoever opened it, and ours. */
async function pair(): Promise<{ far: Socket; near: Socket }> {
  const { promise, resolve } = Promise.withResolvers<Socket>()
  const far = connect(await listen(createServer(resolve)), '127.0.0.1')
  far.on('error', () => undefined)
  return { far, near: await promise }
}

it('T5.1 ends within 5 s when the client resets it, though the upstream does not read', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const [client, upstream] = [await pair(), await pair()]
  const tunnel = new WebsocketTunnel(client.near, upstream.near, { endsWithToken: false, idle: 300_000 })
  const ended = Promise.withResolvers<string>()
  tunnel.onEnd(ended.resolve)
  client.near.pipe(upstream.near)
  upstream.far.pause()
  const piece = Buffer.alloc(256 * 1024)
  while (client.far.write(piece) || !client.near.isPaused())
    await new Promise((resolve) => setImmediate(resolve))
  vi.advanceTimersByTime(5000)
  expect(client.near.destroyed).toBe(false)
  client.far.resetAndDestroy()
  await eventually(() => {
    vi.advanceTimersByTime(5000)
    expect(client.near.destroyed).toBe(true)
  })
  expect(await ended.promise).toBe('closed')
  upstream.near.destroy()
})
