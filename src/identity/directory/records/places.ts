import type { Code } from '../../../base/config/scopes/scope-token.ts'
import {
  type Business,
  type BusinessValues,
  type ConfiguredBusiness,
  type FundRegistry,
  NO_VALUES,
  type Places,
} from '../../../base/contracts/people/places.ts'
import type { StoredPlaces } from './stored-places.ts'

/** The businesses of one configuration, in a map. Backends add the funds that they create. */
export class SnapshotPlaces implements Places {
  readonly #businesses: Map<string, ConfiguredBusiness>

  constructor(businesses: ReadonlyMap<string, ConfiguredBusiness>) {
    this.#businesses = new Map(businesses)
  }

  has(code: string): boolean {
    return this.#businesses.has(code)
  }

  findBusiness(code: string): ConfiguredBusiness | undefined {
    return this.#businesses.get(code)
  }

  exists(code: string, fund?: string): boolean {
    const business = this.#businesses.get(code)
    return business !== undefined && hasFund(business, fund)
  }

  look(code: string, fund?: string): Promise<boolean> {
    return Promise.resolve(this.exists(code, fund))
  }

  findBusinesses(codes: Iterable<string>): Promise<ReadonlyMap<string, Business>> {
    const found = new Map<string, Business>()
    for (const code of codes) {
      const business = this.#businesses.get(code)
      if (business !== undefined) found.set(code, business)
    }
    return Promise.resolve(found)
  }

  valuesOf(code: string): BusinessValues {
    return this.#businesses.get(code)?.values ?? NO_VALUES
  }

  lookForValues(code: string): Promise<BusinessValues> {
    return Promise.resolve(this.valuesOf(code))
  }

  preview(): Places {
    return this
  }

  /** False if the configuration does not have the business. */
  addFund(code: string, fund: Code): boolean {
    const business = this.#businesses.get(code)
    if (business === undefined) return false
    if (business.funds !== 'any' && !business.funds.has(fund))
      this.#businesses.set(code, { ...business, funds: new Set([...business.funds, fund]) })
    return true
  }
}

export function hasFund({ funds }: ConfiguredBusiness, fund: string | undefined): boolean {
  const known: 'any' | ReadonlySet<string> = funds
  return fund === undefined || known === 'any' || known.has(fund)
}

/** The businesses of a configuration, then those of the store: where both have one of a name, the configuration's counts. */
export class LayeredPlaces implements Places {
  readonly #configured: SnapshotPlaces
  readonly #stored: Places

  constructor(configured: SnapshotPlaces, stored: Places) {
    this.#configured = configured
    this.#stored = stored
  }

  exists(code: string, fund?: string): boolean | undefined {
    const business = this.#configured.findBusiness(code)
    return business === undefined ? this.#stored.exists(code, fund) : hasFund(business, fund)
  }

  look(code: string, fund?: string): Promise<boolean> {
    return this.#of(code).look(code, fund)
  }

  async findBusinesses(codes: Iterable<string>): Promise<ReadonlyMap<string, Business>> {
    const all = [...new Set(codes)]
    const configured = await this.#configured.findBusinesses(all)
    if (configured.size === all.length) return configured
    const stored = await this.#stored.findBusinesses(all.filter((code) => !configured.has(code)))
    return new Map([...configured, ...stored])
  }

  valuesOf(code: string): BusinessValues | undefined {
    return this.#of(code).valuesOf(code)
  }

  lookForValues(code: string): Promise<BusinessValues> {
    return this.#of(code).lookForValues(code)
  }

  #of(code: string): Places {
    return this.#configured.has(code) ? this.#configured : this.#stored
  }

  preview(): Places {
    return new LayeredPlaces(this.#configured, this.#stored.preview())
  }
}

/**
 * Funds that backends create. Where the configuration has the business, they last as long as the process: a reload
 * replaces the places, and they are added again. Where the store has it, they are written there.
 */
export class OpenedFunds implements FundRegistry {
  readonly #stored: Pick<StoredPlaces, 'addFund'>
  readonly #opened: (readonly [business: string, fund: Code])[] = []
  /** Funds that modules added while they were opened, before there were places. */
  readonly #early: (readonly [business: string, fund: Code])[] = []
  #places: Pick<SnapshotPlaces, 'addFund'> | undefined

  constructor(stored: Pick<StoredPlaces, 'addFund'>) {
    this.#stored = stored
  }

  async addFund(business: string, fund: Code): Promise<void> {
    if (this.#places === undefined) this.#early.push([business, fund])
    else if (this.#places.addFund(business, fund)) this.#opened.push([business, fund])
    else await this.#stored.addFund(business, fund)
  }

  /** Uses these places from now on, and adds all funds created before. */
  attach(places: Pick<SnapshotPlaces, 'addFund'>): void {
    this.#places = places
    for (const [business, fund] of this.#opened) places.addFund(business, fund)
    for (const early of this.#early.splice(0)) this.addFund(...early).catch(() => undefined)
  }
}
