import type {
  AppendOptions,
  Change,
  Entry,
  FeedPage,
  FeedPlace,
  IndexValues,
  NewEntry,
  NewRecord,
  Page,
  Store,
  StoredValue,
  StoreIndex,
} from '../contracts/store.ts'
import type { Clock } from '../kernel/clock.ts'
import { byEscapedKey, byKey, escapedKey } from '../kernel/key-order.ts'
import { NO_MARK, toPage } from './feed-page.ts'
import { type Expiring, ExpiryBuckets, type MemoryRecord, MemoryRecords } from './memory-records.ts'

interface KeptChange extends Expiring {
  readonly sequence: number
  readonly topic: string
  readonly text: string
  /** Clock.monotonic(), since this store is as old as its process; undefined: for ever. */
  readonly runsUntil: number | undefined
}

/**
 * The store contract in the memory of this process: for tests, and for deployments that keep nothing (sidecar). Each
 * verb is atomic because it runs to its end within one turn of the event loop.
 */
export class MemoryStore implements Store {
  readonly #clock: Clock
  readonly #records = new MemoryRecords()
  /** In the order of their sequence: a Map keeps the order of insertion. */
  readonly #changes = new Map<number, KeptChange>()
  readonly #changeEndings = new ExpiryBuckets<KeptChange>()
  #sequence = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  create(kind: string, key: string, entry: NewEntry): Promise<boolean> {
    if (this.#live(kind, key)) return Promise.resolve(false)
    const { value, expiresAt, indexes = {} } = entry
    this.#records.put({
      kind,
      key,
      text: JSON.stringify(value),
      version: 1,
      expiresAt,
      usedAt: undefined,
      indexes: { ...indexes },
    })
    return Promise.resolve(true)
  }

  find(kind: string, key: string): Promise<Entry | undefined> {
    const record = this.#live(kind, key)
    return Promise.resolve(record && toEntry(record))
  }

  consume(kind: string, key: string): Promise<{ first: boolean; entry: Entry } | undefined> {
    const record = this.#live(kind, key)
    if (record === undefined) return Promise.resolve(undefined)
    if (record.usedAt !== undefined) return Promise.resolve({ first: false, entry: toEntry(record) })
    const used = { ...record, usedAt: this.#clock.now() }
    this.#records.put(used)
    return Promise.resolve({ first: true, entry: toEntry(used) })
  }

  redeem(
    kind: string,
    key: string,
    { value, expiresAt }: { value: StoredValue; expiresAt?: number | undefined },
    creates: readonly NewRecord[],
  ): Promise<{ first: boolean; entry: Entry } | undefined> {
    const record = this.#live(kind, key)
    if (record === undefined || record.usedAt !== undefined) return this.consume(kind, key)
    const used = {
      ...record,
      text: JSON.stringify(value),
      version: record.version + 1,
      expiresAt: expiresAt ?? record.expiresAt,
      usedAt: this.#clock.now(),
    }
    this.#records.put(used)
    for (const created of creates) void this.create(created.kind, created.key, created)
    return Promise.resolve({ first: true, entry: toEntry(used) })
  }

  replace(
    kind: string,
    key: string,
    version: number,
    value: StoredValue,
    expiresAt?: number,
  ): Promise<boolean> {
    const record = this.#live(kind, key)
    if (record?.version !== version) return Promise.resolve(false)
    this.#records.put({
      ...record,
      text: JSON.stringify(value),
      version: version + 1,
      expiresAt: expiresAt ?? record.expiresAt,
    })
    return Promise.resolve(true)
  }

  remove(kind: string, key: string, version?: number): Promise<boolean> {
    const record = this.#live(kind, key)
    if (record === undefined || record.version !== (version ?? record.version)) return Promise.resolve(false)
    this.#records.delete(record)
    return Promise.resolve(true)
  }

  list(kind: string, page?: Page): Promise<readonly Entry[]> {
    const all = this.#current(this.#records.ofKind(kind))
    return Promise.resolve((page ? onPage(all, page) : all).map(toEntry))
  }

  listBy(kind: string, index: StoreIndex, value: string): Promise<readonly Entry[]> {
    const records = this.#current(this.#records.indexedBy(index, value))
    return Promise.resolve(records.filter((record) => record.kind === kind).map(toEntry))
  }

  pageBy(kind: string, where: IndexValues, page: Page): Promise<readonly Entry[]> {
    return Promise.resolve(onPage(this.#current(this.#where(kind, where)), page).map(toEntry))
  }

  removeBy(kind: string, where: IndexValues): Promise<number> {
    const found = this.#where(kind, where)
    for (const record of found) this.#records.delete(record)
    return Promise.resolve(this.#current(found).length)
  }

  countBy(kind: string, where: IndexValues): Promise<number> {
    return Promise.resolve(this.#current(this.#where(kind, where)).length)
  }

  lastUseBy(kind: string, where: IndexValues): Promise<number | undefined> {
    const uses = this.#current(this.#where(kind, where)).flatMap(({ usedAt }) => usedAt ?? [])
    return Promise.resolve(uses.length === 0 ? undefined : Math.max(...uses))
  }

  append(
    topic: string,
    value: StoredValue,
    { expiresAt, above = 0 }: AppendOptions = {},
  ): Promise<FeedPlace> {
    const { now, ran } = this.#times()
    this.#sequence = Math.max(this.#sequence + 1, Math.floor(now), above + 1)
    const runsUntil = expiresAt === undefined ? undefined : ran + expiresAt - now
    const change = { sequence: this.#sequence, topic, text: JSON.stringify(value), expiresAt, runsUntil }
    this.#changes.set(change.sequence, change)
    this.#changeEndings.add(change)
    return Promise.resolve({ sequence: change.sequence, mark: NO_MARK })
  }

  changes(after: FeedPlace | undefined, limit: number): Promise<FeedPage> {
    const times = this.#times()
    // The common case: the feed polls four times a second, and almost never finds a change.
    const isBehind = (after?.sequence ?? 0) < this.#sequence
    const later = isBehind ? this.#liveAfter(after?.sequence ?? 0, times) : []
    const changes = later.slice(0, limit).map((change) => toChange(change, times))
    return Promise.resolve(toPage(changes, after, times.now, later.length > limit))
  }

  /** One process alone uses this store. */
  hold(): Promise<boolean> {
    return Promise.resolve(true)
  }

  release(): Promise<void> {
    return Promise.resolve()
  }

  purge(limit: number): Promise<number> {
    const now = this.#clock.now()
    const records = this.#records.expired(now, limit)
    for (const record of records) this.#records.delete(record)
    const changes = this.#endedChanges(limit - records.length)
    for (const change of changes) {
      this.#changeEndings.delete(change)
      this.#changes.delete(change.sequence)
    }
    return Promise.resolve(records.length + changes.length)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #times(): Times {
    return { now: this.#clock.now(), ran: this.#clock.monotonic() }
  }

  #liveAfter(sequence: number, times: Times): KeptChange[] {
    return [...this.#changes.values()].filter(
      (change) => change.sequence > sequence && !isOver(change, times),
    )
  }

  #endedChanges(limit: number): readonly KeptChange[] {
    const times = this.#times()
    const ended = this.#changeEndings.expired(times.now, Number.POSITIVE_INFINITY)
    return ended.filter((change) => isOver(change, times)).slice(0, limit)
  }

  #where(kind: string, where: IndexValues): readonly MemoryRecord[] {
    const wanted = Object.entries(where) as [StoreIndex, string][]
    const [first] = wanted
    const found = first === undefined ? this.#records.ofKind(kind) : this.#records.indexedBy(...first)
    return found.filter(
      (record) => record.kind === kind && wanted.every(([index, value]) => record.indexes[index] === value),
    )
  }

  #isLive({ expiresAt }: Expiring): boolean {
    return expiresAt === undefined || expiresAt > this.#clock.now()
  }

  #live(kind: string, key: string): MemoryRecord | undefined {
    const record = this.#records.get(kind, key)
    return record && this.#isLive(record) ? record : undefined
  }

  #current<T extends Expiring>(items: readonly T[]): T[] {
    return items.filter((item) => this.#isLive(item))
  }
}

function onPage(records: readonly MemoryRecord[], { after, limit, prefix = '' }: Page): MemoryRecord[] {
  const begin = escapedKey(prefix)
  const sorted = records
    .map((record) => ({ record, key: escapedKey(record.key) }))
    .filter(({ key }) => key.startsWith(begin))
    .sort((one, other) => byEscapedKey(one.key, other.key))
    .map(({ record }) => record)
  const later = after === undefined ? sorted : sorted.filter(({ key }) => byKey(key, after) > 0)
  return later.slice(0, limit)
}

const toEntry = ({ key, text, version, expiresAt, usedAt }: MemoryRecord): Entry => ({
  key,
  value: JSON.parse(text) as StoredValue,
  version,
  expiresAt,
  usedAt,
})

/** The wall clock (milliseconds since the epoch), and Clock.monotonic(). */
interface Times {
  readonly now: number
  readonly ran: number
}

const isOver = ({ expiresAt, runsUntil }: KeptChange, { now, ran }: Times): boolean =>
  expiresAt !== undefined && expiresAt <= now && runsUntil !== undefined && runsUntil <= ran

const toChange = ({ sequence, topic, text, expiresAt, runsUntil }: KeptChange, { ran }: Times): Change => ({
  sequence,
  mark: NO_MARK,
  topic,
  value: JSON.parse(text) as StoredValue,
  expiresAt,
  remaining: runsUntil === undefined ? undefined : runsUntil - ran,
})
