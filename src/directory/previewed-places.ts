import type { Business, Places } from '../contracts/places.ts'
import { findBusiness, findFund, type Finding } from './find-places.ts'
import { fundKey } from './place-records.ts'

/** What a process remembers of the places of its store. */
interface Remembered extends Pick<Places, 'findBusinesses'> {
  /** Undefined: not known here. Reads nothing. */
  readonly known: (code: string, fund?: string) => boolean | undefined
}

/** The places of the store as one explanation sees them: what is known here, else what the store has. */
export class PreviewedPlaces implements Places {
  readonly #places: Remembered
  readonly #store: Finding
  readonly #seen = new Map<string, boolean>()

  constructor(places: Remembered, store: Finding) {
    this.#places = places
    this.#store = store
  }

  exists(code: string, fund?: string): boolean | undefined {
    return this.#seen.get(keyOf(code, fund)) ?? this.#places.known(code, fund)
  }

  async look(code: string, fund?: string): Promise<boolean> {
    const known = this.exists(code, fund)
    if (known !== undefined) return known
    const business = await findBusiness(this.#store, code)
    const isOpen =
      business !== undefined &&
      (fund === undefined || business.anyFund || (await findFund(this.#store, code, fund)))
    this.#seen.set(keyOf(code, fund), isOpen)
    return isOpen
  }

  findBusinesses(codes: Iterable<string>): Promise<ReadonlyMap<string, Business>> {
    return this.#places.findBusinesses(codes)
  }

  preview(): Places {
    return this
  }
}

const keyOf = (code: string, fund: string | undefined): string =>
  fund === undefined ? code : fundKey(code, fund)
