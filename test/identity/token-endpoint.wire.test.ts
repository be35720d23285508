import { createHash } from 'node:crypto'
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify, type JWTPayload } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { Fault } from '../../src/base/kernel/faults.ts'
import { patientGuessing } from '../support/guessing.ts'
import { movableClock } from '../support/movable-clock.ts'
import type { RawResponse } from '../support/raw-http.ts'
import { bearer, REQUEST_ID, send, type Sent } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { basic, issueToken } from '../support/tokens.ts'

type Clients = Record<string, object>

/** The demo's directory, with some of its clients or users changed or added. */
const withPeople =
  ({ clients = {}, users = {} }: { clients?: Clients; users?: Clients }) =>
  (loaded: Configuration): Configuration => {
    // Whoever is new begins as one of the demo's, so that all defaults are there.
    const merged = (old: Clients, more: Clients, model: string): Clients => {
      const changed = Object.entries(more).map(([name, change]) => [
        name,
        { ...(old[name] ?? old[model]), ...change },
      ])
      return { ...old, ...(Object.fromEntries(changed) as Clients) }
    }
    const { directory } = loaded
    // One that has no default scope.
    const books = { ...directory.clients['acme-books'], defaultScope: undefined }
    const changed = {
      ...directory,
      clients: merged({ ...directory.clients, 'acme-books': books }, clients, 'acme-books'),
      users: merged(directory.users, users, 'carol'),
    }
    return patientGuessing({ ...loaded, directory: changed as never })
  }

const sha256 = (text: string): string => `sha256:${createHash('sha256').update(text).digest('base64url')}`

/** What these tests need beside the demo. */
const PEOPLE = {
  clients: {
    unsigned: {
      kind: 'customer',
      name: 'No agreement',
      secrets: [sha256('unsigned-secret')],
      grants: ['password', 'refresh_token'],
      agreement: undefined,
      businesses: ['ACME'],
      scopes: ['openid', 'fund.read'],
    },
    'odd:client+%41': {
      kind: 'customer',
      name: 'Odd characters',
      secrets: [sha256('a+b%20c d&e=f')],
      grants: ['password'],
      agreement: '2026-01-15',
      businesses: ['ACME'],
      scopes: ['openid'],
    },
    posting: {
      kind: 'customer',
      name: 'Posts its secret',
      secrets: [sha256('posting-secret')],
      authentication: ['client_secret_post'],
      grants: ['password'],
      agreement: '2026-01-15',
      businesses: ['ACME'],
      scopes: ['openid'],
    },
  },
  users: {
    alice: { customers: ['acme-books', 'unsigned', 'odd:client+%41', 'posting'] },
    lock: { subject: 'lock', customers: ['acme-books'], access: {}, claims: {}, locked: true },
    gone: { subject: 'gone', customers: ['acme-books'], access: {}, claims: {}, disabled: true },
  },
}
const ALICES_HASH = (loaded: Configuration): string =>
  (loaded.directory.users as unknown as Record<string, { password: string }>)['alice']!.password

let gateway: StartedPostern
beforeAll(async () => {
  gateway = await startPostern({
    keeps: 'nothing',
    change: (loaded) => {
      // Locked and disabled, with alice's right password: nothing else may be wrong with them.
      const password = ALICES_HASH(loaded)
      const { lock, gone, ...users } = PEOPLE.users
      const people = { ...users, lock: { ...lock, password }, gone: { ...gone, password } }
      return withPeople({ ...PEOPLE, users: people })(loaded)
    },
  })
})
afterAll(() => gateway.close())
afterEach(() => {
  vi.restoreAllMocks()
})

const ALICE = { grant_type: 'password', username: 'alice', password: 'alice-password', scope: 'openid' }
const without = (name: keyof typeof ALICE): Record<string, string> =>
  Object.fromEntries(Object.entries(ALICE).filter(([each]) => each !== name))
const FORM = 'application/x-www-form-urlencoded'

interface Told {
  readonly status: number
  readonly json: Record<string, unknown>
  readonly response: RawResponse
}

async function post(
  body: string | Record<string, string>,
  { headers, ...more }: Partial<Sent> = {},
  of = gateway,
): Promise<Told> {
  const text = typeof body === 'string' ? body : new URLSearchParams(body).toString()
  const given = { 'Content-Type': FORM, Authorization: basic('acme-books'), ...headers }
  const sent = { method: 'POST', target: '/connect/token', ...more, headers: given, body: text }
  const response = await send(of, sent)
  return { status: response.status, json: JSON.parse(response.body) as Told['json'], response }
}

const refused = (error: string, status = 400) => ({ status, json: { error } })

describe('C6.0: every identity endpoint', () => {
  it('C6.0: a parameter without a value counts as absent', async () => {
    const { status, json } = await post({ ...ALICE, grant_type: '' })
    expect({ status, json }).toMatchObject(refused('invalid_request'))
    expect(json['error_description']).toContain('grant_type is missing')
    expect(await post({ ...ALICE, client_id: '', client_secret: '' })).toMatchObject({ status: 200 })
  })

  it('C6.0: unknown parameters are ignored', async () => {
    expect(await post({ ...ALICE, colour: 'red', audience: 'x' })).toMatchObject({ status: 200 })
  })

  it('C6.0: a repeated one is invalid_request, equal or not, known or not', async () => {
    const right = new URLSearchParams(ALICE).toString()
    for (const tail of ['scope=openid', 'scope=profile', 'grant_type=password', 'x=1&x=1'])
      expect(await post(`${right}&${tail}`)).toMatchObject(refused('invalid_request'))
  })

  it.each([
    ['/connect/token', 'GET', 'POST'],
    ['/connect/token', 'PUT', 'POST'],
    ['/connect/token', 'OPTIONS', 'POST'],
    ['/.well-known/jwks.json', 'POST', 'GET, HEAD'],
    ['/.well-known/openid-configuration', 'DELETE', 'GET, HEAD'],
  ])('C6.0: %s has no %s: 405, Allow and invalid_request', async (target, method, allow) => {
    const response = await send(gateway, { method, target })
    expect(response.status).toBe(405)
    expect(response.headers['allow']).toBe(allow)
    expect(JSON.parse(response.body)).toMatchObject({ error: 'invalid_request' })
  })
})

describe('C6.1.1: the body', () => {
  it.each([FORM, `${FORM}; charset=utf-8`, `${FORM};charset="UTF-8"`, FORM.toUpperCase()])(
    'C6.1.1: %s is taken',
    async (type) => {
      expect(await post(ALICE, { headers: { 'Content-Type': type } })).toMatchObject({ status: 200 })
    },
  )

  it.each([
    `${FORM}; charset=iso-8859-1`,
    'application/json',
    'multipart/form-data',
    'text/plain',
    undefined,
  ])('C6.1.1: %s is invalid_request', async (type) => {
    const told = await post(ALICE, { headers: { 'Content-Type': type } })
    expect(told).toMatchObject(refused('invalid_request'))
  })

  it('C6.1.1: a trailing slash on the path is accepted', async () => {
    expect(await post(ALICE, { target: '/connect/token/' })).toMatchObject({ status: 200 })
  })

  it('C6.1.1: raw spaces in a value are tolerated, and scope is split on runs of spaces', async () => {
    const body = 'grant_type=password&username=alice&password=alice-password&scope=openid   profile++email'
    expect(await post(body)).toMatchObject({ status: 200, json: { scope: 'openid profile email' } })
  })

  it('C6.1.1: a bad escape is invalid_request', async () => {
    expect(await post('grant_type=%zz')).toMatchObject(refused('invalid_request'))
  })
})

describe('C6.1.2: client authentication', () => {
  const withAuthorization = (value: string | undefined, more: Record<string, string> = {}) =>
    post({ ...ALICE, ...more }, { headers: { Authorization: value } })
  const encode = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
  const [ODD, ODD_SECRET] = ['odd:client+%41', 'a+b%20c d&e=f']
  const formEncoded = (text: string) => new URLSearchParams({ x: text }).toString().slice(2)

  it('C6.1.2: by Basic, the name of the header in any case', async () => {
    expect(await withAuthorization(basic('acme-books'))).toMatchObject({ status: 200 })
    const headers = { Authorization: undefined, authorization: basic('acme-books') }
    expect(await post(ALICE, { headers })).toMatchObject({ status: 200 })
  })

  it.each(['basic', 'BASIC', 'Bearer', 'Digest'])('C6.1.2: the word %s is not Basic', async (word) => {
    const value = basic('acme-books').replace('Basic', word)
    expect(await withAuthorization(value)).toMatchObject(refused('invalid_client'))
  })

  it('C6.1.2: the pair is tried as sent, then form-decoded', async () => {
    // A colon ends the id, so an id that holds one can only be sent encoded.
    expect(await withAuthorization(encode(`${formEncoded(ODD)}:${formEncoded(ODD_SECRET)}`))).toMatchObject({
      status: 200,
    })
    expect(await withAuthorization(encode(`${formEncoded('acme-books')}:acme-books-secret`))).toMatchObject({
      status: 200,
    })
    expect(await withAuthorization(encode(`acme%2Dbooks:acme%2Dbooks%2Dsecret`))).toMatchObject({
      status: 200,
    })
    expect(await withAuthorization(encode(`${ODD}:${ODD_SECRET}`))).toMatchObject(refused('invalid_client'))
  })

  it('C6.1.2: any failure is the same 400 invalid_client with a description', async () => {
    const failures = await Promise.all([
      withAuthorization(basic('acme-books', 'wrong')),
      withAuthorization(basic('nobody', 'acme-books-secret')),
      withAuthorization(basic('acme-books', '')),
      withAuthorization('Basic'),
      withAuthorization('Basic !!!'),
      withAuthorization(encode('acme-books')),
      withAuthorization(undefined),
      withAuthorization(basic('pocketbooks', '')),
    ])
    const bodies = new Set(failures.map(({ status, response }) => `${String(status)} ${response.body}`))
    expect([...bodies]).toEqual([
      expect.stringMatching(/^400 \{"error":"invalid_client","error_description":"[^"]+"\}$/),
    ])
    for (const { response } of failures) expect(response.headers).not.toHaveProperty('www-authenticate')
  })

  it('C6.1.2: public clients send client_id, and may not use the password grant', async () => {
    const told = await withAuthorization(undefined, { client_id: 'pocketbooks' })
    expect(told).toMatchObject(refused('unauthorized_client'))
  })

  it('C6.1.2: a client with a secret is not public', async () => {
    const told = await withAuthorization(undefined, { client_id: 'acme-books' })
    expect(told).toMatchObject(refused('invalid_client'))
  })

  it('C6.1.2: with Basic, an equal client_id is accepted, a different one is invalid_request', async () => {
    const as = (client_id: string) => withAuthorization(basic('acme-books'), { client_id })
    expect(await as('acme-books')).toMatchObject({ status: 200 })
    expect(await as('globex-ledger')).toMatchObject(refused('invalid_request'))
  })

  it('C6.1.2: the secret counts in the body too, but not in both places at once', async () => {
    const credentials = { client_id: 'acme-books', client_secret: 'acme-books-secret' }
    expect(await withAuthorization(undefined, credentials)).toMatchObject({ status: 200 })
    expect(await withAuthorization(basic('acme-books'), credentials)).toMatchObject(
      refused('invalid_request'),
    )
    const wrong = { ...credentials, client_secret: 'wrong' }
    expect(await withAuthorization(undefined, wrong)).toMatchObject(refused('invalid_client'))
  })

  it('C6.1.2: a client uses the methods of its `authentication` alone', async () => {
    const right = { client_id: 'posting', client_secret: 'posting-secret' }
    expect(await withAuthorization(undefined, right)).toMatchObject({ status: 200 })
    expect(await withAuthorization(basic('posting', 'posting-secret'), {})).toMatchObject(
      refused('invalid_client'),
    )
  })
})

describe('C6.1.3: success', () => {
  const HEADERS = {
    'content-type': 'application/json;charset=UTF-8',
    'cache-control': 'no-cache',
    pragma: 'no-cache',
  }

  it('C6.1.3: has these headers and members', async () => {
    const { status, json, response } = await post({ ...ALICE, scope: 'fund.read target:b/ACME' })
    expect(status).toBe(200)
    expect(response.headers).toMatchObject(HEADERS)
    expect(response.headers['x-request-id']).toMatch(REQUEST_ID)
    expect(json).toEqual({
      access_token: expect.any(String),
      token_type: 'bearer',
      expires_in: 900,
      scope: 'fund.read target:b/ACME',
    })
  })

  it('C6.1.3: refresh_token only if offline_access was granted, id_token only if openid was', async () => {
    const { json } = await post({ ...ALICE, scope: 'openid offline_access' })
    expect(Object.keys(json).sort()).toEqual([
      'access_token',
      'expires_in',
      'id_token',
      'refresh_token',
      'scope',
      'token_type',
    ])
    expect((await post({ ...ALICE, scope: 'openid' })).json).not.toHaveProperty('refresh_token')
    expect((await post({ ...ALICE, scope: 'profile offline_access' })).json).not.toHaveProperty('id_token')
  })

  it('C6.1.3: errors have the same headers', async () => {
    const { response } = await post({ ...ALICE, grant_type: 'x' })
    expect(response.headers).toMatchObject(HEADERS)
  })

  it('C6.1.3, C13: a setting makes both strict RFC 6749', async () => {
    const own = await postern({
      keeps: 'nothing',
      change: (loaded) => ({ ...loaded, identity: { ...loaded.identity, strictRfc6749: true } }),
    })
    const good = await post(ALICE, {}, own)
    expect(good).toMatchObject({ status: 200, response: { headers: { 'cache-control': 'no-store' } } })
    expect(good.json['token_type']).toBe('Bearer')
    const lowerCase = { headers: { Authorization: basic('acme-books').replace('Basic', 'bAsic') } }
    expect(await post(ALICE, lowerCase, own)).toMatchObject({ status: 200 })
    const target = '/api/1.0/u/connect/userinfo'
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      const headers = { Authorization: `${scheme} ${String(good.json['access_token'])}` }
      expect(await send(own, { target, headers })).toMatchObject({ status: 200 })
    }
    const joined = { Authorization: `bearerx ${String(good.json['access_token'])}` }
    expect(await send(own, { target, headers: joined })).toMatchObject({ status: 401 })
    const bad = await post(ALICE, { headers: { Authorization: basic('nobody') } }, own)
    expect(bad).toMatchObject(refused('invalid_client', 401))
    expect(bad.response.headers['www-authenticate']).toMatch(/^Basic realm="/)
    expect(bad.response.headers['cache-control']).toBe('no-store')
    expect(await post({ ...ALICE, grant_type: 'x' }, {}, own)).toMatchObject(
      refused('unsupported_grant_type'),
    )
  })
})

describe('C6.1.4: errors', () => {
  it.each(['grant_type', 'username', 'password'] as const)(
    'C6.1.4: a missing %s is invalid_request, which names it',
    async (name) => {
      const { status, json } = await post(without(name))
      expect({ status, json }).toMatchObject(refused('invalid_request'))
      expect(json['error_description']).toContain(name)
    },
  )

  it.each(['implicit', 'Password', 'urn:ietf:params:oauth:grant-type:device_code', 'x'])(
    'C6.1.4, C13: the grant %s is unsupported_grant_type',
    async (grant_type) => {
      expect(await post({ ...ALICE, grant_type })).toMatchObject(refused('unsupported_grant_type'))
    },
  )

  it('C6.1.4: an error is error and error_description, and nothing else', async () => {
    const { json } = await post({ ...ALICE, scope: 'no.such' })
    expect(Object.keys(json)).toEqual(['error', 'error_description'])
    expect(json['error']).toBe('invalid_scope')
  })

  it('C6.1.4: the hashing queue full: 503 temporarily_unavailable with Retry-After', async () => {
    vi.spyOn(gateway.world.hasher, 'verify').mockRejectedValue(new Fault('identity_unavailable'))
    const told = await post(ALICE)
    expect(told).toMatchObject(refused('temporarily_unavailable', 503))
    expect(Number(told.response.headers['retry-after'])).toBeGreaterThan(0)
  })

  it('C6.1.4: the store down: 503 temporarily_unavailable with Retry-After', async () => {
    vi.spyOn(gateway.world.store, 'create').mockRejectedValue(
      new Fault('identity_unavailable', { detail: 'the store is gone' }),
    )
    const told = await post({ ...ALICE, scope: 'openid offline_access' })
    expect(told).toMatchObject(refused('temporarily_unavailable', 503))
    expect(Number(told.response.headers['retry-after'])).toBeGreaterThan(0)
  })
})

describe('C6.1.5: the password grant', () => {
  it('C6.1.5: only for customers: a partner is unauthorized_client before the password is looked at', async () => {
    const verify = vi.spyOn(gateway.world.hasher, 'verify')
    const told = await post(ALICE, { headers: { Authorization: basic('ledgerline') } })
    expect(told).toMatchObject(refused('unauthorized_client'))
    expect(verify.mock.calls.map(([secret]) => secret)).not.toContain('alice-password')
  })

  it('C6.1.5: only with a signed agreement on record', async () => {
    const told = await post(ALICE, { headers: { Authorization: basic('unsigned') } })
    expect(told).toMatchObject(refused('unauthorized_client'))
  })

  it('C6.1.5: wrong user, user of another customer, wrong password, locked, disabled: the same answer', async () => {
    const attempts = [
      { username: 'nobody' },
      { username: 'carol', password: 'carol-password' },
      { password: 'wrong' },
      { username: 'lock' },
      { username: 'gone' },
    ]
    const answers = await Promise.all(attempts.map((attempt) => post({ ...ALICE, ...attempt })))
    const bodies = new Set(answers.map(({ status, response }) => `${String(status)} ${response.body}`))
    expect([...bodies]).toEqual([expect.stringMatching(/^400 \{"error":"invalid_grant",/)])
  })

  it('C6.1.5: in the same time: one password is hashed, whoever it is', async () => {
    const verify = vi.spyOn(gateway.world.hasher, 'verify')
    const hashed = async (attempt: Record<string, string>): Promise<number> => {
      verify.mockClear()
      const password = `guess-${attempt['username'] ?? 'alice'}`
      await post({ ...ALICE, password, ...attempt })
      return verify.mock.calls.filter(([secret]) => secret === password).length
    }
    for (const username of ['alice', 'nobody', 'carol', 'lock', 'gone'])
      expect(await hashed({ username })).toBe(1)
  })

  it('C6.1.5: scope is optional where the client has a default (C5.5)', async () => {
    expect(await post(without('scope'))).toMatchObject(refused('invalid_scope'))
  })

  it('C6.1.5: names and passwords are UTF-8 text, taken as they are', async () => {
    expect(await post({ ...ALICE, username: 'ALICE' })).toMatchObject(refused('invalid_grant'))
    expect(await post({ ...ALICE, password: 'alice-password ' })).toMatchObject(refused('invalid_grant'))
    expect(await post({ ...ALICE, username: 'zoë', password: '漢' })).toMatchObject(refused('invalid_grant'))
  })
})

describe('C6.1.8: the tokens', () => {
  const verified = async (token: string, options: object, of = gateway) => {
    const { body } = await send(of, { target: '/.well-known/jwks.json' })
    return jwtVerify(token, createLocalJWKSet(JSON.parse(body) as { keys: [] }), options)
  }
  const now = () => Math.floor(Date.now() / 1000)
  const sub = '45733adb-9b07-4d40-ae57-20cf9b802f51'

  it('C6.1.8: the access token is a JWT by RFC 9068', async () => {
    const scope = 'openid fund.read target:b/ACME'
    const { access_token } = await issueToken(gateway, { scope })
    const { payload, protectedHeader } = await verified(access_token, {
      typ: 'at+jwt',
      issuer: gateway.authUrl,
      audience: gateway.baseUrl,
    })
    expect(protectedHeader).toMatchObject({ alg: 'ES256', kid: expect.any(String) })
    expect(payload).toMatchObject({ sub, client_id: 'acme-books', scope, jti: expect.any(String) })
    expect(payload.exp! - payload.iat!).toBe(900)
    expect(Math.abs(payload.iat! - now())).toBeLessThan(60)
  })

  it('C6.1.8: each has a jti of its own', async () => {
    const tokens = await Promise.all([1, 2, 3].map(() => issueToken(gateway, { scope: 'openid' })))
    const ids = tokens.map(({ access_token }) => {
      const [, payload = ''] = access_token.split('.')
      return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as JWTPayload).jti
    })
    expect(new Set(ids).size).toBe(3)
  })

  it('C6.1.8: the lifetime and the algorithms are configuration, the lifetime per client too', async () => {
    const clock = movableClock(Date.now())
    const own = await postern({
      keeps: 'nothing',
      clock,
      change: (loaded) => {
        const identity = {
          ...loaded.identity,
          accessToken: { ...loaded.identity.accessToken, lifetime: 120_000, algorithm: 'RS256' as const },
        }
        const clients = { 'globex-ledger': { accessTokenLifetime: 60_000, idTokenAlgorithm: 'ES256' } }
        return withPeople({ clients })({ ...loaded, identity })
      },
    })
    const books = await issueToken(own, { scope: 'openid' })
    expect(books.expires_in).toBe(120)
    expect(decodeProtectedHeader(books.access_token).alg).toBe('RS256')
    expect(decodeProtectedHeader(books.id_token!).alg).toBe('RS256')
    const ledger = await issueToken(own, { client: 'globex-ledger', username: 'bob', scope: 'openid' })
    expect(ledger.expires_in).toBe(60)
    expect(decodeProtectedHeader(ledger.id_token!).alg).toBe('ES256')
    clock.advance(60_000)
    const headers = (token: string) => bearer(token)
    const target = '/api/1.0/u/connect/userinfo'
    expect(await send(own, { target, headers: headers(ledger.access_token) })).toMatchObject({ status: 401 })
    expect(await send(own, { target, headers: headers(books.access_token) })).toMatchObject({ status: 200 })
  })

  it('C6.1.8: the id_token is by OIDC Core, signed RS256, with profile and email only', async () => {
    const scope = 'openid profile email address phone service_profile target:b/ACME'
    const { access_token, id_token } = await issueToken(gateway, { scope })
    const { payload, protectedHeader } = await verified(id_token!, {
      issuer: gateway.authUrl,
      audience: 'acme-books',
    })
    expect(protectedHeader.alg).toBe('RS256')
    const digest = createHash('sha256').update(access_token).digest()
    expect(payload).toMatchObject({
      sub,
      aud: 'acme-books',
      at_hash: digest.subarray(0, 16).toString('base64url'),
      auth_time: expect.any(Number),
      name: 'Alice Beatrice Arden',
      middle_name: 'Beatrice',
      email: 'alice@example.com',
    })
    expect(Math.abs((payload['auth_time'] as number) - now())).toBeLessThan(60)
    expect(payload.exp!).toBeGreaterThan(payload.iat!)
    for (const claim of ['address', 'phone_number', 'service_profile', 'nonce'])
      expect(payload).not.toHaveProperty(claim)
  })

  it('C6.1.8: without profile and email the id_token tells nothing of the person', async () => {
    const { id_token } = await issueToken(gateway, { scope: 'openid' })
    const { payload } = await verified(id_token!, {})
    expect(Object.keys(payload).sort()).toEqual(['at_hash', 'aud', 'auth_time', 'exp', 'iat', 'iss', 'sub'])
  })
})
