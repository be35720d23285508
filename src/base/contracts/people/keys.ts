import type { SigningAlgorithm } from './people.ts'

export type Claims = Readonly<Record<string, unknown>>

/**
 * Whether a key is still trusted. There is one object for each key, and the owner of the key (our own key ring, or the
 * key set of a foreign issuer) changes it. A token that was verified once keeps this object, and every later use of the
 * token checks it (C4.16, T3.10).
 */
export interface KeyStanding {
  /** Must be cheap, because every call checks it. Once false, it stays false. */
  isTrusted(): boolean
}

/** The status of something that no key has signed: nothing can withdraw it. */
export const NO_KEY: KeyStanding = { isTrusted: () => true }

/** A compact JWS that was signed here, and the key that signed it. */
export interface Signed {
  readonly token: string
  readonly key: KeyStanding
}

/** Signs a compact JWS with the current key of an algorithm (C6.3.4). */
export interface Signer {
  sign(claims: Claims, how: { readonly typ: string; readonly algorithm: SigningAlgorithm }): Promise<Signed>
}

/** A text that cannot be read with the store alone. All members but the id are base64url. */
export interface SealedText {
  /** The id of the seal that it was sealed with. */
  readonly seal: string
  /** Drawn for each sealing. */
  readonly nonce: string
  /** The encrypted text, and its tag at the end. */
  readonly text: string
}

/** Seals texts for the store, as securely as the signing keys are kept (C6.3.4). */
export interface Sealer {
  /**
   * Rejects if there is no seal to be used.
   * @param place kind and key of the record, and what of it the text is: it opens nowhere else
   */
  sealText(text: string, place: readonly string[]): Promise<SealedText>
  /** Undefined if it cannot be opened: its seal is missing, or it was changed. */
  openText(sealed: SealedText, place: readonly string[]): Promise<string | undefined>
}

/** Every process of the service derives the same secret, and nobody else can. For refresh tokens (C6.1.7). */
export interface SecretDeriver {
  /** Names the secret and does not reveal it: the first 8 characters of its SHA-256, base64url. */
  readonly secretId: string
  /**
   * Whether an id is that of this secret.
   * @throws Fault `identity_unavailable` if it is another one, and it is not known whether that one has replaced this
   *   secret
   */
  isOf(secretId: string): boolean
  derive(secret: string): string
}

/** A JSON Web Key Set of public keys (RFC 7517), as published. */
export interface PublicKeys {
  jwks(): { readonly keys: readonly Readonly<Record<string, unknown>>[] }
}

export type Confirmation = 'refuse' | 'ignore' | 'prove'

/** The requirements for tokens of one issuer (C4.4, C11.2). */
export interface TokenPolicy {
  readonly issuer: string
  /** Undefined: any, where a configuration says so (C11.2). */
  readonly audience: string | undefined
  /** Lower case, without "application/". */
  readonly typ: readonly string[]
  readonly algorithms: readonly string[]
  /**
   * Seconds of leeway on exp, nbf and iat: 0 for our own tokens, at most 60 for foreign issuers (C4.16). For nbf and iat
   * at least 5 s are used, because the clocks of several nodes may differ by that much.
   */
  readonly leeway: number
  /**
   * The longest life, in seconds. A token with a later exp is refused: it would outlive its revocation rules. One day
   * if absent.
   */
  readonly longestLife?: number
  /** Whether the bearer of a genuine token may learn why it is refused (C4.17a). That costs a signature check. */
  readonly tellsWhy?: boolean
  /**
   * What becomes of a token that is bound to a key (`cnf`): it is refused, which is the default; accepted without that
   * key; or accepted if it is bound by `jkt` alone, so that whoever uses it must prove the key (C4.4a).
   */
  readonly confirmation?: Confirmation
}

/** The caller that waits for a verification: none is made for a client that has left. */
export interface Caller {
  readonly gone?: boolean
}

export interface Verified {
  readonly claims: Claims
  readonly key: KeyStanding
}

/** Rejects with Fault `invalid_token`, or `token_judge_unavailable` if the keys cannot be reached (C4.15). */
export interface TokenVerifier {
  verify(token: string, policy: TokenPolicy, caller?: Caller): Promise<Verified>
  /**
   * The same by what is known in this process: nothing is read, asked or remembered (C14.1). The detail of its Fault
   * `token_judge_unavailable` is NEEDS_ISSUER if the issuer would have to be asked.
   */
  verifyLocally(token: string, policy: TokenPolicy): Promise<Verified>
}

/** The facts that the header of a compact JWS tells of its signature. Nothing of it is trusted. */
export interface JwsHeader {
  readonly alg: string
  readonly kid: string | undefined
}

/** The detail of a fault: the issuer would have to be asked, and was not. */
export const NEEDS_ISSUER = 'nobody was asked'
