const MINUTE = 60_000

/** Anything that ends at a moment, in milliseconds since the epoch; never, if undefined. */
export interface Ending {
  readonly expiresAt: number | undefined
}

/** Finds what has ended without looking at what has not: items stand by the minute in which they end. */
export class ExpiryBuckets<T extends Ending> {
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

  /** At most `limit` items that have ended by `now`. They stay until they are deleted. */
  ended(now: number, limit: number): T[] {
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

const minuteOf = ({ expiresAt }: Ending): number | undefined =>
  expiresAt === undefined ? undefined : Math.floor(expiresAt / MINUTE)
