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
