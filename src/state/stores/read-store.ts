/** Reads a store file without opening it for service: nothing is created, changed or migrated. */
import { closeSync, existsSync, linkSync, openSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { Entry, Store, StoredValue } from '../../base/contracts/records/store.ts'
import { type Clock, systemClock } from '../../base/kernel/clock.ts'
import { PRIVATE_FILE } from '../../base/files/file-modes.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { escapedKey } from '../../base/kernel/key-order.ts'
import { hasCode } from '../../base/kernel/thrown.ts'
import { storeLocation, type PostgresConfig } from './postgres/connection-schema.ts'
import { planSqlite, sqliteFile, type StoreConfig } from './schema.ts'
import { openReadOnly } from './sqlite/sqlite-file.ts'
import { checkSchema } from './sqlite/sqlite-schema.ts'
import { LIVE, PART_OF_KIND, partOf } from './sqlite/sqlite-verbs.ts'
import { type RecordRow, toEntry } from './link/rows.ts'
import { quickCheck, troubleInWords, StoreError } from './link/store-error.ts'
import { flush, requireNotLost } from './sqlite/store-files.ts'

type StoreReader = Pick<Store, 'find' | 'list'>

/** Opens the file, and does the work with it. */
type Reading = <T>(work: (db: DatabaseSync) => T) => T

function readerOf(reading: Reading, now: () => number): StoreReader {
  const entries = (where: string, parameters: Record<string, SQLInputValue>): Entry[] =>
    reading((db) => {
      const select = db.prepare(`SELECT key, value, version, expires_at, used_at FROM record
        WHERE ${where} LIMIT :limit`)
      return (select.all({ now: now(), ...parameters }) as RecordRow[]).map(toEntry)
    })
  return {
    find: (kind, key) =>
      Promise.try(
        () => entries(`kind = :kind AND key = :key AND ${LIVE}`, { kind, key: escapedKey(key), limit: 1 })[0],
      ),
    list: (kind, page) =>
      Promise.try(() => entries(`${PART_OF_KIND} AND ${LIVE} ORDER BY key`, { kind, ...partOf(page) })),
  }
}

/** Throws StoreError if the file is no store, or one of a newer Postern, and SQLite's errors. */
function openFile(path: string): DatabaseSync {
  const db = openReadOnly(path)
  try {
    checkSchema(db, path)
    return db
  } catch (thrown) {
    db.close()
    throw thrown
  }
}

/**
 * The highest number that a store has given to a change, which is a time as well; undefined if there is no store, or none that can
 * be read: whoever opens it reports why. Blocks the thread for a moment.
 */
export function newestChangeOf(path: string): number | undefined {
  if (!existsSync(path)) return undefined
  try {
    using db = openFile(path)
    return Number(db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'change'").get()?.['seq'] ?? 0)
  } catch {
    return undefined
  }
}

const cannotRead = (path: string, thrown: unknown): StoreError =>
  thrown instanceof StoreError
    ? thrown
    : new StoreError(`The store ${path} cannot be read: ${troubleInWords(thrown)}`, { cause: thrown })

/** Rejects what would change something. */
const refuse = (): Promise<never> => Promise.reject(new StoreError('The store is open to be read only.'))

/**
 * A store of this machine, to be read only: nothing is made next to its file, so that its folder need not be writable. Where
 * there is no file, it is empty. Each reading opens the file anew, because a service may start meanwhile. Rejects with
 * StoreError if it cannot be read. Blocks the thread: for the command line.
 */
export function openSqliteToRead(data: string, clock: Pick<Clock, 'now'>): Store {
  const path = sqliteFile(data)
  requireNotLost(path)
  const reading: Reading = (work) => {
    try {
      using db = openFile(path)
      return work(db)
    } catch (thrown) {
      throw cannotRead(path, thrown)
    }
  }
  const reader = readerOf(reading, () => clock.now())
  return {
    find: async (kind, key) => (existsSync(path) ? reader.find(kind, key) : undefined),
    list: async (kind, page) => (existsSync(path) ? reader.list(kind, page) : []),
    create: refuse,
    consume: refuse,
    redeem: refuse,
    replace: refuse,
    remove: refuse,
    listBy: refuse,
    pageBy: refuse,
    removeBy: refuse,
    countBy: refuse,
    lastUseBy: refuse,
    append: refuse,
    changes: refuse,
    hold: refuse,
    release: refuse,
    purge: refuse,
    close: () => Promise.resolve(),
  }
}

/**
 * Hands the store of a configuration to `inspect`. Does nothing if there is no store, or none that can be read:
 * whoever opens it reports why. `data` is the folder for keys and state. Rejects with what `inspect` throws. Blocks
 * the thread: for the command line.
 */
export async function inspectStore(
  config: StoreConfig,
  data: string,
  inspect: (store: StoreReader) => Promise<void>,
): Promise<void> {
  if (config.kind === 'memory') return
  if (config.kind === 'postgres') return inspectPostgres(config, inspect)
  const { path } = planSqlite(config, data)
  if (!existsSync(path)) return
  try {
    using db = openFile(path)
    await inspect(readerOf((work) => work(db), Date.now))
  } catch (thrown) {
    if (!(thrown instanceof StoreError || (thrown instanceof Error && 'errcode' in thrown))) throw thrown
  }
}

/** Nothing is made or changed: without the tables, or without an answer in time, there is nothing to inspect. */
async function inspectPostgres(
  config: PostgresConfig,
  inspect: (store: StoreReader) => Promise<void>,
): Promise<void> {
  const store = await openToRead(config).catch(() => undefined)
  try {
    if (store !== undefined) await inspect(store)
  } finally {
    await store?.close()
  }
}

const openToRead = async (config: PostgresConfig): Promise<Store> => {
  const { openPostgresToRead } = await import('./postgres/open.ts')
  return openPostgresToRead(config, systemClock)
}

interface StoredKinds<K extends string> {
  readonly place: string
  readonly records: Readonly<Record<K, readonly StoredValue[]>>
}

/**
 * The live records of some kinds; undefined if there is no store, or one in the memory of a service. `now` in
 * milliseconds since the epoch. The service may run meanwhile. Rejects with StoreError if the store cannot be read.
 */
export async function readStoredRecords<K extends string>(
  config: StoreConfig,
  data: string,
  kinds: readonly K[],
  now: number,
): Promise<StoredKinds<K> | undefined> {
  if (config.kind === 'memory') return undefined
  if (config.kind === 'postgres') return readPostgres(config, kinds)
  const { path } = planSqlite(config, data)
  const records = await readFile(path, kinds, now)
  return records && { place: path, records }
}

async function readPostgres<K extends string>(
  config: PostgresConfig,
  kinds: readonly K[],
): Promise<StoredKinds<K>> {
  const store = await openToRead(config)
  try {
    return { place: storeLocation(config), records: await valuesOf(store, kinds) }
  } finally {
    await store.close()
  }
}

/** Undefined if there is no file. Rejects with StoreError if it cannot be read. Blocks the thread: for the command line. */
async function readFile<K extends string>(
  path: string,
  kinds: readonly K[],
  now: number,
): Promise<Readonly<Record<K, readonly StoredValue[]>> | undefined> {
  if (!existsSync(path)) return undefined
  try {
    using db = openFile(path)
    return await valuesOf(
      readerOf(
        (work) => work(db),
        () => now,
      ),
      kinds,
    )
  } catch (thrown) {
    throw cannotRead(path, thrown)
  }
}

async function valuesOf<K extends string>(
  store: StoreReader,
  kinds: readonly K[],
): Promise<Readonly<Record<K, readonly StoredValue[]>>> {
  const records: Partial<Record<K, readonly StoredValue[]>> = {}
  for (const kind of kinds) records[kind] = (await store.list(kind)).map(({ value }) => value)
  return records as Record<K, StoredValue[]>
}

// How long a backup may wait for a lock, in milliseconds: longer than a call may.
const TIMEOUT = 10_000

/**
 * VACUUM INTO reads everything in one transaction, so the copy shows one moment. In WAL mode, others can write
 * meanwhile. It accepts an existing file only if that file is empty: we create it first, to give it its mode.
 */
function copyInto(source: string, draft: string): void {
  const db = new DatabaseSync(source, { timeout: TIMEOUT })
  try {
    checkSchema(db, source)
    closeSync(openSync(draft, 'wx', PRIVATE_FILE))
    db.prepare('VACUUM INTO ?').run(draft)
  } finally {
    db.close()
  }
}

function verify(path: string): void {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    const damage = quickCheck(db)
    if (damage !== undefined) throw new StoreError(`the copy is damaged: ${damage}`)
  } finally {
    db.close()
  }
}

function explain(thrown: unknown, source: string, target: string): StoreError {
  if (thrown instanceof StoreError) return thrown
  if (hasCode(thrown, 'EEXIST'))
    return new StoreError(`${target} exists already, and is left as it is. Name a new file.`)
  return new StoreError(`The store ${source} cannot be copied to ${target}: ${troubleInWords(thrown)}`, {
    cause: thrown,
  })
}

/**
 * Copies a store into a new file that only its owner may read, and checks the copy. The service may run meanwhile.
 * The file appears complete or not at all, and nothing is overwritten. Throws StoreError and leaves nothing behind
 * then. Blocks the thread: for the command line.
 */
export function backUpSqlite(source: string, file: string): void {
  if (!existsSync(source)) throw new StoreError(`There is no store at ${source}: nothing to back up.`)
  const target = resolve(file)
  const draft = `${target}.${newSecret(9)}.part`
  try {
    if (existsSync(target)) throw Object.assign(new Error('there is a file'), { code: 'EEXIST' })
    copyInto(source, draft)
    verify(draft)
    flush(draft)
    // Fails if another file has taken the name meanwhile.
    linkSync(draft, target)
    flush(dirname(target))
  } catch (thrown) {
    throw explain(thrown, source, target)
  } finally {
    rmSync(draft, { force: true })
  }
}
