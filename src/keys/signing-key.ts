import type { SigningAlgorithm } from '../contracts/people.ts'
import {
  importPrivateKey,
  importPublicKey,
  isSignedBy,
  publicPart,
  signCompact,
  thumbprint,
  type Jwk,
} from './signatures.ts'

/** A key pair that can sign. Its private half is a CryptoKey that cannot be exported, so it cannot be logged. */
export interface SigningKey {
  /** RFC 7638 thumbprint. */
  readonly kid: string
  readonly algorithm: SigningAlgorithm
  readonly privateKey: CryptoKey
  readonly publicKey: CryptoKey
  /** As published: public members, `kid`, `use`, `alg`. */
  readonly publicJwk: Jwk
  /** Seconds since the epoch. */
  readonly createdAt: number
  /** Seconds since the epoch. */
  readonly signsFrom: number
}

/** The halves of a damaged file need not belong together; then no token of it would verify. */
async function provePair(key: SigningKey): Promise<void> {
  const header = { alg: key.algorithm, typ: 'JWT', kid: key.kid }
  const proof = await signCompact({}, header, key.privateKey)
  if (!(await isSignedBy(proof, key.publicKey, key.algorithm)))
    throw new TypeError('a private and a public half that do not belong together')
}

const secondsOf = (jwk: Jwk, member: string): number | undefined =>
  typeof jwk[member] === 'number' ? jwk[member] : undefined

/** From a private JWK; `iat` in it is when it was made, `nbf` when it begins to sign. Throws on a key that could not sign what others verify. */
export async function toSigningKey(jwk: Jwk, algorithm: SigningAlgorithm): Promise<SigningKey> {
  const kid = await thumbprint(jwk, algorithm)
  const key: SigningKey = {
    kid,
    algorithm,
    privateKey: await importPrivateKey(jwk, algorithm),
    publicKey: await importPublicKey(jwk, algorithm),
    publicJwk: Object.freeze({ ...publicPart(jwk, algorithm), kid, use: 'sig', alg: algorithm }),
    createdAt: secondsOf(jwk, 'iat') ?? 0,
    signsFrom: secondsOf(jwk, 'nbf') ?? secondsOf(jwk, 'iat') ?? 0,
  }
  await provePair(key)
  return key
}
