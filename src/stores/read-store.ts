/** Reads a store file without opening it for service: nothing is created, changed or migrated. */
import { closeSync, existsSync, linkSync, openSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { Entry, IndexValues, Store, StoredValue } from '../contracts/store.ts'
import { type Clock, systemClock } from '../kernel/clock.ts'
import { PRIVATE_FILE } from '../kernel/file-modes.ts'
import { newSecret } from '../kernel/ids.ts'
import { escapedKey } from '../kernel/key-order.ts'
import { hasCode } from '../kernel/thrown.ts'
import { MemoryStore } from './memory.ts'
import { placeOf, type PostgresConfig } from './postgres/connection-schema.ts'
import { planSqlite, type StoreConfig } from './schema.ts'
import { checkSchema, columnToKey, openReadOnly, type RecordRow, toEntry } from './sqlite-file.ts'
import { PART_OF_KIND, partOf } from './sqlite-verbs.ts'
import { quickCheck, reasonOf, StoreError } from './store-error.ts'
import { flush, requireNotLost } from './store-files.ts'

function entries(db: DatabaseSync, where: string, parameters: Record<string, SQLInputValue>): Entry[] {
  const select = db.prepare(`SELECT key, value, version, expires_at, used_at FROM record WHERE ${where}`)
  return (select.all(parameters) as RecordRow[]).map(toEntry)
}

const readerOf = (db: DatabaseSync): Pick<Store, 'find' | 'list'> => ({
  find: (kind, key) =>
    Promise.resolve(entries(db, 'kind = :kind AND key = :key', { kind, key: escapedKey(key) })[0]),
  list: (kind, page) =>
    Promise.resolve(entries(db, `${PART_OF_KIND} ORDER BY key LIMIT :limit`, { kind, ...partOf(page) })),
})

/**
 * Hands the store of a configuration to `inspect`. Does nothing if there is no store, or none that can be read:
 * whoever opens it reports why. `data` is the folder for keys and state. Rejects with what `inspect` throws. Blocks
 * the thread: for the command line.
 */
export async function inspectStore(
  config: StoreConfig,
  data: string,
  inspect: (store: Pick<Store, 'find' | 'list'>) => Promise<void>,
): Promise<void> {
  if (config.kind === 'memory') return
  if (config.kind === 'postgres') return inspectPostgres(config, inspect)
  const { path } = planSqlite(config, data)
  if (!existsSync(path)) return
  let db: DatabaseSync | undefined
  try {
    db = openReadOnly(path)
    await inspect(readerOf(db))
  } catch (thrown) {
    if (!(thrown instanceof Error && 'errcode' in thrown)) throw thrown
  } finally {
    db?.close()
  }
}

/** Nothing is made or changed: without the tables, or without an answer in time, there is nothing to inspect. */
async function inspectPostgres(
  config: PostgresConfig,
  inspect: (store: Pick<Store, 'find' | 'list'>) => Promise<void>,
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

/** A row of `record`, with its indexes. */
type WholeRow = RecordRow & { readonly kind: string } & Readonly<Record<keyof IndexValues, string | null>>

/**
 * What is kept for good in a file that cannot be written, in a store in memory: neither what expires, nor the change feed.
 * Rejects with StoreError if the file cannot be read, or is missing in a folder that had one. Blocks the thread: for the command line.
 */
export async function copyIntoMemory(path: string, clock: Clock): Promise<Store> {
  requireNotLost(path)
  const copy = new MemoryStore(clock)
  for (const row of existsSync(path) ? wholeRows(path) : []) {
    const { key, value } = toEntry(row)
    const indexes = Object.fromEntries(
      INDEXES.flatMap((index) => (row[index] === null ? [] : [[index, columnToKey(row[index])]])),
    )
    await copy.create(row.kind, key, { value, indexes })
  }
  return copy
}

const INDEXES = ['family', 'subject', 'client', 'business'] as const satisfies readonly (keyof IndexValues)[]

function wholeRows(path: string): readonly WholeRow[] {
  return reading(path, (db) => {
    const select = db.prepare(
      `SELECT kind, key, value, version, expires_at, used_at, ${INDEXES.join(', ')} FROM record WHERE expires_at IS NULL`,
    )
    return select.all() as WholeRow[]
  })
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
  const records = readFile(path, kinds, now)
  return records && { place: path, records }
}

async function readPostgres<K extends string>(
  config: PostgresConfig,
  kinds: readonly K[],
): Promise<StoredKinds<K>> {
  const store = await openToRead(config)
  try {
    const records: Partial<Record<K, readonly StoredValue[]>> = {}
    for (const kind of kinds) records[kind] = (await store.list(kind)).map(({ value }) => value)
    return { place: placeOf(config), records: records as Record<K, readonly StoredValue[]> }
  } finally {
    await store.close()
  }
}

/** Undefined if there is no file. Throws StoreError if it cannot be read. Blocks the thread: for the command line. */
function readFile<K extends string>(
  path: string,
  kinds: readonly K[],
  now: number,
): Readonly<Record<K, readonly StoredValue[]>> | undefined {
  if (!existsSync(path)) return undefined
  return reading(path, (db) => {
    const read = (kind: K): StoredValue[] =>
      entries(db, 'kind = :kind AND coalesce(expires_at > :now, TRUE) ORDER BY key', { kind, now }).map(
        ({ value }) => value,
      )
    return Object.fromEntries(kinds.map((kind) => [kind, read(kind)])) as Record<K, StoredValue[]>
  })
}

/** Throws StoreError if the file cannot be read. */
function reading<T>(path: string, read: (db: DatabaseSync) => T): T {
  try {
    const db = openReadOnly(path)
    try {
      checkSchema(db, path)
      return read(db)
    } finally {
      db.close()
    }
  } catch (thrown) {
    if (thrown instanceof StoreError) throw thrown
    throw new StoreError(`The store ${path} cannot be read: ${reasonOf(thrown)}`, { cause: thrown })
  }
}

// Milliseconds. A backup may wait for a lock longer than a call.
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
  return new StoreError(`The store ${source} cannot be copied to ${target}: ${reasonOf(thrown)}`, {
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
