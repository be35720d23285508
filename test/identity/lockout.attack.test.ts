import { describe, expect, it } from 'vitest'
import { LocalLockouts } from '../../src/identity/guessing/lockouts.ts'
import { movableClock } from '../support/movable-clock.ts'
import { postForm, type OAuthAnswer } from '../support/oauth.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import {
  requestToken,
  client,
  openTestIdentity,
  user,
  type TestIdentity,
} from '../support/identity-under-test.ts'

// T3.8: a lockout that one door does not know, that locks others out, or whose key the guesser chooses.

const RULES = {
  attempts: { free: 3, delay: 1000, longest: 60_000 },
  networks: { free: 1000, delay: 1000, longest: 1000 },
  accounts: { free: 100, delay: 1000, longest: 30_000, waiting: 4 },
  forget: 3_600_000,
  waiting: 2,
}

/** A service whose lockouts tell what they made wait, and let it pass. */
function guarded(): {
  readonly service: TestIdentity
  readonly waits: number[]
  readonly lockouts: LocalLockouts
} {
  const waits: number[] = []
  const clock = movableClock()
  const lockouts = new LocalLockouts(RULES, clock, (ms) => {
    waits.push(ms)
    clock.advance(ms)
    return Promise.resolve()
  })
  const clients = [client('acme-books'), client('other')]
  const users = [user('alice', { customers: ['acme-books', 'other'] }), user('bob')]
  return { service: openTestIdentity({ clients, users, deps: { attempts: lockouts } }), waits, lockouts }
}

const login = (service: TestIdentity, params: Readonly<Record<string, string>>, headers = {}) =>
  requestToken(service, params, headers)
const wrong = { password: 'wrong' }

async function guess(service: TestIdentity, times: number): Promise<void> {
  for (let at = 0; at < times; at++) await login(service, wrong)
}

describe('T3.8 lockout', () => {
  it('C6.3.5 slows the guesser down more and more, and never refuses the right password', async () => {
    const { service, waits } = guarded()
    await guess(service, 6)
    expect(waits).toEqual([1000, 2000, 4000])
    expect((await login(service, {})).status).toBe(200)
    expect(waits).toEqual([1000, 2000, 4000, 8000])
  })

  it('C6.3.5 does not slow the same user through another client, or another user', async () => {
    const { service, waits } = guarded()
    await guess(service, 6)
    waits.length = 0
    const other = `Basic ${Buffer.from('other:other-secret').toString('base64')}`
    expect((await login(service, {}, { authorization: other })).status).toBe(200)
    expect((await login(service, { username: 'bob', password: 'bob-password' })).status).toBe(200)
    expect(waits).toEqual([])
  })

  it('C6.3.5 does not lock: a locked user is what an administrator made', async () => {
    const { service } = guarded()
    await guess(service, 50)
    expect(await service.deps.people.findUserByName('alice')).toMatchObject({ locked: false })
    expect((await login(service, {})).status).toBe(200)
  })

  it('C6.3.5 counts a name that nobody has as any other: the delay tells nothing (T3.9)', async () => {
    const { service, waits } = guarded()
    for (let at = 0; at < 6; at++) await login(service, { username: 'nobody', ...wrong })
    expect(waits).toEqual([1000, 2000, 4000])
  })

  it('C6.3.5 is one state for every door: what one room counts, another over the same lockouts knows', async () => {
    const { service, waits, lockouts } = guarded()
    await guess(service, 6)
    const other = openTestIdentity({ deps: { attempts: lockouts } })
    waits.length = 0
    await login(other, wrong)
    expect(waits).toEqual([8000])
  })

  it('C6.3.5 an operator can end it', async () => {
    const { service, waits, lockouts } = guarded()
    await guess(service, 6)
    expect(lockouts.list()).toMatchObject([{ user: 'alice', client: 'acme-books', network: '192.0.2.7' }])
    await lockouts.clear({ user: 'alice' })
    waits.length = 0
    await login(service, {})
    expect(waits).toEqual([])
  })
})

const guessAt = (service: StartedPostern, headers: Readonly<Record<string, string>>): Promise<OAuthAnswer> =>
  postForm(service, '/connect/token', {
    params: {
      grant_type: 'password',
      username: 'alice',
      password: 'wrong',
      scope: 'fund.read target:b/ACME',
    },
    headers,
  })

describe('T3.8 the key of a lockout', () => {
  it.each(['X-Forwarded-For', 'Forwarded', 'X-Real-IP', 'True-Client-IP'])(
    'C6.3.5 is not the guesser’s to choose by %s',
    async (name) => {
      const service = await postern({ keeps: 'nothing' })
      for (let at = 1; at <= 5; at++) {
        const address = `203.0.113.${at}`
        await guessAt(service, { [name]: name === 'Forwarded' ? `for=${address}` : address })
      }
      expect(service.context.lockouts.list()).toMatchObject([
        { user: 'alice', client: 'acme-books', network: '127.0.0.1', failures: 5 },
      ])
    },
  )
})
