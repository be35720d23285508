/** Removes what has ended, in rounds that take equally long however large the tables are, and however much of them is dead. */
import { DAY_MS } from '../../base/kernel/units.ts'
import { OF_ADDRESS } from './leased-buckets.ts'
import type { PostgresLink } from './link.ts'
import { type Statement, STORE_NOW, writing } from './statements.ts'

/** How long failures count, and the calls of an address, in milliseconds. */
const COUNTED_FOR = 2 * DAY_MS
/** How long a client's budget is kept, in milliseconds. It may take months to be full again: `requests: 1000, per: 90d`. */
const KEPT_FOR = 400 * DAY_MS

/** The limit, whatever the parameter says: for an unknown number of rows the planner would read the whole table. */
const MOST = 1000
/** Rows of a table without an index by time that one round looks at: some milliseconds. */
const LOOKED_AT = 500

/** By the index on expiry. Held rows are passed over: who removes by key locks in another order. */
function ended(schema: string) {
  const first = (table: string, columns: string, condition: string): string => `
    SELECT ${columns} FROM (
      SELECT ${columns} FROM ${schema}.${table} WHERE ${condition}
      ORDER BY expires_at LIMIT ${MOST} FOR UPDATE SKIP LOCKED) AS ended LIMIT $1::int8`
  const remove = (table: string, columns: string, condition: string) => (inTime: string) => `
    DELETE FROM ${schema}.${table} WHERE (${columns}) IN (${first(table, columns, condition)}) AND ${inTime}
    RETURNING 1 AS done`
  return {
    /** Parameters: limit, now. */
    records: writing('purge_records', {
      parameters: 2,
      last: remove('record', 'kind, key', 'expires_at <= $2::int8'),
    }),
    /** Never the newest one: a reader finds its place by it. Parameters: limit, now, ran. */
    changes: writing('purge_changes', {
      parameters: 3,
      last: remove(
        'change',
        'sequence',
        `expires_at <= $2::int8 AND runs_until <= $3::int8
           AND sequence < (SELECT last FROM ${schema}.feed WHERE id = 1)`,
      ),
    }),
  }
}

/** Looks at the rows behind a key, in the order of keys. Parameters: the key, rows. */
const forgotten = (schema: string, table: string, isForgotten: string): Statement =>
  writing(`purge_${table}`, {
    parameters: 2,
    before: (inTime) => [
      `looked AS (SELECT key FROM ${schema}.${table} WHERE key > $1 ORDER BY key LIMIT $2::int8)`,
      `part AS (SELECT max(key) AS last, count(*) AS size FROM looked)`,
      `gone AS (
        DELETE FROM ${schema}.${table} WHERE key = ANY (ARRAY(
          SELECT key FROM ${schema}.${table} WHERE key > $1 AND key <= (SELECT last FROM part) AND ${isForgotten}
          ORDER BY key FOR UPDATE SKIP LOCKED)) AND ${inTime}
        RETURNING 1)`,
    ],
    last: () => `SELECT 1 AS done, last, size, (SELECT count(*) FROM gone) AS removed FROM part`,
  })

/** Purges tables whose rows have no expiry. Each round continues behind the part that the last one looked at. */
class Counts {
  readonly #link: PostgresLink
  readonly #statement: Statement
  #at = ''

  constructor(link: PostgresLink, statement: Statement) {
    this.#link = link
    this.#statement = statement
  }

  async purge(): Promise<number> {
    const [part] = (await this.#link.run(this.#statement, [this.#at, LOOKED_AT])).rows
    this.#at = Number(part?.['size']) < LOOKED_AT ? '' : (part?.['last'] as string)
    return Number(part?.['removed'])
  }
}

export class Purging {
  readonly #link: PostgresLink
  readonly #ended: ReturnType<typeof ended>
  readonly #counts: readonly Counts[]

  constructor(link: PostgresLink) {
    const { schema } = link.plan
    const isOld = `at < ${STORE_NOW} - CASE WHEN key LIKE '${OF_ADDRESS}%' THEN ${COUNTED_FOR} ELSE ${KEPT_FOR} END`
    // An attempt that is under way has a row, even if none has failed.
    const hasNoFailures = `last_at < ${STORE_NOW} - ${COUNTED_FOR} AND busy_until < ${STORE_NOW}`
    this.#link = link
    this.#ended = ended(schema)
    this.#counts = [
      new Counts(link, forgotten(schema, 'bucket', isOld)),
      new Counts(link, forgotten(schema, 'lockout', hasNoFailures)),
    ]
  }

  /**
   * As `Store.purge`. Old counts that were removed count too, so the next round follows soon.
   * @param ran how long the service has run on this store, in milliseconds
   */
  async purge(limit: number, now: number, ran: number): Promise<number> {
    const { records, changes } = this.#ended
    let removed = (await this.#link.run(records, [limit, now])).rows.length
    if (removed < limit) removed += (await this.#link.run(changes, [limit - removed, now, ran])).rows.length
    for (const counts of this.#counts) if (removed < limit) removed += await counts.purge()
    return removed
  }
}
