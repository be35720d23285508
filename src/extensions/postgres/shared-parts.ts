import type { LiveNodes, NodeFacts, StoreAtStart } from '../../base/contracts/records/store.ts'
import { escapedKey } from '../../base/kernel/key-order.ts'
import { aheadOfRequests } from '../../base/kernel/store-budget.ts'
import { JUMP, type TrustedOffset } from '../../base/kernel/store-clock.ts'
import type { BudgetGrant, Budgets, BudgetUse } from './leased-buckets.ts'
import type { PostgresLink, Row } from './link.ts'
import type { SeenNode, StoredNode } from './node-beat.ts'
import type { AttemptTurns, LockoutTurns, SharedDelays, TakenTurn } from './shared-turns.ts'
import { readStatement, shortKey, type Statement, STORE_NOW, writing } from './statements.ts'

/** How many processes have their last number kept with a budget: a request is repeated within seconds, if at all. */
const REMEMBERED = 40

/** The table `bucket`. Rows are locked in the order of their keys, so that two exchanges never wait for each other. */
export class PostgresBudgets implements Budgets {
  readonly #link: PostgresLink
  readonly #open: Statement
  readonly #exchange: Statement

  constructor(link: PostgresLink) {
    const table = `${link.plan.schema}.bucket`
    this.#link = link
    // Full at first. Parameters: keys, bursts.
    this.#open = writing('budget_open', {
      parameters: 2,
      last: (inTime) => `
        INSERT INTO ${table} (key, tokens, at, synced)
        SELECT made.key, made.burst, ${STORE_NOW}, '' FROM unnest($1::text[], $2::float8[]) AS made (key, burst)
        WHERE ${inTime} ORDER BY made.key ON CONFLICT (key) DO NOTHING RETURNING 1 AS done`,
    })
    // Parameters: who, number, and in lists: keys, rates, bursts, spent, wanted.
    this.#exchange = writing('budget_exchange', {
      parameters: 7,
      before: () => [
        `asked AS (
          SELECT * FROM unnest($3::text[], $4::float8[], $5::float8[], $6::float8[], $7::float8[])
            AS a (key, per_ms, burst, spent, want))`,
        `held AS (SELECT key, tokens, at, synced FROM ${table} WHERE key = ANY ($3::text[]) ORDER BY key FOR UPDATE)`,
        `filled AS (
          SELECT held.key, asked.want, held.synced, ${STORE_NOW} AS now,
            position(' ' || $1 || ':' || $2::text || ' ' IN ' ' || held.synced || ' ') > 0 AS is_known,
            least(asked.burst, held.tokens + greatest(0, ${STORE_NOW} - held.at) * asked.per_ms) AS tokens, asked.spent
          FROM held JOIN asked ON asked.key = held.key)`,
        `reckoned AS (
          SELECT key, now, synced, is_known,
            CASE WHEN is_known THEN tokens ELSE tokens - spent END AS before,
            CASE WHEN is_known THEN 0 ELSE greatest(0, floor(least(want, tokens - spent))) END AS granted
          FROM filled)`,
      ],
      last: (inTime) => `
        UPDATE ${table} AS b SET
          tokens = r.before - r.granted, at = r.now,
          synced = CASE WHEN r.is_known THEN r.synced ELSE array_to_string((ARRAY(
            SELECT $1 || ':' || $2::text UNION ALL
            SELECT e FROM unnest(string_to_array(r.synced, ' ')) AS e WHERE split_part(e, ':', 1) <> $1
          ))[1:${REMEMBERED}], ' ') END
        FROM reckoned AS r WHERE b.key = r.key AND ${inTime}
        RETURNING 1 AS done, b.key, r.granted, r.before - r.granted AS level`,
    })
  }

  async exchange(
    who: string,
    number: number,
    reports: readonly BudgetUse[],
  ): Promise<readonly BudgetGrant[]> {
    const byColumn = new Map(reports.map((report) => [shortKey(escapedKey(report.key)), report]))
    const first = await this.#ask(who, number, byColumn)
    const missing = new Map([...byColumn].filter(([column]) => !first.has(column)))
    if (missing.size === 0) return [...first.values()]
    // The calls granted above are already taken from the budgets, so they are reported in any case.
    const made = await this.#make(who, number, missing).catch(() => new Map<string, BudgetGrant>())
    return [...first.values(), ...made.values()]
  }

  async #make(
    who: string,
    number: number,
    missing: ReadonlyMap<string, BudgetUse>,
  ): Promise<ReadonlyMap<string, BudgetGrant>> {
    await this.#link.run(this.#open, [[...missing.keys()], [...missing.values()].map(({ burst }) => burst)])
    return this.#ask(who, number, missing)
  }

  async #ask(
    who: string,
    number: number,
    reports: ReadonlyMap<string, BudgetUse>,
  ): Promise<ReadonlyMap<string, BudgetGrant>> {
    const all = [...reports.values()]
    const { rows } = await this.#link.run(this.#exchange, [
      who,
      number,
      [...reports.keys()],
      all.map(({ perMs }) => perMs),
      all.map(({ burst }) => burst),
      all.map(({ spent }) => spent),
      all.map(({ want }) => want),
    ])
    return new Map(
      rows.map((row) => {
        const column = row['key'] as string
        const key = reports.get(column)?.key ?? ''
        return [column, { key, granted: Number(row['granted']), level: Number(row['level']) }]
      }),
    )
  }
}

/** Doublings of a delay: more than any configured longest delay needs. power() fails for thousands of failures. */
const DOUBLINGS = 40
/** How long a waiting attempt pauses before it looks again, in milliseconds; less if it waits for another attempt. */
const SHORTEST_WAIT = 25
const LONGEST_WAIT = 1000
const LONGEST_BUSY_WAIT = 100

/** Written while the store's clock was ahead: otherwise it would count until that time comes. */
const isAhead = (time: string): string => `${time} > ${STORE_NOW} + ${JUMP}`
/** The failures of a row, old ones not counted; and how long the next attempt waits for them. Both as SQL. */
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
/** True if an earlier try counted this attempt, or it has the turn. */
const IS_MINE = `l.busy_by IS NOT DISTINCT FROM $2`
/** In the place of an attempt, once it has ended: so a try whose answer was lost is known. */
const ENDED = `'!' || $2`

function lockoutStatements(table: string) {
  return {
    take: writing('lockout_take', {
      parameters: 7,
      last: (inTime) => `
        INSERT INTO ${table} AS l (key, failures, last_at, busy_until, busy_by)
        SELECT $1, 0, 0, ${STORE_NOW} + $3::int8, $2 WHERE ${inTime}
        ON CONFLICT (key) DO UPDATE SET busy_until = ${STORE_NOW} + $3::int8, busy_by = $2
        WHERE (${HAS_LAPSED} OR ${IS_MINE}) AND ${IS_DUE}
        RETURNING 1 AS done, true AS alone`,
    }),
    /** The attempt counts as a failure at once: so a thousand that are made at once are no more than those that may be. */
    count: writing('lockout_count', {
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
    }),
    /** Parameters: key, by, one that it does not use, delays. */
    look: readStatement(
      'lockout_look',
      `SELECT greatest(l.busy_until, l.last_at + ${DELAY}) - ${STORE_NOW} AS wait, NOT (${HAS_LAPSED} OR ${IS_MINE}) AS busy,
         $3::int8 IS NULL AS unused
       FROM ${table} AS l WHERE l.key = $1`,
    ),
    /** Parameters: keys, by, milliseconds. */
    renew: writing('lockout_renew', {
      parameters: 3,
      last: (inTime) => `
        UPDATE ${table} AS l SET busy_until = ${STORE_NOW} + $3::int8
        WHERE l.key IN (SELECT key FROM ${table} WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE)
          AND ${IS_MINE} AND ${inTime}
        RETURNING 1 AS done`,
    }),
    /** Both rows or none. Parameters: key, by, account, whether alone, right, and what is forgotten. */
    end: writing('lockout_end', {
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
    }),
    /** Parameters: patterns of keys. */
    clear: writing('lockout_clear', {
      parameters: 1,
      last: (inTime) => `
        DELETE FROM ${table} WHERE key IN (SELECT key FROM ${table} WHERE key LIKE ANY ($1::text[]) ORDER BY key)
          AND ${inTime} RETURNING 1 AS done`,
    }),
  }
}

/** The table `lockout`: one conditional write takes the turn of a key, on one node alone. */
export class PostgresLockouts implements LockoutTurns {
  readonly #link: PostgresLink
  readonly #statements: ReturnType<typeof lockoutStatements>

  constructor(link: PostgresLink) {
    this.#link = link
    this.#statements = lockoutStatements(`${link.plan.schema}.lockout`)
  }

  take(key: string, by: string, ms: number, delays: SharedDelays): Promise<TakenTurn> {
    return this.#turn(this.#statements.take, key, by, ms, delays)
  }

  count(key: string, by: string, ms: number, delays: SharedDelays): Promise<TakenTurn> {
    return this.#turn(this.#statements.count, key, by, ms, delays)
  }

  async renew({ by, key, account }: AttemptTurns, ms: number): Promise<void> {
    const keys = account?.alone === true ? [key, account.key] : [key]
    await this.#link.run(this.#statements.renew, [keys, by, ms])
  }

  async end(
    { by, key, account }: AttemptTurns,
    right: boolean | undefined,
    forget: { readonly key: number; readonly account: number },
  ): Promise<boolean> {
    const whose = [key, by, account?.key ?? null, account?.alone ?? false]
    const { rows } = await this.#link.run(this.#statements.end, [
      ...whose,
      right ?? null,
      forget.key,
      forget.account,
    ])
    return rows[0]?.['holds'] === true
  }

  async clear(patterns: readonly string[]): Promise<number> {
    return (await this.#link.run(this.#statements.clear, [patterns])).rows.length
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
    const [found] = (await this.#link.run(this.#statements.look, [key, by, null, ...rules])).rows
    const isBusy = found?.['busy'] === true
    const most = isBusy ? LONGEST_BUSY_WAIT : LONGEST_WAIT
    const wait = Math.min(most, Math.max(SHORTEST_WAIT, Number(found?.['wait'] ?? 0)))
    return { taken: false, alone: false, isBusy, wait }
  }
}

/** How long a node counts as alive after it was last heard of, in milliseconds: five beats. */
const ALIVE_FOR = 10_000
/** Milliseconds for which a node that is gone is shown, and counts for `migrate --finish`. */
const KEPT_FOR = 3_600_000
/** Nodes that a process asks when it starts. */
const RECENT = 100

/** One that was seen in the future has ended while the store's clock was ahead. */
const seenWithin = (ms: number): string =>
  `seen_at BETWEEN ${STORE_NOW} - ${ms} AND ${STORE_NOW} + ${ALIVE_FOR}`

type KeptFacts = Omit<StoredNode, 'id' | 'version' | 'config'>

/** The table `node`. Methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export class PostgresNodes {
  /** The version of the tables that this process knows. */
  readonly #known: number
  readonly #link: PostgresLink
  readonly #offset: Pick<TrustedOffset, 'confirmed'> | undefined
  readonly #beat: Statement
  readonly #live: Statement
  readonly #atStart: Statement
  readonly #list: Statement
  readonly #leave: Statement

  constructor(link: PostgresLink, known = 0, offset?: Pick<TrustedOffset, 'confirmed'>) {
    this.#known = known
    this.#offset = offset
    const table = `${link.plan.schema}.node`
    this.#link = link
    this.#beat = writing('node_beat', {
      parameters: 4,
      before: (inTime) => [
        `forgotten AS (DELETE FROM ${table} WHERE NOT ${seenWithin(KEPT_FOR)} AND id <> $1 AND ${inTime})`,
      ],
      last: (inTime) => `
        INSERT INTO ${table} (id, version, config, facts, seen_at) SELECT $1, $2, $3, $4, ${STORE_NOW} WHERE ${inTime}
        ON CONFLICT (id) DO UPDATE SET
          version = excluded.version, config = excluded.config, facts = excluded.facts, seen_at = excluded.seen_at
        RETURNING 1 AS done`,
    })
    this.#live = readStatement(
      'node_live',
      `SELECT config, facts FROM ${table} WHERE ${seenWithin(ALIVE_FOR)}`,
    )
    this.#atStart = readStatement(
      'node_at_start',
      `SELECT ${STORE_NOW} AS now, seen_at, facts, last FROM ${link.plan.schema}.feed LEFT JOIN (
         SELECT seen_at, facts FROM ${table} ORDER BY seen_at DESC LIMIT ${RECENT}) AS node ON true`,
    )
    this.#list = readStatement(
      'node_list',
      `SELECT id, version, config, facts, seen_at FROM ${table}
       WHERE ${seenWithin(KEPT_FOR)} ORDER BY seen_at DESC, id`,
    )
    this.#leave = writing('node_leave', {
      parameters: 1,
      last: (inTime) => `DELETE FROM ${table} WHERE id = $1 AND ${inTime} RETURNING 1 AS done`,
    })
  }

  /** Ahead of all requests: otherwise others would take this node for dead while many log in. */
  beat({ id, version, config, host, address, ...facts }: NodeFacts): Promise<LiveNodes> {
    return aheadOfRequests(async () => {
      // In this order `postern nodes --json` prints them.
      const told = { host, address, schema: this.#known, ...facts }
      await this.#link.run(this.#beat, [id, version, config, JSON.stringify(told)])
      return this.live()
    })
  }

  async live(): Promise<LiveNodes> {
    const { rows } = await this.#link.run(this.#live, [])
    if (rows.some((row) => factsOf(row).clockDoubt === 0)) this.#offset?.confirmed()
    return {
      nodes: rows.length,
      workers: rows.reduce((sum, row) => sum + factsOf(row).workers, 0),
      configs: new Set(rows.map((row) => row['config'])).size,
    }
  }

  /** For a process that starts, and cannot know whether the store's clock is right, nor what its newest change hides. */
  async atStart(): Promise<StoreAtStart> {
    const { rows } = await this.#link.run(this.#atStart, [])
    const seen = rows.flatMap((row) =>
      row['seen_at'] === null ? [] : [{ at: row['seen_at'] as number, facts: factsOf(row) }],
    )
    const now = Number(rows[0]?.['now'])
    const alive = seen.filter(({ at }) => Math.abs(now - at) <= ALIVE_FOR)
    const believed = seen.map(({ at, facts }) => at - (facts.clockDoubt ?? 0))
    return {
      newest: Math.max(Number(rows[0]?.['last'] ?? 0), ...believed),
      clockDoubt: alive[0] && (alive[0].facts.clockDoubt ?? 0),
      contentsDoubted: alive.some(({ facts }) => facts.contentsDoubted === true),
    }
  }

  /** All that were seen within the last hour, the latest first. */
  async list(): Promise<readonly SeenNode[]> {
    const { rows } = await this.#link.run(this.#list, [])
    return rows.map((row) => ({
      id: row['id'] as string,
      version: row['version'] as string,
      config: row['config'] as string,
      ...factsOf(row),
      seenAt: row['seen_at'] as number,
    }))
  }

  async leave(id: string): Promise<void> {
    await this.#link.run(this.#leave, [id])
  }
}

const factsOf = (row: Row): KeptFacts => JSON.parse(row['facts'] as string) as KeptFacts
