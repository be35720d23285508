import type { Change, Entry, NewEntry, Page, Store, StoredValue, StoreIndex } from '../contracts/store.ts'
import type { Clock } from '../kernel/clock.ts'
import type { SqlitePlan } from './sqlite-file.ts'
import { SqliteLink } from './sqlite-link.ts'
import { keyToColumn, toChange, toEntry } from './sqlite-rows.ts'
import { toText } from './value-text.ts'

/**
 * The store contract in one SQLite file, shared by all processes of a machine (not over a network file system: its
 * locks are not to be trusted there). See README.md for what survives what.
 */
export class SqliteStore implements Store {
  readonly #link: SqliteLink
  readonly #clock: Clock

  private constructor(link: SqliteLink, clock: Clock) {
    this.#link = link
    this.#clock = clock
  }

  /** Rejects with StoreError if the file is not fit to be used (T7). */
  static async open(plan: SqlitePlan, clock: Clock): Promise<SqliteStore> {
    return new SqliteStore(await SqliteLink.open(plan), clock)
  }

  create(kind: string, key: string, { value, expiresAt, indexes = {} }: NewEntry): Promise<boolean> {
    return this.#link.ask('create', this.#now(), kind, keyToColumn(key), {
      value: toText(value),
      expiresAt: expiresAt ?? null,
      family: column(indexes.family),
      subject: column(indexes.subject),
      client: column(indexes.client),
      business: column(indexes.business),
    })
  }

  async find(kind: string, key: string): Promise<Entry | undefined> {
    const row = await this.#link.ask('find', this.#now(), kind, keyToColumn(key))
    return row && toEntry(row)
  }

  async consume(kind: string, key: string): Promise<{ first: boolean; entry: Entry } | undefined> {
    const taken = await this.#link.ask('consume', this.#now(), kind, keyToColumn(key))
    return taken && { first: taken.first, entry: toEntry(taken.row) }
  }

  replace(
    kind: string,
    key: string,
    version: number,
    value: StoredValue,
    expiresAt?: number,
  ): Promise<boolean> {
    const text = toText(value)
    return this.#link.ask('replace', this.#now(), kind, keyToColumn(key), version, text, expiresAt ?? null)
  }

  remove(kind: string, key: string): Promise<boolean> {
    return this.#link.ask('remove', this.#now(), kind, keyToColumn(key))
  }

  async list(kind: string, page?: Page): Promise<readonly Entry[]> {
    const part = { after: column(page?.after), limit: page?.limit ?? ALL }
    return (await this.#link.ask('list', this.#now(), kind, part)).map(toEntry)
  }

  async listBy(kind: string, index: StoreIndex, value: string): Promise<readonly Entry[]> {
    return (await this.#link.ask('listBy', this.#now(), kind, index, keyToColumn(value))).map(toEntry)
  }

  removeBy(index: StoreIndex, value: string, kind?: string): Promise<number> {
    return this.#link.ask('removeBy', this.#now(), index, keyToColumn(value), kind ?? null)
  }

  async increment(key: string, windowMs: number): Promise<{ count: number; endsAt: number }> {
    const row = await this.#link.ask('increment', this.#now(), keyToColumn(key), windowMs)
    return { count: row.count, endsAt: row.ends_at }
  }

  append(topic: string, value: StoredValue, expiresAt?: number): Promise<number> {
    return this.#link.ask('append', topic, toText(value), expiresAt ?? null)
  }

  async changes(sequence: number): Promise<readonly Change[]> {
    return (await this.#link.ask('changes', this.#now(), sequence)).map(toChange)
  }

  purge(limit: number): Promise<number> {
    return this.#link.ask('purge', this.#now(), limit)
  }

  close(): Promise<void> {
    return this.#link.close()
  }

  #now(): number {
    return this.#clock.now()
  }
}

/** As SQLite's LIMIT has it. */
const ALL = -1

const column = (value: string | undefined): string | null => (value === undefined ? null : keyToColumn(value))
