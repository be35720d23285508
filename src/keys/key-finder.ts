import type { KeyStanding } from '../contracts/keys.ts'

/** A public key of an issuer, and whether it is believed. */
export interface TrustedKey {
  readonly publicKey: CryptoKey
  readonly standing: KeyStanding
}

/** Where a judge gets the public keys of one issuer: the own ring, or a foreign issuer's key set. */
export interface KeyFinder {
  /**
   * Several where the issuer gives one `kid` to several keys. Undefined: the issuer has no such key for this algorithm.
   * `kid` is undefined where the token names none.
   * Rejects with Fault `token_judge_unavailable` where it cannot be told at the moment (C4.15).
   */
  find(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined>
}
