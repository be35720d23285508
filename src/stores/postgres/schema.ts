/**
 * The tables, for any database that speaks Postgres' protocol: no sequences, jsonb, advisory locks, LISTEN, triggers or
 * transactions of several statements. Times are milliseconds since the epoch. Keys and index values are escaped
 * (kernel/key-order.ts), and shortened (keys.ts).
 */

/** A role may lack the right to it where somebody has made the schema before. */
export const makeSchema = (schema: string): string => `CREATE SCHEMA IF NOT EXISTS ${schema}`

/** What migrating itself needs. Each statement does nothing where it was done before. */
export const foundations = (schema: string): readonly string[] => [
  `CREATE TABLE IF NOT EXISTS ${schema}.lease (name text PRIMARY KEY, holder text NOT NULL, until int8 NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS ${schema}.meta (
    id int4 PRIMARY KEY, version int4 NOT NULL, readable_from int4 NOT NULL)`,
]

/** Version 1. */
export const tables = (schema: string): readonly string[] => [
  `CREATE TABLE IF NOT EXISTS ${schema}.record (
    kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, long_key text,
    value text NOT NULL, version int8 NOT NULL DEFAULT 1, attempt text NOT NULL,
    expires_at int8, used_at int8, used_by text,
    family text COLLATE "C", subject text COLLATE "C", client text COLLATE "C", business text COLLATE "C",
    PRIMARY KEY (kind, key))`,
  `CREATE INDEX IF NOT EXISTS record_by_expiry ON ${schema}.record (expires_at) WHERE expires_at IS NOT NULL`,
  `CREATE INDEX IF NOT EXISTS record_by_family ON ${schema}.record (family) WHERE family IS NOT NULL`,
  `CREATE INDEX IF NOT EXISTS record_by_subject ON ${schema}.record (subject) WHERE subject IS NOT NULL`,
  // A client may have millions of records, which are read in pages: with kind and key, a page is one range of the index.
  `CREATE INDEX IF NOT EXISTS record_by_client ON ${schema}.record (client, kind, key) WHERE client IS NOT NULL`,
  `CREATE INDEX IF NOT EXISTS record_by_business ON ${schema}.record (business) WHERE business IS NOT NULL`,
  // One row: the end of the change feed, and how long the service has run on this store (ms).
  `CREATE TABLE IF NOT EXISTS ${schema}.feed (
    id int4 PRIMARY KEY, last int8 NOT NULL, mark text NOT NULL, ran int8 NOT NULL)`,
  `INSERT INTO ${schema}.feed (id, last, mark, ran) VALUES (1, 0, '', 0) ON CONFLICT (id) DO NOTHING`,
  // runs_until: until when, by feed.ran, the change is kept.
  `CREATE TABLE IF NOT EXISTS ${schema}.change (
    sequence int8 PRIMARY KEY, mark text NOT NULL, topic text NOT NULL, value text NOT NULL,
    expires_at int8, runs_until int8)`,
  // No change is appended twice, however its first try ended.
  `CREATE UNIQUE INDEX IF NOT EXISTS change_by_mark ON ${schema}.change (mark)`,
  `CREATE INDEX IF NOT EXISTS change_by_expiry ON ${schema}.change (expires_at) WHERE expires_at IS NOT NULL`,
  `CREATE TABLE IF NOT EXISTS ${schema}.node (
    id text PRIMARY KEY, version text NOT NULL, config text NOT NULL, facts text NOT NULL, seen_at int8 NOT NULL)`,
  // synced: `process:number` of the last exchange of each process, separated by spaces.
  `CREATE TABLE IF NOT EXISTS ${schema}.bucket (
    key text COLLATE "C" PRIMARY KEY, tokens float8 NOT NULL, at float8 NOT NULL, synced text NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS ${schema}.lockout (
    key text COLLATE "C" PRIMARY KEY, failures int4 NOT NULL, last_at int8 NOT NULL,
    busy_until int8 NOT NULL, busy_by text)`,
]

/**
 * Settings of Postgres itself, which other databases may not know. Updates of the same row stay on its page, and dead rows
 * are cleared soon.
 */
export const tuning = (schema: string): readonly string[] => [
  `ALTER TABLE ${schema}.record SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02)`,
  `ALTER TABLE ${schema}.feed SET (fillfactor = 20, autovacuum_vacuum_threshold = 200)`,
  `ALTER TABLE ${schema}.bucket SET (fillfactor = 50, autovacuum_vacuum_threshold = 200)`,
  `ALTER TABLE ${schema}.lockout SET (fillfactor = 50)`,
  `ALTER TABLE ${schema}.node SET (fillfactor = 50)`,
]
