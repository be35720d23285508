import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { PostgresLink } from '../../../src/extensions/postgres/link.ts'
import { statementsOf } from '../../../src/extensions/postgres/statements.ts'
import { needing } from '../../support/machine.ts'
import { makeTables, planTo, query, sharedPostgres } from '../../support/postgres.ts'

/** So often, because Postgres decides in which order those that wait go on. */
const ROUNDS = 10
/** Whether a try has come to wait is looked at so often. On a busy machine it may have been given up, and begun again. */
const LOOKS = 200

async function opened() {
  const cluster = await sharedPostgres()
  const schema = makeTables(cluster)
  const link = await PostgresLink.open(planTo(cluster.url(), { schema }))
  const holder = new pg.Client({ connectionString: cluster.url(), application_name: schema })
  await holder.connect()
  onTestFinished(async () => {
    await link.close()
    await holder.end()
  })
  const waiting = async (): Promise<number> => {
    const { rows } = await holder.query<{ count: string }>(
      `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
       WHERE NOT l.granted AND a.query LIKE '%${schema}.feed%'`,
    )
    return Number(rows[0]?.count)
  }
  return { schema, link, holder, waiting, rows: (sql: string) => query(cluster, sql) }
}

describe('appending to the change feed of Postgres', needing('postgresql'), () => {
  it('T3.16 two tries of one change that both wait, with another change between them, append it once', async () => {
    const { schema, link, holder, waiting, rows } = await opened()
    const { append } = statementsOf(schema)
    const tryTo = (mark: string): Promise<unknown> =>
      link.run(append, [mark, 1, 1, 0, ['topic'], ['{}'], [null], [null]]).catch((thrown: unknown) => thrown)
    for (let round = 0; round < ROUNDS; round += 1) {
      await holder.query(`BEGIN; UPDATE ${schema}.feed SET ran = ran`)
      const tries: Promise<unknown>[] = []
      for (const mark of [`one-${round}`, `other-${round}`, `one-${round}`]) {
        tries.push(tryTo(mark))
        for (let look = 0; look < LOOKS && (await waiting()) < tries.length; look += 1);
      }
      await holder.query('COMMIT')
      await Promise.all(tries)
      // On a busy machine a try may have been given up. One more, which changes nothing if another one was stored.
      for (const mark of [`one-${round}`, `other-${round}`])
        await expect.poll(() => tryTo(mark)).not.toBeInstanceOf(Fault)
    }
    expect(rows(`SELECT count(*) FROM ${schema}.change`)).toBe(String(2 * ROUNDS))
    expect(rows(`SELECT max(sequence) FROM ${schema}.change`)).toBe(rows(`SELECT last FROM ${schema}.feed`))
  })
})
