import { createServer, type AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { urlOfNobody } from '../support/free-port.ts'
import { type HttpConfig, replaceFunds } from '../support/changed-funds.ts'
import { openRaw } from '../support/raw-http.ts'
import { replacedService } from '../support/replaced-service.ts'
import { bearer, envelopeOf, expectFault, requestBytes, send, type Sent } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import {
  answerJson,
  openUpstream,
  startUpstream,
  type ReceivedRequest,
  type Upstream,
  type UpstreamAnswer,
} from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken, MEMBER } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
const MEMBER_DETAIL = `/api/1.0/f/ACME/SUPER1/member-data/member-detail/${MEMBER}`
const XML = 'application/xml'
const JSON_ = 'application/json'

interface Fixture {
  readonly gateway: StartedPostern
  readonly upstream: Upstream
  readonly token: string
}

const before = (upstream: Upstream, change = (backend: HttpConfig): HttpConfig => backend) => ({
  keeps: 'nothing' as const,
  config: 'upstream.yaml',
  environment: { UPSTREAM_URL: upstream.url },
  change: replaceFunds(change),
})
const replace = replacedService({ keeps: 'nothing' })
/** For one test. */
async function fixture(change?: (backend: HttpConfig) => HttpConfig): Promise<Fixture> {
  const upstream = await startUpstream()
  const gateway = await replace(before(upstream, change))
  return { gateway, upstream, token: (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token }
}

let shared: Fixture
beforeAll(async () => {
  const upstream = await openUpstream()
  const gateway = await startPostern(
    before(upstream, (backend) => ({ ...backend, timeouts: { ...backend.timeouts, firstByte: 300 } })),
  )
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  shared = { gateway, upstream, token: access_token }
})
afterAll(async () => {
  await Promise.all([shared.gateway.close(), shared.upstream.close()])
})
beforeEach(() => {
  shared.upstream.behave(answerJson({ ok: true }))
})

const ask = ({ headers, ...more }: Partial<Sent> = {}, { gateway, token } = shared) =>
  send(gateway, { target: LIST, ...more, headers: { ...bearer(token), ...headers } })

/** What the upstream received for it. */
async function received(sent: Partial<Sent>, from = shared): Promise<ReceivedRequest> {
  const count = from.upstream.requests.length
  await ask(sent, from)
  expect(from.upstream.requests.length).toBe(count + 1)
  return from.upstream.requests[count]!
}

/** What a client gets for what the upstream answers. */
function told(answer: UpstreamAnswer, sent: Partial<Sent> = {}, from = shared) {
  from.upstream.behave((connection) => connection.respond(answer))
  return ask(sent, from)
}
const json = (value: unknown): UpstreamAnswer => ({
  headers: { 'Content-Type': JSON_ },
  body: JSON.stringify(value),
})

describe('C8.2: what the upstream gets', () => {
  it('C8.2: the canonical path and the query', async () => {
    const { target, method } = await received({ target: `/api/1.0/b/%41CME/fund-data/fund-list?a=%41&b=..` })
    expect([method, target]).toEqual(['GET', `${LIST}?a=%41&b=..`])
  })

  it('C8.2: who calls, one line each', async () => {
    const { headers } = await received({})
    expect(headers).toMatchObject({
      'x-postern-subject': ['45733adb-9b07-4d40-ae57-20cf9b802f51'],
      'x-postern-client': ['acme-books'],
      'x-postern-scope': [ALL_AT_ACME],
      'x-postern-business': ['ACME'],
      'x-postern-action-version': ['1'],
    })
    expect(headers).not.toHaveProperty('x-postern-fund')
    expect((await received({ target: DETAIL })).headers['x-postern-fund']).toEqual(['SUPER1'])
  })

  it('C8.2: the X-Request-Id of the answer', async () => {
    const count = shared.upstream.requests.length
    const response = await ask({ headers: { 'X-Request-Id': 'chosen' } })
    expect(shared.upstream.requests[count]?.headers['x-request-id']).toEqual([
      response.headers['x-request-id'],
    ])
  })

  it('C8.2: a traceparent, of the client’s trace if it sent one', async () => {
    const own = (await received({})).headers['traceparent']
    expect(own).toEqual([expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/)])
    const sent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const [next = ''] = (await received({ headers: { traceparent: sent } })).headers['traceparent'] ?? []
    expect(next.split('-')[1]).toBe(sent.split('-')[1])
    expect(next).not.toBe(sent)
  })

  it('C8.2: Forwarded and X-Forwarded-* made by Postern, not the client’s', async () => {
    const spoofed = {
      Forwarded: 'for=6.6.6.6;host=evil.example',
      'X-Forwarded-For': '6.6.6.6',
      'X-Forwarded-Host': 'evil.example',
      'X-Forwarded-Proto': 'gopher',
      'X-Forwarded-Port': '666',
    }
    const { head, headers } = await received({ headers: spoofed })
    expect(headers['x-forwarded-for']).toEqual(['127.0.0.1'])
    expect(headers['x-forwarded-proto']).toEqual(['http'])
    expect(headers['x-forwarded-host']).toEqual([`127.0.0.1:${String(shared.gateway.port)}`])
    expect(headers['forwarded']).toHaveLength(1)
    expect(head).not.toMatch(/6\.6\.6\.6|evil|gopher|: 666/)
  })

  it("C8.2: exactly one Accept, the upstream's format, whatever the client's", async () => {
    for (const accept of [XML, JSON_, [JSON_, XML], '*/*', undefined])
      expect((await received({ headers: { Accept: accept } })).headers['accept']).toEqual([JSON_])
  })

  it('C8.2: where the action has versions, the vendor type and the version', async () => {
    const accept = 'application/vnd.postern.action.v2+xml'
    const { headers } = await received({ target: MEMBER_DETAIL, headers: { Accept: accept } })
    expect(headers['accept']).toEqual(['application/vnd.postern.action.v2+json'])
    expect(headers['x-postern-action-version']).toEqual(['2'])
    const plain = await received({ target: MEMBER_DETAIL })
    expect(plain.headers['accept']).toEqual(['application/vnd.postern.action.v1+json'])
  })

  it.each([
    'X-Postern-Subject',
    'x_postern_subject',
    'X-POSTERN-BUSINESS',
    'X_Postern-Client',
    'X-Postern-Fund',
    'X-Postern-Anything',
    'x_forwarded_for',
    'X_Request_Id',
  ])('C8.2: a %s from a client never arrives', async (name) => {
    const { head } = await received({ headers: { [name]: 'smuggled' } })
    expect(head).not.toContain('smuggled')
  })

  it('C8.2, C8.3: nor what its Connection names, nor hop-by-hop headers', async () => {
    const { head } = await received({
      headers: {
        Connection: 'close, X-Private, X-Postern-Subject',
        'X-Private': 'smuggled',
        'Keep-Alive': 'smuggled=1',
        TE: 'smuggled',
        'Proxy-Authorization': 'smuggled',
        'Proxy-Connection': 'smuggled',
        Trailer: 'smuggled',
      },
    })
    expect(head).not.toContain('smuggled')
    expect(head).toMatch(/x-postern-subject: 45733adb/i)
  })

  it("C8.2: the client's Authorization and token are not passed", async () => {
    const { head } = await received({})
    expect(head.toLowerCase()).not.toContain('authorization')
    expect(head).not.toContain(shared.token)
  })

  it('C8.2: unless it is configured', async () => {
    const own = await fixture((backend) => ({ ...backend, forwardAuthorization: true }))
    expect((await received({}, own)).headers['authorization']).toEqual([`Bearer ${own.token}`])
  })

  it('C8.2: other headers of the client arrive, and Host is the upstream’s', async () => {
    const { headers } = await received({ headers: { 'X-Custom': 'kept', 'Accept-Language': 'de' } })
    expect(headers).toMatchObject({
      'x-custom': ['kept'],
      'accept-language': ['de'],
      host: [`127.0.0.1:${String(shared.upstream.port)}`],
    })
  })
})

describe('C8.3: what a client never sees of the upstream', () => {
  it('C8.3: hop-by-hop headers, banner, cookies, redirects and challenges are dropped', async () => {
    const response = await told({
      headers: {
        ...json({}).headers,
        Connection: 'X-Named',
        'X-Named': 'secret',
        'Keep-Alive': 'timeout=99',
        Server: 'secret/1.0',
        'X-Powered-By': 'secret',
        Via: '1.1 secret',
        'Set-Cookie': 'secret=1',
        Location: 'http://secret.internal/',
        'WWW-Authenticate': 'secret',
        'X-Internal-Address': 'secret',
      },
      body: '{}',
    })
    expect(response.status).toBe(200)
    expect(JSON.stringify(response.rawHeaders)).not.toContain('secret')
    expect(JSON.stringify(response.rawHeaders)).not.toContain('timeout=99')
  })

  it('C8.3: unless it is configured so', async () => {
    const own = await fixture((backend) => ({ ...backend, responseHeaders: ['Refresh', 'Set-Cookie'] }))
    const answer = {
      status: 201,
      headers: { ...json({}).headers, Refresh: '9', 'Set-Cookie': 'a=1' },
      body: '{}',
    }
    const response = await told(answer, {}, own)
    expect(response).toMatchObject({ status: 201, headers: { refresh: '9', 'set-cookie': 'a=1' } })
  })

  it('C8.3: nor its error text, in any format', async () => {
    const text = 'stack trace at db.internal:5432'
    for (const status of [400, 403, 404, 418, 500, 503])
      for (const body of [text, JSON.stringify({ message: text }), `<html>${text}</html>`]) {
        const response = await told({ status, headers: { 'Content-Type': JSON_ }, body })
        expect(response.body + JSON.stringify(response.headers)).not.toContain('db.internal')
        expect(response.body).toContain('"Errors":[{"Code":"API_')
      }
  })
})

describe('C8.4: an upstream that fails', () => {
  it('C8.4: refused: 503', async () => {
    const target = await urlOfNobody()
    const response = await ask({}, await fixture((backend) => ({ ...backend, target })))
    expectFault(response, 'upstream_unreachable')
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(0)
    expect(response.body).not.toContain(new URL(target).port)
  })

  it('C8.4: reset, or closed without an answer: 503', async () => {
    shared.upstream.behave((connection) => connection.reset())
    expectFault(await ask(), 'upstream_unreachable')
    shared.upstream.behave((connection) => connection.socket.end())
    expectFault(await ask(), 'upstream_unreachable')
  })

  it('C8.4: DNS failure: 503', async () => {
    const own = await fixture((backend) => ({ ...backend, target: 'http://nowhere.invalid:1' }))
    expectFault(await ask({}, own), 'upstream_unreachable')
  })

  it('C8.4: TLS failure: 503', async () => {
    const server = createServer((socket) => socket.on('error', () => undefined).end('no TLS\r\n'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const own = await fixture((backend) => ({ ...backend, target: `https://127.0.0.1:${String(port)}` }))
    expectFault(await ask({}, own), 'upstream_unreachable')
  })

  it('C8.4: no first byte in time: 503', async () => {
    shared.upstream.behave(() => undefined)
    expectFault(await ask(), 'upstream_timeout')
  })

  it('C8.4: what is no HTTP: 500', async () => {
    shared.upstream.behave((connection) => connection.raw('HELLO\r\n\r\n'))
    expectFault(await ask(), 'upstream_broken')
  })

  it.each([502, 503, 504])('C8.4: %i is 503, its Retry-After kept', async (status) => {
    const response = await told({ status, headers: { 'Retry-After': '77' } })
    expectFault(response, 'upstream_unavailable')
    expect(response.headers['retry-after']).toBe('77')
    const plain = await told({ status })
    expectFault(plain, 'upstream_unavailable')
    expect(Number(plain.headers['retry-after'])).toBeGreaterThan(0)
  })

  it.each([500, 501, 505, 599, 401, 407, 300, 301, 302, 304, 307, 308])('C8.4: %i is 500', async (status) => {
    const response = await told({ status, headers: { Location: 'http://x/', 'WWW-Authenticate': 'Basic' } })
    expectFault(response, 'upstream_broken')
    expect(response.headers).not.toHaveProperty('location')
    expect(response.headers).not.toHaveProperty('www-authenticate')
  })

  it('C8.4: a 304 to a conditional request passes', async () => {
    const sent = { headers: { 'If-None-Match': '"a"' } }
    expect(await told({ status: 304, headers: { ETag: '"a"' } }, sent)).toMatchObject({
      status: 304,
      body: '',
    })
  })

  it('C8.4: 401 passes if Authorization was forwarded', async () => {
    const own = await fixture((backend) => ({ ...backend, forwardAuthorization: true }))
    expect(await told({ status: 401 }, {}, own)).toMatchObject({ status: 401 })
  })

  it('C8.4: 403 is 401', async () => {
    const response = await told({ status: 403 })
    expectFault(response, 'upstream_forbade')
    expect(response.headers['www-authenticate']).toBe(`Bearer realm="${shared.gateway.baseUrl}"`)
  })

  const ERRORS = [
    { Code: 'FUND_CLOSED', Message: 'The fund is closed.' },
    { Code: 'B', Message: 'Second & last.' },
  ]
  it.each([400, 404, 405, 406, 409, 413, 415, 418, 422, 429, 451])(
    'C8.4: %i keeps its status and its well-formed envelope, Data emptied',
    async (status) => {
      const response = await told({ status, ...json({ Errors: ERRORS, Data: { Secret: 1 } }) })
      expect(response.status).toBe(status)
      expect(JSON.parse(response.body)).toEqual({ Errors: ERRORS, Data: {} })
      expect(response.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
      })
    },
  )

  it('C8.4, C2.4: the envelope comes in the format of errors', async () => {
    const answer = { status: 422, ...json({ Errors: [ERRORS[1]], Data: {} }) }
    const response = await told(answer, { headers: { Accept: XML } })
    expect([response.status, response.body]).toEqual([422, envelopeOf('xml', 'B', 'Second & last.')])
  })

  const ROWS = [
    [400, 'API_BAD_REQUEST'],
    [404, 'API_NOT_FOUND'],
    [405, 'API_METHOD_NOT_ALLOWED'],
    [406, 'API_NOT_ACCEPTABLE'],
    [413, 'API_TOO_LARGE'],
    [414, 'API_TOO_LARGE'],
    [415, 'API_UNSUPPORTED_MEDIA_TYPE'],
    [429, 'API_RATE_LIMITED'],
    [431, 'API_TOO_LARGE'],
    [402, 'API_BAD_REQUEST'],
    [409, 'API_BAD_REQUEST'],
    [410, 'API_BAD_REQUEST'],
    [418, 'API_BAD_REQUEST'],
    [422, 'API_BAD_REQUEST'],
  ] as const
  it.each(ROWS)('C8.4: %i without a well-formed envelope is told in ours, as %s', async (status, code) => {
    const bodies = [
      '',
      'text',
      '{}',
      '{"Errors":[],"Data":{}}',
      '{"Errors":[{"Code":1}],"Data":{}}',
      '{"Errors":',
    ]
    for (const body of bodies) {
      const response = await told({ status, headers: { 'Content-Type': JSON_ }, body })
      expect(response.status).toBe(status)
      expect(JSON.parse(response.body)).toEqual({
        Errors: [{ Code: code, Message: expect.any(String) }],
        Data: {},
      })
    }
  })

  it('C8.4: it is logged as our own trouble', async () => {
    const response = await told({ status: 500, body: 'oops' })
    const id = response.headers['x-request-id']
    const line = shared.gateway.log().find(({ requestId }) => requestId === id)
    expect(line).toMatchObject({ level: 'error', reason: 'upstream_broken' })
  })

  it.each([
    ['with a length', 'Content-Length: 500000\r\n\r\n{"a":"'],
    ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n7ffff\r\n{"a":"'],
  ])(
    "C8.4: reset in mid-body, %s: the client's connection is cut, or it is told 503",
    async (_what, rest) => {
      shared.upstream.behave((connection) => {
        connection.raw(`HTTP/1.1 200 OK\r\nContent-Type: ${JSON_}\r\n${rest}${'x'.repeat(300_000)}`)
        setTimeout(() => connection.reset(), 20)
      })
      for (const accept of [JSON_, XML]) {
        const connection = await openRaw(shared.gateway.port)
        const headers = { ...bearer(shared.token), Accept: accept }
        connection.send(requestBytes({ target: LIST, headers }))
        const outcome = await connection.response().then(
          (response) => (response.whole ? response.status : 'cut'),
          () => 'cut',
        )
        expect(['cut', 503]).toContain(outcome)
        connection.destroy()
      }
    },
  )
})

describe('C8.6: conversion and wrapping', () => {
  it.each([
    ['an object', '{"a":1}', '{"a":1}'],
    ['an array', '[1,"b"]', '{"Items":[1,"b"]}'],
    ['a string', '"x"', '{"Value":"x"}'],
    ['a number', '1.50', '{"Value":1.50}'],
    ['false', 'false', '{"Value":false}'],
    ['null', 'null', '{}'],
    ['nothing', '', '{}'],
    [
      'an envelope, from one that is not known to send them',
      '{"Errors":[],"Data":{}}',
      '{"Errors":[],"Data":{}}',
    ],
  ])('C8.6: a bare payload is wrapped: %s', async (_what, body, data) => {
    const response = await told({ headers: { 'Content-Type': JSON_ }, body })
    expect([response.status, response.body]).toEqual([200, `{"Errors":[],"Data":${data}}`])
  })

  it.each([204, 205])('C8.6: %i is 200 with empty Data', async (status) => {
    shared.upstream.behave((connection) =>
      connection.raw(`HTTP/1.1 ${String(status)} X\r\nContent-Length: 0\r\n\r\n`),
    )
    expect(await ask()).toMatchObject({ status: 200, body: '{"Errors":[],"Data":{}}' })
  })

  it.each([200, 201, 202, 203])('C8.6: %i keeps its status', async (status) => {
    const response = await told({ status, ...json({ a: 1 }) })
    expect([response.status, response.body]).toEqual([status, '{"Errors":[],"Data":{"a":1}}'])
  })

  it('C8.6: an upstream that speaks only JSON serves XML clients, both ways', async () => {
    const sent = {
      method: 'POST',
      target: DETAIL,
      body: '<Fund><Name>A &amp; B</Name><MemberLimit>5</MemberLimit></Fund>',
    }
    const request = await received({ ...sent, headers: { 'Content-Type': XML, Accept: XML } })
    expect(request.body.toString()).toBe('{"Name":"A & B","MemberLimit":5}')
    expect(request.headers['content-type']).toEqual([JSON_])
    const response = await told(json({ Name: 'A & B', Size: 1 }), { headers: { Accept: XML } })
    expect(response.body).toContain('<Data><Name>A &amp; B</Name><Size type="number">1</Size></Data>')
    expect(response.headers['content-type']).toBe('application/xml; charset=utf-8')
  })

  it('C8.6: one that speaks only XML serves JSON clients, both ways', async () => {
    const own = await fixture((backend) => ({ ...backend, format: 'xml' }))
    const sent = { method: 'POST', target: DETAIL, body: '{"Name":"A & B","MemberLimit":5}' }
    const request = await received({ ...sent, headers: { 'Content-Type': JSON_ } }, own)
    expect(request.headers).toMatchObject({ 'content-type': [XML], accept: [XML] })
    expect(request.body.toString()).toMatch(
      /<Name>A &amp; B<\/Name><MemberLimit type="number">5<\/MemberLimit>/,
    )
    const answer = {
      headers: { 'Content-Type': XML },
      body: '<Fund><Name>x</Name><N type="number">1</N></Fund>',
    }
    expect((await told(answer, {}, own)).body).toBe('{"Errors":[],"Data":{"Name":"x","N":1}}')
    expect((await told(answer, { headers: { Accept: XML } }, own)).body).toContain(
      '<Data><Name>x</Name><N type="number">1</N></Data>',
    )
  })

  it('C8.6: one that returns envelopes is passed on, and converted where the client asks', async () => {
    const own = await fixture((backend) => ({ ...backend, payload: 'envelope' }))
    const body = '{ "Errors" : [], "Data" : {"a": 1.50} }'
    const answer = { headers: { 'Content-Type': JSON_ }, body }
    expect(await told(answer, {}, own)).toMatchObject({ status: 200, body })
    const { body: xml } = await told(answer, { headers: { Accept: XML } }, own)
    expect(xml).toMatch(/<ApiResponse><Errors\/><Data><a type="number">1.50<\/a><\/Data><\/ApiResponse>\s*$/)
  })

  it('C8.6: what is not what the upstream is said to send is 500', async () => {
    expectFault(await told({ headers: { 'Content-Type': JSON_ }, body: '{"a":' }), 'upstream_broken')
    const sent = { headers: { Accept: XML } }
    expectFault(await told({ headers: { 'Content-Type': JSON_ }, body: '{"a":' }, sent), 'upstream_broken', {
      format: 'xml',
    })
  })

  it('C8.4: an answer whose lines end by LF alone is 500 as soon as it comes', async () => {
    shared.upstream.behave((connection) =>
      connection.raw(`HTTP/1.1 200 OK\nContent-Type: ${JSON_}\nContent-Length: 2\n\n{}`),
    )
    expectFault(await ask({}), 'upstream_broken')
  })

  it.each([
    ['another type', { 'Content-Type': 'text/html' }],
    ['a coding that nobody asked for', { 'Content-Type': JSON_, 'Content-Encoding': 'gzip' }],
  ])('C8.6: HEAD is 500 with %s, as GET is', async (_, headers) => {
    const answer = { headers: { ...headers, 'Content-Length': '2' }, body: '{}' }
    expectFault(await told(answer), 'upstream_broken')
    expect(await told({ ...answer, body: '' }, { method: 'HEAD' })).toMatchObject({ status: 500, body: '' })
    const empty = { headers: { ...headers, 'Content-Length': '0' }, body: '' }
    expect((await told(empty)).status).toBe(200)
    expect((await told(empty, { method: 'HEAD' })).status).toBe(200)
  })

  it('C8.6: HEAD is 500 for a length that no answer may have which is converted, and 200 where it passes', async () => {
    const answer = {
      headers: { 'Content-Type': JSON_, 'Content-Length': String(17 * 1024 * 1024) },
      body: '',
    }
    const xml = { method: 'HEAD', headers: { Accept: XML } }
    expect((await told(answer, xml)).status).toBe(500)
    expect((await told(answer, { method: 'HEAD' })).status).toBe(200)
  })

  it('C8.2: a tracestate goes on with its trace, and ends with it', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03'
    const sent = async (headers: NonNullable<Sent['headers']>) => {
      const { headers: got } = await received({ headers })
      return [got['tracestate'], got['traceparent']?.map((each) => each.replace(/-.*-/, '-…-'))]
    }
    const states = { tracestate: ['foo=1, bar=2', 'baz=3'] }
    expect(await sent({ traceparent, ...states })).toEqual([['foo=1,bar=2,baz=3'], ['00-…-01']])
    for (const headers of [
      states,
      { ...states, traceparent: 'x' },
      { ...states, traceparent: [traceparent, traceparent] },
      { traceparent, tracestate: 'FOO=1' },
    ])
      expect((await sent(headers))[0]).toBeUndefined()
  })

  it('C8.6: HEAD is asked as HEAD, and answered without a body', async () => {
    shared.upstream.behave((connection) =>
      connection.raw(`HTTP/1.1 200 OK\r\nContent-Type: ${JSON_}\r\nContent-Length: 11\r\n\r\n`),
    )
    const count = shared.upstream.requests.length
    expect(await ask({ method: 'HEAD' })).toMatchObject({ status: 200, body: '' })
    expect(shared.upstream.requests[count]?.method).toBe('HEAD')
  })
})

it('C4.17, C8.2: nothing of a refused call reaches the upstream', async () => {
  const own = await fixture()
  const refused: Partial<Sent>[] = [
    { headers: { Authorization: undefined } },
    { headers: { Authorization: 'Bearer x' } },
    { method: 'DELETE' },
    { target: LIST.replace('ACME', 'GLOBEX') },
    { headers: { Accept: 'image/png' } },
    { target: DETAIL, method: 'POST', body: '{"Colour":1}', headers: { 'Content-Type': JSON_ } },
    { target: `${LIST}/..%2f` },
  ]
  for (const sent of refused) expect((await ask(sent, own)).status).toBeGreaterThanOrEqual(400)
  expect(own.upstream.connections).toEqual([])
})
