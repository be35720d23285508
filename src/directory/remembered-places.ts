/** What this process knows of a business of the store, and for how long. */
import { Fault } from '../kernel/faults.ts'
import type { OpenBusiness } from './find-places.ts'

/** What this process knows of a business of the store. Times are of Clock.monotonic(). */
export interface RememberedBusiness {
  /** Undefined: there is none, or it is disabled. */
  readonly business: OpenBusiness | undefined
  readonly readAt: number
  /** When each fund was read: those that exist, and those that do not. */
  readonly funds: Map<string, number>
  readonly missing: Map<string, number>
  /** Whether `funds` has all that there are. */
  readonly hasAllFunds?: boolean
}

/** Funds of one business that are remembered, and of those that somebody has named and that do not exist. */
const FUNDS_OF_ONE = 20_000
const MISSING_OF_ONE = 1000
/** Milliseconds that a call waits for a place that nobody knows here. */
const LOOK_WITHIN = 300
/** Milliseconds after which a place is read again, beside the calls that go on with what is known. */
export const FRESH_FOR = 30_000
/** Milliseconds for which a place is used while the store cannot be reached: an access token lives as long by default. */
export const KEPT_FOR = 15 * 60_000

/** Rejects with Fault `identity_unavailable` after 300 ms. */
export async function withinPatience<T>(looked: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const late = new Fault('identity_unavailable', {
    detail: 'the store did not tell in time whether a place exists',
    retryAfter: 1,
  })
  const timer = setTimeout(() => reject(late), LOOK_WITHIN)
  try {
    return await Promise.race([looked, promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Whether a business that lists its funds has one; undefined if that is not known here. */
export function hasFund(
  { funds, missing }: RememberedBusiness,
  fund: string,
  now: number,
): boolean | undefined {
  const readAt = funds.get(fund)
  if (readAt !== undefined) return now - readAt > KEPT_FOR ? undefined : true
  const missedAt = missing.get(fund)
  return missedAt !== undefined && now - missedAt <= FRESH_FOR ? false : undefined
}

/** How many places these are. */
export const sizeOf = ({ funds, missing }: RememberedBusiness): number => 1 + funds.size + missing.size

/** Remembers when a fund was read. The oldest one goes where there are too many. */
export function remember(times: Map<string, number>, fund: string, now: number, exists: boolean): void {
  times.delete(fund)
  if (times.size >= (exists ? FUNDS_OF_ONE : MISSING_OF_ONE)) times.delete(times.keys().next().value ?? '')
  times.set(fund, now)
}
