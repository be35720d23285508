import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { sendRaw } from '../support/raw-http.ts'
import { bearer, envelopeOf, expectFault, REQUEST_ID, send, type Sent } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
const USERINFO = '/api/1.0/u/connect/userinfo'

let gateway: StartedPostern
let token: string
beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing' })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(() => gateway.close())

const ask = (sent: Partial<Sent> = {}) =>
  send(gateway, { target: LIST, ...sent, headers: { ...bearer(token), ...sent.headers } })

describe('C2.1: the envelope in JSON', () => {
  it('C2.1: a success has empty Errors and its Data, in this order and nothing else', async () => {
    const { status, body } = await ask()
    expect(status).toBe(200)
    const envelope = JSON.parse(body) as Record<string, unknown>
    expect(Object.keys(envelope)).toEqual(['Errors', 'Data'])
    expect(envelope['Errors']).toEqual([])
    expect(envelope['Data']).toMatchObject({ TotalCount: 2 })
  })

  it('C2.1: a failure has one error of Code and Message, and empty Data', async () => {
    const { body } = await send(gateway, { target: LIST })
    expect(JSON.parse(body)).toEqual({
      Errors: [{ Code: 'API_NOT_AUTHORISED', Message: expect.any(String) }],
      Data: {},
    })
  })

  it('C2.1: a write answers 200 with empty Data', async () => {
    const headers = { 'Content-Type': 'application/json' }
    const { status, body } = await ask({ method: 'POST', target: DETAIL, headers, body: '{}' })
    expect([status, body]).toEqual([200, '{"Errors":[],"Data":{}}'])
  })
})

describe('C2.2: the envelope in XML', () => {
  const XML = { Accept: 'application/xml' }

  it('C2.2: a success has the declaration, the root ApiResponse, Errors and Data', async () => {
    const { status, body } = await ask({ headers: XML })
    expect(status).toBe(200)
    expect(body).toMatch(/^<\?xml version="1.0" encoding="UTF-8"\?>\s*<ApiResponse[^>]*><Errors\/><Data>/)
    expect(body).toMatch(/<\/Data><\/ApiResponse>\s*$/)
    expect(body).toContain('<TotalCount type="number">2</TotalCount>')
  })

  it('C2.2: an error is Error with Code and Message, byte for byte', async () => {
    const { body } = await send(gateway, { target: '/api', headers: XML })
    expect(body).toBe(
      envelopeOf(
        'xml',
        'API_NOT_IMPLEMENTED',
        'This API version is not implemented. The only version is 1.0: begin the path with /api/1.0/.',
      ),
    )
  })

  it('C2.2: it is UTF-8', async () => {
    const own = await postern({ keeps: 'nothing' })
    const { access_token } = await issueToken(own, { scope: ALL_AT_ACME })
    const headers = { ...bearer(access_token), 'Content-Type': 'application/json' }
    await send(own, { method: 'POST', target: DETAIL, headers, body: '{"Name":"Zoë 漢 🏦"}' })
    const { body } = await send(own, { target: DETAIL, headers: { ...bearer(access_token), ...XML } })
    expect(body).toContain('<Name>Zoë 漢 🏦</Name>')
  })
})

describe('C2.3: every failure of Postern itself is enveloped', () => {
  const raw = (text: string) => sendRaw(gateway.port, text)

  it.each([
    ['an unreadable request', 'unreadable_request', () => raw('GARBAGE\r\n\r\n')],
    ['a missing Host', 'bad_host', () => ask({ headers: { Host: undefined } })],
    [
      'headers that are too large',
      'headers_too_large',
      () => ask({ headers: { 'X-A': 'a'.repeat(17_000) } }),
    ],
    ['a target that is too long', 'target_too_long', () => ask({ target: `${LIST}?${'a'.repeat(9000)}` })],
    [
      'a body that is too large',
      'body_too_large',
      () => ask({ method: 'POST', target: DETAIL, headers: { 'Content-Length': '2000000' } }),
    ],
    ['an unknown path under /api', 'unknown_action', () => ask({ target: '/api/1.0/nothing/here' })],
    ['a path outside every door, without a token', 'outside', () => send(gateway, { target: '/' })],
    ['another path outside every door', 'outside', () => send(gateway, { target: '/favicon.ico' })],
    ['a path that only begins like the API', 'outside', () => send(gateway, { target: '/apiary' })],
    ['an unknown identity path', 'outside', () => send(gateway, { target: '/connect/nothing' })],
    ['an unknown well-known path', 'outside', () => send(gateway, { target: '/.well-known/nothing' })],
    ['an unsupported Expect', 'outside', () => send(gateway, { target: '/', headers: { Expect: 'x' } })],
    ['OPTIONS *', 'outside', () => send(gateway, { method: 'OPTIONS', target: '*' })],
  ] as const)('C2.3: %s (%s)', async (_what, fault, act) => {
    expectFault(await act(), fault)
  })

  it('C2.3: in XML too, where the head could be read that far', async () => {
    const headers = { Accept: 'application/xml' }
    expectFault(await ask({ headers: { ...headers, Host: undefined } }), 'bad_host', { format: 'xml' })
    expectFault(await raw('GARBAGE\r\nAccept: application/xml\r\n\r\n'), 'unreadable_request', {
      format: 'xml',
    })
  })

  it('C2.3: answers to HEAD have the headers of the envelope and no body', async () => {
    const response = await send(gateway, { method: 'HEAD', target: LIST })
    expect(response).toMatchObject({ status: 401, body: '' })
    expect(response.headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8' })
  })
})

describe('C2.4: the format of an error', () => {
  const FORMATS: readonly (readonly [accept: string | undefined, format: 'json' | 'xml'])[] = [
    [undefined, 'json'],
    ['', 'json'],
    ['*/*', 'json'],
    ['application/xml', 'xml'],
    ['APPLICATION/XML', 'xml'],
    ['application/json;q=0.5, application/xml', 'xml'],
    ['application/xml;q=0.5, application/json', 'json'],
    ['application/xml, application/json', 'xml'],
    ['application/json, application/xml', 'json'],
    ['application/vnd.postern.action.v1+xml', 'xml'],
    ['application/vnd.postern.action.v999+xml', 'xml'],
    ['application/vnd.postern.action.vX+xml', 'xml'],
    ['application/vnd.someoneelse.action.v1+xml', 'json'],
    ['application/xml;q=0, */*', 'json'],
    ['application/xml;q=0', 'json'],
    ['application/json;q=0, application/xml;q=0.1', 'xml'],
    ['image/png, application/xml;q=0.1', 'xml'],
    ['text/xml', 'json'],
    ['nonsense, application/xml', 'xml'],
  ]

  it.each(FORMATS)('C2.4: before negotiation, Accept %j makes it %s', async (accept, format) => {
    const headers = accept === undefined ? {} : { Accept: accept }
    expectFault(await send(gateway, { target: '/api/9.9/x', headers }), 'unknown_api_version', { format })
    expectFault(await send(gateway, { target: LIST, headers }), 'no_credentials', { format })
  })

  it('C2.4: on userinfo as elsewhere', async () => {
    const headers = { Accept: 'application/xml' }
    expectFault(await send(gateway, { target: USERINFO, headers }), 'no_credentials', { format: 'xml' })
    expectFault(await ask({ target: USERINFO.replace('info', 'nothing'), headers }), 'unknown_action', {
      format: 'xml',
    })
  })

  it('C2.4: of all lines of Accept', async () => {
    const headers = { Accept: ['image/png', 'application/xml'] }
    expectFault(await send(gateway, { target: LIST, headers }), 'no_credentials', { format: 'xml' })
  })

  it('C2.4: where Accept names neither, the configured default', async () => {
    const change = (loaded: Configuration): Configuration => ({ ...loaded, defaultFormat: 'xml' })
    const own = await postern({ keeps: 'nothing', change })
    expectFault(await send(own, { target: LIST }), 'no_credentials', { format: 'xml' })
    expectFault(await send(own, { target: LIST, headers: { Accept: 'image/png' } }), 'no_credentials', {
      format: 'xml',
    })
    expectFault(await send(own, { target: LIST, headers: { Accept: 'application/json' } }), 'no_credentials')
  })
})

describe('C2.5: headers of answers', () => {
  it.each([
    ['application/json', 'application/json; charset=utf-8'],
    ['application/xml', 'application/xml; charset=utf-8'],
    ['*/*', 'application/json; charset=utf-8'],
    ['application/json; charset=UTF-8; indent=2', 'application/json; charset=utf-8'],
    [
      'Application/VND.Postern.Action.V1+JSON; indent=2',
      'application/vnd.postern.action.v1+json; charset=utf-8',
    ],
    ['application/vnd.postern.action.v1+xml', 'application/vnd.postern.action.v1+xml; charset=utf-8'],
  ])('C2.5: a success that was asked for as %s is %s', async (accept, type) => {
    const { status, headers } = await ask({ headers: { Accept: accept } })
    expect(status).toBe(200)
    expect(headers).toMatchObject({ 'content-type': type, vary: 'Accept', 'cache-control': 'no-store' })
  })

  it('C2.5: an error has a plain type, whichever was asked for', async () => {
    const headers = { Accept: 'application/vnd.postern.action.v1+xml' }
    const response = await send(gateway, { target: LIST, headers })
    expect(response.headers['content-type']).toBe('application/xml; charset=utf-8')
  })

  it('C2.5: userinfo has a Cache-Control of its own', async () => {
    const { headers } = await ask({ target: USERINFO })
    expect(headers['cache-control']).toBe('no-store, must-revalidate, no-cache, max-age=0')
  })
})

describe('C2.6: what is told, and what is not', () => {
  it('C2.6: every answer has an X-Request-Id of its own, successes and identity endpoints too', async () => {
    const targets = [LIST, '/api', '/', '/connect/token', '/.well-known/jwks.json', USERINFO, '*', '/..%2f']
    const answers = await Promise.all(targets.flatMap((target) => [ask({ target }), ask({ target })]))
    const ids = answers.map(({ headers }) => headers['x-request-id'])
    for (const id of ids) expect(id).toMatch(REQUEST_ID)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it("C2.6: the log line carries it; the client's own is logged beside it, and never echoed", async () => {
    const { headers } = await ask({ headers: { 'X-Request-Id': 'my-own-id' } })
    expect(headers['x-request-id']).not.toBe('my-own-id')
    const line = gateway.log().find(({ requestId }) => requestId === headers['x-request-id'])
    expect(line).toMatchObject({ event: 'call', status: 200, clientRequestId: 'my-own-id' })
  })

  it('C2.6: a 400 says which part and why, in words that are fixed', async () => {
    const headers = { 'Content-Type': 'application/json' }
    const write = (body: string) => ask({ method: 'POST', target: DETAIL, headers, body })
    expectFault(await write('{"TotalAssets":"many"}'), 'body_invalid', { say: 'TotalAssets' })
    expectFault(await write('{"Colour":1}'), 'body_invalid', { say: 'Colour' })
    expectFault(await write('{"Name":"a",}'), 'body_malformed', { say: '.' })
  })

  it('C2.6: neither a token, a value, a stack nor an address is ever told', async () => {
    const secret = 'hunter2secret'
    const answers = await Promise.all([
      send(gateway, { target: LIST, headers: bearer(secret) }),
      ask({ target: `/api/1.0/b/ACME/fund-data/${secret}` }),
      ask({ target: `/${secret}` }),
      ask({ headers: { Accept: secret } }),
      ask({ method: 'POST', target: DETAIL, headers: { 'Content-Type': secret }, body: secret }),
      ask({
        method: 'POST',
        target: DETAIL,
        body: `{"${secret}`,
        headers: { 'Content-Type': 'application/json' },
      }),
    ])
    for (const { status, body, headers } of answers) {
      expect(status).toBeGreaterThanOrEqual(400)
      expect(body + JSON.stringify(headers)).not.toContain(secret)
      expect(body).not.toMatch(/ at .*:\d+|node_modules|\.ts\b|Error:/)
    }
  })

  it('C2.6: nothing tells what the server is made of', async () => {
    const { headers } = await ask()
    expect(Object.keys(headers)).not.toContain('server')
    expect(Object.keys(headers)).not.toContain('x-powered-by')
  })
})
