import type { Socket } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { UpstreamRequest } from '../../src/gateway/upstream/request.ts'
import { openHttpBackend } from '../support/http-backend.ts'
import { makeCall } from '../support/calls.ts'
import { OK, openPool, rawUpstream, textOf, WHOLE } from '../support/upstream-connections.ts'

/** Bytes behind a finished answer that come later than it. The figures of thousands of calls: test/long/prove/late-bytes.ts. */

const FORGED = `${OK}Content-Length: 6\r\n\r\nforged`

/** An upstream whose first connection is answered with `bytes`, every later request with `ok`. */
async function faulty(bytes: string) {
  const sockets: Socket[] = []
  const heads: string[] = []
  const url = await rawUpstream((socket) => {
    const isBad = sockets.push(socket) === 1
    let asked = 0
    socket.on('data', (head) => {
      heads.push(head.toString('latin1'))
      socket.write(isBad && (asked += 1) === 1 ? bytes : WHOLE, 'latin1')
    })
  })
  return { url, sockets, heads, sendLate: (late: string) => sockets[0]!.write(late, 'latin1') }
}

const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`

describe('bytes that come behind an answer, before the next call is written', () => {
  it.each([
    ['a length', WHOLE],
    ['chunks', CHUNKED],
    ['no body', `${OK}Content-Length: 0\r\n\r\n`],
  ])('T2.8 of %s are read by no call that waits for the connection', async (_what, bytes) => {
    const { url, sockets, sendLate } = await faulty(bytes)
    const { call } = openPool(url, { maxConnections: 1 })
    const [first, next] = [call(), call()]
    await first.answer
    sendLate(FORGED)
    expect(await textOf(next.answer)).toBe('ok')
    expect(sockets).toHaveLength(2)
  })

  it('T2.8 are read by no call that finds the connection free', async () => {
    const { url, sockets, heads, sendLate } = await faulty(WHOLE)
    const { call } = openPool(url)
    await call().answer
    sendLate(FORGED)
    const next = call({ method: 'POST', body: Buffer.from('once') })
    expect(await textOf(next.answer)).toBe('ok')
    expect([sockets.length, heads.filter((head) => head.startsWith('POST')).length]).toEqual([2, 1])
  })

  it('T5.1 a call that finds the connection ended meanwhile goes over another one, whatever its method', async () => {
    const { url, sockets, heads } = await faulty(WHOLE)
    const { call } = openPool(url)
    await call().answer
    sockets[0]!.end()
    const next = call({ method: 'POST', body: Buffer.from('once') })
    expect(await textOf(next.answer)).toBe('ok')
    expect([sockets.length, heads.filter((head) => head.startsWith('POST')).length]).toEqual([2, 1])
  })
})

describe('an answer that nothing should follow', () => {
  it.each([
    ['304', 'GET', 'HTTP/1.1 304 X\r\nETag: "a"\r\n\r\n'],
    ['304 with a length', 'GET', 'HTTP/1.1 304 X\r\nContent-Length: 51\r\n\r\n'],
    ['204', 'DELETE', 'HTTP/1.1 204 X\r\n\r\n'],
    ['204 without length', 'GET', 'HTTP/1.1 204 X\r\nContent-Length: 0\r\n\r\n'],
    ['one to HEAD', 'HEAD', `${OK}Content-Length: 51\r\nConnection: keep-alive\r\n\r\n`],
    ['100, and then one', 'GET', `HTTP/1.1 100 X\r\n\r\n${WHOLE}`],
    ['103, and then one', 'GET', `HTTP/1.1 103 X\r\n\r\n${WHOLE}`],
    ['102 and 103, and then one', 'GET', `HTTP/1.1 102 X\r\n\r\nHTTP/1.1 103 X\r\n\r\n${WHOLE}`],
  ])('T2.8 %s is the last over its connection', async (_what, method, bytes) => {
    const { url, sockets, heads, sendLate } = await faulty(bytes)
    const { call } = openPool(url, { maxConnections: 1 })
    const [first, next] = [call({ method }), call()]
    await first.answer
    sendLate(FORGED)
    expect(await textOf(next.answer)).toBe('ok')
    expect([sockets.length, heads.length]).toEqual([2, 2])
  })
})

describe('a connection that is given up behind an answer', () => {
  it.each<[string, Partial<UpstreamRequest>, string, string]>([
    ['304', { method: 'GET' }, 'HTTP/1.1 304 X\r\n\r\n', 'ECONNRESET'],
    ['204', { method: 'DELETE' }, 'HTTP/1.1 204 X\r\n\r\n', 'ECONNRESET'],
    ['one to HEAD', { method: 'HEAD' }, `${OK}Content-Length: 2\r\n\r\n`, 'ECONNRESET'],
    // Some of the body may still be on its way to the upstream.
    ['204', { method: 'POST', body: Buffer.from('a body') }, 'HTTP/1.1 204 X\r\n\r\n', 'end'],
  ])('T5.1 of %s to %j keeps no port that a body need not', async (_what, request, bytes, how) => {
    const ended = Promise.withResolvers<string | undefined>()
    const url = await rawUpstream((socket) => {
      socket.once('data', () => socket.write(bytes))
      socket.once('end', () => ended.resolve('end'))
      socket.once('error', (error: NodeJS.ErrnoException) => ended.resolve(error.code))
    })
    await openPool(url).call(request).answer
    expect(await ended.promise).toBe(how)
  })
})

describe('an upstream that sent bytes behind an answer', () => {
  it('T2.8 gets a connection for each call from then on, and the log says so once', async () => {
    const { url, sockets, heads } = await faulty(WHOLE + FORGED)
    const told: string[] = []
    const backend = openHttpBackend(url, {
      targetChanged: (target, change) => told.push(`${target} ${change}`),
    })
    const ask = async (): Promise<string> => {
      const { body } = await backend.answer(makeCall())
      return body.kind === 'bytes' ? body.bytes.toString() : body.kind
    }
    for (let nth = 1; nth <= 4; nth += 1) {
      expect(await ask()).toBe('ok')
      expect(sockets).toHaveLength(nth)
    }
    expect(heads.map((head) => /\r\nconnection: (\S+)/.exec(head)?.[1])).toEqual([
      'keep-alive',
      'close',
      'close',
      'close',
    ])
    expect(told).toEqual([`${url} distrusted`])
    await backend.close()
  })

  it('T2.8 is trusted again when it sent none for ten minutes', async () => {
    const { url, sockets } = await faulty(WHOLE + FORGED)
    const told: string[] = []
    const backend = openHttpBackend(url, { targetChanged: (_, change) => told.push(change) })
    const ask = () => backend.answer(makeCall())
    await ask()
    await ask()
    expect([sockets.length, told]).toEqual([2, ['distrusted']])
    const later = performance.now() + 10 * 60_000
    const now = vi.spyOn(performance, 'now').mockImplementation(() => later)
    onTestFinished(() => now.mockRestore())
    for (let nth = 0; nth < 3; nth += 1) await ask()
    expect([sockets.length, told]).toEqual([3, ['distrusted', 'trusted']])
    await backend.close()
  })

  it('T2.8 and that are no answer: the call that meets them is sent again, and sees nothing of them', async () => {
    const { url, sockets } = await faulty(`${OK}Content-Length: 2\r\n\r\nok`)
    const backend = openHttpBackend(url)
    const ask = () => backend.answer(makeCall())
    expect((await ask()).body).toMatchObject({ kind: 'bytes' })
    // Between its request and its answer: later than anybody could wait for.
    sockets[0]!.removeAllListeners('data').once('data', () => sockets[0]!.write('the rest of a body'))
    expect((await ask()).body).toMatchObject({ bytes: Buffer.from('ok') })
    expect(sockets).toHaveLength(2)
    await backend.close()
  })
})
