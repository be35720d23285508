import { LRUCache } from 'lru-cache'
import { type Code, readCode } from '../../../base/config/scopes/scope-token.ts'
import {
  type Business,
  type BusinessValues,
  NO_VALUES,
  type Places,
} from '../../../base/contracts/people/places.ts'
import type { Sealer } from '../../../base/contracts/people/keys.ts'
import type { Change, Entry, Feed, Store, StoredValue } from '../../../base/contracts/records/store.ts'
import { type Clock, whenLate } from '../../../base/kernel/clock.ts'
import { Fault } from '../../../base/kernel/faults.ts'
import { outsideBudgets, waitInBudget } from '../../../base/kernel/store-budget.ts'
import { BUSINESS, FUND, fundKey, type FundRecord, readBusiness, readFund, stored } from './schema.ts'
import { areOpen, openValues } from './values.ts'
import { announceChange, DIRECTORY_TOPIC, everyPage } from './stored-directory.ts'

/** The length of values that counts as one fund, in characters. */
const A_FUND = 200

interface OpenBusiness extends Business {
  readonly anyFund: boolean
  readonly values: BusinessValues
  /** Whether all secrets among them could be opened. */
  readonly areValuesOpen: boolean
  /** How many funds take as much memory as the values. Kept here, because the cache asks for it whenever a fund is added. */
  readonly sizeOfValues: number
}

type Finding = Pick<Store, 'find'>

/** Undefined: there is none, or it is disabled. */
async function findBusiness(
  { store, sealer }: Pick<StoredPlacesParts, 'sealer'> & { readonly store: Finding },
  code: string,
): Promise<OpenBusiness | undefined> {
  const entry = await store.find(BUSINESS, code)
  return entry && openBusiness(entry.value, sealer)
}

/** Rejects with Fault `identity_unavailable` if the seal cannot be read. */
async function openBusiness(
  value: StoredValue,
  sealer: Sealer | undefined,
): Promise<OpenBusiness | undefined> {
  const { name, address, phoneNumber, funds, disabled, ...written } = readBusiness(value)
  const code = readCode(written.code)
  if (disabled || code === undefined) return undefined
  const values = await openValues(code, value, sealer)
  return {
    code,
    name,
    anyFund: funds === 'any',
    values,
    areValuesOpen: areOpen(values),
    sizeOfValues: values === NO_VALUES ? 0 : Math.ceil(JSON.stringify(values.texts).length / A_FUND),
    ...(address !== undefined && { address }),
    ...(phoneNumber !== undefined && { phoneNumber }),
  }
}

const isOpenFund = (entry: Entry | undefined): boolean =>
  entry !== undefined && !readFund(entry.value).disabled

/** Whether a business that lists its funds has this one, and it is not disabled. */
const findFund = async (store: Finding, code: string, fund: string): Promise<boolean> =>
  isOpenFund(await store.find(FUND, fundKey(code, fund)))

/** The places of the store as one explanation sees them: what is known here comes first, then what the store has. */
class PreviewedPlaces implements Places {
  readonly #places: StoredPlaces
  readonly #parts: Pick<StoredPlacesParts, 'store' | 'sealer'>
  readonly #seen = new Map<string, boolean>()

  constructor(places: StoredPlaces, parts: Pick<StoredPlacesParts, 'store' | 'sealer'>) {
    this.#places = places
    this.#parts = parts
  }

  exists(code: string, fund?: string): boolean | undefined {
    return this.#seen.get(keyOf(code, fund)) ?? this.#places.known(code, fund)
  }

  async look(code: string, fund?: string): Promise<boolean> {
    const known = this.exists(code, fund)
    if (known !== undefined) return known
    const business = await findBusiness(this.#parts, code)
    const isOpen =
      business !== undefined &&
      (fund === undefined || business.anyFund || (await findFund(this.#parts.store, code, fund)))
    this.#seen.set(keyOf(code, fund), isOpen)
    return isOpen
  }

  findBusinesses(codes: Iterable<string>): Promise<ReadonlyMap<string, Business>> {
    return this.#places.findBusinesses(codes)
  }

  valuesOf(code: string): BusinessValues | undefined {
    return this.#places.knownValues(code)
  }

  async lookForValues(code: string): Promise<BusinessValues> {
    return this.valuesOf(code) ?? (await findBusiness(this.#parts, code))?.values ?? NO_VALUES
  }

  preview(): Places {
    return this
  }
}

const keyOf = (code: string, fund: string | undefined): string =>
  fund === undefined ? code : fundKey(code, fund)

/** What this process knows of a business of the store. Times are of Clock.monotonic(). */
interface RememberedBusiness {
  /** Undefined: there is none, or it is disabled. */
  readonly business: OpenBusiness | undefined
  readonly readAt: number
  /** When each fund was read: those that exist, and those that do not. */
  readonly funds: Map<string, number>
  readonly missing: Map<string, number>
  /** Whether `funds` has all that there are. */
  readonly hasAllFunds?: boolean
}

/** How many funds of one business are remembered, and how many that somebody has named and that do not exist. */
const FUNDS_OF_ONE = 20_000
const MISSING_OF_ONE = 1000
/** How long a call waits for a place that this process does not know, in milliseconds. */
const LOOK_WITHIN = 300
/** After how long a place is read again, in milliseconds. Meanwhile calls use what is known. */
const FRESH_FOR = 30_000
/** How long a place is used while the store cannot be reached, in milliseconds: as long as access tokens live by default. */
const KEPT_FOR = 15 * 60_000

/** Rejects with Fault `identity_unavailable` after 300 ms. */
async function withinPatience<T>(looked: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const late = new Fault('identity_unavailable', {
    detail: 'the store did not tell in time whether a place exists',
    retryAfter: 1,
  })
  const timer = whenLate(LOOK_WITHIN, () => reject(late))
  try {
    return await Promise.race([looked, promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Whether a business that lists its funds has one; undefined if that is not known here. */
function hasFund({ funds, missing }: RememberedBusiness, fund: string, now: number): boolean | undefined {
  const readAt = funds.get(fund)
  if (readAt !== undefined) return now - readAt > KEPT_FOR ? undefined : true
  const missedAt = missing.get(fund)
  return missedAt !== undefined && now - missedAt <= FRESH_FOR ? false : undefined
}

const sizeOf = ({ business, funds, missing }: RememberedBusiness): number =>
  1 + funds.size + missing.size + (business?.sizeOfValues ?? 0)

/** Remembers when a fund was read. The oldest one goes where there are too many. */
function remember(times: Map<string, number>, fund: string, now: number, exists: boolean): void {
  times.delete(fund)
  if (times.size >= (exists ? FUNDS_OF_ONE : MISSING_OF_ONE)) times.delete(times.keys().next().value ?? '')
  times.set(fund, now)
}

interface StoredPlacesParts {
  readonly store: Pick<Store, 'find' | 'create' | 'list'>
  readonly feed: Pick<Feed, 'subscribe' | 'append'>
  readonly clock: Clock
  /** Opens the secret ones of values. Absent where there are no keys, and so no records. */
  readonly sealer?: Sealer | undefined
}

/** Businesses and funds that are remembered, all together: some 20 MB at most. */
const REMEMBERED = 100_000
/** Reads that are under way at once. Half of what may wait for the store's thread: identity endpoints need it too. */
const READS = 500
/** Reads of one list of businesses that are under way at once. */
const AT_ONCE = 64

const tooLate = (): never => {
  throw new Fault('identity_unavailable', {
    detail: 'a business or fund was not read in time',
    retryAfter: 1,
  })
}

/**
 * The businesses and funds of the store, read by key and remembered. The change feed announces every change, so a change
 * is in force here within a second. Places that do not exist are remembered apart, so that guessed funds push out
 * nothing. Methods reject with Fault `identity_unavailable` if the store cannot be reached, or too many reads are under
 * way.
 */
export class StoredPlaces implements Places {
  readonly #parts: StoredPlacesParts
  readonly #known = new LRUCache<string, RememberedBusiness>({
    maxSize: REMEMBERED,
    sizeCalculation: sizeOf,
    // An entry that had to make room is no longer known, so it must be read again.
    dispose: (_known, code, reason) => {
      if (reason === 'evict') this.#changed?.add(code)
    },
  })
  /** The reads that are under way, by key. A read that a change overtakes may be old: it is removed from this map. */
  readonly #reads = new Map<string, Promise<unknown>>()
  /** Codes and keys that have changed and must be read again. Undefined as long as not all places are known. */
  #changed: Set<string> | undefined
  #generation = 0
  /** The changes that were announced since reading began; undefined if nobody asked for all places. */
  #following: Set<string> | undefined

  constructor(parts: StoredPlacesParts) {
    this.#parts = parts
    parts.feed.subscribe(DIRECTORY_TOPIC, {
      apply: (change) => this.#forget(change),
      reset: () => this.#restart(),
    })
  }

  /**
   * Reads all places, and follows their changes from then on: so no call waits for the store, and a place that is unknown
   * here does not exist. With more places than are remembered, the others are read when they are named. Never rejects.
   */
  async readAll(): Promise<void> {
    const generation = (this.#generation += 1)
    const changed = new Set<string>()
    this.#following = changed
    try {
      const isWhole = await this.#readPages(changed)
      if (generation === this.#generation && isWhole) this.#changed = changed
    } catch {
      // The store is out of reach: places are read when they are named.
    }
  }

  exists(code: string, fund?: string): boolean | undefined {
    if (this.#changed !== undefined) return this.#existsAmongAll(code, fund, this.#changed)
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
    if (this.#changed !== undefined) return this.#existsAmongAll(code, fund, this.#changed)
    const known = this.#known.peek(code)
    const now = this.#parts.clock.monotonic()
    if (known === undefined || now - known.readAt > KEPT_FOR) return undefined
    if (known.business === undefined) return false
    return fund === undefined || known.business.anyFund || hasFund(known, fund, now)
  }

  valuesOf(code: string): BusinessValues | undefined {
    return this.exists(code) === undefined ? undefined : this.knownValues(code)
  }

  /** As `valuesOf`, and nothing is read again. */
  knownValues(code: string): BusinessValues | undefined {
    const exists = this.known(code)
    const business = this.#known.peek(code)?.business
    if (exists !== true || business === undefined) return exists === undefined ? undefined : NO_VALUES
    // A seal that is missing may come with a reload, or with the folder of the keys.
    return business.areValuesOpen ? business.values : undefined
  }

  async lookForValues(code: string): Promise<BusinessValues> {
    const known = this.valuesOf(code)
    if (known !== undefined) return known
    const { business } = await withinPatience(this.#readBusiness(code))
    return business?.values ?? NO_VALUES
  }

  async look(code: string, fund?: string): Promise<boolean> {
    const known = this.exists(code, fund)
    if (known !== undefined) return known
    return withinPatience(this.#look(code, fund))
  }

  async #look(code: string, fund: string | undefined): Promise<boolean> {
    const { business } = await this.#business(code)
    if (business === undefined) return false
    return fund === undefined || business.anyFund || this.#fund(code, fund)
  }

  /** All places are known, except those that have changed since. Known places are as fresh as the change feed. */
  #existsAmongAll(code: string, fund: string | undefined, changed: ReadonlySet<string>): boolean | undefined {
    const known = this.#known.peek(code)
    if (known === undefined) return changed.has(code) ? undefined : false
    if (known.business === undefined) return false
    if (fund === undefined || known.business.anyFund || known.funds.has(fund)) return true
    if (known.hasAllFunds === true && !changed.has(fundKey(code, fund))) return false
    return known.missing.has(fund) && !changed.has(fundKey(code, fund)) ? false : undefined
  }

  /** Whether all of them could be remembered. Places that were announced meanwhile are left out: the version may be old. */
  async #readPages(changed: ReadonlySet<string>): Promise<boolean> {
    const { store, clock, sealer } = this.#parts
    const readAt = clock.monotonic()
    let count = 0
    for await (const page of everyPage(store, BUSINESS))
      for (const { key, value } of page) {
        if ((count += 1) > REMEMBERED / 2) return false
        const business = await openBusiness(value, sealer)
        count += business?.sizeOfValues ?? 0
        if (!changed.has(key))
          this.#known.set(key, {
            business,
            readAt,
            funds: new Map(),
            missing: new Map(),
            hasAllFunds: true,
          })
      }
    for await (const page of everyPage(store, FUND))
      for (const { value } of page) {
        if ((count += 1) > REMEMBERED) return false
        this.#addKnown(readFund(value), readAt, changed)
      }
    return true
  }

  #addKnown({ business, code, disabled }: FundRecord, readAt: number, changed: ReadonlySet<string>): void {
    const known = this.#known.peek(business)
    if (known === undefined || disabled || changed.has(fundKey(business, code))) return
    known.funds.set(code, readAt)
    // A copy: the cache takes the size of another value only.
    this.#known.set(business, { ...known })
  }

  /** The store has lost changes: nobody knows which places. */
  #restart(): void {
    this.#forgetAll()
    if (this.#following !== undefined) void this.readAll()
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
    return new PreviewedPlaces(this, this.#parts)
  }

  /** Writes a fund that a backend has created, if the business lists its funds. In force here when this resolves. */
  async addFund(code: string, fund: Code): Promise<void> {
    const { store } = this.#parts
    const { business } = await this.#business(code)
    if (business === undefined || business.anyFund) return
    const key = fundKey(code, fund)
    const value = stored({ business: code, code: fund, disabled: false })
    if (await store.create(FUND, key, { value, indexes: { business: code } }))
      await announceChange(this.#parts, { fund: key })
  }

  /** The business from the store, or from a recent reading. If the store cannot be reached, an older reading still counts. */
  async #business(code: string): Promise<RememberedBusiness> {
    const known = this.#known.get(code)
    if (known === undefined) return this.#readBusiness(code)
    const age = this.#parts.clock.monotonic() - known.readAt
    if (age <= FRESH_FOR || this.#changed?.has(code) === false) return known
    return age > KEPT_FOR ? this.#readBusiness(code) : this.#readBusiness(code).catch(() => known)
  }

  #readBusiness(code: string): Promise<RememberedBusiness> {
    return this.#read(
      code,
      async () => {
        const business = await findBusiness(this.#parts, code)
        const { funds, missing } = this.#known.peek(code) ?? { funds: new Map(), missing: new Map() }
        return { business, readAt: this.#parts.clock.monotonic(), funds, missing }
      },
      (known) => {
        this.#known.set(code, known)
        this.#changed?.delete(code)
      },
    )
  }

  #fund(code: string, fund: string): Promise<boolean> {
    const before = this.#known.peek(code)
    return this.#read(
      fundKey(code, fund),
      () => findFund(this.#parts.store, code, fund),
      (exists) => {
        // The business was read again meanwhile: it may have been removed and added again.
        if (before === undefined || this.#known.peek(code)?.funds !== before.funds) return
        remember(exists ? before.funds : before.missing, fund, this.#parts.clock.monotonic(), exists)
        if (exists) before.missing.delete(fund)
        else before.funds.delete(fund)
        this.#changed?.delete(fundKey(code, fund))
        // A copy: the cache takes the size of another value only.
        this.#known.set(code, { ...before, ...this.#known.peek(code) })
      },
    )
  }

  /** One read of a key at a time. `keep` gets what was read, unless a change of it was announced meanwhile. */
  #read<T>(key: string, read: () => Promise<T>, keep: (found: T) => void): Promise<T> {
    const underWay = this.#reads.get(key) as Promise<T> | undefined
    if (underWay !== undefined) return waitInBudget(underWay, tooLate)
    if (this.#reads.size >= READS)
      return Promise.reject(
        new Fault('identity_unavailable', {
          detail: `${READS} businesses and funds are being read`,
          retryAfter: 1,
        }),
      )
    const isCurrent = (): boolean => this.#reads.get(key) === reading
    // Others may wait for it who have more time left than the caller that begins it.
    const reading = outsideBudgets(read)
      .then((found) => {
        if (isCurrent()) keep(found)
        return found
      })
      .finally(() => {
        if (isCurrent()) this.#reads.delete(key)
      })
    this.#reads.set(key, reading)
    return waitInBudget(reading, tooLate)
  }

  /** Reads a place again while calls continue. If it fails, the next call tries again. */
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
    this.#following?.add(code)
    this.#known.delete(code)
    this.#reads.delete(code)
  }

  #forgetFund(key: string): void {
    this.#following?.add(key)
    const [code = '', fund = ''] = key.split('/')
    const known = this.#known.peek(code)
    known?.funds.delete(fund)
    known?.missing.delete(fund)
    this.#reads.delete(key)
  }

  #forgetAll(): void {
    this.#changed = undefined
    this.#generation += 1
    this.#known.clear()
    this.#reads.clear()
  }
}
