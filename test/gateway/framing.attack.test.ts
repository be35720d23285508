import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { startListener } from '../support/listener.ts'
import { exchangeRaw, openRaw, sendRaw } from '../support/raw-http.ts'

const HOST = 'Host: 127.0.0.1\r\n'
const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`
const SMUGGLED = get('/api/smuggled')

describe('T2.3 framing', () => {
  const refused: readonly (readonly [string, string])[] = [
    ['two Host lines', `GET /api HTTP/1.1\r\n${HOST}Host: evil\r\n\r\n`],
    ['no Host', 'GET /api HTTP/1.1\r\n\r\n'],
    ['no Host in HTTP/1.0', 'GET /api HTTP/1.0\r\n\r\n'],
    ['a malformed Host', 'GET /api HTTP/1.1\r\nHost: a/b\r\n\r\n'],
    ['an empty Host', 'GET /api HTTP/1.1\r\nHost:\r\n\r\n'],
    ['two Authorization lines', get('/api', 'Authorization: Bearer a\r\nauthorization: Bearer b\r\n')],
    ['two Content-Type lines', get('/api', 'Content-Type: a/b\r\nContent-type: c/d\r\n')],
    [
      'two Content-Length lines',
      `POST /api HTTP/1.1\r\n${HOST}Content-Length: 0\r\nContent-Length: 44\r\n\r\n${SMUGGLED}`,
    ],
    [
      'equal Content-Length lines',
      `POST /api HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx`,
    ],
    ['a Content-Length list', `POST /api HTTP/1.1\r\n${HOST}Content-Length: 0, 0\r\n\r\n${SMUGGLED}`],
    ['a signed Content-Length', `POST /api HTTP/1.1\r\n${HOST}Content-Length: +0\r\n\r\n${SMUGGLED}`],
    ['a hexadecimal Content-Length', `POST /api HTTP/1.1\r\n${HOST}Content-Length: 0x0\r\n\r\n${SMUGGLED}`],
    [
      'Content-Length with Transfer-Encoding',
      `POST /api HTTP/1.1\r\n${HOST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
    ],
    [
      'Transfer-Encoding: ,chunked',
      `POST /api HTTP/1.1\r\n${HOST}Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
    ],
    [
      'Transfer-Encoding: identity',
      `POST /api HTTP/1.1\r\n${HOST}Transfer-Encoding: identity\r\n\r\n${SMUGGLED}`,
    ],
    [
      'Transfer-Encoding: gzip, chunked',
      `POST /api HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      'Transfer-Encoding: chunked, gzip',
      `POST /api HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`,
    ],
    [
      'Transfer-Encoding: xchunked',
      `POST /api HTTP/1.1\r\n${HOST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
    ],
    [
      'Transfer-Encoding in two lines',
      `POST /api HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
    ],
    ['Transfer_Encoding', `POST /api HTTP/1.1\r\n${HOST}Transfer_Encoding: chunked\r\n\r\n0\r\n\r\n`],
    [
      'a space before the colon',
      `POST /api HTTP/1.1\r\n${HOST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
    ],
    ['chunks in HTTP/1.0', `POST /api HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['obs-fold', get('/api', 'X-One: a\r\n b\r\n')],
    ['a header line that starts with a space', `GET /api HTTP/1.1\r\n X: y\r\n${HOST}\r\n`],
    ['a bare LF between header lines', `GET /api HTTP/1.1\n${HOST}\n`],
    ['a bare LF within the head', `GET /api HTTP/1.1\r\n${HOST}X: a\nY: b\r\n\r\n`],
    ['a bare CR in a value', get('/api', 'X: a\rb\r\n')],
    ['NUL in a value', get('/api', 'X: a\0b\r\n')],
    ['NUL in a name', get('/api', 'X\0: ab\r\n')],
    ['no colon', get('/api', 'Nonsense\r\n')],
    ['an empty name', get('/api', ': x\r\n')],
    [
      'Connection: Content-Length',
      `POST /api HTTP/1.1\r\n${HOST}Content-Length: 1\r\nConnection: content-length\r\n\r\nx`,
    ],
    ['an unknown HTTP version', `GET /api HTTP/3.7\r\n${HOST}\r\n`],
    ['HTTP/2.0 in a request line', `GET /api HTTP/2.0\r\n${HOST}\r\n`],
    ['HTTP/0.9', 'GET /api\r\n\r\n'],
    ['an unknown method', `FROBNICATE /api HTTP/1.1\r\n${HOST}\r\n`],
    ['a lower-case method', `get /api HTTP/1.1\r\n${HOST}\r\n`],
    ['a TLS hello', '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'],
    ['a space in the target', `GET /api /x HTTP/1.1\r\n${HOST}\r\n`],
  ]

  it.each(refused)('C3.6 refuses %s with an enveloped 400 and closes', async (_what, bytes) => {
    const { port, seen } = await startListener()
    const connection = await openRaw(port)
    connection.send(bytes)
    const { status, headers, body } = await connection.response()
    expect({ status, connection: headers.connection }).toEqual({ status: 400, connection: 'close' })
    expect(JSON.parse(body)).toMatchObject({ Errors: [{ Code: 'API_BAD_REQUEST' }], Data: {} })
    expect(headers['x-request-id']).toMatch(/^[0-9a-f]{32}$/)
    expect(await connection.closed()).toEqual({ reset: false })
    expect(connection.unread).toBe('')
    expect(seen.some(({ head }) => head.rawTarget.includes('smuggled'))).toBe(false)
    connection.destroy()
  })

  it('C3.6 reads chunk extensions and trailers as nothing, and the next request after them as one', async () => {
    const { port, seen } = await startListener()
    const connection = await openRaw(port)
    connection.send(
      `POST /api HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n2;a=b;c="d"\r\nhi\r\n0\r\nX-Late: 1\r\n\r\n${get('/api/next')}`,
    )
    expect((await connection.response()).body).toBe('POST /api hi')
    expect((await connection.response()).body).toBe('GET /api/next ')
    expect(seen.map(({ head }) => head.headers['x-late'])).toEqual([undefined, undefined])
    connection.destroy()
  })

  const brokenBodies: readonly (readonly [string, string])[] = [
    ['a chunk size that is no number', 'zz\r\nhi\r\n0\r\n\r\n'],
    ['a chunk longer than its size', '2\r\nhello\r\n0\r\n\r\n'],
    ['a chunk line ended by a bare LF', '2\nhi\n0\n\n'],
    ['a chunk size that overflows', 'fffffffffffffffff\r\nhi\r\n0\r\n\r\n'],
    ['a NUL in a chunk extension', '2;\0\r\nhi\r\n0\r\n\r\n'],
  ]

  it.each(brokenBodies)('T2.3 answers %s with one 400 and closes', async (_what, body) => {
    const { port } = await startListener()
    const head = `POST /api HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`
    const all = await exchangeRaw(port, head + body + SMUGGLED)
    expect(all).toMatch(/^HTTP\/1\.1 400 /)
    expect(all.match(/HTTP\/1\.1 /g)).toHaveLength(1)
    expect(all).toContain('API_BAD_REQUEST')
  })

  it('T2.3 does not carry out what is pipelined after a request that cannot be read', async () => {
    const { port, seen } = await startListener()
    const all = await exchangeRaw(port, `GET /api HTTP/1.1\r\nBad Header: x\r\n\r\n${SMUGGLED}`)
    expect(all.match(/HTTP\/1\.1 /g)).toHaveLength(1)
    expect(seen).toHaveLength(0)
  })

  it('T2.3 does not answer garbage behind a request that is still being answered', async () => {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const { port, seen } = await startListener(async () => {
      await promise
      return { status: 200, headers: {}, body: 'first' }
    })
    const connection = await openRaw(port)
    connection.send(get('/api'))
    await expect.poll(() => seen.length).toBe(1)
    connection.send('\0garbage\r\n\r\n')
    connection.send('more garbage')
    setImmediate(() => resolve(undefined))
    const first = await connection.response()
    expect(first).toMatchObject({ status: 200, body: 'first' })
    await connection.closed()
    expect(connection.unread).toBe('')
    connection.destroy()
  })

  it('T2.3 counts every header line, however many there are', async () => {
    const { port } = await startListener(undefined, { limits: { headers: 1024 ** 2 } })
    const many = Array.from({ length: 2500 }, (_, at) => `X-${at}: y\r\n`).join('')
    expect(await sendRaw(port, get('/api', many))).toMatchObject({ status: 431 })
  })
})

describe('C4.17 bodies that are not read', () => {
  const refusing = (): ReturnType<typeof startListener> =>
    startListener(() => ({ status: 401, headers: { 'Content-Type': 'text/plain' }, body: 'no' }))

  it('C4.17 leaves the body of a refused call unread, says close, and serves nothing after it', async () => {
    const { port, seen } = await refusing()
    const connection = await openRaw(port)
    connection.send(`POST /api HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello${SMUGGLED}`)
    const answer = await connection.response()
    expect(answer).toMatchObject({ status: 401, body: 'no', headers: { connection: 'close' } })
    expect(await connection.closed()).toEqual({ reset: false })
    expect(connection.unread).toBe('')
    expect(seen).toHaveLength(1)
    expect(seen[0]?.body.readableDidRead).toBe(false)
    connection.destroy()
  })

  it('C4.17 lets a client that goes on sending read the answer before the connection ends', async () => {
    const { port } = await refusing()
    const connection = await openRaw(port)
    connection.send(`POST /api HTTP/1.1\r\n${HOST}Content-Length: 2000000\r\n\r\n`)
    connection.send('x'.repeat(1_000_000))
    const answer = await connection.response()
    expect(answer).toMatchObject({ status: 401, body: 'no' })
    connection.send('x'.repeat(1_000_000))
    expect(await connection.closed()).toEqual({ reset: false })
    connection.destroy()
  })

  it('C4.17 lets each of 100 clients that go on sending after the answer read it whole', async () => {
    const body = 'no '.repeat(3000)
    const { port, seen } = await startListener(() => ({ status: 401, headers: {}, body }))
    for (let served = 0; served < 100; served += 10) {
      const clients = await Promise.all(Array.from({ length: 10 }, () => openRaw(port)))
      const sendAll = (bytes: string): void => clients.forEach((client) => client.send(bytes))
      for (const { socket } of clients) socket.pause()
      sendAll(`POST /api HTTP/1.1\r\n${HOST}Content-Length: 100000\r\n\r\nx`)
      await expect.poll(() => seen.length, { interval: 1 }).toBe(served + clients.length)
      for (let more = 0; more < 10; more += 1) {
        sendAll('x'.repeat(1000))
        await nextTurn()
      }
      for (const { socket } of clients) socket.resume()
      for (const client of clients) {
        expect(await client.response()).toMatchObject({ status: 401, body, whole: true })
        expect(await client.closed()).toEqual({ reset: false })
        client.destroy()
      }
    }
  })

  it('C4.17 cuts a client that never stops sending', async () => {
    const { port } = await refusing()
    const connection = await openRaw(port)
    connection.send(`POST /api HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`)
    const more = (): boolean => connection.socket.write('1000\r\n' + 'x'.repeat(4096) + '\r\n')
    const timer = setInterval(() => void more(), 1)
    const cut = new Promise((resolve) => connection.socket.once('close', resolve))
    connection.socket.on('error', () => undefined)
    await cut
    clearInterval(timer)
  })

  it('C4.17 keeps the connection when the body was read to its end, or there was none', async () => {
    const { port } = await startListener()
    const connection = await openRaw(port)
    connection.send(`POST /api HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello`)
    expect(await connection.response()).toMatchObject({ status: 200, body: 'POST /api hello' })
    connection.send(`POST /api HTTP/1.1\r\n${HOST}Content-Length: 0\r\n\r\n`)
    expect(await connection.response()).toMatchObject({ status: 200, body: 'POST /api ' })
    connection.send(get('/api/again'))
    const last = await connection.response()
    expect(last.body).toBe('GET /api/again ')
    expect(last.headers.connection).toBe('keep-alive')
    connection.destroy()
  })
})
