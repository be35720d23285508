import type { BudgetGrant, BudgetUse, Budgets } from '../../contracts/budgets.ts'
import { escapedKey } from '../../kernel/key-order.ts'
import { shortKey } from './keys.ts'
import type { PostgresLink } from './link.ts'
import { type Statement, STORE_NOW, writing } from './statement.ts'

/** Processes whose last number stands with a budget: a request is repeated within seconds, if at all. */
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
    // What was granted above is taken from the budgets, so it is told; the others are told again.
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
      ...[who, number, [...reports.keys()]],
      ...[all.map(({ perMs }) => perMs), all.map(({ burst }) => burst)],
      ...[all.map(({ spent }) => spent), all.map(({ want }) => want)],
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
