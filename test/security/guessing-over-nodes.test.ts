import { describe, expect, it, onTestFinished } from 'vitest'
import type { AttemptStanding, GuessingKey } from '../../src/contracts/lockouts.ts'
import type { GuessingConfig } from '../../src/identity/config.ts'
import { LocalLockouts } from '../../src/identity/guessing/lockouts.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { planPostgres } from '../../src/stores/postgres/config.ts'
import { PostgresLink } from '../../src/stores/postgres/link.ts'
import { PostgresLockouts } from '../../src/stores/postgres/lockouts.ts'
import { needing } from '../support/machine.ts'
import { makeTables, query, sharedPostgres } from '../support/postgres.ts'

const RULES: GuessingConfig = {
  attempts: { free: 3, delay: 40, longest: 200 },
  networks: { free: 1000, delay: 1, longest: 1 },
  accounts: { free: 6, delay: 40, longest: 200, waiting: 100 },
  forget: 60_000,
  waiting: 100,
}
const KEY: GuessingKey = { user: 'alice', client: 'acme-books', network: '198.51.100.7' }
const NEW: AttemptStanding = { nameExists: true, familiar: false }

async function nodes(count: number, rules = RULES) {
  const cluster = await sharedPostgres()
  const schema = makeTables(cluster)
  const open = async () => {
    const link = await PostgresLink.open(
      planPostgres({
        ...{ url: cluster.url(), schema, connections: 4, deadline: 5000, maxAge: 1000 },
        ...{ migrate: 'never', preparedStatements: true },
      }),
    )
    onTestFinished(() => link.close())
    // Each wait is noted, and takes as long as it says.
    const waits: number[] = []
    const timer = async (ms: number): Promise<void> => {
      waits.push(ms)
      await new Promise((resolve) => setTimeout(resolve, ms))
    }
    const lockouts = new LocalLockouts(rules, systemClock, timer)
    lockouts.share(new PostgresLockouts(link))
    const attempt = async (right: boolean | undefined, key = KEY, standing = NEW): Promise<void> => {
      const turn = await lockouts.enter(key, standing)
      await turn.end(right)
    }
    return { lockouts, attempt, waits, link }
  }
  const all = await Promise.all(Array.from({ length: count }, open))
  const rows = () =>
    query(cluster, `SELECT failures FROM ${schema}.lockout ORDER BY key`).split('\n').map(Number)
  const text = () => query(cluster, `SELECT * FROM ${schema}.lockout`)
  return { all, rows, text }
}

describe('C6.3.5 C11.7.7 guessing at several nodes', needing('postgresql'), () => {
  it('failures at one node delay the next attempt at another', async () => {
    const { all } = await nodes(2)
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

  it('each node goes on by itself while the store is out of reach', async () => {
    const { all } = await nodes(1)
    const [{ attempt, link, waits }] = [all[0]!]
    await link.close()
    for (let n = 0; n < 4; n += 1) await attempt(false)
    expect(waits.length).toBeGreaterThan(0)
  })
})
