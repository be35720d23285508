import { describe, expect, it } from 'vitest'
import { openRaw } from '../../support/raw-http.ts'
import { startListener } from '../../support/listener.ts'

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

/** Connections are silent for long enough before they are closed that a test need not hurry. */
const PATIENT = { timeouts: { silence: 5000 } }

/** Until the port is closed. */
async function untilRefused(port: number): Promise<void> {
  for (;;)
    try {
      const connection = await openRaw(port)
      connection.destroy()
    } catch {
      return
    }
}

describe('T5.10 a listener that drains', () => {
  it('answers a request that comes over a connection that had sent nothing yet', async () => {
    const { port, listener } = await startListener(undefined, PATIENT)
    const fresh = await openRaw(port)
    const closing = listener.close()
    await untilRefused(port)
    fresh.send(get('/api'))
    expect(await fresh.response()).toMatchObject({ status: 200, headers: { connection: 'close' } })
    await fresh.closed()
    expect(await closing).toBe(0)
  })

  it('cuts nothing at once where it may wait for longer than a timer of node can be set for', async () => {
    const { port, listener } = await startListener(undefined, {
      timeouts: { ...PATIENT.timeouts, drain: 2 ** 31 },
    })
    const fresh = await openRaw(port)
    const closing = listener.close()
    await untilRefused(port)
    fresh.send(get('/api'))
    expect(await fresh.response()).toMatchObject({ status: 200, headers: { connection: 'close' } })
    expect(await closing).toBe(0)
  })

  it('answers one more request over a kept connection, and tells that it closes', async () => {
    const { port, listener } = await startListener(undefined, PATIENT)
    const kept = await openRaw(port)
    kept.send(get('/api'))
    expect((await kept.response()).headers.connection).not.toBe('close')
    const closing = listener.close()
    await untilRefused(port)
    kept.send(get('/api'))
    expect(await kept.response()).toMatchObject({ status: 200, headers: { connection: 'close' } })
    await kept.closed()
    expect(await closing).toBe(0)
  })

  it('waits for the rest of a head that has begun to come', async () => {
    const { port, listener } = await startListener(undefined, PATIENT)
    const slow = await openRaw(port)
    slow.send('GET /api HTTP/1.1\r\n')
    const closing = listener.close()
    slow.send('Host: localhost\r\n\r\n')
    expect(await slow.response()).toMatchObject({ status: 200, headers: { connection: 'close' } })
    await slow.closed()
    expect(await closing).toBe(0)
  })

  it('closes silent connections after a while, and carries out nothing that comes too late', async () => {
    const { port, listener, seen } = await startListener(undefined, { timeouts: { silence: 100 } })
    const [silent, late] = [await openRaw(port), await openRaw(port)]
    const closing = listener.close()
    await Promise.all([silent.closed(), late.closed()])
    late.send(get('/api'))
    expect(await closing).toBe(0)
    expect(seen).toEqual([])
    for (const each of [silent, late]) each.destroy()
  })

  it('T5.7 takes connections for as long as a balancer needs to notice, though none is open', async () => {
    const { port, listener } = await startListener(undefined, { timeouts: { lameDuck: 300 } })
    const closing = listener.close()
    const late = await openRaw(port)
    late.send(get('/api'))
    expect(await late.response()).toMatchObject({ status: 200, headers: { connection: 'close' } })
    await late.closed()
    expect(await closing).toBe(0)
  })
})
