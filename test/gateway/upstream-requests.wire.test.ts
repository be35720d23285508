import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { fundsOf, type HttpConfig } from '../support/changed-funds.ts'
import { bearer, expectFault, send, type Sent } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { answerJson, openUpstream, type ReceivedRequest, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'
import { askWebsocket, startWebsocketUpstream } from '../support/websocket-upstream.ts'

/** C8.7: what an upstream is sent, where a backend or an operation says so. */

type Action = Configuration['actions'][number]
type Operation = NonNullable<Action['methods']['GET']>
type OperationUpstream = NonNullable<Operation['upstream']>
const anybody = { scopes: { any: ['fund.read'] }, versions: [1], items: {} }
const action = (name: string, methods: Action['methods'], level: Action['level'] = 'business'): Action => ({
  level,
  area: 'fund-data',
  action: name,
  methods,
})
const get = (name: string, upstream: OperationUpstream, level?: Action['level']): Action =>
  action(name, { GET: { ...anybody, upstream } }, level)

const ACTIONS: readonly Action[] = [
  get('path/{memberId}', { path: '/companies/{business}/funds/{fund}/members/{memberId}.json' }, 'fund'),
  get('all-names', {
    path: '/{area}/{version}/{actionVersion}',
    query: { client: '{client}', action: '{action}' },
    headers: { 'X-Who': '{subject}@{client}', 'X-Literal': '{{business}}' },
  }),
  get('headers', { headers: { 'x-shared': 'own', 'X-Added': 'a, b' } }),
  get('query', { query: { shared: 'own', 'a b': 'x&y' } }),
  get('only', { queryOnly: ['page', 'ids[]'] }),
  get('as-post', { method: 'POST' }),
  get('as-get', { method: 'GET' }),
  get('no-retry', { retries: 0 }),
  get('impatient', { timeouts: { firstByte: 50 } }),
  get('elsewhere', { backend: 'other', path: '/elsewhere' }),
  action('write', {
    POST: { ...anybody, body: { required: false }, upstream: { method: 'PUT' } },
    DELETE: { ...anybody, upstream: { method: 'POST', path: '/delete' } },
  }),
]

let upstream: Upstream
let other: Upstream
let gateway: StartedPostern
let token: string

const withActions = (loaded: Configuration): Configuration => {
  const funds = fundsOf(loaded)
  const shaped: HttpConfig = {
    ...funds,
    query: { shared: '{business}', tenant: '{business}' },
    headers: { 'X-Shared': '{business}', 'X-Tenant': '{business}' },
    timeouts: { ...funds.timeouts, firstByte: 60_000 },
  }
  return {
    ...loaded,
    backends: { ...loaded.backends, funds: shaped, other: { ...funds, target: other.url } },
    actions: [...loaded.actions, ...ACTIONS],
  }
}

beforeAll(async () => {
  upstream = await openUpstream()
  other = await openUpstream()
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: withActions,
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(() => Promise.all([gateway.close(), upstream.close(), other.close()]))
beforeEach(() => {
  for (const each of [upstream, other]) {
    each.requests.splice(0)
    each.behave(answerJson({ ok: true }))
  }
  gateway.switches.set([])
})

const BASE = '/api/1.0/b/ACME/fund-data'

const call = (target: string, sent: Partial<Sent> = {}) =>
  send(gateway, {
    ...sent,
    target: target.startsWith('/') ? target : `${BASE}/${target}`,
    headers: { ...bearer(token), ...sent.headers },
  })

/** What the upstream got of a call that succeeds. */
async function sentBy(target: string, sent: Partial<Sent> = {}): Promise<ReceivedRequest> {
  const { status, body } = await call(target, sent)
  expect(status, body).toBe(200)
  const [request, ...others] = upstream.requests.splice(0)
  if (request === undefined || others.length > 0) throw new Error(`${others.length} further requests`)
  return request
}

describe('C8.7 the path, query and headers of a request', () => {
  it('C8.7 names business, fund and path parameters in the path', async () => {
    const { target } = await sentBy('/api/1.0/f/ACME/SUPER1/fund-data/path/%C3%A9%3F?a=1')
    expect(target).toBe('/companies/ACME/funds/SUPER1/members/%C3%A9%3F.json?a=1&shared=ACME&tenant=ACME')
  })

  it('C8.7 has a value for every placeholder, and doubled braces for braces', async () => {
    const { target, headers } = await sentBy('all-names')
    expect(target).toBe('/fund-data/1.0/1?shared=ACME&tenant=ACME&client=acme-books&action=all-names')
    const who = headers['x-postern-subject']?.[0] ?? ''
    expect(headers).toMatchObject({ 'x-who': [`${who}@acme-books`], 'x-literal': ['{business}'] })
  })

  it('C8.7 headers of an operation and its backend are merged by name, in any case; the operation’s win', async () => {
    const { headers } = await sentBy('headers', { headers: { 'X-Added': 'client', X_SHARED: 'client' } })
    expect(headers).toMatchObject({ 'x-shared': ['own'], 'x-added': ['a, b'], 'x-tenant': ['ACME'] })
    expect(headers).not.toHaveProperty('x_shared')
  })

  it('C8.7 so is the query, which is added at the end', async () => {
    expect((await sentBy('query')).target).toBe(`${BASE}/query?shared=own&tenant=ACME&a%20b=x%26y`)
    expect((await sentBy('query?')).target).toBe(`${BASE}/query?shared=own&tenant=ACME&a%20b=x%26y`)
    expect((await sentBy('query?x=%2f&&y;z&Shared=1&a+b=2')).target).toBe(
      `${BASE}/query?x=%2f&&y;z&shared=own&tenant=ACME&a%20b=x%26y`,
    )
  })

  it('C8.7 queryOnly lets listed names pass, and nothing else', async () => {
    expect((await sentBy('only?page=1&size=2&ids[]=3&tenant=X')).target).toBe(
      `${BASE}/only?page=1&ids[]=3&shared=ACME&tenant=ACME`,
    )
  })

  it('C3.4 the query decides nothing: taking out a part of it changes no answer', async () => {
    expect((await call('query?shared=GLOBEX')).status).toBe(200)
    expect((await call('/api/1.0/b/GLOBEX/fund-data/query?shared=ACME')).status).toBe(404)
    expect(upstream.requests.map(({ target }) => target)).toEqual([
      `${BASE}/query?shared=own&tenant=ACME&a%20b=x%26y`,
    ])
  })
})

describe('C8.7 the method of a request', () => {
  it('C8.7 is the operation’s; the body goes with it', async () => {
    const JSON_BODY = { 'Content-Type': 'application/json' }
    const put = await sentBy('write', { method: 'POST', body: '{"a":1}', headers: JSON_BODY })
    expect([put.method, put.body.toString()]).toEqual(['PUT', '{"a":1}'])
    const post = await sentBy('write', { method: 'DELETE' })
    expect([post.method, post.target.split('?')[0], post.headers['content-length']]).toEqual([
      'POST',
      '/delete',
      ['0'],
    ])
    expect((await sentBy('as-post')).method).toBe('POST')
  })

  it('C8.7 HEAD stays HEAD where the upstream is sent GET, else it is the other method without the body', async () => {
    expect((await sentBy('as-get', { method: 'HEAD' })).method).toBe('HEAD')
    const answer = await call('as-post', { method: 'HEAD' })
    expect([answer.status, answer.body]).toEqual([200, ''])
    expect(upstream.requests.map(({ method }) => method)).toEqual(['POST'])
  })

  it.each([
    ['query', 2],
    ['no-retry', 1],
    ['as-post', 1],
  ])('C8.5 C8.7 %s is sent %i times if the connection fails', async (name, times) => {
    upstream.behave((connection) => connection.reset())
    expectFault(await call(name), 'upstream_unreachable')
    expect(upstream.requests).toHaveLength(times)
  })
})

describe('C8.7 an operation’s own timeouts and backend', () => {
  it('C8.7 its timeouts hold on connections that others use too', async () => {
    await sentBy('query')
    upstream.behave(() => undefined)
    const { status } = await call('impatient')
    expect(status).toBe(503)
    const [line] = gateway.log().filter(({ reason }) => reason === 'upstream_timeout')
    expect(line).toMatchObject({ status: 503 })
  })

  it('C4.9 C8.7 maintenance of its own backend closes it; that of its area’s does not', async () => {
    const close = (name: string): void =>
      gateway.switches.set([{ scope: { kind: 'backend', name }, retryAfter: 60 }])
    close('funds')
    expect((await call('elsewhere')).status).toBe(200)
    expectFault(await call('query'), 'place_maintenance')
    close('other')
    expectFault(await call('elsewhere'), 'place_maintenance')
    expect((await call('query')).status).toBe(200)
    expect(other.requests.map(({ target }) => target)).toEqual(['/elsewhere'])
    expect(upstream.requests).toHaveLength(1)
  })

  it('C8.7 metrics and the health of its own backend are told under that backend’s name', async () => {
    other.behave((connection) => connection.reset())
    for (let count = 0; count < 6; count += 1) await call('elsewhere')
    expect((await call('query')).status).toBe(200)
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
    expect(metrics).toMatch(/postern_backend_calls_total\{[^}]*backend="other"[^}]*\} [1-9]/)
  })
})

/** The types of the core do not tell the keys of extensions. */
const withWebsocket = <T extends object>(operation: T): T => ({ ...operation, websocket: true })

it('C8.7 the handshake of a websocket gets the same path, query and headers', async () => {
  const live = await startWebsocketUpstream()
  const websocket = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: (loaded) => {
      const funds = fundsOf(loaded)
      const stream = { ...funds, kind: 'stream', target: live.url, closeOnExpiry: true } as const
      const upstreamKeys = {
        backend: 'live',
        path: '/ws/{business}/{market}',
        query: { tenant: '{business}' },
        headers: { 'X-Tenant': '{business}' },
      }
      return {
        ...loaded,
        backends: { ...loaded.backends, live: stream },
        actions: [
          ...loaded.actions,
          action('prices/{market}', { GET: withWebsocket({ ...anybody, upstream: upstreamKeys }) }),
        ],
      }
    },
  })
  onTestFinished(async () => {
    await websocket.close()
  })
  const { access_token } = await issueToken(websocket, { scope: ALL_AT_ACME })
  const asked = await askWebsocket(
    `${websocket.baseUrl.replace('http', 'ws')}${BASE}/prices/a%20b?tenant=GLOBEX&a=1`,
    { headers: { ...bearer(access_token), 'X-Tenant': 'GLOBEX' } },
  )
  expect(asked.kind).toBe('open')
  const [handshake] = live.handshakes
  expect(handshake?.url).toBe('/ws/ACME/a%20b?a=1&tenant=ACME')
  expect(handshake?.headers['x-tenant']).toBe('ACME')
})
