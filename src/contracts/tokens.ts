import type { Principal } from './principal.ts'

/** Where identity leaves a token that it has just issued, so that its first use costs no verification (C4.16). */
export interface IssuedTokens {
  prime(token: string, principal: Principal): void
  /**
   * Who an access token speaks for, judged as on a call (C4.4): genuine, unexpired, not revoked.
   * Throws or rejects with Fault `invalid_token`, or `token_judge_unavailable` where it can't be told.
   */
  check(token: string): Principal | Promise<Principal>
}

/** Whether a rule revokes this principal's token. Answers from memory; asked on every call (C4.16). */
export interface Revocations {
  isRevoked(principal: Principal): boolean
}

/** Which tokens a rule revokes: those to which every member applies (design: a revocation is a rule). */
export type RevokedTokens =
  | { readonly jti: string }
  | { readonly family: string }
  | { readonly subject: string }
  | { readonly client: string }
  | { readonly client: string; readonly subject: string }
  | { readonly client: string; readonly subject: string; readonly business: string }
  | { readonly business: string }
  | { readonly client: string; readonly business: string }
  | { readonly subject: string; readonly business: string }

/** Revokes access tokens that are out there already. */
export interface Revoker {
  /**
   * Resolves once the rule is kept and in force here; every other process follows within a second. Rejects with
   * Fault `identity_unavailable` if it could not be kept: then nothing is revoked (T3.7). A rule of a jti or a family
   * knows no time, since nothing new can be issued under either. The others revoke what was issued before
   * `issuedBefore` (milliseconds since the epoch; now, if not given), and leave alone what is issued after.
   */
  revoke(tokens: RevokedTokens, issuedBefore?: number): Promise<void>
}

/** What a token is about to be issued for. */
export interface Issuance {
  readonly subject: string
  readonly client: string
  readonly business: string | undefined
  readonly family: string | undefined
}

/** Asked by whoever issues access tokens, between the last check of a grant and the signature. */
export interface IssueGuard {
  /**
   * The `iat` (seconds since the epoch) for a grant that was begun at `begunAt` (ms since the epoch, taken before
   * user and client were looked up): now, or up to two seconds ahead, so that a rule of a moment ago does not reach
   * it. Undefined if a rule has revoked it since it was begun: the grant must fail.
   */
  issueTime(issuance: Issuance, begunAt: number): number | undefined
}
