import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { withForwardedActions } from '../support/forwarded-action.ts'
import { bearer, envelopeOf, expectFault, send } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream, type UpstreamAnswer } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const PATH = '/api/1.0/b/ACME/fund-data'
const JSON_ = { 'Content-Type': 'application/json' }
const PROBLEM = { 'Content-Type': 'application/problem+json' }

/** What `upstream` of the GET of each action says. */
const UPSTREAMS = {
  paths: { errors: { code: '/error/code', message: '/error/text' } },
  list: { errors: { list: '/errors', code: '/code', message: '/detail' } },
  problem: { errors: 'problem' },
  mapped: {
    errors: { code: '/code', message: '/message' },
    errorStatus: { '422': 400, '423': 503, '409': 404 },
  },
  plain: {},
  xml: { format: 'xml', errors: { code: '/fault/@code', message: '/fault/detail/text' } },
  xmlList: { format: 'xml', errors: { list: '/errors/error', code: '/code', message: '/text' } },
  xmlProblem: { format: 'xml', errors: 'problem' },
} as const

let upstream: Upstream
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  upstream = await openUpstream()
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: withForwardedActions(UPSTREAMS, (backend) => ({
      ...backend,
      redirects: { max: 1, within: [], origins: ['https://files.internal', 'http://files:8080'] },
    })),
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})

function told(action: keyof typeof UPSTREAMS, answer: UpstreamAnswer, accept = 'application/json') {
  upstream.behave((connection) => connection.respond(answer))
  return send(gateway, { target: `${PATH}/${action}`, headers: { ...bearer(token), Accept: accept } })
}

const json = (status: number, value: unknown, headers = JSON_): UpstreamAnswer => ({
  status,
  headers,
  body: JSON.stringify(value),
})

const errorsOf = (body: string): unknown => (JSON.parse(body) as { Errors: unknown }).Errors

describe('C8.8 an upstream’s own 4xx become Errors', () => {
  it.each([400, 402, 404, 409, 413, 418, 422, 429, 451])(
    'C8.8 the code and message of a %i are told, with its status and empty Data',
    async (status) => {
      const response = await told('paths', json(status, { error: { code: 'E.1-a', text: 'No more funds.' } }))
      expect(response.status).toBe(status)
      expect(response.body).toBe(envelopeOf('json', 'E.1-a', 'No more funds.'))
      expect(response.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
      })
    },
  )

  it('C8.8, C2.4 they come in the format of errors', async () => {
    const response = await told(
      'paths',
      json(422, { error: { code: 'E1', text: 'a & b' } }),
      'application/xml',
    )
    expect([response.status, response.body]).toEqual([422, envelopeOf('xml', 'E1', 'a & b')])
  })

  it('C8.8 a number is a code as it is written', async () => {
    const body = '{"error":{"code":1.50,"text":"No."}}'
    const response = await told('paths', { status: 422, headers: JSON_, body })
    expect(errorsOf(response.body)).toEqual([{ Code: '1.50', Message: 'No.' }])
  })

  it.each([['a b'], ['ü'], ['x'.repeat(65)], [{ a: 1 }], [true], [''], ['<b>']])(
    'C8.8 the code %j becomes API_BAD_REQUEST',
    async (code) => {
      const response = await told('paths', json(404, { error: { code, text: 'No.' } }))
      expect(response.status).toBe(404)
      expect(errorsOf(response.body)).toEqual([{ Code: 'API_BAD_REQUEST', Message: 'No.' }])
    },
  )

  it('C8.8 what is not told of code and message is the table’s', async () => {
    const onlyCode = await told('paths', json(404, { error: { code: 'E1' } }))
    expect(errorsOf(onlyCode.body)).toEqual([
      { Code: 'E1', Message: 'The data service has nothing at this address.' },
    ])
    const onlyMessage = await told('paths', json(404, { error: { text: 'No such fund.' } }))
    expect(errorsOf(onlyMessage.body)).toEqual([{ Code: 'API_NOT_FOUND', Message: 'No such fund.' }])
  })

  it('C8.8 a message is cut at 500 characters, and never within one', async () => {
    const response = await told('paths', json(400, { error: { text: '\u{1F600}'.repeat(600) } }))
    expect(errorsOf(response.body)).toEqual([{ Code: 'API_BAD_REQUEST', Message: '\u{1F600}'.repeat(500) }])
  })

  it('C8.8 control characters and marks of direction are left out of a message', async () => {
    const text = 'a\u0000b\u001b[31mc\r\nd\te\u0085f\u2028g\u202Eh\u2066i\u{FEFF}\uFFFEj\u007F'
    const response = await told('paths', json(400, { error: { text } }))
    expect(errorsOf(response.body)).toEqual([{ Code: 'API_BAD_REQUEST', Message: 'ab[31mc d e f ghij' }])
  })

  it('C8.8 a list tells several errors, at most 100', async () => {
    const errors = Array.from({ length: 150 }, (_, at) => ({ code: `E${at}`, detail: `Detail ${at}` }))
    const response = await told('list', json(422, { errors }))
    expect(errorsOf(response.body)).toEqual(
      errors.slice(0, 100).map(({ code, detail }) => ({ Code: code, Message: detail })),
    )
    const mixed = await told('list', json(422, { errors: [1, { code: 'E1' }, null, { other: 1 }] }))
    expect(errorsOf(mixed.body)).toEqual([{ Code: 'E1', Message: 'The data service refused the request.' }])
  })

  it.each([
    ['https://example.com/probs/out-of-credit', 'out-of-credit'],
    ['https://example.com/probs/out-of-credit/', 'out-of-credit'],
    ['https://example.com/probs#no-credit', 'no-credit'],
    ['urn:example:no_credit', 'no_credit'],
    ['about:blank', 'API_NOT_FOUND'],
    [undefined, 'API_NOT_FOUND'],
    ['https://example.com/probs/a%20b', 'API_BAD_REQUEST'],
  ])('C8.8 problem details of type %j have the code %s', async (type, code) => {
    const problem = { type, title: 'Short', detail: 'Long', status: 404, balance: 30 }
    const response = await told('problem', json(404, problem, PROBLEM))
    expect([response.status, errorsOf(response.body)]).toEqual([404, [{ Code: code, Message: 'Long' }]])
  })

  it('C8.8 problem details without detail tell their title', async () => {
    const response = await told('problem', json(409, { type: 'urn:x', title: 'Short' }, PROBLEM))
    expect(errorsOf(response.body)).toEqual([{ Code: 'x', Message: 'Short' }])
  })
})

describe('C8.8 an upstream’s own 4xx in XML become Errors', () => {
  const xml = (body: string, type = 'application/xml'): UpstreamAnswer => ({
    status: 422,
    headers: { 'Content-Type': type },
    body,
  })
  it.each([
    ['<fault code="E1"><detail><text>a &amp; b</text></detail></fault>', 'E1', 'a & b'],
    [
      '<s:fault xmlns:s="urn:s" s:code="E1"><s:detail><s:text lang="en">No.</s:text></s:detail></s:fault>',
      'E1',
      'No.',
    ],
    ['<?xml version="1.0" encoding="ISO-8859-1"?><fault><detail><text>\xfc</text></detail></fault>', '', 'ü'],
    ['<!DOCTYPE fault><fault code="E1"/>', 'E1', 'The data service refused the request.'],
  ])('C8.8 %s', async (body, code, message) => {
    const response = await told('xml', { ...xml(''), body: Buffer.from(body, 'latin1') })
    expect(errorsOf(response.body)).toEqual([{ Code: code || 'API_BAD_REQUEST', Message: message }])
  })

  it('C8.8 a list of one or several elements', async () => {
    const one = '<error><code>E1</code><text>One</text></error>'
    expect(errorsOf((await told('xmlList', xml(`<errors>${one}</errors>`))).body)).toEqual([
      { Code: 'E1', Message: 'One' },
    ])
    expect(errorsOf((await told('xmlList', xml(`<errors>${one}${one}</errors>`))).body)).toHaveLength(2)
  })

  it('C8.8, RFC 9457 problem details', async () => {
    const body =
      '<problem xmlns="urn:ietf:rfc:7807"><type>https://example.com/probs/no-credit</type><title>T</title></problem>'
    const response = await told('xmlProblem', xml(body, 'application/problem+xml'))
    expect(errorsOf(response.body)).toEqual([{ Code: 'no-credit', Message: 'T' }])
  })

  it.each([
    '<!DOCTYPE fault [<!ENTITY e "x">]><fault code="E1"/>',
    '<fault code="E1">',
    '<fault code="E1"/><fault/>',
    '{"fault":{"@code":"E1"}}',
  ])('C8.8 %s tells nothing', async (body) => {
    expectFault(await told('xml', { ...xml(body), status: 404 }), 'upstream_not_found')
  })
})

describe('C8.8 what cannot be read is told in our words', () => {
  const LONG = JSON.stringify({ error: { code: 'E1', text: 'x'.repeat(70_000) } })
  const GOOD = JSON.stringify({ error: { code: 'E1', text: 'secret' } })
  it.each([
    ['of another type', { 'Content-Type': 'text/html' }, GOOD],
    ['with a content coding', { ...JSON_, 'Content-Encoding': 'gzip' }, GOOD],
    ['that does not parse', JSON_, '{"error":{"code":"E1","text":"secret"'],
    ['that tells a key twice', JSON_, '{"error":{"code":"E1","code":"E2","text":"secret"}}'],
    ['that is not UTF-8', JSON_, Buffer.from('{"error":{"text":"secret\xff"}}', 'latin1')],
    ['that is nested too deeply', JSON_, `{"error":${'['.repeat(5000)}`],
    ['without the members', JSON_, '{"Error":{"code":"E1","text":"secret"}}'],
    ['of an own name of all objects', JSON_, '[]'],
    ['of no bytes', JSON_, ''],
    ['of more than 64 KiB', JSON_, LONG],
    ['that is an envelope', JSON_, '{"Errors":[{"Code":"E1","Message":"secret"}],"Data":{}}'],
  ] as const)('C8.8 a body %s', async (_what, headers, body) => {
    expectFault(await told('paths', { status: 404, headers, body }), 'upstream_not_found')
  })

  it('C8.8 a body without its declared end', async () => {
    upstream.behave((connection) => {
      connection.raw(
        'HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"error":',
      )
      connection.socket.end()
    })
    expectFault(
      await send(gateway, { target: `${PATH}/paths`, headers: bearer(token) }),
      'upstream_unreachable',
    )
  })

  it.each([
    [401, 'upstream_broken'],
    [403, 'upstream_forbade'],
    [407, 'upstream_broken'],
    [500, 'upstream_broken'],
    [502, 'upstream_unavailable'],
  ] as const)('C8.4, C8.8 nothing of the body of a %i', async (status, code) => {
    expectFault(await told('paths', { status, headers: JSON_, body: GOOD }), code)
  })

  it('C8.8 without the key nothing is read but an envelope', async () => {
    expectFault(await told('plain', { status: 404, headers: JSON_, body: GOOD }), 'upstream_not_found')
    const envelope = '{"Errors":[{"Code":"E1","Message":"Mine"}],"Data":{}}'
    const response = await told('plain', { status: 404, headers: JSON_, body: envelope })
    expect(response.body).toBe(envelopeOf('json', 'E1', 'Mine'))
  })

  it('C8.8 a body that comes slowly is waited for, and read up to 64 KiB', async () => {
    const slowly = (size: number) => {
      const body = JSON.stringify({ error: { code: 'E1', text: 'x' }, more: 'y'.repeat(size) })
      upstream.behave(({ socket }) => {
        socket.write('HTTP/1.1 404 N\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n')
        const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
        socket.write(chunk(body.slice(0, 20)))
        // Longer than the pool collects a short body.
        setTimeout(() => socket.write(`${chunk(body.slice(20))}0\r\n\r\n`), 1300)
      })
      return send(gateway, { target: `${PATH}/paths`, headers: bearer(token) })
    }
    expect((await slowly(100)).body).toBe(envelopeOf('json', 'E1', 'x'))
    expectFault(await slowly(70_000), 'upstream_not_found')
  })
})

describe('C8.8 nothing tells the upstream’s address', () => {
  it('C8.8 a message or code that holds it is replaced', async () => {
    const { port } = upstream
    for (const text of [
      `connect ECONNREFUSED 127.0.0.1:${port}`,
      `see HTTP://127.0.0.1:${port}/docs`,
      'host 127.0.0.1 is down',
      `no answer to http%3A%2F%2F127.0.0.1%3A${port}%2Fdocs`,
      `no answer to url=%2f%2f127.0.0.1`,
      'no answer to https://files.internal/1',
      'no answer to http://files:8080/1',
      'no answer to http%3a%2f%2ffiles%3a8080',
      `\u0000127.0.0.\u00001 is down`,
    ]) {
      const own = await told('paths', json(409, { error: { code: '127.0.0.1', text } }))
      expect(own.body).toBe(envelopeOf('json', 'API_BAD_REQUEST', 'The data service refused the request.'))
      const envelope = await told('plain', json(409, { Errors: [{ Code: 'E1', Message: text }], Data: {} }))
      const message = text.includes('\u0000') ? text : 'The data service refused the request.'
      expect(envelope.body).toBe(envelopeOf('json', 'E1', message))
    }
  })
})

describe('C8.8 what only looks like the address of the upstream', () => {
  it.each(['no files', 'files: 3', 'my-files.internal2', '1127.0.0.1', 'profiles:8080'])(
    'C8.8 %s is told',
    async (text) => {
      const own = await told('paths', json(409, { error: { code: 'E1', text } }))
      expect(own.body).toBe(envelopeOf('json', 'E1', text))
    },
  )
})

describe('C8.8 errorStatus', () => {
  it('C8.8 gives another status of the table, with the upstream’s own errors', async () => {
    const response = await told('mapped', json(422, { code: 'E1', message: 'No.' }))
    expect([response.status, response.body]).toEqual([400, envelopeOf('json', 'E1', 'No.')])
    const other = await told('mapped', json(410, { code: 'E1', message: 'No.' }))
    expect([other.status, other.body]).toEqual([410, envelopeOf('json', 'E1', 'No.')])
  })

  it('C8.8 gives that status’s text where the upstream tells nothing', async () => {
    expectFault(await told('mapped', json(422, {})), 'upstream_refused')
    expectFault(await told('mapped', json(409, {})), 'upstream_not_found')
  })

  it('C8.8 gives 503 with nothing of the upstream but its Retry-After', async () => {
    const answer = json(423, { code: 'E1', message: 'No.' }, { ...JSON_, 'Retry-After': '9' } as typeof JSON_)
    const response = await told('mapped', answer)
    expectFault(response, 'upstream_unavailable')
    expect(response.headers['retry-after']).toBe('9')
  })

  it('C8.8 the log tells the upstream’s own status', async () => {
    const response = await told('mapped', json(423, {}))
    const id = response.headers['x-request-id']
    const line = gateway.log().find(({ requestId }) => requestId === id)
    expect(JSON.stringify(line)).toContain('the upstream answered 423')
  })
})
