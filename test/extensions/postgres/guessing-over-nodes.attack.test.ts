import { describe, expect, it, onTestFinished } from 'vitest'
import type { AttemptStanding, GuessingKey } from '../../../src/base/contracts/people/lockouts.ts'
import { guardGuessing } from '../../../src/identity/guessing/guessing.ts'
import { LocalLockouts } from '../../../src/identity/guessing/lockouts.ts'
import type { GuessingConfig } from '../../../src/identity/dependencies/schema.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { PostgresLink } from '../../../src/extensions/postgres/link.ts'
import { PostgresLockouts } from '../../../src/extensions/postgres/shared-parts.ts'
import { TurnsOfNodes } from '../../../src/extensions/postgres/shared-turns.ts'
import { needing } from '../../support/machine.ts'
import { makeTables, planTo, query, sharedPostgres } from '../../support/postgres.ts'

const RULES: GuessingConfig = {
  attempts: { free: 3, delay: 40, longest: 200 },
  networks: { free: 1000, delay: 1, longest: 1 },
  accounts: { free: 6, delay: 40, longest: 200, waiting: 100 },
  forget: 60_000,
  waiting: 100,
}
const KEY: GuessingKey = { user: 'alice', client: 'acme-books', network: '198.51.100.7' }
const NEW: AttemptStanding = { nameExists: true, familiar: false }
/** Ends the turns for good: without another name on them their own node may renew them before the other one asks. */
const LAPSE = "UPDATE lockout SET busy_until = 1, busy_by = 'another'"

async function nodes(count: number, rules = RULES) {
  const cluster = await sharedPostgres()
  const schema = makeTables(cluster)
  const open = async () => {
    const link = await PostgresLink.open(planTo(cluster.url(), { schema, deadline: 5000 }))
    onTestFinished(() => link.close())
    // Each wait is noted, and takes as long as it says.
    const waits: number[] = []
    const timer = async (ms: number): Promise<void> => {
      waits.push(ms)
      await new Promise((resolve) => setTimeout(resolve, ms))
    }
    const lockouts = new LocalLockouts(rules, systemClock, timer)
    lockouts.share((wait, clock) => new TurnsOfNodes(new PostgresLockouts(link), wait, clock))
    const attempt = async (right: boolean | undefined, key = KEY, standing = NEW): Promise<void> => {
      const turn = await lockouts.enter(key, standing)
      await turn.end(right)
    }
    return { lockouts, attempt, waits, link, guard: guardGuessing(lockouts, timer) }
  }
  const all = await Promise.all(Array.from({ length: count }, open))
  const rows = () =>
    query(cluster, `SELECT failures FROM ${schema}.lockout ORDER BY key`).split('\n').map(Number)
  const text = (what = '*') => query(cluster, `SELECT ${what} FROM ${schema}.lockout`)
  const execute = (sql: string) => query(cluster, `SET search_path = ${schema}; ${sql}`)
  return { all, rows, text, execute }
}

describe('C6.3.5 C11.7.7 T3.8 guessing at several nodes', needing('postgresql'), () => {
  it('failures at one node delay the next attempt at another', async () => {
    // The delay is long, so that a slow machine does not outlast it before the other node asks.
    const slow = { free: 3, delay: 3000, longest: 3000 }
    const { all } = await nodes(2, { ...RULES, attempts: slow })
    const [one, other] = [all[0]!, all[1]!]
    for (let n = 0; n < 3; n += 1) await one.attempt(false)
    expect(other.waits).toEqual([])
    await other.attempt(false)
    expect(other.waits.length).toBeGreaterThan(0)
  })

  it('a right password forgets the failures at every node', async () => {
    const { all, rows } = await nodes(2)
    for (let n = 0; n < 3; n += 1) await all[0]!.attempt(false)
    await all[1]!.attempt(true)
    expect(rows()).toEqual([0, 0])
    const before = all[1]!.waits.length
    await all[1]!.attempt(true)
    expect(all[1]!.waits).toHaveLength(before)
  })

  it('attempts of one user, client and network run one at a time over all nodes', async () => {
    const { all } = await nodes(3)
    let [running, most] = [0, 0]
    await Promise.all(
      Array.from({ length: 12 }, async (_, n) => {
        const turn = await all[n % 3]!.lockouts.enter(KEY, NEW)
        running += 1
        most = Math.max(most, running)
        await new Promise((resolve) => setTimeout(resolve, 3))
        running -= 1
        await turn.end(true)
      }),
    )
    expect(most).toBe(1)
  })

  it('attempts at one account from many networks at once are no more than are free, then one at a time', async () => {
    const { all } = await nodes(3)
    let [running, most] = [0, 0]
    await Promise.all(
      Array.from({ length: 18 }, async (_, n) => {
        const turn = await all[n % 3]!.lockouts.enter({ ...KEY, network: `203.0.113.${n}` }, NEW)
        running += 1
        most = Math.max(most, running)
        await new Promise((resolve) => setTimeout(resolve, 20))
        running -= 1
        await turn.end(undefined)
      }),
    )
    expect(most).toBeLessThanOrEqual(RULES.accounts.free + 1)
  })

  it('an attempt that broke is not counted', async () => {
    const { all, rows } = await nodes(2)
    for (let n = 0; n < 4; n += 1) await all[n % 2]!.attempt(undefined)
    expect(rows()).toEqual([0, 0])
  })

  it('a user’s own network is not delayed by failures elsewhere', async () => {
    const { all } = await nodes(2)
    for (let n = 0; n < 8; n += 1) await all[0]!.attempt(false, { ...KEY, network: `203.0.113.${n}` })
    const before = all[1]!.waits.length
    await all[1]!.attempt(true, KEY, { nameExists: true, familiar: true })
    expect(all[1]!.waits).toHaveLength(before)
  })

  it('what stands in the store names nobody', async () => {
    const { all, text } = await nodes(2)
    await all[0]!.lockouts.enter(KEY, NEW)
    expect(text()).not.toMatch(/alice|acme|198\.51/)
    expect(text().split('\n')).toHaveLength(2)
  })

  it('an operator clears the failures of all nodes', async () => {
    const { all, rows } = await nodes(2)
    for (let n = 0; n < 3; n += 1) await all[0]!.attempt(false)
    expect(rows()).toEqual([3, 3])
    expect(await all[1]!.lockouts.clear({ user: 'alice' })).toBe(2)
    expect(rows()).toEqual([0])
  })

  it('an attempt that no node can count is not made: it is 503 while the store is out of reach', async () => {
    const { all } = await nodes(1)
    const { attempt, link, guard } = all[0]!
    await attempt(true)
    await link.close()
    let made = 0
    const guess = guard.attempt(KEY, NEW, () => {
      made += 1
      return Promise.resolve(undefined)
    })
    await expect(guess).rejects.toMatchObject({ code: 'identity_unavailable' })
    expect(made).toBe(0)
  })

  it('who waits for the turn of another node is told 503, and has the next turn', async () => {
    const { all } = await nodes(2)
    const turn = await all[0]!.lockouts.enter(KEY, NEW)
    for (let n = 0; n < 2; n += 1)
      await expect(all[1]!.attempt(true)).rejects.toMatchObject({ code: 'identity_unavailable' })
    await turn.end(true)
    await all[1]!.attempt(true)
  })

  it('who waits for a turn on the same node is told 503 too', async () => {
    const { all } = await nodes(1)
    const turn = await all[0]!.lockouts.enter(KEY, NEW)
    await expect(all[0]!.attempt(true)).rejects.toMatchObject({ code: 'identity_unavailable' })
    await turn.end(true)
    await all[0]!.attempt(true)
  })

  it('the turn of a node that died is free for the others soon', async () => {
    const { all } = await nodes(2)
    await all[0]!.lockouts.enter(KEY, NEW)
    await all[0]!.link.close()
    await expect
      .poll(
        () =>
          all[1]!.attempt(true).then(
            () => 'in',
            () => 'out',
          ),
        { timeout: 15_000 },
      )
      .toBe('in')
  })

  it('the turns of an attempt that takes long are kept', async () => {
    const { all, execute, text } = await nodes(1, { ...RULES, accounts: { ...RULES.accounts, free: 0 } })
    const turn = await all[0]!.lockouts.enter(KEY, NEW)
    execute('UPDATE lockout SET busy_until = 1')
    await expect.poll(() => text('busy_until > 1')).toBe('t\nt')
    expect(await turn.end(true)).toBe(0)
  })

  it('an attempt whose turn has gone to another one is made again, and counts once', async () => {
    const { all, execute, rows } = await nodes(2)
    let made = 0
    const guess = async (): Promise<string | undefined> => {
      made += 1
      if (made > 1) return undefined
      execute(LAPSE)
      await all[1]!.attempt(false)
      return undefined
    }
    expect(await all[0]!.guard.attempt(KEY, NEW, guess)).toBe(undefined)
    expect(made).toBe(2)
    expect(rows()).toEqual([2, 2])
  })

  it('an attempt that lost its turn each time is 503, and never told as wrong', async () => {
    const { all, execute } = await nodes(2, { ...RULES, attempts: { free: 100, delay: 1, longest: 1 } })
    const guess = async (): Promise<string | undefined> => {
      execute(LAPSE)
      await all[1]!.attempt(false)
      return undefined
    }
    const answer = all[0]!.guard.attempt(KEY, NEW, guess)
    await expect(answer).rejects.toMatchObject({ code: 'identity_unavailable' })
  })
})
