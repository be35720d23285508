import { describe, expect, it } from 'vitest'
import type { AttemptStanding, GuessingKey } from '../../../src/base/contracts/people/lockouts.ts'
import { guardGuessing } from '../../../src/identity/guessing/guessing.ts'
import { LocalLockouts } from '../../../src/identity/guessing/lockouts.ts'
import { ManualClock } from '../../support/identity-under-test.ts'

const RULES = {
  attempts: { free: 3, delay: 1000, longest: 4000 },
  networks: { free: 100, delay: 1000, longest: 2000 },
  accounts: { free: 100, delay: 1000, longest: 30_000, waiting: 4 },
  forget: 60_000,
  waiting: 2,
}
const STRANGER: AttemptStanding = { nameExists: true, familiar: false }
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
  const fail = (key = KEY) => guard.attempt(key, STRANGER, () => Promise.resolve(undefined))
  const pass = (key = KEY) => guard.attempt(key, STRANGER, () => Promise.resolve('right'))
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
    await Promise.all([guard.attempt(KEY, STRANGER, attempt), guard.attempt(KEY, STRANGER, attempt)])
    expect(most).toBe(1)
  })

  it('C6.3.5 an attempt that breaks does not hold up the next', async () => {
    const { guard, pass } = open()
    await expect(guard.attempt(KEY, STRANGER, () => Promise.reject(new Error('down')))).rejects.toThrow(
      'down',
    )
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

  it('T3.8 C6.3.5 20,400 invented names leave a victim’s delay as it is', async () => {
    const { delays, fail, guard } = open({
      networks: { free: 1_000_000, delay: 1000, longest: 1000 },
    })
    const invent = (user: string) =>
      guard.attempt({ ...KEY, user }, { nameExists: false, familiar: false }, () =>
        Promise.resolve(undefined),
      )
    await repeat(5, fail)
    delays.length = 0
    for (let at = 0; at < 20_400; at++) await invent(`nobody-${at}`)
    await fail()
    expect(delays).toEqual([4000])
  })

  it('C6.3.5 a right password takes no room, and a very long name no more than another', async () => {
    const { fail, lockouts, pass } = open()
    await pass()
    await repeat(3, () => fail({ ...KEY, user: 'x'.repeat(60_000) }))
    const [lockout, ...more] = lockouts.list()
    expect(more).toEqual([])
    expect(lockout?.user.length).toBeLessThan(200)
    expect(await lockouts.clear({ user: 'x'.repeat(60_000) })).toBe(1)
  })
})

describe('C6.3.5 an account that is guessed at from many networks', () => {
  const ACCOUNTS = { free: 100, delay: 1000, longest: 30_000, waiting: 4 }
  const HOME: AttemptStanding = { nameExists: true, familiar: true }
  const from = (at: number): GuessingKey => ({
    ...KEY,
    network: `198.51.${Math.floor(at / 256)}.${at % 256}`,
  })

  /** An account with so many failures, each from a network of its own. */
  async function guessedAt(times: number) {
    const service = open({ accounts: ACCOUNTS })
    for (let at = 0; at < times; at++) await service.fail(from(at))
    return service
  }

  it('T3.8 200 guesses from 200 networks: the first 100 are free, then 1 s doubled up to 30 s for each', async () => {
    const { delays } = await guessedAt(200)
    expect(delays.slice(0, 7)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
    expect(delays).toHaveLength(100)
  })

  it('T3.8 attempts from where the user has logged in before are untouched, and end nothing for the others', async () => {
    const { delays, fail, guard } = await guessedAt(103)
    delays.length = 0
    const home = () => guard.attempt(from(1000), HOME, () => Promise.resolve('right'))
    expect(await Promise.all([home(), home()])).toEqual(['right', 'right'])
    expect(delays).toEqual([])
    await fail(from(1001))
    expect(delays).toEqual([8000])
  })

  it('T3.8 they run one at a time, four wait, and the sixth is invalid_grant; other accounts are untouched', async () => {
    const { guard, pass } = await guessedAt(100)
    const gates = Array.from({ length: 6 }, () => Promise.withResolvers<undefined>())
    let running = 0
    const attempts = gates.map(({ promise }, at) =>
      guard.attempt(from(2000 + at), STRANGER, async () => {
        running += 1
        await promise
        running -= 1
        return undefined
      }),
    )
    await expect(attempts[5]).rejects.toMatchObject({ code: 'invalid_grant' })
    await new Promise(setImmediate)
    expect(running).toBe(1)
    expect(await pass({ ...from(3000), user: 'bob' })).toBe('right')
    for (const { resolve } of gates) resolve(undefined)
    await Promise.all(attempts.slice(0, 5))
  })

  it('T3.8 200 guesses sent at once are no way around it: 101 run, four wait, the others are refused', async () => {
    const { guard } = open({ accounts: ACCOUNTS })
    const gate = Promise.withResolvers<undefined>()
    let running = 0
    const attempts = Array.from({ length: 200 }, (_, at) =>
      guard.attempt(from(at), STRANGER, () => ((running += 1), gate.promise)),
    )
    const settled = Promise.allSettled(attempts)
    await new Promise(setImmediate)
    expect(running).toBe(101)
    gate.resolve(undefined)
    const refused = (await settled).filter(({ status }) => status === 'rejected')
    expect(refused).toHaveLength(95)
    expect(running).toBe(105)
  })

  it('T3.9 a name that nobody has is slowed down alike', async () => {
    const { delays, guard } = open({ accounts: ACCOUNTS })
    for (let at = 0; at < 102; at++)
      await guard.attempt(from(at), { nameExists: false, familiar: false }, () => Promise.resolve(undefined))
    expect(delays).toEqual([1000, 2000])
  })

  it('C6.3.5 a login from a new network ends it, a day without failures does, and so does an operator', async () => {
    const { clock, delays, fail, lockouts, pass } = await guessedAt(101)
    const lockout = { user: 'alice', failures: 101, delay: 2000, at: expect.any(Number) }
    expect(lockouts.list()).toEqual([lockout])
    await pass(from(1000))
    expect(lockouts.list()).toEqual([])
    for (let at = 0; at < 100; at++) await fail(from(at + 2000))
    expect(await lockouts.clear({ client: 'acme-books' })).toBe(201)
    expect(lockouts.list()).toHaveLength(1)
    expect(await lockouts.clear({ user: 'alice' })).toBe(1)
    for (let at = 0; at < 100; at++) await fail(from(at + 3000))
    clock.at += 24 * 60 * 60 * 1000
    delays.length = 0
    await fail(from(4000))
    expect(delays).toEqual([])
  })

  it('T3.8 waiting a quarter of an hour buys no hundred guesses more', async () => {
    const { clock, delays, fail } = await guessedAt(99)
    clock.at += 3_600_000
    await repeat(2, () => fail(from(5000)))
    expect(delays).toEqual([1000])
  })
})
