import { describe, expect, it, onTestFinished } from 'vitest'
import { PostgresLink } from '../../../src/extensions/postgres/link.ts'
import { PostgresBudgets } from '../../../src/extensions/postgres/shared-parts.ts'
import { needing } from '../../support/machine.ts'
import { makeTables, planTo, query, sharedPostgres } from '../../support/postgres.ts'

async function opened(user = 'postern') {
  const cluster = await sharedPostgres()
  const schema = makeTables(cluster)
  const link = await PostgresLink.open(planTo(cluster.url(user), { schema }))
  onTestFinished(() => link.close())
  /** Time passes: all budgets fill up. */
  const wait = (ms: number): unknown => query(cluster, `UPDATE ${schema}.bucket SET at = at - ${ms}`)
  return { budgets: new PostgresBudgets(link), wait }
}

/** 100 calls a second, and 100 at once. It hardly fills while a test runs, unless time is made to pass. */
const asked = (key: string, want: number, spent = 0) => ({ key, perMs: 0.000_1, burst: 100, spent, want })

describe.each(['postern', 'serializable'])('budgets in Postgres as %s', (user) => {
  describe('C11.7.5', needing('postgresql'), () => {
    it('are full at first, and grant what is there', async () => {
      const { budgets } = await opened(user)
      expect(await budgets.exchange('one', 1, [asked('k', 60)])).toMatchObject([{ key: 'k', granted: 60 }])
      const [next] = await budgets.exchange('two', 1, [asked('k', 60)])
      expect([next?.granted, Math.round(next!.level)]).toEqual([40, 0])
    })

    it('take off what was spent before, down below 0, and grant nothing then', async () => {
      const { budgets, wait } = await opened(user)
      await budgets.exchange('one', 1, [asked('k', 90)])
      const [spent] = await budgets.exchange('one', 2, [asked('k', 5, 30)])
      expect([spent?.granted, Math.round(spent!.level)]).toEqual([0, -20])
      wait(500_000)
      expect(Math.round((await budgets.exchange('one', 3, [asked('k', 0)]))[0]!.level)).toBe(30)
    })

    it('take back what is given back, and hold no more than a burst', async () => {
      const { budgets } = await opened(user)
      await budgets.exchange('one', 1, [asked('k', 50)])
      const [back] = await budgets.exchange('one', 2, [asked('k', 0, -50)])
      expect(Math.round(back!.level)).toBe(100)
    })

    it('do nothing for a number that was told before', async () => {
      const { budgets } = await opened(user)
      await budgets.exchange('one', 1, [asked('k', 10)])
      await budgets.exchange('one', 2, [asked('k', 10, 5)])
      const [again] = await budgets.exchange('one', 2, [asked('k', 10, 5)])
      expect([again?.granted, Math.round(again!.level)]).toEqual([0, 75])
      const [other] = await budgets.exchange('two', 2, [asked('k', 10, 5)])
      expect(other?.granted).toBe(10)
    })

    it('never grant more than there is to many that ask for many keys at once', async () => {
      const { budgets } = await opened(user)
      const keys = Array.from({ length: 30 }, (_, n) => `k${n}`)
      const granted = new Map<string, number>()
      const ask = async (n: number): Promise<void> => {
        // In another order each time: rows that are locked in any order would deadlock.
        const order = n % 2 === 0 ? keys : keys.toReversed()
        for (const { key, granted: more } of await budgets.exchange(
          `who-${n}`,
          1,
          order.map((key) => asked(key, 30)),
        ))
          granted.set(key, (granted.get(key) ?? 0) + more)
      }
      await Promise.all(Array.from({ length: 12 }, (_, n) => ask(n)))
      expect([...granted.values()]).toEqual(Array(30).fill(100))
    })
  })
})
