import type { FaultCode } from '../../kernel/faults.ts'
import type { Principal } from './principal.ts'

/** A caller to be assumed, without a token: the parts of a request to the token endpoint (C14.1). */
export interface ClaimedCaller {
  readonly client: string
  /** The user's name, or the subject. Undefined: the client is a machine, which calls for itself. */
  readonly user: string | undefined
  /** `b/ACME` or `f/ACME/SUPER1`; undefined takes the one of the scope, if it has one. */
  readonly target: string | undefined
  /** Undefined takes the client's default, or all that the client may have if it has none. */
  readonly scope: string | undefined
}

/** The token that the caller would be granted. It is not issued. */
export interface ClaimedGrant {
  readonly principal: Principal
  /** Values that were asked for and would not be granted. */
  readonly dropped: readonly string[]
}

/** Nothing is issued, counted or stored. Where others issue the tokens, callers are taken at their word. */
export interface ClaimedCallers {
  /**
   * Rejects with the fault of the token endpoint: `invalid_client` and `invalid_grant` for a client and a user that do
   * not exist or may hold no tokens, `unauthorized_client`, `invalid_scope`; `identity_unavailable` if the directory
   * cannot be reached. The fault's detail says which, for operators.
   */
  grant(caller: ClaimedCaller): Promise<ClaimedGrant>
}

/** A test token that an operator asks for (C11.5.7). Plain data: it may cross to another process. */
export interface TestTokenRequest extends Omit<ClaimedCaller, 'client'> {
  /** Undefined takes the first client that is granted one; only together with a user. */
  readonly client: string | undefined
  readonly from: string
}

export interface TestToken {
  readonly token: string
  /** Its `jti`. */
  readonly id: string
  readonly client: string
  /** Undefined for a machine. */
  readonly subject: string | undefined
  readonly scope: string
  /** `target:b/ACME`. */
  readonly target: string | undefined
  readonly business: string | undefined
  readonly fund: string | undefined
  /** How long the token lives, in seconds. */
  readonly expiresIn: number
  readonly dropped: readonly string[]
}

export type TestTokenAnswer =
  | { readonly outcome: 'issued'; readonly issued: TestToken }
  /** By the fault of the token endpoint. `why` is for operators. */
  | { readonly outcome: 'refused'; readonly reason: FaultCode; readonly why: string }
