import { describe, expect, it } from 'vitest'
import {
  ask,
  basic,
  client,
  openWorld,
  user,
  verify,
  API,
  ISSUER,
  type Told,
  type World,
} from './identity-under-test.ts'

const OFFLINE = 'openid profile offline_access fund.maintain target:b/ACME'

/** A family's first refresh token, by the password grant. */
async function begin(world: World, scope = OFFLINE): Promise<Told['json']> {
  const { status, json } = await ask(world, { scope })
  expect(status).toBe(200)
  return json
}

const refresh = (
  world: World,
  token: string,
  params: Readonly<Record<string, string | undefined>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Told> =>
  ask(
    world,
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

const isGood = async (world: World, token: string): Promise<boolean> => {
  try {
    await world.check.check(token)
    return true
  } catch {
    return false
  }
}

describe('C6.1.7 refresh', () => {
  it('C6.1.7 each use returns a new refresh token and a fresh access token of the same scope', async () => {
    const world = openWorld()
    const first = await begin(world)
    const second = await refresh(world, first.refresh_token)
    expect(second.status).toBe(200)
    expect(second.json).toMatchObject({ token_type: 'bearer', expires_in: 900, scope: OFFLINE })
    expect(second.json.refresh_token).not.toBe(first.refresh_token)
    expect(second.json.access_token).not.toBe(first.access_token)
    const third = await refresh(world, second.json.refresh_token)
    expect(third.status).toBe(200)
    expect(await isGood(world, third.json.access_token)).toBe(true)
  })

  it('C6.1.7 its access token is the user’s, of the family and the client', async () => {
    const world = openWorld()
    const first = await begin(world)
    const { json } = await refresh(world, first.refresh_token)
    const { payload } = await verify(json.access_token, API, 'at+jwt', world.clock.at)
    const before = await verify(first.access_token, API, 'at+jwt', world.clock.at)
    expect(payload).toMatchObject({ sub: 'sub-alice', client_id: 'acme-books', scope: OFFLINE })
    expect(payload['family']).toBe(before.payload['family'])
    expect(payload.jti).not.toBe(before.payload.jti)
  })

  it('C6.1.7 used again within the grace gives the same successor, with a fresh access token', async () => {
    const world = openWorld()
    const { refresh_token } = await begin(world)
    const lost = await refresh(world, refresh_token)
    world.clock.at += 29_999
    const again = await refresh(world, refresh_token)
    expect(again.json.refresh_token).toBe(lost.json.refresh_token)
    expect(again.json.access_token).not.toBe(lost.json.access_token)
    expect((await refresh(world, again.json.refresh_token)).status).toBe(200)
  })

  it('C6.1.7 the grace counts from the first use, not from the last', async () => {
    const world = openWorld()
    const { refresh_token } = await begin(world)
    for (const wait of [0, 20_000]) {
      world.clock.at += wait
      expect((await refresh(world, refresh_token)).status).toBe(200)
    }
    world.clock.at += 10_000
    expect((await refresh(world, refresh_token)).json.error).toBe('invalid_grant')
  })

  it('C6.1.7 used after the grace revokes the whole family, access tokens too', async () => {
    const world = openWorld()
    const first = await begin(world)
    const second = (await refresh(world, first.refresh_token)).json
    world.clock.at += 30_000
    expect(await isGood(world, second.access_token)).toBe(true)
    const { status, json } = await refresh(world, first.refresh_token)
    expect([status, json.error]).toEqual([400, 'invalid_grant'])
    expect((await refresh(world, second.refresh_token)).json.error).toBe('invalid_grant')
    expect(await isGood(world, first.access_token)).toBe(false)
    expect(await isGood(world, second.access_token)).toBe(false)
    expect(world.notes).toContainEqual(expect.objectContaining({ event: 'refresh_token_replayed' }))
  })

  it('C6.1.7 used within the grace but after its successor revokes the whole family', async () => {
    const world = openWorld()
    const first = await begin(world)
    const second = (await refresh(world, first.refresh_token)).json
    const third = (await refresh(world, second.refresh_token)).json
    expect((await refresh(world, first.refresh_token)).json.error).toBe('invalid_grant')
    for (const { refresh_token, access_token } of [second, third]) {
      expect((await refresh(world, refresh_token)).json.error).toBe('invalid_grant')
      expect(await isGood(world, access_token)).toBe(false)
    }
  })

  it('C6.1.7 other families of the same user and client go on', async () => {
    const world = openWorld()
    const [stolen, other] = [await begin(world), await begin(world)]
    await refresh(world, stolen.refresh_token)
    world.clock.at += 30_000
    await refresh(world, stolen.refresh_token)
    expect((await refresh(world, other.refresh_token)).status).toBe(200)
    expect(await isGood(world, other.access_token)).toBe(true)
  })

  it('C6.1.7 50 parallel uses within the grace all get the same successor, each its own access token', async () => {
    const world = openWorld()
    const { refresh_token } = await begin(world)
    const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(world, refresh_token)))
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200))
    expect(new Set(answers.map(({ json }) => json.refresh_token)).size).toBe(1)
    expect(new Set(answers.map(({ json }) => json.access_token)).size).toBe(50)
    expect((await refresh(world, answers[0]?.json.refresh_token)).status).toBe(200)
  })

  it('C6.1.7 is bound to its client; another’s attempt changes nothing', async () => {
    const world = openWorld({ clients: [client('acme-books'), client('other')] })
    const { refresh_token, access_token } = await begin(world)
    for (const wait of [0, 31_000]) {
      world.clock.at += wait
      const { json } = await refresh(world, refresh_token, {}, { authorization: basic('other') })
      expect(json.error).toBe('invalid_grant')
    }
    expect(await isGood(world, access_token)).toBe(true)
    expect((await refresh(world, refresh_token)).status).toBe(200)
  })

  it('C6.1.7 a family ends after its lifetime, however often it was used', async () => {
    const world = openWorld()
    let { refresh_token } = await begin(world)
    for (let day = 0; day < 29; day++) {
      world.clock.at += 86_400_000
      refresh_token = (await refresh(world, refresh_token)).json.refresh_token
    }
    world.clock.at += 86_400_000 - 1
    const last = await refresh(world, refresh_token)
    expect(last.status).toBe(200)
    world.clock.at += 1
    expect((await refresh(world, last.json.refresh_token)).json.error).toBe('invalid_grant')
  })

  it.each([
    ['a value of it', 'fund.maintain', 'fund.maintain target:b/ACME'],
    ['what it implies', 'fund.read', 'fund.read target:b/ACME'],
    ['with the target repeated', 'target:b/ACME openid', 'target:b/ACME openid'],
    ['all of it', OFFLINE, OFFLINE],
  ])('C6.1.7 narrows the access token to %s, and the target stays', async (_, scope, granted) => {
    const world = openWorld()
    const { refresh_token } = await begin(world)
    const { json } = await refresh(world, refresh_token, { scope })
    expect(json.scope).toBe(granted)
    const { payload } = await verify(json.access_token, API, 'at+jwt', world.clock.at)
    expect(payload['scope']).toBe(granted)
    // The family's scope has not changed.
    expect((await refresh(world, json.refresh_token)).json.scope).toBe(OFFLINE)
  })

  it.each([
    ['a value that was not granted', 'openid business.fund.list'],
    ['an unknown value', 'openid nonsense'],
    ['another target', 'openid target:b/GLOBEX'],
    ['a fund of its business', 'openid target:f/ACME/SUPER1'],
    ['nothing but the target', 'target:b/ACME'],
  ])('C6.1.7 %s is invalid_scope, and the refresh token stays unused', async (_, scope) => {
    const world = openWorld()
    const { refresh_token } = await begin(world)
    expect((await refresh(world, refresh_token, { scope })).json.error).toBe('invalid_scope')
    world.clock.at += 31_000
    expect((await refresh(world, refresh_token)).status).toBe(200)
  })

  it('C6.1.7 a family with openid gets an id_token: same iss, sub, aud, auth_time; new iat; no nonce', async () => {
    const world = openWorld()
    const first = await begin(world)
    world.clock.at += 600_000
    const { json } = await refresh(world, first.refresh_token, { scope: 'fund.read' })
    const before = (await verify(first.id_token, 'acme-books', 'JWT', world.clock.at)).payload
    const after = (await verify(json.id_token, 'acme-books', 'JWT', world.clock.at)).payload
    for (const claim of ['iss', 'sub', 'aud', 'auth_time']) expect(after[claim]).toBe(before[claim])
    expect(after.iss).toBe(ISSUER)
    expect(after.iat).toBe((before.iat ?? 0) + 600)
    expect(after).not.toHaveProperty('nonce')
    expect(after['at_hash']).not.toBe(before['at_hash'])
  })

  it('C6.1.7 a family without openid gets none', async () => {
    const world = openWorld()
    const { refresh_token } = await begin(world, 'offline_access fund.read target:b/ACME')
    expect((await refresh(world, refresh_token)).json).not.toHaveProperty('id_token')
  })

  it.each([
    ['an unknown one', 'x'.repeat(43), 'invalid_grant'],
    ['an access token', undefined, 'invalid_grant'],
    ['none', '', 'invalid_request'],
  ])('C6.1.4 with %s as refresh token', async (_, token, error) => {
    const world = openWorld()
    const { access_token } = await begin(world)
    expect((await refresh(world, token ?? access_token)).json.error).toBe(error)
  })

  it('C6.1.0 the scope’s syntax and catalogue come before the token', async () => {
    expect((await refresh(openWorld(), 'unknown', { scope: 'nonsense' })).json.error).toBe('invalid_scope')
  })

  it('C6.1.0 a client without the refresh grant is unauthorized_client', async () => {
    const world = openWorld({ clients: [client('acme-books', { grants: ['password'] })] })
    expect((await refresh(world, 'x')).json.error).toBe('unauthorized_client')
  })

  it('C6.1.2 a public client refreshes with its client_id in the body', async () => {
    const grants = ['refresh_token'] as const
    const clients = [
      client('pocketbooks', { kind: 'public', secretHashes: [], grants }),
      client('acme-books'),
    ]
    const world = openWorld({ clients })
    const { token } = await world.identity.dependencies.families.create({
      client: 'pocketbooks',
      subject: 'sub-alice',
      scope: 'offline_access fund.read target:b/ACME',
      authTime: 1,
      grant: 'authorization_code',
    })
    const asPublic = { client_id: 'pocketbooks' }
    const { status, json } = await refresh(world, token, asPublic, { authorization: '' })
    expect([status, json.scope]).toEqual([200, 'offline_access fund.read target:b/ACME'])
    const stranger = await refresh(world, json.refresh_token)
    expect(stranger.json.error).toBe('invalid_grant')
  })

  it('C12 tells the recorder of every refresh', async () => {
    const world = openWorld()
    const { refresh_token } = await begin(world)
    await refresh(world, refresh_token)
    await refresh(world, 'unknown')
    expect(world.tokens.slice(1)).toMatchObject([
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
    ['the business is gone', { deps: { places: { findBusiness: () => undefined } } }],
  ])('is invalid_grant where %s', async (_, changed) => {
    const world = openWorld()
    const { refresh_token } = await begin(world)
    const after = openWorld({ ...changed, store: world.store })
    expect((await refresh(after, refresh_token)).json.error).toBe('invalid_grant')
    // Nothing was used up: the change may be taken back.
    world.clock.at += 31_000
    expect((await refresh(world, refresh_token)).status).toBe(200)
  })

  it('is invalid_client where the client is disabled', async () => {
    const world = openWorld()
    const { refresh_token } = await begin(world)
    const after = openWorld({ clients: [client('acme-books', { disabled: true })], store: world.store })
    expect((await refresh(after, refresh_token)).json.error).toBe('invalid_client')
  })

  it('gives no more than client and user may have today', async () => {
    const world = openWorld()
    const { refresh_token } = await begin(world)
    const access = new Map([['ACME', { role: 'Reader', scopes: ['fund.read'] }]])
    const after = openWorld({ users: [user('alice', { access })], store: world.store })
    const { json } = await refresh(after, refresh_token)
    expect(json.scope).toBe('openid profile offline_access target:b/ACME')
  })

  it('C6.3.5 ends for a locked user', async () => {
    const world = openWorld()
    const { refresh_token } = await begin(world)
    const after = openWorld({ users: [user('alice', { locked: true })], store: world.store })
    expect((await refresh(after, refresh_token)).json.error).toBe('invalid_grant')
  })
})
