import { describe, expect, it } from 'vitest'
import { requestToken, client, openTestIdentity, user } from '../support/identity-under-test.ts'

const granted = async (scope: string | undefined, service = openTestIdentity()) => {
  const { json } = await requestToken(service, { scope })
  return (json.error ?? json.scope) as string
}

describe('C5.4 the target', () => {
  it.each([
    'openid target:b/ACME target:b/GLOBEX',
    'openid target:b/ACME target:f/ACME/SUPER1',
    'openid target:b/INITECH',
    'openid target:b/GLOBEX',
    'openid target:b/acme',
    'openid target:b/NOWHERE',
    'openid target:f/ACME/NOFUND',
    'openid target:f/GLOBEX/ANY',
    'openid target:b',
    'openid target',
    'openid target:b/',
    'openid target:b/ACME/',
    'openid target:f/ACME',
    'openid target:x/ACME',
  ])('C5.4 %s is invalid_scope', async (scope) => {
    expect(await granted(scope)).toBe('invalid_scope')
  })

  it('C5.4 identical targets are merged', async () => {
    expect(await granted('target:b/ACME openid target:b/ACME openid')).toBe('target:b/ACME openid')
  })

  it('C5.4 a fund is opened by its own target', async () => {
    const service = openTestIdentity()
    expect(await granted('fund.read target:f/ACME/SUPER1', service)).toBe('fund.read target:f/ACME/SUPER1')
    expect(service.primed[0]?.principal.target).toEqual({ level: 'fund', business: 'ACME', fund: 'SUPER1' })
  })

  it('C5.4 a fund of a business with any funds is the backend’s to know', async () => {
    const access = new Map([['GLOBEX', { role: 'R', scopes: ['fund.read'] }]])
    const service = openTestIdentity({ users: [user('alice', { access })] })
    expect(await granted('fund.read target:f/GLOBEX/WHATEVER', service)).toBe(
      'fund.read target:f/GLOBEX/WHATEVER',
    )
  })

  it('C5.4 a data scope without a target is granted, with no target', async () => {
    const service = openTestIdentity()
    expect(await granted('fund.read', service)).toBe('fund.read')
    expect(service.primed[0]?.principal.target).toBeUndefined()
  })
})

describe('C5.5 what is granted', () => {
  it('C5.5 keeps the request’s order and does not expand', async () => {
    expect(await granted('target:b/ACME fund.maintain openid fund.details.read')).toBe(
      'target:b/ACME fund.maintain openid fund.details.read',
    )
  })

  it('C5.5 keeps a value that both have by implication', async () => {
    const service = openTestIdentity({ clients: [client('acme-books', { scopes: ['fund.read'] })] })
    expect(await granted('fund.details.read target:b/ACME', service)).toBe('fund.details.read target:b/ACME')
  })

  it('C5.5 drops a value whole that the client may not have', async () => {
    const service = openTestIdentity({ clients: [client('acme-books', { scopes: ['openid', 'fund.read'] })] })
    expect(await granted('openid fund.maintain target:b/ACME', service)).toBe('openid target:b/ACME')
  })

  it('C5.5 drops a value whole that the user may not have at that business', async () => {
    expect(await granted('openid business.fund.create target:b/ACME')).toBe('openid target:b/ACME')
  })

  it.each([
    'target:b/ACME',
    'business.fund.create target:b/ACME',
    'openid no.such',
    'openid OPENID',
    'openid "',
  ])('C5.5 %s is invalid_scope', async (scope) => {
    expect(await granted(scope)).toBe('invalid_scope')
  })

  it('C5.5 without a scope the client’s default counts, else it is invalid_scope', async () => {
    const service = openTestIdentity({
      clients: [client('acme-books', { defaultScope: 'fund.read target:b/ACME' })],
    })
    expect(await granted(undefined, service)).toBe('fund.read target:b/ACME')
    expect(await granted('   ', service)).toBe('fund.read target:b/ACME')
    expect(await granted(undefined)).toBe('invalid_scope')
  })
})
