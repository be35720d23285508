import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { MaintenanceSwitch } from '../../src/gateway/maintenance/switch.ts'
import type { RawResponse } from '../support/raw-http.ts'
import { bearer, envelopeOf, expectFault, form, send, type Sent } from '../support/requests.ts'
import { postern, type StartedPostern, startPostern } from '../support/start-postern.ts'
import { startUpstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, basic, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const MEMBERS = '/api/1.0/f/ACME/SUPER1/member-data/member-list'
const GLOBEX = '/api/1.0/b/GLOBEX/fund-data/fund-list'
const USERINFO = '/api/1.0/u/connect/userinfo'

let gateway: StartedPostern
let token: string
let globex: string
let ledger: string
beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing' })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
  globex = (await issueToken(gateway, { scope: 'fund.read target:b/GLOBEX' })).access_token
  const bob = { client: 'globex-ledger', username: 'bob', scope: 'openid fund.read target:b/GLOBEX' }
  ledger = (await issueToken(gateway, bob)).access_token
})
afterAll(() => gateway.close())
afterEach(() => {
  gateway.switches.set([])
})

const on = (scope: MaintenanceSwitch['scope'], more: Partial<MaintenanceSwitch> = {}): void =>
  gateway.switches.set([{ scope, retryAfter: 120, ...more }])
const ask = (target: string, as = token, { headers, ...more }: Partial<Sent> = {}) =>
  send(gateway, { target, ...more, headers: { ...bearer(as), ...headers } })
const anonymous = (target: string, more: Partial<Sent> = {}) => send(gateway, { target, ...more })
const tokenRequest = () => {
  const fields = { grant_type: 'password', username: 'alice', password: 'alice-password', scope: 'openid' }
  const { headers, body } = form(fields)
  const authorization = { Authorization: basic('acme-books') }
  return send(gateway, {
    method: 'POST',
    target: '/connect/token',
    headers: { ...headers, ...authorization },
    body,
  })
}

const SERVICE = { kind: 'service' } as const

describe('C4.2, C9.2: the whole service', () => {
  it('C9.2: everything under /api is 503 with Retry-After, with a token or without', async () => {
    on(SERVICE)
    const answers = await Promise.all([
      ask(LIST),
      ask(USERINFO),
      anonymous(LIST),
      anonymous('/api'),
      anonymous('/api/9.9'),
      ask('/api/1.0/nothing'),
      ask(LIST, 'bad'),
    ])
    for (const answer of answers) {
      expectFault(answer, 'service_maintenance')
      expect(answer.headers['retry-after']).toBe('120')
    }
  })

  it('C9.2: enveloped in the format of errors', async () => {
    on(SERVICE)
    const xml = { headers: { Accept: 'application/xml' } }
    expectFault(await ask(LIST, token, xml), 'service_maintenance', { format: 'xml' })
    expectFault(await ask(USERINFO, token, xml), 'service_maintenance', { format: 'xml' })
  })

  it('C9.1: with a message of its own', async () => {
    on(SERVICE, { message: 'Back at six & well.' })
    const { body } = await ask(LIST)
    expect(body).toBe(envelopeOf('json', 'API_UNAVAILABLE', 'Back at six & well.'))
  })

  it('C9.2: addresses on an allow list pass; then C4 goes on as ever', async () => {
    on(SERVICE, { addresses: ['127.0.0.0/8'] })
    expect(await ask(LIST)).toMatchObject({ status: 200 })
    expectFault(await anonymous(LIST), 'no_credentials')
    expectFault(await anonymous('/api'), 'unknown_api_version')
    on(SERVICE, { addresses: ['192.0.2.0/24', '::1'] })
    expectFault(await ask(LIST), 'service_maintenance')
  })

  it('C9.2: if the list names clients, a call whose token verifies and belongs to one passes; everything else is 503', async () => {
    on(SERVICE, { clients: ['acme-books'] })
    expect(await ask(LIST)).toMatchObject({ status: 200 })
    expect(await ask(USERINFO)).toMatchObject({ status: 200 })
    expectFault(await ask(USERINFO, ledger), 'service_maintenance')
    expectFault(await ask(LIST, `${token.slice(0, -2)}xx`), 'service_maintenance')
    expectFault(await anonymous(LIST), 'service_maintenance')
    expectFault(await anonymous('/api'), 'service_maintenance')
  })

  it('C9.2: discovery, keys, the token endpoint, health and metrics keep answering', async () => {
    on(SERVICE)
    for (const target of ['/.well-known/openid-configuration', '/.well-known/jwks.json'])
      expect(await anonymous(target)).toMatchObject({ status: 200 })
    expect(await tokenRequest()).toMatchObject({ status: 200 })
    for (const path of ['/health/live', '/metrics'])
      expect((await fetch(`${gateway.adminUrl}${path}`)).status).toBe(200)
  })

  it('C9.2: off again, all is as before', async () => {
    on(SERVICE)
    gateway.switches.set([])
    expect(await ask(LIST)).toMatchObject({ status: 200 })
  })

  it('C9.2: in-flight calls finish', async () => {
    const upstream = await startUpstream(() => undefined)
    const own = await postern({
      keeps: 'nothing',
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: upstream.url },
    })
    const { access_token } = await issueToken(own, { scope: ALL_AT_ACME })
    const { promise: finished, resolve: finish } = Promise.withResolvers<undefined>()
    upstream.behave((connection) => void finished.then(() => connection.respond({ body: '{"a":1}' })))
    const call: Promise<RawResponse> = send(own, { target: LIST, headers: bearer(access_token) })
    await upstream.received(1)
    own.switches.set([{ scope: SERVICE, retryAfter: 1 }])
    expectFault(await send(own, { target: LIST, headers: bearer(access_token) }), 'service_maintenance')
    finish(undefined)
    expect(await call).toMatchObject({ status: 200, body: '{"Errors":[],"Data":{"a":1}}' })
    expect(upstream.requests).toHaveLength(1)
  })
})

describe('C4.9, C9.2: a business, an area, a backend', () => {
  it('C9.1: a business: only its calls', async () => {
    on({ kind: 'business', name: 'ACME' })
    const response = await ask(LIST)
    expectFault(response, 'place_maintenance')
    expect(response.headers['retry-after']).toBe('120')
    expectFault(await ask(MEMBERS), 'place_maintenance')
    expect(await ask(GLOBEX, globex)).toMatchObject({ status: 200 })
    expect(await ask(USERINFO)).toMatchObject({ status: 200 })
  })

  it('C9.1: an area: only its calls', async () => {
    on({ kind: 'area', name: 'member-data' })
    expectFault(await ask(MEMBERS), 'place_maintenance')
    expect(await ask(LIST)).toMatchObject({ status: 200 })
  })

  it('C9.1: a backend: all that it answers', async () => {
    on({ kind: 'backend', name: 'sample' })
    expectFault(await ask(LIST), 'place_maintenance')
    expectFault(await ask(GLOBEX, globex), 'place_maintenance')
    on({ kind: 'backend', name: 'another' })
    expect(await ask(LIST)).toMatchObject({ status: 200 })
  })

  it('C4.9: it is no way to find out which businesses exist', async () => {
    on({ kind: 'business', name: 'GLOBEX' })
    expectFault(await ask(GLOBEX), 'unknown_place')
    expectFault(await anonymous(GLOBEX), 'no_credentials')
  })

  it('C9.2: listed addresses and clients pass', async () => {
    on({ kind: 'business', name: 'GLOBEX' }, { clients: ['acme-books'] })
    expect(await ask(GLOBEX, globex)).toMatchObject({ status: 200 })
    expectFault(await ask(GLOBEX, ledger), 'place_maintenance')
    on({ kind: 'business', name: 'GLOBEX' }, { addresses: ['127.0.0.1'] })
    expect(await ask(GLOBEX, ledger)).toMatchObject({ status: 200 })
  })
})

describe('C9.2: the identity endpoints', () => {
  const IDENTITY = { kind: 'identity' } as const

  it('C9.2: switched off too, they give 503 temporarily_unavailable, JSON', async () => {
    on(IDENTITY, { message: 'Later.' })
    const response = await tokenRequest()
    expect(response).toMatchObject({ status: 503, headers: { 'retry-after': '120' } })
    expect(JSON.parse(response.body)).toEqual({
      error: 'temporarily_unavailable',
      error_description: 'Later.',
    })
  })

  it('C9.2: discovery and keys answer, and so does the API', async () => {
    on(IDENTITY)
    for (const target of ['/.well-known/openid-configuration', '/.well-known/jwks.json'])
      expect(await anonymous(target)).toMatchObject({ status: 200 })
    expect(await ask(LIST)).toMatchObject({ status: 200 })
    expect(await ask(USERINFO)).toMatchObject({ status: 200 })
  })

  it('C9.2: listed addresses pass', async () => {
    on(IDENTITY, { addresses: ['127.0.0.1'] })
    expect(await tokenRequest()).toMatchObject({ status: 200 })
  })
})
