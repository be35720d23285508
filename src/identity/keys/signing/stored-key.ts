import type { SigningAlgorithm } from '../../../base/contracts/people/people.ts'
import { type Clock, epochSeconds } from '../../../base/kernel/clock.ts'
import type { Jwk } from '../../../base/kernel/jwk.ts'
import {
  generatePrivateJwk,
  importPrivateKey,
  importPublicKey,
  isSignedBy,
  type PublicKey,
  publicPart,
  signCompact,
  thumbprint,
} from '../verify/signatures.ts'

/** A key pair that can sign. The private half is a CryptoKey that cannot be exported, so it cannot get into a log. */
export interface SigningKey {
  /** The thumbprint (RFC 7638). */
  readonly kid: string
  readonly algorithm: SigningAlgorithm
  readonly privateKey: CryptoKey
  readonly publicKey: PublicKey
  /** As published: public members, `kid`, `use`, `alg`. */
  readonly publicJwk: Jwk
  /** When it was made, in seconds since the epoch. */
  readonly createdAt: number
  /** When it begins to sign, in seconds since the epoch. */
  readonly signsFrom: number
}

/** The halves of a damaged key may not fit: no token could be verified. Rejects with TypeError. */
async function provePair(key: SigningKey): Promise<void> {
  const header = { alg: key.algorithm, typ: 'JWT', kid: key.kid }
  const proof = await signCompact({}, header, key.privateKey)
  if (!(await isSignedBy(proof, key.publicKey, key.algorithm)))
    throw new TypeError('a private and a public half that do not belong together')
}

const secondsOf = (jwk: Jwk, member: string): number | undefined =>
  typeof jwk[member] === 'number' ? jwk[member] : undefined

/** `iat`: when it was made; `nbf`: when it begins to sign. Rejects if others could not verify its signatures. */
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

/** From the text of a private JWK. Rejects with an Error whose message quotes nothing of the text. */
export async function parseSigningKey(text: string, algorithm: SigningAlgorithm): Promise<SigningKey> {
  let jwk: unknown
  try {
    jwk = JSON.parse(text)
  } catch {
    // The message of JSON.parse quotes the text, which is a private key: don't pass it on as the cause.
    throw new TypeError('not JSON')
  }
  if (typeof jwk !== 'object' || jwk === null) throw new TypeError('not a JSON object')
  return toSigningKey(jwk as Jwk, algorithm)
}

/** A private key as it is kept (C6.3.4). By its times (`iat`, `nbf`) all processes agree on when it signs. */
export interface StoredKey extends SigningKey {
  /** Grows with each key of an algorithm. */
  readonly generation: number
  /** `ES256-1`: the algorithm and the generation. */
  readonly name: string
  /** Differs if what is kept under the name was replaced, for example by a key from a backup. */
  readonly stamp: string
}

interface KeyName {
  readonly algorithm: SigningAlgorithm
  readonly generation: number
}

export interface NewKey extends KeyName {
  /** When it begins to sign, in seconds since the epoch; default: now. */
  readonly signsFrom?: number
}

const NAME = /^(ES256|RS256)-([1-9][0-9]{0,8})$/

export const keyName = ({ algorithm, generation }: KeyName): string => `${algorithm}-${generation}`

export function parseKeyName(name: string): KeyName | undefined {
  const [, algorithm, generation] = NAME.exec(name) ?? []
  if (algorithm === undefined) return undefined
  return { algorithm: algorithm as SigningAlgorithm, generation: Number(generation) }
}

export const inOrder = (keys: readonly StoredKey[]): readonly StoredKey[] =>
  keys.toSorted((a, b) => a.generation - b.generation)

/** A new private JWK with its times. RSA takes about 100 ms of a pool thread. */
export async function newPrivateJwk({ algorithm, signsFrom }: NewKey, clock: Clock): Promise<Jwk> {
  const iat = epochSeconds(clock)
  return { ...(await generatePrivateJwk(algorithm)), alg: algorithm, use: 'sig', iat, nbf: signsFrom ?? iat }
}
