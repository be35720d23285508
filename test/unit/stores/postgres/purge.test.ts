import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { PostgresBudgets } from '../../../../src/stores/postgres/budgets.ts'
import { planPostgres } from '../../../../src/stores/postgres/config.ts'
import { PostgresLink } from '../../../../src/stores/postgres/link.ts'
import { PostgresLockouts } from '../../../../src/stores/postgres/lockouts.ts'
import { PostgresStore } from '../../../../src/stores/postgres/store.ts'
import { needing } from '../../../support/machine.ts'
import { makeTables, query, sharedPostgres } from '../../../support/postgres.ts'

const DAY = 86_400_000

async function opened() {
  const cluster = await sharedPostgres()
  const schema = makeTables(cluster)
  const link = await PostgresLink.open(
    planPostgres({
      ...{ url: cluster.url(), schema, connections: 2, deadline: 10_000, maxAge: 1000 },
      ...{ migrate: 'never', preparedStatements: true },
    }),
  )
  const store = await PostgresStore.open(link, systemClock)
  onTestFinished(() => store.close())
  return {
    ...{ store, budgets: new PostgresBudgets(link), lockouts: new PostgresLockouts(link) },
    /** Time passes. */
    wait: (ms: number): void => {
      query(cluster, `UPDATE ${schema}.bucket SET at = at - ${ms}`)
      query(
        cluster,
        `UPDATE ${schema}.lockout SET last_at = last_at - ${ms}, busy_until = busy_until - ${ms}`,
      )
    },
    keys: (table: string): string => query(cluster, `SELECT key FROM ${schema}.${table} ORDER BY key`),
  }
}

describe('what a purge of Postgres leaves', needing('postgresql'), () => {
  it('C11.7.5 the budget of a client that takes months to be full again, and none of an old address', async () => {
    const { store, budgets, wait, keys } = await opened()
    const rate = { perMs: 1000 / (90 * DAY), burst: 1000 }
    const used = [
      { key: 'c:acme', ...rate, spent: 1000, want: 0 },
      { key: 'a:192.0.2.1', ...rate, spent: 5, want: 0 },
    ]
    await budgets.exchange('one', 1, used)
    wait(3 * DAY)
    await store.purge(1000)
    expect(keys('bucket')).toBe('c:acme')
    const [left] = await budgets.exchange('one', 2, [{ ...used[0]!, spent: 0 }])
    expect(Math.round(left!.level)).toBe(33)
    wait(401 * DAY)
    await store.purge(1000)
    expect(keys('bucket')).toBe('')
  })

  it('C6.3.5 the turn of a first attempt that is under way, and no failures that are days old', async () => {
    const { store, lockouts, wait, keys } = await opened()
    const delays = { free: 3, delay: 500, longest: 30_000, forget: 900_000 }
    expect(await lockouts.take('key', 'one', 30_000, delays)).toMatchObject({ taken: true })
    await store.purge(1000)
    expect(keys('lockout')).toBe('key')
    expect(await lockouts.take('key', 'two', 30_000, delays)).toMatchObject({ taken: false })
    await lockouts.end('key', 'one', false, delays.forget)
    wait(3 * DAY)
    await store.purge(1000)
    expect(keys('lockout')).toBe('')
  })
})
