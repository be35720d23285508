import type { StoreIndex } from '../contracts/store.ts'

const MINUTE = 60_000

/** `expiresAt` in milliseconds since the epoch; undefined: never. */
export interface Expiring {
  readonly expiresAt: number | undefined
}

/** Groups items by the minute in which they expire, so that finding the expired ones does not scan the others. */
export class ExpiryBuckets<T extends Expiring> {
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
export interface MemoryRecord {
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
export class MemoryRecords {
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
