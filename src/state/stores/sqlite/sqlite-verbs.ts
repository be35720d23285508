import { dirname } from 'node:path'
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import {
  type IndexValues,
  type PageQuery,
  STORE_INDEXES,
  type StoreIndex,
} from '../../../base/contracts/records/store.ts'
import { byEscapedKey, endOfPrefix, escapedKey } from '../../../base/kernel/key-order.ts'
import type { ChangeRow, RecordRow } from '../link/rows.ts'
import { isBusy } from '../link/store-error.ts'

const isOpen = ({ isTransaction }: DatabaseSync): boolean => isTransaction

/**
 * All writes of `work`, or none; a part of the transaction that is open, if one is. The write lock is taken first: a
 * transaction that reads first may fail at once. Throws as `work` does, and SQLite's errors.
 */
export function atOnce<T>(db: DatabaseSync, work: () => T): T {
  if (isOpen(db)) return work()
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    db.exec('COMMIT')
    return result
  } catch (thrown) {
    // SQLite itself ends the transaction after some errors (a full disk).
    if (isOpen(db)) db.exec('ROLLBACK')
    throw thrown
  }
}

/** The columns that `create` writes besides the key; null for no value. */
export interface NewRow extends IndexColumns {
  readonly value: string
  readonly expiresAt: number | null
}

/** What `redeem` makes of a record; null: its expiry stays. A type alias, so that node:sqlite can bind it as it is. */
type NextRow = {
  readonly value: string
  readonly expiresAt: number | null
}

interface CreatedRow {
  readonly kind: string
  readonly key: string
  readonly row: NewRow
}

/** Index values; null: none, or any. A type alias, so that node:sqlite can bind it as it is. */
type IndexColumns = Readonly<Record<StoreIndex, string | null>>

export const columnsOf = ({ family, subject, client, business }: IndexValues): IndexColumns => ({
  family: column(family),
  subject: column(subject),
  client: column(client),
  business: column(business),
})

const column = (value: string | undefined): string | null => (value === undefined ? null : escapedKey(value))

/** A change is over only when both of these clocks have passed its end. A type alias for the same reason. */
export type Times = {
  /** The current time, in milliseconds since the epoch. */
  readonly now: number
  /** How long the service has run on this store, in milliseconds. */
  readonly ran: number
}

/** A page of a kind, as PART_OF_KIND reads it. A type alias, so that node:sqlite can bind it as it is. */
type PartOfKind = {
  /** The first key that may be on it. */
  readonly from: string
  /** A key that is not on it, though it may be the first; null: none. */
  readonly except: string | null
  /** The first key behind it; null: none. */
  readonly to: string | null
  /** -1: no limit. */
  readonly limit: number
}

/** One range of the primary key, so that a page costs the same wherever it lies. Any BLOB comes after any text. */
const PART_OF_KIND = `
  kind = :kind AND key >= :from AND key < coalesce(:to, x'') AND key IS NOT :except`

export function partOf({ after, limit = -1, prefix = '' }: Partial<PageQuery> = {}): PartOfKind {
  const begin = escapedKey(prefix)
  const last = after === undefined ? null : escapedKey(after)
  return {
    from: last !== null && byEscapedKey(last, begin) > 0 ? last : begin,
    except: last,
    to: endOfPrefix(begin) ?? null,
    limit,
  }
}

// An expired record counts as absent, whether it was purged or not. :now comes from the injected clock.
const LIVE = '(expires_at IS NULL OR expires_at > :now)'
const COLUMNS = 'key, value, version, expires_at, used_at'

// SQL takes no column name as a parameter, so there is one statement per index. INDEXED BY, because the planner does not
// know the contents of the table and might read a whole kind instead.
const perIndex = <T>(make: (index: StoreIndex) => T): Readonly<Record<StoreIndex, T>> => ({
  family: make('family'),
  subject: make('subject'),
  client: make('client'),
  business: make('business'),
})

/** The first one given is used: they begin with the finest. */
const finestOf = (where: IndexColumns): StoreIndex | undefined =>
  STORE_INDEXES.find((index) => where[index] !== null)

type Prepared = () => StatementSync

/** Prepares its SQL at the first run: a connection runs few of these statements, and to prepare all of them takes 6 ms. */
function lazily(db: DatabaseSync, sql: string): Prepared {
  let prepared: StatementSync | undefined
  return () => (prepared ??= db.prepare(sql))
}

const changed = (of: Prepared, parameters: Record<string, SQLInputValue>): number =>
  Number(of().run(parameters).changes)

function recordVerbs(db: DatabaseSync) {
  const insert = lazily(
    db,
    `
    INSERT INTO record (kind, key, value, expires_at, family, subject, client, business)
    VALUES (:kind, :key, :value, :expiresAt, :family, :subject, :client, :business)
    ON CONFLICT (kind, key) DO UPDATE SET
      value = excluded.value, version = 1, expires_at = excluded.expires_at, used_at = NULL, family = excluded.family,
      subject = excluded.subject, client = excluded.client, business = excluded.business
    WHERE record.expires_at <= :now`,
  )
  const select = lazily(db, `SELECT ${COLUMNS} FROM record WHERE kind = :kind AND key = :key AND ${LIVE}`)
  const update = lazily(
    db,
    `
    UPDATE record SET value = :value, version = version + 1, expires_at = coalesce(:expiresAt, expires_at)
    WHERE kind = :kind AND key = :key AND version = :version AND ${LIVE}`,
  )
  const remove = lazily(
    db,
    `
    DELETE FROM record WHERE kind = :kind AND key = :key AND version = coalesce(:version, version) AND ${LIVE}`,
  )

  return {
    create: (now: number, kind: string, key: string, row: NewRow): boolean =>
      changed(insert, { now, kind, key, ...row }) > 0,

    find: (now: number, kind: string, key: string) =>
      select().get({ now, kind, key }) as RecordRow | undefined,

    replace: (
      now: number,
      kind: string,
      key: string,
      version: number,
      value: string,
      expiresAt: number | null,
    ): boolean => changed(update, { now, kind, key, version, value, expiresAt }) > 0,

    remove: (now: number, kind: string, key: string, version: number | null): boolean =>
      changed(remove, { now, kind, key, version }) > 0,
  }
}

type Taken = { readonly first: boolean; readonly row: RecordRow } | undefined

/** Two statements. The first one decides. The second may find nothing any more, but its caller is never first. */
function useVerbs(db: DatabaseSync, { find, create }: ReturnType<typeof recordVerbs>) {
  const use = (set: string): Prepared =>
    lazily(
      db,
      `
      UPDATE record SET used_at = :now${set} WHERE kind = :kind AND key = :key AND used_at IS NULL AND ${LIVE}
      RETURNING ${COLUMNS}`,
    )
  const take = use('')
  const settle = use(', value = :value, version = version + 1, expires_at = coalesce(:expiresAt, expires_at)')
  const taken = (row: unknown, now: number, kind: string, key: string): Taken => {
    if (row !== undefined) return { first: true, row: row as RecordRow }
    const used = find(now, kind, key)
    return used && { first: false, row: used }
  }

  return {
    consume: (now: number, kind: string, key: string): Taken =>
      taken(take().get({ now, kind, key }), now, kind, key),

    redeem: (now: number, kind: string, key: string, next: NextRow, creates: readonly CreatedRow[]): Taken =>
      atOnce(db, () => {
        const row = settle().get({ now, kind, key, ...next })
        if (row !== undefined)
          for (const created of creates) create(now, created.kind, created.key, created.row)
        return taken(row, now, kind, key)
      }),
  }
}

function whereVerbs(db: DatabaseSync) {
  const rest = STORE_INDEXES.map((index) => `(:${index} IS NULL OR ${index} = :${index})`).join(' AND ')
  const set = (index: StoreIndex | undefined): string =>
    index === undefined
      ? `record WHERE kind = :kind AND ${rest}`
      : `record INDEXED BY record_by_${index} WHERE ${index} = :${index} AND kind = :kind AND ${rest}`
  const statementsOf = (index: StoreIndex | undefined) => ({
    count: lazily(db, `SELECT count(*) AS live FROM ${set(index)} AND ${LIVE}`),
    lastUse: lazily(db, `SELECT max(used_at) AS at FROM ${set(index)} AND ${LIVE}`),
    // Each index ends with kind and key, so a page is one range of it.
    page: lazily(
      db,
      `SELECT ${COLUMNS} FROM ${set(index)} AND ${PART_OF_KIND} AND ${LIVE} ORDER BY key LIMIT :limit`,
    ),
    remove: lazily(
      db,
      `
      DELETE FROM record WHERE (kind, key) IN (SELECT kind, key FROM ${set(index)} LIMIT :limit)
      RETURNING ${LIVE} AS live`,
    ),
  })
  const ofKind = statementsOf(undefined)
  const byIndex = perIndex(statementsOf)
  const statements = (where: IndexColumns) => {
    const index = finestOf(where)
    return index === undefined ? ofKind : byIndex[index]
  }

  return {
    countBy: (now: number, kind: string, where: IndexColumns): number =>
      Number(
        statements(where)
          .count()
          .get({ now, kind, ...where })?.['live'],
      ),

    lastUseBy: (now: number, kind: string, where: IndexColumns): number | null =>
      (statements(where)
        .lastUse()
        .get({ now, kind, ...where })?.['at'] ?? null) as number | null,

    pageBy: (now: number, kind: string, where: IndexColumns, part: PartOfKind) =>
      statements(where)
        .page()
        .all({ now, kind, ...where, ...part }) as RecordRow[],

    /** Removes at most `limit`. Returns how many were removed, and how many of these had not expired. */
    removeBy: (now: number, kind: string, where: IndexColumns, limit: number) => {
      const rows = statements(where)
        .remove()
        .all({ now, kind, limit, ...where })
      return { removed: rows.length, live: rows.filter(({ live }) => live === 1).length }
    },
  }
}

function feedVerbs(db: DatabaseSync) {
  const append = lazily(
    db,
    `
    INSERT INTO change (sequence, topic, value, expires_at, runs_until)
    VALUES (
      max(:now, :above + 1, 1 + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'change'), 0)),
      :topic, :value, :expiresAt, :ran + :expiresAt - :now
    )`,
  )
  const changes = lazily(
    db,
    `
    SELECT sequence, topic, value, expires_at, runs_until FROM change
    WHERE sequence > :sequence AND (${LIVE} OR runs_until > :ran) ORDER BY sequence LIMIT :limit`,
  )

  return {
    append: (times: Times, topic: string, value: string, expiresAt: number | null, above: number): number =>
      Number(append().run({ ...times, topic, value, expiresAt, above }).lastInsertRowid),

    changes: (times: Times, sequence: number, limit: number) =>
      changes().all({ ...times, sequence, limit }) as ChangeRow[],
  }
}

/** Records that have expired, then changes. */
function purgeVerb(db: DatabaseSync) {
  const deletion = (table: string, key: string, ended: string): Prepared =>
    lazily(
      db,
      `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${ended} LIMIT :limit)`,
    )
  const records = deletion('record', 'kind, key', 'expires_at <= :now')
  const changes = deletion('change', 'sequence', 'expires_at <= :now AND runs_until <= :ran')
  return {
    purge: ({ now, ran }: Times, limit: number): number => {
      const removed = changed(records, { now, limit })
      return removed < limit ? removed + changed(changes, { now, ran, limit: limit - removed }) : removed
    },
  }
}

/**
 * SQLite writes the new content to a temporary file first: next to the store, because no other folder must be writable, or is as
 * private.
 */
function rewrite(db: DatabaseSync, file: string): void {
  const folder = dirname(file).replaceAll("'", "''")
  db.exec(`PRAGMA temp_store_directory = '${folder}'`)
  try {
    db.exec('VACUUM')
  } finally {
    db.exec("PRAGMA temp_store_directory = ''")
  }
}

/**
 * Leaves nothing in the files of what was removed or replaced. Where SQLite moves records from page to page it leaves copies in
 * unused bytes, which `secure_delete` does not find when the records are removed: so the file is rewritten, which needs its size on
 * the disk again, and the log is emptied. To be called outside of a transaction. False if another process reads the log or writes
 * just now.
 */
function forgetVerb(db: DatabaseSync) {
  const checkpoint = lazily(db, 'PRAGMA wal_checkpoint(TRUNCATE)')
  const isEmptied = (): boolean => checkpoint().get()?.['busy'] === 0
  return {
    forget: (): boolean => {
      const file = db.location()
      // In memory there is none.
      if (file === null) return true
      // Else each try would make the log larger by the whole file, for as long as somebody reads it.
      if (!isEmptied()) return false
      try {
        rewrite(db, file)
      } catch (thrown) {
        if (isBusy(thrown)) return false
        throw thrown
      }
      return isEmptied()
    },
  }
}

/**
 * How long the service has run on this store, in milliseconds. Each process reads the count, counts on, and writes
 * its result. They run at the same time, so the highest count is right, and never too high.
 */
function runningVerbs(db: DatabaseSync) {
  const select = lazily(db, 'SELECT ms FROM running')
  const update = lazily(db, 'UPDATE running SET ms = max(ms, :ran)')
  return {
    running: (): number => Number(select().get()?.['ms']),
    ran: (ran: number): number => changed(update, { ran }),
  }
}

/**
 * The verbs of the contract over one connection. One statement decides each verb, so it is atomic over any number of
 * processes: SQLite takes the write lock before such a statement reads. (A deferred transaction, which reads first
 * and writes later, fails at once if another process wrote in between, however long its timeout is.)
 *
 * Keys, index values and JSON values go in and out as the text of their columns. `now` is milliseconds since the
 * epoch. The verbs throw SQLite's errors.
 */
export function verbsOf(db: DatabaseSync) {
  const records = recordVerbs(db)
  return {
    ...records,
    ...useVerbs(db, records),
    ...whereVerbs(db),
    ...feedVerbs(db),
    ...purgeVerb(db),
    ...forgetVerb(db),
    ...runningVerbs(db),
  }
}

export type SqliteVerbs = ReturnType<typeof verbsOf>
export type SqliteVerb = keyof SqliteVerbs
