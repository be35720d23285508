import { Buffer } from 'node:buffer'
import { setImmediate } from 'node:timers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { actionOf, LIST, recordsOfCall, withActions } from '../support/audited-calls.ts'
import { withForwardedActions } from '../support/forwarded-action.ts'
import { startOver } from '../support/over-module.ts'
import { openRaw } from '../support/raw-http.ts'
import { bearer, expectFault, requestBytes, send } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream, type UpstreamAnswer } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const PATH = '/api/1.0/b/ACME/fund-data'

const rpc = {
  errors: {
    present: '/error',
    code: '/error/code',
    message: '/error/message',
    statuses: { '-32001': 404, '-32002': 503, '-32003': 500, '-32602': 400, busy: 429, '0': 400 },
  },
} as const

/** What `upstream` of the GET of each action says. */
const UPSTREAMS = {
  rpc,
  soap: {
    format: 'xml',
    types: { 'application/soap+xml': 'xml' },
    xml: { dialect: 'plain', namespaces: 'strip' },
    errors: {
      present: '/Envelope/Body/Fault',
      code: '/Envelope/Body/Fault/faultcode',
      message: '/Envelope/Body/Fault/faultstring',
      statuses: { 'Client.NotFound': 404, Client: 400, NotFound: 404 },
    },
  },
  graphql: {
    errors: {
      present: '/errors',
      list: '/errors',
      code: '/extensions/code',
      message: '/message',
      statuses: { NOT_FOUND: 404, BAD_USER_INPUT: 400, INTERNAL: 500 },
    },
    data: '/data',
  },
  first: {
    errors: {
      present: '/errors/0',
      code: '/errors/0/extensions/code',
      message: '/errors/0/message',
      statuses: { NOT_FOUND: 404 },
    },
  },
  amz: {
    types: { 'application/x-amz-json-1.1': 'json' },
    errors: {
      code: '/__type',
      message: '/message',
      present: '/__type',
      statuses: { NotFound: 404, Throttling: 503, 'com.x#Whole': 405 },
    },
    errorStatus: { '400': 406 },
  },
  flags: { errors: { present: '/failed', code: '/code', statuses: { a: 400 } } },
  silent: { errors: { present: '/error' } },
  envelope: {
    payload: 'envelope',
    errors: {
      present: '/Errors',
      list: '/Errors',
      code: '/Code',
      message: '/Message',
      statuses: { E1: 404 },
    },
  },
} as const

let upstream: Upstream
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  upstream = await openUpstream()
  const posts = withActions(actionOf('change', { POST: { upstream: rpc } }))
  gateway = await startPostern({
    config: 'upstream.yaml',
    keeps: 'trail',
    environment: { UPSTREAM_URL: upstream.url },
    change: (loaded) => posts(withForwardedActions(UPSTREAMS)(loaded)),
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})

function told(
  action: keyof typeof UPSTREAMS | 'change',
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

const json = (value: unknown, status = 200, type = 'application/json'): UpstreamAnswer => ({
  status,
  headers: { 'Content-Type': type },
  body: typeof value === 'string' ? value : JSON.stringify(value),
})

const soap = (body: string, status = 500, type = 'text/xml; charset=utf-8'): UpstreamAnswer => ({
  status,
  headers: { 'Content-Type': type },
  body: `<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>${body}</s:Body></s:Envelope>`,
})
const fault = (code: string) =>
  `<s:Fault><faultcode>${code}</faultcode><faultstring xml:lang="en">No such order</faultstring></s:Fault>`

const errorsOf = (body: string): unknown => (JSON.parse(body) as { Errors: unknown }).Errors
const dataOf = (body: string): unknown => (JSON.parse(body) as { Data: unknown }).Data

describe('C8.8 a 200 or 500 is an error where `present` leads to something', () => {
  it.each([200, 500])('JSON-RPC: a known code of a %i has its status, and is told', async (status) => {
    const response = await told(
      'rpc',
      json('{"jsonrpc":"2.0","error":{"code":-32001,"message":"No such fund"},"id":1}', status),
    )
    expect(response.status).toBe(404)
    expect(errorsOf(response.body)).toEqual([{ Code: '-32001', Message: 'No such fund' }])
    expect(dataOf(response.body)).toEqual({})
  })

  it.each([
    ['an unknown code', { code: -1, message: 'secret' }],
    ['a number of which only the end is known', { code: 1.5, message: 'secret' }],
    ['no code', { message: 'secret' }],
    ['a code that is no text', { code: {}, message: 'secret' }],
    ['a code for 500', { code: -32003, message: 'secret' }],
    ['a text', 'secret'],
    ['a zero', 0],
  ])('T4.11 %s is 500 and tells nothing', async (_name, error) => {
    for (const status of [200, 500]) {
      const response = await told('rpc', json({ error }, status))
      expectFault(response, 'upstream_broken')
      expect(response.body).not.toContain('secret')
    }
  })

  it.each([[null], [false], [''], [[]], [{}], [undefined]])(
    '%j is nothing: the 200 is a success',
    async (error) => {
      const response = await told('rpc', json({ result: 1.5, error }))
      expect(response.status).toBe(200)
      expect(dataOf(response.body)).toMatchObject({ result: 1.5 })
      expectFault(await told('rpc', json({ error }, 500)), 'upstream_broken')
    },
  )

  it('a code of 503 tells nothing, and asks to come back', async () => {
    const response = await told('rpc', json({ error: { code: -32002, message: 'secret' } }))
    expect([response.status, response.body.includes('secret')]).toEqual([503, false])
    expect(response.headers).toHaveProperty('retry-after')
  })

  it('C8.4a a change that failed by a known code is known to have failed; by another it is not known', async () => {
    const post = { method: 'POST' }
    expect((await told('change', json({ error: { code: -32602 } }), post)).status).toBe(400)
    expect((await told('change', json({ error: { code: -32002 } }), post)).status).toBe(503)
    expectFault(await told('change', json({ error: { code: 7 } }), post), 'outcome_unknown')
    expectFault(await told('change', json({ error: { code: -32003 } }), post), 'outcome_unknown')
  })

  it('C12.1.3 its outcome in the audit trail is failed', async () => {
    const post = { method: 'POST' }
    for (const status of [200, 500]) {
      const response = await told('change', json({ error: { code: -32602 } }, status), post)
      const records = recordsOfCall(gateway, response)
      expect(records.at(-1)).toMatchObject({
        event: 'call.settled',
        outcome: 'failed',
        call: { status: 400, upstreamStatus: status },
      })
    }
  })

  it('SOAP: a fault of a 500 or 200 is told by its code', async () => {
    for (const [code, status, named] of [
      ['s:Client.NotFound', 404, 'NotFound'],
      ['Client.NotFound', 404, 'Client.NotFound'],
      ['\n s:Client ', 400, 'Client'],
    ] as const)
      for (const given of [200, 500]) {
        const response = await told('soap', soap(fault(code), given))
        expect([response.status, errorsOf(response.body)]).toEqual([
          status,
          [{ Code: named, Message: 'No such order' }],
        ])
      }
    expectFault(await told('soap', soap(fault('s:Server'))), 'upstream_broken')
    const typed = soap(fault('s:Client'), 200, 'application/soap+xml; charset=utf-8; action="a"')
    expect((await told('soap', typed)).status).toBe(400)
  })

  it('SOAP: a Fault that is empty, nil or elsewhere is none', async () => {
    for (const body of [
      '<s:Fault/>',
      '<s:Fault> \n </s:Fault>',
      '<s:Fault xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true"/>',
      '<a><s:Fault><faultcode>Client</faultcode></s:Fault></a>',
    ])
      expect((await told('soap', soap(body, 200))).status).toBe(200)
  })

  it('GraphQL: partial data beside errors is an error, and the code of each must be known', async () => {
    const known = { message: 'No such fund', extensions: { code: 'NOT_FOUND' } }
    const bad = { message: 'Bad', extensions: { code: 'BAD_USER_INPUT' } }
    const response = await told('graphql', json({ data: { a: 1 }, errors: [known, bad] }))
    expect(response.status).toBe(404)
    expect(errorsOf(response.body)).toEqual([
      { Code: 'NOT_FOUND', Message: 'No such fund' },
      { Code: 'BAD_USER_INPUT', Message: 'Bad' },
    ])
    for (const other of [{ message: 'secret' }, { message: 'secret', extensions: { code: 'INTERNAL' } }]) {
      const hidden = await told('graphql', json({ data: { a: 1 }, errors: [known, other] }))
      expectFault(hidden, 'upstream_broken')
    }
    const good = await told('graphql', json({ data: { a: 1 }, errors: [] }))
    expect(dataOf(good.body)).toEqual({ a: 1 })
  })

  it('a pointer leads through lists', async () => {
    const errors = [{ message: 'No', extensions: { code: 'NOT_FOUND' } }]
    expect((await told('first', json({ errors }))).status).toBe(404)
    expect((await told('first', json({ errors: [] }))).status).toBe(200)
  })

  it('a 4xx keeps its status, but for a code that has one', async () => {
    const type = 'application/x-amz-json-1.1'
    const answers = [
      ['com.x#NotFound', 404, 'NotFound'],
      ['com.x#Whole', 405, 'API_BAD_REQUEST'],
      ['Other', 406, 'Other'],
    ] as const
    for (const [__type, status, code] of answers) {
      const response = await told('amz', json({ __type, message: 'm' }, 400, type))
      expect([response.status, errorsOf(response.body)]).toEqual([status, [{ Code: code, Message: 'm' }]])
    }
    const hidden = await told('amz', json({ __type: 'a#Throttling', message: 'secret' }, 400, type))
    expect([hidden.status, hidden.body.includes('secret')]).toEqual([503, false])
    for (const status of [401, 403])
      expect((await told('amz', json({ __type: 'a#NotFound' }, status, type))).status).not.toBe(404)
  })

  it.each([201, 202, 501, 502])('a %i is none', async (status) => {
    const response = await told('rpc', json({ error: { code: -32001 } }, status))
    expect(response.status).not.toBe(404)
  })

  it('T4.11 without codes it is 500 in any case', async () => {
    expectFault(await told('silent', json({ error: 'secret' })), 'upstream_broken')
    expect((await told('silent', json({ error: '' }))).status).toBe(200)
  })

  it('true is something, and so is a text', async () => {
    expect((await told('flags', json({ failed: true, code: 'a' }))).status).toBe(400)
    expect((await told('flags', json({ failed: 'no', code: 'a' }))).status).toBe(400)
  })

  it('an envelope with errors is one too', async () => {
    const errors = [{ Code: 'E1', Message: 'No' }]
    const response = await told('envelope', json({ Errors: errors, Data: {} }))
    expect([response.status, errorsOf(response.body)]).toEqual([404, errors])
    expect((await told('envelope', json({ Errors: [], Data: { a: 1 } }))).status).toBe(200)
  })

  it('C8.6 codings and parts are not asked for, since the answer is read', async () => {
    const headers = { 'Accept-Encoding': 'gzip', Range: 'bytes=0-3' }
    await told('envelope', json({ Errors: [], Data: {} }), { headers })
    const { headers: sent = {} } = upstream.requests.at(-1) ?? {}
    expect([sent['accept-encoding'], sent['range']]).toEqual([['identity'], undefined])
  })

  it('C2.4 it comes in the format of errors', async () => {
    const response = await told('rpc', json({ error: { code: 'busy', message: 'a < b' } }), {
      accept: 'application/xml',
    })
    expect(response.status).toBe(429)
    expect(response.body).toContain('<Message>a &lt; b</Message>')
  })

  it('C8.8 a message that tells an address of the upstream is not told', async () => {
    const response = await told('rpc', json({ error: { code: -32001, message: `at ${upstream.url}/x` } }))
    expect(response.status).toBe(404)
    expect(response.body).not.toContain(String(upstream.port))
  })

  it.each(['{"error":', '{"error":null}x', '{"error":null,"error":{"code":1}}', 'null {}'])(
    'C8.4 %j is 500: it may hold an error',
    async (body) => {
      expectFault(await told('rpc', json(body)), 'upstream_broken')
    },
  )

  it('T4.7 a large answer is searched on another thread before any of it passes', async () => {
    const padding = 'x'.repeat(600_000)
    const error = { code: -32001, message: 'No' }
    expect((await told('rpc', json({ padding, error }))).status).toBe(404)
    const good = await told('rpc', json({ padding, error: null }))
    expect((dataOf(good.body) as { padding: string }).padding).toBe(padding)
    const element = `<p>${padding}</p>`
    expect((await told('soap', soap(element + fault('s:Client'), 200))).status).toBe(400)
    expect((await told('soap', soap(element, 200))).status).toBe(200)
    expectFault(await told('rpc', json({ padding: 'x'.repeat(17 * 1024 * 1024) })), 'answer_too_large')
  })

  it('T5.2 cut anywhere, and slow, it never passes as a success', async () => {
    const whole = Buffer.from(
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n' +
        '11\r\n{"a":1,"error":{"\r\n8\r\ncode":1}\r\n1\r\n}\r\n0\r\n\r\n',
    )
    for (let end = 60; end < whole.length; end++) {
      upstream.behave((connection) => {
        const { socket } = connection
        connection.raw(whole.subarray(0, end))
        socket.end()
      })
      const response = await send(gateway, { target: `${PATH}/rpc`, headers: bearer(token) })
      expect(response.status).toBeGreaterThanOrEqual(500)
    }
    upstream.behave((connection) => {
      const { socket } = connection
      const pieces = [...whole.subarray(0, -5)].map((byte) => Buffer.of(byte))
      const next = (): void => {
        const piece = pieces.shift()
        if (piece === undefined) connection.raw('0\r\n\r\n')
        else socket.write(piece, () => setImmediate(next))
      }
      next()
    })
    expectFault(await send(gateway, { target: `${PATH}/rpc`, headers: bearer(token) }), 'upstream_broken')
  })

  it.each([
    '{ response: (_call, answer) => answer }',
    '{ answer: (call) => call.forward() }',
    '{ request: () => ({}) }',
  ])('C8.9 what a module returns as it came is searched as without it: %s', async (source) => {
    const over = await startOver(source, { under: rpc })
    over.upstream.behave((connection) => connection.respond(json({ error: { code: -32001, message: 'No' } })))
    const response = await over.ask({ target: LIST })
    expect([response.status, errorsOf(response.body)]).toEqual([404, [{ Code: '-32001', Message: 'No' }]])
    over.upstream.behave((connection) => connection.respond(json({ error: null, a: 1 })))
    expect((await over.ask({ target: LIST })).status).toBe(200)
  })

  it('T5.2 a client that leaves while its answer is held ends the call at the upstream', async () => {
    const closed = Promise.withResolvers<undefined>()
    const begun = Promise.withResolvers<undefined>()
    upstream.behave((connection) => {
      connection.socket.once('close', () => closed.resolve(undefined))
      connection.raw(
        'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n{"a":',
      )
      begun.resolve(undefined)
    })
    const client = await openRaw(gateway.port)
    client.send(requestBytes({ target: `${PATH}/rpc`, headers: bearer(token) }))
    await begun.promise
    client.destroy()
    await closed.promise
  })

  it('HEAD has no body to search', async () => {
    const response = await told('rpc', json(''), { method: 'HEAD' })
    expect([response.status, response.body]).toEqual([200, ''])
  })
})
