/** Proofs of possession (DPoP, RFC 9449): what a token is bound to, and how a request shows that it has the key. */

/** The call that a proof must be made for (RFC 9449 §4.3). */
export interface ProofPurpose {
  readonly method: string
  /**
   * Where the request was sent: the origin of `{auth_url}` or `{base_url}`, and the canonical path that was received, with
   * the slash at its end where one was sent (C3.4).
   * Nothing of it comes from Host or `X-Forwarded-…`.
   */
  readonly url: string
  /** The access token that it comes with, whose hash must be the proof's `ath`. */
  readonly token?: string | undefined
  /** The thumbprint of the only key that will do; undefined: of any. Another one costs no check of a signature. */
  readonly jkt?: string | undefined
}

/** A proof that holds. Whether it was used before, its verifier does not know: see `ReplayMemory`. */
export interface Proof {
  /** The thumbprint of its key (RFC 7638, SHA-256): what `cnf.jkt` of a bound token says. */
  readonly jkt: string
  /** The SHA-256 of its key and its `jti`, base64url. The same value twice means that one proof was used twice. */
  readonly id: string
  /** From when on it would be refused anyway, milliseconds since the epoch. */
  readonly expiresAt: number
  /** A nonce that is newer than the proof's own. It goes with the answer, whatever that is. */
  readonly newerNonce?: string
}

/** Verifies proofs at once, because a decision waits for nothing. */
export interface ProofVerifier {
  /**
   * @param text the value of the header `DPoP`
   * @throws Fault `invalid_dpop_proof`; `use_dpop_nonce`, with the nonce in its facts
   */
  verify(text: string, purpose: ProofPurpose): Proof
}
