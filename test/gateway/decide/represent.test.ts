import { isPieces, type PieceSource, readableOf, StreamInPieces } from '../../../src/base/http/body/pieces.ts'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import type { Backend, BackendAnswer } from '../../../src/base/contracts/calls/backend.ts'
import type { Answer } from '../../../src/base/contracts/calls/exchange.ts'
import type { Negotiated } from '../../../src/gateway/decide/checks.ts'
import { decide, type Decision, Findings } from '../../../src/gateway/decide/pipeline.ts'
import { guardBytes, passesVerbatim, refuse, represent } from '../../../src/gateway/decide/represent.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { makeCall, PRINCIPAL } from '../../support/calls.ts'
import { exchangeOf, FUND_LIST, jsonAnswer, makeGateway } from '../../support/gateway.ts'

const JSON_ENVELOPE: Negotiated = {
  kind: 'envelope',
  format: 'json',
  version: 1,
  contentType: 'application/json; charset=utf-8',
}
const XML_ENVELOPE: Negotiated = {
  kind: 'envelope',
  format: 'xml',
  version: 1,
  contentType: 'application/xml; charset=utf-8',
}
const own = (type: string): Negotiated => ({ kind: 'own', version: 1, type })

/** A tag of a representation in JSON (C8.6). */
const MARKED = /^"v1-json\.[\w-]{8}"$/

const EMPTY = '{"Errors":[],"Data":{}}'
const ENVELOPE = '{"Errors":[],"Data":{"a":1}}'
const NONE: BackendAnswer = { status: 204, headers: {}, body: { kind: 'none' } }

interface Represented {
  readonly negotiated?: Negotiated
  readonly method?: string
  readonly accept?: string
  readonly backend?: Partial<Backend>
}

function prepared({ negotiated = JSON_ENVELOPE, method = 'GET', accept, backend = {} }: Represented) {
  const { runtime } = makeGateway({ backend })
  const exchange = exchangeOf(FUND_LIST, { method, headers: accept === undefined ? {} : { accept } })
  const decided = decide(runtime, exchange, new Findings(), PRINCIPAL)
  const decision = { ...(decided as Decision), negotiated }
  return { runtime, exchange, decision, call: makeCall({ method }) }
}

async function represented(answer: BackendAnswer, request: Represented = {}): Promise<Answer> {
  const { runtime, exchange, decision, call } = prepared(request)
  return represent(answer, decision, call, runtime, exchange)
}

async function textOf({ body }: Answer): Promise<string> {
  if (isPieces(body)) return (await buffer(readableOf(body))).toString()
  if (typeof body === 'string' || body === undefined) return body ?? ''
  return Buffer.isBuffer(body) ? body.toString() : body.before + body.bytes.toString() + body.after
}

const streamed = (text: string, rest: Partial<BackendAnswer> = {}, length?: number): BackendAnswer => ({
  status: 200,
  headers: {},
  ...rest,
  body: {
    kind: 'stream',
    pieces: new StreamInPieces(Readable.from([Buffer.from(text)])),
    contentType: 'application/json',
    length,
  },
})

const UNDECLARED = { contentType: 'application/json', length: undefined }

const GUARDS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
}

describe('an enveloped answer', () => {
  it('C8.6 bare JSON is wrapped, with the negotiated type and the status of the upstream', async () => {
    const answer = await represented({ ...jsonAnswer('{"a":1}'), status: 201 })
    expect(answer.status).toBe(201)
    expect(answer.headers).toEqual({
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-store',
      Vary: 'Accept',
    })
    expect(await textOf(answer)).toBe(ENVELOPE)
  })

  it('C8.6 bare JSON of more than 256 KiB, and a stream, are wrapped piece by piece', async () => {
    const long = JSON.stringify({ a: 'x'.repeat(300_000) })
    for (const given of [jsonAnswer(long), streamed(long)]) {
      const answer = await represented(given)
      expect(isPieces(answer.body)).toBe(true)
      expect(await textOf(answer)).toBe(`{"Errors":[],"Data":${long}}`)
    }
  })

  it.each([204, 205])('C8.6 %i becomes 200 with empty Data', async (status) => {
    const answer = await represented({ ...NONE, status })
    expect([answer.status, await textOf(answer)]).toEqual([200, EMPTY])
  })

  it('C8.6 a value is written in the format that was asked for', async () => {
    const value: BackendAnswer = { status: 200, headers: {}, body: { kind: 'value', value: { a: 1 } } }
    const backend = { format: 'value' } as const
    expect(await textOf(await represented(value, { backend }))).toBe(ENVELOPE)
    const xml = await represented(value, { backend, negotiated: XML_ENVELOPE })
    expect(await textOf(xml)).toContain('<a type="number">1</a>')
    expect(xml.headers).toMatchObject({ 'Content-Type': 'application/xml; charset=utf-8' })
  })

  it('C8.6 JSON becomes XML for a client that asks for XML; its ETag gets a mark, and no ranges are offered', async () => {
    const given = jsonAnswer('{"a":1}', { etag: '"v1"', 'accept-ranges': 'bytes' })
    const { headers, ...answer } = await represented(given, { negotiated: XML_ENVELOPE })
    expect(await textOf({ headers, ...answer })).toContain('<Data><a type="number">1</a></Data>')
    expect(headers['etag']).toMatch(/^"v1-xml\.[\w-]{8}"$/)
    expect(headers).not.toHaveProperty('accept-ranges')
  })

  it('C8.6 what is to be converted and larger than the limit is Fault answer_too_large, whole or streamed', async () => {
    const long = JSON.stringify('x'.repeat(1001)) // the limit of makeGateway is 1000 bytes
    for (const given of [jsonAnswer(long), streamed(long)])
      await expect(represented(given, { negotiated: XML_ENVELOPE })).rejects.toMatchObject({
        code: 'answer_too_large',
      })
  })

  it.each([
    [new Error('reset'), 'upstream_unreachable'],
    [new Fault('upstream_timeout'), 'upstream_broken'],
  ])('C8.4 a stream to be converted that breaks is a fault of the upstream: %s', async (thrown, code) => {
    const stream = new Readable({ read: () => void stream.destroy(thrown) })
    const broken: BackendAnswer = {
      ...streamed(''),
      body: { kind: 'stream', pieces: new StreamInPieces(stream), ...UNDECLARED },
    }
    await expect(represented(broken, { negotiated: XML_ENVELOPE })).rejects.toMatchObject({ code })
  })

  it('RFC 9110 §9.3.2 HEAD has the validators of GET and no body', async () => {
    const head: BackendAnswer = { status: 200, headers: { etag: '"v1"' }, body: { kind: 'none' } }
    const got = jsonAnswer(ENVELOPE, head.headers)
    const bare = await represented(head, { method: 'HEAD' })
    expect([bare.body, bare.headers['etag']]).toEqual([undefined, (await represented(got)).headers['etag']])
    expect(bare.headers['etag']).toMatch(MARKED)
    const envelopes = await represented(head, { method: 'HEAD', backend: { payload: 'envelope' } })
    const { headers } = await represented(got, { backend: { payload: 'envelope' } })
    expect([envelopes.body, envelopes.headers['etag']]).toEqual([undefined, headers['etag']])
    expect(headers['etag']).not.toBe(bare.headers['etag'])
  })

  it('RFC 9110 §15.4.5 a 304 has the validators that 200 would have', async () => {
    const given: BackendAnswer = { status: 304, headers: { etag: '"v1"' }, body: { kind: 'none' } }
    const bare = await represented(given)
    const { headers } = await represented(jsonAnswer(ENVELOPE, given.headers))
    expect([bare.status, bare.body, bare.headers['etag']]).toEqual([304, undefined, headers['etag']])
    const envelopes = await represented(given, { backend: { payload: 'envelope' } })
    expect(envelopes.headers['etag']).toMatch(MARKED)
    const passed = await represented(given, { negotiated: own('text/csv') })
    expect(passed.headers).toMatchObject({ etag: '"v1"', ...GUARDS })
  })
})

describe('the headers of an answer', () => {
  it("C2.5 an upstream's Cache-Control stands, and no-store is not added", async () => {
    const { headers } = await represented(jsonAnswer('{}', { 'cache-control': 'max-age=60' }))
    expect(headers['cache-control']).toBe('max-age=60')
    expect(headers).not.toHaveProperty('Cache-Control')
  })

  it('C2.5 an answer with a content coding varies by Accept-Encoding too', async () => {
    const backend = { payload: 'envelope' } as const
    const { headers } = await represented(jsonAnswer('\x1f', { 'content-encoding': 'gzip' }), { backend })
    expect(headers).toMatchObject({ Vary: 'Accept, Accept-Encoding', ...GUARDS })
  })

  it("C2.5 the guards replace what the upstream's headers say, however they are spelled", () => {
    const given = { 'content-security-policy': 'script-src *', 'X-CONTENT-TYPE-OPTIONS': 'x', etag: '"v1"' }
    expect(guardBytes(given)).toEqual({ etag: '"v1"', ...GUARDS })
  })
})

describe("an upstream's own envelope", () => {
  const backend = { payload: 'envelope' } as const
  const broken = { code: 'upstream_broken' }

  it('C8.6 passes as it came, with its validators and its length', async () => {
    const whole = await represented(jsonAnswer(` ${ENVELOPE}`, { etag: '"v1"', 'accept-ranges': 'bytes' }), {
      backend,
    })
    expect(await textOf(whole)).toBe(` ${ENVELOPE}`)
    expect(whole.headers).toMatchObject({
      etag: expect.stringMatching(MARKED) as unknown,
      'accept-ranges': 'bytes',
    })
    const stream = await represented(streamed(ENVELOPE, {}, ENVELOPE.length), { backend })
    expect(stream.headers).toMatchObject({ 'Content-Length': String(ENVELOPE.length) })
    expect(await textOf(stream)).toBe(ENVELOPE)
  })

  it('C8.4 is Fault upstream_broken if it is no envelope; a stream breaks with that fault', async () => {
    await expect(represented(jsonAnswer('{"a":1}'), { backend })).rejects.toMatchObject(broken)
    const { body } = await represented(streamed('{"a":1}'), { backend })
    await expect(buffer(readableOf(body as PieceSource))).rejects.toMatchObject(broken)
  })

  it('C8.4 a part of one (206) is not verified, keeps the type of several ranges, and is guarded', async () => {
    const given = jsonAnswer('"a":')
    const part = { ...given, status: 206, headers: { 'content-range': 'bytes 1-4/9' } }
    const answer = await represented(part, { backend })
    expect([answer.status, await textOf(answer)]).toEqual([206, '"a":'])
    expect(answer.headers).toMatchObject({ 'content-range': 'bytes 1-4/9', ...GUARDS })
    const type = 'multipart/byteranges; boundary=b'
    const several: BackendAnswer = {
      ...part,
      body: { kind: 'bytes', bytes: Buffer.from('--b'), contentType: type },
    }
    expect((await represented(several, { backend })).headers).toMatchObject({ 'Content-Type': type })
  })

  it('C8.6 is converted for a client that asks for the other format', async () => {
    const answer = await represented(jsonAnswer(ENVELOPE), { backend, negotiated: XML_ENVELOPE })
    expect(await textOf(answer)).toContain('<Data><a type="number">1</a></Data>')
  })
})

describe('an answer of an action with produces', () => {
  const csv = (contentType: string | undefined): BackendAnswer => ({
    status: 200,
    headers: { etag: '"v1"', 'accept-ranges': 'bytes' },
    body: { kind: 'bytes', bytes: Buffer.from('a;b'), contentType },
  })

  it('C7.1 passes without an envelope, with its own type and the guards', async () => {
    const answer = await represented(csv('text/csv; charset=utf-8'), { negotiated: own('text/*') })
    expect(await textOf(answer)).toBe('a;b')
    expect(answer.headers).toMatchObject({
      'Content-Type': 'text/csv; charset=utf-8',
      etag: '"v1"',
      'accept-ranges': 'bytes',
      ...GUARDS,
    })
  })

  it('C7.1 without a type of its own, it has the negotiated one, unless that is a range', async () => {
    const typed = await represented(csv(undefined), { negotiated: own('text/csv') })
    expect(typed.headers['Content-Type']).toBe('text/csv')
    const ranged = await represented(csv(undefined), { negotiated: own('text/*') })
    expect(ranged.headers).not.toHaveProperty('Content-Type')
  })

  it('C7.1 a value is written as JSON without an envelope', async () => {
    const value: BackendAnswer = { status: 200, headers: {}, body: { kind: 'value', value: { a: 1 } } }
    expect(await textOf(await represented(value, { negotiated: own('application/geo+json') }))).toBe(
      '{"a":1}',
    )
  })

  it.each([204, 205])('C7.1 %i keeps its status and has no content (RFC 9110 §15.3.6)', async (status) => {
    const answer = await represented({ ...NONE, status }, { negotiated: own('text/csv') })
    expect([answer.status, answer.body]).toEqual([status, undefined])
  })
})

describe("an upstream's own errors", () => {
  const errors = (status: number): BackendAnswer => ({
    status,
    headers: { 'retry-after': '7' },
    body: { kind: 'errors', errors: [{ code: 'E1', message: 'No such fund' }] },
  })

  it('C8.4 stand in our envelope with empty Data, whatever the action answers otherwise', async () => {
    for (const negotiated of [JSON_ENVELOPE, own('text/csv')]) {
      const answer = await represented(errors(404), { negotiated })
      expect(answer.status).toBe(404)
      expect(JSON.parse(await textOf(answer))).toEqual({
        Errors: [{ Code: 'E1', Message: 'No such fund' }],
        Data: {},
      })
      expect(answer.headers).toEqual({
        'retry-after': '7',
        'Content-Type': 'application/json; charset=utf-8',
        Vary: 'Accept',
        'Cache-Control': 'no-store',
      })
    }
  })

  it('C2.4 have the format of errors, which Accept decides', async () => {
    const answer = await represented(errors(409), { accept: 'application/xml' })
    expect(answer.headers['Content-Type']).toBe('application/xml; charset=utf-8')
    expect(await textOf(answer)).toContain('<Code>E1</Code>')
  })

  it('C4.13 a 401 has a challenge without an error code; no other status has one', () => {
    const { runtime, exchange } = prepared({})
    expect(refuse(errors(401), runtime, exchange).headers['WWW-Authenticate']).toBe(
      `Bearer realm="${runtime.baseUrl}"`,
    )
    expect(refuse(errors(404), runtime, exchange).headers).not.toHaveProperty('WWW-Authenticate')
  })
})

describe("whether an answer's bytes pass unchanged", () => {
  it.each([
    ['bare JSON to a client of JSON', {}, JSON_ENVELOPE, false],
    ['an envelope to a client of its format', { payload: 'envelope' }, JSON_ENVELOPE, true],
    ['an envelope to a client of the other format', { payload: 'envelope' }, XML_ENVELOPE, false],
    ['any answer of an action with produces', {}, own('text/csv'), true],
  ] as const)('C8.6 %s', (_title, backend, negotiated, verbatim) => {
    expect(passesVerbatim(prepared({ backend, negotiated }).decision)).toBe(verbatim)
  })
})
