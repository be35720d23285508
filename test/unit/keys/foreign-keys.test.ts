import { describe, expect, it } from 'vitest'
import { ForeignKeys } from '../../../src/keys/foreign-keys.ts'
import { generatePrivateJwk, publicPart, type Jwk } from '../../../src/keys/signatures.ts'
import { movableClock } from '../../support/movable-clock.ts'

async function key(kid: string): Promise<Jwk> {
  return { ...publicPart(await generatePrivateJwk('ES256'), 'ES256'), kid, alg: 'ES256' }
}

/** An issuer whose answers a test chooses, and whose fetches are counted. */
function issuer(first: readonly Jwk[]) {
  const clock = movableClock()
  const state = { keys: first, down: false, fetches: 0 }
  const notes: string[] = []
  const found = new ForeignKeys({
    issuer: 'https://issuer.example',
    fetchKeys: () => {
      state.fetches += 1
      return state.down ? Promise.reject(new Error('down')) : Promise.resolve(state.keys)
    },
    clock,
    recorder: { note: (_level, event) => void notes.push(event) },
    pause: (milliseconds) => {
      clock.advance(milliseconds)
      return Promise.resolve()
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
