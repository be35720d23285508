/**
 * The versions of the tables. Version v of Postern's tables works with what knows v or v−1: so nodes are replaced one by
 * one. A version only adds at first. Removals are done by `postern migrate --finish`, when no older node is left.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../base/kernel/faults.ts'
import { messageOf } from '../../base/kernel/thrown.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'
import { stateOf } from './connections.ts'
import type { PostgresLink } from './link.ts'
import { PostgresNodes } from './shared-parts.ts'
import { leaseStatements, READ_CLOCK, readStatement, writing } from './statements.ts'

/** A role may lack the right to it where somebody has made the schema before. */
export const makeSchema = (schema: string): string => `CREATE SCHEMA IF NOT EXISTS ${schema}`

/** The tables that migrating itself needs. Each statement does nothing where it was done before. */
export const foundations = (schema: string): readonly string[] => [
  `CREATE TABLE IF NOT EXISTS ${schema}.lease (name text PRIMARY KEY, holder text NOT NULL, until int8 NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS ${schema}.meta (
    id int4 PRIMARY KEY, version int4 NOT NULL, readable_from int4 NOT NULL)`,
]

/**
 * Version 1, for any database that speaks Postgres' protocol: no sequences, jsonb, advisory locks, LISTEN, triggers or
 * transactions of several statements. Times are milliseconds since the epoch. Keys and index values are escaped
 * (base/kernel/key-order.ts), and shortened (`shortKey`).
 */
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

/** Other databases may not know these settings. Updates stay on their page, dead rows are cleared soon. */
const tuning = (schema: string): readonly string[] => [
  `ALTER TABLE ${schema}.record SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02)`,
  `ALTER TABLE ${schema}.feed SET (fillfactor = 20, autovacuum_vacuum_threshold = 200)`,
  `ALTER TABLE ${schema}.bucket SET (fillfactor = 50, autovacuum_vacuum_threshold = 200)`,
  `ALTER TABLE ${schema}.lockout SET (fillfactor = 50)`,
  `ALTER TABLE ${schema}.node SET (fillfactor = 50)`,
]

export interface Migration {
  /** Statements that add. Each does nothing where it was done before. */
  readonly adds: (schema: string) => readonly string[]
  /** Statements that take away what only older versions use. */
  readonly takes: (schema: string) => readonly string[]
}

/** Forward only: a released row never changes, a new one is added. The first is version 1. */
export const MIGRATIONS: readonly Migration[] = [{ adds: tables, takes: () => [] }]

export const NEWEST_TABLES = MIGRATIONS.length

interface SchemaState {
  /** 0: there are no tables. */
  readonly version: number
  /** The oldest version that may use the tables as they are. */
  readonly readableFrom: number
}

/** Names, types or catalogue rows that another process has made at the same moment. */
const MADE_MEANWHILE = new Set(['42P06', '42P07', '42710', '42701', '23505', 'XX000'])
const NO_TABLE = '42P01'
const ATTEMPTS = 10
const LEASE = 'migrate'
/** Milliseconds for which others wait for the one that migrates, if it dies. */
const LEASE_FOR = 30_000
const RENEW_EVERY = 10_000
/** The longest pause between two attempts, in milliseconds. */
const POLL = 250
/** Milliseconds for which no older node may have been seen before something is taken away. */
const OLD_NODES = 600_000

export async function readSchema(link: PostgresLink): Promise<SchemaState> {
  const statement = readStatement(
    'meta',
    `SELECT version, readable_from FROM ${link.plan.schema}.meta WHERE id = 1`,
  )
  try {
    const { rows } = await link.run(statement, [])
    return {
      version: Number(rows[0]?.['version'] ?? 0),
      readableFrom: Number(rows[0]?.['readable_from'] ?? 0),
    }
  } catch (thrown) {
    if (isMissing(thrown)) return { version: 0, readableFrom: 0 }
    throw thrown
  }
}

/** The link has made a fault of it, because a table that is missing while a service runs is an outage. */
const isMissing = (thrown: unknown): boolean =>
  thrown instanceof Fault && messageOf(thrown).includes(`SQLSTATE ${NO_TABLE}`)

/** Somebody else may have made the schema. If nobody has, the next statement says so. */
function passIfForbidden(thrown: unknown): void {
  if (!(thrown instanceof Fault && messageOf(thrown).includes('SQLSTATE 42501'))) throw thrown
}

/** Whether this Postern may use tables of that version. Throws StoreError if they are too new. */
export function isUsable({ version, readableFrom }: SchemaState, known = NEWEST_TABLES): boolean {
  if (readableFrom > known)
    throw new StoreError(
      `The store has tables of version ${version}, which need a Postern that knows version ${readableFrom} or later. ` +
        `This one knows ${known}: run the version that has migrated the store, or a later one.`,
    )
  return version >= known
}

interface Migrated {
  readonly before: SchemaState
  readonly after: SchemaState
  /** Statements of tuning that the database has refused, with its reasons. Nothing depends on them. */
  readonly passedOver: readonly string[]
}

/** Runs what is missing. Of several processes that do so at once, one does the work and the others wait. */
export async function migrate(link: PostgresLink, migrations = MIGRATIONS): Promise<Migrated> {
  await run(link, 'schema', makeSchema(link.plan.schema)).catch(passIfForbidden)
  for (const [at, sql] of foundations(link.plan.schema).entries()) await run(link, `foundation_${at}`, sql)
  return underLease(link, async () => {
    const before = await readSchema(link)
    const { schema } = link.plan
    for (const [at, { adds }] of migrations.entries()) {
      const version = at + 1
      if (version <= before.version) continue
      for (const [n, sql] of adds(schema).entries()) await run(link, `migration_${version}_${n}`, sql)
      await record(link, { version, readableFrom: Math.max(1, version - 1) })
    }
    return { before, after: await readSchema(link), passedOver: await tune(link) }
  })
}

/** Removes what only older versions use. Rejects with StoreError if one was seen within ten minutes. */
export async function finish(link: PostgresLink, migrations = MIGRATIONS): Promise<Migrated> {
  const before = await readSchema(link)
  const known = migrations.length
  if (before.version !== known)
    throw new StoreError(
      `The tables are of version ${before.version}, and this Postern knows ${known}: run \`postern migrate\` first.`,
    )
  const now = Number((await link.run(READ_CLOCK, [])).rows[0]?.['now'])
  const old = (await new PostgresNodes(link).list()).filter(
    ({ schema, seenAt }) => schema < known && now - seenAt < OLD_NODES,
  )
  if (old.length > 0)
    throw new StoreError(
      `${old.length} of the nodes that were seen in the last ten minutes know an older version of the tables: ` +
        `${old.map(({ host, version }) => `${host} (${version})`).join(', ')}. Replace them, and try again ten minutes later.`,
    )
  return underLease(link, async () => {
    for (const [at, { takes }] of migrations.entries())
      for (const [n, sql] of takes(link.plan.schema).entries()) await run(link, `finish_${at + 1}_${n}`, sql)
    await record(link, { version: known, readableFrom: known })
    return { before, after: await readSchema(link), passedOver: [] }
  })
}

/** Waits for others that migrate. One statement may take longer than the lease, so that is renewed meanwhile. */
async function underLease<T>(link: PostgresLink, work: () => Promise<T>): Promise<T> {
  const { hold, release } = leaseOf(link)
  while (!(await hold())) await pause(POLL)
  const renewing = setInterval(() => void hold().catch(() => undefined), RENEW_EVERY)
  try {
    return await work()
  } finally {
    clearInterval(renewing)
    await release()
  }
}

function leaseOf(link: PostgresLink) {
  const { hold, release } = leaseStatements(link.plan.schema)
  const holder = `migrate-${process.pid}-${Math.random().toString(36).slice(2)}`
  return {
    hold: async () => (await link.run(hold, [LEASE, holder, LEASE_FOR])).rows.length > 0,
    release: () => link.run(release, [LEASE, holder]),
  }
}

async function record(link: PostgresLink, { version, readableFrom }: SchemaState): Promise<void> {
  const statement = writing('record_schema', {
    parameters: 2,
    last: (inTime) => `
      INSERT INTO ${link.plan.schema}.meta (id, version, readable_from) SELECT 1, $1::int4, $2::int4 WHERE ${inTime}
      ON CONFLICT (id) DO UPDATE SET version = excluded.version, readable_from = excluded.readable_from
      RETURNING 1 AS done`,
  })
  await link.run(statement, [version, readableFrom])
}

async function run(link: PostgresLink, name: string, sql: string): Promise<void> {
  for (let left = ATTEMPTS; ; left -= 1)
    try {
      await link.run(readStatement(name, sql), [])
      return
    } catch (thrown) {
      if (left === 0 || !MADE_MEANWHILE.has(stateOf(thrown) ?? '')) throw thrown
      await pause(Math.random() * POLL)
    }
}

async function tune(link: PostgresLink): Promise<readonly string[]> {
  const passedOver: string[] = []
  for (const [at, sql] of tuning(link.plan.schema).entries())
    await run(link, `tuning_${at}`, sql).catch((thrown: unknown) => {
      passedOver.push(messageOf(thrown))
    })
  return passedOver
}
