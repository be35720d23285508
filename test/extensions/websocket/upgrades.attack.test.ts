import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { attackUpstream, bytesOf, type AttackedUpstream } from '../../support/attacked.ts'
import { exchangeRaw, openRaw, sendRaw, type RawResponse } from '../../support/raw-http.ts'
import type { ReceivedRequest, UpstreamBehaviour } from '../../support/start-upstream.ts'
import { at, withStream } from '../../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

/** T1, T2.1, T2.2, T2.5 and T3 once more, on upgrades: what is refused there must not reach the upstream either. */

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const ACCEPT = createHash('sha1').update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
const HANDSHAKE = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}\r\n`
const LIVE = at('live/lobby')

/** Switches where it is asked to, with more headers than it should, and answers everything else. */
const upstreamBehaviour: UpstreamBehaviour = (connection) => {
  if (connection.request.headers['upgrade'] === undefined)
    connection.respond({ headers: { 'Content-Type': 'application/json' }, body: '{"plain":true}' })
  else
    connection.raw(
      'HTTP/1.1 101 Sure\r\nServer: banner\r\nSet-Cookie: a=b\r\nX-Powered-By: inside.example\r\n' +
        'Connection: Upgrade, X-Hop\r\nX-Hop: 1\r\nUpgrade: websocket\r\n' +
        `Sec-WebSocket-Accept: ${ACCEPT}\r\nX-Request-Id: theirs\r\n\r\n`,
    )
}

let attacked: AttackedUpstream

beforeAll(async () => {
  attacked = await attackUpstream({ change: (loaded) => withStream(loaded) })
  attacked.upstream.behave(upstreamBehaviour)
})
afterAll(() => attacked.close())
beforeEach(() => attacked.forget())

/** A handshake with these lines beside its own. */
const handshake = (lines = '', target = LIVE, own = HANDSHAKE): Buffer =>
  bytesOf({ target, lines: attacked.authorization + own + lines })

/** Sends a good handshake, which must be taken, and tells what the upstream got of it. */
async function take(lines = '', target = LIVE): Promise<{ answer: RawResponse; received: ReceivedRequest }> {
  attacked.forget()
  const answer = await sendRaw(attacked.port, handshake(lines, target))
  expect([target, answer.status, attacked.received().length]).toEqual([target, 101, 1])
  return { answer, received: attacked.received()[0]! }
}

/** Sends bytes that must be refused, with one answer, and must not reach the upstream. */
async function expectRefused(bytes: Buffer, status: number): Promise<RawResponse> {
  const answer = await sendRaw(attacked.port, bytes)
  expect([answer.status, attacked.reached()]).toEqual([status, []])
  expect(JSON.parse(answer.body)).toMatchObject({ Errors: [{ Code: expect.any(String) }], Data: {} })
  return answer
}

describe('T1 paths of upgrades', () => {
  it.each([
    '/ws/../admin',
    `${LIVE}/..`,
    `${LIVE}/../../../../GLOBEX/fund-data/live/lobby`,
    '/api/1.0/b/ACME/fund-data/live/%2e%2e',
    '/api/1.0/b/ACME/fund-data/live/.%2E/x',
    '/api/1.0/b/ACME/fund-data/live/a%2fb',
    '/api/1.0/b/ACME/fund-data/live/a%5Cb',
    '/api/1.0/b/ACME/fund-data/live\\lobby',
    '/api/1.0/b/ACME/fund-data/live/a\\..\\..\\x',
    '/api/1.0/b/ACME/fund-data/live/%252e%252e',
    '/api/1.0/b/ACME/fund-data/live/a;b',
    '/api/1.0/b/ACME/fund-data/live/a%00',
    '/api/1.0/b/ACME/fund-data/live//lobby',
    '/api/1.0/b/ACME/fund-data/live/lobby#x',
    `http://elsewhere.example${LIVE}`,
  ])('C3.4 refuses %s', async (target) => {
    await expectRefused(handshake('', target), 400)
  })

  it.each([
    ['a..b', 'a..b'],
    ['...', '...'],
    ['%41bc', 'Abc'],
    ['a%c3%a9', 'a%C3%A9'],
    ["it's{}", "it's{}"],
  ])('C3.4 forwards %s as it was judged: %s', async (given, judged) => {
    const { received } = await take('', at(`live/${given}`))
    expect(received.target).toBe(at(`live/${judged}`))
  })

  it.each(['?', '?x=/../admin', '?a=%2F..%2f&b', '?x=/api/1.0/b/GLOBEX&&y=?', "?q='{}|"])(
    'C3.4 forwards the query %s byte for byte',
    async (query) => {
      expect((await take('', LIVE + query)).received.target).toBe(LIVE + query)
    },
  )

  it('C4.8 knows no other business than the token’s', async () => {
    await expectRefused(handshake('', LIVE.replace('ACME', 'GLOBEX')), 404)
  })
})

const SPOOFED = [
  'X-Postern-Subject',
  'X_Postern_Subject',
  'x-postern_business',
  'X-POSTERN-SCOPE',
  'X-Request-Id',
  'Traceparent',
  'Forwarded',
  'X-Forwarded-For',
  'X_Forwarded_Host',
  'X-Forwarded-User',
  'X-WebAuth-User',
  'Impersonate_User',
  'X-MS-CLIENT-PRINCIPAL',
  'SSL_Client_Cert',
  'X-Original-URL',
  'X-Rewrite-URL',
  'X-HTTP-Method-Override',
  'X-Real-IP',
  'Remote-User',
  'Proxy-Authorization',
  'Cookie',
] as const

describe('T2 headers of upgrades', () => {
  it('C8.2 lets no spoofed header arrive, in two lines either', async () => {
    const lines = SPOOFED.map((name) => `${name}: spoofed\r\n${name}: spoofed\r\n`).join('')
    const { received } = await take(lines)
    expect(received.head).not.toContain('spoofed')
    expect(received.headers).toMatchObject({
      host: [`127.0.0.1:${attacked.upstream.port}`],
      accept: ['application/json'],
      connection: ['Upgrade'],
      upgrade: ['websocket'],
      'sec-websocket-key': [KEY],
      'sec-websocket-version': ['13'],
      'x-postern-client': ['acme-books'],
      'x-postern-business': ['ACME'],
      'x-forwarded-for': ['127.0.0.1'],
      'x-forwarded-proto': ['http'],
    })
    expect(received.headers['x-request-id']).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)])
    expect(received.headers['authorization']).toBeUndefined()
  })

  it('C8.3 gives the client no header of the upstream’s but the websocket’s own', async () => {
    const { answer } = await take()
    const names = answer.rawHeaders.map(([name]) => name)
    expect(names.sort()).toEqual(['Connection', 'Sec-WebSocket-Accept', 'Upgrade', 'X-Request-Id'])
    expect(answer.headers).toMatchObject({ 'sec-websocket-accept': ACCEPT, connection: 'Upgrade' })
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f]{32}$/)
    expect(answer.reason).toBe('Switching Protocols')
  })

  it.each([
    'Upgrade, X-Postern-Subject',
    'Upgrade, Sec-WebSocket-Key',
    'Upgrade, X-Request-Id, Traceparent',
    'Upgrade, close',
  ])('T2.1 takes no upgrade whose Connection says %s', async (connection) => {
    const own = HANDSHAKE.replace('Connection: Upgrade', `Connection: ${connection}`)
    const answer = await sendRaw(attacked.port, handshake('', LIVE, own))
    expect(answer.status).toBe(200)
    const [received] = attacked.received()
    expect(received?.headers['upgrade']).toBeUndefined()
    expect(received?.headers['x-postern-subject']).toHaveLength(1)
  })

  it('T2.1 refuses one whose Connection names the framing', async () => {
    const own = HANDSHAKE.replace('Connection: Upgrade', 'Connection: Upgrade, Content-Length')
    await expectRefused(handshake('', LIVE, own), 400)
  })

  const without = (line: RegExp, other = ''): string => HANDSHAKE.replace(line, other)
  it.each([
    ['to h2c', without(/websocket/, 'h2c')],
    ['to websocket or h2c', without(/websocket/, 'websocket, h2c')],
    ['without a key', without(/Sec-WebSocket-Key.*\r\n/)],
    ['with a short key', without(/Key: .*\r\n/, 'Key: abc=\r\n')],
    ['of another version', without(/13/, '8')],
    ['without Connection', without(/Connection.*\r\n/)],
    ['without Upgrade', without(/Upgrade: .*\r\n/)],
  ])('T2.5 serves an upgrade %s as HTTP/1.1', async (_what, own) => {
    const answer = await sendRaw(attacked.port, handshake('', LIVE, own))
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, { Errors: [], Data: { plain: true } }])
    const [received] = attacked.received()
    expect(received?.headers['upgrade']).toBeUndefined()
    expect(received?.headers['connection']?.join().toLowerCase() ?? '').not.toContain('upgrade')
  })

  it('T2.5 serves an upgrade in HTTP/1.0, and one on an action without websockets, as HTTP/1.1', async () => {
    const old = Buffer.from(handshake().toString('latin1').replace(' HTTP/1.1', ' HTTP/1.0'), 'latin1')
    expect((await sendRaw(attacked.port, old)).status).toBe(200)
    expect((await sendRaw(attacked.port, handshake('', at('plain/x')))).status).toBe(200)
    expect(attacked.received().map(({ headers }) => headers['upgrade'])).toEqual([undefined, undefined])
  })

  it('T2.5 takes no upgrade by another method, and none with a body', async () => {
    const post = bytesOf({ method: 'POST', target: LIVE, lines: attacked.authorization + HANDSHAKE })
    expect((await expectRefused(post, 405)).headers['allow']).toBe('GET, HEAD')
    const bodies = [
      ['Content-Length: 5', '"abc"'],
      ['Transfer-Encoding: chunked', '5\r\n"abc"\r\n0\r\n\r\n'],
    ] as const
    for (const [framing, body] of bodies) {
      const head = handshake(`${framing}\r\nContent-Type: application/json\r\n`)
      const answer = await expectRefused(Buffer.concat([head, Buffer.from(body)]), 400)
      expect(answer.body).toContain('takes no request body')
    }
  })

  it('T2.3 refuses one with two Hosts, and lives on', async () => {
    await expectRefused(handshake('Host: evil\r\n'), 400)
    await take()
  })
})

describe('RFC 6455 what an upstream may choose', () => {
  const choosing =
    (lines: string): UpstreamBehaviour =>
    (connection) =>
      connection.raw(
        `HTTP/1.1 101 Sure\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${ACCEPT}\r\n${lines}\r\n`,
      )
  const ask = async (offered: string, chosen: string): Promise<RawResponse> => {
    attacked.upstream.behave(choosing(chosen))
    try {
      return await sendRaw(attacked.port, handshake(offered))
    } finally {
      attacked.upstream.behave(upstreamBehaviour)
    }
  }
  const protocol = (value: string): string => `Sec-WebSocket-Protocol: ${value}\r\n`
  const extensions = (value: string): string => `Sec-WebSocket-Extensions: ${value}\r\n`

  it.each([
    ['one where none was offered', '', protocol('chat')],
    ['another one', protocol('chat, v2'), protocol('admin')],
    ['one in another case', protocol('chat'), protocol('Chat')],
    ['two of them', protocol('chat, v2'), protocol('chat, v2')],
    ['two lines', protocol('chat, v2'), protocol('chat') + protocol('v2')],
    ['an empty one', protocol('chat'), protocol('')],
    ['an extension that was not offered', '', extensions('permessage-deflate')],
    ['another extension', extensions('a; x=1, b'), extensions('a, c; y')],
  ])('C8.4 §4.2.2: refuses %s, and ends both sides', async (_, offered, chosen) => {
    const answer = await ask(offered, chosen)
    expect([answer.status, answer.headers['sec-websocket-protocol']]).toEqual([500, undefined])
    await expect.poll(() => attacked.upstream.connections.at(-1)!.socket.closed).toBe(true)
  })

  it.each([
    ['none', protocol('chat'), ''],
    ['one of those', protocol('chat,v2 ,\tv3'), protocol('v3')],
    ['one of two lines', protocol('chat') + protocol('v2'), protocol('v2')],
    [
      'an extension with parameters',
      extensions('permessage-deflate; client_max_window_bits'),
      extensions('permessage-deflate; server_no_context_takeover'),
    ],
  ])('C8.4 §4.2.2: passes %s on', async (_, offered, chosen) => {
    const answer = await ask(offered, chosen)
    expect(answer.status).toBe(101)
    expect(answer.rawHeaders.map(([name, value]) => `${name}: ${value}\r\n`).join('')).toContain(chosen)
  })

  it('C8.2 a backend that lists request headers gets those, and what the handshake needs', async () => {
    const listed = await attackUpstream({
      change: (loaded) => withStream(loaded, { requestHeaders: ['Origin'] }),
    })
    try {
      listed.upstream.behave(choosing(protocol('chat')))
      const lines =
        listed.authorization +
        HANDSHAKE +
        protocol('chat') +
        'Origin: https://kept.example\r\nX-Role: lost\r\nUser-Agent: lost\r\n'
      const { status } = await sendRaw(listed.port, bytesOf({ target: LIVE, lines }))
      const [received] = listed.received()
      expect([status, received?.headers['origin'], received?.headers['sec-websocket-protocol']]).toEqual([
        101,
        ['https://kept.example'],
        ['chat'],
      ])
      expect(received?.head).not.toContain('lost')
    } finally {
      await listed.close()
    }
  })
})

describe('T2.4 what stands around an upgrade', () => {
  const SMUGGLED = 'GET /api/1.0/b/GLOBEX/fund-data/plain/x HTTP/1.1\r\nHost: x\r\nX-Smuggled: 1\r\n\r\n'

  it('T2.4 serves nothing behind a refused upgrade', async () => {
    const bytes = bytesOf({ target: LIVE, lines: HANDSHAKE, body: SMUGGLED })
    const all = await exchangeRaw(attacked.port, bytes)
    expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401'])
    expect(attacked.reached()).toEqual([])
  })

  it('T2.4 answers in its turn an upgrade behind a call that is not answered yet, as HTTP/1.1', async () => {
    const answers: (() => void)[] = []
    attacked.upstream.behave((connection) => answers.push(() => upstreamBehaviour(connection)))
    const connection = await openRaw(attacked.port)
    const first = bytesOf({ target: at('plain/one'), lines: attacked.authorization })
    connection.send(Buffer.concat([first, handshake()]))
    for (const count of [1, 2]) {
      await expect.poll(() => answers.length).toBe(count)
      answers[count - 1]?.()
      expect((await connection.response()).status).toBe(200)
    }
    attacked.upstream.behave(upstreamBehaviour)
    connection.destroy()
    expect(attacked.received().map(({ headers }) => headers['upgrade'])).toEqual([undefined, undefined])
  })

  it('T2.4 takes an upgrade on a connection that was used before', async () => {
    const connection = await openRaw(attacked.port)
    connection.send(bytesOf({ target: at('plain/one'), lines: attacked.authorization }))
    expect((await connection.response()).status).toBe(200)
    connection.send(handshake())
    expect((await connection.response()).status).toBe(101)
    connection.destroy()
  })

  it('T2.4 passes what follows a handshake in one breath, and only behind it', async () => {
    const frame = Buffer.from('\x81\x85\0\0\0\0hello', 'latin1')
    const connection = await openRaw(attacked.port)
    connection.send(Buffer.concat([handshake(), frame]))
    expect((await connection.response()).status).toBe(101)
    const last = (): Buffer => attacked.upstream.connections.at(-1)!.bytes
    await expect.poll(() => last().subarray(-frame.length).equals(frame)).toBe(true)
    connection.destroy()
  })

  it('T5 lives on when a client resets in the midst of a websocket', async () => {
    const connection = await openRaw(attacked.port)
    connection.send(handshake())
    await connection.response()
    const { socket } = attacked.upstream.connections.at(-1)!
    connection.socket.resetAndDestroy()
    await expect.poll(() => socket.closed).toBe(true)
    await take()
  })

  it('T5 lives on when an upstream resets in the midst of a websocket, and ends the client’s side', async () => {
    const connection = await openRaw(attacked.port)
    connection.send(handshake())
    await connection.response()
    attacked.upstream.connections.at(-1)!.socket.resetAndDestroy()
    await connection.closed()
    connection.destroy()
    await take()
  })
})

describe('T3 tokens of upgrades', () => {
  const b64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const withAuthorization = (...lines: string[]): Buffer =>
    bytesOf({ target: LIVE, lines: lines.map((line) => `${line}\r\n`).join('') + HANDSHAKE })

  it('C4.14 wants one token in Authorization, spelled as on any call', async () => {
    const token = attacked.authorization.trim().slice('Authorization: Bearer '.length)
    for (const lines of [
      [],
      [`Authorization: bearer ${token}`],
      [`Authorization: Bearer ${token} x`],
      [`Authorization: Basic ${token}`],
      [`Sec-WebSocket-Protocol: access_token, ${token}`],
      [`Cookie: access_token=${token}`],
      [`Proxy-Authorization: Bearer ${token}`],
      [`X-Authorization: Bearer ${token}`],
    ])
      await expectRefused(withAuthorization(...lines), 401)
    await expectRefused(
      withAuthorization(`Authorization: Bearer ${token}`, `Authorization: Bearer ${token}`),
      400,
    )
    const query = bytesOf({ target: `${LIVE}?access_token=${token}`, lines: HANDSHAKE })
    await expectRefused(query, 401)
  })

  it('C4.4 takes none that is unsigned, of another kind, or changed', async () => {
    const issued = await issueToken(attacked.gateway, { scope: `${ALL_AT_ACME} offline_access` })
    const [header = '', payload = '', signature = ''] = issued.access_token.split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object
    for (const token of [
      `${b64({ alg: 'none', typ: 'at+jwt' })}.${payload}.`,
      `${header}.${b64({ ...claims, scope: 'fund.read target:b/GLOBEX' })}.${signature}`,
      `${header}.${payload}.${signature.slice(0, -8)}AAAAAAAA`,
      issued.id_token ?? 'none',
      issued.refresh_token ?? 'none',
    ])
      await expectRefused(withAuthorization(`Authorization: Bearer ${token}`), 401)
  })

  it('C4.7 wants the scope of the action', async () => {
    const { access_token: token } = await issueToken(attacked.gateway, {
      scope: 'business.fund.list target:b/ACME',
    })
    const answer = await expectRefused(withAuthorization(`Authorization: Bearer ${token}`), 401)
    expect(answer.headers['www-authenticate']).toContain('error="insufficient_scope"')
  })
})
