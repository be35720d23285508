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

/** Makes the rule of a revocation. What the store holds is ended by `TokenRevoker`, which makes the rule first. */
export interface Revoker {
  /**
   * Resolves once the rule is kept and in force here; every other process follows within a second. Rejects with
   * Fault `identity_unavailable` if it could not be kept: then nothing is revoked (T3.7). A rule of a jti or a family
   * knows no time, since nothing new can be issued under either. The others revoke what was begun before whoever began
   * it had heard of the rule (`asOf`), and leave alone what is begun after. The rule is kept until all that it revokes
   * has expired, and at least until `until` (milliseconds since the epoch).
   */
  revoke(tokens: RevokedTokens, until?: number): Promise<void>
}

/** Something that a rule may end: a session, a code, a family, an access token about to be issued. */
export interface Begun {
  readonly subject: string
  readonly client?: string | undefined
  readonly business?: string | undefined
  readonly family?: string | undefined
  /** The `asOf` of the call that began it; undefined where an older version did. */
  readonly asOf: number | undefined
  /** Milliseconds since the epoch; only looked at where there is no `asOf`. */
  readonly begunAt: number
}

/** Asked by whoever begins something, and by whoever finds something that was begun. */
export interface RuleGuard {
  /**
   * The number of the latest rule that this process has heard of. Taken when a call begins, before anything is looked
   * up, and kept with whatever the call begins: a rule with a higher number ends it. Numbers, since the wall clock may
   * be set back.
   */
  readonly asOf: number
  /** Whether a rule has ended it: then it is worth nothing, at any door, whether or not it was removed from the store. */
  hasEnded(begun: Begun): boolean
}

/** How many of each were ended. Access tokens are not kept, so nobody can count them. */
export interface Ended {
  readonly sessions: number
  readonly families: number
  /** Used ones too, which are kept so that a second use is noticed (C6.1.6). */
  readonly codes: number
  readonly consents: number
}

export interface EndOptions {
  /** Consents are ended too. */
  readonly consents?: boolean
}

/**
 * THE way to end what people and clients hold (C6.3.3): commands, reloads, revocation, replays, withdrawn consents.
 *
 * | Rule | Ends |
 * | --- | --- |
 * | subject | sessions, families, codes, access tokens |
 * | client, business, and what two or three of them have in common | families, codes, access tokens |
 * | family | itself, its code, its access tokens |
 * | jti | that access token |
 */
export interface TokenRevoker {
  /** At once and for good; may be called again. Rejects with Fault `identity_unavailable`, and must then be called again. */
  end(tokens: RevokedTokens, options?: EndOptions): Promise<Ended>
  /** What `end` would end; changes nothing. */
  preview(tokens: RevokedTokens, options?: EndOptions): Promise<Ended>
  /**
   * Ends every family of refresh tokens there is, without a rule: for when the secret that they are derived with is
   * replaced. Answers how many. Access tokens are not touched.
   */
  endAllFamilies(): Promise<number>
}
