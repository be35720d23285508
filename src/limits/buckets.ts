import type { Tallies } from '../contracts/admission.ts'

interface Bucket {
  readonly key: string
  rate: Rate
  /** Calls left, as of `at`. Below 0 where other workers let in what this one had let in too: a debt, paid by waiting. */
  tokens: number
  /** Milliseconds, monotonic. */
  at: number
  /** Let in here since the others were last told. */
  untold: number
}

/** A call, as sums of fractions reach it. */
const ONE = 1 - 1e-9

/** Entries looked at for room when a full table gets a new one: the cost of a flood of keys stays constant. */
const LOOKED_AT = 8

/**
 * Token buckets by key (C4.5). One that has filled up says nothing and is forgotten, so that the table holds who calls
 * now, not whoever called once; beyond `most`, those nearest to full make room, and begin afresh if they come again.
 *
 * `take` is on the path of every call: one look-up, no allocation for a known key.
 */
export class Buckets {
  readonly #buckets = new Map<string, Bucket>()
  readonly #most: number
  /** Undefined where nobody is to be told. */
  #untold: Bucket[] | undefined
  #sweep: Iterator<Bucket> | undefined

  /** @param shared whether other workers let in calls of the same budgets, and are told of ours */
  constructor(most: number, shared: boolean) {
    this.#most = most
    this.#untold = shared ? [] : undefined
  }

  get size(): number {
    return this.#buckets.size
  }

  /**
   * Takes one call out of a key's bucket. Answers what is left, 0 or more; if nothing was there, minus the
   * milliseconds until one call will be.
   * @param now milliseconds, monotonic
   */
  take(key: string, rate: Rate, now: number): number {
    const bucket = this.#filled(key, rate, now)
    if (bucket.tokens < ONE) return (bucket.tokens - 1) / rate.perMs
    bucket.tokens -= 1
    if (this.#untold !== undefined) {
      if (bucket.untold === 0) this.#untold.push(bucket)
      bucket.untold += 1
    }
    return bucket.tokens
  }

  /** Other workers have let in so many calls of the key. */
  charge(key: string, rate: Rate, count: number, now: number): void {
    this.#filled(key, rate, now).tokens -= count
  }

  /**
   * What was let in here since the last time, for the others.
   * @param least keys with no more than that are left out, and never told
   */
  takeUnreported(least: (rate: Rate) => number): Tallies {
    const keys: string[] = []
    const counts: number[] = []
    for (const bucket of this.#untold ?? []) {
      if (bucket.untold > least(bucket.rate)) {
        keys.push(bucket.key)
        counts.push(bucket.untold)
      }
      bucket.untold = 0
    }
    if (this.#untold !== undefined) this.#untold = []
    return { keys, counts }
  }

  /** Looks at some entries, going on where the last time ended, and forgets those that are full. */
  sweep(count: number, now: number): void {
    for (let looked = 0; looked < count; looked++) {
      const bucket = this.#nextSwept()
      if (bucket === undefined) return
      if (restOf(bucket, now) === 0) this.#buckets.delete(bucket.key)
    }
  }

  /** Undefined once at the end of each round. */
  #nextSwept(): Bucket | undefined {
    this.#sweep ??= this.#buckets.values()
    const entry = this.#sweep.next()
    if (entry.done !== true) return entry.value
    this.#sweep = undefined
    return undefined
  }

  #filled(key: string, rate: Rate, now: number): Bucket {
    const bucket = this.#buckets.get(key)
    if (bucket === undefined) return this.#open(key, rate, now)
    const tokens = bucket.tokens + (now - bucket.at) * rate.perMs
    bucket.tokens = tokens > rate.burst ? rate.burst : tokens
    bucket.at = now
    bucket.rate = rate
    return bucket
  }

  #open(key: string, rate: Rate, now: number): Bucket {
    if (this.#buckets.size >= this.#most) this.#makeRoom(now)
    const bucket = { key, rate, tokens: rate.burst, at: now, untold: 0 }
    this.#buckets.set(key, bucket)
    return bucket
  }

  /** Forgets, of the entries looked at, the one that says least: whoever calls much is not forgotten for those who call once. */
  #makeRoom(now: number): void {
    let least: Bucket | undefined
    for (let looked = 0; looked < LOOKED_AT; looked++) {
      const bucket = this.#nextSwept()
      if (bucket === undefined) continue
      if (least === undefined || restOf(bucket, now) < restOf(least, now)) least = bucket
    }
    if (least !== undefined) this.#buckets.delete(least.key)
  }
}

/** What is missing for the bucket to be full, as a part of it: 0 for one that may be forgotten. */
const restOf = ({ tokens, at, rate }: Bucket, now: number): number =>
  Math.max(0, rate.burst - tokens - (now - at) * rate.perMs) / rate.burst

/** A rate, as the buckets reckon with it. */
export interface Rate {
  /** Calls per millisecond. */
  readonly perMs: number
  /** Calls at once, after a rest. */
  readonly burst: number
  /** Calls in one window, as configured. */
  readonly requests: number
  /** `RateLimit-Policy`, ready to send. */
  readonly policy: string
}

export interface RateSettings {
  readonly requests: number
  /** Milliseconds; whole seconds. */
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
