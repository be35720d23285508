import { chmodSync, existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { performance } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import type { Change, Entry, StoredValue } from '../../../base/contracts/records/store.ts'
import { mayOthersAccess, PRIVATE_FILE } from '../../../base/files/file-modes.ts'
import { NO_MARK } from '../feed/feed-changes.ts'
import { isBusy, reasonOf, StoreError } from '../link/store-error.ts'
import { createOnce, logOf, markStore, recoveryAdvice, requireNotLost, requireSame } from './store-files.ts'

/** "Post" in the header marks the file as ours, so that we never write to another program's database. */
const APPLICATION_ID = 0x506f7374

/**
 * Forward only: a released row never changes, a new row is added. `user_version` counts the applied rows.
 *
 * Times are milliseconds since the epoch. Keys and index values are escaped (`escapedKey`). AUTOINCREMENT keeps a
 * sequence from being given twice after the newest change was purged. No verb uses the table `counter` any more. It
 * stays empty, because a migration that drops it would keep older versions from opening the store.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE record (
    kind       TEXT NOT NULL,
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,
    version    INTEGER NOT NULL DEFAULT 1,
    expires_at INTEGER,
    used_at    INTEGER,
    family     TEXT,
    subject    TEXT,
    client     TEXT,
    business   TEXT,
    PRIMARY KEY (kind, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX record_by_expiry   ON record (expires_at) WHERE expires_at IS NOT NULL;
  CREATE INDEX record_by_family   ON record (family)     WHERE family IS NOT NULL;
  CREATE INDEX record_by_subject  ON record (subject)    WHERE subject IS NOT NULL;
  CREATE INDEX record_by_client   ON record (client)     WHERE client IS NOT NULL;
  CREATE INDEX record_by_business ON record (business)   WHERE business IS NOT NULL;

  CREATE TABLE counter (
    key     TEXT NOT NULL PRIMARY KEY,
    count   INTEGER NOT NULL,
    ends_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX counter_by_end ON counter (ends_at);

  CREATE TABLE change (
    sequence   INTEGER PRIMARY KEY AUTOINCREMENT,
    topic      TEXT NOT NULL,
    value      TEXT NOT NULL,
    expires_at INTEGER
  ) STRICT;
  CREATE INDEX change_by_expiry ON change (expires_at) WHERE expires_at IS NOT NULL;
  `,
  // `ms`: how long the service has run on this store, in milliseconds. `runs_until`: until when by that count a change is
  // kept. Older changes get two days, which is longer than any of them was to live.
  `
  CREATE TABLE running (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    ms INTEGER NOT NULL
  ) STRICT;
  INSERT INTO running (id, ms) VALUES (1, 0);

  ALTER TABLE change ADD COLUMN runs_until INTEGER;
  UPDATE change SET runs_until = 172800000 WHERE expires_at IS NOT NULL;
  `,
]

export const readNumber = (db: DatabaseSync, sql: string): number =>
  Number(Object.values(db.prepare(sql).get() ?? {})[0])

/** How many frames are in the -wal, as SQLite has it in the -shm. Changes nothing, and waits for nothing. */
export const framesOf = (db: DatabaseSync): number =>
  Number(db.prepare('PRAGMA wal_checkpoint(NOOP)').get()?.['log'])

/** Throws StoreError if the database belongs to another program or to a newer Postern. Changes nothing. */
export function checkSchema(db: DatabaseSync, path: string): void {
  const tables = readNumber(db, 'SELECT count(*) FROM sqlite_schema')
  if (tables > 0 && readNumber(db, 'PRAGMA application_id') !== APPLICATION_ID)
    throw new StoreError(
      `${path} is a database, but not a store of Postern. Move it away, or name another folder.`,
    )
  const version = readNumber(db, 'PRAGMA user_version')
  if (version > MIGRATIONS.length)
    throw new StoreError(
      `The store ${path} has schema ${version}, but this Postern knows schemas up to ${MIGRATIONS.length}: a newer ` +
        'one has used it. Run that version or later, or restore a backup made before the upgrade.',
    )
}

/** Throws StoreError if the database is no store, or one of another schema. Changes nothing. */
export function requireNewestSchema(db: DatabaseSync, path: string): void {
  checkSchema(db, path)
  const version = readNumber(db, 'PRAGMA user_version')
  if (version !== MIGRATIONS.length)
    throw new StoreError(
      version === 0
        ? `${path} is no store of Postern.`
        : `The store ${path} has schema ${version}. Start this version on it once, which brings it to schema ${MIGRATIONS.length}.`,
    )
}

/** In one transaction: of several processes one does the work. Throws StoreError, and SQLite's own errors. */
function migrate(db: DatabaseSync, path: string): void {
  checkSchema(db, path)
  if (readNumber(db, 'PRAGMA user_version') === MIGRATIONS.length) return
  db.exec('BEGIN IMMEDIATE')
  try {
    // Again, now that no other process can write.
    checkSchema(db, path)
    const applied = readNumber(db, 'PRAGMA user_version')
    for (const migration of MIGRATIONS.slice(applied)) db.exec(migration)
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`)
    db.exec('COMMIT')
  } catch (thrown) {
    db.exec('ROLLBACK')
    throw thrown
  }
}

/** A row of `record`, without kind and indexes. A type alias, so that the rows of node:sqlite can be cast to it. */
export type RecordRow = {
  readonly key: string
  readonly value: string
  readonly version: number
  readonly expires_at: number | null
  readonly used_at: number | null
}

export type ChangeRow = {
  readonly sequence: number
  readonly topic: string
  readonly value: string
  readonly expires_at: number | null
  readonly runs_until: number | null
}

export const columnToKey = (column: string): string => JSON.parse(`"${column}"`) as string

export const toEntry = (row: RecordRow): Entry => ({
  key: columnToKey(row.key),
  value: JSON.parse(row.value) as StoredValue,
  version: row.version,
  expiresAt: row.expires_at ?? undefined,
  usedAt: row.used_at ?? undefined,
})

/** `ran`: how long the service has run on this store, in milliseconds. */
export const toChange = (row: ChangeRow, ran: number): Change => ({
  sequence: row.sequence,
  mark: NO_MARK,
  topic: row.topic,
  value: JSON.parse(row.value) as StoredValue,
  expiresAt: row.expires_at ?? undefined,
  remaining: row.runs_until === null ? undefined : row.runs_until - ran,
})

export interface SqlitePlan {
  readonly path: string
  /** `normal`: what was answered survives the death of the process. `full`: it survives a power cut too. */
  readonly synchronous: 'normal' | 'full'
  /** Bytes that the file may grow to; undefined: no limit. */
  readonly maxSize: number | undefined
  /** Whether a marker says that the folder has a store (store-files.ts). Only some tests go without. */
  readonly marked?: boolean
  /** Milliseconds for all that one request asks (T5.5). If not given, 5 s. */
  readonly deadline?: number
  /** Milliseconds after which a verb fails that no request asks for. If not given, `deadline`. A command waits longer. */
  readonly answerWithin?: number
  /** Whether SQLite blocks this thread, as that of a command, which serves nobody; else it has one of its own. */
  readonly here?: boolean
}

/** Milliseconds that a statement waits for the lock of another process, where no request says how long. */
export const BUSY_TIMEOUT = 250

// Milliseconds. At its start a process may meet the locks of others that migrate, or that end and empty the WAL.
const OPENING_TIMEOUT = 5000
const PAGE_SIZE = 4096
// Bytes. A long read delays the checkpoint and lets the WAL grow; afterwards the file is cut back to this.
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
        `The store ${plan.path} cannot be opened: ${reasonOf(thrown)}. If it is damaged: ${recoveryAdvice(plan.path)}`,
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
