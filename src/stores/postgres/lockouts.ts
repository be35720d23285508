import type { AttemptTurns, LockoutTurns, SharedDelays, TakenTurn } from '../../contracts/lockouts.ts'
import type { PostgresLink } from './link.ts'
import { JUMP } from '../../kernel/store-clock.ts'
import { reading, type Statement, STORE_NOW, writing } from './statement.ts'

/** Doublings of a delay: more than any configured longest delay needs. power() fails for thousands of failures. */
const DOUBLINGS = 40
/** Milliseconds. Whoever waits looks again after that time at the latest; who waits for another attempt, soon. */
const SHORTEST_WAIT = 25
const LONGEST_WAIT = 1000
const LONGEST_BUSY_WAIT = 100

/** Written while the store's clock was ahead: it would else count until that time comes. */
const isAhead = (time: string): string => `${time} > ${STORE_NOW} + ${JUMP}`
/** Of a row: failures that are old count no more, and how long the next attempt waits for them. */
const failures = (forget: string): string =>
  `CASE WHEN l.last_at < ${STORE_NOW} - ${forget}::int8 OR ${isAhead('l.last_at')} THEN 0 ELSE l.failures END`
const delay = (count: string, [free, first, longest]: readonly [string, string, string]): string =>
  `CASE WHEN ${count} < ${free}::int4 OR ${first}::float8 = 0 THEN 0
    ELSE least(${longest}::float8, ${first}::float8 * power(2, least(${DOUBLINGS}, ${count} - ${free}::int4))) END`

/** Parameters 4 to 7 of the statements: free, delay, longest, forget. */
const COUNT = failures('$7')
const DELAY = delay(`(${COUNT})`, ['$4', '$5', '$6'])
const IS_DUE = `(l.last_at + ${DELAY} <= ${STORE_NOW} OR ${isAhead('l.last_at')})`
const HAS_LAPSED = `(l.busy_until < ${STORE_NOW} OR ${isAhead('l.busy_until')})`
/** Has been counted by an earlier try, or has the turn. */
const IS_MINE = `l.busy_by IS NOT DISTINCT FROM $2`
/** In the place of an attempt, once it has ended: so a try whose answer was lost is known. */
const ENDED = `'!' || $2`

const takeStatement = (table: string): Statement =>
  writing('lockout_take', {
    parameters: 7,
    last: (inTime) => `
      INSERT INTO ${table} AS l (key, failures, last_at, busy_until, busy_by)
      SELECT $1, 0, 0, ${STORE_NOW} + $3::int8, $2 WHERE ${inTime}
      ON CONFLICT (key) DO UPDATE SET busy_until = ${STORE_NOW} + $3::int8, busy_by = $2
      WHERE (${HAS_LAPSED} OR ${IS_MINE}) AND ${IS_DUE}
      RETURNING 1 AS done, true AS alone`,
  })

/** The attempt counts as a failure at once: so a thousand that are made at once are no more than those that may be. */
const countStatement = (table: string): Statement =>
  writing('lockout_count', {
    parameters: 7,
    last: (inTime) => `
      INSERT INTO ${table} AS l (key, failures, last_at, busy_until, busy_by)
      SELECT $1, 1, ${STORE_NOW}, CASE WHEN $4::int4 > 0 THEN 0 ELSE ${STORE_NOW} + $3::int8 END, $2 WHERE ${inTime}
      ON CONFLICT (key) DO UPDATE SET
        failures = (${COUNT}) + CASE WHEN ${IS_MINE} THEN 0 ELSE 1 END,
        last_at = CASE WHEN ${IS_MINE} THEN l.last_at ELSE ${STORE_NOW} END,
        busy_until = CASE WHEN ${IS_MINE} OR (${COUNT}) < $4::int4 THEN l.busy_until ELSE ${STORE_NOW} + $3::int8 END,
        busy_by = CASE WHEN (${COUNT}) < $4::int4 AND NOT (${HAS_LAPSED}) THEN l.busy_by ELSE $2 END
      WHERE ${IS_MINE} OR (${COUNT}) < $4::int4 OR (${HAS_LAPSED} AND ${IS_DUE})
      RETURNING 1 AS done, ${IS_MINE} AND NOT (${HAS_LAPSED}) AS alone`,
  })

/** Parameters: key, by, one that it does not use, delays. */
const lookStatement = (table: string): Statement =>
  reading(
    'lockout_look',
    `SELECT greatest(l.busy_until, l.last_at + ${DELAY}) - ${STORE_NOW} AS wait, NOT (${HAS_LAPSED} OR ${IS_MINE}) AS busy,
       $3::int8 IS NULL AS unused
     FROM ${table} AS l WHERE l.key = $1`,
  )

/** Parameters: keys, by, milliseconds. */
const renewStatement = (table: string): Statement =>
  writing('lockout_renew', {
    parameters: 3,
    last: (inTime) => `
      UPDATE ${table} AS l SET busy_until = ${STORE_NOW} + $3::int8
      WHERE l.key IN (SELECT key FROM ${table} WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE)
        AND ${IS_MINE} AND ${inTime}
      RETURNING 1 AS done`,
  })

/** Both rows at once, so that an attempt counts for both or for none. Parameters: key, by, account, whether alone, right, and what is forgotten. */
const endStatement = (table: string): Statement =>
  writing('lockout_end', {
    parameters: 7,
    before: () => [
      `held AS (
        SELECT l.key, ${IS_MINE} AS is_mine, l.busy_by IS NOT DISTINCT FROM ${ENDED} AS has_ended
        FROM ${table} AS l WHERE l.key = ANY (ARRAY[$1, $3::text]) ORDER BY l.key FOR UPDATE)`,
      `attempt AS (
        SELECT bool_or(key = $1 AND (is_mine OR has_ended))
          AND (NOT $4::bool OR bool_or(key = $3::text AND (is_mine OR has_ended))) AS holds FROM held)`,
    ],
    last: (inTime) => `
      UPDATE ${table} AS l SET
        failures = CASE
          WHEN held.has_ended THEN l.failures
          WHEN attempt.holds AND $5::bool THEN 0
          WHEN l.key = $1 THEN (${failures('$6')}) + CASE WHEN attempt.holds AND NOT $5::bool THEN 1 ELSE 0 END
          ELSE greatest(0, (${failures('$7')}) - CASE WHEN attempt.holds AND NOT $5::bool THEN 0 ELSE 1 END) END,
        last_at = CASE
          WHEN l.key = $1 AND NOT held.has_ended AND attempt.holds AND NOT $5::bool THEN ${STORE_NOW} ELSE l.last_at END,
        busy_until = CASE WHEN held.is_mine THEN 0 ELSE l.busy_until END,
        busy_by = CASE WHEN held.is_mine THEN ${ENDED} ELSE l.busy_by END
      FROM held, attempt WHERE l.key = held.key AND ${inTime}
      RETURNING 1 AS done, attempt.holds`,
  })

/** Parameters: patterns of keys. */
const clearStatement = (table: string): Statement =>
  writing('lockout_clear', {
    parameters: 1,
    last: (inTime) => `
      DELETE FROM ${table} WHERE key IN (SELECT key FROM ${table} WHERE key LIKE ANY ($1::text[]) ORDER BY key)
        AND ${inTime} RETURNING 1 AS done`,
  })

/** The table `lockout`: one conditional write takes the turn of a key, on one node alone. */
export class PostgresLockouts implements LockoutTurns {
  readonly #link: PostgresLink
  readonly #take: Statement
  readonly #count: Statement
  readonly #look: Statement
  readonly #renew: Statement
  readonly #end: Statement
  readonly #clear: Statement

  constructor(link: PostgresLink) {
    const table = `${link.plan.schema}.lockout`
    this.#link = link
    this.#take = takeStatement(table)
    this.#count = countStatement(table)
    this.#look = lookStatement(table)
    this.#renew = renewStatement(table)
    this.#end = endStatement(table)
    this.#clear = clearStatement(table)
  }

  take(key: string, by: string, ms: number, delays: SharedDelays): Promise<TakenTurn> {
    return this.#turn(this.#take, key, by, ms, delays)
  }

  count(key: string, by: string, ms: number, delays: SharedDelays): Promise<TakenTurn> {
    return this.#turn(this.#count, key, by, ms, delays)
  }

  async renew({ by, key, account }: AttemptTurns, ms: number): Promise<void> {
    const keys = account?.alone === true ? [key, account.key] : [key]
    await this.#link.run(this.#renew, [keys, by, ms])
  }

  async end(
    { by, key, account }: AttemptTurns,
    right: boolean | undefined,
    forget: { readonly key: number; readonly account: number },
  ): Promise<boolean> {
    const whose = [key, by, account?.key ?? null, account?.alone ?? false]
    const { rows } = await this.#link.run(this.#end, [...whose, right ?? null, forget.key, forget.account])
    return rows[0]?.['holds'] === true
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
    if (rows[0]) return { taken: true, alone: rows[0]['alone'] === true, isBusy: false, wait: 0 }
    const [found] = (await this.#link.run(this.#look, [key, by, null, ...rules])).rows
    const isBusy = found?.['busy'] === true
    const most = isBusy ? LONGEST_BUSY_WAIT : LONGEST_WAIT
    const wait = Math.min(most, Math.max(SHORTEST_WAIT, Number(found?.['wait'] ?? 0)))
    return { taken: false, alone: false, isBusy, wait }
  }
}
