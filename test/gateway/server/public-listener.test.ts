import { StreamInPieces } from '../../../src/base/http/body/pieces.ts'
import { Readable } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Fault } from '../../../src/base/kernel/faults.ts'
import { compileAuthorities } from '../../../src/base/http/head/request-target.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { bindPublicListener } from '../../../src/gateway/server/public-listener.ts'
import { echoDoor, keepEvents, renderSimply, SERVER_DEFAULTS, startListener } from '../../support/listener.ts'
import { openRaw, sendRaw, exchangeRaw } from '../../support/raw-http.ts'

const HOST = 'Host: 127.0.0.1\r\n'
const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`

/** What would end this process until the end of the test. */
function catchUncaught(): string[] {
  const uncaught: string[] = []
  const others = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', (error) => uncaught.push(String(error)))
  onTestFinished(() => {
    process.removeAllListeners('uncaughtException')
    for (const other of others) process.on('uncaughtException', other)
  })
  return uncaught
}

describe('public listener', () => {
  it('C2.6 answers every request with a fresh X-Request-Id, Date and length', async () => {
    const { port, seen } = await startListener()
    const connection = await openRaw(port)
    connection.send(get('/api/a', 'X-Request-Id: mine\r\n') + get('/api/b'))
    const first = await connection.response()
    const second = await connection.response()
    expect([first.headers['x-request-id'], second.headers['x-request-id']]).toEqual(seen.map(({ id }) => id))
    expect(first.headers['x-request-id']).not.toBe(second.headers['x-request-id'])
    expect(Date.parse(first.headers.date ?? '')).not.toBeNaN()
    expect(first.headers['content-length']).toBe(String(first.body.length))
    connection.destroy()
  })

  it('hands any target and any method that can be parsed to the door as it was sent', async () => {
    const { port, seen } = await startListener()
    const connection = await openRaw(port)
    const targets = ['/%zz', '/a/../b', '//x', '/a?b=%zz&c', '/a;b', '/' + 'p'.repeat(500), '*']
    for (const method of ['GET', 'PROPFIND', 'QUERY', 'M-SEARCH', 'OPTIONS']) {
      for (const target of targets) {
        const { status } = await sendRaw(port, `${method} ${target} HTTP/1.1\r\n${HOST}\r\n`)
        expect([200, 400, 404]).toContain(status)
        expect(seen.at(-1)?.head).toMatchObject({ method, rawTarget: target })
      }
    }
    connection.destroy()
  })

  it('C3.6 answers TRACE 405 with Allow, CONNECT 400 and OPTIONS * 404', async () => {
    const { port, events } = await startListener()
    const trace = await sendRaw(port, `TRACE /api HTTP/1.1\r\n${HOST}\r\n`)
    expect(trace).toMatchObject({ status: 405, headers: { allow: expect.stringContaining('GET') } })
    const bytes = `CONNECT 127.0.0.1:80 HTTP/1.1\r\n${HOST}Accept: application/xml\r\n\r\nmore bytes`
    const connect = await exchangeRaw(port, bytes)
    expect(connect).toMatch(/^HTTP\/1\.1 400 .*\r\nX-Request-Id: [0-9a-f]{32}\r\n/)
    expect(connect).toContain('<Code>API_BAD_REQUEST</Code>')
    expect(events.decisions.at(-1)).toMatchObject({
      door: 'none',
      fault: { code: 'connect_refused' },
      status: 400,
    })
    expect(await sendRaw(port, `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`)).toMatchObject({ status: 404 })
  })

  it('C3.6 serves absolute-form targets of its own authority and refuses others', async () => {
    const { port } = await startListener()
    const own = await sendRaw(port, `GET http://127.0.0.1:${port}/api/x HTTP/1.1\r\n${HOST}\r\n`)
    expect(own.body).toBe('GET /api/x ')
    expect(await sendRaw(port, `GET http://evil/api/x HTTP/1.1\r\n${HOST}\r\n`)).toMatchObject({
      status: 400,
    })
  })

  it('C2.3 tells a target that is too long (414) from headers that are too large (431)', async () => {
    const { port } = await startListener()
    const status = async (bytes: string): Promise<number> => (await sendRaw(port, bytes)).status
    expect(await status(get('/api/' + 'a'.repeat(9000)))).toBe(414)
    expect(await status(get('/api/' + 'a'.repeat(60_000)))).toBe(414)
    expect(await status(get('/api/' + 'a'.repeat(300_000)))).toBe(414)
    expect(await status(get('/api', `X: ${'a'.repeat(17_000)}\r\n`))).toBe(431)
    expect(await status(get('/api', `X: ${'a'.repeat(60_000)}\r\n`))).toBe(431)
    expect(await status(get('/api', 'X: y\r\n'.repeat(101)))).toBe(431)
    expect(await status(get('/api', `${'X: y'.repeat(40)}\r\n`.repeat(400)))).toBe(431)
  })

  it('C2.4 answers unreadable bytes in the format of the Accept that can be made out', async () => {
    const { port } = await startListener()
    const bad = (accept: string): Promise<string> =>
      exchangeRaw(port, `GET /api HTTP/1.1\r\n${HOST}Accept: ${accept}\r\nbad header\r\n\r\n`)
    expect(await bad('application/xml')).toContain('<Code>')
    expect(await bad('application/json;q=0.1, application/vnd.postern.action.v9+xml')).toContain('<Code>')
    expect(await bad('text/html')).toContain('"Errors"')
  })

  it('T2.5 serves an Upgrade to anything as plain HTTP/1.1 and keeps the connection usable', async () => {
    const { port } = await startListener()
    const connection = await openRaw(port)
    for (const protocol of ['h2c', 'websocket', 'TLS/1.0']) {
      const headers = `Connection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocol}\r\nHTTP2-Settings: AAMAAABk\r\n`
      connection.send(get('/api/up', headers))
      expect(await connection.response()).toMatchObject({ status: 200, body: 'GET /api/up ' })
      connection.send(`POST /api/up HTTP/1.1\r\n${HOST}${headers}Content-Length: 4\r\n\r\nbody`)
      expect(await connection.response()).toMatchObject({ status: 200, body: 'POST /api/up body' })
    }
    connection.destroy()
  })

  it('T2.1 T2.5 takes no Upgrade of a method but GET, of HTTP/1.0 or with a body, whatever protocol is offered', async () => {
    const { port, seen } = await startListener(undefined, { takesUpgrade: () => true })
    const upgrade = 'Connection: Upgrade\r\nUpgrade: anything\r\n'
    const connection = await openRaw(port)
    connection.send(`POST /api/up HTTP/1.1\r\n${HOST}${upgrade}Content-Length: 4\r\n\r\nbody`)
    expect(await connection.response()).toMatchObject({ status: 200, body: 'POST /api/up body' })
    connection.send(`DELETE /api/up HTTP/1.1\r\n${HOST}${upgrade}\r\n`)
    expect((await connection.response()).status).toBe(200)
    connection.send(get('/api/up', `${upgrade}Content-Length: 4\r\n`) + 'body')
    expect((await connection.response()).status).toBe(200)
    connection.send(get('/api/up', `${upgrade}Transfer-Encoding: chunked\r\n`) + '0\r\n\r\n')
    expect((await connection.response()).status).toBe(200)
    connection.destroy()
    await sendRaw(port, `GET /api/up HTTP/1.0\r\n${HOST}${upgrade}\r\n`)
    expect(seen.map((exchange) => exchange.upgrade)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    const taken = await openRaw(port)
    taken.send(get('/api/up', upgrade))
    await taken.response()
    expect(seen.at(-1)?.upgrade).toBeDefined()
    taken.destroy()
  })

  it('T2.6 sends 100 Continue only when the body is about to be read', async () => {
    const { port } = await startListener()
    const head = `POST /api HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`
    const connection = await openRaw(port)
    connection.send(head)
    expect(await connection.response()).toMatchObject({ status: 100 })
    connection.send('hi')
    expect(await connection.response()).toMatchObject({ status: 200, body: 'POST /api hi' })
    connection.send(head)
    expect(await connection.response()).toMatchObject({ status: 100 })
    connection.destroy()
  })

  it('T2.6 C4.17 refuses an expecting client without asking for its body', async () => {
    const { port } = await startListener(() => ({ status: 401, headers: {}, body: 'no' }))
    const connection = await openRaw(port)
    connection.send(`POST /api HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`)
    expect(await connection.response()).toMatchObject({ status: 401, headers: { connection: 'close' } })
    await connection.closed()
    connection.destroy()
  })

  it('T2.6 ignores expectations that it does not know, and any in HTTP/1.0', async () => {
    const { port } = await startListener()
    const odd = await sendRaw(port, get('/api', 'Expect: the-unexpected\r\n'))
    expect(odd).toMatchObject({ status: 200 })
    const old = `POST /api HTTP/1.0\r\n${HOST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi`
    expect(await sendRaw(port, old)).toMatchObject({ status: 200, body: 'POST /api hi' })
  })

  it('answers pipelined requests in order, one at a time', async () => {
    let running = 0
    let most = 0
    const { port } = await startListener(async (exchange) => {
      running += 1
      most = Math.max(most, running)
      await new Promise((resolve) => setImmediate(resolve))
      running -= 1
      return { status: 200, headers: {}, body: exchange.head.rawTarget }
    })
    const connection = await openRaw(port)
    connection.send(Array.from({ length: 100 }, (_, at) => get(`/api/${at}`)).join(''))
    for (let at = 0; at < 100; at++) expect((await connection.response()).body).toBe(`/api/${at}`)
    expect(most).toBe(1)
    connection.destroy()
  })

  it('carries out nothing that follows an answer which closes the connection', async () => {
    const { port, seen } = await startListener(() => ({ status: 200, headers: {}, body: 'bye', close: true }))
    const all = await exchangeRaw(port, get('/api/1') + get('/api/2') + get('/api/3'))
    expect(all.match(/HTTP\/1\.1 200/g)).toHaveLength(1)
    expect(seen).toHaveLength(1)
  })

  it('C2.3 envelopes what a door throws, records it once, and tells nothing of it', async () => {
    for (const door of [
      () => {
        throw new Error('secret 10.0.0.1')
      },
      () => Promise.reject(new Error('secret 10.0.0.1')),
      () => ({ status: 200, headers: { 'X-Bad': 'a\r\nSet-Cookie: b=c' }, body: 'x' }),
    ]) {
      const { port, events } = await startListener(door)
      const answer = await sendRaw(port, get('/api'))
      expect(answer.status).toBe(500)
      expect(answer.body).toContain('API_INTERNAL_ERROR')
      expect(answer.body).not.toContain('secret')
      expect(answer.headers['set-cookie']).toBeUndefined()
      expect(events.decisions).toMatchObject([{ door: 'none', fault: { code: 'internal' }, status: 500 }])
    }
  })

  it('C2.3 sends nothing of an error for which the entrance has no answer, and the process gets to know it', async () => {
    const { port, events } = await startListener(() => {
      throw new Error('a defect of the door')
    })
    events.decision = () => {
      throw new Error('secret 10.0.0.1')
    }
    const uncaught = catchUncaught()
    for (const method of ['GET', 'PURGE', 'UNLINK'])
      for (const target of ['/api', '/%zz'])
        expect(await exchangeRaw(port, get(target).replace('GET', method))).toBe('')
    expect(uncaught).toEqual(Array(6).fill('Error: secret 10.0.0.1'))
  })

  it('answers HEAD with the headers of GET and no body', async () => {
    const { port } = await startListener(() => ({ status: 200, headers: { 'X-A': 'b' }, body: 'four' }))
    const connection = await openRaw(port)
    connection.send(`HEAD /api HTTP/1.1\r\n${HOST}\r\n`)
    const head = await connection.response({ head: true })
    expect(head.headers).toMatchObject({ 'content-length': '4', 'x-a': 'b' })
    connection.send(get('/api'))
    expect(await connection.response()).toMatchObject({ body: 'four' })
    connection.destroy()
  })

  it('C7.4 gives a request without a body one that is empty, and that costs no connection to drop', async () => {
    const { port } = await startListener(async ({ body, head }) => {
      if (head.method === 'GET') body.destroy()
      else for await (const chunk of body) expect(chunk).toBe('nothing')
      return { status: 200, headers: {}, body: head.method }
    })
    const connection = await openRaw(port)
    for (const method of ['GET', 'POST', 'DELETE', 'GET']) {
      for (const framing of ['', 'Content-Length: 0\r\n']) {
        connection.send(`${method} /api HTTP/1.1\r\n${HOST}${framing}\r\n`)
        expect(await connection.response()).toMatchObject({ status: 200, body: method })
      }
    }
    connection.destroy()
  })

  it('sends 204 and 304 without body or length, and an absent body as length 0', async () => {
    let status = 204
    const { port } = await startListener(() => ({
      status,
      headers: {},
      body: status === 200 ? undefined : 'x',
    }))
    const connection = await openRaw(port)
    for (status of [204, 304]) {
      connection.send(get('/api'))
      const { headers } = await connection.response()
      expect([headers['content-length'], headers['transfer-encoding']]).toEqual([undefined, undefined])
    }
    status = 200
    connection.send(get('/api'))
    expect((await connection.response()).headers['content-length']).toBe('0')
    connection.destroy()
  })

  it('C8.3 drops hop-by-hop headers and a foreign request id of an answer', async () => {
    const headers = {
      Connection: 'X-Secret',
      'Keep-Alive': 'timeout=9',
      'Transfer-Encoding': 'chunked',
      'content-length': '999',
      'x-request-id': 'theirs',
      'Set-Cookie': ['a=1', 'b=2'],
    }
    const { port } = await startListener(() => ({ status: 200, headers, body: 'ok' }))
    const answer = await sendRaw(port, get('/api'))
    expect(answer).toMatchObject({ body: 'ok', whole: true, headers: { 'content-length': '2' } })
    expect(answer.rawHeaders.filter(([name]) => name === 'Set-Cookie')).toHaveLength(2)
    expect(answer.rawHeaders.filter(([name]) => name.toLowerCase() === 'x-request-id')).toHaveLength(1)
    expect(answer.headers['transfer-encoding']).toBeUndefined()
    expect(answer.headers['keep-alive']).not.toBe('timeout=9')
  })

  it('C8.3 sends the bytes of a header as they are, whatever its body is made of', async () => {
    const headers = { 'Content-Disposition': 'attachment; filename="\xe9"', 'X-Latin-1': '\xc3\xa9' }
    const bodies = [
      '',
      'text',
      'été 😀',
      Buffer.from('bytes'),
      Buffer.from('é'),
      'é'.repeat(20_000),
      undefined,
    ]
    for (const body of bodies) {
      const { port } = await startListener(() => ({ status: 200, headers, body }))
      const answer = await sendRaw(port, get('/api'))
      expect(answer.headers['content-disposition']).toBe(headers['Content-Disposition'])
      expect(answer.headers['x-latin-1']).toBe(headers['X-Latin-1'])
      expect(answer).toMatchObject({ body: String(body ?? ''), whole: true })
    }
  })
})

describe('streamed answers', () => {
  const streaming = (
    chunks: () => Iterable<string> | AsyncIterable<string>,
    headers: Record<string, string> = {},
  ) =>
    startListener(() => ({
      status: 200,
      headers,
      body: new StreamInPieces(Readable.from(chunks(), { objectMode: false })),
    }))

  it('are chunked for HTTP/1.1 and end with the connection for HTTP/1.0', async () => {
    const { port } = await streaming(() => ['one', 'two'])
    const modern = await sendRaw(port, get('/api'))
    expect(modern).toMatchObject({ body: 'onetwo', whole: true, headers: { 'transfer-encoding': 'chunked' } })
    const old = await sendRaw(port, `GET /api HTTP/1.0\r\n${HOST}TE: chunked\r\n\r\n`)
    expect(old).toMatchObject({ body: 'onetwo', headers: { connection: 'close' } })
    expect(old.headers['transfer-encoding']).toBeUndefined()
  })

  it('keep a declared length, and are cut when they are shorter or longer', async () => {
    const whole = await streaming(() => ['one', 'two'], { 'Content-Length': '6' })
    expect(await sendRaw(whole.port, get('/api'))).toMatchObject({
      body: 'onetwo',
      headers: { 'content-length': '6' },
    })
    const short = await streaming(() => ['one'], { 'Content-Length': '6' })
    expect(await sendRaw(short.port, get('/api'))).toMatchObject({ body: 'one', whole: false })
    const long = await streaming(() => ['one', 'twelve'], { 'Content-Length': '6' })
    expect(await exchangeRaw(long.port, get('/api'))).not.toContain('twelve')
  })

  it('C8.4 T5.2 cut the connection when the source fails, so that they never look whole', async () => {
    async function* failing(): AsyncGenerator<string> {
      yield 'part'
      await Promise.resolve()
      throw new Error('upstream reset')
    }
    const { port } = await streaming(failing)
    for (const version of ['1.1', '1.0']) {
      const connection = await openRaw(port)
      connection.send(`GET /api HTTP/${version}\r\n${HOST}\r\n`)
      const { reset } = await connection.closed()
      const whole = connection.unread.endsWith('0\r\n\r\n')
      expect(whole).toBe(false)
      if (version === '1.0') expect(reset).toBe(true)
      connection.destroy()
    }
  })

  it('are destroyed, and the door told, when the client leaves', async () => {
    const gone = Promise.withResolvers<string>()
    const source = new Readable({
      read() {
        this.push('x'.repeat(1000))
      },
      destroy(_error, done) {
        gone.resolve('destroyed')
        done(null)
      },
    })
    const told = Promise.withResolvers<string>()
    const { port } = await startListener((exchange) => {
      exchange.onGone(() => told.resolve('told'))
      return { status: 200, headers: {}, body: new StreamInPieces(source) }
    })
    const connection = await openRaw(port)
    connection.send(get('/api'))
    await expect.poll(() => connection.unread.length).toBeGreaterThan(100)
    connection.destroy()
    expect(await Promise.all([gone.promise, told.promise])).toEqual(['destroyed', 'told'])
  })
})

describe('time', () => {
  it('T5.1 tells a waiting door when its client leaves', async () => {
    const told = Promise.withResolvers<string>()
    const { port, seen } = await startListener((exchange) => {
      exchange.onGone(() => told.resolve('told'))
      return new Promise(() => undefined)
    })
    const connection = await openRaw(port)
    connection.send(get('/api'))
    await expect.poll(() => seen.length).toBe(1)
    connection.destroy()
    expect(await told.promise).toBe('told')
  })

  it('fails the reading of a body, and tells the door, when the client leaves in the middle of it', async () => {
    const failed = Promise.withResolvers<unknown>()
    const read = Promise.withResolvers<undefined>()
    const told = Promise.withResolvers<string>()
    const { port } = await startListener(async (exchange) => {
      exchange.onGone(() => told.resolve('told'))
      try {
        for await (const chunk of exchange.body) {
          expect(String(chunk)).toBe('abc')
          read.resolve(undefined)
        }
      } catch (thrown) {
        failed.resolve(thrown)
      }
      return { status: 200, headers: {}, body: 'too late' }
    })
    const connection = await openRaw(port)
    connection.send(`POST /api HTTP/1.1\r\n${HOST}Content-Length: 1000\r\n\r\nabc`)
    await read.promise
    connection.destroy()
    expect(await failed.promise).toMatchObject({ code: 'client_gone' })
    expect(await told.promise).toBe('told')
  })

  it('T5.3 answers a head that does not come in time, and drops a connection on which nothing came', async () => {
    const { port } = await startListener(undefined, { timeouts: { headers: 300 } })
    const silent = await openRaw(port)
    const slow = await openRaw(port)
    slow.send('GET /api HTTP/1.1\r\nHost:')
    const answer = await slow.response()
    expect(answer).toMatchObject({ status: 400, headers: { connection: 'close' } })
    expect(answer.body).toContain('in time')
    await silent.closed()
    expect(silent.unread).toBe('')
    for (const each of [silent, slow]) each.destroy()
  })

  it('T5.3 ends a body that trickles in, with an answer that says so', async () => {
    const { port } = await startListener(undefined, { timeouts: { request: 300 } })
    const slow = await openRaw(port)
    slow.send(`POST /api HTTP/1.1\r\n${HOST}Content-Length: 1000\r\n\r\nabc`)
    const answer = await slow.response()
    expect(answer).toMatchObject({ status: 400, headers: { connection: 'close' } })
    slow.destroy()
  })

  it('waits with requests that come before the doors are open', async () => {
    const listener = await bindPublicListener({
      config: SERVER_DEFAULTS,
      trustedProxies: undefined,
      recorder: keepEvents(),
      clock: systemClock,
    })
    const early = await openRaw(listener.port)
    early.send(get('/api/early'))
    early.send(get('/api/second'))
    const url = `http://127.0.0.1:${listener.port}`
    listener.open({
      doors: { api: echoDoor, description: echoDoor, identity: undefined },
      authorities: compileAuthorities([url]),
      renderFault: renderSimply,
    })
    expect((await early.response()).body).toBe('GET /api/early ')
    expect((await early.response()).body).toBe('GET /api/second ')
    early.destroy()
    await listener.close()
  })
})

describe('draining', () => {
  it('finishes calls in flight, says close on every answer, then takes no more connections', async () => {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const { port, seen, listener } = await startListener(async () => {
      await promise
      return { status: 200, headers: {}, body: 'done' }
    })
    const idle = await openRaw(port)
    const busy = await openRaw(port)
    busy.send(get('/api'))
    await expect.poll(() => seen.length).toBe(1)
    const closing = listener.close()
    await idle.closed()
    resolve(undefined)
    expect(await busy.response()).toMatchObject({
      status: 200,
      body: 'done',
      headers: { connection: 'close' },
    })
    await busy.closed()
    for (const each of [idle, busy]) each.destroy()
    expect(await closing).toBe(0)
    await expect(openRaw(port)).rejects.toThrow()
  })

  it('cuts what is still in flight when its time is over, and says how much that was', async () => {
    const { port, seen, listener } = await startListener(() => new Promise(() => undefined), {
      timeouts: { drain: 200 },
    })
    const busy = await openRaw(port)
    busy.send(get('/api'))
    await expect.poll(() => seen.length).toBe(1)
    expect(await listener.close()).toBe(1)
    await busy.closed()
    busy.destroy()
  })
})

describe('routing', () => {
  it('C2.3 sends /api to the api door and everything else to the identity door', async () => {
    const { port, seen } = await startListener(undefined, {
      identity: () => ({ status: 200, headers: {}, body: 'identity' }),
    })
    for (const path of ['/connect/token', '/.well-known/jwks.json', '/', '/x/api', '/apiary']) {
      expect((await sendRaw(port, get(path))).body).toBe('identity')
    }
    for (const path of ['/api', '/api/1.0', '/api/connect/token']) {
      await sendRaw(port, get(path))
      expect(seen.at(-1)?.head.rawTarget).toBe(path)
    }
  })

  it('C3.4 hands targets that cannot be read to the api door, wherever they point', async () => {
    const { port, seen } = await startListener(
      (exchange) => renderSimply(exchange.target as Fault, undefined),
      { identity: () => ({ status: 200, headers: {}, body: 'identity' }) },
    )
    expect((await sendRaw(port, get('/connect/..%2fapi'))).status).toBe(400)
    expect(seen).toHaveLength(1)
  })
})
