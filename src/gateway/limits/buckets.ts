import type { BucketRate, BucketUse, Tallies } from '../../base/contracts/calls/admission.ts'

interface Bucket {
  readonly key: string
  rate: BucketRate
  /** Calls left, as of `at`. Below 0 if several workers let in the same last calls: then the client waits longer. */
  tokens: number
  /** When `tokens` was right, in monotonic milliseconds. */
  at: number
  /** Calls let in here that the other workers do not know of yet. */
  unreported: number
}

/** One call. A sum of fractions may miss 1 by a rounding error. */
export const ONE = 1 - 1e-9

/** Entries examined to make room in a full table: a flood of keys costs no more per key. */
const LOOKED_AT = 8

/**
 * Token buckets by key (C4.5). A full bucket is forgotten, because a new one is full too: so the table holds only keys that
 * called lately. Where it holds `most` buckets, one that is nearly full makes room for a new one.
 *
 * `take` runs for every call: one look-up, and no allocation for a known key.
 */
export class Buckets {
  readonly #buckets = new Map<string, Bucket>()
  readonly #most: number
  /** Buckets with unreported calls. Undefined if there is one worker. */
  #unreported: Bucket[] | undefined
  #sweep: Iterator<Bucket> | undefined

  /** @param shared whether other workers let in calls of the same keys, and need to know of ours */
  constructor(most: number, shared: boolean) {
    this.#most = most
    this.#unreported = shared ? [] : undefined
  }

  get size(): number {
    return this.#buckets.size
  }

  /**
   * Takes one call out of a key's bucket.
   * @returns the calls that are left, 0 or more; if there was none, minus the milliseconds until there is one
   * @param now milliseconds, monotonic
   */
  take(key: string, rate: BucketRate, now: number): number {
    const bucket = this.#filled(key, rate, now)
    if (bucket.tokens < ONE) return waitOf(bucket.tokens, rate)
    bucket.tokens -= 1
    if (this.#unreported !== undefined) {
      if (bucket.unreported === 0) this.#unreported.push(bucket)
      bucket.unreported += 1
    }
    return bucket.tokens
  }

  /** What `take` would answer. Takes nothing, and opens no bucket. */
  peek(key: string, rate: BucketRate, now: number): number {
    const bucket = this.#buckets.get(key)
    const tokens = bucket === undefined ? rate.burst : tokensOf(bucket, rate, now)
    return tokens < ONE ? waitOf(tokens, rate) : tokens - 1
  }

  /** Takes out calls that other workers let in. */
  charge(key: string, rate: BucketRate, count: number, now: number): void {
    this.#filled(key, rate, now).tokens -= count
  }

  /**
   * The calls that were let in here since the last time, for the other workers.
   * @param least calls: keys with no more than that are left out, and never reported
   */
  takeUnreported(least: (rate: BucketRate) => number): Tallies {
    const usage = this.takeUsage(least)
    return { keys: usage.map(({ key }) => key), counts: usage.map(({ count }) => count) }
  }

  /** The same with the rates, for a budget that knows none. */
  takeUsage(least: (rate: BucketRate) => number): readonly BucketUse[] {
    const usage: BucketUse[] = []
    for (const bucket of this.#unreported ?? []) {
      const { key, rate, unreported: count } = bucket
      if (count > least(rate)) usage.push({ key, rate, count })
      bucket.unreported = 0
    }
    if (this.#unreported !== undefined) this.#unreported = []
    return usage
  }

  /** Lowers a key's remaining calls to the number that others know of. */
  limitTo(key: string, left: number): void {
    const bucket = this.#buckets.get(key)
    if (bucket !== undefined) bucket.tokens = Math.min(bucket.tokens, left)
  }

  /** Forgets full buckets among the next `count` ones; begins where the last time ended. */
  sweep(count: number, now: number): void {
    for (let looked = 0; looked < count; looked++) {
      const bucket = this.#nextSwept()
      if (bucket === undefined) return
      if (missingOf(bucket, now) === 0) this.#buckets.delete(bucket.key)
    }
  }

  /** Undefined once, at the end of each round. */
  #nextSwept(): Bucket | undefined {
    this.#sweep ??= this.#buckets.values()
    const entry = this.#sweep.next()
    if (entry.done !== true) return entry.value
    this.#sweep = undefined
    return undefined
  }

  #filled(key: string, rate: BucketRate, now: number): Bucket {
    const bucket = this.#buckets.get(key)
    if (bucket === undefined) return this.#open(key, rate, now)
    bucket.tokens = tokensOf(bucket, rate, now)
    bucket.at = now
    bucket.rate = rate
    return bucket
  }

  #open(key: string, rate: BucketRate, now: number): Bucket {
    if (this.#buckets.size >= this.#most) this.#makeRoom(now)
    const bucket = { key, rate, tokens: rate.burst, at: now, unreported: 0 }
    this.#buckets.set(key, bucket)
    return bucket
  }

  /** Forgets the fullest of some buckets, so that a key that calls much is not forgotten for keys that call once. */
  #makeRoom(now: number): void {
    let least: Bucket | undefined
    for (let looked = 0; looked < LOOKED_AT; looked++) {
      const bucket = this.#nextSwept()
      if (bucket === undefined) continue
      if (least === undefined || missingOf(bucket, now) < missingOf(least, now)) least = bucket
    }
    if (least !== undefined) this.#buckets.delete(least.key)
  }
}

function tokensOf({ tokens, at }: Bucket, rate: BucketRate, now: number): number {
  const filled = tokens + (now - at) * rate.perMs
  return filled > rate.burst ? rate.burst : filled
}

/** Minus the milliseconds until there is a call. */
const waitOf = (tokens: number, rate: BucketRate): number => (tokens - 1) / rate.perMs

/** The part of a bucket that is missing, 0 to 1 and more. A bucket with 0 may be forgotten. */
const missingOf = ({ tokens, at, rate }: Bucket, now: number): number =>
  Math.max(0, rate.burst - tokens - (now - at) * rate.perMs) / rate.burst

export interface Rate extends BucketRate {
  /** Calls in one window, as configured. */
  readonly requests: number
  /** `RateLimit-Policy`, ready to send. */
  readonly policy: string
}

interface RateSettings {
  readonly requests: number
  /** The length of the window in milliseconds; whole seconds. */
  readonly per: number
  readonly burst?: number
}

/** The name of the policy in both headers. */
const NAME = '"client"'

export const compileRate = ({ requests, per, burst }: RateSettings): Rate => ({
  perMs: requests / per,
  burst: burst ?? requests,
  requests,
  policy: `${NAME};q=${String(requests)};w=${String(per / 1000)}`,
})

/**
 * `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-09, structured fields): `r`, calls that may
 * be made at once, never more than the policy's `q`, `t`, seconds until the bucket is full again, or, where nothing is
 * left, until the next call may be made (then it equals Retry-After).
 * @param left what `Buckets.take` answered
 */
export function rateHeaders(rate: Rate, left: number): Readonly<Record<string, string>> {
  const remaining = left < 0 ? 0 : Math.min(rate.requests, Math.floor(left))
  const waitMs = left < 0 ? -left : (rate.burst - left) / rate.perMs
  return {
    RateLimit: `${NAME};r=${String(remaining)};t=${String(Math.ceil(waitMs / 1000))}`,
    'RateLimit-Policy': rate.policy,
  }
}
