import type {
  AppendOptions,
  Entry,
  FeedPage,
  FeedPlace,
  IndexValues,
  NewEntry,
  NewRecord,
  PageQuery,
  Store,
  StoredValue,
  StoreIndex,
} from '../../../base/contracts/records/store.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { escapedKey } from '../../../base/kernel/key-order.ts'
import { NO_MARK, removeInBatches, toChange, toEntry, wholeTime } from '../link/rows.ts'
import type { SqlitePlan } from './sqlite-file.ts'
import type { SqliteRequests } from './sqlite-link.ts'
import { columnsOf, type NewRow, partOf, type Times } from './sqlite-verbs.ts'
import type { TroubleListener } from '../link/store-error.ts'

/** A store over SQLite, in a file or in memory. */
export class SqliteStore implements Store {
  readonly #links: SqliteRequests
  readonly #clock: Clock

  /** How long the service had run on this store, in milliseconds, when this process opened it. */
  readonly #ranBefore: number
  readonly #openedAt: number

  /** @param ranBefore milliseconds that the service had run on this store before */
  protected constructor(links: SqliteRequests, clock: Clock, ranBefore: number) {
    this.#links = links
    this.#clock = clock
    this.#ranBefore = ranBefore
    this.#openedAt = clock.monotonic()
  }

  /**
   * Opens one file for all processes of a machine; not on network file systems, whose locks are unreliable. Rejects with StoreError
   * if the file cannot be used (T7).
   */
  static async open(plan: SqlitePlan, clock: Clock, onTrouble?: TroubleListener): Promise<SqliteStore> {
    const links = await openLinks(plan, onTrouble)
    try {
      return new SqliteStore(links, clock, await links.read('running'))
    } catch (error) {
      await links.close()
      throw error
    }
  }

  get trouble(): string | undefined {
    return this.#links.trouble
  }

  get refusesWrites(): string | undefined {
    return this.#links.refusesWrites
  }

  get patience(): number | undefined {
    return this.#links.patience
  }

  create(kind: string, key: string, entry: NewEntry): Promise<boolean> {
    return this.#links.write('create', this.#now(), kind, escapedKey(key), rowOf(entry))
  }

  async find(kind: string, key: string): Promise<Entry | undefined> {
    const row = await this.#links.read('find', this.#now(), kind, escapedKey(key))
    return row && toEntry(row)
  }

  async consume(kind: string, key: string): Promise<{ first: boolean; entry: Entry } | undefined> {
    const taken = await this.#links.write('consume', this.#now(), kind, escapedKey(key))
    return taken && { first: taken.first, entry: toEntry(taken.row) }
  }

  async redeem(
    kind: string,
    key: string,
    { value, expiresAt }: { value: StoredValue; expiresAt?: number | undefined },
    creates: readonly NewRecord[],
  ): Promise<{ first: boolean; entry: Entry } | undefined> {
    const next = { value: JSON.stringify(value), expiresAt: wholeTime(expiresAt) }
    const rows = creates.map((record) => ({
      kind: record.kind,
      key: escapedKey(record.key),
      row: rowOf(record),
    }))
    const taken = await this.#links.write('redeem', this.#now(), kind, escapedKey(key), next, rows)
    return taken && { first: taken.first, entry: toEntry(taken.row) }
  }

  replace(
    kind: string,
    key: string,
    version: number,
    value: StoredValue,
    expiresAt?: number,
  ): Promise<boolean> {
    const text = JSON.stringify(value)
    return this.#links.write(
      'replace',
      this.#now(),
      kind,
      escapedKey(key),
      version,
      text,
      wholeTime(expiresAt),
    )
  }

  remove(kind: string, key: string, version?: number): Promise<boolean> {
    return this.#links.write('remove', this.#now(), kind, escapedKey(key), version ?? null)
  }

  list(kind: string, page?: PageQuery): Promise<readonly Entry[]> {
    return this.pageBy(kind, {}, page)
  }

  listBy(kind: string, index: StoreIndex, value: string): Promise<readonly Entry[]> {
    return this.pageBy(kind, { [index]: value })
  }

  async pageBy(kind: string, where: IndexValues, page?: PageQuery): Promise<readonly Entry[]> {
    const rows = await this.#links.read('pageBy', this.#now(), kind, columnsOf(where), partOf(page))
    return rows.map(toEntry)
  }

  removeBy(kind: string, where: IndexValues): Promise<number> {
    const columns = columnsOf(where)
    return removeInBatches((most) => this.#links.write('removeBy', this.#now(), kind, columns, most))
  }

  countBy(kind: string, where: IndexValues): Promise<number> {
    return this.#links.read('countBy', this.#now(), kind, columnsOf(where))
  }

  async lastUseBy(kind: string, where: IndexValues): Promise<number | undefined> {
    return (await this.#links.read('lastUseBy', this.#now(), kind, columnsOf(where))) ?? undefined
  }

  async append(
    topic: string,
    value: StoredValue,
    { expiresAt, above = 0 }: AppendOptions = {},
  ): Promise<FeedPlace> {
    const text = JSON.stringify(value)
    const sequence = await this.#links.write(
      'append',
      this.#times(),
      topic,
      text,
      wholeTime(expiresAt),
      above,
    )
    return { sequence, mark: NO_MARK }
  }

  async changes(after: FeedPlace | undefined, limit: number): Promise<FeedPage> {
    const times = this.#times()
    const rows = await this.#links.read('changes', times, after?.sequence ?? 0, limit + 1)
    const changes = rows.slice(0, limit).map((row) => toChange(row, times.ran))
    const newest = changes.at(-1)
    const last = newest === undefined ? after : { sequence: newest.sequence, mark: NO_MARK }
    return { changes, last, now: times.now, restarted: false, more: rows.length > limit }
  }

  /** The processes of one machine share this store. Each of them may do the work of a lease. */
  hold(): Promise<boolean> {
    return Promise.resolve(true)
  }

  release(): Promise<void> {
    return Promise.resolve()
  }

  async purge(limit: number): Promise<number> {
    const times = this.#times()
    await this.#links.write('ran', times.ran)
    return this.#links.write('purge', times, limit)
  }

  readonly forget = (): Promise<boolean> => this.#links.write('forget')

  close(): Promise<void> {
    return this.#links.close()
  }

  #now(): number {
    return this.#clock.now()
  }

  #times(): Times {
    const ran = this.#ranBefore + Math.floor(this.#clock.monotonic() - this.#openedAt)
    return { now: Math.floor(this.#now()), ran }
  }
}

/** Only the code of the way in use is loaded. */
async function openLinks(plan: SqlitePlan, onTrouble?: TroubleListener): Promise<SqliteRequests> {
  if (plan.here === true) return new (await import('./sqlite-here.ts')).SqliteHere(plan, onTrouble)
  return (await import('./sqlite-link.ts')).SqliteLinks.open(plan, onTrouble)
}

const rowOf = ({ value, expiresAt, indexes = {} }: NewEntry): NewRow => ({
  value: JSON.stringify(value),
  expiresAt: wholeTime(expiresAt),
  ...columnsOf(indexes),
})
