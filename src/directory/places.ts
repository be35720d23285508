import type { Code } from '../scopes/scope-token.ts'
import type { Business, FundRegistry, Places } from '../contracts/places.ts'

/** A snapshot: asked on every call, so it is one look into a map (C4.8). Backends that make funds tell it of them. */
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
