/** Copies a SQLite store into a Postgres one: everything that is live, with its numbers, versions and times. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { type Store, STORE_INDEXES, type StoreIndex } from '../../base/contracts/records/store.ts'
import { systemClock } from '../../base/kernel/clock.ts'
import { openReadOnly } from '../../state/stores/sqlite/sqlite-file.ts'
import { readNumber, requireNewestSchema } from '../../state/stores/sqlite/sqlite-schema.ts'
import type { ChangeRow, RecordRow } from '../../state/stores/link/rows.ts'
import { cannotRead, quickCheck, StoreError } from '../../state/stores/link/store-error.ts'
import type { PostgresConfig } from './schema.ts'
import type { PostgresLink } from './link.ts'
import { migrate } from './migrations.ts'
import { requireTables, UNFINISHED, withLongStatements } from './open.ts'
import {
  escapedKeyColumns,
  leaseStatements,
  markOf,
  readStatement,
  shortKey,
  type Statement,
  writing,
} from './statements.ts'
import { PostgresStore } from './store.ts'

/** A row of `record` as it is. Keys and index values are escaped; times are milliseconds since the epoch. */
type WholeRecord = RecordRow & Readonly<Record<StoreIndex, string | null>> & { readonly kind: string }

const LIVE_RECORDS = 'FROM record WHERE expires_at IS NULL OR expires_at > :now'
const LIVE_CHANGES = 'FROM change WHERE expires_at IS NULL OR expires_at > :now OR runs_until > :ran'

/** The live records of a store file. One transaction for as long as it is open. Blocks the thread: for the command line. */
class SqliteSource {
  readonly size: CopiedSize
  /** The number of the newest change there ever was; 0 if there was none. */
  readonly lastChange: number
  /** How long the service has run on this store, in milliseconds. */
  readonly ran: number
  readonly #db: DatabaseSync
  readonly #now: number

  /**
   * @param now milliseconds since the epoch: what has expired by then is left out
   * @throws StoreError if there is no such file, or if it is no sound store of the newest schema
   */
  constructor(path: string, now: number) {
    if (!existsSync(path)) throw new StoreError(`There is no store at ${path}.`)
    this.#now = now
    try {
      this.#db = openReadOnly(path)
    } catch (thrown) {
      throw cannotRead(path, thrown)
    }
    try {
      this.#db.exec('BEGIN')
      requireNewestSchema(this.#db, path)
      const damage = quickCheck(this.#db)
      if (damage !== undefined) throw new StoreError(`The store ${path} is damaged: ${damage}.`)
      this.ran = readNumber(this.#db, 'SELECT ms FROM running')
      const newest = `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'change'`
      this.lastChange = readNumber(this.#db, newest)
      this.size = {
        records: this.#count(LIVE_RECORDS, { now }),
        changes: this.#count(LIVE_CHANGES, this.#times),
      }
    } catch (thrown) {
      this.#db.close()
      throw cannotRead(path, thrown)
    }
  }

  records(): Iterable<WholeRecord> {
    const columns = 'kind, key, value, version, expires_at, used_at, family, subject, client, business'
    return this.#rows(`SELECT ${columns} ${LIVE_RECORDS}`, { now: this.#now })
  }

  changes(): Iterable<ChangeRow> {
    const columns = 'sequence, topic, value, expires_at, runs_until'
    return this.#rows(`SELECT ${columns} ${LIVE_CHANGES} ORDER BY sequence`, this.#times)
  }

  close(): void {
    this.#db.close()
  }

  get #times(): { now: number; ran: number } {
    return { now: this.#now, ran: this.ran }
  }

  #count(from: string, parameters: Record<string, number>): number {
    return Number(this.#db.prepare(`SELECT count(*) AS n ${from}`).get(parameters)?.['n'])
  }

  #rows<T>(sql: string, parameters: Record<string, number>): Iterable<T> {
    return this.#db.prepare(sql).iterate(parameters) as Iterable<T>
  }
}

const LEASE = 'store_copy'
/** Milliseconds for which the store is kept from another copy, if this one dies. */
const LEASE_FOR = 30_000
const CLEARED_AT_ONCE = 5000
const ID_BYTES = 12

type Value = string | number | null
/** A column: its name, its type, and its value in a new row. */
type Columns<R> = readonly (readonly [name: string, type: string, value: (row: R, id: string) => Value])[]

const shortened = (column: string | null): string | null => (column === null ? null : shortKey(column))

const RECORD: Columns<WholeRecord> = [
  ['kind', 'text', ({ kind }) => kind],
  ['key', 'text', ({ key }) => escapedKeyColumns(key)[0]],
  ['long_key', 'text', ({ key }) => escapedKeyColumns(key)[1]],
  ['value', 'text', ({ value }) => value],
  ['version', 'int8', ({ version }) => version],
  ['attempt', 'text', (_row, id) => id],
  ['expires_at', 'int8', (row) => row.expires_at],
  ['used_at', 'int8', (row) => row.used_at],
  ...STORE_INDEXES.map((index) => [index, 'text', (row: WholeRecord) => shortened(row[index])] as const),
]

const CHANGE: Columns<ChangeRow> = [
  ['sequence', 'int8', ({ sequence }) => sequence],
  ['mark', 'text', ({ sequence }, id) => markOf(id, sequence)],
  ['topic', 'text', ({ topic }) => topic],
  ['value', 'text', ({ value }) => value],
  ['expires_at', 'int8', (row) => row.expires_at],
  ['runs_until', 'int8', (row) => row.runs_until],
]

/** A row that is there already was written by an earlier try, whose answer was lost. */
const insertion = <R>(table: string, name: string, columns: Columns<R>): Statement =>
  writing(name, {
    parameters: columns.length,
    last: (inTime) => `
      INSERT INTO ${table} (${columns.map(([column]) => column).join(', ')})
      SELECT made.* FROM unnest(${columns.map(([, type], at) => `$${at + 1}::${type}[]`).join(', ')}) AS made
      WHERE ${inTime} ON CONFLICT DO NOTHING RETURNING 1 AS done`,
  })

const listsOf = <R>(columns: Columns<R>, rows: readonly R[], id: string): readonly (readonly Value[])[] =>
  columns.map(([, , value]) => rows.map((row) => value(row, id)))

function statementsOf(schema: string) {
  const [record, change] = [`${schema}.record`, `${schema}.change`]
  const clearing = (table: string, key: string, which: string): Statement =>
    writing(`copy_clear_${table}`, {
      parameters: 0,
      last: (inTime) => `
        DELETE FROM ${schema}.${table}
        WHERE (${key}) IN (SELECT ${key} FROM ${schema}.${table} WHERE ${which} LIMIT ${CLEARED_AT_ONCE}) AND ${inTime}
        RETURNING 1 AS done`,
    })
  return {
    /** Nothing is written into tables that are in use. Parameter: id of the copy. */
    begin: writing('copy_begin', {
      parameters: 1,
      last: (inTime) => `
        INSERT INTO ${record} (kind, key, value, attempt) SELECT 'store_copy', 'unfinished', '{}', $1
        WHERE ${inTime} AND (EXISTS (SELECT 1 FROM ${record} WHERE ${UNFINISHED})
          OR NOT EXISTS (SELECT 1 FROM ${record}) AND NOT EXISTS (SELECT 1 FROM ${change}))
        ON CONFLICT (kind, key) DO UPDATE SET attempt = excluded.attempt
        RETURNING 1 AS done`,
    }),
    clear: [
      clearing('record', 'kind, key', `NOT (${UNFINISHED})`),
      clearing('change', 'sequence', 'sequence IS NOT NULL'),
    ],
    addRecords: insertion(record, 'copy_records', RECORD),
    addChanges: insertion(change, 'copy_changes', CHANGE),
    /** A number is never given twice. Parameters: the last number, its mark, ran. */
    feed: writing('copy_feed', {
      parameters: 3,
      last: (inTime) => `
        UPDATE ${schema}.feed SET last = greatest(last, $1::int8), mark = $2, ran = $3::int8
        WHERE id = 1 AND ${inTime} RETURNING 1 AS done`,
    }),
    /** Parameter: id of the copy. */
    count: readStatement(
      'copy_count',
      `SELECT count(*) AS records, count(*) FILTER (WHERE attempt = $1) AS ours,
         (SELECT count(*) FROM ${change}) AS changes FROM ${record}`,
    ),
    end: writing('copy_end', {
      parameters: 0,
      last: (inTime) => `DELETE FROM ${record} WHERE ${UNFINISHED} AND ${inTime} RETURNING 1 AS done`,
    }),
  }
}

/**
 * Takes over another store, into tables that are empty. While it does, a record says so, and nobody opens the store: otherwise a
 * service would begin with a part of what was revoked. A copy that was broken off is begun anew. Every method rejects with
 * StoreError if another copy, or a service, writes into the same tables.
 */
class CopiedStore {
  readonly #link: PostgresLink
  readonly #statements: ReturnType<typeof statementsOf>
  readonly #lease: ReturnType<typeof leaseStatements>
  readonly #id = randomBytes(ID_BYTES).toString('base64url')

  constructor(link: PostgresLink) {
    this.#link = link
    this.#statements = statementsOf(link.plan.schema)
    this.#lease = leaseStatements(link.plan.schema)
  }

  /** To be called first. Rejects with StoreError if the store holds anything but a copy that was broken off. */
  async begin(): Promise<void> {
    await this.#holdLease()
    const { begin, clear } = this.#statements
    if ((await this.#link.run(begin, [this.#id])).rows.length === 0)
      throw new StoreError(
        'The store holds something already, and is left as it is: name another database, or another `store.schema`.',
      )
    for (const statement of clear)
      while ((await this.#link.run(statement, [])).rows.length > 0) await this.#holdLease()
  }

  async addRecords(rows: readonly WholeRecord[]): Promise<void> {
    await this.#holdLease()
    await this.#link.run(this.#statements.addRecords, listsOf(RECORD, rows, this.#id))
  }

  async addChanges(rows: readonly ChangeRow[]): Promise<void> {
    await this.#holdLease()
    await this.#link.run(this.#statements.addChanges, listsOf(CHANGE, rows, this.#id))
  }

  /** The numbers of changes continue behind those of the source. Rejects if anything is missing, or too much. */
  async settle({ size, lastChange, ran }: SqliteSource): Promise<void> {
    await this.#link.run(this.#statements.feed, [lastChange, markOf(this.#id, lastChange), ran])
    const [counted] = (await this.#link.run(this.#statements.count, [this.#id])).rows
    // The record that says that the copy has not ended is one of them.
    const expected = { records: size.records + 1, ours: size.records + 1, changes: size.changes }
    if (Object.entries(expected).some(([name, count]) => counted?.[name] !== count))
      throw new StoreError('Something else wrote into the store during the copy: stop it, and copy again.')
  }

  /** From then on the store can be opened. */
  async end(): Promise<void> {
    await this.#link.run(this.#statements.end, [])
    await this.release()
  }

  /** So that another copy may begin at once. */
  async release(): Promise<void> {
    await this.#link.run(this.#lease.release, [LEASE, this.#id])
  }

  async #holdLease(): Promise<void> {
    if ((await this.#link.run(this.#lease.hold, [LEASE, this.#id, LEASE_FOR])).rows.length > 0) return
    throw new StoreError(
      'Another copy into the store goes on, or was broken off within the last half minute. Wait, and try again.',
    )
  }
}

/** Rows, and characters of their values, that one statement writes at most. */
const BATCH = { rows: 500, characters: 1_000_000 }
/** How long one statement may take, in milliseconds. */
const ANSWER_WITHIN = 60_000

interface CopyRequest {
  readonly from: string
  readonly to: PostgresConfig
  readonly progress: (progress: { readonly done: number; readonly total: number }) => void
  /** Adds what is not in a SQLite store, before the copy counts as whole. */
  readonly add: (store: Store) => Promise<void>
}

interface CopiedSize {
  readonly records: number
  readonly changes: number
}

/**
 * No service may use either store. The tables are made first, unless that is another's task. Rejects with StoreError if
 * one of the stores cannot be used, or if the new one holds something already.
 */
export async function copyStore({ from, to, progress, add }: CopyRequest): Promise<CopiedSize> {
  const source = new SqliteSource(from, systemClock.now())
  try {
    if (to.migrate === 'auto') await withLongStatements(to, (link) => migrate(link))
    return await withLongStatements(
      to,
      async (link) => {
        await requireTables(link, to)
        const copy = new CopiedStore(link)
        try {
          await copy.begin()
          await copyRows(source, copy, progress)
          await add(await PostgresStore.open(link, systemClock))
          await copy.end()
        } catch (thrown) {
          await copy.release().catch(() => undefined)
          throw thrown
        }
        return source.size
      },
      ANSWER_WITHIN,
    )
  } finally {
    source.close()
  }
}

/** The changes come first: among them is what was revoked. */
async function copyRows(
  source: SqliteSource,
  copy: CopiedStore,
  progress: CopyRequest['progress'],
): Promise<void> {
  const total = source.size.records + source.size.changes
  let done = 0
  const copied = (rows: number): void => progress({ done: (done += rows), total })
  for (const rows of inBatches(source.changes())) {
    await copy.addChanges(rows)
    copied(rows.length)
  }
  for (const rows of inBatches(source.records())) {
    await copy.addRecords(rows)
    copied(rows.length)
  }
  await copy.settle(source)
}

function* inBatches<R extends { readonly value: string }>(rows: Iterable<R>): Generator<readonly R[]> {
  let batch: R[] = []
  let characters = 0
  for (const row of rows) {
    batch.push(row)
    characters += row.value.length
    if (batch.length < BATCH.rows && characters < BATCH.characters) continue
    yield batch
    batch = []
    characters = 0
  }
  if (batch.length > 0) yield batch
}
