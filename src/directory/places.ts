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

/** Funds that backends made while the process runs: they outlive the snapshot of places, which a reload replaces. */
export class OpenedFunds implements FundRegistry {
  readonly #opened: (readonly [business: string, fund: Code])[] = []
  #places: FundRegistry | undefined

  addFund(business: string, fund: Code): void {
    this.#opened.push([business, fund])
    this.#places?.addFund(business, fund)
  }

  /** From now on these are the places; they are told of everything that was opened before. */
  attach(places: FundRegistry): void {
    this.#places = places
    for (const [business, fund] of this.#opened) places.addFund(business, fund)
  }
}
