import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import type { RawResponse } from '../support/raw-http.ts'
import { replacedService } from '../support/replaced-service.ts'
import { bearer, expectFault, form, send } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { basic, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const APP = 'https://app.example.com'
const CORS: NonNullable<Configuration['server']['cors']> = {
  origins: [APP, 'http://localhost:5173'],
  methods: ['GET', 'POST'],
  headers: ['Authorization', 'Content-Type'],
  exposeHeaders: ['X-Total'],
  maxAge: 600_000,
}

const withCors = (loaded: Configuration): Configuration => ({
  ...loaded,
  server: { ...loaded.server, cors: CORS },
})

/** What a browser sends before a call that is not simple. */
const preflight = (target: string, origin: string = APP) => ({
  method: 'OPTIONS',
  target,
  headers: { Origin: origin, 'Access-Control-Request-Method': 'POST' },
})

const corsHeaders = ({ headers }: RawResponse): readonly string[] =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-'))

const replaced = replacedService({ keeps: 'nothing' })
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing', change: withCors })
  token = (await issueToken(gateway, { scope: 'fund.read target:b/ACME' })).access_token
})
afterAll(() => gateway.close())

describe('C4.18 without CORS, the default', () => {
  it('OPTIONS is a method like any other, and no answer speaks of origins', async () => {
    const plain = await replaced()
    expectFault(await send(plain, preflight(LIST)), 'no_credentials')
    const { access_token } = await issueToken(plain, { scope: 'fund.read target:b/ACME' })
    const headers = { ...preflight(LIST).headers, ...bearer(access_token) }
    expectFault(await send(plain, { method: 'OPTIONS', target: LIST, headers }), 'method_not_allowed')
    const called = await send(plain, { target: LIST, headers })
    expect(called).toMatchObject({ status: 200, headers: { vary: 'Accept' } })
    expect(corsHeaders(called)).toEqual([])
  })
})

describe('C4.18 with CORS, a preflight', () => {
  it('is answered without a token, with what the deployment allows', async () => {
    const answer = await send(gateway, preflight(LIST))
    expect(answer).toMatchObject({
      status: 204,
      body: '',
      headers: {
        'access-control-allow-origin': APP,
        'access-control-allow-methods': 'GET, POST',
        'access-control-allow-headers': 'Authorization, Content-Type, DPoP',
        'access-control-max-age': '600',
        'cache-control': 'no-store',
        vary: 'Origin',
      },
    })
    expect(answer.headers['access-control-allow-credentials']).toBeUndefined()
  })

  it('C4.18, C4.6 allows the further methods that the configuration lists', async () => {
    const cors = { ...CORS, methods: ['PROPFIND' as const, 'REPORT' as const] }
    const change = (loaded: Configuration) => ({ ...loaded, server: { ...loaded.server, cors } })
    const answer = await send(await replaced({ change }), preflight(LIST))
    expect(answer.headers['access-control-allow-methods']).toBe('PROPFIND, REPORT')
  })

  it('is answered alike for every path, so that it tells nobody which there are', async () => {
    const headersOf = async (target: string) => ({
      ...(await send(gateway, preflight(target))).headers,
      'x-request-id': '',
      date: '',
    })
    const known = await headersOf(LIST)
    expect(await headersOf('/api/1.0/b/NOBODY/no-area/no-action')).toEqual(known)
    expect(await headersOf('/api/9.9/x')).toEqual(known)
  })

  it.each([
    'https://evil.example',
    `${APP}.evil.example`,
    'http://app.example.com',
    `${APP}:444`,
    'null',
    '*',
  ])('from %s, which is not on the list, is allowed nothing', async (origin) => {
    const answer = await send(gateway, preflight(LIST, origin))
    expect(answer).toMatchObject({ status: 204, headers: { vary: 'Origin' } })
    expect(corsHeaders(answer)).toEqual([])
  })

  it('from two origins at once is allowed nothing', async () => {
    const headers = { ...preflight(LIST).headers, Origin: [APP, 'https://evil.example'] }
    expect(corsHeaders(await send(gateway, { method: 'OPTIONS', target: LIST, headers }))).toEqual([])
  })

  it('comes after C4.1 and C4.2', async () => {
    const outside = await send(gateway, preflight('/elsewhere'))
    expect(outside).toMatchObject({ status: 404, headers: { 'access-control-allow-origin': APP } })
    expect((await send(gateway, preflight('/api/1.0/b/A%2FB'))).status).toBe(400)
    const closed = await postern({ keeps: 'nothing', change: withCors })
    closed.switches.set([{ scope: { kind: 'service' }, retryAfter: 1 }])
    expect((await send(closed, preflight(LIST))).status).toBe(503)
  })

  it('is no OPTIONS without what makes it a preflight', async () => {
    const { Origin, ...rest } = preflight(LIST).headers
    expect((await send(gateway, { method: 'OPTIONS', target: LIST, headers: rest })).status).toBe(401)
    expect((await send(gateway, { method: 'OPTIONS', target: LIST, headers: { Origin } })).status).toBe(401)
  })
})

describe('C4.18 with CORS, a call', () => {
  it('tells a page on the list that it may read the answer, and which headers of it', async () => {
    const answer = await send(gateway, { target: LIST, headers: { ...bearer(token), Origin: APP } })
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'access-control-allow-origin': APP, vary: 'Accept, Origin' },
    })
    expect(answer.headers['access-control-expose-headers']?.split(', ')).toEqual(
      expect.arrayContaining(['X-Request-Id', 'RateLimit', 'Retry-After', 'WWW-Authenticate', 'X-Total']),
    )
  })

  it('tells it of failures too, and nobody else of anything', async () => {
    const refused = await send(gateway, { target: LIST, headers: { Origin: 'http://localhost:5173' } })
    expect(refused).toMatchObject({
      status: 401,
      headers: { 'access-control-allow-origin': 'http://localhost:5173' },
    })
    for (const headers of [{}, { Origin: 'https://evil.example' }]) {
      const answer = await send(gateway, { target: LIST, headers: { ...bearer(token), ...headers } })
      expect(answer).toMatchObject({ status: 200, headers: { vary: 'Accept, Origin' } })
      expect(corsHeaders(answer)).toEqual([])
    }
  })
})

describe('C4.18 with CORS, the identity endpoints', () => {
  it('let pages on the list get and revoke tokens, and read the metadata', async () => {
    for (const target of ['/connect/token', '/connect/par', '/connect/revocation'])
      expect(await send(gateway, preflight(target))).toMatchObject({
        status: 204,
        headers: { 'access-control-allow-origin': APP },
      })
    const { headers, body } = form({ grant_type: 'password' })
    const got = await send(gateway, {
      method: 'POST',
      target: '/connect/token',
      headers: { ...headers, Authorization: basic('acme-books'), Origin: APP },
      body,
    })
    expect(got).toMatchObject({ status: 400, headers: { 'access-control-allow-origin': APP } })
    const keys = await send(gateway, { target: '/.well-known/jwks.json', headers: { Origin: APP } })
    expect(keys).toMatchObject({ status: 200, headers: { 'access-control-allow-origin': APP } })
  })

  it.each(['/connect/authorize', '/connect/login', '/connect/introspect', '/connect/endsession'])(
    'keep %s, a page or a server’s business, from other origins',
    async (target) => {
      const asked = await send(gateway, preflight(target))
      expect(asked.status).toBe(405)
      expect(corsHeaders(asked)).toEqual([])
      expect(corsHeaders(await send(gateway, { target, headers: { Origin: APP } }))).toEqual([])
    },
  )
})
