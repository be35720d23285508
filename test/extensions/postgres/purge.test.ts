import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { PostgresLink } from '../../../src/extensions/postgres/link.ts'
import { PostgresBudgets, PostgresLockouts } from '../../../src/extensions/postgres/shared-parts.ts'
import { PostgresStore } from '../../../src/extensions/postgres/store.ts'
import { needing } from '../../support/machine.ts'
import { makeTables, planTo, query, sharedPostgres } from '../../support/postgres.ts'

const DAY = 86_400_000
/** After five, Postgres plans a prepared statement without its values. */
const ROUNDS = 20

async function opened() {
  const cluster = await sharedPostgres()
  const schema = makeTables(cluster)
  const link = await PostgresLink.open(planTo(cluster.url(), { schema, connections: 2 }))
  const store = await PostgresStore.open(link, systemClock)
  onTestFinished(() => store.close())
  return {
    ...{ cluster, schema, store, budgets: new PostgresBudgets(link), lockouts: new PostgresLockouts(link) },
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
    await lockouts.end({ key: 'key', by: 'one' }, false, { key: delays.forget, account: delays.forget })
    wait(3 * DAY)
    await store.purge(1000)
    expect(keys('lockout')).toBe('')
  })

  it('what somebody else holds at the moment, and removes the rest without waiting for it', async () => {
    const { cluster, schema, store, lockouts, budgets, wait, keys } = await opened()
    const delays = { free: 3, delay: 500, longest: 30_000, forget: 900_000 }
    for (const key of ['free', 'held']) {
      await store.create('kind', key, { value: {}, expiresAt: 1 })
      await lockouts.count(key, 'one', 1000, delays)
      await budgets.exchange('one', 1, [{ key: `a:${key}`, perMs: 1, burst: 1, spent: 0, want: 0 }])
      await store.append('topic', {}, { expiresAt: 1 })
    }
    wait(3 * DAY)
    await store.append('topic', {})
    const other = new pg.Client(cluster.url())
    await other.connect()
    try {
      await other.query(`BEGIN`)
      for (const [table, column] of Object.entries({ record: 'key', lockout: 'key', bucket: 'key' }))
        await other.query(`SELECT 1 FROM ${schema}.${table} WHERE ${column} LIKE '%held' FOR UPDATE`)
      await other.query(`SELECT 1 FROM ${schema}.change ORDER BY sequence LIMIT 1 FOR UPDATE`)
      expect(await store.purge(1000)).toBe(4)
      expect(['record', 'lockout', 'bucket'].map(keys)).toEqual(['held', 'held', 'a:held'])
    } finally {
      await other.end()
    }
    expect(await store.purge(1000)).toBe(4)
    expect(['record', 'lockout', 'bucket'].map(keys)).toEqual(['', '', ''])
  })

  it('no row unseen of tables that are larger than what one round looks at', async () => {
    const { cluster, schema, store, keys } = await opened()
    for (const [table, columns] of [
      ['bucket', `0, 0, ''`],
      ['lockout', '0, 0, 0, NULL'],
    ] as const)
      query(
        cluster,
        `INSERT INTO ${schema}.${table} SELECT 'a:' || n, ${columns} FROM generate_series(1, 1200) AS n;
         UPDATE ${schema}.${table} SET ${table === 'bucket' ? 'at' : 'last_at'} = ${Date.now()} WHERE key = 'a:700'`,
      )
    while ((await store.purge(5000)) > 0);
    expect(['lockout', 'bucket'].map(keys)).toEqual(['a:700', 'a:700'])
  })

  // The planner doesn't know the values of a prepared statement, and took the primary key for the order: minutes where most is dead.
  it('the live records unread: it finds what has expired by the index of expiry', async () => {
    const { cluster, schema, store } = await opened()
    query(
      cluster,
      `INSERT INTO ${schema}.record (kind, key, value, attempt, expires_at)
         SELECT 'kind', md5(n::text), '', '', CASE WHEN n % 10 = 0 THEN 1 ELSE ${Date.now() + DAY} END
         FROM generate_series(1, 50000) AS n;
       ANALYZE ${schema}.record`,
    )
    for (let round = 0; round < ROUNDS; round += 1) expect(await store.purge(200)).toBe(200)
    // A connection tells what it has read when it ends.
    await store.close()
    const [removed, read] = ['n_tup_del', 'seq_tup_read + coalesce(idx_tup_fetch, 0)'].map(
      (column) => (): number =>
        Number(
          query(
            cluster,
            `SELECT ${column} FROM pg_stat_user_tables WHERE relid = '${schema}.record'::regclass`,
          ),
        ),
    )
    await expect.poll(removed!).toBe(200 * ROUNDS)
    expect(read!()).toBeLessThan(10 * 200 * ROUNDS)
  })
})

/** Makes the connection report its statistics at once. */
const TELL_NOW = 'SELECT pg_stat_force_next_flush()'

describe('removing from Postgres by an index', needing('postgresql'), () => {
  it.each(['business', 'subject', 'family'] as const)(
    'walks through no records that have another %s, when no more have it',
    async (index) => {
      const { cluster, schema, store } = await opened()
      query(
        cluster,
        `INSERT INTO ${schema}.record (kind, key, value, attempt, ${index})
           SELECT 'kind', md5(n::text), '', '', 'value' || n % 3 FROM generate_series(1, 20000) AS n;
         ANALYZE ${schema}.record;
         DELETE FROM ${schema}.record WHERE ${index} = 'value1';
         ${TELL_NOW}`,
      )
      const sum = (scans: string): number =>
        Number(
          query(
            cluster,
            `SELECT ${scans} FROM pg_stat_user_tables WHERE relid = '${schema}.record'::regclass`,
          ),
        )
      const scans = (): number => sum('seq_scan + idx_scan')
      const rows = (): number => sum('seq_tup_read + idx_tup_fetch')
      const before = { scans: scans(), rows: rows() }
      expect(await store.removeBy('kind', { [index]: 'value1' })).toBe(0)
      // A connection tells what it has read when it ends.
      await store.close()
      await expect.poll(scans).toBeGreaterThan(before.scans)
      expect(rows() - before.rows).toBeLessThan(1000)
    },
  )
})
