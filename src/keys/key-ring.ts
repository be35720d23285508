import type { Claims, PublicKeys, Signer } from '../contracts/keys.ts'
import type { SigningAlgorithm } from '../contracts/people.ts'
import type { KeyFinder } from './key-finder.ts'
import { signCompact } from './signatures.ts'
import type { SigningKey } from './signing-key.ts'

/** Which keys sign, and which are still believed and published (C6.3.4). */
export interface KeySet {
  /** The current key of each algorithm; each of them is in `published` too. */
  readonly signing: ReadonlyMap<SigningAlgorithm, SigningKey>
  readonly published: readonly SigningKey[]
}

/** The service's own keys: signs, publishes and finds them. `replace` swaps all three at once. */
export class KeyRing implements Signer, PublicKeys, KeyFinder {
  #set: KeySet
  #byId: ReadonlyMap<string, SigningKey>
  #jwks: ReturnType<PublicKeys['jwks']>

  constructor(set: KeySet) {
    this.#set = set
    this.#byId = new Map(set.published.map((key) => [key.kid, key]))
    this.#jwks = Object.freeze({ keys: Object.freeze(set.published.map((key) => key.publicJwk)) })
  }

  replace(set: KeySet): void {
    const next = new KeyRing(set)
    this.#set = next.#set
    this.#byId = next.#byId
    this.#jwks = next.#jwks
  }

  sign(claims: Claims, how: Parameters<Signer['sign']>[1]): Promise<string> {
    const key = this.#set.signing.get(how.algorithm)
    if (key === undefined) return Promise.reject(new Error(`no signing key for ${how.algorithm}`))
    return signCompact(claims, { alg: how.algorithm, typ: how.typ, kid: key.kid }, key.privateKey)
  }

  jwks(): ReturnType<PublicKeys['jwks']> {
    return this.#jwks
  }

  /** Own tokens always name their key, so one that does not was not made here. */
  find(kid: string | undefined, algorithm: string): Promise<CryptoKey | undefined> {
    const key = kid === undefined ? undefined : this.#byId.get(kid)
    return Promise.resolve(key?.algorithm === algorithm ? key.publicKey : undefined)
  }
}
