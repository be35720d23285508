import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import { userinfo } from '../../../src/identity/tokens/claims.ts'
import { parseTarget } from '../../../src/base/config/scopes/scope-token.ts'
import {
  ISSUER,
  openTestIdentity,
  user,
  type TestIdentityOptions,
} from '../../support/identity-under-test.ts'
import { scopeOf } from '../../support/scope.ts'

const describeUser = (scope: string, options: TestIdentityOptions = {}, more: Partial<Principal> = {}) => {
  const values = scope.split(' ')
  const target = values.map(parseTarget).find((each) => each !== undefined)
  return userinfo(openTestIdentity(options).identity.dependencies).describe({
    ...{ subject: 'sub-alice', client: 'acme-books', clientKey: 'acme-books', issuer: ISSUER },
    ...{ ...scopeOf(scope), target },
    ...{ tokenId: 't', family: undefined, issuedAt: 0, expiresAt: 1 },
    key: { isTrusted: () => true },
    ...more,
  })
}

describe('C5.6 claims', () => {
  it.each<[string, object]>([
    ['openid', {}],
    ['openid profile', { name: 'Alice Arden', given_name: 'Alice' }],
    ['openid email', { email: 'alice@acme.test' }],
    ['openid address', { address: { locality: 'Perth' } }],
    ['openid phone', { phone_number: '+61 8 5550 0100' }],
  ])('C5.6 %s opens what is known of it, and sub', async (scope, claims) => {
    expect(await describeUser(scope)).toEqual({ sub: 'sub-alice', ...claims })
  })

  it('C5.6 leaves out what is not known', async () => {
    const bare = { users: [user('alice', { claims: { email: '', address: {} } })] }
    const scope = 'openid profile email address phone'
    expect(await describeUser(scope, bare)).toEqual({ sub: 'sub-alice' })
  })

  it('C5.6 service_profile is about the business of the token', async () => {
    expect(await describeUser('openid service_profile target:f/ACME/SUPER1')).toEqual({
      sub: 'sub-alice',
      service_profile: {
        service_role: 'Administrator',
        business_name: 'Acme Advisory',
        business_code: 'ACME',
        business_address: { locality: 'Perth', country: 'AU' },
        business_phone_number: '+61 8 5550 0199',
      },
    })
  })

  it('C5.6 service_profile has the members that are known', async () => {
    expect(await describeUser('openid service_profile target:b/INITECH')).toMatchObject({
      service_profile: { service_role: 'Administrator', business_name: 'Initech', business_code: 'INITECH' },
    })
  })

  it.each(['openid service_profile', 'openid service_profile target:b/GLOBEX'])(
    'C5.6 service_profile is there, and empty, without a business of the user (%s)',
    async (scope) => {
      expect(await describeUser(scope)).toEqual({ sub: 'sub-alice', service_profile: {} })
    },
  )
})

describe('C6.3.1 the user of a token', () => {
  it.each<[string, TestIdentityOptions, Partial<Principal>]>([
    ['is gone', { users: [] }, {}],
    ['is disabled', { users: [user('alice', { disabled: true })] }, {}],
    ['is another issuer’s', {}, { issuer: 'https://other.test' }],
  ])('C6.3.1 the token is bad if its user %s', async (_, options, more) => {
    await expect(describeUser('openid', options, more)).rejects.toMatchObject({ code: 'invalid_token' })
  })

  it('C4.15 says 503 if the directory cannot be reached', async () => {
    const down = () => Promise.reject(new Error('down'))
    const people = { findClient: down, findUserByName: down, findUserBySubject: down }
    await expect(describeUser('openid', { deps: { people } })).rejects.toMatchObject({
      code: 'token_judge_unavailable',
    })
  })
})
