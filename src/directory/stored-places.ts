import { LRUCache } from 'lru-cache'
import type { Business, Places } from '../contracts/places.ts'
import type { Change, Feed, Store } from '../contracts/store.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import type { Code } from '../scopes/scope-token.ts'
import { findBusiness, findFund, type OpenBusiness } from './find-places.ts'
import { FUND, fundKey, stored } from './place-records.ts'
import { PreviewedPlaces } from './previewed-places.ts'
import { announce, DIRECTORY_TOPIC } from './stored-directory.ts'

/** What this process knows of a business of the store. Times are of Clock.monotonic(). */
interface Known {
  /** Undefined: there is none, or it is disabled. */
  readonly business: OpenBusiness | undefined
  readonly readAt: number
  /** When each fund was read: those that exist, and those that do not. */
  readonly funds: Map<string, number>
  readonly missing: Map<string, number>
}

export interface StoredPlacesParts {
  readonly store: Pick<Store, 'find' | 'create'>
  readonly feed: Pick<Feed, 'subscribe' | 'append'>
  readonly clock: Clock
}

/** Businesses and funds that are remembered, all together: some 20 MB at most. */
const REMEMBERED = 100_000
/** Funds of one business that are remembered, and of those that somebody has named and that do not exist. */
const FUNDS_OF_ONE = 20_000
const MISSING_OF_ONE = 1000
/** Milliseconds after which a place is read again, beside the calls that go on with what is known. */
const FRESH_FOR = 30_000
/** Milliseconds for which a place is used while the store cannot be reached: an access token lives as long by default. */
const KEPT_FOR = 15 * 60_000
/** Reads that are under way at once. Half of what may wait for the store's thread: identity endpoints need it too. */
const READS = 500
/** Reads of one list of businesses that are under way at once. */
const AT_ONCE = 64

/**
 * The businesses and funds of the store, read by key and remembered. The change feed announces every change, so a change
 * is in force here within a second. Places that do not exist are remembered apart, so that guessed funds push out
 * nothing. Methods reject with Fault `identity_unavailable` if the store cannot be reached, or too many reads are under
 * way.
 */
export class StoredPlaces implements Places {
  readonly #parts: StoredPlacesParts
  readonly #known = new LRUCache<string, Known>({ maxSize: REMEMBERED, sizeCalculation: sizeOf })
  /** The reads that are under way, by key. What is read while its change is announced may be old: it leaves this map. */
  readonly #reads = new Map<string, Promise<unknown>>()

  constructor(parts: StoredPlacesParts) {
    this.#parts = parts
    parts.feed.subscribe(DIRECTORY_TOPIC, {
      apply: (change) => this.#forget(change),
      reset: () => this.#forgetAll(),
    })
  }

  exists(code: string, fund?: string): boolean | undefined {
    const known = this.#known.get(code)
    const now = this.#parts.clock.monotonic()
    if (known === undefined || now - known.readAt > KEPT_FOR) return undefined
    if (now - known.readAt > FRESH_FOR) this.#again(code)
    if (known.business === undefined) return false
    if (fund === undefined || known.business.anyFund) return true
    const readAt = known.funds.get(fund)
    if (readAt !== undefined && now - readAt > FRESH_FOR) this.#again(code, fund)
    return hasFund(known, fund, now)
  }

  /** As `exists`, and nothing is read again. */
  known(code: string, fund?: string): boolean | undefined {
    const known = this.#known.peek(code)
    const now = this.#parts.clock.monotonic()
    if (known === undefined || now - known.readAt > KEPT_FOR) return undefined
    if (known.business === undefined) return false
    return fund === undefined || known.business.anyFund || hasFund(known, fund, now)
  }

  async look(code: string, fund?: string): Promise<boolean> {
    const known = this.exists(code, fund)
    if (known !== undefined) return known
    const { business } = await this.#business(code)
    if (business === undefined) return false
    return fund === undefined || business.anyFund || this.#fund(code, fund)
  }

  async findBusinesses(codes: Iterable<string>): Promise<ReadonlyMap<string, Business>> {
    const found = new Map<string, Business>()
    const rest = [...codes]
    while (rest.length > 0)
      for (const { business } of await Promise.all(
        rest.splice(0, AT_ONCE).map((code) => this.#business(code)),
      ))
        if (business !== undefined) found.set(business.code, business)
    return found
  }

  preview(): Places {
    return new PreviewedPlaces(this, this.#parts.store)
  }

  /** Writes a fund that a backend has created, if the business lists its funds. In force here when this resolves. */
  async addFund(code: string, fund: Code): Promise<void> {
    const { store } = this.#parts
    const { business } = await this.#business(code)
    if (business === undefined || business.anyFund) return
    const key = fundKey(code, fund)
    const value = stored({ business: code, code: fund, disabled: false })
    if (await store.create(FUND, key, { value, indexes: { business: code } }))
      await announce(this.#parts, { fund: key })
  }

  /** What the store has, or what was read of it a short while ago. If it cannot be reached, what is known still counts. */
  async #business(code: string): Promise<Known> {
    const known = this.#known.get(code)
    if (known === undefined) return this.#readBusiness(code)
    const age = this.#parts.clock.monotonic() - known.readAt
    if (age <= FRESH_FOR) return known
    return age > KEPT_FOR ? this.#readBusiness(code) : this.#readBusiness(code).catch(() => known)
  }

  #readBusiness(code: string): Promise<Known> {
    return this.#read(
      code,
      async () => {
        const business = await findBusiness(this.#parts.store, code)
        const { funds, missing } = this.#known.peek(code) ?? { funds: new Map(), missing: new Map() }
        return { business, readAt: this.#parts.clock.monotonic(), funds, missing }
      },
      (known) => this.#known.set(code, known),
    )
  }

  #fund(code: string, fund: string): Promise<boolean> {
    const before = this.#known.peek(code)
    return this.#read(
      fundKey(code, fund),
      () => findFund(this.#parts.store, code, fund),
      (exists) => {
        // Of another reading of the business, which may have been removed and added again in between.
        if (before === undefined || this.#known.peek(code)?.funds !== before.funds) return
        remember(exists ? before.funds : before.missing, fund, this.#parts.clock.monotonic(), exists)
        if (exists) before.missing.delete(fund)
        else before.funds.delete(fund)
        // A copy: the cache takes the size of another value only.
        this.#known.set(code, { ...before, ...this.#known.peek(code) })
      },
    )
  }

  /** One read of a key at a time. `keep` gets what was read, unless a change of it was announced meanwhile. */
  #read<T>(key: string, read: () => Promise<T>, keep: (found: T) => void): Promise<T> {
    const underWay = this.#reads.get(key) as Promise<T> | undefined
    if (underWay !== undefined) return underWay
    if (this.#reads.size >= READS)
      return Promise.reject(
        new Fault('identity_unavailable', {
          detail: `${READS} businesses and funds are being read`,
          retryAfter: 1,
        }),
      )
    const isCurrent = (): boolean => this.#reads.get(key) === reading
    const reading = read()
      .then((found) => {
        if (isCurrent()) keep(found)
        return found
      })
      .finally(() => {
        if (isCurrent()) this.#reads.delete(key)
      })
    this.#reads.set(key, reading)
    return reading
  }

  /** Reads a place again while calls go on. If it fails, the next call tries again. */
  #again(code: string, fund?: string): void {
    if (this.#reads.has(fund === undefined ? code : fundKey(code, fund))) return
    const reading = fund === undefined ? this.#readBusiness(code) : this.#fund(code, fund)
    reading.catch(() => undefined)
  }

  #forget({ value: { business, fund, client, user, role } }: Change): void {
    if (typeof business === 'string') this.#forgetBusiness(business)
    else if (typeof fund === 'string') this.#forgetFund(fund)
    else if ([client, user, role].every((each) => each === undefined)) this.#forgetAll()
  }

  #forgetBusiness(code: string): void {
    this.#known.delete(code)
    this.#reads.delete(code)
  }

  #forgetFund(key: string): void {
    const [code = '', fund = ''] = key.split('/')
    const known = this.#known.peek(code)
    known?.funds.delete(fund)
    known?.missing.delete(fund)
    this.#reads.delete(key)
  }

  #forgetAll(): void {
    this.#known.clear()
    this.#reads.clear()
  }
}

/** Whether a business that lists its funds has one; undefined if that is not known here. */
function hasFund({ funds, missing }: Known, fund: string, now: number): boolean | undefined {
  const readAt = funds.get(fund)
  if (readAt !== undefined) return now - readAt > KEPT_FOR ? undefined : true
  const missedAt = missing.get(fund)
  return missedAt !== undefined && now - missedAt <= FRESH_FOR ? false : undefined
}

const sizeOf = ({ funds, missing }: Known): number => 1 + funds.size + missing.size

/** Remembers when a fund was read. The oldest one goes where there are too many. */
function remember(times: Map<string, number>, fund: string, now: number, exists: boolean): void {
  times.delete(fund)
  if (times.size >= (exists ? FUNDS_OF_ONE : MISSING_OF_ONE)) times.delete(times.keys().next().value ?? '')
  times.set(fund, now)
}
