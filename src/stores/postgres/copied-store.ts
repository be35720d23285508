/**
 * Takes over another store, into tables that are empty. While it does, a record says so, and nobody opens the store: else
 * a service would begin with a part of what was revoked. A copy that was broken off is begun anew.
 */
import { randomBytes } from 'node:crypto'
import type { ChangeRow } from '../sqlite-file.ts'
import type { SourceFacts, WholeRecord } from '../sqlite-source.ts'
import { StoreError } from '../store-error.ts'
import { escapedKeyColumns, shortKey } from './keys.ts'
import type { PostgresLink } from './link.ts'
import { leaseStatements, markOf } from './statements.ts'
import { reading, type Statement, writing } from './statement.ts'

/** The record that stands in the store until the copy is whole. */
const UNFINISHED = `kind = 'store_copy' AND key = 'unfinished'`

const LEASE = 'store_copy'
/** Milliseconds for which the store is kept from another copy, if this one dies. */
const LEASE_FOR = 30_000
/** Rows that are removed at once. */
const BATCH = 5000
const ID_BYTES = 12

type Value = string | number | null
/** A column: its name, its type, and its value in a new row. */
type Columns<R> = readonly (readonly [name: string, type: string, value: (row: R, id: string) => Value])[]

const index = (column: string | null): string | null => (column === null ? null : shortKey(column))

const RECORD: Columns<WholeRecord> = [
  ['kind', 'text', ({ kind }) => kind],
  ['key', 'text', ({ key }) => escapedKeyColumns(key)[0]],
  ['long_key', 'text', ({ key }) => escapedKeyColumns(key)[1]],
  ['value', 'text', ({ value }) => value],
  ['version', 'int8', ({ version }) => version],
  ['attempt', 'text', (_row, id) => id],
  ['expires_at', 'int8', (row) => row.expires_at],
  ['used_at', 'int8', (row) => row.used_at],
  ['family', 'text', ({ family }) => index(family)],
  ['subject', 'text', ({ subject }) => index(subject)],
  ['client', 'text', ({ client }) => index(client)],
  ['business', 'text', ({ business }) => index(business)],
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
        WHERE (${key}) IN (SELECT ${key} FROM ${schema}.${table} WHERE ${which} LIMIT ${BATCH}) AND ${inTime}
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
    count: reading(
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

/** Rejects with StoreError if a copy into the store was begun and has not ended. */
export async function requireWhole(link: PostgresLink): Promise<void> {
  const statement = reading('copy_unfinished', `SELECT 1 FROM ${link.plan.schema}.record WHERE ${UNFINISHED}`)
  if ((await link.run(statement, [])).rows.length === 0) return
  throw new StoreError(
    'A copy into the store was begun and has not ended. Wait for it, or run `postern store copy` again.',
  )
}

/** Every method rejects with StoreError if another copy, or a service, writes into the same tables. */
export class CopiedStore {
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

  /** Numbers of changes go on behind those of the source. Rejects if anything is missing, or too much. */
  async settle({ size, lastChange, ran }: SourceFacts): Promise<void> {
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
