import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { patientGuessing } from '../support/guessing.ts'
import { bearer, expectFault, form, send } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { basic, issueToken, type TokenRequest } from '../support/tokens.ts'

let gateway: StartedPostern
beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing', change: patientGuessing })
})
afterAll(() => gateway.close())

const granted = async (scope: string, more: Partial<TokenRequest> = {}, of = gateway): Promise<string> =>
  (await issueToken(of, { ...more, scope })).scope

/** The answer of the token endpoint, whatever it is. Without a scope if it is undefined. */
async function asked(
  scope: string | undefined,
  { client = 'acme-books', username = 'alice' }: { client?: string; username?: string } = {},
  of = gateway,
): Promise<{ status: number; error?: string; scope?: string }> {
  const fields = { grant_type: 'password', username, password: `${username}-password` }
  const { headers, body } = form({ ...fields, ...(scope !== undefined && { scope }) })
  const authorization = { Authorization: basic(client) }
  const sent = { method: 'POST', target: '/connect/token', headers: { ...headers, ...authorization }, body }
  const response = await send(of, sent)
  return { status: response.status, ...(JSON.parse(response.body) as object) }
}
const INVALID = { status: 400, error: 'invalid_scope' }
const BOB = { username: 'bob', client: 'globex-ledger' }

const status = async (scope: string, path: string, method = 'GET'): Promise<number> => {
  const { access_token } = await issueToken(gateway, { scope })
  const response = await send(gateway, { method, target: `/api/1.0/${path}`, headers: bearer(access_token) })
  return response.status
}

describe('C5.1, C5.2: the catalogue', () => {
  const DATA = ['business.fund.list', 'business.fund.create', 'fund.details.read', 'fund.details.maintain']
  const MORE = ['fund.member.read', 'fund.member.maintain', 'fund.read', 'fund.maintain', 'api1']
  const BUILT_IN = ['openid', 'profile', 'email', 'address', 'phone', 'service_profile', 'offline_access']

  it.each([...BUILT_IN, ...DATA, ...MORE])('C5.1, C5.2: %s can be asked for', async (value) => {
    expect(await granted(`${value} target:b/ACME`)).toBe(`${value} target:b/ACME`)
  })

  it('C5.1: what configuration adds to the catalogue can be asked for, what it leaves out cannot', async () => {
    const change = ({ scopes, ...rest }: Configuration): Configuration => {
      const others = Object.fromEntries(Object.entries(scopes).filter(([name]) => name !== 'api1'))
      const own = { description: 'Own', implies: ['fund.member.read'] }
      return patientGuessing({ ...rest, scopes: { ...others, 'own.scope': own } })
    }
    const without = (loaded: Configuration): Configuration =>
      JSON.parse(JSON.stringify(change(loaded)).replaceAll(/\bapi1\b/g, 'own.scope')) as Configuration
    const own = await postern({ keeps: 'nothing', change: without })
    expect(await granted('own.scope target:b/ACME', {}, own)).toBe('own.scope target:b/ACME')
    expect(await asked('api1 target:b/ACME', {}, own)).toMatchObject(INVALID)
  })
})

describe('C5.2, C5.3: what a scope opens', () => {
  const OPENS: readonly (readonly [scope: string, opens: string, method: string, status: number])[] = [
    ['fund.read', 'b/ACME/fund-data/fund-list', 'GET', 200],
    ['business.fund.list', 'b/ACME/fund-data/fund-list', 'GET', 200],
    ['fund.maintain', 'b/ACME/fund-data/fund-list', 'GET', 200],
    ['fund.details.read', 'b/ACME/fund-data/fund-list', 'GET', 401],
    ['business.fund.create', 'b/ACME/fund-data/fund-list', 'GET', 401],
    ['business.fund.create', 'b/ACME/fund-data/fund-create', 'POST', 400],
    ['fund.maintain', 'b/ACME/fund-data/fund-create', 'POST', 401],
    ['business.fund.list', 'b/ACME/fund-data/fund-create', 'POST', 401],
    ['fund.details.read', 'f/ACME/SUPER1/fund-data/fund-detail', 'GET', 200],
    ['fund.details.maintain', 'f/ACME/SUPER1/fund-data/fund-detail', 'GET', 200],
    ['fund.read', 'f/ACME/SUPER1/fund-data/fund-detail', 'GET', 200],
    ['fund.maintain', 'f/ACME/SUPER1/fund-data/fund-detail', 'GET', 200],
    ['fund.member.maintain', 'f/ACME/SUPER1/fund-data/fund-detail', 'GET', 401],
    ['fund.details.maintain', 'f/ACME/SUPER1/fund-data/fund-detail', 'POST', 400],
    ['fund.maintain', 'f/ACME/SUPER1/fund-data/fund-detail', 'POST', 400],
    ['fund.details.read', 'f/ACME/SUPER1/fund-data/fund-detail', 'POST', 401],
    ['fund.read', 'f/ACME/SUPER1/fund-data/fund-detail', 'POST', 401],
    ['fund.member.read', 'f/ACME/SUPER1/member-data/member-list', 'GET', 200],
    ['fund.member.maintain', 'f/ACME/SUPER1/member-data/member-list', 'GET', 200],
    ['fund.read', 'f/ACME/SUPER1/member-data/member-list', 'GET', 200],
    ['fund.details.maintain', 'f/ACME/SUPER1/member-data/member-list', 'GET', 401],
    ['api1', 'f/ACME/SUPER1/member-data/member-list', 'GET', 401],
  ]

  it.each(OPENS)('C5.3: %s at %s, %s: %i', async (scope, path, method, expected) => {
    expect(await status(`${scope} target:b/ACME`, path, method)).toBe(expected)
  })
})

describe('C5.4: the target', () => {
  it('C5.4: picks the business, for business and fund URLs', async () => {
    expect(await status('fund.read target:b/GLOBEX', 'b/GLOBEX/fund-data/fund-list')).toBe(200)
    expect(await status('fund.read target:b/GLOBEX', 'f/GLOBEX/GROWTH/fund-data/fund-detail')).toBe(200)
    expect(await status('fund.read target:b/GLOBEX', 'b/ACME/fund-data/fund-list')).toBe(404)
    expect(await status('fund.read target:b/GLOBEX', 'f/ACME/SUPER1/fund-data/fund-detail')).toBe(404)
  })

  it('C5.4: of a fund opens fund-level URLs of that fund only', async () => {
    const scope = 'fund.read business.fund.list target:f/ACME/SUPER1'
    expect(await granted(scope)).toBe(scope)
    expect(await status(scope, 'f/ACME/SUPER1/fund-data/fund-detail')).toBe(200)
    expect(await status(scope, 'f/ACME/SUPER1/member-data/member-list')).toBe(200)
    expect(await status(scope, 'f/ACME/SUPER2/fund-data/fund-detail')).toBe(404)
    expect(await status(scope, 'f/GLOBEX/GROWTH/fund-data/fund-detail')).toBe(404)
    expect(await status(scope, 'b/ACME/fund-data/fund-list')).toBe(404)
  })

  it.each([
    ['two different ones', 'fund.read target:b/ACME target:b/GLOBEX'],
    ['a business and a fund', 'fund.read target:b/ACME target:f/ACME/SUPER1'],
    ['two funds', 'fund.read target:f/ACME/SUPER1 target:f/ACME/SUPER2'],
    ['a business that is not the client’s', 'fund.read target:b/INITECH'],
    ['a business that is nobody’s', 'fund.read target:b/NOWHERE'],
    ['a business in another case', 'fund.read target:b/acme'],
    ['an unknown fund', 'fund.read target:f/ACME/NOTHING'],
    ['a fund of another business', 'fund.read target:f/ACME/GROWTH'],
    ['the bare target:b', 'fund.read target:b'],
    ['target:b/ without a code', 'fund.read target:b/'],
    ['target:f without a fund', 'fund.read target:f/ACME'],
    ['another kind of target', 'fund.read target:x/ACME'],
    ['a target with more behind it', 'fund.read target:b/ACME/SUPER1'],
  ])('C5.4: %s is invalid_scope', async (_what, scope) => {
    expect(await asked(scope)).toMatchObject(INVALID)
  })

  it("C5.4: a business that is the client's but not the user's is invalid_scope", async () => {
    expect(await asked('fund.read target:b/ACME', { username: 'bob' })).toMatchObject(INVALID)
    expect(await asked('fund.read target:b/GLOBEX', { username: 'bob' })).toMatchObject({ status: 200 })
  })

  it("C5.4: a business that is the user's but not the client's is invalid_scope", async () => {
    expect(await asked('fund.read target:b/ACME', BOB)).toMatchObject(INVALID)
  })

  it('C5.4: identical values are merged', async () => {
    const twice = 'fund.read target:b/ACME fund.read target:b/ACME'
    expect(await granted(twice)).toBe('fund.read target:b/ACME')
  })

  it('C5.4: a data scope without a target is granted, but matches no business', async () => {
    expect(await granted('fund.read')).toBe('fund.read')
    expect(await status('fund.read', 'b/ACME/fund-data/fund-list')).toBe(404)
    expect(await status('fund.read', 'f/ACME/SUPER1/fund-data/fund-detail')).toBe(404)
  })
})

describe('C5.5: what is granted', () => {
  it('C5.5: the values that client and user may have, in request order', async () => {
    const scope = 'target:b/ACME fund.member.read openid business.fund.list profile'
    expect(await granted(scope)).toBe(scope)
  })

  it('C5.5: a value implied by what they may have is kept as it is, not replaced or expanded', async () => {
    // Alice's role has fund.maintain; so has the client.
    expect(await granted('fund.details.read target:b/ACME')).toBe('fund.details.read target:b/ACME')
    expect(await granted('fund.maintain target:b/ACME')).toBe('fund.maintain target:b/ACME')
  })

  it('C5.5: what the user may not have is dropped, whole', async () => {
    const scope = 'fund.maintain openid fund.details.maintain fund.member.read target:b/GLOBEX'
    expect(await granted(scope, BOB)).toBe('openid fund.member.read target:b/GLOBEX')
  })

  it('C5.5: what the client may not have is dropped, whole; no scope and no default is invalid_scope', async () => {
    const change = (loaded: Configuration): Configuration => {
      const clients = loaded.directory.clients as Record<string, object>
      const books = {
        ...clients['acme-books'],
        scopes: ['openid', 'fund.details.maintain'],
        defaultScope: undefined,
      }
      const directory = { ...loaded.directory, clients: { ...clients, 'acme-books': books } }
      return { ...loaded, directory: directory as never }
    }
    const own = await postern({ keeps: 'nothing', change })
    const scope = 'fund.maintain fund.details.read profile openid fund.read target:b/ACME'
    expect(await granted(scope, {}, own)).toBe('fund.details.read openid target:b/ACME')
    for (const none of [undefined, '  ']) expect(await asked(none, {}, own)).toMatchObject(INVALID)
  })

  it.each([
    ['a value that is not in the catalogue', 'openid no.such.value'],
    ['a value in another case', 'openid Fund.Read'],
    ['nothing but a target', 'target:b/ACME'],
  ])('C5.5: %s is invalid_scope', async (_what, scope) => {
    expect(await asked(scope)).toMatchObject(INVALID)
  })

  it('C5.5: nothing but a target left is invalid_scope', async () => {
    expect(await asked('fund.maintain target:b/GLOBEX', BOB)).toMatchObject(INVALID)
  })

  it('C5.5: without a scope, the configured default of the client, which the demo’s first one has', async () => {
    const response = await fetch(`${gateway.authUrl}/connect/token`, {
      method: 'POST',
      headers: { Authorization: basic('acme-books') },
      body: new URLSearchParams({ grant_type: 'password', username: 'alice', password: 'alice-password' }),
    })
    expect(response.status).toBe(200)
    const { access_token: token } = (await response.json()) as { access_token: string }
    const call = (business: string) =>
      send(gateway, { target: `/api/1.0/b/${business}/fund-data/fund-list`, headers: bearer(token) })
    expect((await call('ACME')).status).toBe(200)
    expect((await call('GLOBEX')).status).toBe(404)
  })
})

describe('C5.6: claims', () => {
  async function userinfo(scope: string, more: Partial<TokenRequest> = {}): Promise<object> {
    const { access_token } = await issueToken(gateway, { ...more, scope })
    const response = await send(gateway, {
      target: '/api/1.0/u/connect/userinfo',
      headers: bearer(access_token),
    })
    expect(response.status).toBe(200)
    return JSON.parse(response.body) as object
  }
  const sub = '45733adb-9b07-4d40-ae57-20cf9b802f51'
  const bobs = '4da89196-be00-4453-822c-942cd45e0f08'

  it('C5.6: sub always, and nothing else for openid alone', async () => {
    expect(await userinfo('openid fund.read target:b/ACME')).toEqual({ sub })
  })

  it('C5.6: profile', async () => {
    expect(await userinfo('openid profile')).toEqual({
      sub,
      name: 'Alice Beatrice Arden',
      given_name: 'Alice',
      middle_name: 'Beatrice',
      family_name: 'Arden',
      gender: 'female',
    })
  })

  it('C5.6: email, phone, and address as an object', async () => {
    expect(await userinfo('openid email phone address')).toEqual({
      sub,
      email: 'alice@example.com',
      phone_number: '+61 2 5550 1001',
      address: {
        street_address: '7 Orchard Lane',
        locality: 'Sydney',
        region: 'NSW',
        postal_code: '2010',
        country: 'Australia',
      },
    })
  })

  it("C5.6: service_profile, of the token's business", async () => {
    expect(await userinfo('openid service_profile target:b/ACME')).toEqual({
      sub,
      service_profile: {
        service_role: 'Administrator',
        business_name: 'Acme Advisory',
        business_code: 'ACME',
        business_address: {
          street_address: '1 Example Street',
          locality: 'Sydney',
          region: 'NSW',
          postal_code: '2000',
          country: 'Australia',
        },
        business_phone_number: '+61 2 5550 1000',
      },
    })
    expect(await userinfo('openid service_profile target:b/GLOBEX', BOB)).toMatchObject({
      service_profile: { service_role: 'Read-only', business_code: 'GLOBEX' },
    })
  })

  it('C5.6: service_profile is there without a business too, its members where known', async () => {
    expect(await userinfo('openid service_profile')).toEqual({ sub, service_profile: {} })
  })

  it('C5.6: a claim without data is left out', async () => {
    expect(await userinfo('openid profile email phone address', BOB)).toEqual({
      sub: bobs,
      name: 'Bob Baker',
      given_name: 'Bob',
      family_name: 'Baker',
      email: 'bob@example.com',
    })
  })

  it('C13: no email_verified or phone_number_verified', async () => {
    const claims = await userinfo('openid email phone')
    expect(claims).not.toHaveProperty('email_verified')
    expect(claims).not.toHaveProperty('phone_number_verified')
  })

  it('C5.6: openid is needed for userinfo itself', async () => {
    const { access_token } = await issueToken(gateway, { scope: 'profile email' })
    const headers = bearer(access_token)
    expectFault(await send(gateway, { target: '/api/1.0/u/connect/userinfo', headers }), 'insufficient_scope')
  })
})
