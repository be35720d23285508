import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { withForwardedActions } from '../support/forwarded-action.ts'
import { bearer, expectFault, send } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, startUpstream, type Upstream, type UpstreamAnswer } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const PATH = '/api/1.0/b/ACME/fund-data'

/** What `upstream` of the GET of each action says. */
const UPSTREAMS = {
  plain: {},
  untyped: { types: {} },
  types: {
    types: {
      'application/json-rpc': 'json',
      'Application/X-Amz-Json-1.1': 'json',
      'text/xml': 'xml',
      'text/plain': 'text',
      'text/html': 'text',
    },
    xml: { dialect: 'plain', namespaces: 'strip' },
  },
  part: { types: { 'text/plain': 'text' }, data: '/a' },
  envelope: { payload: 'envelope', types: { 'application/x-envelope': 'json' } },
  text: { payload: 'text' },
  textAndPages: { payload: 'text', types: { 'text/html': 'text' } },
  none: { payload: 'none' },
  noneSearched: {
    payload: 'none',
    errors: { present: '/error', code: '/error', statuses: { gone: 404 } },
  },
} as const

const before = ({ url }: Upstream, more: { readonly maxConnections?: number } = {}) => ({
  keeps: 'nothing' as const,
  config: 'upstream.yaml',
  environment: { UPSTREAM_URL: url },
  change: withForwardedActions(UPSTREAMS, (backend) => ({
    ...backend,
    ...more,
    types: { 'application/x-shared': 'json' },
  })),
})

let upstream: Upstream
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  upstream = await openUpstream()
  gateway = await startPostern(before(upstream))
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})

function answered(
  action: keyof typeof UPSTREAMS,
  answer: UpstreamAnswer,
  { accept = 'application/json', method = 'GET', headers = {} } = {},
) {
  upstream.behave((connection) => connection.respond(answer))
  return send(gateway, {
    method,
    target: `${PATH}/${action}`,
    headers: { ...bearer(token), Accept: accept, ...headers },
  })
}

const typed = (type: string, body: string | Buffer, more: UpstreamAnswer = {}): UpstreamAnswer => ({
  ...more,
  headers: { 'Content-Type': type, ...more.headers },
  body,
})

const dataOf = (body: string): unknown => (JSON.parse(body) as { Data: unknown }).Data
const value = (text: string) => ({ Value: text })

describe('C8.8 types say what further media types are read as', () => {
  it.each([
    ['application/json-rpc', '{"a":1.50}', '{"a":1.50}'],
    ['application/x-amz-json-1.1; charset=utf-8', '[1]', '{"Items":[1]}'],
    ['APPLICATION/JSON-RPC;x="y"', '{}', '{}'],
    ['application/json', '{"a":1}', '{"a":1}'],
    ['text/xml; charset=utf-8', '<x:a xmlns:x="urn:x"><x:b>1</x:b></x:a>', '{"a":{"b":"1"}}'],
    ['text/plain', 'a "b"\n', '{"Value":"a \\"b\\"\\n"}'],
    ['text/html', '<p>', '{"Value":"<p>"}'],
    ['text/plain', '', '{"Value":""}'],
  ])('C8.6 %s: %j becomes the Data %j', async (type, body, data) => {
    const response = await answered('types', typed(type, body))
    expect([response.status, response.body]).toEqual([200, `{"Errors":[],"Data":${data}}`])
  })

  it('C8.6 XML of another type reaches a client of XML', async () => {
    const response = await answered('types', typed('text/xml', '<a><b>1</b></a>'), {
      accept: 'application/xml',
    })
    expect(response.status).toBe(200)
    expect(response.body).toContain('<a><b>1</b></a>')
  })

  it.each([
    'application/xml',
    'text/html2',
    'application/json-rpcx',
    'application/json-rpc, text/plain',
    'text',
    '',
    'application/json-rpc; a=1; a=2',
  ])('T4.11, C8.4 an answer of the type %j is 500', async (type) => {
    const response = await answered('types', typed(type, '{"a":1}'))
    expectFault(response, 'upstream_broken')
  })

  it('C8.8 an operation’s types take the place of its backend’s', async () => {
    const shared = typed('application/x-shared', '{"a":1}')
    expect(dataOf((await answered('plain', shared)).body)).toEqual({ a: 1 })
    for (const action of ['types', 'untyped'] as const)
      expectFault(await answered(action, shared), 'upstream_broken')
  })

  it('C8.4 one that is listed elsewhere is 500', async () => {
    const response = await answered('plain', typed('application/json-rpc', '{}'))
    expectFault(response, 'upstream_broken')
  })

  it('C8.4 a coding that nobody asked for is 500', async () => {
    const answer = typed('text/plain', 'abc', { headers: { 'Content-Encoding': 'gzip' } })
    expectFault(await answered('types', answer), 'upstream_broken')
  })

  it('C8.4 what is not of its type is 500', async () => {
    for (const [type, body] of [
      ['application/json-rpc', '{"a":'],
      ['text/xml', '<a><b></a>'],
    ] as const)
      expectFault(await answered('types', typed(type, body)), 'upstream_broken')
  })

  it('C8.8 a text has no part: the path to the data leads nowhere', async () => {
    expectFault(await answered('part', typed('text/plain', 'a')), 'upstream_broken')
    const response = await answered('part', typed('application/json', '{"a":{"b":1}}'))
    expect(dataOf(response.body)).toEqual({ b: 1 })
  })

  it('C8.2 the one Accept lists them before that of the format', async () => {
    await answered('types', typed('application/json', '{}'))
    expect(upstream.requests.at(-1)?.headers['accept']).toEqual([
      'application/json-rpc, application/x-amz-json-1.1, text/xml, text/plain, text/html, application/json',
    ])
  })

  it('C8.6 an envelope of another type is passed on and verified', async () => {
    const good = '{"Errors":[],"Data":{"a":1}}'
    const response = await answered('envelope', typed('application/x-envelope', good))
    expect([response.status, response.body]).toEqual([200, good])
    expectFault(await answered('envelope', typed('application/x-envelope', '{"a":1}')), 'upstream_broken')
  })

  it('C8.6 a strong tag stays strong, and is the upstream’s again in If-Match', async () => {
    const answer = typed('text/plain', 'a', { headers: { ETag: '"7"' } })
    const { headers } = await answered('types', answer)
    expect(headers['etag']).toMatch(/^"7-json\.[\w-]{8}"$/)
    await answered('types', answer, { headers: { 'If-None-Match': String(headers['etag']) } })
    expect(upstream.requests.at(-1)?.headers['if-none-match']).toEqual(['"7"'])
  })
})

describe('C8.6 payload: text', () => {
  it.each([
    ['text/plain', Buffer.from('Grüße'), 'Grüße'],
    ['text/plain; charset="UTF-8"', Buffer.from('\ufeffé'), 'é'],
    ['text/plain; charset=ISO-8859-1', Buffer.from('é\x80', 'latin1'), 'é\x80'],
    ['text/csv', Buffer.from('a,b\r\n'), 'a,b\r\n'],
  ])('%s is the text in its charset', async (type, body, text) => {
    const response = await answered('text', typed(type, body))
    expect([response.status, dataOf(response.body)]).toEqual([200, value(text)])
  })

  it('without a type it is UTF-8, and a created one stays 201', async () => {
    const response = await answered('text', { status: 201, body: 'ok' })
    expect([response.status, dataOf(response.body)]).toEqual([201, value('ok')])
  })

  it('is written for clients of XML', async () => {
    const response = await answered('text', typed('text/plain', 'a<b'), { accept: 'application/xml' })
    expect(response.body).toContain('<Value>a&lt;b</Value>')
  })

  it.each([
    ['text/plain', Buffer.from([0x61, 0xff])],
    ['text/plain', Buffer.from([0xc3])],
    ['text/plain; charset=utf-16', Buffer.from('a')],
    ['text/plain; charset=windows-1252', Buffer.from('a')],
    ['text/plain; charset=utf-8; charset=iso-8859-1', Buffer.from('a')],
    ['text/html', Buffer.from('<form>')],
    ['application/json', Buffer.from('"a"')],
    ['image/png', Buffer.from('a')],
  ])('C8.4 %s is 500 where it is not such a text (%j)', async (type, body) => {
    expectFault(await answered('text', typed(type, body)), 'upstream_broken')
  })

  it('C8.4 a text that XML cannot hold is 500 for a client of XML', async () => {
    const response = await answered('text', typed('text/plain', 'a\u0001'), { accept: 'application/xml' })
    expect(response.status).toBe(500)
  })

  it('a page is a text where types say so', async () => {
    const response = await answered('textAndPages', typed('text/html; charset=utf-8', 'OK'))
    expect(dataOf(response.body)).toEqual(value('OK'))
    expect(upstream.requests.at(-1)?.headers['accept']).toEqual(['text/html, text/plain'])
  })

  it('204 has no text, and HEAD and 304 no body', async () => {
    const empty = await answered('text', { status: 204, headers: {} })
    expect([empty.status, dataOf(empty.body)]).toEqual([200, {}])
    const head = await answered('text', typed('text/plain', ''), { method: 'HEAD' })
    expect([head.status, head.body]).toEqual([200, ''])
  })

  it.each([
    ['text', 'text/html'],
    ['types', 'image/png'],
    ['part', 'text/html'],
  ] as const)('C8.6 HEAD of %s is 500 with %s, as its GET is', async (action, type) => {
    expectFault(await answered(action, typed(type, 'x')), 'upstream_broken')
    const answer = typed(type, '', { headers: { 'Content-Length': '1' } })
    expect((await answered(action, answer, { method: 'HEAD' })).status).toBe(500)
    const empty = typed(type, '', { headers: { 'Content-Length': '0' } })
    expect((await answered(action, empty, { method: 'HEAD' })).status).toBe(200)
  })

  it('T4.7 a large one is held, whole or slow, up to limits.answer', async () => {
    const text = 'é'.repeat(400_000)
    const response = await answered('text', typed('text/plain', text))
    expect((dataOf(response.body) as { Value: string }).Value).toBe(text)
    expectFault(await answered('text', typed('text/plain', 'a'.repeat(17 * 1024 * 1024))), 'answer_too_large')
  })

  it('C8.4 cut within a character or before its end, it is never given', async () => {
    const whole = Buffer.from('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\na€bc')
    for (let end = 0; end < whole.length; end += 7) {
      upstream.behave((connection) => {
        connection.raw(whole.subarray(0, end))
        connection.socket.end()
      })
      const response = await send(gateway, { target: `${PATH}/text`, headers: bearer(token) })
      expect(response.status).toBeGreaterThanOrEqual(500)
      expect(response.body).not.toContain('a€')
    }
  })
})

describe('C8.6 payload: none', () => {
  it.each([
    ['text/html', '<html>', 200],
    ['application/json', '{"broken', 201],
    ['image/png', '\x89PNG', 202],
  ])('%s is dropped, and the status kept', async (type, body, status) => {
    const answer = typed(type, body, {
      status,
      headers: { 'Content-Encoding': 'gzip', 'Content-Language': 'de', ETag: '"1"' },
    })
    const response = await answered('none', answer)
    expect([response.status, response.body]).toEqual([status, '{"Errors":[],"Data":{}}'])
    expect(response.headers).not.toHaveProperty('content-encoding')
    expect(response.headers).not.toHaveProperty('content-language')
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8')
  })

  it('204 is 200, and HEAD has no body', async () => {
    expect((await answered('none', { status: 204 })).status).toBe(200)
    const head = await answered('none', typed('text/html', ''), { method: 'HEAD' })
    expect([head.status, head.body]).toEqual([200, ''])
  })

  it('304 to a conditional GET stays 304', async () => {
    const headers = { 'If-None-Match': '"7"' }
    const response = await answered('none', { status: 304, headers: { ETag: '"7"' } }, { headers })
    expect(response.status).toBe(304)
  })

  it('C8.4 a 404 and a 500 stay what they are', async () => {
    expectFault(await answered('none', { status: 404, body: 'x' }), 'upstream_not_found')
    expectFault(await answered('none', { status: 500, body: 'secret' }), 'upstream_broken')
  })

  it('a body that ends within 1 MiB leaves its connection for other calls, a longer one closes it', async () => {
    const upstream = await startUpstream()
    // With one connection a call waits until the one before has left it, or closed it.
    const gateway = await postern(before(upstream, { maxConnections: 1 }))
    const headers = bearer((await issueToken(gateway, { scope: ALL_AT_ACME })).access_token)
    const served: Socket[] = []
    for (const length of [700 * 1024, 1, 2 * 1024 * 1024, 1]) {
      upstream.behave((connection) => {
        served.push(connection.socket)
        connection.respond(typed('text/plain', 'a'.repeat(length)))
      })
      expect((await send(gateway, { target: `${PATH}/none`, headers })).status).toBe(200)
    }
    expect(served.map((socket) => socket === served[0])).toEqual([true, true, true, false])
  })

  it('T4.12 an endless body closes its connection, and its client has an answer', async () => {
    let closed: Promise<unknown> = Promise.resolve()
    upstream.behave((connection) => {
      const { socket } = connection
      closed = new Promise((resolve) => socket.once('close', resolve))
      connection.raw(
        'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
      )
      const piece = `8000\r\n${'a'.repeat(0x8000)}\r\n`
      const write = (): void => {
        while (!socket.destroyed && socket.write(piece));
      }
      socket.on('drain', write).on('error', () => undefined)
      write()
    })
    const response = await send(gateway, { target: `${PATH}/none`, headers: bearer(token) })
    expect([response.status, response.body]).toEqual([200, '{"Errors":[],"Data":{}}'])
    await closed
  })

  it('C8.8 what may tell of an error is searched before it is dropped', async () => {
    const told = await answered('noneSearched', typed('application/json', '{"error":"gone"}'))
    expect(told.status).toBe(404)
    const good = await answered('noneSearched', typed('application/json', '{"error":null,"a":1}'))
    expect([good.status, good.body]).toEqual([200, '{"Errors":[],"Data":{}}'])
    const other = await answered('noneSearched', typed('text/plain', 'error'))
    expect([other.status, other.body]).toEqual([200, '{"Errors":[],"Data":{}}'])
    expectFault(await answered('noneSearched', typed('application/json', '{"error":')), 'upstream_broken')
  })
})
