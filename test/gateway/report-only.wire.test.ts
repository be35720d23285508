import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { openRaw } from '../support/raw-http.ts'
import { bearer, expectFault, requestBytes, send, type Sent } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { answerJson, openUpstream, type ReceivedRequest, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
const JSON_BODY = { 'Content-Type': 'application/json' }

/** `fund-data` is introduced, `member-data` is in force. A busy machine sheds no calls. */
const introduced = (loaded: Configuration): Configuration => ({
  ...loaded,
  areas: { ...loaded.areas, 'fund-data': { backend: 'funds', mode: 'report-only' } },
})

let upstream: Upstream
let gateway: StartedPostern
let token: string
let elsewhere: string
let readOnly: string
beforeAll(async () => {
  upstream = await openUpstream()
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: introduced,
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
  elsewhere = (await issueToken(gateway, { scope: 'fund.maintain target:b/GLOBEX' })).access_token
  readOnly = (await issueToken(gateway, { scope: 'fund.member.read target:b/ACME' })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})
beforeEach(() => upstream.behave(answerJson({ ok: true })))

interface Passed {
  readonly request: ReceivedRequest
  readonly status: number
  readonly body: string
  readonly line: Record<string, unknown> | undefined
}

/** Sends a call that reaches the upstream, and what became of it. */
async function pass(sent: Partial<Sent>): Promise<Passed> {
  const count = upstream.requests.length
  const { status, body, headers } = await send(gateway, { target: LIST, ...sent })
  const request = upstream.requests[count]
  if (request === undefined || upstream.requests.length > count + 1)
    throw new Error(`${upstream.requests.length - count} upstream requests; ${status} ${body}`)
  return {
    request,
    status,
    body,
    line: gateway.log().find(({ requestId }) => requestId === headers['x-request-id']),
  }
}

const IDENTITY = /^x-postern-(?:subject|client|scope|business|fund|token)$/
const identityOf = ({ headers }: ReceivedRequest): readonly string[] =>
  Object.keys(headers).filter((name) => IDENTITY.test(name))

describe('a report-only area', () => {
  it('serves a call that would be allowed like any area, and tells the upstream so', async () => {
    const { request, status, body, line } = await pass({ headers: bearer(token) })
    expect([status, body]).toEqual([200, '{"Errors":[],"Data":{"ok":true}}'])
    expect(request.headers).toMatchObject({
      'x-postern-decision': ['allow'],
      'x-postern-client': ['acme-books'],
    })
    expect(line).not.toHaveProperty('wouldRefuse')
  })

  it.each<[reason: string, sent: () => Partial<Sent>]>([
    ['no_credentials', () => ({})],
    ['other_scheme', () => ({ headers: { Authorization: 'Basic eDp5' } })],
    ['invalid_token', () => ({ headers: bearer('not.a.token') })],
    ['unknown_action', () => ({ target: `${LIST}/more`, headers: bearer(token) })],
    ['method_not_allowed', () => ({ method: 'DELETE', headers: bearer(token) })],
    ['insufficient_scope', () => ({ headers: bearer(readOnly) })],
    ['unknown_place', () => ({ headers: bearer(elsewhere) })],
    ['not_acceptable', () => ({ headers: { ...bearer(token), Accept: 'text/csv' } })],
    [
      'unsupported_media_type',
      () => ({
        method: 'POST',
        target: DETAIL,
        headers: { ...bearer(token), 'Content-Type': 'text/csv' },
        body: 'a,b',
      }),
    ],
    [
      'body_malformed',
      () => ({ method: 'POST', target: DETAIL, headers: { ...bearer(token), ...JSON_BODY }, body: '{"a":' }),
    ],
    ['body_missing', () => ({ method: 'POST', target: DETAIL, headers: bearer(token) })],
  ])('C4.4 to C4.11 lets through what would be %s: told, logged and counted', async (reason, sent) => {
    const before = await counted(reason)
    const asked = sent()
    const { request, status, line } = await pass(asked)
    expect(status).toBe(200)
    expect(request.headers['x-postern-decision']).toEqual([`would-refuse; reason=${reason}`])
    expect([request.target, request.method]).toEqual([asked.target ?? LIST, asked.method ?? 'GET'])
    expect(line).toMatchObject({ wouldRefuse: reason, status: 200 })
    expect(line).not.toHaveProperty('reason')
    expect(await counted(reason)).toBe(before + 1)
  })

  it.each<[what: string, sent: () => Partial<Sent>]>([
    ['without a token', () => ({})],
    ['with a bad one', () => ({ headers: bearer('not.a.token') })],
    ['with one of another business', () => ({ headers: bearer(elsewhere) })],
    ['with too little scope', () => ({ headers: bearer(readOnly) })],
  ])('C8.2 vouches for nobody %s, whatever the client says', async (_what, sent) => {
    const asked = sent()
    const forged = {
      'X-Postern-Subject': 'admin',
      X_Postern_Business: 'ACME',
      'X-Postern-Decision': 'allow',
      X_Postern_Decision: 'allow',
    }
    const { request } = await pass({ ...asked, headers: { ...asked.headers, ...forged } })
    expect(identityOf(request)).toEqual([])
    expect(request.headers['x-postern-decision']).toEqual([expect.stringMatching(/^would-refuse; /)])
    expect(Object.keys(request.headers).filter((name) => name.includes('_'))).toEqual([])
  })

  it('C8.2 says who calls where only the representation would be refused', async () => {
    const { request } = await pass({ headers: { ...bearer(token), Accept: 'text/csv' } })
    expect(identityOf(request)).toContain('x-postern-subject')
  })

  it('gives what it does not know the upstream’s own words, and the upstream the client’s', async () => {
    upstream.behave((connection) =>
      connection.respond({ headers: { 'Content-Type': 'text/csv' }, body: 'a,b\n' }),
    )
    const passed = await pass({ headers: { ...bearer(token), Accept: 'text/csv, text/plain;q=0.5' } })
    expect(passed.body).toBe('a,b\n')
    expect(passed.request.headers['accept']).toEqual(['text/csv, text/plain;q=0.5'])
  })

  it('C7.6 sends a body that would be refused as it came', async () => {
    const headers = { ...bearer(token), ...JSON_BODY }
    const { request } = await pass({ method: 'POST', target: DETAIL, headers, body: '{"a": \u00e9' })
    expect(request.body.toString()).toBe('{"a": \u00e9')
    expect(request.headers['content-type']).toEqual(['application/json'])
    expect(request.headers['content-length']).toEqual([String(request.body.length)])
  })

  it('C7.6 streams a body that is over the limit, declared or not', async () => {
    const body = JSON.stringify({ Name: 'x'.repeat(3 * 1024 ** 2) })
    const headers = { ...bearer(token), ...JSON_BODY }
    const declared = await pass({ method: 'POST', target: DETAIL, headers, body })
    expect(declared.request.body.toString() === body).toBe(true)
    expect(declared.line).toMatchObject({ wouldRefuse: 'body_too_large' })
    const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    const chunked = { ...headers, 'Transfer-Encoding': 'chunked' }
    const streamed = await pass({ method: 'POST', target: DETAIL, headers: chunked, body: chunks })
    expect(streamed.request.body.includes(body)).toBe(true)
    expect(streamed.line).toMatchObject({ wouldRefuse: 'body_too_large' })
  })

  it('T2.4 never sends a body with GET: the upstream gets one request, and nothing behind it', async () => {
    const hidden = 'GET /api/1.0/b/OTHER/fund-data/fund-list HTTP/1.1\r\nHost: x\r\n\r\n'
    const { request, line } = await pass({ headers: { 'Content-Type': 'text/plain' }, body: hidden })
    expect(request.body.length).toBe(0)
    expect(request.headers).not.toHaveProperty('content-length')
    expect(line).toMatchObject({ wouldRefuse: 'no_credentials' })
    const all = Buffer.concat(upstream.connections.map(({ bytes }) => bytes)).toString()
    expect(all).not.toContain('OTHER')
  })

  it('serves the next call on the connection of one that would be refused', async () => {
    const connection = await openRaw(gateway.port)
    for (const sent of [{}, { headers: bearer(token) }, {}]) {
      connection.send(requestBytes({ target: LIST, ...sent }))
      expect((await connection.response()).status).toBe(200)
    }
    connection.destroy()
  })
})

describe('a report-only area refuses all the same', () => {
  it.each([
    ['C4.1', 'bad_target', { target: '/api/1.0/b/ACME/fund-data/..%2Ffund-list' }],
    ['C4.1', 'repeated_header', { target: LIST, headers: { Authorization: ['Bearer a', 'Bearer b'] } }],
    ['C4.3', 'unknown_api_version', { target: '/api/2.0/b/ACME/fund-data/fund-list' }],
  ] as const)('%s %s', async (_clause, code, sent) => {
    const count = upstream.requests.length
    const answer = await send(gateway, sent)
    if (code === 'bad_target') expect(answer.status).toBe(400)
    else expectFault(answer, code)
    expect(upstream.requests.length).toBe(count)
  })

  it('C4.2, C4.9 what an operator has closed', async () => {
    for (const scope of [{ kind: 'service' }, { kind: 'area', name: 'fund-data' }] as const) {
      gateway.switches.set([{ scope, retryAfter: 1 }])
      const answer = await send(gateway, { target: LIST })
      gateway.switches.set([])
      expect(answer.status).toBe(503)
    }
  })

  it('C8.4 what the upstream refuses or fails at', async () => {
    upstream.behave((connection) => connection.respond({ status: 403 }))
    expectFault(await send(gateway, { target: LIST }), 'upstream_forbade')
  })
})

describe('beside a report-only area', () => {
  it('other areas, userinfo and unknown areas are in force', async () => {
    const count = upstream.requests.length
    for (const target of [
      '/api/1.0/f/ACME/SUPER1/member-data/member-list',
      '/api/1.0/u/connect/userinfo',
      '/api/1.0/b/ACME/Fund-data/fund-list',
      '/api/1.0/b/ACME/member-data/fund-data/fund-list',
      '/api/1.0/b/ACME',
      '/api/1.0/x/ACME/fund-data/fund-list',
    ])
      expectFault(await send(gateway, { target }), 'no_credentials')
    expect(upstream.requests.length).toBe(count)
  })

  it('its mode is loud: in the log at the start, and in the metrics', async () => {
    const told = gateway.log().filter(({ event }) => event === 'report_only_areas')
    expect(told).toMatchObject([{ level: 'warn', areas: ['fund-data'] }])
    expect(await metric('postern_report_only_areas')).toBe(1)
    const quiet = await postern({ keeps: 'nothing' })
    expect(await metric('postern_report_only_areas', quiet)).toBe(0)
    expect(quiet.log().filter(({ event }) => event === 'report_only_areas')).toEqual([])
  })
})

/** The value of a series, or the sum of those whose labels begin so. */
async function metric(series: string, from: StartedPostern = gateway): Promise<number> {
  const text = await (await fetch(`${from.adminUrl}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith(series))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

const counted = (reason: string): Promise<number> =>
  metric(`postern_would_refuse_total{reason="${reason}",area="fund-data"`)
