import { readableOf } from '../../../src/base/http/body/pieces.ts'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { BackendAnswer } from '../../../src/base/contracts/calls/backend.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { urlOfNobody } from '../../support/free-port.ts'
import { type CallOverrides, makeCall, PRINCIPAL } from '../../support/calls.ts'
import { openHttpBackend } from '../../support/http-backend.ts'
import {
  answerJson,
  startUpstream,
  type Upstream,
  type UpstreamBehaviour,
} from '../../support/start-upstream.ts'

type Rules = Parameters<typeof openHttpBackend>[1]

async function begin(behaviour?: UpstreamBehaviour, rules?: Rules) {
  const upstream = await startUpstream(behaviour)
  const backend = openHttpBackend(upstream.url, rules)
  onTestFinished(() => backend.close())
  return { upstream, backend, ask: (call?: CallOverrides) => backend.answer(makeCall(call)) }
}

const faultOf = async (answer: Promise<BackendAnswer>): Promise<Fault> =>
  answer.then(
    () => expect.fail('it answered'),
    (thrown: unknown) => thrown as Fault,
  )

const OPAQUE = {
  action: {
    area: 'a',
    action: 'b',
    level: 'business',
    versioned: false,
    safe: true,
    produces: ['text/event-stream'],
  },
  accept: 'text/event-stream',
} as const

const header = ({ requests }: Upstream, name: string): readonly string[] | undefined =>
  requests[0]?.headers[name]

describe('the upstream request of the http backend', () => {
  it('C8.2 carries the canonical path and the query byte for byte, and the target’s Host', async () => {
    const { upstream, ask } = await begin()
    await ask({ target: "/api/1.0/b/a..b/...%2B'{}|?q='{}%zz&&x=/../\\;%2e" })
    expect(upstream.requests[0]?.target).toBe("/api/1.0/b/a..b/...%2B'{}|?q='{}%zz&&x=/../\\;%2e")
    expect(header(upstream, 'host')).toEqual([`127.0.0.1:${upstream.port}`])
  })

  it('C8.4a is not sent where a token for it cannot be had: then nothing was changed', async () => {
    const none = (): Promise<never> => Promise.reject(new Fault('identity_unavailable'))
    const credentials = {
      name: 'authorization',
      renewable: true,
      templates: [],
      line: none,
      refused: () => false,
    }
    for (const rules of [{ identify: none }, { credentials }]) {
      const { upstream, ask } = await begin(undefined, rules)
      const { code, facts } = await faultOf(ask({ method: 'POST' }))
      expect([code, facts.unchanged, upstream.requests]).toEqual(['identity_unavailable', true, []])
    }
  })

  it('C8.2 puts the path of the target before it', async () => {
    const upstream = await startUpstream()
    const backend = openHttpBackend(`${upstream.url}/base/`)
    onTestFinished(() => backend.close())
    await backend.answer(makeCall())
    expect(upstream.requests[0]?.target).toBe('/base/api/1.0/b/ACME/fund-data/fund-list')
  })

  it('C8.2 says who calls, once each, with nothing of the client’s own in it', async () => {
    const { upstream, ask } = await begin()
    await ask({ fund: 'SUPER1', version: 2 })
    const expected = {
      accept: 'application/json',
      'x-request-id': '0123456789abcdef0123456789abcdef',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      'x-postern-subject': 'subject-1',
      'x-postern-client': 'client-1',
      'x-postern-scope': 'fund.read target:b/ACME',
      'x-postern-business': 'ACME',
      'x-postern-fund': 'SUPER1',
      'x-postern-action-version': '2',
      'x-forwarded-for': '192.0.2.7',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'api.example',
      forwarded: 'for=192.0.2.7;host=api.example;proto=https',
    }
    for (const [name, value] of Object.entries(expected))
      expect([name, header(upstream, name)]).toEqual([name, [value]])
    expect(header(upstream, 'authorization')).toBeUndefined()
  })

  it('C8.2 asks for the vendor type where the action has versions, and for the negotiated type of an opaque one', async () => {
    const { upstream, ask } = await begin()
    const action = {
      area: 'a',
      action: 'b',
      level: 'business',
      versioned: true,
      safe: true,
      produces: undefined,
    } as const
    await ask({ action, version: 2 })
    await ask(OPAQUE)
    expect(upstream.requests.map(({ headers }) => headers['accept'])).toEqual([
      ['application/vnd.postern.action.v2+json'],
      ['text/event-stream'],
    ])
  })

  it('T2.7 keeps a value in one header line whatever it holds, and two values two', async () => {
    const { upstream, ask } = await begin()
    await ask({ principal: { ...PRINCIPAL, subject: 'A\r\nX-Postern-Fund: B', client: 'é%C3%A9 ' } })
    expect(header(upstream, 'x-postern-subject')).toEqual(['A%0D%0AX-Postern-Fund: B'])
    expect(header(upstream, 'x-postern-client')).toEqual(['%C3%A9%25C3%25A9%20'])
  })

  it('C8.2 passes Authorization on only where configured', async () => {
    const { upstream, ask } = await begin(undefined, { forwardAuthorization: true })
    await ask({ authorization: 'Bearer x' })
    expect(header(upstream, 'authorization')).toEqual(['Bearer x'])
  })

  it('C8.6 asks for no coding, unless the gateway let the client’s own wish through', async () => {
    const { upstream, ask } = await begin()
    await ask()
    await ask({ headers: { 'accept-encoding': 'gzip' } })
    expect(upstream.requests.map(({ headers }) => headers['accept-encoding'])).toEqual([
      ['identity'],
      ['gzip'],
    ])
  })

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'T2.4 frames a body of %s itself, as one request: by length where it is known, else in chunks',
    async (method) => {
      const { upstream, ask } = await begin()
      const smuggled = Buffer.from('GET /stolen HTTP/1.1\r\nHost: x\r\n\r\n')
      // Longer than any buffer on the way.
      const padding = Buffer.alloc(300_000)
      const length = smuggled.length + padding.length
      await ask({ method, body: { kind: 'bytes', bytes: smuggled, contentType: 'application/json' } })
      const stream = (declared: number | undefined) =>
        ({
          kind: 'stream',
          stream: Readable.from([smuggled, padding]),
          contentType: 'application/x-thing',
          length: declared,
        }) as const
      await ask({ method, body: stream(length) })
      await ask({ method, body: stream(undefined) })
      expect(
        upstream.requests.map((each) => each.body.subarray(0, smuggled.length).equals(smuggled)),
      ).toEqual([true, true, true])
      expect(upstream.requests.map((each) => each.headers['content-length']?.[0])).toEqual([
        String(smuggled.length),
        String(length),
        undefined,
      ])
      expect(upstream.requests[2]?.headers['transfer-encoding']).toEqual(['chunked'])
    },
  )

  it('T2.4 sends no body with GET, nor a request that has one', async () => {
    const { upstream, ask } = await begin()
    const body = { kind: 'bytes', bytes: Buffer.from('x'), contentType: 'application/json' } as const
    expect((await faultOf(ask({ body }))).code).toBe('body_unexpected')
    expect(upstream.requests).toEqual([])
  })
})

describe('the answer of the http backend', () => {
  it('C8.3 holds what is listed, what is configured, and nothing else', async () => {
    const headers = {
      ETag: '"1"',
      'Set-Cookie': 'a=b',
      Location: 'http://10.0.0.1/',
      'WWW-Authenticate': 'Basic',
      Server: 'secret/1.0',
      'X-Powered-By': 'secret',
      Via: '1.1 secret',
      Connection: 'X-Named',
      'X-Named': '1',
      'X-Wanted': '2',
    }
    const { ask } = await begin(answerJson({}, { headers }), {
      responseHeaders: ['X-Wanted', 'X-Named', 'Connection'],
    })
    expect((await ask()).headers).toEqual({ etag: '"1"', 'x-wanted': '2' })
  })

  it.each([
    [200, {}, 200],
    [201, {}, 201],
    [304, { 'if-none-match': '"1"' }, 304],
  ])('C8.4 passes %i on', async (status, headers, expected) => {
    const { ask } = await begin((connection) => connection.respond({ status }))
    expect((await ask({ headers })).status).toBe(expected)
  })

  it.each([
    [301, 'upstream_broken', 500],
    [304, 'upstream_broken', 500],
    [401, 'upstream_broken', 500],
    [407, 'upstream_broken', 500],
    [500, 'upstream_broken', 500],
    [502, 'upstream_unavailable', 503],
    [503, 'upstream_unavailable', 503],
    [504, 'upstream_unavailable', 503],
    [888, 'upstream_broken', 500],
    [403, 'upstream_forbade', 401],
    [400, 'upstream_refused', 400],
    [404, 'upstream_not_found', 404],
    [405, 'upstream_method_not_allowed', 405],
    [409, 'upstream_refused', 409],
    [410, 'upstream_refused', 410],
    [414, 'upstream_too_large', 414],
    [415, 'upstream_unsupported_media_type', 415],
    [422, 'upstream_refused', 422],
    [429, 'upstream_rate_limited', 429],
  ])(
    'C8.4 makes %i the fault %s with status %i, once, with nothing of the upstream in it',
    async (status, code, told) => {
      const { upstream, ask } = await begin((connection) =>
        connection.respond({ status, headers: { 'Retry-After': '7' }, body: 'at 10.0.0.1: stack' }),
      )
      const fault = await faultOf(ask())
      expect([fault.code, fault.status]).toEqual([code, told])
      expect(fault.publicText).not.toMatch(/10\.0\.0\.1|stack/)
      expect(upstream.requests).toHaveLength(1)
    },
  )

  it.each([429, 502, 503, 504])('C8.4 keeps the Retry-After of %i', async (status) => {
    const { ask } = await begin((connection) =>
      connection.respond({ status, headers: { 'Retry-After': '7' } }),
    )
    expect((await faultOf(ask())).facts.retryAfter).toBe(7)
  })

  it('C8.4 passes a 401 where Authorization was forwarded', async () => {
    const { ask } = await begin((connection) => connection.respond({ status: 401 }), {
      forwardAuthorization: true,
    })
    const fault = await faultOf(ask({ authorization: 'Bearer x' }))
    expect([fault.code, fault.status, fault.row.wire]).toEqual([
      'upstream_unauthorised',
      401,
      'API_NOT_AUTHORISED',
    ])
  })

  it('C8.4 passes the errors of a well-formed envelope, in the backend’s format', async () => {
    const error = { Code: 'X1', Message: 'No.' }
    const { ask } = await begin(answerJson({ Errors: [error], Data: { secret: 1 } }, { status: 409 }))
    const answer = await ask()
    expect(answer).toEqual({
      status: 409,
      headers: {},
      body: { kind: 'errors', errors: [{ code: 'X1', message: 'No.' }] },
    })
    const xml =
      '<ApiResponse><Errors><Error><Code>X1</Code><Message>No.</Message></Error></Errors><Data/></ApiResponse>'
    const other = await begin((connection) => connection.respond({ status: 422, body: xml }), {
      format: 'xml',
    })
    expect((await other.ask()).body).toEqual({ kind: 'errors', errors: [{ code: 'X1', message: 'No.' }] })
  })

  it.each([
    '{"Errors":[],"Data":{}}',
    '{"Errors":[{"Code":"X"}],"Data":{}}',
    '{"Errors":[{"Code":"X","Message":"m"}]}',
    '<html>',
    '',
  ])('C8.4 takes %j for no envelope', async (body) => {
    const { ask } = await begin((connection) => connection.respond({ status: 409, body }))
    expect((await faultOf(ask())).code).toBe('upstream_refused')
  })

  it('C8.6 does not take a login page or a compressed body for data', async () => {
    const { upstream, ask } = await begin(answerJson({}, { headers: { 'Content-Type': 'text/html' } }))
    expect((await faultOf(ask())).code).toBe('upstream_broken')
    upstream.behave(answerJson({}, { headers: { 'Content-Encoding': 'gzip' } }))
    expect((await faultOf(ask())).code).toBe('upstream_broken')
    expect((await ask({ ...OPAQUE })).body.kind).toBe('bytes')
  })

  it('hands a small body over whole and streams a large one', async () => {
    const { upstream, ask } = await begin(answerJson({ a: 1 }))
    expect((await ask()).body).toEqual({
      kind: 'bytes',
      bytes: Buffer.from('{"a":1}'),
      contentType: 'application/json',
    })
    const large = JSON.stringify('x'.repeat(300_000))
    upstream.behave((connection) => connection.respond({ body: large }))
    const { body } = await ask()
    expect(body).toMatchObject({ kind: 'stream', length: large.length })
    expect(body.kind === 'stream' && Buffer.concat(await readableOf(body.pieces).toArray()).toString()).toBe(
      large,
    )
  })
})

describe('an upstream of the http backend that fails', () => {
  it('T5.1 is 503 when it refuses, with no address in the text', async () => {
    const backend = openHttpBackend(await urlOfNobody())
    onTestFinished(() => backend.close())
    const fault = await faultOf(backend.answer(makeCall()))
    expect([fault.code, fault.status]).toEqual(['upstream_unreachable', 503])
    expect(fault.publicText).not.toContain('127.0.0.1')
  })

  it('C8.4 is 503 when its name is unknown', async () => {
    const backend = openHttpBackend('http://nowhere.invalid', { timeouts: { connect: 500 }, retries: 0 })
    onTestFinished(() => backend.close())
    expect((await faultOf(backend.answer(makeCall()))).status).toBe(503)
  })

  it('C8.4 is 503 when it speaks no TLS though it should', async () => {
    const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(0)
    await once(server, 'listening')
    const backend = openHttpBackend(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)
    onTestFinished(async () => {
      await backend.close()
      server.close()
    })
    expect((await faultOf(backend.answer(makeCall()))).code).toBe('upstream_unreachable')
  })

  it('C8.4 is 503 when it is too slow to answer', async () => {
    const { ask } = await begin(() => undefined, { timeouts: { firstByte: 50 } })
    expect((await faultOf(ask())).code).toBe('upstream_timeout')
  })

  it('T5.4 is 503 for calls that wait for a connection too long', async () => {
    const { ask } = await begin(() => undefined, {
      timeouts: { firstByte: 50 },
      maxConnections: 1,
      retries: 0,
    })
    const faults = await Promise.all([faultOf(ask()), faultOf(ask()), faultOf(ask())])
    expect(faults.map(({ code }) => code)).toEqual([
      'upstream_timeout',
      'upstream_timeout',
      'upstream_timeout',
    ])
  })

  it.each([
    [
      'Content-Length and chunks',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n',
    ],
    ['no HTTP', 'SSH-2.0-x\r\n\r\n'],
    ['a head without end', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}`],
  ])('C8.4 is 500 when it sends %s', async (_case, bytes) => {
    const { ask } = await begin((connection) => connection.raw(bytes))
    expect((await faultOf(ask())).code).toBe('upstream_broken')
  })

  it('C8.4 never takes an answer with two Content-Lengths for one', async () => {
    const { ask } = await begin((connection) =>
      connection.raw('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx'),
    )
    expect((await faultOf(ask())).status).toBeGreaterThanOrEqual(500)
  })

  it('C8.5 is asked once more after a reset, if the call is safe and has no body', async () => {
    const { upstream, ask } = await begin((connection) => {
      if (upstream.requests.length === 1) connection.reset()
      else connection.respond({ body: '1' })
    })
    expect((await ask()).status).toBe(200)
    upstream.behave((connection) => connection.reset())
    expect((await faultOf(ask({ method: 'POST' }))).code).toBe('upstream_unreachable')
    expect(upstream.requests).toHaveLength(3)
  })

  it.each([
    ['a declared length', 'Content-Length: 200000\r\n\r\n'],
    ['chunks', 'Transfer-Encoding: chunked\r\n\r\n20000\r\n'],
    ['the end of the connection', 'Connection: close\r\n\r\n'],
  ])('T5.2 breaks the stream of a body that is delimited by %s and reset', async (_case, framing) => {
    const { upstream, ask } = await begin((connection) => {
      connection.raw(`HTTP/1.1 200 OK\r\n${framing}${'x'.repeat(100_000)}`)
    })
    const { body } = await ask()
    const stream = readableOf(body.kind === 'stream' ? body.pieces : expect.fail('it is no stream'))
    const whole = stream.toArray()
    upstream.connections[0]?.socket.resetAndDestroy()
    await expect(whole).rejects.toThrow()
  })

  it('T5.2 does not take a short close-delimited body that is reset for whole', async () => {
    const { ask } = await begin((connection) => {
      connection.socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}', () => connection.reset())
    })
    expect((await faultOf(ask({ method: 'POST' }))).code).toBe('upstream_unreachable')
  })

  it('T5.1 survives a storm of large 503s on few connections', async () => {
    const { upstream, ask } = await begin(
      (connection) => connection.respond({ status: 503, body: 'x'.repeat(256_000) }),
      { maxConnections: 2 },
    )
    const faults = await Promise.all(Array.from({ length: 20 }, () => faultOf(ask())))
    expect(new Set(faults.map(({ code }) => code))).toEqual(new Set(['upstream_unavailable']))
    expect(upstream.requests).toHaveLength(20)
    upstream.behave(answerJson({}))
    expect((await ask()).status).toBe(200)
  })

  it('T2.6 answers a call whose body was still coming, and leaves the client’s stream alone', async () => {
    const { ask } = await begin((connection) => connection.respond({ status: 413 }))
    const stream = new PassThrough()
    stream.end('x'.repeat(10))
    const body = { kind: 'stream', stream, contentType: undefined, length: undefined } as const
    expect((await faultOf(ask({ method: 'POST', body }))).status).toBe(413)
    expect(stream.errored).toBeNull()
  })
})

describe('a client of the http backend that leaves', () => {
  it('T5.1 ends the upstream call, 20 of 20', async () => {
    const closed: Promise<void>[] = []
    const { upstream, ask } = await begin((connection) => {
      closed.push(new Promise((resolve) => connection.socket.once('close', () => resolve())))
    })
    const leave: (() => void)[] = []
    const calls = Array.from({ length: 20 }, () =>
      faultOf(ask({ onCancel: (listener) => leave.push(listener) })),
    )
    await upstream.received(20)
    for (const go of leave) go()
    expect((await Promise.all(calls)).map(({ code }) => code)).toEqual(Array(20).fill('client_gone'))
    await Promise.all(closed)
    expect(upstream.requests).toHaveLength(20)
  })

  it('T5.1 ends the upstream connection of a stream that is not read on', async () => {
    const { upstream, ask } = await begin((connection) => {
      connection.raw(`HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n${'x'.repeat(200_000)}`)
    })
    const { body } = await ask()
    const closed = new Promise((resolve) => upstream.connections[0]?.socket.once('close', resolve))
    if (body.kind === 'stream') body.pieces.cancel()
    await closed
  })
})
