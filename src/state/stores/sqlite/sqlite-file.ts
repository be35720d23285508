import { chmodSync, existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { performance } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { mayOthersAccess, PRIVATE_FILE } from '../../../base/files/file-modes.ts'
import { isBusy, troubleInWords, StoreError } from '../link/store-error.ts'
import { createOnce, logOf, markStore, recoveryAdvice, requireNotLost, requireSame } from './store-files.ts'
import { migrateSqlite, missingParts } from './sqlite-schema.ts'

/** How many frames are in the -wal, as SQLite has it in the -shm. Changes nothing, and waits for nothing. */
export const framesOf = (db: DatabaseSync): number =>
  Number(db.prepare('PRAGMA wal_checkpoint(NOOP)').get()?.['log'])

export interface SqlitePlan {
  readonly path: string
  /** `normal`: what was answered survives the death of the process. `full`: it survives a power cut too. */
  readonly synchronous: 'normal' | 'full'
  /** How large the file may grow, in bytes; undefined: no limit. */
  readonly maxSize: number | undefined
  /** Whether a marker says that the folder has a store (store-files.ts). Only some tests go without. */
  readonly marked?: boolean
  /** How long one request may take with all that it asks (T5.5), in milliseconds. If not given, 5 s. */
  readonly deadline?: number
  /** Milliseconds after which a verb fails that no request asks for. If not given, `deadline`. A command waits longer. */
  readonly answerWithin?: number
  /** Whether SQLite blocks this thread, as that of a command, which serves nobody; otherwise it has a thread of its own. */
  readonly here?: boolean
}

/** Milliseconds that a statement waits for the lock of another process, where no request says how long. */
export const BUSY_TIMEOUT = 250

// How long opening may wait for locks, in milliseconds: those of others that migrate, or that end and empty the WAL.
const OPENING_TIMEOUT = 5000
const PAGE_SIZE = 4096
// In bytes. A long read delays the checkpoint and lets the WAL grow; afterwards the file is cut back to this.
const WAL_LIMIT = 16 * 1024 ** 2

/** Sets the mode of the database file first, because SQLite gives the same mode to its -wal and -shm files. */
function claimFile({ path, marked = false }: SqlitePlan): void {
  if (marked && requireNotLost(path)) requireSame(path)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  createOnce(path)
  if (mayOthersAccess(statSync(path).mode)) chmodSync(path, PRIVATE_FILE)
}

function configure(db: DatabaseSync, { path, synchronous, maxSize }: SqlitePlan): void {
  db.exec('PRAGMA journal_mode = WAL')
  db.exec(`PRAGMA synchronous = ${synchronous}`)
  db.exec(`PRAGMA journal_size_limit = ${WAL_LIMIT}`)
  // What is removed is overwritten, so that free pages do not have it; the rest is left to `forget` (sqlite-verbs.ts).
  db.exec('PRAGMA secure_delete = ON')
  if (maxSize !== undefined) db.exec(`PRAGMA max_page_count = ${Math.ceil(maxSize / PAGE_SIZE)}`)
  migrateSqlite(db, path)
  const missing = missingParts(db)
  if (missing.length > 0)
    throw new StoreError(`The store ${path} lacks ${missing.join(', ')}. ${recoveryAdvice(path)}`)
}

function tryOpen(plan: SqlitePlan): DatabaseSync {
  const db = new DatabaseSync(plan.path, { timeout: BUSY_TIMEOUT })
  try {
    configure(db, plan)
    return db
  } catch (thrown) {
    db.close()
    throw thrown
  }
}

/** Throws StoreError if it cannot be used. Blocks the thread: never to be called in the one that serves. */
export function openSqliteFile(plan: SqlitePlan): DatabaseSync {
  const lastTry = performance.now() + OPENING_TIMEOUT
  for (;;) {
    try {
      claimFile(plan)
      const db = tryOpen(plan)
      if (plan.marked === true) markStore(plan.path)
      return db
    } catch (thrown) {
      if (thrown instanceof StoreError) throw thrown
      if (isBusy(thrown) && performance.now() < lastTry) continue
      throw new StoreError(
        `The store ${plan.path} cannot be opened: ${troubleInWords(thrown)}. If it is damaged: ${recoveryAdvice(plan.path)}`,
        { cause: thrown },
      )
    }
  }
}

/** Milliseconds: a reader waits while another process migrates or restores, as long as commands wait for a store. */
const LOCK_TIMEOUT = 10_000

/**
 * A store that no process has open has no WAL file. SQLite would create one to read it, unless it knows that the
 * file does not change.
 */
export function openReadOnly(path: string): DatabaseSync {
  const options = { readOnly: true, timeout: LOCK_TIMEOUT }
  if (existsSync(path) && existsSync(logOf(path))) return new DatabaseSync(path, options)
  const url = pathToFileURL(path)
  url.search = 'immutable=1'
  return new DatabaseSync(url, options)
}
