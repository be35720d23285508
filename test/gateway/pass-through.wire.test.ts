import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { fundsOf } from '../support/changed-funds.ts'
import { openRaw } from '../support/raw-http.ts'
import { bearer, requestBytes, send, type Sent } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream, type UpstreamAnswer } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const ENVELOPE = JSON.stringify({ Errors: [], Data: { Name: 'Füür' } })

type Payload = 'bare' | 'envelope'

const withPayload =
  (payload: Payload) =>
  (loaded: Configuration): Configuration => {
    const funds = fundsOf(loaded)
    return {
      ...loaded,
      backends: { ...loaded.backends, funds: { ...funds, payload, responseHeaders: ['Cache-Control'] } },
    }
  }

let upstream: Upstream
let gateways: Readonly<Record<Payload, { readonly gateway: StartedPostern; readonly token: string }>>

async function start(payload: Payload) {
  const gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: withPayload(payload),
  })
  return { gateway, token: (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token }
}

/** config/upstream.yaml, whose list of funds is of a type of its own. */
const producing = (type: string) => (loaded: Configuration) => ({
  ...loaded,
  actions: loaded.actions.map((action) => {
    if (action.action !== 'fund-list' || action.methods.GET === undefined) return action
    // What is said of `Data` is for answers with an envelope.
    const { scopes, versions, items } = action.methods.GET
    return { ...action, methods: { GET: { scopes, versions, items, produces: [type] } } }
  }),
})

beforeAll(async () => {
  upstream = await openUpstream()
  gateways = { bare: await start('bare'), envelope: await start('envelope') }
})
afterAll(async () => {
  await Promise.all([gateways.bare.gateway.close(), gateways.envelope.gateway.close(), upstream.close()])
})

/** What the client gets for an answer of the upstream, and what the upstream was asked. */
async function told(payload: Payload, answer: UpstreamAnswer, sent: Partial<Sent> = {}) {
  upstream.behave((connection) => connection.respond(answer))
  const { gateway, token } = gateways[payload]
  const count = upstream.requests.length
  const headers = { ...bearer(token), ...sent.headers }
  const response = await send(gateway, { target: LIST, ...sent, headers })
  return { response, asked: upstream.requests[count] }
}

const json = (more: UpstreamAnswer['headers'] = {}): UpstreamAnswer => ({
  headers: { 'Content-Type': 'application/json', ...more },
  body: ENVELOPE,
})

describe('conditional requests', () => {
  it('C8.4 go upstream, and its 304 comes back with the validator and without a body', async () => {
    const { response, asked } = await told(
      'envelope',
      { status: 304, headers: { ETag: '"7"' } },
      { headers: { 'If-None-Match': '"7"', 'If-Modified-Since': 'Sun, 01 Nov 2026 00:00:00 GMT' } },
    )
    expect(asked?.headers).toMatchObject({
      'if-none-match': ['"7"'],
      'if-modified-since': ['Sun, 01 Nov 2026 00:00:00 GMT'],
    })
    expect(response).toMatchObject({ status: 304, body: '', headers: { etag: '"7"', vary: 'Accept' } })
  })

  it('C8.6 keep a strong validator, of each representation another one, and a weak one weak', async () => {
    const strong = json({ ETag: '"7"', 'Last-Modified': 'Sun, 01 Nov 2026 00:00:00 GMT' })
    const XML = { headers: { Accept: 'application/xml' } }
    const etagOf = async (payload: Payload, sent?: Partial<Sent>) =>
      (await told(payload, strong, sent)).response.headers['etag']
    const tags = [
      await etagOf('envelope'),
      await etagOf('envelope', XML),
      await etagOf('bare'),
      await etagOf('bare', XML),
    ]
    for (const tag of tags) expect(tag).toMatch(/^"7-(?:json|xml)\.[\w-]{8}"$/)
    expect(new Set(tags).size).toBe(4)
    const weak = await told('bare', json({ ETag: 'W/"8"' }))
    expect(weak.response.headers['etag']).toMatch(/^W\/"8-json\.[\w-]{8}"$/)
  })

  it('get the same validator from a 304 as from a 200', async () => {
    const unchanged = { status: 304, headers: { ETag: '"7"' } }
    const { response, asked } = await told('bare', unchanged, { headers: { 'If-None-Match': 'W/"7"' } })
    expect(asked?.headers['if-none-match']).toEqual(['W/"7"'])
    expect(response).toMatchObject({ status: 304, headers: { etag: 'W/"7"' } })
  })

  it('C8.4 that fail come back as 412', async () => {
    const sent = { headers: { 'If-Match': '"6"' } }
    expect((await told('envelope', { status: 412 }, sent)).response.status).toBe(412)
  })
})

describe('Cache-Control', () => {
  it.each(['bare', 'envelope'] as const)(
    'C2.5 is the upstream’s where it passes, else no-store, and one line either way (payload %s)',
    async (payload) => {
      for (const [given, expected] of [
        [{ 'Cache-Control': 'max-age=5' }, 'max-age=5'],
        [{}, 'no-store'],
      ] as const) {
        const { rawHeaders } = (await told(payload, json(given))).response
        const lines = rawHeaders.filter(([name]) => name.toLowerCase() === 'cache-control')
        expect(lines.map(([, value]) => value)).toEqual([expected])
      }
    },
  )
})

describe('HEAD', () => {
  it.each(['bare', 'envelope'] as const)(
    'tells the headers that GET tells, from an upstream whose payload is %s',
    async (payload) => {
      const answer = json({ ETag: '"7"', 'Last-Modified': 'Sun, 01 Nov 2026 00:00:00 GMT' })
      const got = (await told(payload, answer)).response
      upstream.behave((connection) =>
        connection.raw(
          'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: "7"\r\n' +
            `Last-Modified: Sun, 01 Nov 2026 00:00:00 GMT\r\nContent-Length: ${Buffer.byteLength(ENVELOPE)}\r\n\r\n`,
        ),
      )
      const { gateway, token } = gateways[payload]
      const head = await send(gateway, { method: 'HEAD', target: LIST, headers: bearer(token) })
      const kept = ['etag', 'last-modified', 'content-type', 'vary', 'cache-control'] as const
      for (const name of kept) expect([name, head.headers[name]]).toEqual([name, got.headers[name]])
      expect(head).toMatchObject({ status: 200, body: '' })
      expect(upstream.requests.at(-1)?.method).toBe('HEAD')
    },
  )

  it('C7.1 of an action with types of its own tells the type and length that GET would have', async () => {
    const gateway = await postern({
      keeps: 'nothing',
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: upstream.url },
      change: producing('application/pdf'),
    })
    const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
    upstream.behave((connection) =>
      connection.raw('HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: 70000\r\n\r\n'),
    )
    const head = await send(gateway, { method: 'HEAD', target: LIST, headers: bearer(access_token) })
    expect(head).toMatchObject({ status: 200, body: '' })
    expect(head.headers).toMatchObject({ 'content-type': 'application/pdf', 'content-length': '70000' })
  })

  it('leaves the connection usable, since nothing follows its headers', async () => {
    const { gateway, token } = gateways.envelope
    upstream.behave((connection) =>
      connection.request.method === 'HEAD'
        ? connection.raw('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n')
        : connection.respond(json()),
    )
    const connection = await openRaw(gateway.port)
    connection.send(requestBytes({ method: 'HEAD', target: LIST, headers: bearer(token) }))
    expect((await connection.response({ head: true })).status).toBe(200)
    connection.send(requestBytes({ target: LIST, headers: bearer(token) }))
    expect(await connection.response()).toMatchObject({ status: 200, body: ENVELOPE })
    connection.destroy()
  })
})

describe('compression', () => {
  const packed = gzipSync(ENVELOPE)
  const gzip = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip', ETag: '"7-gzip"' }
  const GZIP = { headers: { 'Accept-Encoding': 'gzip, br;q=0.5' } }

  it('passes untouched where the upstream’s bytes are the client’s', async () => {
    upstream.behave((connection) => connection.respond({ headers: gzip, body: packed }))
    const { baseUrl } = gateways.envelope.gateway
    const { port } = new URL(baseUrl)
    const connection = await openRaw(Number(port))
    connection.send(
      requestBytes({ target: LIST, headers: { ...bearer(gateways.envelope.token), ...GZIP.headers } }),
    )
    const bytes = await untilContains(connection, packed)
    expect(upstream.requests.at(-1)?.headers['accept-encoding']).toEqual(['gzip, br;q=0.5'])
    expect(bytes).toMatch(/\r\ncontent-encoding: gzip\r\n/i)
    expect(bytes).toMatch(/\r\netag: "7-gzip-json\.[\w-]{8}"\r\n/i)
    expect(bytes).toMatch(/\r\nvary: Accept, Accept-Encoding\r\n/i)
    connection.destroy()
  })

  it('is not asked for where Postern has to read the answer, or the client did not ask', async () => {
    const XML = { ...GZIP.headers, Accept: 'application/xml' }
    expect((await told('envelope', json(), { headers: XML })).asked?.headers['accept-encoding']).toEqual([
      'identity',
    ])
    expect((await told('bare', json(), GZIP)).asked?.headers['accept-encoding']).toEqual(['identity'])
    expect((await told('envelope', json())).asked?.headers['accept-encoding']).toEqual(['identity'])
  })

  it('that nobody asked for is the upstream’s mistake where Postern has to read it', async () => {
    const { response } = await told('bare', { headers: gzip, body: packed })
    expect(response.status).toBe(500)
  })
})

/** What has arrived, as soon as these bytes are in it. */
async function untilContains(
  connection: Awaited<ReturnType<typeof openRaw>>,
  bytes: Buffer,
): Promise<string> {
  const wanted = bytes.toString('latin1')
  while (!connection.unread.includes(wanted) && !connection.isClosed)
    await new Promise((resolve) => connection.socket.once('data', resolve).once('close', resolve))
  expect(connection.unread).toContain(wanted)
  return connection.unread
}
