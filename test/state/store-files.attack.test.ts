import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { monotonicMs, systemClock } from '../../src/base/kernel/clock.ts'
import { Fault } from '../../src/base/kernel/faults.ts'
import { backUpSqlite } from '../../src/state/stores/read-store.ts'
import { examineSqlite } from '../../src/state/stores/open-store.ts'
import { framesOf, openReadOnly } from '../../src/state/stores/sqlite/sqlite-file.ts'
import {
  type Reply,
  RequestHandler,
  type VerbRequest,
} from '../../src/state/stores/sqlite/sqlite-requests.ts'
import { SqliteStore } from '../../src/state/stores/sqlite/sqlite.ts'
import { StoreError } from '../../src/state/stores/link/store-error.ts'
import { FileGuard, markerOf } from '../../src/state/stores/sqlite/store-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { eventually } from '../support/eventually.ts'
import { postern, startPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const ALL = ['', '-wal', '-shm']
const planOf = (path: string) => ({ path, synchronous: 'normal', maxSize: undefined, marked: true }) as const

async function openAt(path: string, told?: (trouble: string | undefined) => void): Promise<SqliteStore> {
  const store = await SqliteStore.open(planOf(path), systemClock, told)
  onTestFinished(() => store.close())
  return store
}

/** A store with something in it; its path. */
async function newStore(): Promise<{ path: string; store: SqliteStore; told: (string | undefined)[] }> {
  const path = join(await dataFolder(), 'postern.sqlite')
  const told: (string | undefined)[] = []
  const store = await openAt(path, (trouble) => told.push(trouble))
  await store.create('key', 'before', { value: {} })
  return { path, store, told }
}

const remove = (path: string): void => {
  for (const suffix of ALL) rmSync(path + suffix, { force: true })
}

/** Another file in its place. */
function fill(path: string, text: string): void {
  remove(path)
  writeFileSync(path, text)
}

const refused = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )

async function expectUnavailable(promise: Promise<unknown>): Promise<void> {
  const error = await refused(promise)
  expect(error).toMatchObject({ code: 'identity_unavailable' })
  // By its name: the store is the sources’ here, and the service may be the bundle’s.
  expect((error as Error).constructor.name).toBe(Fault.name)
}

function overwrite(path: string, from: number, bytes: number): void {
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(bytes, 0xa5), 0, bytes, from)
}

/** A guard, and a handler of requests, on a connection of their own. */
function openGuard(path: string) {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA wal_autocheckpoint = 0; UPDATE running SET ms = ms')
  const [database, log] = [openSync(path, 'r'), openSync(`${path}-wal`, 'r')]
  const guard = new FileGuard(path, { database, log, frames: () => framesOf(db) })
  const replies: Reply[] = []
  const handler = new RequestHandler(db, guard, (sent) => {
    if (Array.isArray(sent)) replies.push(...(sent as readonly Reply[]))
  })
  onTestFinished(() => {
    db.close()
    for (const descriptor of [database, log]) closeSync(descriptor)
  })
  return { db, guard, handler, replies }
}

const guardOf = (path: string): FileGuard => openGuard(path).guard

/** Brings what is in the -wal into the database. */
function checkpoint(path: string): void {
  const db = new DatabaseSync(path, { timeout: 5000 })
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

/** A request of the thread's: to keep a change. */
const appending = (id: number): VerbRequest => ({
  ...{ id, verb: 'append', deadline: monotonicMs() + 60_000 },
  args: [{ now: 1, ran: 1 }, 'topic', '{}', null, 0],
})

describe('T5.12 a store whose file is a link to one elsewhere', () => {
  it('is opened, read and watched there: also its -wal', async () => {
    const [target, path] = [await dataFolder(), await dataFolder()].map((folder) =>
      join(folder, 'postern.sqlite'),
    )
    await (await openAt(target!)).close()
    symlinkSync(target!, path!)
    const store = await openAt(path!)
    await store.create('key', 'newest', { value: {} })
    const reader = openReadOnly(path!)
    expect(reader.prepare(`SELECT count(*) AS n FROM record WHERE key = 'newest'`).get()).toEqual({ n: 1 })
    reader.close()
    rmSync(`${target}-wal`)
    await expectUnavailable(store.append('topic', {}))
    expect(store.trouble).toMatch(/sqlite-wal was deleted/)
  })
})

describe('T5.12 a store whose files are taken away while it is open', () => {
  it.each([
    ['deleted', (path: string) => remove(path), /postern\.sqlite was deleted/],
    ['replaced', (path: string) => fill(path, 'another'), /sqlite was replaced/],
    ['without its -wal', (path: string) => rmSync(`${path}-wal`), /sqlite-wal was deleted/],
  ])('%s: nothing more is written, and it says so', async (_name, take, words) => {
    const { path, store, told } = await newStore()
    take(path)
    const left = ALL.map((suffix) => existsSync(path + suffix))
    // At once, though nobody has looked yet: what is answered would be lost.
    await expectUnavailable(store.append('topic', {}))
    expect(store.trouble).toMatch(words)
    expect(told).toEqual([store.trouble])
    await expectUnavailable(store.find('key', 'before'))
    expect(ALL.map((suffix) => existsSync(path + suffix))).toEqual(left)
  })

  it('is noticed though nobody writes', async () => {
    const { path, store } = await newStore()
    remove(path)
    await eventually(() => expect(store.trouble).toMatch(/deleted/))
  })

  it.each([
    ['emptied', (path: string) => writeFileSync(path, '')],
    ['overwritten at its beginning', (path: string) => overwrite(path, 0, 4096)],
  ])('is noticed where it was %s', async (_name, damage) => {
    const { path, store } = await newStore()
    damage(path)
    await eventually(() => expect(store.trouble).toMatch(/was overwritten/))
    await expectUnavailable(store.append('topic', {}))
  })

  it.each([
    ['emptied', (path: string) => truncateSync(path), /was overwritten/],
    ['cut short', (path: string) => truncateSync(path, 4096), /was cut short/],
    ['overwritten at its beginning', (path: string) => overwrite(path, 0, 4096), /was overwritten/],
    ['deprived of what is in its -wal', (path: string) => truncateSync(`${path}-wal`), /sqlite-wal was/],
  ])('%s: nothing that is written after that is answered as done', async (_name, damage, words) => {
    const { path, store } = await newStore()
    checkpoint(path)
    await store.append('topic', {})
    damage(path)
    await expectUnavailable(store.append('topic', {}))
    expect(store.trouble).toMatch(words)
  })

  it.each([
    ['is emptied', (path: string) => truncateSync(path)],
    ['is cut short', (path: string) => truncateSync(path, 4096)],
    ['is replaced', (path: string) => fill(path, 'another')],
    ['loses its -wal', (path: string) => rmSync(`${path}-wal`)],
    ['has its -wal emptied', (path: string) => truncateSync(`${path}-wal`)],
  ])(
    '%s in the moment in which others write: what they write is not answered as done',
    async (_name, damage) => {
      const { path } = await newStore()
      checkpoint(path)
      const { db, handler, replies } = openGuard(path)
      // Two at once and one alone: each by its own way.
      for (const group of [[appending(1)], [appending(2), appending(3)]]) {
        handler.answer(group)
        expect(replies.splice(0).map(({ outcome }) => outcome)).toEqual(group.map(() => 'done'))
      }
      db.function('damage', () => (damage(path), 1))
      db.exec('CREATE TEMP TRIGGER midway AFTER INSERT ON change BEGIN SELECT damage(); END')
      handler.answer([appending(4), appending(5)])
      handler.answer([appending(6)])
      expect(replies.map(({ id, outcome }) => [id, outcome])).toEqual(
        [4, 5, 6].map((id) => [id, 'unavailable']),
      )
    },
  )

  it('whose -wal a checkpoint has emptied is in order', async () => {
    const { path, store } = await newStore()
    const { db, guard } = openGuard(path)
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    expect(statSync(`${path}-wal`).size).toBe(0)
    guard.check()
    expect(guard.unfit).toBeUndefined()
    db.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
    guard.check()
    expect(guard.unfit).toBeUndefined()
    expect((await store.append('topic', {})).sequence).toBeGreaterThan(0)
  })

  it('works again when they are put back', async () => {
    const { path, store, told } = await newStore()
    renameSync(path, `${path}.away`)
    await expectUnavailable(store.append('topic', {}))
    renameSync(`${path}.away`, path)
    expect((await store.append('topic', {})).sequence).toBeGreaterThan(0)
    expect(await store.find('key', 'before')).toBeDefined()
    await eventually(() => expect(told.at(-1)).toBeUndefined())
  })

  it.each([
    [11, /damaged/],
    [26, /no database/],
    [1032, /cannot be written/],
  ])('says so for good after SQLite has said %i', async (errcode, words) => {
    const { path } = await newStore()
    const guard = guardOf(path)
    guard.failed(Object.assign(new Error('said'), { errcode }))
    guard.succeeded()
    guard.check()
    expect(guard.unfit).toMatch(words)
  })

  it('says so as long as the disk reports errors, and goes on trying', async () => {
    const { path } = await newStore()
    const guard = guardOf(path)
    guard.failed(Object.assign(new Error('said'), { errcode: 10 | (1 << 8) }))
    expect(guard.trouble).toMatch(/disk/)
    expect(guard.unfit).toBeUndefined()
    guard.succeeded()
    expect(guard.trouble).toBeUndefined()
  })
})

describe('T5.12 no second store takes the place of one that', () => {
  const REFUSAL = /restore a backup.*remove \S+store-marker\.json.*keys rotate --compromised/

  it.each([
    ['is gone', remove],
    ['was emptied', (path: string) => fill(path, '')],
  ])('%s: it is refused, until the marker is removed on purpose', async (_name, lose) => {
    const { path, store } = await newStore()
    await store.close()
    lose(path)
    for (const attempt of [
      () => SqliteStore.open(planOf(path), systemClock),
      () => examineSqlite(planOf(path)),
    ]) {
      const error = await refused(attempt())
      expect(error).toBeInstanceOf(StoreError)
      expect((error as StoreError).message).toMatch(REFUSAL)
    }
    expect(existsSync(path) && statSync(path).size > 0).toBe(false)
    rmSync(markerOf(path))
    expect(await (await openAt(path)).find('key', 'before')).toBeUndefined()
  })

  it('was replaced: who opens it is refused, until the service starts with it', async () => {
    // It is still open somewhere, as that of a service is that has not noticed yet.
    const { path } = await newStore()
    const copy = `${path}.copy`
    backUpSqlite(path, copy)
    remove(path)
    copyFileSync(copy, path)
    expect(await refused(SqliteStore.open(planOf(path), systemClock))).toMatchObject({
      message: expect.stringContaining('another file than the one that the service was started with'),
    })
    await examineSqlite(planOf(path))
    expect(await (await openAt(path)).find('key', 'before')).toBeDefined()
  })

  it('has a marker that was cut short', async () => {
    const { path, store } = await newStore()
    await store.close()
    writeFileSync(markerOf(path), '')
    remove(path)
    expect(await refused(SqliteStore.open(planOf(path), systemClock))).toBeInstanceOf(StoreError)
  })
})

describe('T5.12 a damaged store', () => {
  const PAGE = 4096

  async function damaged(damage: (path: string, pages: number) => void): Promise<string> {
    const { path, store } = await newStore()
    await store.close()
    const db = new DatabaseSync(path)
    const insert = db.prepare("INSERT INTO record (kind, key, value) VALUES ('filler', ?, ?)")
    for (let n = 0; n < 600; n += 1) insert.run(`k${n}`, JSON.stringify({ text: 'x'.repeat(400) }))
    db.close()
    damage(path, statSync(path).size / PAGE)
    return path
  }

  it.each([
    ['in its first page', (path: string) => overwrite(path, 0, PAGE)],
    ['behind its header', (path: string) => overwrite(path, 100, PAGE - 100)],
    ['here and there', (path: string, pages: number) => overwrite(path, Math.floor(pages / 2) * PAGE, PAGE)],
  ])('%s is refused at the start, and left as it is', async (_name, damage) => {
    const path = await damaged(damage)
    const before = readFileSync(path)
    const error = await refused(examineSqlite(planOf(path)))
    expect(error).toBeInstanceOf(StoreError)
    expect((error as StoreError).message).toMatch(/is damaged: .*restore a backup/)
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  it.each([
    ['an index', 'DROP INDEX record_by_family', 'record_by_family'],
    ['a table', 'DROP TABLE running', 'running'],
  ])('T7 that lacks %s is refused at the start, with advice', async (_what, sql, name) => {
    const { path, store } = await newStore()
    await store.close()
    const db = new DatabaseSync(path)
    db.exec(sql)
    db.close()
    const error = await refused(SqliteStore.open(planOf(path), systemClock))
    expect(error).toBeInstanceOf(StoreError)
    expect((error as StoreError).message).toMatch(new RegExp(`lacks ${name}\\. .*restore a backup`, 'i'))
  })

  it('that takes long to examine is served meanwhile, and told afterwards', async () => {
    const path = await damaged((file, pages) => overwrite(file, Math.floor(pages / 2) * PAGE, PAGE))
    const { later } = await examineSqlite(planOf(path), 0)
    expect(await later).toBeInstanceOf(StoreError)
  })
})

it('T5.12 a service whose store is deleted is not ready, says why, and does not start with another', async () => {
  const data = await dataFolder()
  const service = await postern({ data })
  remove(join(data, 'postern.sqlite'))
  const ready = async (): Promise<unknown> => (await fetch(`${service.adminUrl}/health/ready`)).json()
  await eventually(async () =>
    expect(await ready()).toMatchObject({ status: 'not ready', failing: ['store'] }),
  )
  await expect(issueToken(service, { scope: `${ALL_AT_ACME} offline_access` })).rejects.toThrow(/^503/)
  await service.close()
  expect(service.log().map(({ event }) => event)).toContain('store.unfit')
  await expect(startPostern({ data })).rejects.toThrow(/is gone, though this folder had one/)
})
