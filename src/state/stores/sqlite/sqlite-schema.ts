/** The tables of a store in SQLite. */
import type { DatabaseSync } from 'node:sqlite'
import { StoreError } from '../link/store-error.ts'

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

const PARTS = MIGRATIONS.flatMap((sql) =>
  [...sql.matchAll(/CREATE (?:TABLE|INDEX) (\w+)/g)].map(([, name]) => name),
)

/** The tables and indexes that a store of the newest schema lacks: it was changed by something else. */
export function missingParts(db: DatabaseSync): readonly string[] {
  const there = new Set(
    db
      .prepare('SELECT name FROM sqlite_schema')
      .all()
      .map(({ name }) => name),
  )
  return PARTS.flatMap((name) => (name === undefined || there.has(name) ? [] : [name]))
}

/** In one transaction: of several processes one does the work. Throws StoreError, and SQLite's own errors. */
export function migrateSqlite(db: DatabaseSync, path: string): void {
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
