import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { urlOfNobody } from '../../support/free-port.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { postern, startPostern, type StartedPostern, type StartOptions } from '../../support/start-postern.ts'
import { at, streaming, type StreamChanges } from '../../support/streaming.ts'
import { openUpstream, type Upstream, type UpstreamBehaviour } from '../../support/start-upstream.ts'
import { ALL_AT_ACME, basic, issueToken } from '../../support/tokens.ts'
import {
  askWebsocket,
  closeOf,
  messageOn,
  startWebsocketUpstream,
  type Asked,
  type WebsocketUpstream,
} from '../../support/websocket-upstream.ts'

/** Websockets of the `ws` package's client to its server, through the gateway. */

const LIVE = at('live/lobby')

interface Scene {
  readonly gateway: StartedPostern
  readonly upstream: WebsocketUpstream
  readonly token: string
  readonly ask: (
    target?: string,
    headers?: Record<string, string>,
    options?: Parameters<typeof askWebsocket>[1],
  ) => Promise<Asked>
  readonly open: (target?: string) => Promise<WebSocket>
}

async function scene(changes?: StreamChanges, options: StartOptions = {}): Promise<Scene> {
  const upstream = await startWebsocketUpstream()
  const base = streaming(upstream.url, changes)
  const gateway = await postern({
    ...base,
    ...options,
    change: (loaded) => options.change?.(base.change!(loaded)) ?? base.change!(loaded),
  })
  const token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
  const ask: Scene['ask'] = (target = LIVE, headers = { Authorization: `Bearer ${token}` }, more = {}) =>
    askWebsocket(gateway.baseUrl.replace('http', 'ws') + target, { headers, ...more })
  const open = async (target?: string): Promise<WebSocket> => {
    const asked = await ask(target)
    if (asked.kind !== 'open') throw new Error(`${asked.status} ${asked.body}`)
    return asked.socket
  }
  return { gateway, upstream, token, ask, open }
}

const metric = async ({ adminUrl }: StartedPostern, name: string): Promise<string | undefined> =>
  (await (await fetch(`${adminUrl}/metrics`)).text()).split('\n').find((line) => line.startsWith(name))

describe('C8.1 websockets through the gateway', () => {
  it('C8.1 passes text, binary and large messages both ways', async () => {
    const { open } = await scene()
    const socket = await open()
    socket.send('hello')
    expect(await messageOn(socket)).toEqual({ data: Buffer.from('hello'), isBinary: false })
    socket.send(Buffer.of(0, 255, 13, 10))
    expect(await messageOn(socket)).toEqual({ data: Buffer.of(0, 255, 13, 10), isBinary: true })
    const large = Buffer.alloc(20 * 1024 ** 2, 'postern')
    socket.send(large)
    expect((await messageOn(socket)).data.equals(large)).toBe(true)
  })

  it('C8.2 tells the upstream who calls, and not the token', async () => {
    const { open, upstream, gateway } = await scene()
    await open(`${LIVE}?a=1&b=%2F`)
    const [handshake] = upstream.handshakes
    expect(handshake?.url).toBe(`${LIVE}?a=1&b=%2F`)
    expect(handshake?.headers).toMatchObject({
      'x-postern-client': 'acme-books',
      'x-postern-business': 'ACME',
      'x-forwarded-for': '127.0.0.1',
      host: new URL(upstream.url).host,
    })
    expect(handshake?.headers.authorization).toBeUndefined()
    expect(gateway.log()).toContainEqual(
      expect.objectContaining({ event: 'call', status: 101, action: 'live/{room}', client: 'acme-books' }),
    )
  })

  it('C8.1 leaves subprotocol and compression to the two sides', async () => {
    const { ask } = await scene()
    const asked = await ask(undefined, undefined, { protocols: ['books.v1', 'books.v2'] })
    if (asked.kind !== 'open') throw new Error('refused')
    expect(asked.socket.protocol).toBe('books.v1')
    expect(asked.socket.extensions).toContain('permessage-deflate')
    asked.socket.send('compressed'.repeat(100))
    expect((await messageOn(asked.socket)).data.toString()).toBe('compressed'.repeat(100))
  })

  it('C8.1 passes close codes both ways', async () => {
    const { open, upstream } = await scene()
    const first = await open()
    first.close(4001, 'enough')
    const [seen] = await Promise.all([closeOf(upstream.sockets[0]!), closeOf(first)])
    expect(seen).toEqual({ code: 4001, reason: 'enough' })
    const second = await open()
    upstream.sockets[1]?.close(4002, 'go')
    expect(await closeOf(second)).toEqual({ code: 4002, reason: 'go' })
  })

  it('C8.4 ends the client’s websocket when the upstream breaks off, and the upstream’s when the client does', async () => {
    const { open, upstream } = await scene()
    const first = await open()
    upstream.sockets[0]?.terminate()
    expect((await closeOf(first)).code).toBe(1006)
    const second = await open()
    const closed = closeOf(upstream.sockets[1]!)
    second.terminate()
    expect((await closed).code).toBe(1006)
  })

  it('C11.1 counts what is open, and what ended how', async () => {
    const { open, gateway } = await scene()
    const sockets = [await open(), await open()]
    expect(await metric(gateway, 'postern_tunnels_open{backend="funds"}')).toMatch(/ 2$/)
    const ended = 'postern_tunnels_ended_total{backend="funds",end="closed"}'
    for (const socket of sockets) socket.close()
    await expect.poll(() => metric(gateway, ended)).toMatch(/ 2$/)
    expect(await metric(gateway, 'postern_tunnels_open{backend="funds"}')).toMatch(/ 0$/)
    expect(gateway.log()).toContainEqual(expect.objectContaining({ event: 'tunnel', end: 'closed' }))
  })
})

describe('C4 refusals before the upgrade', () => {
  it.each([
    ['without a token', LIVE, {}, 401, 'API_NOT_AUTHORISED'],
    ['with a bad token', LIVE, { Authorization: 'Bearer x.y.z' }, 401, 'API_NOT_AUTHORISED'],
    ['of another business', LIVE.replace('ACME', 'GLOBEX'), undefined, 404, 'API_NOT_FOUND'],
    ['of an unknown version of the API', LIVE.replace('1.0', '9.9'), undefined, 501, 'API_NOT_IMPLEMENTED'],
  ] as const)('C4 answers an upgrade %s in an envelope', async (_what, target, headers, status, code) => {
    const { ask, token, upstream } = await scene()
    const asked = await ask(target, headers ?? { Authorization: `Bearer ${token}` })
    expect(asked).toMatchObject({ kind: 'refused', status })
    if (asked.kind !== 'refused') return
    expect(JSON.parse(asked.body)).toMatchObject({ Errors: [{ Code: code }], Data: {} })
    expect(asked.headers).toMatchObject({ connection: 'close', 'x-request-id': expect.any(String) })
    if (status === 401) expect(asked.headers['www-authenticate']).toContain('Bearer realm=')
    expect([upstream.handshakes, upstream.requests]).toEqual([[], []])
  })

  it('C4.10 answers 406 where Accept allows nothing, and errors in XML where it says so', async () => {
    const { ask, token } = await scene()
    const authorization = { Authorization: `Bearer ${token}` }
    expect(await ask(LIVE, { ...authorization, Accept: 'image/png' })).toMatchObject({ status: 406 })
    const xml = await ask(LIVE, { Accept: 'application/xml' })
    expect(xml).toMatchObject({ status: 401, headers: { 'content-type': 'application/xml; charset=utf-8' } })
  })

  it('C4.9 answers 503 under maintenance of the backend, and leaves what is open alone', async () => {
    const { ask, open, gateway } = await scene()
    const socket = await open()
    gateway.switches.set([{ scope: { kind: 'backend', name: 'funds' }, retryAfter: 9 }])
    expect(await ask()).toMatchObject({ status: 503, headers: { 'retry-after': '9' } })
    socket.send('still here')
    expect((await messageOn(socket)).data.toString()).toBe('still here')
  })
})

describe('C4.16 websockets and the token that opened them', () => {
  it('C4.16 ends a websocket with 1008 when the token expires', async () => {
    const clock = movableClock(Date.now())
    const { open } = await scene(undefined, { clock })
    const socket = await open()
    clock.advance(24 * 60 * 60 * 1000)
    expect(await closeOf(socket)).toEqual({ code: 1008, reason: 'The access token is valid no more' })
  })

  it('C4.16 ends a websocket with 1008 when the token is revoked, and no other', async () => {
    const { open, gateway, token, ask } = await scene()
    const socket = await open()
    const other = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
    const kept = await ask(undefined, { Authorization: `Bearer ${other}` })
    if (kept.kind !== 'open') throw new Error('refused')
    const revoked = await fetch(`${gateway.authUrl}/connect/revocation`, {
      method: 'POST',
      headers: { Authorization: basic('acme-books') },
      body: new URLSearchParams({ token }),
    })
    expect(revoked.status).toBe(200)
    expect((await closeOf(socket)).code).toBe(1008)
    kept.socket.send('kept')
    expect((await messageOn(kept.socket)).data.toString()).toBe('kept')
    expect(await ask()).toMatchObject({ status: 401 })
  })

  it('C4.16 ends it between two messages, in the midst of a large one too', async () => {
    const clock = movableClock(Date.now())
    const { open, upstream } = await scene(undefined, { clock })
    const socket = await open()
    const size = 8 * 1024 ** 2
    const received: number[] = []
    socket.on('message', (data: Buffer) => received.push(data.length))
    const sender = upstream.sockets[0]!
    const more = (): void => {
      if (sender.readyState === 1) sender.send(Buffer.alloc(size), { compress: false }, more)
    }
    more()
    await expect.poll(() => received.length).toBeGreaterThan(1)
    clock.advance(24 * 60 * 60 * 1000)
    expect((await closeOf(socket)).code).toBe(1008)
    expect(new Set(received)).toEqual(new Set([size]))
  })

  it('C4.16 leaves it open where the backend says so', async () => {
    const clock = movableClock(Date.now())
    const { open, ask } = await scene({ closeOnExpiry: false }, { clock })
    const socket = await open()
    clock.advance(24 * 60 * 60 * 1000)
    expect(await ask()).toMatchObject({ status: 401 })
    for (let round = 0; round < 5; round++) {
      socket.send('still here')
      expect((await messageOn(socket)).data.toString()).toBe('still here')
    }
  })
})

describe('C8.4 upstreams that do not take the upgrade', () => {
  let upstream: Upstream
  let gateway: StartedPostern
  let token: string
  beforeAll(async () => {
    upstream = await openUpstream()
    gateway = await startPostern(streaming(upstream.url, { timeouts: { connect: 1000, firstByte: 1000 } }))
    token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
  })
  afterAll(async () => {
    await gateway.close()
    await upstream.close()
  })
  const ask = (): Promise<Asked> =>
    askWebsocket(gateway.baseUrl.replace('http', 'ws') + LIVE, {
      headers: { Authorization: `Bearer ${token}` },
    })
  const respond =
    (status: number, body = '', headers: Record<string, string> = {}): UpstreamBehaviour =>
    (connection) =>
      connection.respond({ status, body, headers: { Server: 'secret-banner', ...headers } })
  const switching = (...lines: string[]): UpstreamBehaviour => {
    return (connection) => connection.raw(`HTTP/1.1 101 Ok\r\n${lines.join('\r\n')}\r\n\r\n`)
  }

  it.each([
    ['503', respond(503, 'down', { 'Retry-After': '7' }), 503],
    ['500', respond(500, 'stack trace'), 500],
    ['401', respond(401), 500],
    ['403', respond(403), 401],
    ['404', respond(404), 404],
    ['426', respond(426), 426],
    ['200', respond(200, '{}'), 500],
    ['302', respond(302, '', { Location: 'http://inside/' }), 500],
    ['a header that cannot stand', respond(404, '', { 'X-Bad': 'a\x01b' }), 500],
    ['a reset', (connection) => connection.reset(), 503],
    ['an end without an answer', (connection) => connection.socket.end(), 503],
    ['no HTTP at all', (connection) => connection.raw('nonsense\r\n\r\n'), 500],
    [
      'headers without an end',
      (connection) => connection.raw(`HTTP/1.1 101 Ok\r\nX: ${'x'.repeat(70_000)}`),
      500,
    ],
    ['a 101 to something else', switching('Connection: Upgrade', 'Upgrade: h2c'), 500],
    [
      'a 101 to another key',
      switching('Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Accept: x'),
      500,
    ],
    ['a 101 without Upgrade', switching('Connection: keep-alive'), 500],
  ] as readonly (readonly [string, UpstreamBehaviour, number])[])(
    'C8.4 answers %s in an envelope, with nothing of the upstream’s, and lives on',
    async (what, behaviour, status) => {
      upstream.behave(behaviour)
      const asked = await ask()
      expect(asked).toMatchObject({ kind: 'refused', status })
      if (asked.kind !== 'refused') return
      expect(JSON.parse(asked.body)).toMatchObject({ Errors: [{ Code: expect.any(String) }], Data: {} })
      expect(JSON.stringify(asked)).not.toMatch(/secret-banner|stack trace|inside/)
      if (what === '503') expect(asked.headers['retry-after']).toBe('7')
      const last = upstream.connections.at(-1)
      await expect.poll(() => last?.socket.closed).toBe(true)
      expect((await fetch(`${gateway.baseUrl}/api`)).status).toBe(501)
    },
  )

  it('C8.4 passes the upstream’s own errors', async () => {
    const own = { Errors: [{ Code: 'ROOM_FULL', Message: 'The room is full.' }], Data: { a: 1 } }
    upstream.behave(respond(409, JSON.stringify(own)))
    expect(await ask()).toMatchObject({ status: 409, body: JSON.stringify({ ...own, Data: {} }) })
  })

  it('C8.4 answers 503 where nobody answers in time', async () => {
    upstream.behave(() => undefined)
    expect(await ask()).toMatchObject({ status: 503 })
  })

  it('C8.4 answers 503 where nobody listens', async () => {
    const other = await postern(streaming(await urlOfNobody()))
    const headers = {
      Authorization: `Bearer ${(await issueToken(other, { scope: ALL_AT_ACME })).access_token}`,
    }
    const asked = await askWebsocket(other.baseUrl.replace('http', 'ws') + LIVE, { headers })
    expect(asked).toMatchObject({ status: 503 })
  })

  it('C8.4 lets the upstream go when the client leaves during the handshake', async () => {
    const before = upstream.requests.length
    upstream.behave(() => undefined)
    const client = new WebSocket(gateway.baseUrl.replace('http', 'ws') + LIVE, {
      headers: { Authorization: `Bearer ${token}` },
    })
    client.on('error', () => undefined)
    await upstream.received(before + 1)
    const { socket } = upstream.connections.at(-1)!
    client.terminate()
    await expect.poll(() => socket.closed).toBe(true)
    const counted = 'postern_decisions_total{reason="client_gone"'
    await expect.poll(() => metric(gateway, counted)).toMatch(/ 1$/)
  })
})

describe('C8.1 idle websockets and shutdown', () => {
  it('C8.4 ends a websocket on which nothing was sent for too long', async () => {
    const { open } = await scene({ timeouts: { idle: 100 } })
    const socket = await open()
    expect(await closeOf(socket)).toEqual({ code: 1001, reason: 'Nothing was sent for too long' })
  })

  it('T5.10 tells open websockets 1001 as soon as the service is to stop, though calls are still taken', async () => {
    const { open, gateway } = await scene(undefined, {
      change: (loaded) => ({
        ...loaded,
        server: { ...loaded.server, timeouts: { ...loaded.server.timeouts, lameDuck: 1000, drain: 20_000 } },
      }),
    })
    const socket = await open()
    const closed = closeOf(socket)
    const stopped = gateway.close()
    expect(await closed).toEqual({ code: 1001, reason: 'The service is restarting' })
    expect((await fetch(`${gateway.baseUrl}/api/1.0`)).status).toBeGreaterThan(0)
    expect(await stopped).toBe(0)
  })
})
