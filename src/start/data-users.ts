/** Whether another service uses the same data folder. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isBusy } from '../stores/store-error.ts'
import { createOnce } from '../stores/store-files.ts'

const FILE = 'service.lock'
const PRIVATE_FOLDER = 0o700
/** Milliseconds to wait for another service that looks at this very moment. */
const PATIENCE = 1000

export interface DataUse extends Disposable {
  /** Whether another service used the folder when this one began to. */
  readonly isShared: boolean
}

/** Of a folder that cannot be written: nobody changes anything in it. */
const READ_ONLY: DataUse = { isShared: false, [Symbol.dispose]: () => undefined }

/**
 * Begins to use a data folder, which is made if it is missing. Every service holds a shared lock of the operating system on a file of it,
 * and asks for an exclusive one first: whoever is refused that is not alone. A lock ends with its process, however that
 * ends, so nothing is left behind by a crash, and no process id can be mistaken.
 *
 * Trap: a POSIX lock of a process ends when that process closes any descriptor of the file, so only SQLite opens it again.
 */
export function useData(folder: string): DataUse {
  try {
    mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER })
    const file = join(folder, FILE)
    createOnce(file)
    return lookInto(new DatabaseSync(file, { timeout: 0 }))
  } catch {
    return READ_ONLY
  }
}

/** Whether a service uses a folder. Nothing is made in a folder that no service has used. */
export function hasService(folder: string): boolean {
  if (!existsSync(join(folder, FILE))) return false
  using use = useData(folder)
  return use.isShared
}

/** Throws SQLite's error. */
function lookInto(db: DatabaseSync): DataUse {
  try {
    const isShared = !isAlone(db)
    db.exec(`PRAGMA busy_timeout = ${PATIENCE}; BEGIN; SELECT count(*) FROM sqlite_schema`)
    return { isShared, [Symbol.dispose]: () => db.close() }
  } catch (thrown) {
    db.close()
    throw thrown
  }
}

function isAlone(db: DatabaseSync): boolean {
  try {
    db.exec('BEGIN EXCLUSIVE; ROLLBACK')
    return true
  } catch (thrown) {
    if (isBusy(thrown)) return false
    throw thrown
  }
}
