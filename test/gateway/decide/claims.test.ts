import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import { readOwnClaims } from '../../../src/gateway/decide/claims.ts'
import { Standing } from '../../../src/identity/keys/verify/token-verifier.ts'

const CLAIMS = {
  sub: 'subject-1',
  client_id: 'client-1',
  iss: 'http://api.example',
  scope: 'fund.read target:b/ACME',
  jti: 'token-1',
  iat: 0,
  exp: 900,
}

const readOwn = (claims: Readonly<Record<string, unknown>>): Principal =>
  readOwnClaims({ claims: { ...CLAIMS, ...claims }, key: new Standing() })

const refused = expect.objectContaining({ code: 'invalid_token' }) as unknown

describe('C4.4 the claims of a genuine token', () => {
  it('C4.4 say who calls, for what and until when', () => {
    expect(readOwn({ family: 'family-1', as_of: 3 })).toMatchObject({
      subject: 'subject-1',
      client: 'client-1',
      clientKey: 'client-1',
      issuerName: undefined,
      issuer: 'http://api.example',
      target: { level: 'business', business: 'ACME' },
      tokenId: 'token-1',
      family: 'family-1',
      asOf: 3,
      issuedAt: 0,
      expiresAt: 900,
    })
    expect(readOwn({})).toMatchObject({ family: undefined, asOf: undefined })
  })

  it.each(['sub', 'client_id', 'iss', 'scope', 'jti'])('C4.4 refuse the token if %s is no text', (name) => {
    for (const value of [undefined, null, '', 7, true, ['subject-1'], {}])
      expect(() => readOwn({ [name]: value })).toThrow(refused)
  })

  it('C4.4 refuse the token if a claim that may be left out is there and is no text', () => {
    for (const name of ['family', 'role'])
      for (const value of [null, '', 7, ['a']]) expect(() => readOwn({ [name]: value })).toThrow(refused)
  })

  it.each(['iat', 'exp', 'as_of'])('C4.4 refuse the token if %s is no number', (name) => {
    for (const value of [null, '7', NaN, Infinity, [7]])
      expect(() => readOwn({ [name]: value })).toThrow(refused)
  })

  it('C6.1.8 refuse a token with two targets, even if they are the same', () => {
    for (const other of ['target:b/OTHER', 'target:b/ACME', 'target:f/ACME/SUPER1'])
      expect(() => readOwn({ scope: `fund.read target:b/ACME ${other}` })).toThrow(refused)
    expect(readOwn({ scope: 'fund.read' }).target).toBeUndefined()
  })
})
