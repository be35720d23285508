import type { Code } from '../../config/scopes/scope-token.ts'

export interface Address {
  readonly street_address?: string
  readonly locality?: string
  readonly region?: string
  readonly postal_code?: string
  readonly country?: string
}

export interface Business {
  readonly code: Code
  readonly name: string
  readonly address?: Address
  readonly phoneNumber?: string
}

/** Names of a business's values: in templates they are behind a dot. */
export const VALUE_NAME_PATTERN = '^[A-Za-z][A-Za-z0-9_-]{0,63}$'

/** The values that services know a business by: texts, by name (C8.7). */
export interface BusinessValues {
  readonly texts: Readonly<Record<string, string>>
  /**
   * The names of those that are told by no log, error, explanation, record or answer. One that has no text is sealed, and
   * cannot be opened here.
   */
  readonly secrets: ReadonlySet<string>
}

export const NO_VALUES: BusinessValues = Object.freeze({
  texts: Object.freeze(Object.create(null) as Record<string, string>),
  secrets: new Set<string>(),
})

/** What is wrong with values that say where calls go: their names, and a verb and what follows; nothing of the values. */
export type ProblemsOfValues = (
  texts: Readonly<Record<string, string>>,
) => readonly (readonly [name: string, problem: string])[]

export interface ConfiguredBusiness extends Business {
  readonly values?: BusinessValues | undefined
  /** `any`: the backend decides whether a fund exists (C4.12). */
  readonly funds: 'any' | ReadonlySet<Code>
}

/** The business, or the fund of it, that a call may use (C4.8). */
export interface Place {
  readonly business: Code
  /** Undefined in a business-level call. */
  readonly fund: Code | undefined
}

/** Businesses and funds, wherever they are kept. Codes are case-sensitive (C3.5). One that is disabled does not exist. */
export interface Places {
  /** Waits for nothing, because every call asks (C4.8). Undefined: not known in this process; `look` finds it out. */
  exists(business: string, fund?: string): boolean | undefined
  /** The same, wherever it has to be read. Rejects with Fault `identity_unavailable` if the store cannot be reached. */
  look(business: string, fund?: string): Promise<boolean>
  /** The businesses among these that exist, by code. Rejects as `look` does. */
  findBusinesses(codes: Iterable<string>): Promise<ReadonlyMap<string, Business>>
  /** Waits for nothing. Undefined: not known in this process; `lookForValues` finds them out. */
  valuesOf(business: string): BusinessValues | undefined
  /** The same, wherever they have to be read; none of a business that does not exist. Rejects as `look` does. */
  lookForValues(business: string): Promise<BusinessValues>
  /** The same places for an explanation: nothing is remembered, and what was read once stays so (C14.1). */
  preview(): Places
}

/** A backend reports a new fund here, so that `Places` has it from the next call on (C10, fund-create). */
export interface FundRegistry {
  /**
   * Resolves when the fund is kept, and at once where the configuration has the business. Does nothing if the business is
   * unknown, has `funds: any`, or has the fund already. Rejects with Fault `identity_unavailable`.
   */
  addFund(business: string, fund: Code): Promise<void>
}
