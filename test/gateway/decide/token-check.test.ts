import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import { TokenCheck } from '../../../src/gateway/decide/token-check.ts'
import { Standing } from '../../../src/identity/keys/verify/token-verifier.ts'
import { principalWith } from '../../support/gateway.ts'
import { movableClock } from '../../support/movable-clock.ts'

/** A check whose every token is that of `principal`; `cacheSize` in bytes. */
function checking(principal: Principal, { cacheSize = 1_000_000, leeway = 0 } = {}) {
  const clock = movableClock(0)
  const asked: string[] = []
  const counted: string[] = []
  const revoked = new Set<Principal>()
  const tokens = new TokenCheck({
    authority: {
      verify: (token) => (asked.push(token), Promise.resolve(principal)),
      verifyLocally: () => Promise.resolve(principal),
      read: () => principal,
      leeways: new Map([[principal.issuer, leeway]]),
    },
    rules: { isRevoked: (each) => revoked.has(each), ruleFor: () => undefined },
    recorder: {
      decision: () => undefined,
      token: () => undefined,
      backend: () => undefined,
      tokenCache: (outcome) => counted.push(outcome),
      note: () => undefined,
    },
    clock,
    cacheSize,
  })
  return { tokens, clock, asked, counted, revoked }
}

const refused = (detail: string) =>
  expect.objectContaining({ code: 'invalid_token', facts: { detail } }) as unknown

describe('C4.4 the check of a token', () => {
  it('C4.16 verifies a token once, and then knows it', async () => {
    const principal = principalWith()
    const { tokens, asked, counted } = checking(principal)
    expect([tokens.find('t'), tokens.isKnown('t')]).toEqual([undefined, false])
    expect(await tokens.verify('t')).toBe(principal)
    expect([tokens.find('t'), tokens.isKnown('t')]).toEqual([principal, true])
    expect([asked, counted]).toEqual([['t'], ['miss', 'hit']])
  })

  it('C4.16 checks without a promise what was issued here', () => {
    const principal = principalWith()
    const { tokens, asked } = checking(principal)
    tokens.prime('t', principal)
    expect(tokens.check('t')).toBe(principal)
    expect(asked).toEqual([])
  })

  it('C4.16 lets a token expire at its second, and forgets it', async () => {
    const { tokens, clock } = checking(principalWith({ expiresAt: 900 }))
    await tokens.verify('t')
    clock.advance(899_999)
    expect(tokens.find('t')).toBeDefined()
    clock.advance(1)
    expect(() => tokens.find('t')).toThrow(refused('expired'))
    expect(tokens.isKnown('t')).toBe(false)
    await expect(tokens.verify('t')).rejects.toEqual(refused('expired'))
    expect(tokens.isKnown('t')).toBe(false)
  })

  it('C4.16 gives a token of a foreign issuer the leeway of that issuer', async () => {
    const { tokens, clock } = checking(principalWith({ expiresAt: 900 }), { leeway: 30 })
    await tokens.verify('t')
    clock.advance(929_000)
    expect(tokens.find('t')).toBeDefined()
    clock.advance(1000)
    expect(() => tokens.find('t')).toThrow(refused('expired'))
  })

  it('C4.16 asks for revocation on every call, also of a token that it has just verified', async () => {
    const principal = principalWith()
    const { tokens, revoked } = checking(principal)
    await tokens.verify('t')
    revoked.add(principal)
    expect(() => tokens.find('t')).toThrow(refused('revoked'))
    await expect(tokens.verify('t')).rejects.toEqual(refused('revoked'))
  })

  it('T3.10 knows no token any more whose key was withdrawn, and remembers none', async () => {
    const key = new Standing()
    const { tokens, counted } = checking(principalWith({ key }))
    await tokens.verify('t')
    key.end()
    expect(tokens.find('t')).toBeUndefined()
    await expect(tokens.verify('t')).rejects.toEqual(refused('its key was withdrawn'))
    expect(tokens.isKnown('t')).toBe(false)
    expect(counted).toEqual(['miss', 'miss'])
  })

  it('C4.16 keeps as many tokens as fit into its bytes, and drops the one that was used least recently', async () => {
    const principal = principalWith()
    const { scope, subject, client, tokenId = '' } = principal
    const one = 3 + [scope, subject, client, tokenId].join('').length * 2 + 512
    const { tokens } = checking(principal, { cacheSize: 2 * one })
    await tokens.verify('a')
    await tokens.verify('b')
    tokens.find('a')
    await tokens.verify('c')
    expect(['a', 'b', 'c'].map(tokens.isKnown)).toEqual([true, false, true])
  })

  it('C4.16 counts the ids of a caller, which may be longer than an opaque token', async () => {
    const { tokens } = checking(principalWith({ subject: 'x'.repeat(10_000) }), { cacheSize: 30_000 })
    await tokens.verify('a')
    await tokens.verify('b')
    expect(['a', 'b'].map(tokens.isKnown)).toEqual([false, true])
  })

  it('C4.16 counts the payload of a token, since the texts of its principal keep it in memory', async () => {
    const { tokens } = checking(principalWith(), { cacheSize: 15_000 })
    const [first, second] = ['a'.repeat(4_000), 'b'.repeat(4_000)]
    await tokens.verify(first)
    await tokens.verify(second)
    expect([first, second].map(tokens.isKnown)).toEqual([false, true])
  })

  it('T3.4 a tunnel is current until its token expires, is revoked, or its key is withdrawn', () => {
    const key = new Standing()
    const principal = principalWith({ key, expiresAt: 900 })
    const { tokens, clock, revoked } = checking(principal)
    expect(tokens.isCurrent(principal)).toBe(true)
    revoked.add(principal)
    expect(tokens.isCurrent(principal)).toBe(false)
    revoked.clear()
    clock.advance(900_000)
    expect(tokens.isCurrent(principal)).toBe(false)
    clock.step(-1)
    expect(tokens.isCurrent(principal)).toBe(true)
    key.end()
    expect(tokens.isCurrent(principal)).toBe(false)
  })
})
