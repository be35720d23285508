import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  attackMemory,
  attackModule,
  attackUpstream,
  bytesOf,
  statusesOf,
  type AttackedMemory,
  type AttackedModule,
  type AttackedUpstream,
} from '../support/attacked.ts'
import { openRaw, sendRaw, type RawResponse } from '../support/raw-http.ts'
import type { ReceivedRequest } from '../support/start-upstream.ts'
import { withStream } from '../support/streaming.ts'

/** T2.1, T2.2, T2.5, T2.6: headers that a client sends to be somebody else, or to unhinge what stands behind. */

let memory: AttackedMemory
let http: AttackedUpstream
let stream: AttackedUpstream
let module: AttackedModule

beforeAll(async () => {
  memory = await attackMemory()
  http = await attackUpstream()
  stream = await attackUpstream({ change: (loaded) => withStream(loaded) })
  module = await attackModule()
})
afterAll(async () => {
  for (const attacked of every()) await attacked.close()
})
beforeEach(() => {
  for (const attacked of every()) attacked.forget()
})

/** In front of each kind of backend. */
const every = () => [memory, http, stream, module]
const TARGET = '/api/1.0/b/ACME/fund-data/fund-list'

/** Alice's. */
const SUBJECT = '45733adb-9b07-4d40-ae57-20cf9b802f51'

interface Got {
  readonly answer: RawResponse
  readonly received: ReceivedRequest
}

/** Sends a good call with these lines beside it, which must be served, and tells what the upstream got of it. */
async function serve(lines: string, attacked = http): Promise<Got> {
  attacked.forget()
  const bytes = bytesOf({ target: TARGET, lines: attacked.authorization + lines })
  const answer = await sendRaw(attacked.port, bytes)
  expect([lines, answer.status, attacked.received().length]).toEqual([lines, 200, 1])
  return { answer, received: attacked.received()[0]! }
}

/** What Postern says about a call: made by it alone, one line each. */
const expectOurs = ({ headers }: ReceivedRequest, { port, upstream } = http): void => {
  expect(headers).toMatchObject({
    host: [`127.0.0.1:${upstream.port}`],
    accept: ['application/json'],
    'x-postern-subject': [SUBJECT],
    'x-postern-client': ['acme-books'],
    'x-postern-business': ['ACME'],
    'x-postern-action-version': ['1'],
    'x-forwarded-for': ['127.0.0.1'],
    'x-forwarded-proto': ['http'],
    'x-forwarded-host': [`127.0.0.1:${port}`],
    forwarded: [`for=127.0.0.1;host="127.0.0.1:${port}";proto=http`],
  })
  expect(headers['x-request-id']).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)])
  expect(headers['traceparent']).toHaveLength(1)
  expect(headers['x-postern-scope']).toHaveLength(1)
  expect(headers['authorization']).toBeUndefined()
}

describe('T2.1 Connection', () => {
  it.each([
    'X-Postern-Subject, X-Postern-Business, X-Postern-Scope, X-Postern-Client',
    'x_postern_subject, X-POSTERN-BUSINESS',
    'X-Request-Id, Traceparent, Forwarded, X-Forwarded-For, X-Forwarded-Host, Accept',
    'Authorization',
    'close, Authorization, X-Postern-Subject',
  ])('C8.3 strips neither what Postern adds nor the client’s token by naming %s', async (names) => {
    expectOurs((await serve(`Connection: ${names}\r\n`)).received)
    expectOurs((await serve(`Connection: keep-alive\r\nConnection: ${names}\r\n`)).received)
  })

  it('C8.3 takes what it names off the client’s own headers, with _ for - too', async () => {
    const { received } = await serve(
      'Connection: X-Secret, x-other\r\nX-Secret: 1\r\nX_Secret: 2\r\nX-Other: 3\r\nX-Kept: 4\r\n',
    )
    expectOurs(received)
    const { headers } = received
    expect([headers['x-secret'], headers['x_secret'], headers['x-other']]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    expect(headers['x-kept']).toEqual(['4'])
  })

  it.each([
    'Content-Length',
    'transfer-encoding',
    'Host',
    'close, CONTENT-LENGTH',
    'Content_Length',
    'host,close',
  ])('C3.6 may not name %s', async (names) => {
    for (const attacked of every()) {
      const lines = `${attacked.authorization}Connection: ${names}\r\nContent-Length: 2\r\nContent-Type: application/json\r\n`
      const target = '/api/1.0/b/ACME/fund-data/any/x'
      const statuses = await statusesOf(attacked.port, bytesOf({ method: 'POST', target, lines, body: '{}' }))
      expect([statuses, attacked.reached()]).toEqual([[400], []])
    }
  })
})

/** Names by which upstreams believe who calls, what is asked or from where; `{_}` is each spelling of the hyphen. */
const SPOOFED = [
  'X-Postern-Subject',
  'X-Postern-Client',
  'X-Postern-Scope',
  'X-Postern-Business',
  'X-Postern-Fund',
  'X-Postern-Action-Version',
  'X-Postern-Token',
  'X-Request-Id',
  'Traceparent',
  'Forwarded',
  'X-Forwarded',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X-Forwarded-Proto',
  'X-Forwarded-Port',
  'X-Forwarded-Prefix',
  'X-Forwarded-User',
  'X-Forwarded-Uri',
  'X-Forwarded-Client-Cert',
  'X-Original-URL',
  'X-Original-Host',
  'X-Rewrite-URL',
  'X-HTTP-Method-Override',
  'X-HTTP-Method',
  'X-Method-Override',
  'X-Real-IP',
  'X-Client-IP',
  'True-Client-IP',
  'CF-Connecting-IP',
  'Via',
  'Remote-User',
  'X-Remote-User',
  'X-Auth-Request-User',
  'X-Auth-User',
  'X-Auth-Token',
  'X-Consumer-Username',
  'X-Consumer-Custom-ID',
  'X-Credential-Identifier',
  'X-WebAuth-User',
  'X-Goog-Authenticated-User-Email',
  'X-Goog-IAP-JWT-Assertion',
  'X-MS-CLIENT-PRINCIPAL',
  'X-MS-Client-Principal-Id',
  'X-MS-Token-AAD-Id-Token',
  'Impersonate-User',
  'Impersonate-Extra-Scopes',
  'SSL-Client-Cert',
  'SSL-Client-S-DN',
  'X-SSL-Client-Verify',
  'X-Azure-ClientIP',
  'X-Original-Forwarded-For',
  'Front-End-Https',
  'X-Custom-IP-Authorization',
  'X-Remote-Group',
  'Remote-Groups',
  'Cf-Access-Authenticated-User-Email',
  'Tailscale-User-Login',
  'X-Authentik-Username',
  'X-Pomerium-Claim-Email',
  'X-JWT-Assertion',
  'OIDC-Claim-Sub',
  'WL-Proxy-Client-IP',
  'HTTP-X-Forwarded-For',
  'X-User-Id',
  'Proxy-Authorization',
  'Proxy',
  'Cookie',
  'DPoP',
] as const

const VALUE = 'spoofed'
const spellings = (name: string): string[] => [
  name,
  name.toUpperCase(),
  name.toLowerCase(),
  name.replaceAll('-', '_'),
  name.replaceAll('-', '_').toUpperCase(),
  name.replace('-', '_'),
  name.replaceAll('-', '.'),
]

describe('T2.2 spoofed headers', () => {
  const everySpelling = (name: string): string =>
    [...new Set(spellings(name))].map((spelling) => `${spelling}: ${VALUE}\r\n`).join('')

  it.each(SPOOFED)('C8.2 lets %s of a client arrive at an upstream in no spelling', async (name) => {
    for (const attacked of [http, stream]) {
      const { received } = await serve(everySpelling(name), attacked)
      expectOurs(received, attacked)
      expect(received.head).not.toContain(VALUE)
    }
  })

  it.each(SPOOFED)(
    'C8.2 lets %s of a client arrive at a module or in memory in no spelling',
    async (name) => {
      for (const attacked of [module, memory]) {
        const lines = attacked.authorization + everySpelling(name)
        const { status } = await sendRaw(attacked.port, bytesOf({ target: TARGET, lines }))
        expect([status, attacked.reached()]).toEqual([200, [`GET ${TARGET}`]])
      }
      const [seen] = module.received()
      expect(JSON.stringify(seen)).not.toContain(VALUE)
      expect(seen?.call).toMatchObject({
        business: 'ACME',
        clientAddress: '127.0.0.1',
        caller: { client: 'acme-books', subject: SUBJECT },
      })
      const [call] = memory.calls()
      expect(JSON.stringify(call?.headers)).not.toContain(VALUE)
      expect(call).toMatchObject({ clientAddress: '127.0.0.1', principal: { subject: SUBJECT } })
    },
  )

  it('C8.2 decides nothing by them: another business stays another business', async () => {
    const lines = SPOOFED.map((name) => `${name}: GLOBEX\r\n`).join('')
    const target = '/api/1.0/b/GLOBEX/fund-data/fund-list'
    for (const attacked of every()) {
      const answer = await sendRaw(attacked.port, bytesOf({ target, lines: attacked.authorization + lines }))
      expect([answer.status, attacked.reached()]).toEqual([404, []])
    }
  })

  it.each(['http', 'stream'] as const)(
    'C8.2 lets nothing of a client arrive that a list does not name (%s)',
    async (kind) => {
      const listed = await attackUpstream({
        change: (loaded) => {
          const { funds } = loaded.backends
          if (funds?.kind !== 'http') throw new Error('the configuration has another backend now')
          const backends = {
            ...loaded.backends,
            funds: { ...funds, requestHeaders: ['X-Trace', 'If-None-Match'] },
          }
          return kind === 'http' ? { ...loaded, backends } : withStream({ ...loaded, backends })
        },
      })
      try {
        const lines =
          'X-TRACE: kept\r\nX_Trace: lost\r\nX-Role: lost\r\nUser-Agent: lost\r\nAccept-Language: lost\r\n' +
          'Sec-WebSocket-Protocol: lost\r\nX-Postern-Subject: lost\r\nAccept-Encoding: lost\r\n'
        const { received } = await serve(lines, listed)
        expectOurs(received, listed)
        expect(received.headers['x-trace']).toEqual(['kept'])
        expect(received.head).not.toContain('lost')
      } finally {
        await listed.close()
      }
    },
  )

  it('C3.4 takes neither path nor method from a header', async () => {
    for (const attacked of every()) {
      const lines =
        `${attacked.authorization}X-Original-URL: /api/1.0/b/GLOBEX/x\r\nX-Rewrite-URL: /metrics\r\n` +
        'X-HTTP-Method-Override: POST\r\nX-HTTP-Method: DELETE\r\n'
      const answer = await sendRaw(attacked.port, bytesOf({ target: TARGET, lines }))
      expect([answer.status, attacked.reached()]).toEqual([200, [`GET ${TARGET}`]])
    }
  })

  it('C2.6 answers with a request id of its own, whatever the client’s', async () => {
    const { answer, received } = await serve('X-Request-Id: 00000000000000000000000000000000\r\n')
    const id = answer.headers['x-request-id']
    expect(id).toMatch(/^[0-9a-f]{32}$/)
    expect(id).not.toMatch(/^0+$/)
    expect(received.headers['x-request-id']).toEqual([id])
  })

  it('C8.2 goes on with a client’s traceparent only if it is well formed, and as one line', async () => {
    const trace = '0af7651916cd43dd8448eb211c80319c'
    const good = await serve(`Traceparent: 00-${trace}-b7ad6b7169203331-01\r\n`)
    expect(good.received.headers['traceparent']?.[0]).toContain(trace)
    for (const bad of [
      `00-${trace}`,
      `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
      'x',
      `ff-${trace}-b7ad6b7169203331-01`,
    ]) {
      const { received } = await serve(`Traceparent: ${bad}\r\n`)
      expect(received.headers['traceparent']?.[0]).toMatch(
        /^00-(?!0{32})[0-9a-f]{32}-[0-9a-f]{16}-0[0-9a-f]$/,
      )
      expect(received.headers['traceparent']?.[0]).not.toContain(bad)
    }
  })
})

describe('T2.2 trusted proxies', () => {
  it('takes the rightmost untrusted hop for the client once a proxy is trusted, and nobody by default', async () => {
    const trusting = await attackUpstream({
      change: (loaded) => ({ ...loaded, server: { ...loaded.server, trustedProxies: ['127.0.0.0/8'] } }),
    })
    const lines = `${trusting.authorization}X-Forwarded-For: 10.0.0.1, 203.0.113.9\r\nX-Forwarded-For: 127.0.0.7\r\n`
    const { status } = await sendRaw(trusting.port, bytesOf({ target: TARGET, lines }))
    const [received] = trusting.received()
    await trusting.close()
    expect([status, received?.headers['x-forwarded-for']]).toEqual([200, ['203.0.113.9']])
  })
})

describe('T2.5 methods and upgrades', () => {
  it('C3.6 refuses TRACE and CONNECT, with the token and without', async () => {
    for (const attacked of every())
      for (const lines of [attacked.authorization, '']) {
        const ask = (method: string, target: string) =>
          sendRaw(attacked.port, bytesOf({ method, target, lines }))
        const trace = await ask('TRACE', TARGET)
        expect([trace.status, trace.headers['allow']]).toEqual([
          405,
          'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, PROPFIND, PROPPATCH, REPORT, SEARCH, QUERY, MKCOL, MKCALENDAR',
        ])
        expect(trace.body).not.toContain('Bearer')
        expect((await ask('CONNECT', '127.0.0.1:80')).status).toBe(400)
        expect(attacked.reached()).toEqual([])
      }
  })

  it.each([
    [
      'h2c, as curl --http2 asks',
      'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n',
    ],
    [
      'websocket on an action without it',
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n',
    ],
    ['websocket, then h2c', 'Connection: upgrade\r\nUpgrade: websocket, h2c\r\n'],
    ['TLS', 'Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n'],
    ['nothing', 'Connection: Upgrade\r\n'],
    ['something, without Connection', 'Upgrade: h2c\r\n'],
  ])('C3.6 serves an upgrade to %s as HTTP/1.1 and forwards no word of it', async (_what, lines) => {
    const { received, answer } = await serve(lines)
    expectOurs(received)
    expect([answer.version, answer.headers['upgrade']]).toEqual(['1.1', undefined])
    expect(received.headers['upgrade']).toBeUndefined()
    expect(received.headers['http2-settings']).toBeUndefined()
    expect(received.headers['connection']?.join().toLowerCase() ?? '').not.toContain('upgrade')
  })

  it('C4.4 asks for the token on an upgrade as on any call', async () => {
    const lines = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
    for (const attacked of every()) {
      const answer = await sendRaw(attacked.port, bytesOf({ target: TARGET, lines }))
      expect([answer.status, attacked.reached()]).toEqual([401, []])
    }
  })

  it('C4.4 asks whatever follows an upgrade for a token of its own', async () => {
    const lines = `${http.authorization}Connection: Upgrade\r\nUpgrade: websocket\r\n`
    const next = 'GET /api/1.0/b/GLOBEX/fund-data/fund-list HTTP/1.1\r\nHost: x\r\n\r\n'
    const connection = await openRaw(http.port)
    // What comes in one breath with an upgrade is dropped by node; what comes after its answer is a request.
    connection.send(bytesOf({ target: TARGET, lines, body: next }))
    expect((await connection.response()).status).toBe(200)
    connection.send(next)
    expect((await connection.response()).status).toBe(401)
    connection.destroy()
    expect(http.reached()).toEqual([`GET ${TARGET}`])
  })
})

describe('T2.6 headers that proxies stumble over', () => {
  it.each([
    ['Keep-Alive: timeout=5\r\n', 'keep-alive'],
    ['TE: trailers\r\n', 'te'],
    ['Trailer: X-After\r\n', 'trailer'],
    ['Proxy-Connection: keep-alive\r\n', 'proxy-connection'],
    ['Max-Forwards: 0\r\n', 'upgrade'],
    ['Content-Type: application/json;\r\n', 'content-type'],
    ['Content-Type: application/json\t;\tcharset="UTF-8" ;\r\n', 'content-type'],
    ['Accept-Encoding: gzip, br\r\n', 'upgrade'],
    ['Range: bytes=0-1\r\n', 'range'],
    ['__proto__: x\r\n', '__proto__'],
  ])('C8.3 serves a call with %j and forwards none of it', async (lines, name) => {
    const { received, answer } = await serve(lines)
    expectOurs(received)
    expect(Object.hasOwn(received.headers, name)).toBe(false)
    expect(JSON.parse(answer.body)).toEqual({ Errors: [], Data: { ok: true } })
  })

  it('C3.6 answers Expect: 100-continue with 100 once it wants the body, and forwards no Expect', async () => {
    const connection = await openRaw(http.port)
    const target = '/api/1.0/b/ACME/fund-data/any/x'
    const lines = `${http.authorization}Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 7\r\n`
    connection.send(bytesOf({ method: 'POST', target, lines }))
    expect((await connection.response()).status).toBe(100)
    connection.send('{"a":1}')
    expect((await connection.response()).status).toBe(200)
    connection.destroy()
    const [received] = http.received()
    expect([received?.body.toString(), received?.headers['expect']]).toEqual(['{"a":1}', undefined])
  })

  it('C4.17 answers Expect: 100-continue with the refusal where the call is refused', async () => {
    for (const attacked of every()) {
      const lines = 'Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 7\r\n'
      const target = '/api/1.0/b/ACME/fund-data/any/x'
      const statuses = await statusesOf(attacked.port, bytesOf({ method: 'POST', target, lines }))
      expect([statuses, attacked.reached()]).toEqual([[401], []])
    }
  })
})
