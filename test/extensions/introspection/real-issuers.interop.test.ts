import { describe, expect, it } from 'vitest'
import { scene } from '../../support/foreign-sidecar.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { BUSINESS, startMockServer, startOidcProvider } from '../../support/real-issuers.ts'

// C11.2: the opaque tokens of issuers that others wrote: oidc-provider and oauth2-mock-server.

const OPAQUE = {
  ...{ subjectClaim: 'client_id', targetClaim: BUSINESS },
  introspection: { clientId: 'postern', clientSecret: 'postern-secret' },
}
const ROLES = {
  ...{ typ: ['JWT'], algorithms: ['RS256' as const], clientClaim: 'azp' },
  scopeClaim: 'realm_access.roles',
  scopeMap: { 'funds-reader': ['fund.read'] },
}

async function sidecarFor(...issuers: Parameters<typeof scene>[0]) {
  const clock = movableClock(Date.now())
  return { ...(await scene(issuers, { clock })), clock }
}

describe('C11.2 the opaque tokens of issuers that others wrote', () => {
  it('C11.2 introspects its opaque tokens; one that it revokes ends within a minute', async () => {
    const issuer = await startOidcProvider('opaque')
    const { call, told, clock, upstream } = await sidecarFor({ issuer: issuer.url, ...OPAQUE })
    const token = await issuer.token()
    expect([await call(token), await call(token)]).toEqual([200, 200])
    expect(issuer.asked('/token/introspection')).toBe(1)
    expect(told('x-postern-subject')).toEqual(['app'])
    await issuer.revoke(token)
    clock.advance(60_000)
    const reached = upstream.requests.length
    expect(await call(token)).toBe(401)
    expect(await call('nothing-that-it-has-issued')).toBe(401)
    expect(upstream.requests).toHaveLength(reached)
  })

  it('C4.15 that refuses our credentials makes opaque tokens 503', async () => {
    const issuer = await startOidcProvider('opaque')
    const introspection = { clientId: 'postern', clientSecret: 'a-wrong-secret' }
    const { call, sidecar } = await sidecarFor({ issuer: issuer.url, ...OPAQUE, introspection })
    expect(await call(await issuer.token())).toBe(503)
    const log = sidecar.logLines().join('')
    expect(log).toContain('introspection_failed')
    expect(log).not.toContain('a-wrong-secret')
  })

  it('C11.2 calls every token active, and says no more: that is not enough', async () => {
    const issuer = await startMockServer(['funds-reader'])
    const { call, upstream } = await sidecarFor({ issuer: issuer.url, ...ROLES, ...OPAQUE })
    expect(await call('anything')).toBe(401)
    expect(issuer.asked('/introspect')).toBe(1)
    expect(upstream.requests).toEqual([])
  })

  it('C11.2 are told apart from the signed ones of another issuer, also by upstreams', async () => {
    const [staff, partners] = [await startMockServer(['funds-reader']), await startOidcProvider('opaque')]
    const { call, told } = await sidecarFor(
      { name: 'staff', issuer: staff.url, targetClaim: BUSINESS, ...ROLES },
      { name: 'partners', issuer: partners.url, ...OPAQUE },
    )
    expect(await call(await staff.token())).toBe(200)
    expect(told('x-postern-issuer')).toEqual([staff.url])
    expect(await call(await partners.token())).toBe(200)
    expect(told('x-postern-issuer')).toEqual([partners.url])
  })
})
