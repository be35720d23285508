import { describe, expect, it } from 'vitest'
import { Report } from '../../../src/config/report.ts'
import { compileIssuers, type IssuerConfig } from '../../../src/keys/issuers-config.ts'
import { compileCatalogue } from '../../../src/scopes/catalogue.ts'

const [SECOND, DAY] = [1000, 86_400_000]
const ISSUER: IssuerConfig = {
  issuer: 'https://issuer.example',
  jwks: 'https://issuer.example/keys',
  audience: 'https://api.example',
  typ: ['at+jwt'],
  algorithms: ['ES256'],
  scopeClaim: 'scope',
  clientClaim: 'client_id',
  subjectClaim: 'sub',
  confirmation: 'refuse',
  leeway: 0,
  longestLife: DAY,
}
const CATALOGUE = compileCatalogue([{ name: 'fund.read', description: 'See funds', implies: [] }])

const reportOf = (issuers: readonly Partial<IssuerConfig>[]): Report => {
  const report = new Report()
  compileIssuers(
    issuers.map((issuer) => ({ ...ISSUER, ...issuer })),
    report,
    CATALOGUE,
  )
  return report
}

const problems = (...issuers: readonly Partial<IssuerConfig>[]): readonly string[] =>
  reportOf(issuers).problems.map(({ path, severity }) => `${severity} ${path.join('.')}`)

describe('the configuration of foreign issuers', () => {
  it('T3.5 a key set comes over https, or over http from this machine', () => {
    for (const jwks of [
      'https://issuer.example/keys',
      'http://127.0.0.1:8080/',
      'http://[::1]/',
      'http://localhost/',
    ])
      expect(problems({ jwks })).toEqual([])
    for (const jwks of ['http://issuer.example/keys', 'http://192.0.2.1/', 'http://[2001:db8::1]/'])
      expect(problems({ jwks })).toEqual(['error issuers.0.jwks'])
  })

  it('C4.16 clocks may differ by a minute at most', () => {
    expect(problems({ leeway: 60 * SECOND })).toEqual([])
    expect(problems({ leeway: 60 * SECOND + 1 })).toEqual(['error issuers.0.leeway'])
  })

  it('T3.12 a token may live for thirty days at most', () => {
    expect(problems({ longestLife: 30 * DAY })).toEqual([])
    expect(problems({ longestLife: 30 * DAY + 1 })).toEqual(['error issuers.0.longestLife'])
  })

  it('C11.2 no issuer is listed twice', () => {
    const other = { issuer: 'https://other.example' }
    expect(problems({}, other)).toEqual([])
    expect(problems({}, other, {})).toEqual(['error issuers.2.issuer'])
  })

  it('C11.2 warns, by its name, of an issuer whose tokens need no audience, or no proof of their key', () => {
    const warned = reportOf([
      { audience: 'none' },
      { confirmation: 'ignore', issuer: 'https://other.example' },
    ])
    expect(warned.failed).toBe(false)
    expect(warned.problems.map(({ path, message }) => [path.join('.'), message])).toEqual([
      ['issuers.0.audience', expect.stringContaining('https://issuer.example')],
      ['issuers.1.confirmation', expect.stringContaining('https://other.example')],
    ])
  })

  it('C11.2 maps roles to scope values of the catalogue only', () => {
    expect(problems({ scopeMap: { 'Funds Readers': ['fund.read'], nobody: [] } })).toEqual([])
    const [problem] = reportOf([{ scopeMap: { readers: ['fund.read', 'fund.raed'] } }]).problems
    expect(problem).toMatchObject({ path: ['issuers', 0, 'scopeMap', 'readers', 1], severity: 'error' })
    expect(problem?.hint).toContain('fund.read')
  })
})
