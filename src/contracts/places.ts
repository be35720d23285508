import type { Code } from '../scopes/scope-token.ts'

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
  /** `any`: whether a fund exists is the backend's to say (C4.12). */
  readonly funds: 'any' | ReadonlySet<Code>
}

/** A business, or a fund of it, that a call was let in to (C4.8). */
export interface Place {
  readonly business: Code
  /** Of a fund-level call. */
  readonly fund: Code | undefined
}

/** Businesses and funds, answered at once from a snapshot: the gateway asks on every call. Codes compare exactly (C3.5). */
export interface Places {
  findBusiness(code: string): Business | undefined
}

/** Where a backend tells that it has made a fund, so that `Places` knows it from the next call on (C10, fund-create). */
export interface FundRegistry {
  /** Nothing happens if the business is unknown, has `funds: any`, or knows the fund. */
  addFund(business: string, fund: Code): void
}
