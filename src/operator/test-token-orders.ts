/** What operators may ask of test tokens (C11.5.7). */
import type { TestToken, TestTokenAnswer, TestTokenRequest } from '../contracts/claimed-callers.ts'
import type { Operator } from '../audit/audited-change.ts'

export type TestTokenWish = Omit<TestTokenRequest, 'from'>

/** A token, and where it is good. */
export interface UsableTestToken extends TestToken {
  /** The URL of the API, without a slash at its end. */
  readonly api: string
}

export type TestTokenOutcome =
  | { readonly outcome: 'issued'; readonly issued: UsableTestToken }
  | Extract<TestTokenAnswer, { outcome: 'refused' }>
  /** The service issues none to anybody. `why`: what of its configuration stands against it. */
  | { readonly outcome: 'closed'; readonly why: string }

export interface TestTokenOrders {
  /**
   * Recorded before it is told. Rejects with Fault `audit_unavailable` if that is not possible, with
   * `identity_unavailable` if the directory cannot be reached, and with AdminError 503 if no process can be asked.
   */
  issue(wish: TestTokenWish, operator: Operator): Promise<TestTokenOutcome>
}
