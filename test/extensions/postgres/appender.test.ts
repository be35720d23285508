import pg from 'pg'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { withStoreBudget } from '../../../src/base/kernel/store-budget.ts'
import { Appender } from '../../../src/extensions/postgres/appender.ts'
import { PostgresLink } from '../../../src/extensions/postgres/link.ts'
import { statementsOf } from '../../../src/extensions/postgres/statements.ts'
import { needing } from '../../support/machine.ts'
import { makeTables, planTo, query, sharedPostgres } from '../../support/postgres.ts'

const MANY = 300

async function opened(deadline: number) {
  const cluster = await sharedPostgres()
  const schema = makeTables(cluster)
  const link = await PostgresLink.open(planTo(cluster.url(), { schema, deadline }))
  const holder = new pg.Client({ connectionString: cluster.url() })
  await holder.connect()
  onTestFinished(async () => {
    await link.close()
    await holder.end()
  })
  const appender = new Appender(link, statementsOf(schema))
  const append = (n: number) =>
    appender.append({ topic: 't', value: `${n}`, expiresAt: null, runsUntil: null, now: 1, above: 0 })
  return {
    link,
    append,
    hold: () => holder.query(`BEGIN; UPDATE ${schema}.feed SET ran = ran`),
    release: () => holder.query('COMMIT'),
    values: () => query(cluster, `SELECT string_agg(value, ',' ORDER BY sequence) FROM ${schema}.change`),
  }
}

/** The values of the changes that the statements of these calls appended. */
const sentBy = (calls: readonly (readonly unknown[])[]): readonly string[] =>
  calls.flatMap(([, values]) => ((values as readonly unknown[])[5] as string[] | undefined) ?? [])

describe('T5.13 many changes at once on a database that does not answer', needing('postgresql'), () => {
  it('are refused at the deadline of each, and none that had to wait is sent afterwards', async () => {
    const { link, append, hold, release, values } = await opened(500)
    await hold()
    const run = vi.spyOn(link, 'run')
    const told = await Promise.allSettled(Array.from({ length: MANY }, (_, n) => append(n)))
    expect(new Set(told.map((each) => each.status === 'rejected' && each.reason.code))).toEqual(
      new Set(['identity_unavailable']),
    )
    // The first one was on its way alone; the others waited for it. Those whose time ends some milliseconds later may be tried.
    const sent = sentBy(run.mock.calls)
    await release()
    // The breaker may be open for a moment.
    await expect
      .poll(
        () =>
          append(MANY).then(
            () => 'appended',
            () => 'refused',
          ),
        { timeout: 20_000 },
      )
      .toBe('appended')
    expect(new Set([...sent, `${MANY}`])).toEqual(new Set(sentBy(run.mock.calls)))
    // What was on its way when its time ended may have arrived.
    expect([...sent, `${MANY}`]).toEqual(expect.arrayContaining(values().split(',')))
  })

  it('are bounded in number: the rest is refused at once', async () => {
    const { append, hold, release } = await opened(60_000)
    await hold()
    const waiting = Array.from({ length: 1001 }, (_, n) => append(n))
    await expect(append(1001)).rejects.toThrow('too many wait for it')
    await release()
    expect(await Promise.all(waiting)).toHaveLength(1001)
  })

  it('hold up no request for longer than its own time', async () => {
    const { append, hold, release, values } = await opened(10_000)
    await hold()
    const patient = append(1)
    await expect(withStoreBudget(() => append(2), 50)).rejects.toMatchObject({ code: 'identity_unavailable' })
    await release()
    await patient
    expect(values()).toBe('1')
  })
})
