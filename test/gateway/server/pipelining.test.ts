import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, it, onTestFinished } from 'vitest'
import { startListener } from '../../support/listener.ts'
import { openRaw, sendRaw } from '../../support/raw-http.ts'

/** Tells how many requests node has read since it was called. */
function countRequests(): () => number {
  let read = 0
  const count = (): void => void (read += 1)
  subscribe('http.server.request.start', count)
  onTestFinished(() => void unsubscribe('http.server.request.start', count))
  return () => read
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`

it('T5.3 reads no more requests of a connection than one packet while they wait for their turn, and then the rest', async () => {
  const first = Promise.withResolvers<undefined>()
  const { port, seen } = await startListener(async ({ head }) => {
    if (head.rawTarget === '/api/first') await first.promise
    return { status: 200, headers: {}, body: undefined }
  })
  const read = countRequests()
  const many = 20_000
  const flood = await openRaw(port)
  flood.send(get('/api/first'))
  flood.send(get('/api/next').repeat(many))
  for (let others = 0; others < 50; others += 1) await sendRaw(port, get('/api/other'))
  expect(read()).toBeLessThan(50 + 3 * (65_536 / get('/api/next').length))
  expect(seen.filter(({ head }) => head.rawTarget === '/api/next')).toEqual([])
  first.resolve(undefined)
  await expect.poll(() => seen.length).toBe(50 + 1 + many)
  flood.destroy()
})
