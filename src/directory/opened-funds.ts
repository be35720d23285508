import type { FundRegistry } from '../contracts/places.ts'
import type { Code } from '../scopes/scope-token.ts'

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
