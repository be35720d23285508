import { describe, expect, it } from 'vitest'
import type { IssuerConfig } from '../../src/identity/keys/issuers/issuers-schema.ts'
import { AUDIENCE, BUSINESS, startMockServer, startOidcProvider } from '../support/real-issuers.ts'
import { movableClock } from '../support/movable-clock.ts'
import { postern } from '../support/start-postern.ts'
import { answerJson, startUpstream } from '../support/start-upstream.ts'

// C11.2: a sidecar in front of issuers that others wrote: oidc-provider and oauth2-mock-server.

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const SOON = { timeout: 30_000, interval: 50 }

const DEFAULTS: Omit<IssuerConfig, 'issuer'> = {
  ...{
    audience: AUDIENCE,
    typ: ['at+jwt'],
    algorithms: ['ES256'],
    scopeClaim: 'scope',
    targetClaim: BUSINESS,
  },
  ...{ clientClaim: 'client_id', subjectClaim: 'sub', confirmation: 'refuse' as const },
  ...{ leeway: 0, longestLife: 86_400_000 },
}
const ROLES: Partial<IssuerConfig> = {
  ...{ typ: ['JWT'], algorithms: ['RS256'], clientClaim: 'azp' },
  scopeClaim: 'realm_access.roles',
  scopeMap: { 'funds-reader': ['fund.read'] },
}

async function sidecarFor(...issuers: readonly (Partial<IssuerConfig> & { issuer: string })[]) {
  const upstream = await startUpstream(answerJson({ FundSummaries: [], TotalCount: 0 }))
  const clock = movableClock(Date.now())
  const sidecar = await postern({
    config: 'sidecar.yaml',
    clock,
    environment: { UPSTREAM_URL: upstream.url },
    change: (loaded) => ({ ...loaded, issuers: issuers.map((issuer) => ({ ...DEFAULTS, ...issuer })) }),
  })
  const call = async (token: string): Promise<number> =>
    (await fetch(`${sidecar.baseUrl}${LIST}`, { headers: { Authorization: `Bearer ${token}` } })).status
  const told = (name: string) => upstream.requests.at(-1)?.headers[name]?.[0]
  return { sidecar, upstream, clock, call, told }
}

describe('C11.2 oidc-provider', () => {
  it('C11.2 is found by its metadata; its RFC 9068 tokens are good, also after its keys were replaced', async () => {
    const issuer = await startOidcProvider('jwt')
    const { call, told, clock } = await sidecarFor({ issuer: issuer.url })
    const before = await issuer.token()
    expect(await call(before)).toBe(200)
    expect(told('x-postern-client')).toBe('app')
    expect(told('x-postern-scope')).toBe('fund.read')
    issuer.rotate()
    clock.advance(2_000)
    expect(await call(await issuer.token())).toBe(200)
    // The reading that brought the new key did not bring the old one (T3.10).
    expect(await call(before)).toBe(401)
    expect(issuer.asked('/token/introspection')).toBe(0)
  })
})

describe('C11.2 oauth2-mock-server', () => {
  it('C11.2 is found by its metadata; typ JWT, roles and a claim with dots are read as configured', async () => {
    const issuer = await startMockServer(['funds-reader', 'canteen'])
    const { call, told } = await sidecarFor({ issuer: issuer.url, ...ROLES })
    expect(await call(await issuer.token())).toBe(200)
    expect(told('x-postern-subject')).toBe('ann')
    expect(told('x-postern-scope')).toBe('fund.read')
    const others = await startMockServer(['canteen'])
    expect(await (await sidecarFor({ issuer: others.url, ...ROLES })).call(await others.token())).toBe(401)
  })

  it('C11.2 is believed after it has added a key', async () => {
    const issuer = await startMockServer(['funds-reader'])
    const { call, clock } = await sidecarFor({ issuer: issuer.url, ...ROLES })
    const before = await issuer.token()
    expect(await call(before)).toBe(200)
    await issuer.addKey()
    clock.advance(2_000)
    for (let times = 0; times < 4; times++) expect(await call(await issuer.token())).toBe(200)
    expect(await call(before)).toBe(200)
  })
})

describe('C11.2 both at once', () => {
  it('C11.2 are told apart by upstreams, and one that is down does not stop the other', async () => {
    const [staff, partners] = [await startMockServer(['funds-reader']), await startOidcProvider('jwt')]
    const nowhere = { name: 'nowhere', issuer: 'http://127.0.0.1:1' }
    const { call, told, sidecar } = await sidecarFor(
      { name: 'staff', issuer: staff.url, ...ROLES },
      { name: 'partners', issuer: partners.url },
      nowhere,
    )
    expect(await call(await staff.token())).toBe(200)
    expect(told('x-postern-issuer')).toBe(staff.url)
    expect(await call(await partners.token())).toBe(200)
    expect(told('x-postern-issuer')).toBe(partners.url)
    const ready = async () => (await (await fetch(`${sidecar.adminUrl}/health/ready`)).json()) as object
    const degraded = [{ name: `issuer ${nowhere.issuer}` }]
    await expect.poll(ready, SOON).toMatchObject({ failing: [], degraded })
  })
})
