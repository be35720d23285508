import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import type { RevokedTokens } from '../../../src/base/contracts/records/tokens.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { roleMark } from '../../../src/base/kernel/ids.ts'
import { ChangeFeed } from '../../../src/state/stores/feed/change-feed.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { RevocationRules } from '../../../src/state/stores/feed/revocations.ts'
import { allChanges } from '../../support/all-changes.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'
import { code, scopeOf } from '../../support/scope.ts'

const LIFE = 900_000
const SECOND = 1000

async function opened() {
  // In the middle of a second, where rules and `iat` round differently.
  const clock = movableClock(Date.UTC(2026, 0, 15) + 400)
  const store = new MemoryStore(clock)
  const recorder = keepNotes()
  const another = async () => {
    const timers = manualAfter()
    const feed = await ChangeFeed.open({ store, clock, recorder, after: timers.after })
    return {
      timers,
      rules: new RevocationRules({ feed, clock, recorder, longestLife: { tokens: LIFE, all: LIFE } }),
    }
  }
  return { clock, store, recorder, another, ...(await another()) }
}

const principal = (issuedAtMs: number, facts: Partial<Principal> = {}): Principal => ({
  subject: 'alice',
  client: 'acme-books',
  clientKey: 'acme-books',
  issuer: 'https://id.example.com',
  ...scopeOf('openid fund.read'),
  role: roleMark('Clerk'),
  target: { level: 'business', business: code('ACME') },
  tokenId: 'jti-1',
  family: 'family-1',
  issuedAt: Math.floor(issuedAtMs / SECOND),
  expiresAt: Math.floor(issuedAtMs / SECOND) + LIFE / SECOND,
  key: { isTrusted: () => true },
  ...facts,
})

const RULES: readonly (readonly [string, RevokedTokens, Partial<Principal>])[] = [
  ['a token', { jti: 'jti-1' }, { tokenId: 'jti-2' }],
  ['a family', { family: 'family-1' }, { family: undefined }],
  ['a subject', { subject: 'alice' }, { subject: 'bob' }],
  ['a client', { client: 'acme-books' }, { client: 'ledgerline' }],
  ['a subject at a client', { client: 'acme-books', subject: 'alice' }, { client: 'ledgerline' }],
  [
    'a subject at a client for a business',
    { client: 'acme-books', subject: 'alice', business: 'ACME' },
    { target: { level: 'business', business: code('GLOBEX') } },
  ],
  ['a business', { business: 'ACME' }, { target: { level: 'business', business: code('GLOBEX') } }],
  ['a business of a client', { client: 'acme-books', business: 'ACME' }, { client: 'ledgerline' }],
  [
    'a business of a subject',
    { subject: 'alice', business: 'ACME' },
    { target: { level: 'business', business: code('GLOBEX') } },
  ],
  ['C6.3.6 a scope value', { scope: 'fund.read' }, scopeOf('openid fund.maintain')],
  [
    'C6.3.6 a scope value of a client',
    { client: 'acme-books', scope: 'fund.read' },
    { client: 'ledgerline' },
  ],
  ['C6.3.6 a role', { role: 'Clerk' }, { role: roleMark('Reader') }],
  ['C6.3.6 a scope value of a role', { role: 'Clerk', scope: 'fund.read' }, { role: undefined }],
  [
    'C6.3.6 a scope value of a subject at a business',
    { subject: 'alice', business: 'ACME', scope: 'fund.read' },
    { subject: 'bob' },
  ],
]

describe('revocation rules', () => {
  it.each(RULES)('T3.4 revoke %s, and no other', async (_, tokens, other) => {
    const { rules, clock } = await opened()
    expect(rules.isRevoked(principal(clock.now()))).toBe(false)
    await rules.revoke(tokens)
    expect(rules.isRevoked(principal(clock.now()))).toBe(true)
    expect(rules.isRevoked(principal(clock.now(), other))).toBe(false)
  })

  it('C6.3.6 revoke a fund, and neither another one nor its business', async () => {
    const { rules, clock } = await opened()
    await rules.revoke({ business: 'ACME', fund: 'SUPER1' })
    const forFund = (fund: string) =>
      principal(clock.now(), { target: { level: 'fund', business: code('ACME'), fund: code(fund) } })
    expect(rules.isRevoked(forFund('SUPER1'))).toBe(true)
    expect(rules.isRevoked(forFund('SUPER2'))).toBe(false)
    expect(rules.isRevoked(principal(clock.now()))).toBe(false)
  })

  it('T3.4 reach a caller who passed those before, and name the role for people', async () => {
    const { rules, clock } = await opened()
    const caller = principal(clock.now())
    await rules.revoke({ subject: 'bob' })
    expect([rules.isRevoked(caller), rules.isRevoked(caller)]).toEqual([false, false])
    await rules.revoke({ role: 'Clerk', scope: 'fund.read' })
    expect(rules.isRevoked(caller)).toBe(true)
    expect(rules.ruleFor(caller)?.tokens).toEqual({ role: 'Clerk', scope: 'fund.read' })
  })

  it('cover a fund of the business too, and no token without a target', async () => {
    const { rules, clock } = await opened()
    await rules.revoke({ client: 'acme-books', subject: 'alice', business: 'ACME' })
    const target = { level: 'fund', business: code('ACME'), fund: code('SUPER1') } as const
    expect(rules.isRevoked(principal(clock.now(), { target }))).toBe(true)
    expect(rules.isRevoked(principal(clock.now(), { target: undefined }))).toBe(false)
  })

  it('T3.4 are in force in another process when it has read the feed', async () => {
    const { rules, another, clock } = await opened()
    const other = await another()
    await rules.revoke({ subject: 'alice' })
    expect(other.rules.isRevoked(principal(clock.now()))).toBe(false)
    await other.timers.fire()
    expect(other.rules.isRevoked(principal(clock.now()))).toBe(true)
  })

  it('are in force in a process that starts later', async () => {
    const { rules, another, clock } = await opened()
    await rules.revoke({ subject: 'alice' })
    expect((await another()).rules.isRevoked(principal(clock.now()))).toBe(true)
  })

  it('T3.7 reject if the rule could not be kept, and then revoke nothing', async () => {
    const { rules, store, clock } = await opened()
    store.append = () => Promise.reject(new Fault('identity_unavailable'))
    await expect(rules.revoke({ subject: 'alice' })).rejects.toMatchObject({ code: 'identity_unavailable' })
    expect(rules.isRevoked(principal(clock.now()))).toBe(false)
  })

  it('T3.13 reach what was begun by whoever had not heard of them, whatever the clock says', async () => {
    const { rules, clock } = await opened()
    const before = principal(clock.now() + 3600 * SECOND, { asOf: rules.asOf })
    await rules.revoke({ subject: 'alice' })
    expect(rules.isRevoked(before)).toBe(true)
    clock.step(-3600 * SECOND)
    const after = principal(clock.now(), { asOf: rules.asOf })
    expect(rules.isRevoked(after)).toBe(false)
    await rules.revoke({ subject: 'alice' })
    expect(rules.isRevoked(after)).toBe(true)
  })

  it('reach what does not tell what was known when it was issued, by the second and the one in which rules travel', async () => {
    const { rules, clock } = await opened()
    await rules.revoke({ subject: 'alice' })
    expect(rules.isRevoked(principal(clock.now() - 500 * SECOND))).toBe(true)
    expect(rules.isRevoked(principal(clock.now()))).toBe(true)
    expect(rules.isRevoked(principal(clock.now() + SECOND))).toBe(true)
    expect(rules.isRevoked(principal(clock.now() + 2 * SECOND))).toBe(false)
  })

  it('a family is over whenever its token was issued', async () => {
    const { rules, clock } = await opened()
    await rules.revoke({ family: 'family-1' })
    expect(rules.isRevoked(principal(clock.now() + 60 * SECOND))).toBe(true)
  })

  it('are kept until the last token they revoke has expired', async () => {
    const { rules, clock, timers, store } = await opened()
    const token = principal(clock.now())
    await rules.revoke({ subject: 'alice' })
    await rules.revoke({ family: 'family-2' })
    clock.advance(LIFE)
    await timers.fire()
    expect(rules.isRevoked(token)).toBe(true)
    clock.advance(62 * SECOND)
    await timers.fire()
    expect(rules.isRevoked(token)).toBe(false)
    expect(await allChanges(store)).toEqual([])
  })

  it('T3.12 C6.3.3 are kept through a wall clock that is a day ahead for a while, in whoever starts meanwhile too', async () => {
    const { rules, clock, timers, store, another } = await opened()
    const token = principal(clock.now())
    await rules.revoke({ subject: 'alice' })
    clock.step(90_000 * SECOND)
    clock.advance(20 * SECOND)
    await timers.fire()
    await store.purge(100)
    const started = await another()
    clock.step(-90_000 * SECOND)
    clock.advance(20 * SECOND)
    await timers.fire()
    await started.timers.fire()
    expect(rules.isRevoked(token)).toBe(true)
    expect(started.rules.isRevoked(token)).toBe(true)
    expect((await another()).rules.isRevoked(token)).toBe(true)
  })

  it('a rule that is made again is kept until the later one ends', async () => {
    const { rules, clock, timers } = await opened()
    await rules.revoke({ family: 'family-1' })
    clock.advance(LIFE)
    await rules.revoke({ family: 'family-1' })
    clock.advance(62 * SECOND)
    await timers.fire()
    expect(rules.isRevoked(principal(clock.now()))).toBe(true)
  })

  it('T3.12 a rule that is made again, but for a shorter time, is kept until the longer one ends', async () => {
    const { rules, clock, timers } = await opened()
    await rules.revoke({ family: 'family-1' }, clock.now() + 3 * LIFE)
    await rules.revoke({ family: 'family-1' })
    clock.advance(LIFE + 62 * SECOND)
    await timers.fire()
    expect(rules.isRevoked(principal(clock.now()))).toBe(true)
    clock.advance(2 * LIFE)
    await timers.fire()
    expect(rules.isRevoked(principal(clock.now()))).toBe(false)
  })

  it('T3.13 that is in force before those that came earlier could be read makes nobody seem to know them', async () => {
    const { rules, another, store, clock, timers } = await opened()
    const other = await another()
    await other.rules.revoke({ subject: 'alice' })
    const changes = store.changes.bind(store)
    store.changes = () => Promise.reject(new Fault('identity_unavailable'))
    await rules.revoke({ subject: 'bob' })
    expect(rules.isRevoked(principal(clock.now(), { subject: 'bob' }))).toBe(true)
    const begun = principal(clock.now(), { asOf: rules.asOf })
    store.changes = changes
    await timers.fire()
    await other.timers.fire()
    expect([rules.isRevoked(begun), other.rules.isRevoked(begun)]).toEqual([true, true])
    expect(rules.isRevoked(principal(clock.now(), { asOf: rules.asOf }))).toBe(false)
  })

  it('that this version does not know are told, and change nothing', async () => {
    const { rules, store, recorder, timers, clock } = await opened()
    for (const value of [
      { planet: 'earth', issuedBefore: 1 },
      { jti: 'a', business: 'ACME', issuedBefore: 1 },
      { subject: 1, issuedBefore: 1 },
      { subject: 'alice' },
    ])
      await store.append('revocation', value)
    await timers.fire()
    expect(recorder.events).toEqual(Array(4).fill('revocation.unknown_rule'))
    expect(rules.isRevoked(principal(clock.now()))).toBe(false)
  })
})

describe('what is begun', () => {
  const begun = { subject: 'alice', client: 'acme-books', business: 'ACME' }

  it('is ended by a rule that was not known then, and by no other', async () => {
    const { rules, clock } = await opened()
    const asOf = rules.asOf
    const at = { ...begun, begunAt: clock.now() }
    expect(rules.hasEnded({ ...at, asOf })).toBe(false)
    await rules.revoke({ subject: 'bob' })
    expect(rules.hasEnded({ ...at, asOf })).toBe(false)
    await rules.revoke({ subject: 'alice' })
    expect(rules.hasEnded({ ...at, asOf })).toBe(true)
    expect(rules.hasEnded({ ...at, asOf: rules.asOf })).toBe(false)
  })

  it('of a family that is over is over too, whenever it was begun', async () => {
    const { rules, clock } = await opened()
    await rules.revoke({ family: 'family-1' })
    clock.advance(60 * SECOND)
    const later = { ...begun, family: 'family-1', asOf: rules.asOf, begunAt: clock.now() }
    expect(rules.hasEnded(later)).toBe(true)
  })

  it('T3.12 knows the rules of a client, a business or a family too, of each that it names', async () => {
    const { rules, clock } = await opened()
    const { asOf } = rules
    for (const [, tokens] of RULES.filter(([, each]) => !('jti' in each))) {
      const { asOf: known } = rules
      const one = { ...begun, family: 'family-1', begunAt: clock.now() }
      await rules.revoke(tokens)
      expect(rules.hasEnded({ ...one, asOf: known })).toBe(true)
    }
    const strange = { subject: 'carol', client: 'c', business: 'b', family: 'f', asOf, begunAt: 0 }
    expect(rules.hasEnded(strange)).toBe(false)
  })
})
