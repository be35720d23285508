import { describe, expect, it } from 'vitest'
import { ForeignKeys } from '../../../src/identity/keys/issuers/foreign-keys.ts'
import type { Jwk } from '../../../src/base/kernel/jwk.ts'
import { generatePrivateJwk, publicPart } from '../../../src/identity/keys/verify/signatures.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { settled } from '../../support/settled.ts'

async function key(kid: string): Promise<Jwk> {
  return { ...publicPart(await generatePrivateJwk('ES256'), 'ES256'), kid, alg: 'ES256' }
}

/** An issuer whose answers a test chooses, and whose fetches are counted. */
function issuer(first: readonly Jwk[]) {
  const clock = movableClock()
  const state = {
    keys: first,
    down: false,
    fetches: 0,
    hold: undefined as Promise<unknown> | undefined,
    around: undefined as (() => Promise<void>) | undefined,
  }
  const notes: string[] = []
  const found = new ForeignKeys({
    issuer: 'https://issuer.example',
    fetchKeys: async () => {
      state.fetches += 1
      const { keys } = state
      await state.hold
      await state.around?.()
      if (state.down) throw new Error('down')
      return keys
    },
    clock,
    recorder: { note: (_level, event) => void notes.push(event) },
    pause: (milliseconds) => {
      clock.advance(milliseconds)
      return settled()
    },
  })
  return { clock, state, notes, keys: found }
}

describe('T3.5: the keys of a foreign issuer', () => {
  it('are fetched once for any number of calls that need them at the same time', async () => {
    const { keys, state } = issuer([await key('a')])
    const found = await Promise.all(Array.from({ length: 50 }, () => keys.find('a', 'ES256')))
    expect(found.every((each) => each !== undefined)).toBe(true)
    expect(state.fetches).toBe(1)
  })

  it('C4.15: that cannot be had are 503, never 401', async () => {
    const { keys, state } = issuer([])
    state.down = true
    await expect(keys.find('a', 'ES256')).rejects.toMatchObject({ code: 'token_judge_unavailable' })
  })

  it('go on while the issuer is down, however long', async () => {
    const { keys, state, clock } = issuer([await key('a')])
    await keys.find('a', 'ES256')
    state.down = true
    clock.advance(7 * 24 * 3_600_000)
    expect(await keys.find('a', 'ES256')).toBeDefined()
    await expect(keys.find('b', 'ES256')).rejects.toMatchObject({ code: 'token_judge_unavailable' })
  })

  it('that are new are found at once, also right after another fetch', async () => {
    const { keys, state } = issuer([await key('a')])
    await keys.find('a', 'ES256')
    state.keys = [...state.keys, await key('b')]
    expect(await keys.find('b', 'ES256')).toBeDefined()
    expect(state.fetches).toBe(2)
  })

  it('are not asked for again by a flood of unknown ids more than once a second', async () => {
    const { keys, state, clock } = issuer([await key('a')])
    await keys.find('a', 'ES256')
    const before = clock.now()
    await Promise.all(Array.from({ length: 500 }, (_, index) => keys.find(`x${index}`, 'ES256')))
    for (let index = 0; index < 500; index++) expect(await keys.find(`x${index}`, 'ES256')).toBeUndefined()
    expect(state.fetches - 1).toBeLessThanOrEqual((clock.now() - before) / 1000 + 1)
    expect(state.fetches).toBeLessThan(5)
  })

  it('that are named before they are published are found a second after they are, whoever asked for them before', async () => {
    const { keys, state, clock } = issuer([await key('a')])
    await keys.find('a', 'ES256')
    // Somebody guesses the next one, again and again.
    for (let at = 0; at < 5; at++) {
      expect(await keys.find('next', 'ES256')).toBeUndefined()
      clock.advance(300)
    }
    state.keys = [...state.keys, await key('next')]
    clock.advance(1_000)
    expect(await keys.find('next', 'ES256')).toHaveLength(1)
  })

  it('of one unknown id are asked for once a second, however many tokens name it', async () => {
    const { keys, state, clock } = issuer([await key('a')])
    await keys.find('a', 'ES256')
    const [before, since] = [state.fetches, clock.now()]
    for (let at = 0; at < 500; at++) {
      expect(await keys.find('x', 'ES256')).toBeUndefined()
      clock.advance(20)
    }
    expect(state.fetches - before).toBeLessThanOrEqual((clock.now() - since) / 1000 + 1)
  })

  it('without a kid are taken only where there is no choice', async () => {
    const { keys, state, clock } = issuer([await key('a')])
    expect(await keys.find(undefined, 'ES256')).toBeDefined()
    state.keys = [await key('a'), await key('b')]
    clock.advance(11 * 60_000)
    await keys.find('a', 'ES256')
    await keys.find('b', 'ES256')
    expect(await keys.find(undefined, 'ES256')).toBeUndefined()
  })

  it('of another algorithm or use are not taken', async () => {
    const { keys } = issuer([{ ...(await key('a')), use: 'enc' }])
    expect(await keys.find('a', 'ES256')).toBeUndefined()
    expect(await keys.find('a', 'RS256')).toBeUndefined()
  })
})

describe('T3.5: a slow issuer', () => {
  it('costs one caller one wait: while it does not answer, all others hear at once that it cannot be told', async () => {
    const { keys, state, clock } = issuer([await key('a')])
    state.down = true
    state.around = () => {
      clock.advance(5_000)
      return Promise.resolve()
    }
    const first = Array.from({ length: 20 }, (_, at) => keys.find(`k${at}`, 'ES256').catch(String))
    await Promise.all(first)
    expect(state.fetches).toBe(1)
    const held = Promise.withResolvers<undefined>()
    state.hold = held.promise
    clock.advance(2_000)
    const waiting = keys.find('a', 'ES256')
    const others = Array.from({ length: 50 }, () => keys.find('a', 'ES256'))
    for (const other of others) await expect(other).rejects.toMatchObject({ code: 'token_judge_unavailable' })
    expect(state.fetches).toBe(2)
    state.down = false
    held.resolve(undefined)
    expect(await waiting).toHaveLength(1)
    expect(await keys.find('a', 'ES256')).toHaveLength(1)
  })

  it('that fails quickly once is asked again in a second, and nobody is refused meanwhile', async () => {
    const { keys, state } = issuer([await key('a')])
    state.down = true
    await expect(keys.find('a', 'ES256')).rejects.toMatchObject({ code: 'token_judge_unavailable' })
    state.down = false
    const found = await Promise.all(Array.from({ length: 20 }, () => keys.find('a', 'ES256')))
    expect(found.every((each) => each?.length === 1)).toBe(true)
    expect(state.fetches).toBe(2)
  })

  it('that failed twice is asked by one caller a second; all others hear at once that it cannot be told', async () => {
    const { keys, state, clock } = issuer([await key('a')])
    state.down = true
    for (let at = 0; at < 2; at++) await keys.find('a', 'ES256').catch(() => undefined)
    const since = clock.now()
    for (let at = 0; at < 50; at++)
      await expect(keys.find('a', 'ES256')).rejects.toMatchObject({ code: 'token_judge_unavailable' })
    expect([state.fetches, clock.now() - since]).toEqual([2, 0])
    state.down = false
    clock.advance(1_000)
    expect(await keys.find('a', 'ES256')).toHaveLength(1)
  })

  it('delays no token whose key is known, however late the key set is', async () => {
    const { keys, state, clock } = issuer([await key('a')])
    await keys.find('a', 'ES256')
    state.hold = new Promise(() => undefined)
    clock.advance(11 * 60_000)
    for (let at = 0; at < 10; at++) expect(await keys.find('a', 'ES256')).toHaveLength(1)
    expect(state.fetches).toBe(2)
  })

  it('is read once at a time: an older answer never takes the place of a newer one', async () => {
    const [old, next] = [await key('old'), await key('next')]
    const { keys, state } = issuer([old])
    const held = Promise.withResolvers<undefined>()
    state.hold = held.promise
    const first = keys.find('old', 'ES256')
    await settled()
    const second = keys.find('next', 'ES256')
    await settled()
    expect(state.fetches).toBe(1)
    state.keys = [next]
    state.hold = undefined
    held.resolve(undefined)
    await first
    expect(await second).toHaveLength(1)
    expect(await keys.find('old', 'ES256')).toBeUndefined()
  })
})

describe('T3.10: the standing of a foreign key', () => {
  const standingOf = async (keys: ForeignKeys, kid: string) => (await keys.find(kid, 'ES256'))![0]!.standing

  it('ends with the reading that does not bring it, and does not come back with it', async () => {
    const [a, b] = [await key('a'), await key('b')]
    const { keys, state, clock } = issuer([a, b])
    const [standing, other] = [await standingOf(keys, 'a'), await standingOf(keys, 'b')]
    state.keys = [b]
    clock.advance(61_000)
    expect(standing.isTrusted()).toBe(true)
    keys.tick()
    await settled()
    expect([standing.isTrusted(), other.isTrusted()]).toEqual([false, true])
    state.keys = [a, b]
    clock.advance(61_000)
    keys.tick()
    await settled()
    expect(standing.isTrusted()).toBe(false)
    expect((await standingOf(keys, 'a')).isTrusted()).toBe(true)
  })

  it.each([
    ['another key under its kid', async () => key('a')],
    ['a use that is not sig', async (a: Jwk) => Promise.resolve({ ...a, use: 'enc' })],
    ['another algorithm', async (a: Jwk) => Promise.resolve({ ...a, alg: 'ES384' })],
    ['operations without verify', async (a: Jwk) => Promise.resolve({ ...a, key_ops: ['deriveBits'] })],
  ])('ends with %s', async (_, change) => {
    const a = await key('a')
    const { keys, state, clock } = issuer([a])
    const standing = await standingOf(keys, 'a')
    state.keys = [await change(a)]
    clock.advance(61_000)
    await keys.find('unknown', 'ES256')
    expect(standing.isTrusted()).toBe(false)
  })

  it('goes on with other words about the same key', async () => {
    const a = await key('a')
    const { keys, state, clock } = issuer([a])
    const standing = await standingOf(keys, 'a')
    state.keys = [{ ...a, use: 'sig', key_ops: ['verify'], x5t: 'abc' }]
    clock.advance(61_000)
    await keys.find('unknown', 'ES256')
    expect(standing.isTrusted()).toBe(true)
    expect(await standingOf(keys, 'a')).toBe(standing)
  })

  it('is asked of the issuer each minute while tokens come, and not while none do', async () => {
    const { keys, state, clock } = issuer([await key('a')])
    const standing = await standingOf(keys, 'a')
    const minutes = async (count: number, used: boolean): Promise<number> => {
      const before = state.fetches
      for (let minute = 0; minute < count; minute++) {
        if (used) standing.isTrusted()
        clock.advance(61_000)
        keys.tick()
        await settled()
      }
      return state.fetches - before
    }
    expect(await minutes(5, true)).toBe(5)
    expect(await minutes(5, false)).toBe(0)
    expect(await minutes(1, true)).toBe(1)
  })

  it('T3.5 two readings are never under way together, whoever waits for which', async () => {
    const { keys, state } = issuer([await key('a')])
    let most = 0
    let now = 0
    state.around = async () => {
      now += 1
      most = Math.max(most, now)
      await settled()
      now -= 1
    }
    const asked: Promise<unknown>[] = []
    for (let at = 0; at < 60; at++) {
      asked.push(keys.find(`k${at}`, 'ES256'))
      if (at % 3 === 0) await settled()
      if (at % 7 === 0) await Promise.resolve()
    }
    await Promise.all(asked)
    expect(most).toBe(1)
  })

  it('ends when the keys are given up', async () => {
    const { keys } = issuer([await key('a')])
    const standing = await standingOf(keys, 'a')
    keys.close()
    expect(standing.isTrusted()).toBe(false)
  })
})

describe('C11.2: several keys of one kid', () => {
  it('are all handed out, but for those that cannot be used', async () => {
    const [one, other] = [await key('a'), await key('a')]
    const { keys } = issuer([{ ...other, x: 'AA' }, one, other])
    expect(await keys.find('a', 'ES256')).toHaveLength(2)
  })

  it('C4.15 where none can be used, it cannot be told', async () => {
    const { keys } = issuer([{ ...(await key('a')), x: 'AA' }])
    await expect(keys.find('a', 'ES256')).rejects.toMatchObject({ code: 'token_judge_unavailable' })
  })

  it('are not more than a token may cost', async () => {
    const { keys } = issuer(await Promise.all(Array.from({ length: 20 }, () => key('a'))))
    expect((await keys.find('a', 'ES256'))!.length).toBeLessThanOrEqual(4)
  })
})

describe('C11.2 what an operator hears of a foreign issuer', () => {
  it('C4.15 the state of its keys: unknown, fresh, stale', async () => {
    const { keys, state, clock } = issuer([await key('a')])
    expect(keys.state).toBe('unknown')
    await keys.find('a', 'ES256')
    expect(keys.state).toBe('fresh')
    state.down = true
    clock.advance(61_000)
    await keys.find('b', 'ES256').catch(() => undefined)
    expect(keys.state).toBe('stale')
  })

  it('T3.5 that it cannot be reached, and that it can again, each once', async () => {
    const { keys, state, clock, notes } = issuer([await key('a')])
    state.down = true
    for (let at = 0; at < 3; at++) {
      await keys.find('a', 'ES256').catch(() => undefined)
      clock.advance(2_000)
    }
    state.down = false
    await keys.find('a', 'ES256')
    expect(notes).toEqual(['issuer_keys_unreachable', 'issuer_keys_reachable_again'])
  })

  it('T3.1 each key that is refused, once, however often the set is read; two hundred at most', async () => {
    const a = await key('a')
    const { keys, state, clock, notes } = issuer([a, { ...a, kid: 'b', use: 'enc' }])
    await keys.find('a', 'ES256')
    clock.advance(61_000)
    await keys.find('unknown', 'ES256')
    expect(notes).toEqual(['issuer_key_refused'])
    state.keys = [a, ...Array.from({ length: 250 }, (_, at) => ({ ...a, kid: `k${at}`, use: 'enc' }))]
    clock.advance(61_000)
    await keys.find('another', 'ES256')
    expect(notes).toHaveLength(200)
  })

  it('T3.5 a known key costs the issuer no question within a minute', async () => {
    const { keys, state, clock } = issuer([await key('a')])
    await keys.find('a', 'ES256')
    clock.advance(59_999)
    for (let at = 0; at < 10; at++) await keys.find('a', 'ES256')
    await settled()
    expect(state.fetches).toBe(1)
    clock.advance(1)
    await keys.find('a', 'ES256')
    await settled()
    expect(state.fetches).toBe(2)
  })

  it('T3.5 at most a thousand calls wait for a reading, and a thousand for the next one', async () => {
    const { keys, state, clock } = issuer([await key('a')])
    for (let round = 1; round <= 2; round++) {
      const held = Promise.withResolvers<undefined>()
      state.hold = held.promise
      const calls = Array.from({ length: 1_000 }, (_, at) => keys.find(`${round}-${at}`, 'ES256'))
      await expect(keys.find('one more', 'ES256')).rejects.toMatchObject({ code: 'token_judge_unavailable' })
      held.resolve(undefined)
      const found = await Promise.all(calls)
      expect(found.every((each) => each === undefined)).toBe(true)
      clock.advance(5_000)
    }
  })
})
