import type { FaultCode } from '../kernel/faults.ts'
import type { ClaimedCaller } from './claimed-callers.ts'

/** A test token that an operator asks for (C11.5.7). Plain data: it may cross to another process. */
export interface TestTokenRequest extends Omit<ClaimedCaller, 'client'> {
  /** Undefined takes the first client that is granted one. */
  readonly client: string | undefined
  /** The address of the operator. */
  readonly from: string
}

export interface TestToken {
  readonly token: string
  /** Its `jti`. */
  readonly id: string
  readonly client: string
  readonly subject: string
  readonly scope: string
  /** `target:b/ACME`. */
  readonly target: string | undefined
  readonly business: string | undefined
  readonly fund: string | undefined
  /** Seconds. */
  readonly expiresIn: number
  /** Values that were asked for and not granted. */
  readonly dropped: readonly string[]
}

export type TestTokenAnswer =
  | { readonly outcome: 'issued'; readonly issued: TestToken }
  /** By the fault of the token endpoint. `why` is for operators. */
  | { readonly outcome: 'refused'; readonly reason: FaultCode; readonly why: string }
