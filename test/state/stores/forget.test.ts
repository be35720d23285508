/** What a store has left in its files of records that were removed (C11.5.8). */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { PostgresStore } from '../../../src/extensions/postgres/store.ts'
import { MeasuredStore } from '../../../src/state/stores/measured-store.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { SqliteStore } from '../../../src/state/stores/sqlite/sqlite.ts'
import { logOf } from '../../../src/state/stores/sqlite/store-files.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { sqliteAt } from '../../support/patient-store.ts'
import { startStoreProcess } from '../../support/store-process.ts'

const NAME = 'dora.dale@example.com'
const FILLING = 'x'.repeat(3000)

async function opened(options: Parameters<typeof sqliteAt>[1] = {}) {
  const path = join(await dataFolder(), 'postern.sqlite')
  const store = await sqliteAt(path, options)
  return { path, store }
}

/** Whether the bytes of the files have the name. */
const has = (path: string): boolean =>
  [path, logOf(path)].some((each) => readFileSync(each, 'latin1').includes(NAME))

const logSize = (path: string): number => statSync(logOf(path)).size

/** Another connection of SQLite, as a program beside Postern has it. */
function beside(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 10_000 })
  onTestFinished(() => db.close())
  return db
}

/** As an earlier version left it: what was removed is in free pages still. The size of the file. */
function leaveBehind(path: string): number {
  const db = beside(path)
  db.exec('PRAGMA secure_delete = OFF')
  const add = db.prepare("INSERT INTO record (kind, key, value) VALUES ('older', ?, ?)")
  for (let n = 0; n < 50; n++) add.run(`${n}`, JSON.stringify({ name: NAME, FILLING }))
  db.exec("DELETE FROM record WHERE kind = 'older'")
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  return statSync(path).size
}

describe('C11.5.8 a SQLite file', () => {
  it('C11.5.8 has nothing of what was removed or replaced, and its log is empty', async () => {
    const { path, store } = await opened()
    expect(await store.forget()).toBe(true)
    for (const key of ['removed', 'replaced'])
      await store.create('kind', key, { value: { NAME, FILLING }, indexes: { subject: NAME } })
    expect(has(path)).toBe(true)
    await store.remove('kind', 'removed')
    const entry = await store.find('kind', 'replaced')
    await store.remove('kind', 'replaced', entry?.version)
    await store.create('kind', 'replaced', { value: { other: true } })
    expect(await store.forget()).toBe(true)
    expect([has(path), logSize(path)]).toEqual([false, 0])
    expect((await store.find('kind', 'replaced'))?.value).toEqual({ other: true })
  })

  it('C11.5.8 has nothing of what an earlier version has left in free pages, and all else as it was', async () => {
    const { path, store } = await opened()
    await store.create('kind', 'kept', { value: { a: 1 }, indexes: { client: 'c' } })
    await store.append('topic', { b: 2 })
    const size = leaveBehind(path)
    expect(has(path)).toBe(true)
    expect(await store.forget()).toBe(true)
    expect([has(path), logSize(path)]).toEqual([false, 0])
    expect(statSync(path).size).toBeLessThan(size)
    expect(await store.listBy('kind', 'client', 'c')).toMatchObject([{ key: 'kept', value: { a: 1 } }])
    expect((await store.changes(undefined, 10)).changes).toMatchObject([{ topic: 'topic', value: { b: 2 } }])
  })

  it('C11.5.8 raises no alarm when it is rewritten and its log is cut, nor later', async () => {
    const path = join(await dataFolder(), 'postern.sqlite')
    const troubles: (string | undefined)[] = []
    const plan = { path, synchronous: 'normal', maxSize: undefined, marked: true, deadline: 10_000 } as const
    const store = await SqliteStore.open(plan, systemClock, (trouble) => void troubles.push(trouble))
    onTestFinished(() => store.close())
    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < 20; n++) await store.create('kind', `${round} ${n}`, { value: { FILLING } })
      expect(await store.removeBy('kind', {})).toBe(20)
      expect(await store.forget()).toBe(true)
      expect(await store.find('kind', `${round} 1`)).toBeUndefined()
    }
    expect([troubles, store.trouble, store.refusesWrites]).toEqual([[], undefined, undefined])
  })

  it('C11.5.8 whose log another program reads says so soon, and takes reads and writes meanwhile and afterwards', async () => {
    const { path, store } = await opened()
    expect(await store.forget()).toBe(true)
    await store.create('kind', 'removed', { value: { NAME } })
    const reader = beside(path)
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM record').get()
    await store.remove('kind', 'removed')
    const [isForgotten, isCreated, found] = await Promise.all([
      store.forget(),
      store.create('kind', 'beside', { value: {} }),
      store.find('kind', 'removed'),
    ])
    expect([isForgotten, isCreated, found]).toEqual([false, true, undefined])
    expect(logSize(path)).toBeGreaterThan(0)
    // Far less than the time of an answer, which is 10 s here.
    expect(await Promise.all([store.forget(), store.forget(), store.forget()])).toEqual([false, false, false])
    expect(await store.create('kind', 'after', { value: {} })).toBe(true)
    reader.exec('ROLLBACK')
    expect(await store.forget()).toBe(true)
    expect([has(path), logSize(path), store.trouble]).toEqual([false, 0, undefined])
    expect(await store.list('kind')).toHaveLength(2)
  })

  it('C11.5.8 that another process writes is left as it is, to be tried again', async () => {
    const { path, store } = await opened()
    await store.create('kind', 'kept', { value: {} })
    leaveBehind(path)
    const writer = startStoreProcess('hold', path)
    await writer.line('held')
    expect(await store.forget()).toBe(false)
    expect(has(path)).toBe(true)
    expect(await store.find('kind', 'kept')).toBeDefined()
    writer.process.stdin?.write('\n')
    await writer.line('released')
    await writer.ended()
    expect(await store.forget()).toBe(true)
    expect([has(path), store.trouble, store.refusesWrites]).toEqual([false, undefined, undefined])
    expect(await store.list('kind')).toHaveLength(1)
  })
})

describe('C11.5.8 other stores', () => {
  it('C11.5.8 in memory forget at once', async () => {
    const store = new MemoryStore(systemClock)
    await store.create('kind', 'key', { value: {} })
    expect([await store.forget(), await store.forget()]).toEqual([true, true])
    expect(await store.find('kind', 'key')).toBeDefined()
  })

  it('C11.5.8 that are measured do as the one that is measured: those whose files are another program’s have none', async () => {
    const measured = (store: ConstructorParameters<typeof MeasuredStore>[0]) =>
      new MeasuredStore(store, systemClock, () => undefined)
    const { path, store } = await opened()
    await store.create('kind', 'key', { value: {} })
    expect(await measured(store).forget?.()).toBe(true)
    expect(logSize(path)).toBe(0)
    expect(Reflect.has(PostgresStore.prototype, 'forget')).toBe(false)
    const without = Object.create(PostgresStore.prototype) as PostgresStore
    expect(measured(without).forget).toBeUndefined()
  })
})
