import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import { type ForeignClaims, foreignClaimsReader } from '../../../src/gateway/decide/claims.ts'
import { Standing } from '../../../src/identity/keys/verify/token-verifier.ts'
import { FOREIGN_CLAIMS, ISSUER } from '../../support/foreign-issuer.ts'

const CLAIMS = {
  sub: 'subject-1',
  client_id: 'client-1',
  iss: ISSUER,
  scope: 'fund.read target:b/ACME',
  jti: 'token-1',
  iat: 0,
  exp: 900,
}

type Claims = Readonly<Record<string, unknown>>

const read = (names: Partial<ForeignClaims>, claims: Claims): Principal =>
  foreignClaimsReader({ ...FOREIGN_CLAIMS, ...names })({
    claims: { ...CLAIMS, ...claims },
    key: new Standing(),
  })

const RENAMED = { scope: 'scp', target: 'company', client: 'azp' }
const renamed = (claims: Claims): Principal => read(RENAMED, { azp: 'client-1', ...claims })

const refused = expect.objectContaining({ code: 'invalid_token' }) as unknown

describe('C11.2 the claims of a foreign issuer', () => {
  it('C11.2 have the names of RFC 9068 by default', () => {
    expect(read({}, {})).toMatchObject({
      subject: 'subject-1',
      client: 'client-1',
      issuer: ISSUER,
      scopes: new Set(['fund.read', 'target:b/ACME']),
      target: { level: 'business', business: 'ACME' },
      tokenId: 'token-1',
    })
    expect(read({}, { jti: undefined }).tokenId).toBeUndefined()
  })

  it('C11.2 have the names that the configuration gives', () => {
    const fund = { level: 'fund', business: 'ACME', fund: 'SUPER1' }
    expect(renamed({ scp: ['fund.read'], company: 'f/ACME/SUPER1' }).target).toMatchObject(fund)
    expect(renamed({ scp: 'a  b', company: 'ACME' }).scopes).toEqual(new Set(['a', 'b']))
    expect(renamed({ company: 'ACME' }).target).toMatchObject({ level: 'business' })
    expect(renamed({})).toMatchObject({ scopes: new Set(), target: undefined })
  })

  it('C11.2 are refused where scope or target have another shape', () => {
    for (const scp of [7, null, ['a', 7], ['a b'], {}]) expect(() => renamed({ scp })).toThrow(refused)
    for (const company of [7, null, [], ['ACME', 'GLOBEX'], {}])
      expect(() => renamed({ company })).toThrow(refused)
  })

  it('C11.2 that are one text may be written as a list of one', () => {
    const principal = renamed({ sub: ['subject-2'], azp: ['client-2'], company: ['b/ACME'] })
    expect(principal).toMatchObject({
      subject: 'subject-2',
      client: 'client-2',
      target: { business: 'ACME' },
    })
  })

  it.each(['sub', 'azp'])('C11.2 are refused where %s is not one text without control characters', (name) => {
    for (const value of [undefined, null, '', 7, [], ['a', 'b'], {}, 'a\0b', 'a\nb'])
      expect(() => renamed({ [name]: value })).toThrow(refused)
  })

  it('C11.2 name the client for limits and lists, with the name of its issuer only if there are several', () => {
    expect(read({}, {})).toMatchObject({ clientKey: 'client-1', issuerName: undefined })
    expect(read({ name: 'partners' }, {})).toMatchObject({
      client: 'client-1',
      clientKey: 'partners:client-1',
      issuerName: 'partners',
    })
  })
})

describe('C11.2 a claim that is named by a path', () => {
  const scopesOf = (scope: string, claims: Claims): ReadonlySet<string> => read({ scope }, claims).scopes

  it('C11.2 is a member of a member', () => {
    expect(scopesOf('realm_access.roles', { realm_access: { roles: ['a', 'b'] } })).toEqual(
      new Set(['a', 'b']),
    )
    expect(scopesOf('a.b.c', { a: { b: { c: 'x y' } } })).toEqual(new Set(['x', 'y']))
  })

  it('C11.2 may have dots in its name: the longest name that is there counts, at each level', () => {
    const url = 'https://example.com/business'
    expect(read({ target: url }, { [url]: 'ACME' }).target).toMatchObject({ business: 'ACME' })
    expect(scopesOf('a.b', { 'a.b': 'whole', a: { b: 'parts' } })).toEqual(new Set(['whole']))
    expect(scopesOf('https://example.com/app.roles', { 'https://example.com/app': { roles: 'x' } })).toEqual(
      new Set(['x']),
    )
    // No second reading where the longest name leads nowhere.
    expect(scopesOf('a.b.c', { 'a.b': {}, a: { b: { c: 'x' } } })).toEqual(new Set())
  })

  it('C11.2 is never a member that every object has, nor an item of a list', () => {
    for (const scope of ['constructor', 'constructor.name', '__proto__', 'a.length', 'a.0', 'scope.length'])
      expect(scopesOf(scope, { a: ['x'] })).toEqual(new Set())
  })
})

describe('C11.2 roles that a map turns into scope values', () => {
  const scopeMap = { 'Funds Readers': ['fund.read', 'tag.read'], editor: ['fund.read', 'fund.write'] }
  const mapped = (roles: unknown, more: Partial<ForeignClaims> = {}): ReadonlySet<string> =>
    read({ scope: 'roles', scopeMap, ...more }, { roles }).scopes

  it('C11.2 become their scope values, each once; other roles are dropped, whatever is in them', () => {
    expect(mapped(['editor', 'Funds Readers', 'fund.delete', 'a "b"'])).toEqual(
      new Set(['fund.read', 'fund.write', 'tag.read']),
    )
    expect(mapped('editor other')).toEqual(new Set(['fund.read', 'fund.write']))
    expect(mapped(['constructor', '__proto__', 'toString'])).toEqual(new Set())
    expect(mapped(undefined)).toEqual(new Set())
  })

  it('C11.2 leave a target in the claim as it is, unless a claim of its own has the target', () => {
    expect(mapped(['editor', 'target:b/ACME'])).toContain('target:b/ACME')
    expect(mapped(['editor', 'target:b/ACME'], { target: 'company' })).not.toContain('target:b/ACME')
  })

  it('C11.2 are texts, or the token is refused', () => {
    for (const roles of [7, null, ['editor', 7], { editor: true }])
      expect(() => mapped(roles)).toThrow(refused)
  })
})
