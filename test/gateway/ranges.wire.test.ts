import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { openRaw } from '../support/raw-http.ts'
import { bearer, expectFault, requestBytes, send, type Sent } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream, type UpstreamBehaviour } from '../support/start-upstream.ts'
import { at, withStream } from '../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** C7.1, C8.2: ranges (RFC 9110 §14) are of the bytes as the upstream sends them, and pass where those do. */

const DATA = randomBytes(300_000)
const ENVELOPE = Buffer.from('{"Errors":[],"Data":{"Name":"Super One"}}')

let upstream: Upstream
let bare: { gateway: StartedPostern; token: string }
let enveloped: typeof bare

async function start(payload: 'bare' | 'envelope'): Promise<typeof bare> {
  const change = (configuration: Configuration): Configuration => {
    const changed = withStream(configuration)
    const funds = { ...changed.backends['funds']!, payload } as Configuration['backends'][string]
    return { ...changed, backends: { ...changed.backends, funds } }
  }
  const gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change,
  })
  return { gateway, token: (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token }
}

beforeAll(async () => {
  upstream = await openUpstream()
  bare = await start('bare')
  enveloped = await start('envelope')
})
afterAll(() => Promise.all([bare.gateway.close(), enveloped.gateway.close(), upstream.close()]))

/** Serves these bytes as RFC 9110 §14 has it, one range from somewhere to the end. */
const serving =
  (data: Buffer, type: string): UpstreamBehaviour =>
  (connection) => {
    const { request } = connection
    const headers = { 'Content-Type': type, 'Accept-Ranges': 'bytes', ETag: '"1"' }
    const [, from] = /^bytes=(\d+)-$/.exec(request.headers['range']?.[0] ?? '') ?? []
    const isSame = (request.headers['if-range']?.[0] ?? '"1"') === '"1"'
    if (from === undefined || !isSame) connection.respond({ headers, body: data })
    else if (Number(from) >= data.length)
      connection.respond({
        status: 416,
        headers: { 'Content-Type': 'text/plain', 'Content-Range': `bytes */${data.length}` },
        body: 'no such range at 10.0.0.7',
      })
    else
      connection.respond({
        status: 206,
        headers: { ...headers, 'Content-Range': `bytes ${from}-${data.length - 1}/${data.length}` },
        body: data.subarray(Number(from)),
      })
  }

async function ask({ gateway, token }: typeof bare, sent: Partial<Sent>) {
  const count = upstream.requests.length
  const headers = { ...bearer(token), ...sent.headers }
  const response = await send(gateway, { target: at('download'), ...sent, headers })
  return { response, asked: upstream.requests[count]?.headers ?? {} }
}

const FROM_4 = { Range: 'bytes=4-', 'If-Range': '"1"' }

describe('an action whose answers pass as they are', () => {
  it('C8.2 passes Range and If-Range on, and the 206 back', async () => {
    upstream.behave(serving(Buffer.from('0123456789'), 'application/octet-stream'))
    const { response, asked } = await ask(bare, { headers: FROM_4 })
    expect(asked).toMatchObject({ range: ['bytes=4-'], 'if-range': ['"1"'] })
    expect(response).toMatchObject({ status: 206, body: '456789' })
    expect(response.headers).toMatchObject({
      'content-range': 'bytes 4-9/10',
      'content-length': '6',
      'accept-ranges': 'bytes',
      etag: '"1"',
    })
    const other = await ask(bare, { headers: { ...FROM_4, 'If-Range': '"2"' } })
    expect(other.response).toMatchObject({ status: 200, body: '0123456789' })
  })

  it('C8.4 believes neither 206 nor 304 to a POST, for which HTTP has none', async () => {
    const conditions = { ...FROM_4, 'If-None-Match': '"1"', 'Content-Type': 'application/octet-stream' }
    for (const status of [206, 304]) {
      upstream.behave((connection) => connection.respond({ status, headers: { ETag: '"1"' } }))
      const sent = { method: 'POST', target: at('upload'), headers: conditions, body: 'bytes' }
      expectFault((await ask(bare, sent)).response, 'outcome_unknown')
    }
  })

  it('C8.4 tells with 416 how long the data is, and nothing of the upstream’s text', async () => {
    upstream.behave(serving(Buffer.from('0123456789'), 'application/octet-stream'))
    const { response } = await ask(bare, { headers: { Range: 'bytes=10-' } })
    expect(response.status).toBe(416)
    expect(response.headers['content-range']).toBe('bytes */10')
    expect(JSON.parse(response.body)).toMatchObject({ Errors: [{ Code: 'API_BAD_REQUEST' }], Data: {} })
    upstream.behave((connection) =>
      connection.respond({ status: 416, headers: { 'Content-Range': 'bytes */10\t10.0.0.7' } }),
    )
    const odd = await ask(bare, { headers: { Range: 'bytes=10-' } })
    expect([odd.response.status, odd.response.headers['content-range']]).toEqual([416, undefined])
  })

  it('C8.4 lets a download that was cut be resumed, and nothing is sent twice', async () => {
    const { gateway, token } = bare
    upstream.behave((connection) => {
      const head = `HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nETag: "1"\r\nContent-Length: ${DATA.length}\r\n\r\n`
      connection.raw(Buffer.concat([Buffer.from(head), DATA.subarray(0, 200_000)]))
      setTimeout(() => connection.reset(), 50)
    })
    const connection = await openRaw(gateway.port)
    connection.send(requestBytes({ target: at('download'), headers: bearer(token) }))
    const head = await connection.response({ head: true })
    expect([head.status, head.headers['content-length']]).toEqual([200, String(DATA.length)])
    await connection.closed()
    const first = Buffer.from(connection.unread, 'latin1')
    expect(first.length).toBeLessThan(DATA.length)
    upstream.behave(serving(DATA, 'application/octet-stream'))
    const rest = await fetch(`${gateway.baseUrl}${at('download')}`, {
      headers: { ...bearer(token), Range: `bytes=${first.length}-`, 'If-Range': '"1"' },
    })
    expect(rest.status).toBe(206)
    expect(Buffer.concat([first, Buffer.from(await rest.arrayBuffer())]).equals(DATA)).toBe(true)
  })

  it('C8.6 passes a part of an envelope that the upstream makes, and several parts', async () => {
    upstream.behave(serving(ENVELOPE, 'application/json'))
    const { response, asked } = await ask(enveloped, { target: at('plain/x'), headers: FROM_4 })
    expect(asked['range']).toEqual(['bytes=4-'])
    expect(response).toMatchObject({ status: 206, body: ENVELOPE.subarray(4).toString() })
    const parts = '--B\r\nContent-Range: bytes 0-1/41\r\n\r\n{"\r\n--B--\r\n'
    const type = 'multipart/byteranges; boundary=B'
    upstream.behave((connection) =>
      connection.respond({ status: 206, headers: { 'Content-Type': type }, body: parts }),
    )
    const several = await ask(enveloped, {
      target: at('plain/x'),
      headers: { Range: 'bytes=0-1,4-5' },
    })
    expect(several.response).toMatchObject({ status: 206, body: parts })
    expect(several.response.headers['content-type']).toBe(type)
  })
})

describe('an action whose answers are wrapped or converted', () => {
  const cases = [
    ['wrapped', () => bare, {}],
    ['converted', () => enveloped, { Accept: 'application/xml' }],
  ] as const
  it.each(cases)(
    'C8.6 is asked for all of it where that is %s, and offers no ranges',
    async (_how, by, more) => {
      upstream.behave(serving(ENVELOPE, 'application/json'))
      const { response, asked } = await ask(by(), { target: at('plain/x'), headers: { ...FROM_4, ...more } })
      expect([asked['range'], asked['if-range']]).toEqual([undefined, undefined])
      expect(response.status).toBe(200)
      expect(response.headers['accept-ranges']).toBeUndefined()
    },
  )

  it.each(cases)(
    'C8.4 takes a part that nobody asked for as no answer where it is %s',
    async (_how, by, more) => {
      upstream.behave((connection) =>
        connection.respond({
          status: 206,
          headers: { 'Content-Type': 'application/json', 'Content-Range': `bytes 0-40/90` },
          body: ENVELOPE,
        }),
      )
      const { response } = await ask(by(), { target: at('plain/x'), headers: { ...FROM_4, ...more } })
      expect([response.status, response.headers['content-range']]).toEqual([500, undefined])
    },
  )
})
