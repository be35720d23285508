import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import {
  clientKeyProblem,
  compileIssuers,
  type IssuerConfig,
  issuerNames,
} from '../../../src/identity/keys/issuers/issuers-schema.ts'
import { compileCatalogue } from '../../../src/base/config/scopes/catalogue.ts'

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

/** Members that are undefined are left out. */
type Changes = { readonly [key in keyof IssuerConfig]?: IssuerConfig[key] | undefined }

const reportOf = (issuers: readonly Changes[]): Problems => {
  const problems = new Problems()
  compileIssuers(
    issuers.map((issuer) => ({ ...ISSUER, ...issuer }) as IssuerConfig),
    problems,
    CATALOGUE,
  )
  return problems
}

const problems = (...issuers: readonly Changes[]): readonly string[] =>
  reportOf(issuers).list.map(({ path, severity }) => `${severity} ${path.join('.')}`)

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
    const [one, other] = [{ name: 'one' }, { name: 'other', issuer: 'https://other.example' }]
    expect(problems(one, other)).toEqual([])
    expect(problems(one, other, { name: 'third' })).toEqual(['error issuers.2.issuer'])
  })

  it('C11.2 warns, by its name, of an issuer whose tokens need no audience, or no proof of their key', () => {
    const warned = reportOf([
      { name: 'one', audience: 'none' },
      { name: 'other', confirmation: 'ignore', issuer: 'https://other.example' },
    ])
    expect(warned.failed).toBe(false)
    expect(warned.list.map(({ path, message }) => [path.join('.'), message])).toEqual([
      ['issuers.0.audience', expect.stringContaining('https://issuer.example')],
      ['issuers.1.confirmation', expect.stringContaining('https://other.example')],
    ])
  })

  it('C11.2 maps roles to scope values of the catalogue only', () => {
    expect(problems({ scopeMap: { 'Funds Readers': ['fund.read'], nobody: [] } })).toEqual([])
    const [problem] = reportOf([{ scopeMap: { readers: ['fund.read', 'fund.raed'] } }]).list
    expect(problem).toMatchObject({ path: ['issuers', 0, 'scopeMap', 'readers', 1], severity: 'error' })
    expect(problem?.hint).toContain('fund.read')
  })

  it('C11.2 several issuers need names, each its own; one issuer needs none', () => {
    const other = { issuer: 'https://other.example' }
    expect(problems({})).toEqual([])
    expect(problems({ name: 'one' }, other)).toEqual(['error issuers.1.name'])
    expect(problems({ name: 'one' }, { ...other, name: 'one' })).toEqual(['error issuers.1.name'])
  })

  it('T3.5 metadata is read over https, or from this machine', () => {
    const http = { issuer: 'http://issuer.example' }
    expect(problems({ jwks: undefined })).toEqual([])
    expect(problems({ issuer: 'http://127.0.0.1:1', jwks: undefined })).toEqual([])
    expect(problems(http)).toEqual([])
    expect(problems({ ...http, jwks: undefined })).toEqual(['error issuers.0.issuer'])
    expect(problems({ issuer: 'https://issuer.example/?a=b', jwks: undefined })).toEqual([
      'error issuers.0.issuer',
    ])
  })
})

describe('C11.2 a client in limits and lists', () => {
  it('C11.2 is named with its issuer where there are several', () => {
    expect(issuerNames([])).toBeUndefined()
    expect(issuerNames([{ name: 'one' }])).toBeUndefined()
    const names = issuerNames([{ name: 'one' }, { name: 'two' }])
    expect(clientKeyProblem('app', undefined)).toBeUndefined()
    for (const key of ['one:app', 'two:app', 'one:a:b', 'one:'])
      expect(clientKeyProblem(key, names)).toBeUndefined()
    for (const key of ['app', 'three:app', ':app', 'One:app'])
      expect(clientKeyProblem(key, names)).toMatchObject({ hint: expect.stringContaining('one:') as string })
  })
})
