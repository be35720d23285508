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
} from '../../../base/contracts/records/store.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { byEscapedKey, byKey, escapedKey } from '../../../base/kernel/key-order.ts'
import { NO_MARK, toPage } from '../feed/feed-changes.ts'

const MINUTE = 60_000

/** `expiresAt` in milliseconds since the epoch; undefined: never. */
interface Expiring {
  readonly expiresAt: number | undefined
}

/** Groups items by the minute in which they expire, so that finding the expired ones does not scan the others. */
class ExpiryBuckets<T extends Expiring> {
  readonly #minutes = new Map<number, Set<T>>()

  add(item: T): void {
    const minute = minuteOf(item)
    if (minute === undefined) return
    const bucket = this.#minutes.get(minute)
    if (bucket) bucket.add(item)
    else this.#minutes.set(minute, new Set([item]))
  }

  delete(item: T): void {
    const minute = minuteOf(item)
    if (minute === undefined) return
    const bucket = this.#minutes.get(minute)
    bucket?.delete(item)
    if (bucket?.size === 0) this.#minutes.delete(minute)
  }

  /** At most `limit` items that have expired by `now` (milliseconds since the epoch). They stay until `delete`. */
  expired(now: number, limit: number): T[] {
    const found: T[] = []
    for (const [minute, bucket] of this.#minutes) {
      if (minute * MINUTE > now) continue
      for (const item of bucket) {
        if (item.expiresAt === undefined || item.expiresAt > now) continue
        if (found.length === limit) return found
        found.push(item)
      }
    }
    return found
  }
}

const minuteOf = ({ expiresAt }: Expiring): number | undefined =>
  expiresAt === undefined ? undefined : Math.floor(expiresAt / MINUTE)

/** A record of the memory store. It is never changed in place: `put` replaces it by another. */
interface MemoryRecord {
  readonly kind: string
  readonly key: string
  /** JSON: a copy, and the same copy that a store on disk would give back. */
  readonly text: string
  readonly version: number
  readonly expiresAt: number | undefined
  readonly usedAt: number | undefined
  readonly indexes: Readonly<Partial<Record<StoreIndex, string>>>
}

/** Records by key, by kind, by index value and by expiry, so that no verb needs a scan. */
class MemoryRecords {
  readonly #kinds = new Map<string, Map<string, MemoryRecord>>()
  readonly #indexed = new Map<string, Set<MemoryRecord>>()
  readonly #endings = new ExpiryBuckets<MemoryRecord>()

  get(kind: string, key: string): MemoryRecord | undefined {
    return this.#kinds.get(kind)?.get(key)
  }

  put(record: MemoryRecord): void {
    const before = this.get(record.kind, record.key)
    if (before) this.delete(before)
    const ofKind = this.#kinds.get(record.kind) ?? new Map<string, MemoryRecord>()
    this.#kinds.set(record.kind, ofKind.set(record.key, record))
    for (const place of placesOf(record)) {
      const bucket = this.#indexed.get(place) ?? new Set<MemoryRecord>()
      this.#indexed.set(place, bucket.add(record))
    }
    this.#endings.add(record)
  }

  delete(record: MemoryRecord): void {
    this.#kinds.get(record.kind)?.delete(record.key)
    for (const place of placesOf(record)) {
      const bucket = this.#indexed.get(place)
      bucket?.delete(record)
      if (bucket?.size === 0) this.#indexed.delete(place)
    }
    this.#endings.delete(record)
  }

  ofKind(kind: string): MemoryRecord[] {
    return [...(this.#kinds.get(kind)?.values() ?? [])]
  }

  indexedBy(index: StoreIndex, value: string): MemoryRecord[] {
    return [...(this.#indexed.get(placeOf(index, value)) ?? [])]
  }

  expired(now: number, limit: number): MemoryRecord[] {
    return this.#endings.expired(now, limit)
  }
}

const placeOf = (index: string, value: string): string => `${index}\0${value}`

const placesOf = ({ indexes }: MemoryRecord): string[] =>
  Object.entries(indexes).map(([index, value]) => placeOf(index, value))

interface KeptChange extends Expiring {
  readonly sequence: number
  readonly topic: string
  readonly text: string
  /** Clock.monotonic(), since this store is as old as its process; undefined: for ever. */
  readonly runsUntil: number | undefined
}

/** For tests, and for deployments that keep nothing (sidecar). Atomic: a verb runs within one turn. */
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
