import { describe, expect, it } from 'vitest'
import { Fault } from '../../src/base/kernel/faults.ts'
import {
  requestToken,
  basic,
  client,
  formOf,
  openTestIdentity,
  user,
  type JsonAnswer,
  type TestIdentity,
} from '../support/identity-under-test.ts'

const FORM = 'application/x-www-form-urlencoded'
const CLIENTS = [
  client('acme-books'),
  client('other'),
  client('upstream', { resource: true }),
  client('pocketbooks', { kind: 'public', secretHashes: [], grants: ['refresh_token'] }),
]
const SCOPE = 'openid offline_access fund.read target:b/ACME'

const open = (options: Parameters<typeof openTestIdentity>[0] = {}): TestIdentity =>
  openTestIdentity({ clients: CLIENTS, ...options })

const post =
  (path: string) =>
  (
    service: TestIdentity,
    params: Readonly<Record<string, string>>,
    authorization = basic('acme-books'),
  ): Promise<JsonAnswer> =>
    service.send({ path, headers: { 'content-type': FORM, authorization }, body: formOf(params) })
const revoke = post('/connect/revocation')
const introspect = post('/connect/introspect')

const issue = async (service: TestIdentity): Promise<JsonAnswer['json']> =>
  (await requestToken(service, { scope: SCOPE })).json

const refresh = (service: TestIdentity, token: string): Promise<JsonAnswer> =>
  requestToken(service, { grant_type: 'refresh_token', refresh_token: token, scope: undefined })

/** The introspection answer that a resource server gets about a token. */
const state = async (service: TestIdentity, token: string): Promise<boolean> =>
  (await introspect(service, { token }, basic('upstream'))).json.active

describe('C6.3.3 revocation', () => {
  it('C6.3.3 revoking a refresh token ends its family and its access tokens', async () => {
    const service = open()
    const first = await issue(service)
    const second = (await refresh(service, first.refresh_token)).json
    const { status, json } = await revoke(service, { token: second.refresh_token })
    expect([status, json]).toEqual([200, undefined])
    expect((await refresh(service, second.refresh_token)).json.error).toBe('invalid_grant')
    for (const { access_token, refresh_token } of [first, second]) {
      expect(await state(service, access_token)).toBe(false)
      expect(await state(service, refresh_token)).toBe(false)
    }
  })

  it('C6.3.3 a refresh token that was used already ends its family too', async () => {
    const service = open()
    const first = await issue(service)
    const second = (await refresh(service, first.refresh_token)).json
    expect((await revoke(service, { token: first.refresh_token })).status).toBe(200)
    expect((await refresh(service, second.refresh_token)).json.error).toBe('invalid_grant')
  })

  it('C6.3.3 revoking an access token ends it alone', async () => {
    const service = open()
    const [one, other] = [await issue(service), await issue(service)]
    expect((await revoke(service, { token: one.access_token })).status).toBe(200)
    expect(await state(service, one.access_token)).toBe(false)
    expect(await state(service, other.access_token)).toBe(true)
    expect((await refresh(service, one.refresh_token)).status).toBe(200)
  })

  it.each(['access_token', 'refresh_token'] as const)(
    'C6.3.3 another client’s %s is invalid_grant and lives on',
    async (kind) => {
      const service = open()
      const tokens = await issue(service)
      for (const id of ['other', 'upstream']) {
        const { status, json } = await revoke(service, { token: tokens[kind] }, basic(id))
        expect([status, json.error]).toEqual([400, 'invalid_grant'])
      }
      expect(await state(service, tokens[kind])).toBe(true)
    },
  )

  it('C6.3.3 an unknown, expired, foreign or already revoked token is 200', async () => {
    const service = open()
    const { access_token, id_token, refresh_token } = await issue(service)
    await revoke(service, { token: refresh_token })
    for (const token of ['x', 'a.b.c', `${access_token}x`, id_token, refresh_token, access_token])
      expect((await revoke(service, { token })).status).toBe(200)
    service.clock.at += 3_600_000
    expect((await revoke(service, { token: access_token })).status).toBe(200)
  })

  it.each(['access_token', 'refresh_token', 'nonsense'])(
    'C6.3.3 RFC 7009 §2.1 the hint %s changes nothing',
    async (token_type_hint) => {
      const service = open()
      const { access_token, refresh_token } = await issue(service)
      for (const token of [access_token, refresh_token]) {
        expect((await revoke(service, { token, token_type_hint })).status).toBe(200)
        expect(await state(service, token)).toBe(false)
      }
    },
  )

  it('C6.3.3 a public client revokes its own tokens by its client_id', async () => {
    const service = open()
    const { token, record } = service.identity.dependencies.families.draw({
      client: 'pocketbooks',
      subject: 'sub-alice',
      scope: SCOPE,
      authTime: 1,
      grant: 'authorization_code',
    })
    await service.store.create(record.kind, record.key, record)
    expect((await revoke(service, { token, client_id: 'pocketbooks' }, '')).status).toBe(200)
    expect(await service.identity.dependencies.families.find(token)).toBeUndefined()
  })

  it('C6.3.3 its answers are not kept', async () => {
    const service = open()
    const { headers } = await revoke(service, { token: 'x' })
    expect(headers['Cache-Control']).toMatch(/no-(cache|store)/)
  })
})

describe('C6.3.3 revocation and introspection', () => {
  const BOTH = [
    ['revocation', revoke],
    ['introspection', introspect],
  ] as const

  it.each(BOTH)('C6.3.3 %s answers a failed client 401 with a Basic challenge', async (_, call) => {
    for (const authorization of [basic('acme-books', 'wrong'), basic('nobody'), '', 'Bearer x']) {
      const { status, headers, json } = await call(open(), { token: 'x' }, authorization)
      expect([status, json.error]).toEqual([401, 'invalid_client'])
      expect(headers['WWW-Authenticate']).toMatch(/^Basic realm="http:\/\/id\.test"/)
    }
  })

  it.each(BOTH)('C6.0 %s without a token is invalid_request', async (_, call) => {
    const { status, json } = await call(open(), {})
    expect([status, json.error]).toEqual([400, 'invalid_request'])
  })

  it.each(BOTH)('C6.1.2 %s takes client_secret_post, unless the client may not use it', async (_, call) => {
    const asked = { token: 'x', client_id: 'acme-books', client_secret: 'acme-books-secret' }
    expect((await call(open(), asked, '')).status).toBe(200)
    const clients = [client('acme-books', { authentication: ['client_secret_basic'] })]
    expect((await call(open({ clients }), asked, '')).status).toBe(401)
  })

  it.each(BOTH)('T3.7 %s is 503 where the store cannot be reached', async (_, call) => {
    const service = open()
    const { access_token, refresh_token } = await issue(service)
    service.store.find = () => Promise.reject(new Fault('identity_unavailable'))
    const { status, headers, json } = await call(service, { token: refresh_token })
    expect([status, json.error]).toEqual([503, 'temporarily_unavailable'])
    expect(headers).toHaveProperty('Retry-After')
    service.deps.issuedTokens.check = () => Promise.reject(new Fault('token_judge_unavailable'))
    expect((await call(service, { token: access_token })).status).toBe(503)
  })

  it('C6.3.2 are announced, with how clients authenticate', async () => {
    const { json } = await open().send({ method: 'GET', path: '/.well-known/openid-configuration' })
    const confidential = ['client_secret_basic', 'client_secret_post', 'private_key_jwt']
    expect(json).toMatchObject({
      revocation_endpoint: 'http://id.test/connect/revocation',
      revocation_endpoint_auth_methods_supported: [...confidential, 'none'],
      introspection_endpoint: 'http://id.test/connect/introspect',
      introspection_endpoint_auth_methods_supported: confidential,
    })
    expect(json.grant_types_supported).toContain('refresh_token')
  })
})

describe('C6.3.3 introspection', () => {
  it('C6.3.3 RFC 7662 tells a client about its own access token', async () => {
    const service = open()
    const { access_token } = await issue(service)
    const { status, headers, json } = await introspect(service, { token: access_token })
    const now = Math.floor(service.clock.at / 1000)
    expect(status).toBe(200)
    expect(headers['Cache-Control']).toBe('no-store')
    expect(json).toEqual({
      active: true,
      scope: SCOPE,
      client_id: 'acme-books',
      username: 'alice',
      token_type: 'bearer',
      iat: now,
      exp: now + 900,
      sub: 'sub-alice',
      aud: 'http://api.test',
      iss: 'http://id.test',
      jti: expect.any(String),
    })
  })

  it('C6.3.3 and about its own refresh token, without its audience or id', async () => {
    const service = open()
    const { refresh_token } = await issue(service)
    const { json } = await introspect(service, { token: refresh_token })
    expect(json).toEqual({
      active: true,
      scope: SCOPE,
      client_id: 'acme-books',
      username: 'alice',
      exp: Math.floor(service.clock.at / 1000) + 30 * 86_400,
      sub: 'sub-alice',
      iss: 'http://id.test',
    })
  })

  it('C6.3.3 another client’s token is inactive, unless the asker is a resource', async () => {
    const service = open()
    const { access_token, refresh_token } = await issue(service)
    for (const token of [access_token, refresh_token]) {
      expect((await introspect(service, { token }, basic('other'))).json).toEqual({ active: false })
      expect((await introspect(service, { token }, basic('upstream'))).json.active).toBe(true)
    }
  })

  it('C6.3.3 an unknown, malformed, expired or spent token, or an id_token, is inactive', async () => {
    const service = open()
    const { access_token, id_token, refresh_token } = await issue(service)
    for (const token of ['x', 'a.b.c', id_token, `${access_token}x`])
      expect((await introspect(service, { token })).json).toEqual({ active: false })
    await refresh(service, refresh_token)
    expect((await introspect(service, { token: refresh_token })).json.active).toBe(true)
    service.clock.at += 30_000
    expect((await introspect(service, { token: refresh_token })).json).toEqual({ active: false })
    service.clock.at += 900_000
    expect((await introspect(service, { token: access_token })).json).toEqual({ active: false })
  })

  it('C6.3.3 asking about a spent refresh token does not revoke its family', async () => {
    const service = open()
    const first = await issue(service)
    const second = (await refresh(service, first.refresh_token)).json
    service.clock.at += 31_000
    await introspect(service, { token: first.refresh_token })
    expect((await refresh(service, second.refresh_token)).status).toBe(200)
  })

  it('C6.3.3 a token of a disabled user is inactive', async () => {
    const service = open()
    const { refresh_token } = await issue(service)
    const after = open({ users: [user('alice', { disabled: true })], store: service.store })
    expect((await introspect(after, { token: refresh_token })).json).toEqual({ active: false })
  })

  it('RFC 7662 §2.1 is not for public clients, which cannot prove who they are', async () => {
    const { status, json } = await introspect(open(), { token: 'x', client_id: 'pocketbooks' }, '')
    expect([status, json.error]).toEqual([401, 'invalid_client'])
  })
})
