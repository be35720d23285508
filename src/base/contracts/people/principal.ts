import type { JsonObject } from '../../http/body/json.ts'
import type { ScopeText, ScopeValue, Target } from '../../config/scopes/scope-token.ts'
import type { KeyStanding } from './keys.ts'

/** One object for all access tokens of a client of the directory, so that counting needs no look-up. */
export interface ClientTally {
  /** @param result index in `CLIENT_RESULTS` */
  count(result: number): void
}

/** Calls that passed every check, that a check refused, and that ended with a status of 500 or above. */
export const CLIENT_RESULTS = ['allowed', 'refused', 'failed'] as const

/** The caller, from a verified access token (C4.4). Frozen, because calls share it. */
export interface Principal {
  readonly subject: string
  readonly client: string
  /** The client as limits and allow lists name it: its id, after `NAME:` of its issuer if there are several issuers. */
  readonly clientKey: string
  readonly issuer: string
  /** Only if there are several issuers: the name of this one in the configuration. Upstreams get the issuer then. */
  readonly issuerName?: string | undefined
  /** The token's scope values in its order, as sent to upstreams. */
  readonly scope: ScopeText
  readonly scopes: ReadonlySet<ScopeValue>
  readonly target: Target | undefined
  /** `jti`; undefined in tokens of some foreign issuers. */
  readonly tokenId: string | undefined
  /** The family of the refresh token that it was issued with. Revocation rules may name it. */
  readonly family: string | undefined
  /** The mark of the role by which its user got it (base/kernel/ids.ts). Absent in foreign tokens. */
  readonly role?: string | undefined
  /** A machine calls for itself: the subject is the client's id, and no person's (C6.1.5a). */
  readonly isMachine?: true
  /** `RevocationRules.asOf` when it was issued; undefined in foreign tokens. */
  readonly asOf?: number | undefined
  /** When the token was issued and when it expires, in seconds since the epoch. */
  readonly issuedAt: number
  readonly expiresAt: number
  /** SHA-256 thumbprint of the key that the token is bound to (`cnf.jkt`, RFC 9449). Absent: of no key. */
  readonly confirmation?: string | undefined
  /** The key that verified or signed the token. The caller is trusted only while the key is (T3.10). */
  readonly key: KeyStanding
  /** Absent for clients of foreign issuers, and where nobody has verified the token. */
  readonly tally?: ClientTally
}

/** A resource that the gateway protects but that another folder supplies: userinfo (C6.3.1). */
export interface Resource {
  /** Rejects with a Fault: see `userinfo` of identity/tokens/claims.ts. */
  describe(principal: Principal): Promise<JsonObject>
}
