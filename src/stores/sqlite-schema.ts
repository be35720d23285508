import type { DatabaseSync } from 'node:sqlite'
import { StoreError } from './store-error.ts'

/** Marks the file as ours in its header ("Post"), so that a strange database is never written to. */
const APPLICATION_ID = 0x506f7374

/**
 * Forward only: a row is never changed once it has been released, a new one is added. `user_version` counts how many
 * have been applied.
 *
 * Times are milliseconds since the epoch. Keys and index values stand as JSON escapes them (sqlite-rows.ts).
 * AUTOINCREMENT, because a sequence must not be given twice when the newest change has been purged.
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
  // How long the service has run on this store, in milliseconds, and until when by that count a change is kept. Those
  // that are there already are kept for two days of it, which is longer than any of them was to live.
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

const readNumber = (db: DatabaseSync, sql: string): number =>
  Number(Object.values(db.prepare(sql).get() ?? {})[0])

/** Throws StoreError if the file is a database of something else, or of a newer Postern. */
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

/** Brings the schema up to date, in one transaction; of several processes that start at once, one does the work. */
export function migrate(db: DatabaseSync, path: string): void {
  checkSchema(db, path)
  if (readNumber(db, 'PRAGMA user_version') === MIGRATIONS.length) return
  db.exec('BEGIN IMMEDIATE')
  try {
    // Again, now that nobody else can write.
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
