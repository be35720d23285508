import type { LiveNodes, NodeFacts, Nodes, SeenNode, StoreAtStart } from '../../contracts/nodes.ts'
import type { TrustedOffset } from '../../kernel/store-clock.ts'
import { aheadOfRequests } from '../../kernel/store-budget.ts'
import type { PostgresLink, Row } from './link.ts'
import { reading, type Statement, STORE_NOW, writing } from './statement.ts'

/** Milliseconds. A node that was not heard of for so long counts as dead: five beats. */
export const ALIVE_FOR = 10_000
/** Milliseconds for which a node that is gone is shown, and counts for `migrate --finish`. */
const KEPT_FOR = 3_600_000
/** Nodes that a process asks when it starts. */
const RECENT = 100

/** One that was seen in the future has ended while the store's clock was ahead. */
const seenWithin = (ms: number): string =>
  `seen_at BETWEEN ${STORE_NOW} - ${ms} AND ${STORE_NOW} + ${ALIVE_FOR}`

/** What stands in the column `facts`. */
type KeptFacts = Omit<NodeFacts, 'id' | 'version' | 'config'>

/** The table `node`. */
export class PostgresNodes implements Nodes {
  readonly knownSchema: number
  readonly #link: PostgresLink
  readonly #offset: Pick<TrustedOffset, 'confirmed'> | undefined
  readonly #beat: Statement
  readonly #live: Statement
  readonly #atStart: Statement
  readonly #list: Statement
  readonly #leave: Statement

  constructor(link: PostgresLink, knownSchema = 0, offset?: Pick<TrustedOffset, 'confirmed'>) {
    this.knownSchema = knownSchema
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
    this.#live = reading('node_live', `SELECT config, facts FROM ${table} WHERE ${seenWithin(ALIVE_FOR)}`)
    this.#atStart = reading(
      'node_at_start',
      `SELECT ${STORE_NOW} AS now, seen_at, facts, last FROM ${link.plan.schema}.feed LEFT JOIN (
         SELECT seen_at, facts FROM ${table} ORDER BY seen_at DESC LIMIT ${RECENT}) AS node ON true`,
    )
    this.#list = reading(
      'node_list',
      `SELECT id, version, config, facts, seen_at FROM ${table}
       WHERE ${seenWithin(KEPT_FOR)} ORDER BY seen_at DESC, id`,
    )
    this.#leave = writing('node_leave', {
      parameters: 1,
      last: (inTime) => `DELETE FROM ${table} WHERE id = $1 AND ${inTime} RETURNING 1 AS done`,
    })
  }

  /** Behind no login: others would take this node for dead. */
  beat({ id, version, config, ...facts }: NodeFacts): Promise<LiveNodes> {
    return aheadOfRequests(async () => {
      await this.#link.run(this.#beat, [id, version, config, JSON.stringify(facts)])
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
