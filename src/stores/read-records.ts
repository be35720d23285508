import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import type { StoredValue } from '../contracts/store.ts'
import { checkSchema } from './sqlite-schema.ts'
import { describeTrouble } from './sqlite-trouble.ts'
import { StoreError } from './store-error.ts'
import { fromText } from './value-text.ts'

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
export function readRecordsOf<K extends string>(
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
      const read = (kind: K): StoredValue[] => list.all(kind, now).map(({ value }) => fromText(String(value)))
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
