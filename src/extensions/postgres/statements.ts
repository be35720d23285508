/** The verbs of the store contract as statements. One statement decides each verb, so it is atomic over all nodes. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import {
  type IndexValues,
  type PageQuery,
  SECRET,
  SIGNING_KEY,
  STORE_INDEXES,
  type StoreIndex,
} from '../../base/contracts/records/store.ts'
import { byEscapedKey, endOfPrefix, escapedKey } from '../../base/kernel/key-order.ts'
import { JUMP } from '../../base/kernel/store-clock.ts'

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

export const readStatement = (name: string, sql: string, clock?: string): Statement => ({
  name,
  sql,
  kind: 'read',
  ...(clock !== undefined && { clock }),
})

export const READ_CLOCK = readStatement('clock', `SELECT ${STORE_NOW} AS now`)

/**
 * A write ends by the store's clock: it has no effect behind the time at which its caller learned that it failed. (A
 * frozen Postgres runs what lies in its sockets when it runs again: without this a code would be used up after a 503.) It
 * answers one row at least, so that "too late" is not taken for "no such row", and with the store's clock.
 *
 * Its parts must name every row that they write: `RETURNING 1 AS done`.
 */
export function writing(
  name: string,
  {
    parameters,
    before,
    last,
  }: {
    readonly parameters: number
    /** Earlier parts, `name AS (…)`, which the last one may use. */
    readonly before?: (inTime: string) => readonly string[]
    readonly last: (inTime: string) => string
  },
): Statement {
  const until = `$${parameters + 1}::int8`
  const inTime = `${STORE_NOW} < ${until}`
  const parts = [...(before?.(inTime) ?? []), `written AS (${last(inTime)})`]
  const sql = `WITH ${parts.join(', ')}
    SELECT written.*, clock.now, clock.now >= ${until} AS late
    FROM (SELECT ${STORE_NOW} AS now) AS clock LEFT JOIN written ON true`
  return { name, sql, kind: 'write' }
}

const COLUMNS = 'key, long_key, value, version, expires_at, used_at'

export const indexesOf = (where: IndexValues): readonly StoreIndex[] =>
  STORE_INDEXES.filter((index) => where[index] !== undefined)

/** An expired record counts as absent, whether it was purged or not. */
const live = (now: number): string => `(expires_at IS NULL OR expires_at > $${now})`
/** Parameters: kind, key, now, attempt. */
const UNUSED = `kind = $1 AND key = $2 AND (used_at IS NULL OR used_by = $4) AND ${live(3)}`
/** A page, from parameter `first` on: the first key, one that is not on it, the first key behind, the whole prefix, limit. */
const part = (first: number): string => `
  key >= $${first} AND key IS DISTINCT FROM $${first + 1} AND ($${first + 2}::text IS NULL OR key < $${first + 2})
  AND starts_with(coalesce(long_key, key), $${first + 3})`

/** The columns of a new record, as `recordColumns` of store.ts fills them. */
const RECORD = `(kind, key, long_key, value, attempt, expires_at, ${STORE_INDEXES.join(', ')})`
/** A new record takes the place of one that has expired: the condition follows. */
const REPLACE_EXPIRED = `ON CONFLICT (kind, key) DO UPDATE SET
    long_key = excluded.long_key, value = excluded.value, version = 1, attempt = excluded.attempt,
    expires_at = excluded.expires_at, used_at = NULL, used_by = NULL, family = excluded.family,
    subject = excluded.subject, client = excluded.client, business = excluded.business`

/** One record by its key. `attempt`: drawn for each call, and the same in all its tries. */
function recordStatements(table: string) {
  return {
    /** Parameters: the columns of RECORD, now. */
    create: writing('create', {
      parameters: 11,
      last: (inTime) => `
        INSERT INTO ${table} AS old ${RECORD}
        SELECT $1, $2, $3, $4, $5, $6::int8, $7, $8, $9, $10 WHERE ${inTime}
        ${REPLACE_EXPIRED}
        WHERE old.expires_at <= $11::int8 AND ${inTime}
        RETURNING 1 AS done`,
    }),
    /** Whether an earlier try has created it. Parameters: kind, key, attempt. */
    created: readStatement('created', `SELECT 1 FROM ${table} WHERE kind = $1 AND key = $2 AND attempt = $3`),
    find: readStatement(
      'find',
      `SELECT ${COLUMNS} FROM ${table} WHERE kind = $1 AND key = $2 AND ${live(3)}`,
    ),
    /** Parameters: kind, key, now, attempt. */
    consume: writing('consume', {
      parameters: 4,
      last: (inTime) => `
        UPDATE ${table} SET used_at = coalesce(used_at, $3::int8), used_by = $4 WHERE ${UNUSED} AND ${inTime}
        RETURNING 1 AS done, ${COLUMNS}`,
    }),
    /** Parameters: kind, key, now, version, value, expiry or null, attempt. */
    replace: writing('replace', {
      parameters: 7,
      last: (inTime) => `
        UPDATE ${table} SET value = $5, version = $4::int8 + 1, attempt = $7, expires_at = coalesce($6::int8, expires_at)
        WHERE kind = $1 AND key = $2 AND ${live(3)} AND ${inTime}
          AND (version = $4::int8 OR (version = $4::int8 + 1 AND attempt = $7))
        RETURNING 1 AS done`,
    }),
    /** Parameters: kind, key, now, version or null, attempt. */
    remove: removing(table, 'remove', {
      parameters: 5,
      gone: (inTime) => `
        DELETE FROM ${table}
        WHERE kind = $1 AND key = $2 AND ${live(3)} AND version = coalesce($4::int8, version) AND ${inTime}
        RETURNING true AS live`,
    }),
    /** The rows that all tries of a removal have removed. Parameter: attempt. */
    removed: readStatement(
      'removed',
      `SELECT version AS live FROM ${table} WHERE kind = '${REMOVAL}' AND key = $1`,
    ),
  }
}

const REMOVAL = 'removal'
/** How long the note of a removal is kept, in milliseconds: longer than any verb is tried. */
const NOTED_FOR = 60_000

interface Removal {
  /** The last one is the attempt. */
  readonly parameters: number
  /** Deletes rows, and returns of each whether it was `live`. */
  readonly gone: (inTime: string) => string
}

/**
 * A write that removes. A row that is gone does not show who has removed it. So a note counts what all tries of one
 * attempt have removed: otherwise a removal whose answer was lost would be taken for somebody else's.
 */
const removing = (table: string, name: string, { parameters, gone }: Removal): Statement =>
  writing(name, {
    parameters,
    before: (inTime) => [`gone AS (${gone(inTime)})`],
    last: () => `
      INSERT INTO ${table} AS note (kind, key, value, version, attempt, expires_at)
      SELECT '${REMOVAL}', $${parameters}, '{}', count(*) FILTER (WHERE live), '', ${STORE_NOW} + ${NOTED_FOR}
      FROM gone HAVING count(*) > 0
      ON CONFLICT (kind, key) DO UPDATE SET version = note.version + excluded.version
      RETURNING 1 AS done, version AS live, (SELECT count(*) FROM gone) AS removed`,
  })

/** The types of those columns. */
const TYPES = ['text', 'text', 'text', 'text', 'text', 'int8', 'text', 'text', 'text', 'text']

/**
 * Uses a record, gives it its last value and creates others. A second try finds the record used by its own attempt, and
 * what it created in place. Parameters: kind, key, now, attempt, value, expiry or null, and a list for each column of RECORD.
 */
const redeem = (table: string): Statement =>
  writing('redeem', {
    parameters: 6 + TYPES.length,
    before: (inTime) => [
      `used AS (
        UPDATE ${table} SET
          used_at = coalesce(used_at, $3::int8), used_by = $4, value = $5,
          version = CASE WHEN used_by = $4 THEN version ELSE version + 1 END,
          expires_at = coalesce($6::int8, expires_at)
        WHERE ${UNUSED} AND ${inTime}
        RETURNING 1 AS done, ${COLUMNS})`,
      `created AS (
        INSERT INTO ${table} AS old ${RECORD}
        SELECT made.* FROM used, unnest(${TYPES.map((type, at) => `$${7 + at}::${type}[]`).join(', ')}) AS made
        ${REPLACE_EXPIRED}
        WHERE old.expires_at <= $3::int8)`,
    ],
    last: () => 'SELECT * FROM used',
  })

/**
 * The first records that have some index values; locked in the order of keys, so that two that remove the same never wait for
 * each other. The planner takes one value for a constant and walks the primary key, through all records of the kind if no
 * more have the value; a range has an order of its own. With a client, the index has the order of the keys. Parameters: kind,
 * now, limit, index values.
 */
function firstBy(table: string, indexes: readonly StoreIndex[]): string {
  const [first, ...others] = indexes
  const also = others.map((index, at) => ` AND ${index} = $${5 + at}`).join('')
  const select = (where: string): string => `SELECT kind, key FROM ${table} WHERE ${where}`
  if (first === undefined) return select('kind = $1 ORDER BY kind, key LIMIT $3::int8')
  if (first === 'client') return select(`kind = $1 AND client = $4${also} ORDER BY kind, key LIMIT $3::int8`)
  const found = select(`kind = $1 AND ${first} BETWEEN $4 AND $4${also} ORDER BY ${first} LIMIT $3::int8`)
  return select(`(kind, key) IN (${found}) ORDER BY kind, key FOR UPDATE`)
}

/** A statement for each set of indexes: otherwise the planner, which knows no values, would read the whole kind. */
function whereStatements(table: string, indexes: readonly StoreIndex[]) {
  const name = (verb: string): string => [verb, ...indexes].join('_by_')
  const where = (first: number): string =>
    ['kind = $1', ...indexes.map((index, at) => `${index} = $${first + at}`)].join(' AND ')
  return {
    /** Parameters: kind, now, index values. */
    count: readStatement(
      name('count'),
      `SELECT count(*) AS live FROM ${table} WHERE ${where(3)} AND ${live(2)}`,
    ),
    lastUse: readStatement(
      name('last_use'),
      `SELECT max(used_at) AS at FROM ${table} WHERE ${where(3)} AND ${live(2)}`,
    ),
    /** Parameters: kind, now, those of a page, index values. */
    page: readStatement(
      name('page'),
      `SELECT ${COLUMNS} FROM ${table} WHERE ${where(8)} AND ${live(2)} AND ${part(3)} ORDER BY key LIMIT $7::int8`,
    ),
    /** Parameters: kind, now, limit, index values, attempt. */
    remove: removing(table, name('remove'), {
      parameters: 4 + indexes.length,
      gone: (inTime) => `
        DELETE FROM ${table} WHERE (kind, key) IN (${firstBy(table, indexes)}) AND ${inTime} RETURNING ${live(2)} AS live`,
    }),
  }
}

type WhereStatements = ReturnType<typeof whereStatements>

/** The mark of a change. @param place in its group, from 1 */
export const markOf = (group: string, place: number): string => `${group}.${place}`

function feedStatements(schema: string) {
  const [change, feed] = [`${schema}.change`, `${schema}.feed`]
  return {
    /**
     * A group of changes gets numbers in a row. The mark of each is that of the group, and its place in the group
     * (`markOf`). Fails with `unique_violation` if an earlier try was under way when this one began, and was answered
     * to nobody: no condition on other rows sees what was written meanwhile, but a unique index does. Parameters: mark,
     * now, count, above, and for each change in lists: topic, value, expiry, runs_until.
     */
    append: writing('append', {
      parameters: 8,
      before: (inTime) => [
        `numbered AS (
          UPDATE ${feed} SET
            last = greatest($2::int8, last + 1, $4::int8 + 1) + $3::int8 - 1, mark = $1::text || '.' || $3::int8
          WHERE id = 1 AND ${inTime} AND NOT EXISTS (SELECT 1 FROM ${change} AS earlier WHERE earlier.mark = $1::text || '.1')
          RETURNING last)`,
      ],
      last: () => `
        INSERT INTO ${change} (sequence, mark, topic, value, expires_at, runs_until)
        SELECT numbered.last - $3::int8 + made.at, $1::text || '.' || made.at,
          made.topic, made.value, made.expires_at, made.runs_until
        FROM numbered, unnest($5::text[], $6::text[], $7::int8[], $8::int8[])
          WITH ORDINALITY AS made (topic, value, expires_at, runs_until, at)
        RETURNING 1 AS done, sequence`,
    }),
    /** The changes that an earlier try has appended. Parameter: the marks of all of it. */
    appended: readStatement(
      'appended',
      `SELECT sequence FROM ${change} WHERE mark = ANY ($1::text[]) ORDER BY sequence`,
    ),
    /**
     * First the end of the feed, with the store's clock as its value and the marks of the keys as its topic; then each
     * change from a place on, that of the place itself too, though it may have ended. Parameters: sequence, now, ran,
     * limit.
     */
    changes: readStatement(
      'changes',
      `SELECT 0 AS part, last AS sequence, mark,
         (SELECT string_agg(attempt, ' ' ORDER BY kind, key) FROM ${schema}.record
           WHERE kind = '${SIGNING_KEY}' OR kind = '${SECRET}') AS topic, ${STORE_NOW}::text AS value,
         NULL::int8 AS expires_at, NULL::int8 AS runs_until FROM ${feed} WHERE id = 1
       UNION ALL (
         SELECT 1, sequence, mark, topic, value, expires_at, runs_until FROM ${change}
         WHERE sequence >= $1 AND (sequence = $1 OR expires_at IS NULL OR expires_at > $2 OR runs_until > $3)
         ORDER BY sequence LIMIT $4)
       ORDER BY part, sequence`,
      'value',
    ),
    running: readStatement('running', `SELECT ran FROM ${feed} WHERE id = 1`),
    /** Parameter: ran. */
    ran: writing('ran', {
      parameters: 1,
      last: (inTime) =>
        `UPDATE ${feed} SET ran = $1::int8 WHERE id = 1 AND ran < $1::int8 AND ${inTime} RETURNING 1 AS done`,
    }),
  }
}

export function leaseStatements(schema: string) {
  return {
    /** One that ends too late was taken while the clock was ahead. Parameters: name, holder, milliseconds. */
    hold: writing('hold', {
      parameters: 3,
      last: (inTime) => `
        INSERT INTO ${schema}.lease AS old (name, holder, until) SELECT $1, $2, ${STORE_NOW} + $3::int8 WHERE ${inTime}
        ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
        WHERE old.until NOT BETWEEN ${STORE_NOW} AND ${STORE_NOW} + $3::int8 + ${JUMP} OR old.holder = $2
        RETURNING 1 AS done`,
    }),
    /** Parameters: name, holder. */
    release: writing('release', {
      parameters: 2,
      last: (inTime) =>
        `DELETE FROM ${schema}.lease WHERE name = $1 AND holder = $2 AND ${inTime} RETURNING 1 AS done`,
    }),
  }
}

export function statementsOf(schema: string) {
  const table = `${schema}.record`
  const bySets = new Map<string, WhereStatements>()
  return {
    ...recordStatements(table),
    redeem: redeem(table),
    ...feedStatements(schema),
    ...leaseStatements(schema),
    /** For the indexes that `where` names: sixteen sets. */
    where(where: IndexValues): WhereStatements {
      const indexes = indexesOf(where)
      const id = indexes.join()
      const known = bySets.get(id)
      if (known) return known
      const made = whereStatements(table, indexes)
      bySets.set(id, made)
      return made
    },
  }
}

export type PostgresStatements = ReturnType<typeof statementsOf>

/** The longest key in a column, in bytes. An index row of Postgres holds 2,704, with kind, index value and key together. */
const LONGEST = 512
/** How many bytes of a longer key its column has unchanged, so that order and prefixes hold. */
const HEAD = 400
/** No escaped key contains it: so a shortened key is never the same as another key. */
const SEPARATOR = '\u0001'

/** The column of an escaped key: itself, or its beginning and its SHA-256. */
export function shortKey(escaped: string): string {
  if (escaped.length * 3 <= LONGEST || Buffer.byteLength(escaped) <= LONGEST) return escaped
  const head = Buffer.from(escaped)
    .subarray(0, HEAD)
    .toString('utf8')
    .replace(/\uFFFD$/, '')
  return head + SEPARATOR + createHash('sha256').update(escaped).digest('hex')
}

/** The column of an index value; null: it has none. */
export const indexColumn = (value: string | undefined): string | null =>
  value === undefined ? null : shortKey(escapedKey(value))

/** The columns `key` and `long_key`. The second holds the whole key where the first is shortened. */
export const keyColumns = (key: string): readonly [key: string, longKey: string | null] =>
  escapedKeyColumns(escapedKey(key))

export function escapedKeyColumns(escaped: string): readonly [key: string, longKey: string | null] {
  const short = shortKey(escaped)
  return [short, short === escaped ? null : escaped]
}

/** The parameters of a page: first key, one that is not on it, first key behind, whole prefix, limit. */
export function partColumns({ after, limit, prefix = '' }: Partial<PageQuery> = {}): readonly unknown[] {
  const whole = escapedKey(prefix)
  const begin = beginningOf(whole)
  const last = after === undefined ? null : shortKey(escapedKey(after))
  const from = last !== null && byEscapedKey(last, begin) > 0 ? last : begin
  return [from, last, endOfPrefix(begin) ?? null, whole, limit ?? null]
}

/** The beginning of a prefix that is in the columns of the keys: all of a short prefix, a part of a long one. */
const beginningOf = (prefix: string): string => shortKey(prefix).split(SEPARATOR)[0] ?? prefix
