import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { sendRaw } from '../support/raw-http.ts'
import { bearer, expectFault, send, type Sent } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { answerJson, openUpstream, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken, MEMBER } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

/** The demo, and two actions whose path parameters are a pattern and any text. */
const withParameters = (loaded: Configuration): Configuration => {
  const GET = { scopes: { any: ['fund.read'] }, versions: [1], items: {} }
  const action = { level: 'business', area: 'fund-data' } as const
  return {
    ...loaded,
    actions: [
      ...loaded.actions,
      { ...action, action: 'year/{year:/20[0-9]{2}/}', methods: { GET } },
      { ...action, action: 'echo/{any}/end', methods: { GET } },
    ],
  }
}

let gateway: StartedPostern
let upstream: Upstream
let token: string
beforeAll(async () => {
  upstream = await openUpstream(answerJson({ ok: true }))
  const environment = { UPSTREAM_URL: upstream.url }
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment,
    change: withParameters,
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})

const ask = (target: string, more: Omit<Partial<Sent>, 'target'> = {}) =>
  send(gateway, { ...more, target, headers: { ...bearer(token), ...more.headers } })

/** What the upstream got for it, as it stood in its request line; undefined if nothing came. */
async function forwarded(target: string): Promise<string | undefined> {
  const before = upstream.requests.length
  await ask(target)
  return upstream.requests[before]?.target
}

describe('C3.1: the version', () => {
  it.each([
    '/api',
    '/api/2.0/b/ACME/fund-data/fund-list',
    '/api/1/x',
    '/api/1.00',
    '/api/v1.0/b',
    '/api/b/ACME',
  ])('C3.1: %s is 501, before credentials are looked at', async (target) => {
    expectFault(await send(gateway, { target }), 'unknown_api_version')
    expectFault(await ask(target), 'unknown_api_version')
  })

  it('C3.1: 1.0 is the only one', async () => {
    expect(await ask(LIST)).toMatchObject({ status: 200 })
    expectFault(await send(gateway, { target: '/api/1.0' }), 'no_credentials')
    expectFault(await ask('/api/1.0'), 'unknown_action')
  })
})

describe('C3.2: the scope of a URL', () => {
  it('C3.2: b and a business code, f and a business and a fund code', async () => {
    expect(await ask(LIST)).toMatchObject({ status: 200 })
    expect(await ask('/api/1.0/f/ACME/SUPER1/fund-data/fund-detail')).toMatchObject({ status: 200 })
  })

  it.each([
    '/api/1.0/x/ACME/fund-data/fund-list',
    '/api/1.0/B/ACME/fund-data/fund-list',
    '/api/1.0/b/ACME',
    '/api/1.0/b/ACME/fund-data',
    '/api/1.0/b/ACME/SUPER1/fund-data/fund-detail',
    '/api/1.0/f/ACME/fund-data/fund-list',
    '/api/1.0/f/ACME/SUPER1/fund-data/fund-list',
    '/api/1.0/b/ACME/fund-data/fund-detail',
    '/api/1.0/u/ACME/fund-data/fund-list',
    '/api/1.0/u',
  ])('C3.2: %s is no action', async (target) => {
    expectFault(await ask(target), 'unknown_action')
  })

  it('C3.2: u is the user level', async () => {
    expect(await ask('/api/1.0/u/connect/userinfo')).toMatchObject({ status: 200 })
  })
})

describe('C3.3: area and action', () => {
  const member = (id: string) => `/api/1.0/f/ACME/SUPER1/member-data/member-detail/${id}`

  it('C3.3: an action may hold path parameters and several segments', async () => {
    expect(await ask(member(MEMBER))).toMatchObject({ status: 200 })
    expect(await ask('/api/1.0/b/ACME/fund-data/echo/anything/end')).toMatchObject({ status: 200 })
    expect(await ask('/api/1.0/b/ACME/fund-data/year/2026')).toMatchObject({ status: 200 })
  })

  it.each([
    member(''),
    member('42'),
    member(`${MEMBER}0`),
    member(MEMBER.replaceAll('-', '')),
    member(`${MEMBER}/more`),
    '/api/1.0/b/ACME/fund-data/year/1999',
    '/api/1.0/b/ACME/fund-data/year/20266',
    '/api/1.0/b/ACME/fund-data/year',
    '/api/1.0/b/ACME/fund-data/echo/anything',
    '/api/1.0/b/ACME/fund-data/Fund-List',
    '/api/1.0/b/ACME/nothing/fund-list',
  ])('C3.3: %s is 404', async (target) => {
    const response = await ask(target)
    expectFault(response, target.endsWith('/') ? 'bad_target' : 'unknown_action')
  })
})

describe('C3.4: the request target is parsed once', () => {
  const at = (segment: string) => `/api/1.0/b/ACME/fund-data/echo/${segment}/end`

  it.each([
    ['an encoded slash', 'a%2fb'],
    ['an encoded slash, upper case', 'a%2Fb'],
    ['an encoded backslash', 'a%5cb'],
    ['NUL', 'a%00b'],
    ['a dot segment', '.'],
    ['two dots', '..'],
    ['an encoded dot segment', '%2e'],
    ['encoded dots', '%2e%2E'],
    ['half encoded dots', '.%2e'],
    ['dots encoded twice', '%252e%252e'],
    ['dots encoded three times', '%25252e'],
    ['a slash encoded twice', 'a%252fb'],
    ['a raw backslash', 'a\\b'],
    ['a semicolon', 'a;b=c'],
    ['an encoded semicolon', 'a%3bb'],
    ['%25 and two hex digits', 'a%2541'],
    ['an empty segment', ''],
    ['an empty segment in front', '/a'],
    ['#', 'a#b'],
    ['UTF-8 that is none', 'a%ff'],
    ['overlong UTF-8', '%c0%ae'],
    ['a lone surrogate', '%ed%a0%80'],
    ['an encoded control character', 'a%0ab'],
    ['an encoded DEL', 'a%7f'],
    ['an escape that is none', 'a%zz'],
    ['a cut escape', 'a%4'],
  ])('C3.4: %s is 400 before anything else, and never reaches the upstream', async (_what, segment) => {
    const before = upstream.requests.length
    expectFault(await ask(at(segment)), 'bad_target', { say: '.' })
    expectFault(await send(gateway, { target: at(segment).replace('1.0', '9.9') }), 'bad_target', {
      say: '.',
    })
    expect(upstream.requests.length).toBe(before)
  })

  it('C3.4: a trailing slash is an empty segment', async () => {
    expectFault(await ask(`${LIST}/`), 'bad_target', { say: '.' })
    expectFault(await ask('/api/'), 'bad_target', { say: '.' })
  })

  it.each(['a b', 'a\x01b', 'a\x7fb', 'aéb'])('C3.4: %j is refused unparsed', async (segment) => {
    const before = upstream.requests.length
    expect(await ask(at(segment))).toMatchObject({ status: 400 })
    expect(upstream.requests.length).toBe(before)
  })

  it.each([
    ['a..b', 'a..b'],
    ['...', '...'],
    ['.a', '.a'],
    ['%41CME', 'ACME'],
    ['%7e%2d%5f%2E%30', '~-_.0'],
    ['a%20b', 'a%20b'],
    ['%c3%a9', '%C3%A9'],
    ['%3f%23', '%3F%23'],
    ['a%25', 'a%25'],
    ['a%25zz', 'a%25zz'],
    ["!$&'()*+,=:@", "!$&'()*+,=:@"],
    ['{x}', '{x}'],
  ])('C3.4: %s is legal and forwarded as %s', async (segment, canonical) => {
    expect(await forwarded(at(segment))).toBe(at(canonical))
  })

  it('C3.4: what is decided by is what is forwarded: escaped letters of a business are letters', async () => {
    expect(await forwarded('/%61pi/1.0/b/%41CME/fund-data/fund-%6cist')).toBe(LIST)
    expectFault(await ask('/api/1.0/b/%47LOBEX/fund-data/fund-list'), 'unknown_place')
  })

  it.each([
    '?',
    '?a=b&a=b&&=',
    '?path=../../etc&x=%2e%2e%2f',
    '?x=%zz&y=%00&z=\\;%25%32',
    "?q='{}|^`[]",
    '?b=/api/1.0/b/GLOBEX/fund-data/fund-list',
  ])('C3.4: the query %s is forwarded byte for byte, and decides nothing', async (query) => {
    expect(await forwarded(`${LIST}${query}`)).toBe(`${LIST}${query}`)
  })

  it('C3.4: the same parser serves the identity paths, where one trailing slash is allowed on /connect/*', async () => {
    const post = (target: string) => send(gateway, { method: 'POST', target })
    expect((await post('/connect/token/')).body).toBe((await post('/connect/token')).body)
    expectFault(await post('/connect/token//'), 'bad_target', { say: '.' })
    expectFault(await post('/connect/..%2ftoken'), 'bad_target', { say: '.' })
    expect(await send(gateway, { target: '/%2Ewell-known/jwks.json' })).toMatchObject({ status: 200 })
    expectFault(await send(gateway, { target: '/.well-known/jwks.json/' }), 'bad_target', { say: '.' })
  })
})

describe('C3.5: codes compare exactly', () => {
  it.each([
    ['b/acme/fund-data/fund-list'],
    ['b/Acme/fund-data/fund-list'],
    ['b/ACME%20/fund-data/fund-list'],
    ['f/ACME/super1/fund-data/fund-detail'],
    ['f/acme/SUPER1/fund-data/fund-detail'],
  ])('C3.5: %s is not found', async (path) => {
    expectFault(await ask(`/api/1.0/${path}`), 'unknown_place')
  })
})

describe('C3.6: the request line, Host and single lines', () => {
  const line = (text: string, headers = 'Host: 127.0.0.1\r\n') =>
    sendRaw(gateway.port, `${text}\r\n${headers}Authorization: Bearer ${token}\r\n\r\n`)

  it('C3.6: an absolute-form target with our authority is served, whatever Host says', async () => {
    expect(await forwarded(`${gateway.baseUrl}${LIST}?q`)).toBe(`${LIST}?q`)
    expect(await forwarded(`${gateway.baseUrl.toUpperCase()}${LIST}`)).toBe(LIST)
    expect(await ask(`${gateway.baseUrl}${LIST}`, { headers: { Host: 'other.example' } })).toMatchObject({
      status: 200,
    })
  })

  it.each([
    'http://other.example',
    'http://127.0.0.1:1',
    'http://user@127.0.0.1:{port}',
    'http://127.0.0.1:{port}@other.example',
    'http://127.0.0.1:{port}.other.example',
    'http://127.0.0.1',
  ])('C3.6: an absolute-form target of %s is 400', async (origin) => {
    const before = upstream.requests.length
    const response = await ask(`${origin.replace('{port}', String(gateway.port))}${LIST}`)
    expectFault(response, 'bad_authority')
    expect(upstream.requests.length).toBe(before)
  })

  it.each(['ftp://127.0.0.1/x', 'api/1.0/x', 'x', '?x'])(
    'C3.6: the target %s has no form',
    async (target) => {
      expect(await ask(target)).toMatchObject({ status: 400 })
    },
  )

  it.each([
    ['missing', undefined],
    ['repeated', ['127.0.0.1', '127.0.0.1']],
    ['empty', ''],
    ['with a path', 'a/b'],
    ['with user information', 'a@b'],
    ['with a space', 'a b'],
    ['with a port that is none', 'a:b'],
    ['with a port too high', 'a:65536'],
    ['a list', 'a, b'],
  ])('C3.6: a Host that is %s is 400', async (_what, host) => {
    const response = await ask(LIST, { headers: { Host: host } })
    expect(response).toMatchObject({ status: 400 })
    expect(response.body).toContain('The Host header must be present once and well formed.')
  })

  it('C3.6: HTTP/1.0 and 1.1 are served', async () => {
    expect(await line(`GET ${LIST} HTTP/1.1`)).toMatchObject({ status: 200 })
    expect(await line(`GET ${LIST} HTTP/1.0`)).toMatchObject({ status: 200 })
    expectFault(await line(`GET ${LIST} HTTP/1.0`, ''), 'bad_host')
  })

  it.each(['HTTP/0.9', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/3.0', 'HTTP/9.9'])(
    'C3.6: %s in a request line is 400',
    async (version) => {
      const response = await line(`GET ${LIST} ${version}`)
      expect(response).toMatchObject({ status: 400 })
      expect(response.body).toContain('API_BAD_REQUEST')
    },
  )

  it('C3.6: TRACE is 405 with Allow, CONNECT 400, OPTIONS * 404', async () => {
    const trace = await ask(LIST, { method: 'TRACE' })
    expectFault(trace, 'trace_refused')
    expect(trace.headers['allow']).toContain('GET')
    expect(trace.headers['allow']).not.toContain('TRACE')
    expectFault(await ask('127.0.0.1:443', { method: 'CONNECT' }), 'connect_refused')
    expectFault(await ask('*', { method: 'OPTIONS' }), 'outside')
  })

  it.each([
    ['Authorization', 'Bearer x'],
    ['authorization', 'Basic eDp5'],
    ['Content-Type', 'application/json'],
    ['content-type', 'text/plain'],
  ])('C3.6: a second line of %s is 400', async (name, value) => {
    const lines = { [name]: [value, value] }
    const response = await send(gateway, { target: LIST, headers: { 'X-Before': 'x', ...lines } })
    expectFault(response, 'repeated_header', { say: name.toLowerCase() })
  })
})

it('preface: Postern routes by path alone, and takes no URL of its own from a request header', async () => {
  const own = await postern({ keeps: 'nothing' })
  const headers = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', Forwarded: 'host=evil.example' }
  const { body } = await send(own, { target: '/.well-known/openid-configuration', headers })
  expect(JSON.parse(body)).toMatchObject({ issuer: own.authUrl })
  expect(body).not.toContain('evil')
  const refused = await send(own, { target: LIST, headers })
  expect(refused.headers['www-authenticate']).toBe(`Bearer realm="${own.baseUrl}"`)
})
