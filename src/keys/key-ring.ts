import type { Claims, PublicKeys, Signed, Signer } from '../contracts/keys.ts'
import type { SigningAlgorithm } from '../contracts/people.ts'
import { type KeyFinder, Standing, type TrustedKey } from './token-verifier.ts'
import { signCompact } from './signatures.ts'
import type { SigningKey } from './key-folder.ts'

/** Which keys sign, and which are still believed and published (C6.3.4). */
export interface KeySet {
  /** The current key of each algorithm; each of them is in `published` too. */
  readonly signing: ReadonlyMap<SigningAlgorithm, SigningKey>
  readonly published: readonly SigningKey[]
}

interface RingKey {
  readonly key: SigningKey
  readonly standing: Standing
  /** As `find` answers it. */
  readonly found: readonly TrustedKey[]
}

/**
 * The service's own keys: signs, publishes and finds them. `replace` swaps all three at once, and ends the standing of
 * every key that is not published any more, with all that it has signed (T3.10).
 */
export class KeyRing implements Signer, PublicKeys, KeyFinder {
  /** By `kid`, the thumbprint: a key that is read again from its file is the same key. */
  #keys: ReadonlyMap<string, RingKey> = new Map()
  #signing: ReadonlyMap<SigningAlgorithm, RingKey> = new Map()
  #jwks: ReturnType<PublicKeys['jwks']> = { keys: [] }

  constructor(set: KeySet) {
    this.replace(set)
  }

  replace({ signing, published }: KeySet): void {
    const before = this.#keys
    const keepOrAdd = (key: SigningKey): RingKey => before.get(key.kid) ?? toRingKey(key)
    this.#keys = new Map(published.map((key) => [key.kid, keepOrAdd(key)]))
    this.#signing = new Map(
      [...signing].flatMap(([algorithm, { kid }]) => {
        const ringKey = this.#keys.get(kid)
        return ringKey === undefined ? [] : [[algorithm, ringKey]]
      }),
    )
    this.#jwks = Object.freeze({ keys: Object.freeze(published.map((key) => key.publicJwk)) })
    for (const [kid, { standing }] of before) if (!this.#keys.has(kid)) standing.end()
  }

  /** Whether there is a key to sign with. */
  signs(algorithm: SigningAlgorithm): boolean {
    return this.#signing.has(algorithm)
  }

  async sign(claims: Claims, { algorithm, typ }: Parameters<Signer['sign']>[1]): Promise<Signed> {
    const ringKey = this.#signing.get(algorithm)
    if (ringKey === undefined) throw new Error(`no signing key for ${algorithm}`)
    const { key, standing } = ringKey
    const token = await signCompact(claims, { alg: algorithm, typ, kid: key.kid }, key.privateKey)
    return { token, key: standing }
  }

  jwks(): ReturnType<PublicKeys['jwks']> {
    return this.#jwks
  }

  /** Own tokens always name their key, so one that does not was not made here. */
  find(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined> {
    const ringKey = kid === undefined ? undefined : this.#keys.get(kid)
    return Promise.resolve(ringKey?.key.algorithm === algorithm ? ringKey.found : undefined)
  }
}

function toRingKey(key: SigningKey): RingKey {
  const standing = new Standing()
  return { key, standing, found: [{ publicKey: key.publicKey, standing }] }
}
