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
  /** `any`: the backend decides whether a fund exists (C4.12). */
  readonly funds: 'any' | ReadonlySet<Code>
}

/** The business, or the fund of it, that a call may use (C4.8). */
export interface Place {
  readonly business: Code
  /** Undefined in a business-level call. */
  readonly fund: Code | undefined
}

/** Businesses and funds, from a snapshot in memory, because every call needs them. Codes are case-sensitive (C3.5). */
export interface Places {
  findBusiness(code: string): Business | undefined
}

/** A backend reports a new fund here, so that `Places` has it from the next call on (C10, fund-create). */
export interface FundRegistry {
  /** Does nothing if the business is unknown, has `funds: any`, or has the fund already. */
  addFund(business: string, fund: Code): void
}
