/** Reads a whole SQLite store, as it was at one moment, for a copy into another store. */
import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { openReadOnly } from './read-only-file.ts'
import { type ChangeRow, readNumber, requireNewestSchema } from './sqlite-file.ts'
import { quickCheck, reasonOf, StoreError } from './store-error.ts'

/** A row of `record` as it stands. Keys and index values are escaped; times are milliseconds since the epoch. */
export type WholeRecord = {
  readonly kind: string
  readonly key: string
  readonly value: string
  readonly version: number
  readonly expires_at: number | null
  readonly used_at: number | null
  readonly family: string | null
  readonly subject: string | null
  readonly client: string | null
  readonly business: string | null
}

/** What a copy must come to. */
export interface SourceFacts {
  readonly size: { readonly records: number; readonly changes: number }
  /** The number of the newest change there ever was; 0 if there was none. */
  readonly lastChange: number
  /** How long the service has run on this store, in milliseconds. */
  readonly ran: number
}

const LIVE_RECORDS = 'FROM record WHERE expires_at IS NULL OR expires_at > :now'
const LIVE_CHANGES = 'FROM change WHERE expires_at IS NULL OR expires_at > :now OR runs_until > :ran'

/** What is live in a store file. One transaction for as long as it is open. Blocks the thread: for the command line. */
export class SqliteSource implements SourceFacts {
  readonly size: SourceFacts['size']
  readonly lastChange: number
  readonly ran: number
  readonly #db: DatabaseSync
  readonly #now: number

  /**
   * @param now milliseconds since the epoch: what has expired by then is left out
   * @throws StoreError if there is no such file, or if it is no sound store of the newest schema
   */
  constructor(path: string, now: number) {
    if (!existsSync(path)) throw new StoreError(`There is no store at ${path}.`)
    this.#now = now
    try {
      this.#db = openReadOnly(path)
    } catch (thrown) {
      throw unreadable(path, thrown)
    }
    try {
      this.#db.exec('BEGIN')
      requireNewestSchema(this.#db, path)
      const damage = quickCheck(this.#db)
      if (damage !== undefined) throw new StoreError(`The store ${path} is damaged: ${damage}.`)
      this.ran = readNumber(this.#db, 'SELECT ms FROM running')
      const newest = `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'change'`
      this.lastChange = readNumber(this.#db, newest)
      this.size = {
        records: this.#count(LIVE_RECORDS, { now }),
        changes: this.#count(LIVE_CHANGES, this.#times),
      }
    } catch (thrown) {
      this.#db.close()
      throw thrown instanceof StoreError ? thrown : unreadable(path, thrown)
    }
  }

  records(): Iterable<WholeRecord> {
    const columns = 'kind, key, value, version, expires_at, used_at, family, subject, client, business'
    return this.#rows(`SELECT ${columns} ${LIVE_RECORDS}`, { now: this.#now })
  }

  changes(): Iterable<ChangeRow> {
    const columns = 'sequence, topic, value, expires_at, runs_until'
    return this.#rows(`SELECT ${columns} ${LIVE_CHANGES} ORDER BY sequence`, this.#times)
  }

  close(): void {
    this.#db.close()
  }

  get #times(): { now: number; ran: number } {
    return { now: this.#now, ran: this.ran }
  }

  #count(from: string, parameters: Record<string, number>): number {
    return Number(this.#db.prepare(`SELECT count(*) AS n ${from}`).get(parameters)?.['n'])
  }

  #rows<T>(sql: string, parameters: Record<string, number>): Iterable<T> {
    return this.#db.prepare(sql).iterate(parameters) as Iterable<T>
  }
}

const unreadable = (path: string, thrown: unknown): StoreError =>
  new StoreError(`The store ${path} cannot be read: ${reasonOf(thrown)}`, { cause: thrown })
