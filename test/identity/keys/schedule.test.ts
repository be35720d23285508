import { describe, expect, it } from 'vitest'
import type { SigningAlgorithm } from '../../../src/base/contracts/people/people.ts'
import type { PublicKey } from '../../../src/identity/keys/verify/signatures.ts'
import type { StoredKey } from '../../../src/identity/keys/signing/stored-key.ts'
import { dueGeneration, keySetOf, scheduleKeys } from '../../../src/identity/keys/signing/schedule.ts'
import { ROTATION } from '../../support/keys-for-tests.ts'

/** Seconds. */
const DAY = 86_400

const key = (generation: number, signsFrom: number, algorithm: SigningAlgorithm = 'ES256'): StoredKey => ({
  generation,
  signsFrom,
  algorithm,
  kid: `${algorithm}-${generation}`,
  name: `${algorithm}-${generation}`,
  stamp: '',
  createdAt: 0,
  publicJwk: {},
  // The schedule looks at no key, only at what is known of it.
  privateKey: {} as CryptoKey,
  publicKey: {} as PublicKey,
})

const statesAt = (now: number, ...keys: readonly StoredKey[]): readonly string[] =>
  scheduleKeys(keys, ROTATION, now).map((each) => `${each.key.kid} ${each.state}`)

describe('the schedule of keys', () => {
  it('C6.3.4 the newest key whose time has come signs, from that second on', () => {
    const keys = [key(1, 0), key(2, 100), key(3, 200)]
    expect(statesAt(99, ...keys)).toEqual(['ES256-1 signing', 'ES256-2 announced', 'ES256-3 announced'])
    expect(statesAt(100, ...keys)).toEqual(['ES256-1 retiring', 'ES256-2 signing', 'ES256-3 announced'])
    expect(statesAt(200, ...keys)).toEqual(['ES256-1 retiring', 'ES256-2 retiring', 'ES256-3 signing'])
  })

  it('C6.3.4 the order of the files does not matter', () => {
    const keys = [key(3, 200), key(1, 0), key(2, 100)]
    expect(statesAt(100, ...keys)).toEqual(['ES256-1 retiring', 'ES256-2 signing', 'ES256-3 announced'])
  })

  it('C6.3.4 before the time of every key the one that comes first signs, whatever its number', () => {
    expect(statesAt(50, key(1, 300), key(2, 100), key(3, 200))).toEqual([
      'ES256-1 retiring',
      'ES256-2 signing',
      'ES256-3 announced',
    ])
  })

  it('C6.3.4 each algorithm has keys of its own', () => {
    const keys = [key(1, 0), key(1, 0, 'RS256'), key(2, 100, 'RS256')]
    expect(statesAt(100, ...keys)).toEqual(['ES256-1 signing', 'RS256-1 retiring', 'RS256-2 signing'])
  })

  it('C6.3.4 a key retires a minute after the last token that it can have signed', () => {
    const keys = [key(1, 0), key(2, 100)]
    const end = 100 + ROTATION.longestLife + 60
    expect(scheduleKeys(keys, ROTATION, 100).map(({ retiresAt }) => retiresAt)).toEqual([end, undefined])
    expect(statesAt(end - 1, ...keys)).toEqual(['ES256-1 retiring', 'ES256-2 signing'])
    expect(statesAt(end, ...keys)).toEqual(['ES256-1 retired', 'ES256-2 signing'])
  })

  it('C6.3.4 all keys but the retired ones are published, and one of each algorithm signs', () => {
    const keys = [key(1, 0), key(2, 100), key(3, 10 * DAY), key(1, 0, 'RS256')]
    const { signing, published } = keySetOf(scheduleKeys(keys, ROTATION, 5 * DAY))
    expect(published.map(({ kid }) => kid)).toEqual(['ES256-2', 'ES256-3', 'RS256-1'])
    expect([...signing].map(([algorithm, { kid }]) => [algorithm, kid])).toEqual([
      ['ES256', 'ES256-2'],
      ['RS256', 'RS256-1'],
    ])
  })

  it('C6.3.4 keys are published in one order, whichever was made last', () => {
    const keys = [key(1, 0, 'RS256'), key(1, 0)]
    const kids = (stored: typeof keys) =>
      keySetOf(scheduleKeys(stored, ROTATION, DAY)).published.map(({ kid }) => kid)
    expect(kids(keys)).toEqual(['ES256-1', 'RS256-1'])
    expect(kids(keys.toReversed())).toEqual(['ES256-1', 'RS256-1'])
  })

  it('C6.3.4 the next key is due early enough to be announced before it signs', () => {
    const keys = [key(1, 0), key(4, 100), key(9, 0, 'RS256')]
    const due = (now: number, plan = ROTATION): number | undefined => dueGeneration(keys, 'ES256', plan, now)
    const from = 100 + ROTATION.every - ROTATION.announce
    expect(due(from - 1)).toBeUndefined()
    expect(due(from)).toBe(5)
    expect(due(from, { ...ROTATION, automatic: false })).toBeUndefined()
  })

  it('C6.3.4 the first key is due at once, also where keys change only by a command', () => {
    expect(dueGeneration([key(1, 0)], 'RS256', { ...ROTATION, automatic: false }, 0)).toBe(1)
  })
})
