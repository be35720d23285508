import { LRUCache } from 'lru-cache'
import type { Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import type { PersonRecord } from '../schema.ts'

/** What a module said: a user, or that there is none. */
export interface Answered {
  readonly record: PersonRecord | undefined
}

/** A bounded cache whose entries expire by our clock. As in stored-directory.ts: read each time, and never at 0. */
export const timedCache = <T extends object | true>(
  most: number,
  ttl: number,
  clock: Clock,
): LRUCache<string, T> =>
  new LRUCache({ max: most, ttl, ttlResolution: 0, perf: { now: () => clock.monotonic() + 1 } })

/** Lookups of one kind that run at once. More are refused: invented names must not end refreshing. */
const AT_ONCE = 32

/** Lookups of one kind: remembered, one flight a key, a bounded number of flights. */
export class Lookups {
  readonly #kept: LRUCache<string, Answered>
  readonly #flights = new Map<string, Promise<Answered>>()

  constructor(most: number, ttl: number, clock: Clock) {
    this.#kept = timedCache(most, ttl, clock)
  }

  /** Rejects as `look` does, and with Fault `people_unavailable` if too many are under way. */
  async find(key: string, look: () => Promise<Answered>): Promise<Answered> {
    const known = this.#kept.get(key) ?? this.#flights.get(key)
    if (known !== undefined) return known
    if (this.#flights.size >= AT_ONCE)
      throw new Fault('people_unavailable', {
        detail: `directory.people: ${AT_ONCE} lookups are under way`,
        retryAfter: 1,
      })
    const flight = look().finally(() => this.#flights.delete(key))
    this.#flights.set(key, flight)
    return flight
  }

  keep(key: string, answered: Answered): void {
    this.#kept.set(key, answered)
  }
}
