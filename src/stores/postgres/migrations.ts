/**
 * The versions of the tables. Version v of Postern's tables works with what knows v or v−1: so nodes are replaced one by
 * one. A version only adds at first. What it takes away is taken by `postern migrate --finish`, when no older node is left.
 */
import { Fault } from '../../kernel/faults.ts'
import { messageOf } from '../../kernel/thrown.ts'
import { StoreError } from '../store-error.ts'
import { stateOf } from './errors.ts'
import type { PostgresLink } from './link.ts'
import { PostgresNodes } from './nodes.ts'
import { leaseStatements } from './statements.ts'
import { foundations, makeSchema, tables, tuning } from './schema.ts'
import { READ_CLOCK, reading, writing } from './statement.ts'

export interface Migration {
  /** Statements that add. Each does nothing where it was done before. */
  readonly adds: (schema: string) => readonly string[]
  /** Statements that take away what only older versions use. */
  readonly takes: (schema: string) => readonly string[]
}

/** Forward only: a released row never changes, a new one is added. The first is version 1. */
export const MIGRATIONS: readonly Migration[] = [{ adds: tables, takes: () => [] }]

/** The version that this Postern knows. */
export const NEWEST_TABLES = MIGRATIONS.length

export interface SchemaState {
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
/** Milliseconds. */
const POLL = 250
/** Milliseconds for which no older node may have been seen before something is taken away. */
const OLD_NODES = 600_000

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** The version of the tables. */
export async function readSchema(link: PostgresLink): Promise<SchemaState> {
  const statement = reading(
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

export interface Migrated {
  readonly before: SchemaState
  readonly after: SchemaState
  /** Statements of tuning that the database has refused, with its reasons. Nothing depends on them. */
  readonly passedOver: readonly string[]
}

export interface MigrateOptions {
  readonly migrations?: readonly Migration[]
}

/** Runs what is missing. Of several processes that do so at once, one does the work and the others wait. */
export async function migrate(
  link: PostgresLink,
  { migrations = MIGRATIONS }: MigrateOptions = {},
): Promise<Migrated> {
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

/**
 * Takes away what only older versions use. Rejects with StoreError if the tables are not of the newest version, or if an
 * older node was seen within ten minutes.
 */
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
      await link.run(reading(name, sql), [])
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
