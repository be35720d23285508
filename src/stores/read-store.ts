/** Reads a store file without opening it for service: nothing is created, changed or migrated. */
import { existsSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import type { Entry, Store, StoredValue } from '../contracts/store.ts'
import { escapedKey } from '../kernel/key-order.ts'
import { planSqlite, type StoreConfig } from './config.ts'
import { checkSchema, type RecordRow, toEntry } from './sqlite-file.ts'
import { PART_OF_KIND, partOf } from './sqlite-verbs.ts'
import { reasonOf, StoreError } from './store-error.ts'

/** Milliseconds: a reader waits while another process migrates or restores. */
const LOCK_TIMEOUT = 5000

/**
 * A store that no process has open has no WAL file. SQLite would create one to read it, unless it is told that the
 * file does not change.
 */
function openReadOnly(path: string): DatabaseSync {
  const options = { readOnly: true, timeout: LOCK_TIMEOUT }
  if (existsSync(`${path}-wal`)) return new DatabaseSync(path, options)
  const url = pathToFileURL(path)
  url.search = 'immutable=1'
  return new DatabaseSync(url, options)
}

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

/**
 * The live records of some kinds, by kind; undefined if there is no file. `now` in milliseconds since the epoch. The
 * service may run meanwhile. Throws StoreError if the file cannot be read. Blocks the thread: for the command line.
 */
export function readStoredRecords<K extends string>(
  path: string,
  kinds: readonly K[],
  now: number,
): Readonly<Record<K, readonly StoredValue[]>> | undefined {
  if (!existsSync(path)) return undefined
  try {
    const db = openReadOnly(path)
    try {
      checkSchema(db, path)
      const read = (kind: K): StoredValue[] =>
        entries(db, 'kind = :kind AND coalesce(expires_at > :now, TRUE) ORDER BY key', { kind, now }).map(
          ({ value }) => value,
        )
      return Object.fromEntries(kinds.map((kind) => [kind, read(kind)])) as Record<K, StoredValue[]>
    } finally {
      db.close()
    }
  } catch (thrown) {
    if (thrown instanceof StoreError) throw thrown
    throw new StoreError(`The store ${path} cannot be read: ${reasonOf(thrown)}`, { cause: thrown })
  }
}
