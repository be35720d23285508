import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { urlOfNobody } from '../support/free-port.ts'
import { withForwardedActions } from '../support/forwarded-action.ts'
import { bearer, expectFault, send } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { answerJson, openUpstream, startUpstream, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const AREA = '/api/1.0/b/ACME/fund-data'
const BASE = '/base'
/** What may be gone to below the target's path, besides operations. */
const LISTED = [
  '/moved',
  '/full',
  '/net',
  '/api/1.0/b/ACME/x',
  '/api/1.0/b/ACME/fund-data',
  '/~user',
  '/again',
]

let upstream: Upstream
let other: Upstream
let stranger: Upstream
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  ;[upstream, other, stranger] = await Promise.all([openUpstream(), openUpstream(), openUpstream()])
  const own = upstream.url
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: `${own}${BASE}` },
    change: withForwardedActions({
      none: {},
      zero: { redirects: { max: 0, within: ['/'], origins: [other.url] } },
      within: {
        redirects: { max: 2, within: LISTED, origins: [] },
        forwardAuthorization: true,
      },
      others: {
        redirects: { max: 3, within: [], origins: [other.url] },
        forwardAuthorization: true,
        responseHeaders: ['X-Seen'],
      },
      named: { redirects: { max: 2, within: [], origins: [own] }, forwardAuthorization: true },
      tenant: {
        path: '/companies/{business}/tenant',
        redirects: { max: 2, within: ['/files/{business}', '/open/', '/x/{client}'], origins: [] },
      },
      moved: { path: '/companies/{business}/moved/{action}' },
      'by-query': {
        path: '/by-query',
        query: { company: '{business}' },
        redirects: { max: 2, within: ['/listed'], origins: [] },
      },
      'by-header': {
        path: '/by-header',
        headers: { 'X-Tenant': '{business}' },
        redirects: { max: 2, within: ['/listed'], origins: [] },
      },
      'by-same-header': { path: '/by-same-header/', headers: { 'x-tenant': '{business}' } },
      'by-other-query': { path: '/by-other-query', query: { tenant: '{business}' }, queryOnly: ['page'] },
    }),
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close(), other.close(), stranger.close()])
})

/** Redirects the first request, and answers the others. */
function redirectOnce(location: string | undefined, status = 302): void {
  upstream.behave((connection) => {
    if (connection.request.target.startsWith(`${BASE}/api`))
      connection.respond({ status, headers: location === undefined ? {} : { Location: location } })
    else answerJson({ at: connection.request.target })(connection)
  })
}

const ask = (
  action: string,
  more: { method?: string; headers?: Record<string, string>; query?: string } = {},
) =>
  send(gateway, {
    ...(more.method !== undefined && { method: more.method }),
    target: `${AREA}/${action}${more.query ?? ''}`,
    headers: { ...bearer(token), ...more.headers },
  })

/** What each of the servers got for a call. */
async function gotFor<T>(call: () => Promise<T>) {
  const servers = { upstream, other, stranger }
  const before = Object.entries(servers).map(([name, { requests }]) => [name, requests.length] as const)
  const answer = await call()
  const got = Object.fromEntries(
    before.map(([name, count]) => [name, servers[name as 'other'].requests.slice(count)]),
  )
  return { answer, ...(got as Record<'upstream' | 'other' | 'stranger', Upstream['requests']>) }
}

const reasonOf = (id: string | undefined): string =>
  JSON.stringify(gateway.log().find(({ requestId }) => requestId === id))

describe('C8.8 redirects are followed', () => {
  it.each([301, 302, 303, 307, 308])('C8.8 a %i within the origin and path of the target', async (status) => {
    redirectOnce(`${BASE}/moved?x=%41&y=..`, status)
    const { answer, upstream: got } = await gotFor(() => ask('within'))
    expect(answer).toMatchObject({
      status: 200,
      body: '{"Errors":[],"Data":{"at":"/base/moved?x=%41&y=.."}}',
    })
    expect(got.map(({ target }) => target)).toEqual([`${BASE}${AREA}/within`, `${BASE}/moved?x=%41&y=..`])
    expect(got[1]?.headers).toEqual(got[0]?.headers)
    expect(got[1]?.headers['authorization']).toEqual([`Bearer ${token}`])
  })

  it.each([
    [() => `${upstream.url}/base/full`, '/base/full'],
    [() => `//127.0.0.1:${upstream.port}/base/net#part`, '/base/net'],
    [() => '../x/./y', '/base/api/1.0/b/ACME/x/y'],
    [() => 'sibling/', '/base/api/1.0/b/ACME/fund-data/sibling/'],
    [() => '/base/%7Euser/', '/base/~user/'],
  ])('C8.8, RFC 3986: %s is resolved', async (location, target) => {
    upstream.behave((connection) => {
      if (connection.request.target.endsWith('/within'))
        connection.respond({ status: 301, headers: { Location: location() } })
      else answerJson({})(connection)
    })
    const { answer, upstream: got } = await gotFor(() => ask('within'))
    expect(answer.status).toBe(200)
    expect(got.map((each) => each.target)).toEqual([`${BASE}${AREA}/within`, target])
  })

  it('C8.8 HEAD stays HEAD; another method is not followed', async () => {
    redirectOnce('/base/moved')
    const { answer, upstream: got } = await gotFor(() => ask('within', { method: 'HEAD' }))
    expect(answer.status).toBe(200)
    expect(got.map(({ method }) => method)).toEqual(['HEAD', 'HEAD'])
  })

  it('C8.8 at most so many, and loops end', async () => {
    upstream.behave((connection) => connection.respond({ status: 302, headers: { Location: '/base/again' } }))
    const { answer, upstream: got } = await gotFor(() => ask('within'))
    expectFault(answer, 'upstream_broken')
    expect(got).toHaveLength(3)
    expect(reasonOf(answer.headers['x-request-id'])).toContain('2 redirects are followed')
  })

  it('C8.8 an origin that is named gets method, Accept, Range and traceparent, and nothing else', async () => {
    redirectOnce(`${other.url}/files/1?sig=a`)
    other.behave(answerJson({ from: 'other' }))
    const {
      answer,
      upstream: sent,
      other: got,
    } = await gotFor(() =>
      ask('others', { headers: { 'X-Custom': 'c', Cookie: 'a=b', 'Accept-Language': 'de' }, query: '?q=1' }),
    )
    expect(answer.body).toBe('{"Errors":[],"Data":{"from":"other"}}')
    const [request] = got
    expect(request?.target).toBe('/files/1?sig=a')
    expect(request?.headers).toEqual({
      host: [`127.0.0.1:${other.port}`],
      connection: ['keep-alive'],
      accept: ['application/json'],
      traceparent: sent[0]?.headers['traceparent'],
    })
  })

  it('C8.8 what another origin redirects to gets no more, not even the service itself', async () => {
    redirectOnce(`${other.url}/there`)
    other.behave((connection) =>
      connection.respond({ status: 302, headers: { Location: `${upstream.url}${BASE}/back` } }),
    )
    const { answer, upstream: got } = await gotFor(() => ask('others'))
    expectFault(answer, 'upstream_broken')
    expect(got.map(({ target }) => target)).toEqual([`${BASE}${AREA}/others`])
  })

  it('C8.4, C8.8 a 401 of another origin is not the client’s to see: its token was not sent there', async () => {
    redirectOnce(`${other.url}/there`)
    other.behave((connection) => connection.respond({ status: 401 }))
    expectFault(await ask('others'), 'upstream_broken')
  })

  it('C8.8 to any path of the target’s own origin, if that is named: as to another origin, without credentials', async () => {
    for (const place of ['/outside', '/base/api/1.0/b/GLOBEX/fund-data/named']) {
      upstream.behave((connection) =>
        connection.request.target === `${BASE}${AREA}/named`
          ? connection.respond({ status: 302, headers: { Location: place } })
          : answerJson({})(connection),
      )
      const { answer, upstream: got } = await gotFor(() => ask('named'))
      expect(answer.status).toBe(200)
      expect(Object.keys(got[1]?.headers ?? {}).toSorted()).toEqual([
        'accept',
        'connection',
        'host',
        'traceparent',
      ])
    }
  })

  it('C8.8 by the Host header that the target is given', async () => {
    const own = await startUpstream()
    const started = await postern({
      keeps: 'nothing',
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: own.url },
      change: withForwardedActions({}, (backend) => ({
        ...backend,
        host: 'funds.internal',
        redirects: { max: 1, within: ['/moved'], origins: [] },
      })),
    })
    own.behave((connection) =>
      connection.request.target === '/moved'
        ? answerJson({ ok: 1 })(connection)
        : connection.respond({ status: 302, headers: { Location: 'http://funds.internal/moved' } }),
    )
    const { access_token } = await issueToken(started, { scope: ALL_AT_ACME })
    const answer = await send(started, { target: `${AREA}/fund-list`, headers: bearer(access_token) })
    expect(answer.body).toBe('{"Errors":[],"Data":{"ok":1}}')
    expect(own.requests[1]?.headers['host']).toEqual(['funds.internal'])
  })
})

describe('C8.8 a redirect within the service stays within the business of the call', () => {
  /** Redirects what begins with a path, and answers the rest. */
  const redirectFrom = (from: string, location: string) =>
    upstream.behave((connection) =>
      connection.request.target.startsWith(`${BASE}${from}`)
        ? connection.respond({ status: 302, headers: { Location: location } })
        : answerJson({ at: connection.request.target })(connection),
    )
  /** Redirects the next request, and answers the rest. */
  const redirectFirst = (location: string): void => {
    let count = 0
    upstream.behave((connection) => {
      count += 1
      if (count === 1) connection.respond({ status: 302, headers: { Location: location } })
      else answerJson({})(connection)
    })
  }
  const pathsOf = (requests: Upstream['requests']) => requests.map(({ target }) => target.slice(BASE.length))

  it.each([
    ['/companies/ACME/moved/moved', '/companies/ACME/moved/moved'],
    ['/companies/ACME/moved/moved/?page=2', '/companies/ACME/moved/moved/?page=2'],
    ['/companies/ACME/tenant/', '/companies/ACME/tenant/'],
    ['/files/ACME', '/files/ACME'],
    ['/files/ACME/2026/report.json?sig=%41', '/files/ACME/2026/report.json?sig=%41'],
    ['/open/anything', '/open/anything'],
    ['/api/1.0/b/ACME/fund-data/fund-list', '/api/1.0/b/ACME/fund-data/fund-list'],
  ])('C8.8 to an operation, or what `within` lists, with the same headers: %s', async (location, sent) => {
    redirectFirst(`${BASE}${location}`)
    const { answer, upstream: got } = await gotFor(() => ask('tenant'))
    expect(answer.status).toBe(200)
    expect(pathsOf(got)).toEqual(['/companies/ACME/tenant', sent])
    expect(got[1]?.headers).toEqual(got[0]?.headers)
  })

  it.each([
    '/companies/GLOBEX/tenant',
    '/companies/GLOBEX/moved/moved',
    '/companies/ACME/moved/else',
    '/companies/ACME/secret',
    '/companies/acme/tenant',
    '/files/GLOBEX/report.json',
    '/files/ACMEX',
    '/files',
    '/opened',
    '/api/1.0/b/GLOBEX/fund-data/fund-list',
    '/api/1.0/b/ACME/fund-data/unknown',
    '',
  ])('T2.11 to another business, or to what is no operation: not asked for, 500: %s', async (location) => {
    redirectFrom('/companies/ACME/tenant', `${BASE}${location}`)
    const { answer, upstream: got } = await gotFor(() => ask('tenant'))
    expectFault(answer, 'upstream_broken')
    expect(pathsOf(got)).toEqual(['/companies/ACME/tenant'])
    expect(reasonOf(answer.headers['x-request-id'])).toContain('it leads to no operation of this business')
  })

  it.each(['%c0%ae%c0%ae', '%c0%af..%c0%af', '%ed%a0%80', '%ff'])(
    'T2.11 below what `within` lists, by escapes that are not UTF-8: not asked for, 500: %s',
    async (escapes) => {
      for (const path of [`/files/ACME/${escapes}/GLOBEX/secret`, `/open/${escapes}`]) {
        redirectFrom('/companies/ACME/tenant', `${BASE}${path}`)
        const { answer, upstream: got } = await gotFor(() => ask('tenant'))
        expectFault(answer, 'upstream_broken')
        expect(pathsOf(got)).toEqual(['/companies/ACME/tenant'])
        expect(reasonOf(answer.headers['x-request-id'])).toContain('escapes that are not UTF-8')
      }
    },
  )

  it('T2.11 to an operation that tells the business by a header: only from one that has it too', async () => {
    for (const [from, location, sent] of [
      ['by-header', '/by-same-header', true],
      ['by-header', '/by-header/?page=2', true],
      ['by-header', '/listed', true],
      ['by-header', '/companies/ACME/tenant', true],
      ['tenant', '/by-header', false],
      ['by-query', '/by-same-header/', false],
    ] as const) {
      redirectFirst(`${BASE}${location}`)
      const { answer, upstream: got } = await gotFor(() => ask(from))
      expect([from, location, answer.status, got.length]).toEqual([
        from,
        location,
        sent ? 200 : 500,
        sent ? 2 : 1,
      ])
      if (!sent) expect(reasonOf(answer.headers['x-request-id'])).toContain('whose calls have other headers')
    }
  })

  it.each([
    ['/by-query?company=GLOBEX&page=2', '/by-query?page=2&company=ACME'],
    ['/by-query?page=2&COMPANY%5b%5d=GLOBEX', '/by-query?page=2&company=ACME'],
    ['/by-other-query?tenant=GLOBEX&cursor=2', '/by-other-query?cursor=2&tenant=ACME'],
    ['/by-other-query', '/by-other-query?tenant=ACME'],
    ['/listed/1?company=GLOBEX', '/listed/1?company=ACME'],
  ])('T2.11 a query that names another business: the call’s own is sent: %s', async (location, sent) => {
    redirectFirst(`${BASE}${location}`)
    const { answer, upstream: got } = await gotFor(() => ask('by-query'))
    expect(answer.status).toBe(200)
    expect(pathsOf(got)).toEqual(['/by-query?company=ACME', sent])
    expect(got.map(({ head }) => head).join('')).not.toContain('GLOBEX')
  })
})

describe('C8.8 redirects that are not followed are 500, and nothing is sent anywhere', () => {
  const HOSTILE = [
    'http://169.254.169.254/latest/meta-data/',
    'http://[fd00:ec2::254]/latest/',
    'http://metadata.google.internal/computeMetadata/v1/',
    'http://127.0.0.1/',
    'http://localhost:22/',
    'https://127.0.0.1/base/x',
    '//evil.example/base/x',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'http:base/x',
    'http:///base/x',
    'gopher://127.0.0.1/',
    '/outside',
    '/base/../outside',
    '/base/%2e%2e/outside',
    '/base/..%2foutside',
    '/base/%252e%252e/x',
    '/base/x%00y',
    '/base',
    '/base/x;y',
    '/base\\..\\outside',
    '/base//x',
    '/basement',
    '../../../../../../outside',
    '../../../../../../../../..',
    '/base/\u00e9',
    '/base/a b',
    '',
    '?only=query',
    `/base/${'x'.repeat(9000)}`,
  ]
  it.each(HOSTILE)('C8.8 %j', async (location) => {
    redirectOnce(location)
    const { answer, upstream: got, other: there, stranger: elsewhere } = await gotFor(() => ask('within'))
    expectFault(answer, 'upstream_broken')
    expect(answer.headers).not.toHaveProperty('location')
    // A query alone, or nothing, is this URL again: that loop ends.
    for (const { target } of got)
      expect(target).toMatch(/^\/base\/api\/1\.0\/b\/ACME\/fund-data\/within(\?|$)/)
    expect([there, elsewhere]).toEqual([[], []])
  })

  it('C8.8 user information, in the place of a host that is named', async () => {
    for (const location of [
      `http://127.0.0.1:${other.port}@127.0.0.1:${stranger.port}/`,
      `http://user:password@127.0.0.1:${other.port}/`,
      `http://127.0.0.1:${other.port}\\@127.0.0.1:${stranger.port}/`,
      `http://127.0.0.1:${other.port}%2f@127.0.0.1:${stranger.port}/`,
    ]) {
      redirectOnce(location)
      const { answer, other: there, stranger: elsewhere } = await gotFor(() => ask('others'))
      expectFault(answer, 'upstream_broken')
      expect([there, elsewhere]).toEqual([[], []])
      expect(reasonOf(answer.headers['x-request-id'])).not.toContain('password')
    }
  })

  it('C8.8 an origin that is not named; without the key; with max 0; without a Location', async () => {
    for (const [action, location] of [
      ['others', `${stranger.url}/`],
      ['none', '/base/moved'],
      ['zero', '/base/moved'],
      ['within', undefined],
    ] as const) {
      redirectOnce(location)
      const { answer, upstream: got, stranger: elsewhere } = await gotFor(() => ask(action))
      expectFault(answer, 'upstream_broken')
      expect([got.length, elsewhere.length]).toEqual([1, 0])
    }
  })

  it.each([300, 304, 305, 306, 399])('C8.4, C8.8 a %i', async (status) => {
    redirectOnce('/base/moved', status)
    const { answer, upstream: got } = await gotFor(() => ask('within'))
    expectFault(answer, 'upstream_broken')
    expect(got).toHaveLength(1)
  })

  it('C8.8 the log tells where it pointed, without query, user information and control characters', async () => {
    redirectOnce(`http://user:password@stranger.example/a\u00e9/b?secret=1#frag`)
    const answer = await ask('none')
    const line = reasonOf(answer.headers['x-request-id'])
    expect(line).toContain('points to http://stranger.example/a')
    expect(line).not.toMatch(/password|secret=1|frag|\u001b|\\u001b/)
  })

  it('C8.8 a redirect to a server that is gone is 503, one that hangs is 503 in time', async () => {
    const gone = await urlOfNobody()
    const started = await postern({
      keeps: 'nothing',
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: upstream.url },
      change: withForwardedActions({}, (backend) => ({
        ...backend,
        redirects: { max: 3, within: [], origins: [gone, other.url] },
        timeouts: { ...backend.timeouts, firstByte: 400 },
      })),
    })
    const { access_token } = await issueToken(started, { scope: ALL_AT_ACME })
    const list = () => send(started, { target: `${AREA}/fund-list`, headers: bearer(access_token) })
    upstream.behave((connection) => connection.respond({ status: 302, headers: { Location: `${gone}/x` } }))
    expectFault(await list(), 'upstream_unreachable')
    upstream.behave((connection) =>
      connection.respond({ status: 302, headers: { Location: `${other.url}/x` } }),
    )
    other.behave(() => undefined)
    expectFault(await list(), 'upstream_timeout')
  })
})
