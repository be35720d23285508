import { describe, expect, it } from 'vitest'
import type { Store } from '../../../src/base/contracts/records/store.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { PostgresLink } from '../../../src/extensions/postgres/link.ts'
import { PostgresLockouts } from '../../../src/extensions/postgres/shared-parts.ts'
import type { LockoutTurns } from '../../../src/extensions/postgres/shared-turns.ts'
import { PostgresStore } from '../../../src/extensions/postgres/store.ts'
import { LosingProxy } from './support/losing-proxy.ts'
import { needing } from '../../support/machine.ts'
import { makeTables, planTo, query, sharedPostgres } from '../../support/postgres.ts'
import { atEnd, shared } from '../../support/shared.ts'

// T3.16: the connection breaks when a write is committed, and before its answer is here. Each write is sent again, and must
// have the same outcome as if the first answer had come.

const TIMES = 10

/** A store, and the turns of attempts in it. */
type Lossy = Store & { readonly turns: LockoutTurns }

async function open() {
  const cluster = await sharedPostgres()
  const proxy = await LosingProxy.open(cluster.port)
  const schema = makeTables(cluster)
  const plan = planTo(proxy.url(), { schema, connections: 2 })
  const link = await PostgresLink.open(plan)
  const turns = new PostgresLockouts(link)
  const store: Lossy = Object.assign(await PostgresStore.open(link, systemClock), { turns })
  atEnd(async () => {
    await store.close()
    await proxy.close()
  })
  const failuresOf = (key: string): number =>
    Number(query(cluster, `SELECT failures FROM ${schema}.lockout WHERE key = '${key}'`))
  return { store, proxy, failuresOf }
}

/** One for all tests: each loses answers by keys of its own. */
const opened = shared(open)

const value = { of: 'the test' }
const make = (store: Store, key: string) => store.create('kind', key, { value })

async function replaced(store: Store, key: string): Promise<void> {
  await make(store, key)
  await store.replace('kind', key, 1, { next: true })
}

const DELAYS = { free: 3, delay: 0, longest: 0, forget: 60_000 }
const FORGET = { key: 60_000, account: 60_000 }
/** The turns of an attempt. */
const heldBy = (by: string, key: string) => ({ by, key, account: { key: `${key}/`, alone: false } })

async function entered({ turns }: Lossy, key: string, by = 'one'): Promise<void> {
  await turns.take(key, by, 60_000, DELAYS)
  await turns.count(`${key}/`, by, 60_000, DELAYS)
}

interface Lost {
  /** The name of the verb's statement. */
  readonly statement: string
  readonly prepare?: (store: Lossy, key: string) => Promise<unknown>
  readonly ask: (store: Lossy, key: string) => Promise<unknown>
  readonly outcome: unknown
  /** What holds of the store afterwards. */
  readonly after?: (store: Lossy, key: string, failuresOf: (key: string) => number) => unknown
}

/** Every verb that writes and tells whether it did. */
const VERBS: Readonly<Record<string, Lost>> = {
  create: {
    statement: 'create',
    ask: make,
    outcome: true,
    after: async (store, key) => expect(await make(store, key)).toBe(false),
  },
  consume: {
    statement: 'consume',
    prepare: make,
    ask: (store, key) => store.consume('kind', key),
    outcome: { first: true, entry: expect.objectContaining({ value }) },
    after: async (store, key) => expect(await store.consume('kind', key)).toMatchObject({ first: false }),
  },
  redeem: {
    statement: 'redeem',
    prepare: make,
    ask: (store, key) => {
      const created = { kind: 'created', key, value }
      return store.redeem('kind', key, { value: { last: true } }, [created])
    },
    outcome: { first: true, entry: expect.objectContaining({ value: { last: true }, version: 2 }) },
    after: async (store, key) =>
      expect(await store.find('created', key)).toMatchObject({ value, version: 1 }),
  },
  replace: {
    statement: 'replace',
    prepare: make,
    ask: (store, key) => store.replace('kind', key, 1, { next: true }),
    outcome: true,
    after: async (store, key) => expect(await store.find('kind', key)).toMatchObject({ version: 2 }),
  },
  remove: {
    statement: 'remove',
    prepare: make,
    ask: (store, key) => store.remove('kind', key),
    outcome: true,
    after: async (store, key) => expect(await store.find('kind', key)).toBeUndefined(),
  },
  'replace of a version that is no more': {
    statement: 'replace',
    prepare: replaced,
    ask: (store, key) => store.replace('kind', key, 1, { late: true }),
    outcome: false,
    after: async (store, key) =>
      expect(await store.find('kind', key)).toMatchObject({ version: 2, value: { next: true } }),
  },
  'remove of a version': {
    statement: 'remove',
    prepare: replaced,
    ask: (store, key) => store.remove('kind', key, 2),
    outcome: true,
    after: async (store, key) => expect(await store.find('kind', key)).toBeUndefined(),
  },
  'remove of a version that is no more': {
    statement: 'remove',
    prepare: replaced,
    ask: (store, key) => store.remove('kind', key, 1),
    outcome: false,
    after: async (store, key) => expect(await store.find('kind', key)).toMatchObject({ version: 2 }),
  },
  'remove of what is not there': {
    statement: 'remove',
    ask: (store, key) => store.remove('kind', key),
    outcome: false,
  },
  'create of what is there': {
    statement: 'create',
    prepare: make,
    ask: (store, key) => store.create('kind', key, { value: { other: true } }),
    outcome: false,
    after: async (store, key) => expect(await store.find('kind', key)).toMatchObject({ value }),
  },
  'consume of what is used': {
    statement: 'consume',
    prepare: async (store, key) => {
      await make(store, key)
      await store.consume('kind', key)
    },
    ask: (store, key) => store.consume('kind', key),
    outcome: { first: false, entry: expect.objectContaining({ value }) },
  },
  'redeem of what is used': {
    statement: 'redeem',
    prepare: async (store, key) => {
      await make(store, key)
      await store.consume('kind', key)
    },
    ask: (store, key) =>
      store.redeem('kind', key, { value: { last: true } }, [{ kind: 'created', key, value }]),
    outcome: { first: false, entry: expect.objectContaining({ value }) },
    after: async (store, key) => expect(await store.find('created', key)).toBeUndefined(),
  },
  removeBy: {
    statement: 'remove_by_client',
    prepare: async (store, key) => {
      const record = { value, indexes: { client: key } }
      await Promise.all(['a', 'b', 'c'].map((name) => store.create('kind', `${key}-${name}`, record)))
    },
    ask: (store, key) => store.removeBy('kind', { client: key }),
    outcome: 3,
    after: async (store, key) => expect(await store.countBy('kind', { client: key })).toBe(0),
  },
  'the turn of an attempt': {
    statement: 'lockout_take',
    ask: ({ turns }, key) => turns.take(key, 'one', 60_000, DELAYS),
    outcome: expect.objectContaining({ taken: true, alone: true }),
    after: async ({ turns }, key) =>
      expect(await turns.take(key, 'two', 60_000, DELAYS)).toMatchObject({ taken: false }),
  },
  'an attempt that counts as a failure': {
    statement: 'lockout_count',
    ask: ({ turns }, key) => turns.count(key, 'one', 60_000, DELAYS),
    outcome: expect.objectContaining({ taken: true, alone: false }),
    after: (_store, key, failuresOf) => expect(failuresOf(key)).toBe(1),
  },
  'the end of a wrong attempt': {
    statement: 'lockout_end',
    prepare: entered,
    ask: ({ turns }, key) => turns.end(heldBy('one', key), false, FORGET),
    outcome: true,
    after: (_store, key, failuresOf) => expect([failuresOf(key), failuresOf(`${key}/`)]).toEqual([1, 1]),
  },
  'the end of an attempt that broke': {
    statement: 'lockout_end',
    prepare: async (store, key) => {
      for (const by of ['one', 'two']) {
        await entered(store, key, by)
        await store.turns.end(heldBy(by, key), false, FORGET)
      }
      await entered(store, key, 'three')
    },
    ask: ({ turns }, key) => turns.end(heldBy('three', key), undefined, FORGET),
    outcome: true,
    after: (_store, key, failuresOf) => expect([failuresOf(key), failuresOf(`${key}/`)]).toEqual([2, 2]),
  },
  append: {
    statement: 'append',
    ask: async (store, key) => (await store.append('topic', { key })).sequence > 0,
    outcome: true,
    after: async (store, key) => {
      const { changes } = await store.changes(undefined, 5000)
      expect(changes.filter((change) => change.value['key'] === key)).toHaveLength(1)
    },
  },
  hold: {
    statement: 'hold',
    ask: (store, key) => store.hold(key, 60_000),
    outcome: true,
  },
}

describe('T3.16 a store in Postgres whose answers are lost', needing('postgresql'), () => {
  it.each(Object.entries(VERBS))('does once, and tells as it was: %s', async (name, verb) => {
    const { store, proxy, failuresOf } = await opened()
    const before = proxy.lost
    for (let count = 0; count < TIMES; count += 1) {
      const key = `${name}-${count}`
      await verb.prepare?.(store, key)
      proxy.lose(verb.statement)
      expect(await verb.ask(store, key)).toEqual(verb.outcome)
      await verb.after?.(store, key, failuresOf)
    }
    expect(proxy.lost - before).toBe(TIMES)
  })

  it('lets nobody win a code whose first use was answered to nobody in time', async () => {
    const { store, proxy } = await opened()
    await make(store, 'code')
    proxy.lose('consume')
    const [one, other] = await Promise.all([store.consume('kind', 'code'), store.consume('kind', 'code')])
    expect([one?.first, other?.first].filter((first) => first === true)).toHaveLength(1)
  })
})
