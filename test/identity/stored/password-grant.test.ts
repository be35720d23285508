import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { FAMILY } from '../../../src/identity/stored/families.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { roleMark } from '../../../src/base/kernel/ids.ts'
import {
  API,
  requestToken,
  client,
  ISSUER,
  openTestIdentity,
  user,
  verify,
} from '../../support/identity-under-test.ts'

const day = (at: number): string => new Date(at).toISOString().slice(0, 10)
const DAY = 86_400_000
const NOW = openTestIdentity().clock.now()
const DAYS = { today: day(NOW), tomorrow: day(NOW + DAY) }

describe('C6.1.3 the answer of the token endpoint', () => {
  it('C6.1.3 has the members and headers of the contract, and no more', async () => {
    const { status, headers, json } = await requestToken(openTestIdentity(), {
      scope: 'fund.read target:b/ACME',
    })
    expect(status).toBe(200)
    expect(headers).toEqual({
      'Content-Type': 'application/json;charset=UTF-8',
      'Cache-Control': 'no-cache',
      Pragma: 'no-cache',
    })
    expect(json).toEqual({
      access_token: expect.any(String),
      token_type: 'bearer',
      expires_in: 900,
      scope: 'fund.read target:b/ACME',
    })
  })

  it('C6.1.3 says no-store where RFC 6749 is to be kept strictly', async () => {
    const { headers } = await requestToken(openTestIdentity({ config: { strictRfc6749: true } }))
    expect(headers['Cache-Control']).toBe('no-store')
  })

  it('C6.1.3 answers the same headers with an error', async () => {
    const { status, headers, json } = await requestToken(openTestIdentity(), { password: 'wrong' })
    expect(status).toBe(400)
    expect(headers).toEqual({
      'Content-Type': 'application/json;charset=UTF-8',
      'Cache-Control': 'no-cache',
      Pragma: 'no-cache',
    })
    expect(json).toEqual({ error: 'invalid_grant', error_description: expect.any(String) })
  })

  it('C6.1.3 gives an id_token only if openid was granted', async () => {
    const service = openTestIdentity()
    expect((await requestToken(service, { scope: 'profile target:b/ACME' })).json).not.toHaveProperty(
      'id_token',
    )
    expect((await requestToken(service, { scope: 'openid' })).json).toHaveProperty('id_token')
  })

  it('C6.1.3 gives a refresh_token only if offline_access was granted', async () => {
    const service = openTestIdentity()
    expect((await requestToken(service)).json).not.toHaveProperty('refresh_token')
    expect((await requestToken(service, { scope: 'openid offline_access' })).json).toHaveProperty(
      'refresh_token',
    )
  })

  it('C6.1.3 drops offline_access for a client that may not use refresh tokens', async () => {
    const service = openTestIdentity({ clients: [client('acme-books', { grants: ['password'] })] })
    const { json } = await requestToken(service, { scope: 'openid offline_access' })
    expect(json.scope).toBe('openid')
    expect(json).not.toHaveProperty('refresh_token')
  })
})

describe('C6.1.8 the tokens', () => {
  it('C6.1.8 access tokens are RFC 9068 and verify with the published keys', async () => {
    const service = openTestIdentity()
    const { json } = await requestToken(service)
    const { payload, protectedHeader } = await verify(json.access_token, API, 'at+jwt', service.clock.now())
    const seconds = service.clock.now() / 1000
    expect(protectedHeader).toMatchObject({ alg: 'ES256', typ: 'at+jwt' })
    expect(payload).toEqual({
      iss: ISSUER,
      aud: API,
      sub: 'sub-alice',
      client_id: 'acme-books',
      iat: seconds,
      exp: seconds + 900,
      jti: expect.any(String),
      scope: 'openid fund.read target:b/ACME',
      // Of the role alice has at ACME, and not its name (C5.6).
      role: roleMark('Administrator'),
      as_of: 0,
    })
  })

  it('C6.1.8 the lifetime is the client’s own where it has one', async () => {
    const service = openTestIdentity({ clients: [client('acme-books', { accessTokenLifetime: 60 })] })
    const { json } = await requestToken(service)
    const { payload } = await verify(json.access_token, API, 'at+jwt', service.clock.now())
    expect(json.expires_in).toBe(60)
    expect(payload.exp).toBe((payload.iat ?? 0) + 60)
  })

  it('C6.1.8 signs RS256 access tokens as configured', async () => {
    const service = openTestIdentity({ config: { accessToken: { lifetime: 900_000, algorithm: 'RS256' } } })
    const { json } = await requestToken(service)
    const { protectedHeader } = await verify(json.access_token, API, 'at+jwt', service.clock.now())
    expect(protectedHeader.alg).toBe('RS256')
  })

  it('C6.1.8 id_tokens are RS256, bound to the access token, with profile and email claims only', async () => {
    const service = openTestIdentity()
    const scope = 'openid profile email address phone service_profile target:b/ACME'
    const { json } = await requestToken(service, { scope })
    const { payload, protectedHeader } = await verify(json.id_token, 'acme-books', 'JWT', service.clock.now())
    const seconds = service.clock.now() / 1000
    const hash = createHash('sha256').update(json.access_token).digest().subarray(0, 16)
    expect(protectedHeader.alg).toBe('RS256')
    expect(payload).toEqual({
      iss: ISSUER,
      sub: 'sub-alice',
      aud: 'acme-books',
      iat: seconds,
      exp: seconds + 900,
      auth_time: seconds,
      at_hash: hash.toString('base64url'),
      name: 'Alice Arden',
      given_name: 'Alice',
      email: 'alice@acme.test',
    })
  })

  it('C6.1.8 id_tokens are signed as the client’s configuration says', async () => {
    const service = openTestIdentity({ clients: [client('acme-books', { idTokenAlgorithm: 'ES256' })] })
    const { json } = await requestToken(service)
    const { protectedHeader } = await verify(json.id_token, 'acme-books', 'JWT', service.clock.now())
    expect(protectedHeader.alg).toBe('ES256')
  })

  it('C4.16 an issued token is known to the gateway at once, as it will be read', async () => {
    const service = openTestIdentity()
    const { json } = await requestToken(service, { scope: 'openid offline_access target:b/ACME' })
    const [{ token, principal } = { token: '', principal: undefined }] = service.primed
    const { payload } = await verify(token, API, 'at+jwt', service.clock.now())
    expect(token).toBe(json.access_token)
    expect(principal).toEqual({
      subject: payload.sub,
      client: payload['client_id'],
      clientKey: payload['client_id'],
      issuer: payload.iss,
      issuerName: undefined,
      scope: payload['scope'],
      scopes: new Set(String(payload['scope']).split(' ')),
      target: { level: 'business', business: 'ACME' },
      tokenId: payload.jti,
      family: payload['family'],
      role: payload['role'],
      asOf: payload['as_of'],
      issuedAt: payload.iat,
      expiresAt: payload.exp,
      key: principal?.key,
    })
  })
})

describe('C6.1.7 the family of a refresh token', () => {
  it('C6.1.7 is one record, with its scope and target, for its absolute lifetime', async () => {
    const service = openTestIdentity()
    const scope = 'openid offline_access target:b/ACME'
    const { json } = await requestToken(service, { scope })
    const id = String(service.primed[0]?.principal.family)
    expect(json.refresh_token.split('.')[2]).toBe(id)
    const family = await service.store.find(FAMILY, id)
    expect(family?.value).toEqual({
      client: 'acme-books',
      subject: 'sub-alice',
      scope,
      authTime: service.clock.now() / 1000,
      grant: 'password',
      asOf: 0,
      salt: expect.stringMatching(/^[\w-]{22}$/) as string,
      generation: 1,
    })
    expect(family?.expiresAt).toBe(service.clock.now() + 30 * 86_400_000)
    const [, , , , mac] = json.refresh_token.split('.')
    expect(JSON.stringify(await service.store.list(FAMILY))).not.toContain(mac)
    expect(await service.store.list('refresh_token')).toEqual([])
  })

  it.each(['subject', 'client', 'business'] as const)(
    'C6.3.3 is found again by its %s, so that it can be ended',
    async (index) => {
      const service = openTestIdentity()
      await requestToken(service, { scope: 'openid offline_access target:b/ACME' })
      const values = { subject: 'sub-alice', client: 'acme-books', business: 'ACME' }
      expect(await service.store.removeBy(FAMILY, { [index]: values[index] })).toBe(1)
    },
  )
})

describe('C6.1.5 the password grant', () => {
  it.each<[string, Parameters<typeof client>[1]]>([
    ['a partner', { kind: 'partner' }],
    ['a customer without a signed agreement', { agreement: undefined as unknown as string }],
    ['a customer without the grant', { grants: ['refresh_token'] }],
    ['a customer whose agreement is of tomorrow', { agreement: DAYS.tomorrow }],
    ['a customer whose agreement is of next year', { agreement: '2999-01-01' }],
  ])('C6.1.5 is refused to %s before the password is looked at', async (_, more) => {
    const service = openTestIdentity({ clients: [client('acme-books', more)] })
    const { status, json } = await requestToken(service, { password: 'wrong' })
    expect([status, json.error]).toEqual([400, 'unauthorized_client'])
    expect(service.verified).toEqual(['sha256:acme-books-secret'])
  })

  it('C6.1.5 is open from the first moment of the day, as UTC counts them, that the agreement names', async () => {
    const service = openTestIdentity({ clients: [client('acme-books', { agreement: DAYS.tomorrow })] })
    service.clock.at = Date.parse(DAYS.tomorrow) - 1
    expect((await requestToken(service)).json.error).toBe('unauthorized_client')
    service.clock.at += 1
    expect((await requestToken(service)).status).toBe(200)
  })

  const strangers = [
    user('bob', { customers: ['globex-ledger'] }),
    user('carol', { locked: true }),
    user('dave', { disabled: true }),
  ]
  it('C6.1.5 every wrong login has one answer, for one password verified', async () => {
    const answers = []
    for (const [username, password] of [
      ['nobody', 'x'],
      ['alice', 'wrong'],
      ['bob', 'bob-password'],
      ['carol', 'carol-password'],
      ['dave', 'dave-password'],
    ] as const) {
      const service = openTestIdentity({ users: [user('alice'), ...strangers] })
      const { status, headers, json } = await requestToken(service, { username, password })
      answers.push(JSON.stringify({ status, headers, json, verified: service.verified.length }))
      expect(json.error).toBe('invalid_grant')
    }
    expect(new Set(answers).size).toBe(1)
  })

  it('C6.1.4 says 503 and when to come again if the hashing queue is full', async () => {
    const full = {
      verify: (_: string, encoded?: string) =>
        encoded?.startsWith('sha256:') === true
          ? Promise.resolve(true)
          : Promise.reject(new Fault('identity_unavailable', { retryAfter: 3 })),
    }
    const { status, headers, json } = await requestToken(openTestIdentity({ deps: { hasher: full } }))
    expect([status, json.error, headers['Retry-After']]).toEqual([503, 'temporarily_unavailable', '3'])
  })

  it('C6.1.4 says 503 if the directory cannot be reached', async () => {
    const down = () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.1'))
    const people = { findClient: down, findUserByName: down, findUserBySubject: down }
    const { status, headers, json } = await requestToken(openTestIdentity({ deps: { people } }))
    expect([status, json.error]).toEqual([503, 'temporarily_unavailable'])
    expect(headers['Retry-After']).toMatch(/^[0-9]+$/)
    expect(JSON.stringify(json)).not.toContain('10.0.0.1')
  })
})

describe('C12 what is recorded', () => {
  it('C12 a token issued, with its grant, client, subject and place', async () => {
    const service = openTestIdentity()
    await requestToken(service)
    expect(service.tokens).toMatchObject([
      { grant: 'password', result: 'issued', client: 'acme-books', subject: 'sub-alice', fault: undefined },
    ])
    expect(service.tokens[0]).toMatchObject({ business: 'ACME', fund: undefined })
    expect(service.decisions).toMatchObject([{ door: 'identity', status: 200, fault: undefined }])
  })

  it('C12 a token refused, with the reason', async () => {
    const service = openTestIdentity()
    await requestToken(service, { password: 'wrong' })
    expect(service.tokens).toMatchObject([
      { grant: 'password', result: 'invalid_grant', client: 'acme-books', subject: 'sub-alice' },
    ])
    expect(service.tokens[0]?.fault?.code).toBe('invalid_grant')
    expect(service.decisions[0]?.fault?.code).toBe('invalid_grant')
  })

  it('C12 no grant and no client where none was known', async () => {
    const service = openTestIdentity()
    await requestToken(service, { grant_type: 'magic' }, { authorization: 'Basic !' })
    expect(service.tokens).toMatchObject([{ grant: 'none', client: undefined, result: 'invalid_client' }])
  })
})
