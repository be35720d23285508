import { existsSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { Entry, Store, StoredValue } from '../contracts/store.ts'
import { planSqlite, type StoreConfig } from './config.ts'
import { checkSchema, keyToColumn, type RecordRow, toEntry } from './sqlite-file.ts'
import { pathToFileURL } from 'node:url'
import { describeTrouble, StoreError } from './store-error.ts'

const COLUMNS = 'key, value, version, expires_at, used_at'

const peekAt = (db: DatabaseSync): Pick<Store, 'find' | 'list'> => {
  const rows = (sql: string, parameters: Record<string, SQLInputValue>): Entry[] =>
    (db.prepare(`SELECT ${COLUMNS} FROM record WHERE ${sql}`).all(parameters) as RecordRow[]).map(toEntry)
  return {
    find: (kind, key) =>
      Promise.resolve(rows('kind = :kind AND key = :key', { kind, key: keyToColumn(key) })[0]),
    list: (kind, page) =>
      Promise.resolve(
        rows('kind = :kind AND key > :after ORDER BY key LIMIT :limit', {
          kind,
          after: keyToColumn(page?.after ?? ''),
          limit: page?.limit ?? -1,
        }),
      ),
  }
}

/**
 * Looks into the store of a configuration without opening it for service: nothing is made, changed or migrated. Does
 * nothing where there is no store, or none that can be read: whoever opens it says why. Blocks: for the command line.
 */
export async function inspectStore(
  config: StoreConfig,
  data: string,
  look: (store: Pick<Store, 'find' | 'list'>) => Promise<void>,
): Promise<void> {
  if (config.kind === 'memory') return
  const { path } = planSqlite(config, data)
  if (!existsSync(path)) return
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(path, { readOnly: true })
    await look(peekAt(db))
  } catch (thrown) {
    if (!(thrown instanceof Error && 'errcode' in thrown)) throw thrown
  } finally {
    db?.close()
  }
}

// A reader waits for whoever migrates or restores.
const TIMEOUT = 5000

/**
 * Opened so that nothing is written, not even beside the file. Where nobody has it open it has no WAL, and SQLite would
 * make one to read it, unless it is told that the file does not change.
 */
function openReadOnly(path: string): DatabaseSync {
  const options = { readOnly: true, timeout: TIMEOUT }
  if (existsSync(`${path}-wal`)) return new DatabaseSync(path, options)
  const url = pathToFileURL(path)
  url.search = 'immutable=1'
  return new DatabaseSync(url, options)
}

/**
 * The records of some kinds that stand in a store's file, live or not, by kind; undefined where there is no file.
 * Changes nothing. Throws StoreError. Blocks: for the command line.
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
      const list = db.prepare(
        'SELECT value FROM record WHERE kind = ? AND coalesce(expires_at > ?, TRUE) ORDER BY key',
      )
      const read = (kind: K): StoredValue[] =>
        list.all(kind, now).map(({ value }) => JSON.parse(String(value)) as StoredValue)
      return Object.fromEntries(kinds.map((kind) => [kind, read(kind)])) as Record<K, StoredValue[]>
    } finally {
      db.close()
    }
  } catch (thrown) {
    if (thrown instanceof StoreError) throw thrown
    const reason = describeTrouble(thrown) ?? (thrown instanceof Error ? thrown.message : String(thrown))
    throw new StoreError(`The store ${path} cannot be read: ${reason}`, { cause: thrown })
  }
}
