import type { SigningAlgorithm } from './people.ts'

export type Claims = Readonly<Record<string, unknown>>

/**
 * Whether a key is still trusted. One object for one key; whoever owns the key (the own key folder, a foreign issuer's
 * key set) changes the answer. A token is worth what its key is, so what was verified once keeps this beside it and asks
 * on every use (C4.16, T3.10).
 */
export interface KeyStanding {
  /** Cheap, since it is asked on every call. Once false, it stays false. */
  isTrusted(): boolean
}

/** A compact JWS that was signed here, and the key that signed it. */
export interface Signed {
  readonly token: string
  readonly key: KeyStanding
}

/** Signs with the current key of an algorithm (C6.3.4). */
export interface Signer {
  sign(claims: Claims, how: { readonly typ: string; readonly algorithm: SigningAlgorithm }): Promise<Signed>
}

/**
 * Derives one secret from another, always the same one, in every process of the service; nobody else can (C6.1.7: the
 * successor of a refresh token).
 */
export interface SecretDeriver {
  derive(secret: string): string
}

/** A JSON Web Key Set of public keys (RFC 7517), as published. */
export interface PublicKeys {
  jwks(): { readonly keys: readonly Readonly<Record<string, unknown>>[] }
}

/** What is demanded of a token, per issuer (C4.4, C11.2). */
export interface TokenPolicy {
  readonly issuer: string
  readonly audience: string
  /** Lower case, without "application/". */
  readonly typ: readonly string[]
  readonly algorithms: readonly string[]
  /**
   * Seconds of leeway on exp, nbf and iat: 0 for own tokens, at most 60 for foreign issuers (C4.16). On nbf and iat
   * it is never less than the 5 s that the clocks of several nodes may differ.
   */
  readonly leeway: number
  /**
   * Seconds. A token whose exp lies farther ahead is refused, since it would outlive the revocation rules that name
   * it. One day if absent.
   */
  readonly longestLife?: number
}

/** What a genuine token says, and the key that vouches for it. */
export interface Verified {
  readonly claims: Claims
  readonly key: KeyStanding
}

/**
 * Judges a compact JWS. Resolves with its claims and its key; rejects with Fault `invalid_token` for a bad token and Fault
 * `token_judge_unavailable` where the keys cannot be reached (C4.15).
 */
export interface TokenVerifier {
  verify(token: string, policy: TokenPolicy): Promise<Verified>
}
