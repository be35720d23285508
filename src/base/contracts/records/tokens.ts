import type { Principal } from '../people/principal.ts'
import type { IndexValues } from './store.ts'

/** The gateway's token cache, as identity uses it (C4.16). */
export interface IssuedTokens {
  /** Caches a token that was just issued, so that its first use needs no verification. */
  prime(token: string, principal: Principal): void
  /** Checked as for a call (C4.4). Throws or rejects with Fault `invalid_token` or `token_judge_unavailable`. */
  check(token: string): Principal | Promise<Principal>
}

/** Who had something revoked, and why. Kept with the rule. No secret. */
export interface RevocationCause {
  /** The operator whose token was shown; undefined where no operator was the cause. */
  readonly operator?: string | undefined
  /** As the operator calls himself. */
  readonly by?: string | undefined
  readonly reason?: string | undefined
  /** The source of the order: the address of an operator, or what happened. */
  readonly via?: string | undefined
}

export interface RevocationRule {
  /** The members that the rule names, such as `{client: 'alpha', business: 'ACME'}`. */
  readonly tokens: Readonly<Record<string, string>>
  /** When the rule was made, in milliseconds since the epoch. */
  readonly madeAt: number
  /** Named so in explanations (C14.3). Undefined for a rule that an older version made. */
  readonly order: RevocationCause | undefined
}

/** The tokens that a rule revokes: those that match every member. */
export type RevokedTokens = RevokedIds & {
  /** The `iss` of a foreign issuer: only its tokens. Absent: tokens of every issuer (C11.2). */
  readonly issuer?: string
}

type RevokedIds =
  | { readonly jti: string }
  | { readonly before: 'now' }
  | { readonly family: string }
  | { readonly subject: string }
  | { readonly client: string }
  | { readonly client: string; readonly scope: string }
  | { readonly subject: string; readonly business: string; readonly scope: string }
  | { readonly scope: string }
  | { readonly role: string }
  | { readonly role: string; readonly scope: string }
  | { readonly business: string; readonly fund: string }
  | { readonly client: string; readonly subject: string }
  | { readonly client: string; readonly subject: string; readonly business: string }
  | { readonly business: string }
  | { readonly client: string; readonly business: string }
  | { readonly subject: string; readonly business: string }

/** A session, a code, a family or a token, as rules see it. */
export interface Begun {
  readonly subject: string
  readonly client?: string | undefined
  readonly business?: string | undefined
  readonly family?: string | undefined
  /** `RevocationRules.asOf` of the call that began it; undefined if an older version of Postern began it. */
  readonly asOf: number | undefined
  /** When it was begun, in milliseconds since the epoch; used only if there is no `asOf`. */
  readonly begunAt: number
}

/** Numbers of ended records. Access tokens are not stored, so they cannot be counted. */
export interface Ended {
  readonly sessions: number
  readonly families: number
  /** Including used codes, which are kept so that a second use is noticed (C6.1.6). */
  readonly codes: number
  readonly consents: number
}

export interface EndOptions {
  /** True if consents are ended too. */
  readonly consents?: boolean
  /** True if links for a password stay: a change that is not written yet must not use them up. */
  readonly keepsLinks?: boolean
  /** Kept with the rule, so that a refused call can be explained. */
  readonly cause?: RevocationCause
}

/**
 * The only way to end sessions, codes and tokens (C6.3.3): for commands, reloads, revocation, replays and withdrawn
 * consents.
 *
 * | Rule | Ends |
 * | --- | --- |
 * | subject | sessions, families, codes, access tokens |
 * | client, business, or a combination with subject | families, codes, access tokens that match all members |
 * | scope, alone or with client, role, or subject and business | access tokens with this scope value that match the rest |
 * | role | access tokens that were issued by this role |
 * | business and fund | access tokens for the fund |
 * | family | itself, its code, its access tokens |
 * | before: now | all sessions, families, codes and access tokens |
 * | jti | that access token |
 *
 * A rule that names a scope value, a role or a fund ends access tokens only. Families stay: a refresh gives what is allowed
 * then, or is refused.
 */
export interface TokenRevoker {
  /** Idempotent. If it rejects with Fault `identity_unavailable`, it must be called again. */
  end(tokens: RevokedTokens, options?: EndOptions): Promise<Ended>
}

/**
 * Records of the store that operators see and end: logins in browsers, families of refresh tokens, consents of users to
 * clients.
 */
export type RevocableKind = 'sessions' | 'families' | 'consents'

/** A record as operators see it. It has no token, no code and no value of a cookie. Times in ms since the epoch. */
export interface RevocableRecord {
  /** The hash of a session's cookie, the id of a family, the key of a consent. */
  readonly id: string
  readonly subject: string
  readonly client?: string | undefined
  readonly business?: string | undefined
  readonly fund?: string | undefined
  /** Without the target. */
  readonly scopes?: readonly string[] | undefined
  /** When the user logged in; of a consent: when it was given last. */
  readonly begunAt: number
  /** When a page of the session, or a refresh token of the family, was used last. */
  readonly lastUsedAt?: number | undefined
  /** Undefined for a consent, which stays until it is withdrawn. */
  readonly endsAt?: number | undefined
  /** The browser of a session: "Firefox on Windows". */
  readonly browser?: string | undefined
}

/** By which values each kind can be selected. */
export type RevocableWhere = Pick<IndexValues, 'subject' | 'client' | 'business'>

export interface RevocablePage {
  readonly found: readonly RevocableRecord[]
  /** `after` of the next page; undefined after the last. A page may hold fewer than asked for, and not be the last. */
  readonly next: string | undefined
}
