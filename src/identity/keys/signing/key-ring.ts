import type { Claims, PublicKeys, Signed, Signer } from '../../../base/contracts/people/keys.ts'
import type { SigningAlgorithm } from '../../../base/contracts/people/people.ts'
import type { SigningKey } from './stored-key.ts'
import { signCompact } from '../verify/signatures.ts'
import { type KeyFinder, Standing, type TrustedKey } from '../verify/token-verifier.ts'

/** Which keys sign, and which are published and accepted (C6.3.4). */
export interface KeySet {
  /** The current key of each algorithm; each of them is in `published` too. */
  readonly signing: ReadonlyMap<SigningAlgorithm, SigningKey>
  readonly published: readonly SigningKey[]
}

interface RingKey {
  readonly key: SigningKey
  readonly standing: Standing
  /** The answer of `find`, made once. */
  readonly found: readonly TrustedKey[]
}

/**
 * The service's own keys: it signs with them, publishes them and finds them. `replace` changes all three at once, and
 * withdraws every key that is no longer published, with every token that it has signed (T3.10).
 */
export class KeyRing implements Signer, PublicKeys, KeyFinder {
  /** By `kid`. That is the thumbprint, so a key that is read again has the same one. */
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

  signs(algorithm: SigningAlgorithm): boolean {
    return this.#signing.has(algorithm)
  }

  /** Rejects with an Error if the algorithm has no signing key. */
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

  /** Own tokens always name their key, so a token without `kid` is none of ours. Never rejects. */
  find(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined> {
    const ringKey = kid === undefined ? undefined : this.#keys.get(kid)
    return Promise.resolve(ringKey?.key.algorithm === algorithm ? ringKey.found : undefined)
  }

  findLocally(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined> {
    return this.find(kid, algorithm)
  }
}

function toRingKey(key: SigningKey): RingKey {
  const standing = new Standing()
  return { key, standing, found: [{ publicKey: key.publicKey, standing }] }
}
