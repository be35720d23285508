/** Statements, and what every write has in common. */

export interface Statement {
  /** Under which Postgres keeps it prepared: one text has one name. */
  readonly name: string
  readonly sql: string
  readonly kind: 'read' | 'write'
  /** The column in which the first row has the store's clock. Default: `now`. */
  readonly clock?: string
}

/** The store's clock, milliseconds since the epoch. now() would be the time at which the transaction began. */
export const STORE_NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::int8'

export const reading = (name: string, sql: string, clock?: string): Statement => ({
  ...{ name, sql, kind: 'read' },
  ...(clock !== undefined && { clock }),
})

export const READ_CLOCK = reading('clock', `SELECT ${STORE_NOW} AS now`)

/** A write. Its parts must name every row that they write: `RETURNING 1 AS done`. */
interface WriteParts {
  /** How many parameters it has. */
  readonly parameters: number
  /** Earlier parts, `name AS (…)`, which the last one may use. */
  readonly before?: (inTime: string) => readonly string[]
  readonly last: (inTime: string) => string
}

/**
 * A write ends by the store's clock: it has no effect behind the time at which its caller was told that it failed. (A
 * frozen Postgres runs what lies in its sockets when it goes on: without this a code would be used up after a 503.) It
 * answers one row at least, so that "too late" is not taken for "no such row", and with the store's clock.
 */
export function writing(name: string, { parameters, before, last }: WriteParts): Statement {
  const until = `$${parameters + 1}::int8`
  const inTime = `${STORE_NOW} < ${until}`
  const parts = [...(before?.(inTime) ?? []), `written AS (${last(inTime)})`]
  const sql = `WITH ${parts.join(', ')}
    SELECT written.*, clock.now, clock.now >= ${until} AS late
    FROM (SELECT ${STORE_NOW} AS now) AS clock LEFT JOIN written ON true`
  return { name, sql, kind: 'write' }
}
