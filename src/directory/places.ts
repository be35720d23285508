import type { Business, FundRegistry, Places } from '../contracts/places.ts'
import type { Code } from '../scopes/scope-token.ts'

/**
 * The businesses of one configuration. Every call looks one up (C4.8), so it is a map. Backends add the funds they
 * create.
 */
export class SnapshotPlaces implements Places, FundRegistry {
  readonly #businesses: Map<string, Business>

  constructor(businesses: ReadonlyMap<string, Business>) {
    this.#businesses = new Map(businesses)
  }

  findBusiness(code: string): Business | undefined {
    return this.#businesses.get(code)
  }

  addFund(code: string, fund: Code): void {
    const business = this.#businesses.get(code)
    if (business === undefined || business.funds === 'any' || business.funds.has(fund)) return
    this.#businesses.set(code, { ...business, funds: new Set([...business.funds, fund]) })
  }
}

/**
 * Funds that backends created since the start of the process. A reload replaces the places, and these funds are added
 * again.
 */
export class OpenedFunds implements FundRegistry {
  readonly #opened: (readonly [business: string, fund: Code])[] = []
  #places: FundRegistry | undefined

  addFund(business: string, fund: Code): void {
    this.#opened.push([business, fund])
    this.#places?.addFund(business, fund)
  }

  /** Uses these places from now on, and adds all funds created before. */
  attach(places: FundRegistry): void {
    this.#places = places
    for (const [business, fund] of this.#opened) places.addFund(business, fund)
  }
}
