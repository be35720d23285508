import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { MemoryBackend } from '../../src/gateway/backends/memory/memory.ts'
import { Fault } from '../../src/base/kernel/faults.ts'
import { movableClock } from '../support/movable-clock.ts'
import { openRaw, type RawResponse } from '../support/raw-http.ts'
import { replacedService } from '../support/replaced-service.ts'
import { bearer, expectFault, requestBytes, send, type Sent } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, basic, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'

const replaced = replacedService({ keeps: 'nothing' })
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing' })
  token = await tokenFor(ALL_AT_ACME)
})
afterAll(() => gateway.close())
afterEach(() => {
  vi.restoreAllMocks()
})

const tokenFor = async (scope: string, of = gateway): Promise<string> =>
  (await issueToken(of, { scope })).access_token
const ask = (target: string, { headers, ...more }: Partial<Sent> = {}) =>
  send(gateway, { ...more, target, headers: { ...bearer(token), ...headers } })
const withToken = (value: string, of = gateway) => send(of, { target: LIST, headers: bearer(value) })
const challengeOf = ({ headers }: RawResponse) => headers['www-authenticate']

describe('C4.4: the token', () => {
  it('C4.4: a genuine access token passes', async () => {
    expect(await withToken(token)).toMatchObject({ status: 200 })
  })

  it('C4.4: a token of another deployment, with keys of its own, does not', async () => {
    const other = await postern({ keeps: 'nothing' })
    expectFault(await withToken(await tokenFor(ALL_AT_ACME, other)), 'invalid_token')
  })

  it('C4.4: an id_token and a refresh token are no access tokens', async () => {
    const { id_token, refresh_token } = await issueToken(gateway, {
      scope: `offline_access ${ALL_AT_ACME}`,
    })
    expectFault(await withToken(id_token!), 'invalid_token')
    expectFault(await withToken(refresh_token!), 'invalid_token')
  })

  it('C4.4: a changed signature, payload or header is not genuine', async () => {
    const [header = '', payload = '', signature = ''] = token.split('.')
    const flip = (part: string) => `${part.startsWith('A') ? 'B' : 'A'}${part.slice(1)}`
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object
    const wider = Buffer.from(JSON.stringify({ ...claims, scope: 'fund.maintain target:b/GLOBEX' }))
    const none = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')
    const forged = [
      `${header}.${payload}.${flip(signature)}`,
      `${header}.${wider.toString('base64url')}.${signature}`,
      `${none}.${payload}.`,
      `${none}.${payload}.${signature}`,
      `${header}.${payload}`,
      `${token}.`,
      `${token}=`,
    ]
    for (const each of forged) expectFault(await withToken(each), 'invalid_token')
  })

  it('C4.4, C4.16: a token expires to the second, also one that was seen before: no leeway', async () => {
    const clock = movableClock()
    const own = await postern({ clock, keeps: 'nothing' })
    const short = await tokenFor(ALL_AT_ACME, own)
    clock.advance(899_000)
    expect(await withToken(short, own)).toMatchObject({ status: 200 })
    clock.advance(1000)
    expectFault(await withToken(short, own), 'expired_token')
  })

  it('C4.4: a token of another audience or issuer, with the very same keys, does not pass', async () => {
    const server = (urls: Partial<Configuration['server']>) => (loaded: Configuration) => ({
      ...loaded,
      server: { ...loaded.server, ...urls },
    })
    const [authUrl, baseUrl] = ['http://localhost:8998', 'http://localhost:8999']
    const issuer = await postern({ keeps: 'nothing', change: server({ authUrl, baseUrl }) })
    const { data, port } = issuer
    const { access_token } = await issueToken(
      { authUrl: `http://127.0.0.1:${String(port)}` },
      { scope: ALL_AT_ACME },
    )
    expect(await withToken(access_token, issuer)).toMatchObject({ status: 200 })
    const sibling = await postern({ data, keeps: 'nothing', change: server({ authUrl, baseUrl }) })
    expect(await withToken(access_token, sibling)).toMatchObject({ status: 200 })
    const otherAudience = await postern({ data, keeps: 'nothing', change: server({ authUrl }) })
    expectFault(await withToken(access_token, otherAudience), 'misdirected_token')
    const otherIssuer = await postern({ data, keeps: 'nothing', change: server({ baseUrl }) })
    expectFault(await withToken(access_token, otherIssuer), 'invalid_token')
  })
})

describe('C4.6: area, action and method', () => {
  it('C4.6: HEAD is offered wherever GET is, and answers as GET without the body', async () => {
    const [head, get] = await Promise.all([ask(LIST, { method: 'HEAD' }), ask(LIST)])
    expect(head).toMatchObject({ status: 200, body: '' })
    expect(head.headers['content-length']).toBe(get.headers['content-length'])
    expect(head.headers['content-type']).toBe(get.headers['content-type'])
  })

  it('C4.6: HEAD is not offered where GET is not', async () => {
    expect(await ask(CREATE, { method: 'HEAD' })).toMatchObject({ status: 405, body: '' })
  })

  it.each([
    [LIST, 'DELETE', ['GET', 'HEAD']],
    [LIST, 'POST', ['GET', 'HEAD']],
    [CREATE, 'GET', ['POST']],
    [DETAIL, 'PUT', ['GET', 'HEAD', 'POST']],
    [DETAIL, 'PATCH', ['GET', 'HEAD', 'POST']],
    [DETAIL, 'PROPFIND', ['GET', 'HEAD', 'POST']],
  ])('C4.6: %s has no %s: 405, and Allow lists the methods', async (target, method, allow) => {
    const response = await ask(target, { method })
    expectFault(response, 'method_not_allowed')
    expect(response.headers['allow']?.split(', ').sort()).toEqual(allow)
  })
})

describe('C4.8, C4.12: the three 404s', () => {
  const THREE = {
    'no such business': '/api/1.0/f/NOWHERE/SUPER1/fund-data/fund-detail',
    "not this token's business": '/api/1.0/f/GLOBEX/GROWTH/fund-data/fund-detail',
    'no such fund': '/api/1.0/f/ACME/NOTHING/fund-data/fund-detail',
  }
  const masked = async (target: string): Promise<string> => {
    const connection = await openRaw(gateway.port)
    const headers = { ...bearer(token), Connection: 'close' }
    connection.send(requestBytes({ target, headers }))
    await connection.closed()
    const { unread } = connection
    connection.destroy()
    return unread.replace(/^(X-Request-Id: )\S+/m, '$1…').replace(/^(Date: ).*$/m, '$1…')
  }

  it('C4.12: are the same byte for byte but for the request id', async () => {
    const [first, ...others] = await Promise.all(Object.values(THREE).map(masked))
    expect(first).toMatch(/^HTTP\/1\.1 404 /)
    expect(first).toContain('API_NOT_FOUND')
    for (const other of others) expect(other).toBe(first)
  })

  it('C4.12: at the level of the business too', async () => {
    const [nowhere, others] = await Promise.all(
      ['NOWHERE', 'GLOBEX'].map((code) => masked(LIST.replace('ACME', code))),
    )
    expect(nowhere).toMatch(/^HTTP\/1\.1 404 /)
    expect(others).toBe(nowhere)
  })

  it('C4.12: a call that is refused so never reaches the backend', async () => {
    const answer = vi.spyOn(MemoryBackend.prototype, 'answer')
    for (const target of Object.values(THREE)) await ask(target)
    expect(answer).not.toHaveBeenCalled()
  })

  it('C4.12: with `funds: any` an unknown fund is the backend’s 404', async () => {
    const change = ({ directory, ...rest }: Configuration): Configuration => {
      const businesses = directory.businesses as Record<string, { funds: unknown }>
      const ACME = { ...businesses['ACME'], funds: 'any' }
      return { ...rest, directory: { ...directory, businesses: { ...businesses, ACME } } as never }
    }
    const own = await replaced({ change })
    const headers = bearer(await tokenFor(ALL_AT_ACME, own))
    const answer = vi.spyOn(MemoryBackend.prototype, 'answer')
    expect(await send(own, { target: THREE['no such fund'], headers })).toMatchObject({ status: 404 })
    expect(answer).toHaveBeenCalledOnce()
    expectFault(await send(own, { target: THREE['no such business'], headers }), 'unknown_place')
  })
})

describe('C4.13: the challenge', () => {
  const realm = () => `Bearer realm="${gateway.baseUrl}"`

  it('C4.13: no credentials: the realm alone', async () => {
    expect(challengeOf(await send(gateway, { target: LIST }))).toBe(realm())
  })

  it('C4.13: a bad token: invalid_token and a fixed description', async () => {
    const challenges = await Promise.all(
      ['x', `${token}x`, 'Ä'].map(async (value) => challengeOf(await withToken(value))),
    )
    expect(new Set(challenges).size).toBe(1)
    expect(challenges[0]).toMatch(/^Bearer realm="[^"]+", error="invalid_token", error_description="[^"]+"$/)
    expect(challenges[0]).toContain(realm())
  })

  it('C4.13: C4.7 any-of names the first configured value', async () => {
    const poor = await tokenFor('profile target:b/ACME')
    expect(challengeOf(await withToken(poor))).toMatch(/error="insufficient_scope".*, scope="fund\.read"$/)
  })

  it('C4.13: C4.7 all-of names all', async () => {
    const change = (loaded: Configuration): Configuration => ({
      ...loaded,
      actions: loaded.actions.map((action) => {
        const GET = { scopes: { all: ['fund.read', 'api1'] }, versions: [1], items: {} }
        return action.action === 'fund-list' ? { ...action, methods: { GET } } : action
      }),
    })
    const own = await replaced({ change })
    const half = await withToken(await tokenFor('fund.read target:b/ACME', own), own)
    expectFault(half, 'insufficient_scope')
    expect(challengeOf(half)).toMatch(/, scope="fund\.read api1"$/)
    const both = await withToken(await tokenFor('fund.maintain api1 target:b/ACME', own), own)
    expect(both).toMatchObject({ status: 200 })
  })

  it('C4.13: userinfo asks for openid', async () => {
    const headers = bearer(await tokenFor('profile'))
    const response = await send(gateway, { target: '/api/1.0/u/connect/userinfo', headers })
    expect(challengeOf(response)).toMatch(/error="insufficient_scope".*, scope="openid"$/)
  })

  it('C4.13: never a redirect or HTML, whoever asks', async () => {
    const headers = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'User-Agent': 'Mozilla/5.0' }
    const response = await send(gateway, { target: LIST, headers })
    expectFault(response, 'no_credentials')
    expect(response.headers).not.toHaveProperty('location')
  })
})

describe('C4.14: the Authorization header', () => {
  const authorized = (value: string, name = 'Authorization') =>
    send(gateway, { target: LIST, headers: { [name]: value } })

  it.each(['bearer', 'BEARER', 'bEARER', 'Token', 'Basic'])(
    'C4.14: the scheme %s counts as no credentials, and the Message says to write Bearer',
    async (scheme) => {
      const response = await authorized(`${scheme} ${token}`)
      expectFault(response, 'other_scheme')
      expect(response.body).toContain('Bearer')
      expect(challengeOf(response)).not.toContain('error')
    },
  )

  it('C4.14: Bearer, one or more spaces, one token', async () => {
    expect(await authorized(`Bearer ${token}`)).toMatchObject({ status: 200 })
    expect(await authorized(`Bearer    ${token}`)).toMatchObject({ status: 200 })
  })

  it.each([
    'Bearer',
    'Bearer ',
    'Bearer  ',
    'Bearer a b',
    'Bearer a, b',
    'Bearer "a"',
    'Bearer\ta',
    'Bearer a,Basic b',
  ])('C4.14: %j is invalid_token', async (value) => {
    const response = await authorized(value)
    expectFault(response, 'invalid_token')
    expect(challengeOf(response)).toContain('error="invalid_token"')
  })

  it('C4.14: anything after the token is invalid_token, good as the token may be', async () => {
    expectFault(await authorized(`Bearer ${token} x`), 'invalid_token')
    expectFault(await authorized(`Bearer ${token}, Bearer ${token}`), 'invalid_token')
  })

  it('C4.14, C13: the name of the header is in any case', async () => {
    expect(await authorized(`Bearer ${token}`, 'authorization')).toMatchObject({ status: 200 })
    expect(await authorized(`Bearer ${token}`, 'AUTHORIZATION')).toMatchObject({ status: 200 })
  })

  it('C4.14, C13: unless a setting makes it strict, at the token endpoint too (C6.1.2)', async () => {
    const own = await replaced({
      change: (loaded) => ({ ...loaded, server: { ...loaded.server, strictHeaderNames: true } }),
    })
    const strict = await tokenFor(ALL_AT_ACME, own)
    const as = (name: string) => send(own, { target: LIST, headers: { [name]: `Bearer ${strict}` } })
    expect(await as('Authorization')).toMatchObject({ status: 200 })
    expectFault(await as('authorization'), 'no_credentials')
    const headers = {
      authorization: basic('acme-books'),
      'Content-Type': 'application/x-www-form-urlencoded',
    }
    const refused = await send(own, { method: 'POST', target: '/connect/token', headers, body: 'a=b' })
    expect(refused.body).toContain('invalid_client')
  })

  it('C4.14: a token in the query or the body is not looked at', async () => {
    expectFault(await send(gateway, { target: `${LIST}?access_token=${token}` }), 'no_credentials')
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const body = `access_token=${token}`
    expectFault(await send(gateway, { method: 'POST', target: DETAIL, headers, body }), 'no_credentials')
  })
})

describe('C4.15, C4.16: judging a token', () => {
  it('C4.15: where the store or the keys can’t be reached: 503 with Retry-After, never 401, never let through', async () => {
    vi.spyOn(gateway.world.rules, 'isRevoked').mockImplementation(() => {
      throw new Fault('token_judge_unavailable')
    })
    const response = await withToken(token)
    expectFault(response, 'token_judge_unavailable')
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(0)
    expect(response.headers).not.toHaveProperty('www-authenticate')
  })

  it('C4.16: a cached verification still re-checks revocation, scope and target on every call', async () => {
    const own = await tokenFor('fund.read target:b/ACME')
    const as = (target: string, method = 'GET') => send(gateway, { method, target, headers: bearer(own) })
    expect(await as(LIST)).toMatchObject({ status: 200 })
    expectFault(await as(CREATE, 'POST'), 'insufficient_scope')
    expectFault(await as(LIST.replace('ACME', 'GLOBEX')), 'unknown_place')
    const { jti } = JSON.parse(Buffer.from(own.split('.')[1]!, 'base64url').toString()) as { jti: string }
    await gateway.world.tokenRevoker.end({ jti })
    expectFault(await as(LIST), 'revoked_token')
    expect(await withToken(token)).toMatchObject({ status: 200 })
  })

  it('C4.16: the cache is keyed by the whole token', async () => {
    expect(await withToken(token)).toMatchObject({ status: 200 })
    for (let at = token.length - 1; at > token.length - 12; at -= 1) {
      const other = token[at] === 'A' ? 'B' : 'A'
      expectFault(await withToken(token.slice(0, at) + other + token.slice(at + 1)), 'invalid_token')
    }
  })
})

describe('C4.17: the body of a call that is refused before C4.11', () => {
  it.each([
    ['no credentials', DETAIL, {}, 401],
    ['a bad token', DETAIL, { Authorization: 'Bearer x' }, 401],
    ['another version', DETAIL.replace('1.0', '2.0'), {}, 501],
    ['an unknown action', `${DETAIL}s`, 'token', 404],
    ['a method that is not offered', LIST, 'token', 405],
    ['another business', DETAIL.replace('ACME', 'GLOBEX'), 'token', 404],
    ['nothing acceptable', DETAIL, { Accept: 'image/png' }, 406],
  ] as const)(
    'C4.17: with %s it is left unread, and the connection closes',
    async (_what, target, more, status) => {
      const own = more === 'token' || 'Accept' in more ? bearer(token) : {}
      const headers = { ...own, ...(more === 'token' ? {} : more) }
      const connection = await openRaw(gateway.port)
      // The body never comes: whoever waits for it waits for ever.
      const framing = { 'Content-Type': 'application/json', 'Content-Length': '100' }
      connection.send(requestBytes({ method: 'POST', target, headers: { ...framing, ...headers } }))
      const response = await connection.response()
      expect(response).toMatchObject({ status, headers: { connection: 'close' } })
      connection.send(
        `${'x'.repeat(100)}GET ${LIST} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`,
      )
      connection.end()
      await connection.closed()
      expect(connection.unread).toBe('')
      connection.destroy()
    },
  )

  it('C4.17: no 100 Continue is sent for it', async () => {
    const connection = await openRaw(gateway.port)
    const headers = { Expect: '100-continue', 'Content-Length': '5' }
    connection.send(requestBytes({ method: 'POST', target: DETAIL, headers }))
    expect(await connection.response()).toMatchObject({ status: 401, headers: { connection: 'close' } })
    connection.destroy()
  })

  it('C4.17: one that is let through is asked for its body', async () => {
    const connection = await openRaw(gateway.port)
    const framing = { 'Content-Type': 'application/json', 'Content-Length': '2', Expect: '100-continue' }
    connection.send(
      requestBytes({ method: 'POST', target: DETAIL, headers: { ...bearer(token), ...framing } }),
    )
    expect(await connection.response()).toMatchObject({ status: 100 })
    connection.send('{}')
    expect(await connection.response()).toMatchObject({ status: 200 })
    connection.destroy()
  })
})

describe('C4.18: CORS is off', () => {
  it('C4.18: OPTIONS is a method like any other', async () => {
    const headers = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET' }
    expectFault(await send(gateway, { method: 'OPTIONS', target: LIST, headers }), 'no_credentials')
    const response = await ask(LIST, { method: 'OPTIONS', headers })
    expectFault(response, 'method_not_allowed')
    expect(Object.keys(response.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
  })

  it('C4.18: nor is a cross-origin call answered with CORS headers', async () => {
    const { status, headers } = await ask(LIST, { headers: { Origin: 'https://app.example' } })
    expect(status).toBe(200)
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
  })
})
