import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { bearer, send, type Sent } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream, type UpstreamAnswer } from '../support/start-upstream.ts'
import { at, withStream } from '../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** T6: bytes that are an upstream's own come from the origin of the sign-in pages, and must be nothing to a browser. */

const LIST = at('fund-list')
const PAGE = '<script xmlns="http://www.w3.org/1999/xhtml">fetch("/connect/account")</script>'
const LOOSE = { 'Content-Security-Policy': '*', 'X-Content-Type-Options': 'sniff-away' }
const NAMES = ['Content-Security-Policy', 'x-content-type-options', 'ETag', 'Set-Cookie']

type Change = (configuration: Configuration) => Configuration

const withHeaders =
  (more: Readonly<Record<string, unknown>> = {}): Change =>
  (loaded) => {
    const { funds } = loaded.backends
    if (funds?.kind !== 'http') throw new Error('the configuration has another backend now')
    return {
      ...loaded,
      backends: { ...loaded.backends, funds: { ...funds, responseHeaders: NAMES, ...more } },
    }
  }

const withOwnTypes: Change = (loaded) => withStream(loaded, { responseHeaders: NAMES })
const reportOnly: Change = (loaded) => ({
  ...withHeaders()(loaded),
  areas: { ...loaded.areas, 'fund-data': { backend: 'funds', mode: 'report-only' } },
})
const ownTypesOverHttp: Change = (loaded) => ({
  ...withHeaders()(loaded),
  actions: withOwnTypes(loaded).actions.filter(({ methods }) => !('websocket' in (methods.GET ?? {}))),
})

let upstream: Upstream
const started = new Map<Change, { gateway: StartedPostern; token: string }>()
const xmlEnvelopes = withHeaders({ format: 'xml', payload: 'envelope' })

beforeAll(async () => {
  upstream = await openUpstream()
  for (const change of [withOwnTypes, ownTypesOverHttp, reportOnly, xmlEnvelopes]) {
    const options = { config: 'upstream.yaml', environment: { UPSTREAM_URL: upstream.url }, change }
    const gateway = await startPostern({ ...options, keeps: 'nothing' })
    started.set(change, { gateway, token: (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token })
  }
})
afterAll(async () => {
  for (const { gateway } of started.values()) await gateway.close()
  await upstream.close()
})

async function ask(change: Change, answer: UpstreamAnswer, sent: Partial<Sent> = {}) {
  upstream.behave((connection) => connection.respond({ ...answer, headers: { ...LOOSE, ...answer.headers } }))
  const { gateway, token } = started.get(change)!
  return send(gateway, { target: LIST, ...sent, headers: { ...bearer(token), ...sent.headers } })
}

/** One line each, and ours. */
function expectGuarded({ rawHeaders }: Awaited<ReturnType<typeof ask>>): void {
  const lines = (name: string) =>
    rawHeaders.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value)
  expect(lines('x-content-type-options')).toEqual(['nosniff'])
  expect(lines('content-security-policy')).toEqual(["default-src 'none'; sandbox"])
}

describe('C7.1 answers with types of their own', () => {
  it.each([
    ['stream', withOwnTypes],
    ['http', ownTypesOverHttp],
  ])('are a page that runs nothing, whatever the upstream says of it (%s)', async (_, change) => {
    const target = at('download')
    const page = { headers: { 'Content-Type': 'text/html', ETag: '"1"' }, body: PAGE }
    const whole = await ask(change, page, { target })
    expect([whole.status, whole.body]).toEqual([200, PAGE])
    expectGuarded(whole)
    expectGuarded(await ask(change, page, { target, method: 'HEAD' }))
    const fresh = { headers: { ETag: '"1"' }, status: 304 }
    const known = await ask(change, fresh, { target, headers: { 'If-None-Match': '"1"' } })
    expect(known.status).toBe(304)
    expectGuarded(known)
    expectGuarded(await ask(change, { ...page, status: 201 }, { target }))
    expectGuarded(await ask(change, { status: 204 }, { target }))
    const events = { headers: { 'Content-Type': 'text/event-stream' }, body: 'data: 1\n\n' }
    expectGuarded(await ask(change, events, { target: at('events') }))
  })
})

describe('report-only areas', () => {
  it.each<[string, Partial<Sent>, UpstreamAnswer]>([
    ['a call that would be served', {}, { headers: { 'Content-Type': 'application/json' }, body: '{}' }],
    [
      'an action that is not configured',
      { target: at('nothing') },
      { headers: { 'Content-Type': 'text/html' }, body: PAGE },
    ],
    [
      'a call without a token',
      { headers: { Authorization: undefined } },
      { headers: { 'Content-Type': 'text/html' }, body: PAGE },
    ],
    [
      'a type that would be refused',
      { headers: { Accept: 'text/html' } },
      { headers: { 'Content-Type': 'text/html' }, body: PAGE },
    ],
    ['an error of the upstream', {}, { status: 404, headers: { 'Content-Type': 'text/html' }, body: PAGE }],
    ['a failure of the upstream', {}, { status: 500, headers: { 'Content-Type': 'text/html' }, body: PAGE }],
  ])('guard everything that comes from them: %s', async (_, sent, answer) => {
    expectGuarded(await ask(reportOnly, answer, sent))
  })

  it('guard what Postern itself refuses there', async () => {
    const { gateway } = started.get(reportOnly)!
    gateway.switches.set([{ scope: { kind: 'service' }, retryAfter: 1 }])
    const refused = await ask(reportOnly, {})
    gateway.switches.set([])
    expect(refused.status).toBe(503)
    expectGuarded(refused)
  })
})

describe('C8.6 an upstream’s envelope that passes unread', () => {
  it('is a page that runs nothing, too', async () => {
    const body = `<ApiResponse><Errors/><Data><Note>${PAGE}</Note></Data></ApiResponse>`
    const answer = await ask(
      xmlEnvelopes,
      { headers: { 'Content-Type': 'application/xml' }, body },
      { headers: { Accept: 'application/xml' } },
    )
    expect([answer.status, answer.body]).toEqual([200, body])
    expectGuarded(answer)
  })
})
