import { describe, expect, it } from 'vitest'
import type { GuessingKey } from '../../../src/contracts/lockouts.ts'
import { guardGuessing } from '../../../src/identity/guessing.ts'
import { LocalLockouts } from '../../../src/identity/lockouts.ts'
import { ManualClock } from './world.ts'

const RULES = {
  attempts: { free: 3, delay: 1000, longest: 4000 },
  networks: { free: 100, delay: 1000, longest: 2000 },
  forget: 60_000,
  waiting: 2,
}
const KEY: GuessingKey = { user: 'alice', client: 'acme-books', network: '192.0.2.7' }

/** A guard whose delays pass at once on its clock, and are remembered. */
function open(rules: Partial<typeof RULES> = {}) {
  const clock = new ManualClock()
  const delays: number[] = []
  const timer = (ms: number): Promise<void> => {
    delays.push(ms)
    clock.at += ms
    return Promise.resolve()
  }
  const lockouts = new LocalLockouts({ ...RULES, ...rules }, clock, timer)
  const guard = guardGuessing(lockouts, timer)
  const fail = (key = KEY) => guard.attempt(key, () => Promise.resolve(undefined))
  const pass = (key = KEY) => guard.attempt(key, () => Promise.resolve('right'))
  return { clock, delays, guard, lockouts, fail, pass }
}

async function repeat(times: number, act: () => Promise<unknown>): Promise<void> {
  for (let at = 0; at < times; at++) await act()
}

describe('C6.3.5 password guessing', () => {
  it('C6.3.5 failures delay the next attempt more and more, up to a bound', async () => {
    const { delays, fail } = open()
    await repeat(7, fail)
    expect(delays).toEqual([1000, 2000, 4000, 4000])
  })

  it('C6.3.5 time that has passed counts', async () => {
    const { clock, delays, fail } = open()
    await repeat(3, fail)
    clock.at += 400
    await fail()
    expect(delays).toEqual([600])
  })

  it.each<Partial<GuessingKey>>([{ user: 'bob' }, { client: 'other' }, { network: '192.0.2.8' }])(
    'C6.3.5 a correct login by someone else is never slowed (%o)',
    async (other) => {
      const { delays, fail, pass } = open()
      await repeat(3, fail)
      expect(await pass({ ...KEY, ...other })).toBe('right')
      expect(delays).toEqual([])
    },
  )

  it('C6.3.5 a right password ends the delays, and so does time', async () => {
    const { clock, delays, fail, pass } = open()
    await repeat(3, fail)
    await pass()
    await repeat(3, fail)
    clock.at += RULES.forget
    await fail()
    expect(delays).toEqual([1000])
  })

  it('C6.3.5 one attempt of a key runs at a time', async () => {
    const { guard } = open()
    let running = 0
    let most = 0
    const attempt = async () => {
      most = Math.max(most, ++running)
      await new Promise(setImmediate)
      running -= 1
      return 'right'
    }
    await Promise.all([guard.attempt(KEY, attempt), guard.attempt(KEY, attempt)])
    expect(most).toBe(1)
  })

  it('C6.3.5 an attempt that breaks does not hold up the next', async () => {
    const { guard, pass } = open()
    await expect(guard.attempt(KEY, () => Promise.reject(new Error('down')))).rejects.toThrow('down')
    expect(await pass()).toBe('right')
  })

  it('C6.3.5 a bounded number waits; beyond, a guesser gets invalid_grant and anyone else 503', async () => {
    const { fail, pass } = open()
    await expect(Promise.all([pass(), pass(), pass()])).rejects.toMatchObject({
      code: 'identity_unavailable',
    })
    await repeat(3, fail)
    await expect(Promise.all([fail(), fail(), fail()])).rejects.toMatchObject({ code: 'invalid_grant' })
  })

  it('C6.3.5 a network with many failures has its failed answers held back, never its right ones', async () => {
    const { delays, fail, pass } = open({ networks: { free: 2, delay: 1000, longest: 2000 } })
    for (const user of ['a', 'b', 'c', 'd']) await fail({ ...KEY, user })
    expect(delays).toEqual([1000, 2000, 2000])
    await pass({ ...KEY, user: 'e' })
    expect(delays).toHaveLength(3)
  })

  it('C6.3.5 an IPv6 site is one network for a key too: its last 64 bits are the guesser’s to choose', async () => {
    const { delays, fail } = open()
    for (const last of [1, 2, 3, 4]) await fail({ ...KEY, network: `2001:db8::${last}` })
    expect(delays).toEqual([1000])
  })

  it('C6.3.5 an operator sees who is slowed down, and can end it', async () => {
    const { delays, fail, lockouts, pass } = open({
      networks: { free: 4, delay: 1000, longest: 2000 },
    })
    await repeat(3, fail)
    await fail({ ...KEY, user: 'bob' })
    expect(lockouts.list()).toEqual([{ ...KEY, failures: 3, delay: 1000, at: expect.any(Number) }])
    expect(await lockouts.clear({ user: 'nobody' })).toBe(0)
    expect(await lockouts.clear({ user: 'alice' })).toBe(1)
    expect(lockouts.list()).toEqual([])
    expect(await lockouts.clear({ network: KEY.network })).toBe(1)
    await fail()
    delays.length = 0
    await pass()
    expect(delays).toEqual([])
  })

  it('C6.3.5 other rules apply at once to what was counted', async () => {
    const { delays, fail, lockouts } = open()
    await repeat(3, fail)
    lockouts.configure({ ...RULES, attempts: { ...RULES.attempts, free: 10 } })
    await fail()
    expect(delays).toEqual([])
  })

  it('C6.3.5 an IPv6 site is one network', async () => {
    const { delays, fail } = open({ networks: { free: 2, delay: 1000, longest: 2000 } })
    for (const network of ['2001:db8::1', '2001:db8:0:0:ffff::2', '2001:db8:0:1::1'])
      await fail({ ...KEY, network })
    expect(delays).toEqual([1000])
  })
})
