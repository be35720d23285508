import { chmodSync, closeSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { migrate } from './sqlite-schema.ts'
import { describeTrouble, isBusy } from './sqlite-trouble.ts'
import { StoreError } from './store-error.ts'
import { markStore, requireNotLost, requireSame, wayOut } from './store-marker.ts'

export interface SqlitePlan {
  /** Absolute path of the file. */
  readonly path: string
  /** `normal`: what was answered survives the death of the process; `full`: a power cut too. */
  readonly synchronous: 'normal' | 'full'
  /** Bytes that the file may grow to. */
  readonly maxSize: number | undefined
  /** Whether a marker tells that the folder has a store (store-marker.ts): of every store but those of some tests. */
  readonly marked?: boolean
}

/** Milliseconds that a statement waits for another process's lock. */
export const BUSY_TIMEOUT = 250

// A process that starts while others migrate, or while one ends and empties the WAL, meets their locks.
const OPENING_TIMEOUT = 5000
const PRIVATE_FILE = 0o600
const OTHERS_MAY_ANYTHING = 0o077
const PAGE_SIZE = 4096
// The WAL is cut back to this after a checkpoint that a long read had kept waiting.
const WAL_LIMIT = 16 * 1024 ** 2

const reasonOf = (thrown: unknown): string =>
  describeTrouble(thrown) ?? (thrown instanceof Error ? thrown.message : String(thrown))

/** SQLite gives its -wal and -shm files the mode of the database file, so that one must be right first. */
function claimFile({ path, marked = false }: SqlitePlan): void {
  if (marked && requireNotLost(path)) requireSame(path)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  closeSync(openSync(path, 'a', PRIVATE_FILE))
  if ((statSync(path).mode & OTHERS_MAY_ANYTHING) !== 0) chmodSync(path, PRIVATE_FILE)
}

function configure(db: DatabaseSync, { path, synchronous, maxSize }: SqlitePlan): void {
  db.exec('PRAGMA journal_mode = WAL')
  db.exec(`PRAGMA synchronous = ${synchronous}`)
  db.exec(`PRAGMA journal_size_limit = ${WAL_LIMIT}`)
  if (maxSize !== undefined) db.exec(`PRAGMA max_page_count = ${Math.ceil(maxSize / PAGE_SIZE)}`)
  migrate(db, path)
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

/** Blocks: for the thread of the store and for the command line, never for the thread that serves. */
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
        `The store ${plan.path} cannot be opened: ${reasonOf(thrown)}. If it is damaged: ${wayOut(plan.path)}`,
        { cause: thrown },
      )
    }
  }
}
