import { existsSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { Entry, Store } from '../contracts/store.ts'
import { planSqlite, type StoreConfig } from './config.ts'
import { keyToColumn, toEntry, type RecordRow } from './sqlite-rows.ts'

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
export async function peekIntoStore(
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
