import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { logOf } from './store-files.ts'

/** Milliseconds: a reader waits while another process migrates or restores. */
const LOCK_TIMEOUT = 5000

/**
 * A store that no process has open has no WAL file. SQLite would create one to read it, unless it is told that the
 * file does not change.
 */
export function openReadOnly(path: string): DatabaseSync {
  const options = { readOnly: true, timeout: LOCK_TIMEOUT }
  if (existsSync(path) && existsSync(logOf(path))) return new DatabaseSync(path, options)
  const url = pathToFileURL(path)
  url.search = 'immutable=1'
  return new DatabaseSync(url, options)
}
