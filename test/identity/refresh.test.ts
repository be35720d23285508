import { MemoryStore } from '../../src/state/stores/sqlite/memory.ts'
import { SnapshotPlaces } from '../../src/identity/directory/records/places.ts'
import { describe, expect, it } from 'vitest'
import {
  requestToken,
  basic,
  client,
  openTestIdentity,
  user,
  verify,
  API,
  ISSUER,
  type JsonAnswer,
  type TestIdentity,
} from '../support/identity-under-test.ts'

const OFFLINE = 'openid profile offline_access fund.maintain target:b/ACME'

/** A family's first refresh token, by the password grant. */
async function begin(service: TestIdentity, scope = OFFLINE): Promise<JsonAnswer['json']> {
  const { status, json } = await requestToken(service, { scope })
  expect(status).toBe(200)
  return json
}

const refresh = (
  service: TestIdentity,
  token: string,
  params: Readonly<Record<string, string | undefined>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<JsonAnswer> =>
  requestToken(
    service,
    {
      grant_type: 'refresh_token',
      username: undefined,
      password: undefined,
      scope: undefined,
      refresh_token: token,
      ...params,
    },
    headers,
  )

const isGood = async (service: TestIdentity, token: string): Promise<boolean> => {
  try {
    await service.check.check(token)
    return true
  } catch {
    return false
  }
}

describe('C6.1.7 refresh', () => {
  it('C6.1.7 each use returns a new refresh token and a fresh access token of the same scope', async () => {
    const service = openTestIdentity()
    const first = await begin(service)
    const second = await refresh(service, first.refresh_token)
    expect(second.status).toBe(200)
    expect(second.json).toMatchObject({ token_type: 'bearer', expires_in: 900, scope: OFFLINE })
    expect(second.json.refresh_token).not.toBe(first.refresh_token)
    expect(second.json.access_token).not.toBe(first.access_token)
    const third = await refresh(service, second.json.refresh_token)
    expect(third.status).toBe(200)
    expect(await isGood(service, third.json.access_token)).toBe(true)
  })

  it('C6.1.7 its access token is the user’s, of the family and the client', async () => {
    const service = openTestIdentity()
    const first = await begin(service)
    const { json } = await refresh(service, first.refresh_token)
    const { payload } = await verify(json.access_token, API, 'at+jwt', service.clock.at)
    const before = await verify(first.access_token, API, 'at+jwt', service.clock.at)
    expect(payload).toMatchObject({ sub: 'sub-alice', client_id: 'acme-books', scope: OFFLINE })
    expect(payload['family']).toBe(before.payload['family'])
    expect(payload.jti).not.toBe(before.payload.jti)
  })

  it('C6.1.7 used again within the grace gives the same successor, with a fresh access token', async () => {
    const service = openTestIdentity()
    const { refresh_token } = await begin(service)
    const lost = await refresh(service, refresh_token)
    service.clock.at += 29_999
    const again = await refresh(service, refresh_token)
    expect(again.json.refresh_token).toBe(lost.json.refresh_token)
    expect(again.json.access_token).not.toBe(lost.json.access_token)
    expect((await refresh(service, again.json.refresh_token)).status).toBe(200)
  })

  it('C6.1.7 the grace counts from the first use, not from the last', async () => {
    const service = openTestIdentity()
    const { refresh_token } = await begin(service)
    for (const wait of [0, 20_000]) {
      service.clock.at += wait
      expect((await refresh(service, refresh_token)).status).toBe(200)
    }
    service.clock.at += 10_000
    expect((await refresh(service, refresh_token)).json.error).toBe('invalid_grant')
  })

  it('C6.1.7 T3.16 time in which the store did not answer is no part of the grace', async () => {
    const clock = { at: 0 }
    const store = new MemoryStore({ now: () => clock.at, monotonic: () => clock.at })
    let silent = 0
    Object.assign(store, { silentSince: () => silent })
    const service = openTestIdentity({ store })
    const { refresh_token } = await begin(service)
    const lost = await refresh(service, refresh_token)
    service.clock.at += 89_999
    silent = 60_000
    const again = await refresh(service, refresh_token)
    expect(again.json.refresh_token).toBe(lost.json.refresh_token)
    service.clock.at += 1
    expect((await refresh(service, refresh_token)).json.error).toBe('invalid_grant')
  })

  it('C6.1.7 used after the grace revokes the whole family, access tokens too', async () => {
    const service = openTestIdentity()
    const first = await begin(service)
    const second = (await refresh(service, first.refresh_token)).json
    service.clock.at += 30_000
    expect(await isGood(service, second.access_token)).toBe(true)
    const { status, json } = await refresh(service, first.refresh_token)
    expect([status, json.error]).toEqual([400, 'invalid_grant'])
    expect((await refresh(service, second.refresh_token)).json.error).toBe('invalid_grant')
    expect(await isGood(service, first.access_token)).toBe(false)
    expect(await isGood(service, second.access_token)).toBe(false)
    expect(service.notes).toContainEqual(expect.objectContaining({ event: 'refresh_token_replayed' }))
  })

  it('C6.1.7 used within the grace but after its successor revokes the whole family', async () => {
    const service = openTestIdentity()
    const first = await begin(service)
    const second = (await refresh(service, first.refresh_token)).json
    const third = (await refresh(service, second.refresh_token)).json
    expect((await refresh(service, first.refresh_token)).json.error).toBe('invalid_grant')
    for (const { refresh_token, access_token } of [second, third]) {
      expect((await refresh(service, refresh_token)).json.error).toBe('invalid_grant')
      expect(await isGood(service, access_token)).toBe(false)
    }
  })

  it('C6.1.7 other families of the same user and client go on', async () => {
    const service = openTestIdentity()
    const [stolen, other] = [await begin(service), await begin(service)]
    await refresh(service, stolen.refresh_token)
    service.clock.at += 30_000
    await refresh(service, stolen.refresh_token)
    expect((await refresh(service, other.refresh_token)).status).toBe(200)
    expect(await isGood(service, other.access_token)).toBe(true)
  })

  it('C6.1.7 50 parallel uses within the grace all get the same successor, each its own access token', async () => {
    const service = openTestIdentity()
    const { refresh_token } = await begin(service)
    const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(service, refresh_token)))
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200))
    expect(new Set(answers.map(({ json }) => json.refresh_token)).size).toBe(1)
    expect(new Set(answers.map(({ json }) => json.access_token)).size).toBe(50)
    expect((await refresh(service, answers[0]?.json.refresh_token)).status).toBe(200)
  })

  it('C6.1.7 is bound to its client; another’s attempt changes nothing', async () => {
    const service = openTestIdentity({ clients: [client('acme-books'), client('other')] })
    const { refresh_token, access_token } = await begin(service)
    for (const wait of [0, 31_000]) {
      service.clock.at += wait
      const { json } = await refresh(service, refresh_token, {}, { authorization: basic('other') })
      expect(json.error).toBe('invalid_grant')
    }
    expect(await isGood(service, access_token)).toBe(true)
    expect((await refresh(service, refresh_token)).status).toBe(200)
  })

  it('C6.1.7 a family ends after its lifetime, however often it was used', async () => {
    const service = openTestIdentity()
    let { refresh_token } = await begin(service)
    for (let day = 0; day < 29; day++) {
      service.clock.at += 86_400_000
      refresh_token = (await refresh(service, refresh_token)).json.refresh_token
    }
    service.clock.at += 86_400_000 - 1
    const last = await refresh(service, refresh_token)
    expect(last.status).toBe(200)
    service.clock.at += 1
    expect((await refresh(service, last.json.refresh_token)).json.error).toBe('invalid_grant')
  })

  it.each([
    ['a value of it', 'fund.maintain', 'fund.maintain target:b/ACME'],
    ['what it implies', 'fund.read', 'fund.read target:b/ACME'],
    ['with the target repeated', 'target:b/ACME openid', 'target:b/ACME openid'],
    ['with the target as it was left to be chosen', 'fund.read target:b', 'fund.read target:b/ACME'],
    ['all of it', OFFLINE, OFFLINE],
    ['all of it, as it was asked for before the choice', OFFLINE.replace('/ACME', ''), OFFLINE],
  ])('C6.1.7 narrows the access token to %s, and the target stays', async (_, scope, granted) => {
    const service = openTestIdentity()
    const { refresh_token } = await begin(service)
    const { json } = await refresh(service, refresh_token, { scope })
    expect(json.scope).toBe(granted)
    const { payload } = await verify(json.access_token, API, 'at+jwt', service.clock.at)
    expect(payload['scope']).toBe(granted)
    // The family's scope has not changed.
    expect((await refresh(service, json.refresh_token)).json.scope).toBe(OFFLINE)
  })

  it.each([
    ['a value that was not granted', 'openid business.fund.list'],
    ['an unknown value', 'openid nonsense'],
    ['another target', 'openid target:b/GLOBEX'],
    ['a fund of its business', 'openid target:f/ACME/SUPER1'],
    ['nothing but the target', 'target:b/ACME'],
    ['nothing but a bare target', 'target:b'],
    ['a bare target beside another one', 'openid target:b target:b/ACME'],
    ['a bare target of funds', 'openid target:f'],
  ])('C6.1.7 %s is invalid_scope, and the refresh token stays unused', async (_, scope) => {
    const service = openTestIdentity()
    const { refresh_token } = await begin(service)
    expect((await refresh(service, refresh_token, { scope })).json.error).toBe('invalid_scope')
    service.clock.at += 31_000
    expect((await refresh(service, refresh_token)).status).toBe(200)
  })

  it('C6.1.7 a family with openid gets an id_token: same iss, sub, aud, auth_time; new iat; no nonce', async () => {
    const service = openTestIdentity()
    const first = await begin(service)
    service.clock.at += 600_000
    const { json } = await refresh(service, first.refresh_token, { scope: 'fund.read' })
    const before = (await verify(first.id_token, 'acme-books', 'JWT', service.clock.at)).payload
    const after = (await verify(json.id_token, 'acme-books', 'JWT', service.clock.at)).payload
    for (const claim of ['iss', 'sub', 'aud', 'auth_time']) expect(after[claim]).toBe(before[claim])
    expect(after.iss).toBe(ISSUER)
    expect(after.iat).toBe((before.iat ?? 0) + 600)
    expect(after).not.toHaveProperty('nonce')
    expect(after['at_hash']).not.toBe(before['at_hash'])
  })

  it('C6.1.7 a family without openid gets none', async () => {
    const service = openTestIdentity()
    const { refresh_token } = await begin(service, 'offline_access fund.read target:b/ACME')
    expect((await refresh(service, refresh_token)).json).not.toHaveProperty('id_token')
  })

  it.each([
    ['an unknown one', 'x'.repeat(43), 'invalid_grant'],
    ['an access token', undefined, 'invalid_grant'],
    ['none', '', 'invalid_request'],
  ])('C6.1.4 with %s as refresh token', async (_, token, error) => {
    const service = openTestIdentity()
    const { access_token } = await begin(service)
    expect((await refresh(service, token ?? access_token)).json.error).toBe(error)
  })

  it('C6.1.0 the scope’s syntax and catalogue come before the token', async () => {
    expect((await refresh(openTestIdentity(), 'unknown', { scope: 'nonsense' })).json.error).toBe(
      'invalid_scope',
    )
  })

  it('C6.1.0 a client without the refresh grant is unauthorized_client', async () => {
    const service = openTestIdentity({ clients: [client('acme-books', { grants: ['password'] })] })
    expect((await refresh(service, 'x')).json.error).toBe('unauthorized_client')
  })

  it('C6.1.2 a public client refreshes with its client_id in the body', async () => {
    const grants = ['refresh_token'] as const
    const clients = [
      client('pocketbooks', { kind: 'public', secretHashes: [], grants }),
      client('acme-books'),
    ]
    const service = openTestIdentity({ clients })
    const { token, record } = service.identity.dependencies.families.draw({
      client: 'pocketbooks',
      subject: 'sub-alice',
      scope: 'offline_access fund.read target:b/ACME',
      authTime: 1,
      grant: 'authorization_code',
    })
    await service.store.create(record.kind, record.key, record)
    const asPublic = { client_id: 'pocketbooks' }
    const { status, json } = await refresh(service, token, asPublic, { authorization: '' })
    expect([status, json.scope]).toEqual([200, 'offline_access fund.read target:b/ACME'])
    const stranger = await refresh(service, json.refresh_token)
    expect(stranger.json.error).toBe('invalid_grant')
  })

  it('C12 tells the recorder of every refresh', async () => {
    const service = openTestIdentity()
    const { refresh_token } = await begin(service)
    await refresh(service, refresh_token)
    await refresh(service, 'unknown')
    expect(service.tokens.slice(1)).toMatchObject([
      { grant: 'refresh_token', result: 'issued', client: 'acme-books', subject: 'sub-alice' },
      { grant: 'refresh_token', result: 'invalid_grant', client: 'acme-books' },
    ])
  })
})

describe('C6.1.7 a refresh after the directory has changed', () => {
  const alice = user('alice')
  const noAccess = new Map([...alice.access].filter(([code]) => code !== 'ACME'))
  it.each([
    ['the user is gone', { users: [user('bob')] }],
    ['the user is disabled', { users: [user('alice', { disabled: true })] }],
    ['the user has lost the business', { users: [user('alice', { access: noAccess })] }],
    ['the user is no longer the customer’s', { users: [user('alice', { customers: [] })] }],
    ['the client has lost the business', { clients: [client('acme-books', { businesses: ['GLOBEX'] })] }],
    ['the business is gone', { deps: { places: new SnapshotPlaces(new Map()) } }],
  ])('is invalid_grant where %s', async (_, changed) => {
    const service = openTestIdentity()
    const { refresh_token } = await begin(service)
    const after = openTestIdentity({ ...changed, store: service.store })
    expect((await refresh(after, refresh_token)).json.error).toBe('invalid_grant')
    // Nothing was used up: the change may be taken back.
    service.clock.at += 31_000
    expect((await refresh(service, refresh_token)).status).toBe(200)
  })

  it('is invalid_client where the client is disabled', async () => {
    const service = openTestIdentity()
    const { refresh_token } = await begin(service)
    const after = openTestIdentity({
      clients: [client('acme-books', { disabled: true })],
      store: service.store,
    })
    expect((await refresh(after, refresh_token)).json.error).toBe('invalid_client')
  })

  it('gives no more than client and user may have today', async () => {
    const service = openTestIdentity()
    const { refresh_token } = await begin(service)
    const access = new Map([['ACME', { role: 'Reader', scopes: ['fund.read'] }]])
    const after = openTestIdentity({ users: [user('alice', { access })], store: service.store })
    const { json } = await refresh(after, refresh_token)
    expect(json.scope).toBe('openid profile offline_access target:b/ACME')
  })

  it('C6.3.5 ends for a locked user', async () => {
    const service = openTestIdentity()
    const { refresh_token } = await begin(service)
    const after = openTestIdentity({ users: [user('alice', { locked: true })], store: service.store })
    expect((await refresh(after, refresh_token)).json.error).toBe('invalid_grant')
  })
})
