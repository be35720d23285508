import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Fault } from '../../../src/base/kernel/faults.ts'
import { aheadOfRequests } from '../../../src/base/kernel/store-budget.ts'
import { ConnectionPace, Connections } from '../../../src/extensions/postgres/connections.ts'
import { PostgresLink } from '../../../src/extensions/postgres/link.ts'
import { READ_CLOCK, readStatement, writing } from '../../../src/extensions/postgres/statements.ts'
import { LosingProxy } from './support/losing-proxy.ts'
import { needing } from '../../support/machine.ts'
import { drawSchema, planTo, query, sharedPostgres } from '../../support/postgres.ts'

interface Settings {
  readonly connections?: number
  readonly deadline?: number
}

async function linkTo(url: string, { connections = 4, deadline = 30_000 }: Settings = {}) {
  const link = await PostgresLink.open(planTo(url, { connections, deadline }))
  onTestFinished(() => link.close())
  return link
}

async function proxied(settings?: Settings) {
  const cluster = await sharedPostgres()
  const proxy = await LosingProxy.open(cluster.port)
  onTestFinished(() => proxy.close())
  return { proxy, link: await linkTo(proxy.url(), settings) }
}

/** Two connections, and how often one more was asked for. */
async function paced() {
  const cluster = await sharedPostgres()
  const plan = planTo(cluster.url(), { connections: 2 })
  const pace = new ConnectionPace(() => 0)
  const admit = vi.spyOn(pace, 'admit')
  const connections = await Connections.open(plan, { most: 2, within: 10_000, pace })
  onTestFinished(() => connections.close())
  return { connections, pace, attempts: () => admit.mock.calls.length }
}

const sleep = (seconds: number) =>
  readStatement(`sleep_${seconds}`, `SELECT pg_sleep(${seconds})::text AS now`)

/** How each of so many ended: `done`, or the detail of the fault. */
async function outcomes(link: PostgresLink, count: number): Promise<string[]> {
  const asked = Array.from({ length: count }, async () =>
    link.run(READ_CLOCK, []).then(
      () => 'done',
      (thrown: unknown) => (thrown as Fault).facts.detail ?? '',
    ),
  )
  return Promise.all(asked)
}

/** Holds a lock until it is released. What asks for it waits. */
async function heldLock() {
  const cluster = await sharedPostgres()
  const key = Math.floor(Math.random() * 2 ** 31)
  const holder = new pg.Client({ connectionString: cluster.url() })
  await holder.connect()
  await holder.query(`SELECT pg_advisory_lock(${key})`)
  onTestFinished(() => holder.end())
  return {
    statement: readStatement('locked', `SELECT pg_advisory_lock_shared(${key})::text AS now`),
    release: () => holder.query(`SELECT pg_advisory_unlock(${key})`),
  }
}

describe('T5.13 a Postgres that is far away', needing('postgresql'), () => {
  it('keeps those who wait for a connection waiting, and fails none of them', async () => {
    const { proxy, link } = await proxied({ connections: 2 })
    proxy.delay(50)
    expect(new Set(await outcomes(link, 60))).toEqual(new Set(['done']))
    expect(link.trouble).toBeUndefined()
  })

  it('bounds how many wait for a connection: the rest is 503 at once', async () => {
    const { proxy, link } = await proxied({ connections: 1 })
    proxy.freeze()
    const asked = outcomes(link, 1101)
    expect(new Set(await outcomes(link, 50))).toEqual(new Set(['store: too many wait for it']))
    proxy.mend()
    const told = await asked
    expect(told.filter((each) => each !== 'done').length).toBe(100)
  })

  it('is read for what all calls are judged by while requests have all its connections', async () => {
    const link = await linkTo((await sharedPostgres()).url(), { connections: 2 })
    const { statement, release } = await heldLock()
    const waiting = Array.from({ length: 10 }, () => link.run(statement, []))
    expect((await aheadOfRequests(() => link.run(READ_CLOCK, []))).rows).toHaveLength(1)
    await release()
    expect(await Promise.all(waiting)).toHaveLength(10)
  })
})

describe('T5.13 a Postgres on whose connections nothing comes any more', needing('postgresql'), () => {
  it('is asked over new ones when it is found out, and does not keep requests waiting for the old ones', async () => {
    const { proxy, link } = await proxied()
    await outcomes(link, 8)
    proxy.freeze()
    const stuck = outcomes(link, 4)
    // Work that all calls are judged by finds it out.
    while (link.trouble === undefined)
      await aheadOfRequests(() => link.run(READ_CLOCK, [])).catch(() => undefined)
    // Long before their own time is over.
    expect((await stuck).includes('done')).toBe(false)
    proxy.forget()
    await expect.poll(async () => (await outcomes(link, 1))[0]).toBe('done')
    expect(new Set(await outcomes(link, 20))).toEqual(new Set(['done']))
  })
})

describe('T5.13 a Postgres that takes connections and says nothing on them', needing('postgresql'), () => {
  it('is asked again soon after it has come back, though a request waits for such a connection', async () => {
    const { proxy, link } = await proxied({ deadline: 120_000 })
    proxy.freeze()
    while (link.trouble === undefined)
      await aheadOfRequests(() => link.run(READ_CLOCK, [])).catch(() => undefined)
    let waiting: Promise<string[]> | undefined
    while (waiting === undefined) {
      const asked = outcomes(link, 1)
      // What may not try is refused at once.
      if ((await Promise.race([asked, delay(50)])) === undefined) waiting = asked
    }
    proxy.forget()
    await expect.poll(async () => (await outcomes(link, 1))[0]).toBe('done')
    expect(await waiting).not.toEqual(['done'])
  })
})

describe('C11.7.2 a Postgres whose disk is full', needing('postgresql'), () => {
  it('C11.7.2 is read as before, however many writes in a row it refuses', async () => {
    const cluster = await sharedPostgres()
    const schema = drawSchema()
    query(
      cluster,
      `CREATE SCHEMA ${schema};
       CREATE FUNCTION ${schema}.refuse() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
         RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100';
       END $$`,
    )
    const link = await linkTo(cluster.url())
    const refused = writing('refused', { parameters: 0, last: () => `SELECT ${schema}.refuse() AS done` })
    for (let count = 0; count < 20; count += 1)
      await expect(link.run(refused, [])).rejects.toThrow('could not extend file')
    expect((await link.run(READ_CLOCK, [])).rows).toHaveLength(1)
    expect([link.trouble, link.refusesWrites, link.silentFor(60_000)]).toEqual([
      undefined,
      'its disk is full (SQLSTATE 53100)',
      0,
    ])
  })
})

describe('T5.5 the time of a statement', needing('postgresql'), () => {
  it('is that of the configuration, whatever the role has', async () => {
    const cluster = await sharedPostgres()
    const role = drawSchema()
    query(cluster, `CREATE ROLE ${role} LOGIN`)
    onTestFinished(() => void query(cluster, `DROP ROLE ${role}`))
    query(cluster, `ALTER ROLE ${role} SET statement_timeout = '100ms'`)
    const link = await linkTo(cluster.url(role))
    expect((await link.run(sleep(0.5), [])).rows).toHaveLength(1)
  })
})

describe('T5.13 attempts to connect to Postgres', needing('postgresql'), () => {
  it('are counted for each new connection, also where another one asks for the last idle one at the same time', async () => {
    const { connections, attempts } = await paced()
    await connections.use((client) => client.query('SELECT 1'))
    expect(attempts()).toBe(1)
    const both = Promise.withResolvers<undefined>()
    let working = 0
    const work = (): Promise<undefined> => {
      if ((working += 1) === 2) both.resolve(undefined)
      return both.promise
    }
    await Promise.all([connections.use(work), connections.use(work)])
    expect(attempts()).toBe(2)
  })

  it('are as few as before where an older connection goes on to work', async () => {
    const { connections, pace } = await paced()
    await connections.use((client) => client.query('SELECT 1'))
    pace.failed(new Error('too many connections'))
    await connections.use((client) => client.query('SELECT 1'))
    expect([pace.admit(), pace.admit(), pace.admit()]).toEqual([true, true, false])
  })
})

describe('T5.13 a Postgres that takes no connection', () => {
  it('is told as that by each kind of work, also by one that has not tried itself and may not yet', async () => {
    const plan = planTo('postgres://nobody@127.0.0.1:1/none', { connections: 1, deadline: 1000 })
    const of = { most: 1, within: 1000, pace: new ConnectionPace(() => 0) }
    const [ahead, requests] = await Promise.all([Connections.open(plan, of), Connections.open(plan, of)])
    const ask = async (lane: Connections) => lane.use(() => Promise.resolve('asked'))
    for (let tries = 0; tries < 3; tries += 1) await expect(ask(ahead)).rejects.toThrow('ECONNREFUSED')
    const told: unknown = await ask(requests).catch((thrown: unknown) => thrown)
    expect(told).toMatchObject({ code: 'ECONNREFUSED' })
    await Promise.all([ahead.close(), requests.close()])
  })
})
