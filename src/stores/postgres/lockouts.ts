import type { LockoutTurns, SharedDelays, TakenTurn } from '../../contracts/lockouts.ts'
import type { PostgresLink } from './link.ts'
import { reading, type Statement, STORE_NOW, writing } from './statement.ts'

/** Doublings of a delay: more than any configured longest delay needs. power() fails for thousands of failures. */
const DOUBLINGS = 40
/** Milliseconds. Whoever waits looks again after that time at the latest. */
const SHORTEST_WAIT = 25
const LONGEST_WAIT = 1000

/** Of a row: failures that are old count no more, and how long the next attempt waits for them. */
const failures = (forget: string): string =>
  `CASE WHEN l.last_at < ${STORE_NOW} - ${forget}::int8 THEN 0 ELSE l.failures END`
const delay = (count: string, [free, first, longest]: readonly [string, string, string]): string =>
  `CASE WHEN ${count} < ${free}::int4 OR ${first}::float8 = 0 THEN 0
    ELSE least(${longest}::float8, ${first}::float8 * power(2, least(${DOUBLINGS}, ${count} - ${free}::int4))) END`

/** Parameters 4 to 7 of the statements: free, delay, longest, forget. */
const COUNT = failures('$7')
const DELAY = delay(`(${COUNT})`, ['$4', '$5', '$6'])
const IS_DUE = `l.last_at + ${DELAY} <= ${STORE_NOW}`

/** The table `lockout`: one conditional write takes the turn of a key, on one node alone. */
export class PostgresLockouts implements LockoutTurns {
  readonly #link: PostgresLink
  readonly #take: Statement
  readonly #count: Statement
  readonly #look: Statement
  readonly #end: Statement
  readonly #settle: Statement
  readonly #clear: Statement

  constructor(link: PostgresLink) {
    const table = `${link.plan.schema}.lockout`
    this.#link = link
    // Parameters: key, by, milliseconds, delays.
    this.#take = writing('lockout_take', {
      parameters: 7,
      last: (inTime) => `
        INSERT INTO ${table} AS l (key, failures, last_at, busy_until, busy_by)
        SELECT $1, 0, 0, ${STORE_NOW} + $3::int8, $2 WHERE ${inTime}
        ON CONFLICT (key) DO UPDATE SET busy_until = ${STORE_NOW} + $3::int8, busy_by = $2
        WHERE (l.busy_until < ${STORE_NOW} OR l.busy_by = $2) AND ${IS_DUE}
        RETURNING 1 AS done, ${COUNT} AS failures`,
    })
    // The attempt counts as a failure at once: so a thousand that are made at once are no more than those that may be.
    this.#count = writing('lockout_count', {
      parameters: 7,
      last: (inTime) => `
        INSERT INTO ${table} AS l (key, failures, last_at, busy_until, busy_by)
        SELECT $1, 1, ${STORE_NOW}, 0, NULL WHERE ${inTime}
        ON CONFLICT (key) DO UPDATE SET
          failures = (${COUNT}) + 1, last_at = ${STORE_NOW},
          busy_until = CASE WHEN (${COUNT}) < $4::int4 THEN l.busy_until ELSE ${STORE_NOW} + $3::int8 END,
          busy_by = CASE WHEN (${COUNT}) < $4::int4 THEN l.busy_by ELSE $2 END
        WHERE (${COUNT}) < $4::int4 OR ((l.busy_until < ${STORE_NOW} OR l.busy_by = $2) AND ${IS_DUE})
        RETURNING 1 AS done, l.failures`,
    })
    // Parameters: key, and three that it does not use, delays.
    this.#look = reading(
      'lockout_look',
      `SELECT ${COUNT} AS failures,
         greatest(l.busy_until, l.last_at + ${DELAY}) - ${STORE_NOW} AS wait,
         $2::text IS NULL AND $3::int8 IS NULL AS unused
       FROM ${table} AS l WHERE l.key = $1`,
    )
    // Parameters: key, by, failures to add, whether they are forgotten, milliseconds after which old ones are.
    const set = (where: string) => (inTime: string) => `
      UPDATE ${table} AS l SET
        failures = CASE WHEN $4::bool THEN 0 ELSE greatest(0, (${failures('$5')}) + $3::int4) END,
        last_at = CASE WHEN $3::int4 > 0 THEN ${STORE_NOW} ELSE l.last_at END,
        busy_until = CASE WHEN l.busy_by = $2 THEN 0 ELSE l.busy_until END,
        busy_by = CASE WHEN l.busy_by = $2 THEN NULL ELSE l.busy_by END
      WHERE l.key = $1 AND ${where} AND ${inTime} RETURNING 1 AS done, l.failures`
    // Only who has the turn ends it: so a repeated request counts nothing twice.
    this.#end = writing('lockout_end', { parameters: 5, last: set('l.busy_by = $2') })
    this.#settle = writing('lockout_settle', { parameters: 5, last: set('true') })
    // Parameters: patterns of keys.
    this.#clear = writing('lockout_clear', {
      parameters: 1,
      last: (inTime) => `
        DELETE FROM ${table} WHERE key IN (SELECT key FROM ${table} WHERE key LIKE ANY ($1::text[]) ORDER BY key)
          AND ${inTime} RETURNING 1 AS done`,
    })
  }

  take(key: string, by: string, ms: number, delays: SharedDelays): Promise<TakenTurn> {
    return this.#turn(this.#take, key, by, ms, delays)
  }

  count(key: string, by: string, ms: number, delays: SharedDelays): Promise<TakenTurn> {
    return this.#turn(this.#count, key, by, ms, delays)
  }

  async end(key: string, by: string, right: boolean | undefined, forget: number): Promise<void> {
    await this.#link.run(this.#end, [key, by, right === false ? 1 : 0, right === true, forget])
  }

  async settle(key: string, by: string, right: boolean | undefined, forget: number): Promise<void> {
    await this.#link.run(this.#settle, [key, by, right === undefined ? -1 : 0, right === true, forget])
  }

  async clear(patterns: readonly string[]): Promise<number> {
    return (await this.#link.run(this.#clear, [patterns])).rows.length
  }

  async #turn(
    statement: Statement,
    key: string,
    by: string,
    ms: number,
    { free, delay: first, longest, forget }: SharedDelays,
  ): Promise<TakenTurn> {
    const rules = [free, first, longest, forget]
    const { rows } = await this.#link.run(statement, [key, by, ms, ...rules])
    if (rows[0]) return { taken: true, wait: 0, failures: Number(rows[0]['failures']) }
    const [found] = (await this.#link.run(this.#look, [key, null, null, ...rules])).rows
    const wait = Math.min(LONGEST_WAIT, Math.max(SHORTEST_WAIT, Number(found?.['wait'] ?? 0)))
    return { taken: false, wait, failures: Number(found?.['failures'] ?? 0) }
  }
}
