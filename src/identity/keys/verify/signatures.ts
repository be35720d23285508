/**
 * Signatures and keys of JOSE (RFC 7515, 7517, 7518, 7638). The only file that imports jose. Its traps:
 * - It decodes base64url leniently, so sixteen spellings of one token verify: token-verifier.ts checks the spelling
 *   first.
 * - `importJWK` lets the caller's algorithm win over the key's own `alg`, and hands symmetric keys out as bytes:
 *   `importPublicKey` refuses both.
 * - It signs and verifies by Web Crypto, which hands each signature to another thread: that costs more than an ES256 or
 *   RS256 signature itself. So both are done by node:crypto.
 */
import { Buffer } from 'node:buffer'
import { createPrivateKey, hash, KeyObject, sign, verify, type VerifyKeyObjectInput } from 'node:crypto'
import { promisify } from 'node:util'
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK } from 'jose'
import type { Caller, Claims } from '../../../base/contracts/people/keys.ts'
import type { SigningAlgorithm } from '../../../base/contracts/people/people.ts'
import { type Jwk, LEAST_RSA_BITS, weaknessOfRsa } from '../../../base/kernel/jwk.ts'
import { ALGORITHMS, type AlgorithmRow } from './algorithms.ts'
import { SignatureQueue } from './signature-queue.ts'

/** Whether the key may be used with the algorithm: by type, curve, and its own `alg` and `use` if it has them. */
export const fitsAlgorithm = (jwk: Jwk, algorithm: string): boolean =>
  fittingRow(jwk, algorithm) !== undefined

function fittingRow(jwk: Jwk, algorithm: string): AlgorithmRow | undefined {
  const row = ALGORITHMS.get(algorithm)
  const fits =
    jwk['kty'] === row?.kty &&
    (row?.crv === undefined || row.crv === jwk['crv']) &&
    // Ed25519 has two names (RFC 9864 §2.2), and one row.
    (jwk['alg'] === undefined || ALGORITHMS.get(jwk['alg'] as string) === row) &&
    (jwk['use'] ?? 'sig') === 'sig'
  return fits ? row : undefined
}

/** Only the public members of a key, so that no private one can get into a published key set. */
export function publicPart(jwk: Jwk, algorithm: string): Jwk {
  const members = ALGORITHMS.get(algorithm)?.members ?? []
  return Object.fromEntries(members.map((member) => [member, jwk[member]]))
}

async function importKey(jwk: Jwk, algorithm: string): Promise<CryptoKey> {
  const key = await importJWK(jwk, algorithm)
  if (key instanceof Uint8Array) throw new TypeError('a symmetric key')
  // Checked on the imported key, because a number can be encoded in several ways.
  // Web Crypto has these two of RSA keys only.
  const { modulusLength, publicExponent } = key.algorithm as {
    readonly modulusLength?: number
    readonly publicExponent?: Uint8Array
  }
  if (modulusLength === undefined || publicExponent === undefined) return key
  const weakness = weaknessOfRsa(modulusLength, publicExponent)
  if (weakness !== undefined) throw new TypeError(weakness)
  return key
}

/** Bits. With a longer modulus a verification takes as long as a slow algorithm. */
const SLOW_RSA_BITS = 4096

/** A public key with all that verifies its signatures: nothing of it comes from a token. */
export interface PublicKey {
  readonly algorithm: string
  readonly hash: string | null
  readonly input: VerifyKeyObjectInput
  /** The length of a signature, in bytes; undefined for RSA. */
  readonly length: number | undefined
  readonly isSlow: boolean
}

/** Rejects with an Error if the key is malformed, symmetric, too weak, or for another algorithm. */
export async function importPublicKey(jwk: Jwk, algorithm: string): Promise<PublicKey> {
  const row = fittingRow(jwk, algorithm)
  if (row === undefined) throw new TypeError(`not a signature key for ${algorithm}`)
  return publicKeyOf(KeyObject.from(await importKey(publicPart(jwk, algorithm), algorithm)), algorithm, row)
}

export function publicKeyOf(key: KeyObject, algorithm: string, row: AlgorithmRow): PublicKey {
  const { hash: hashed, length, options, isSlow } = row
  const { modulusLength = 0 } = key.asymmetricKeyDetails ?? {}
  return {
    algorithm,
    hash: hashed,
    input: { key, ...options },
    length,
    isSlow: isSlow === true || modulusLength > SLOW_RSA_BITS,
  }
}

/**
 * The result cannot be exported again. Rejects as `importPublicKey` does, and with TypeError if the key is not private.
 */
export async function importPrivateKey(jwk: Jwk, algorithm: SigningAlgorithm): Promise<CryptoKey> {
  if (!fitsAlgorithm(jwk, algorithm)) throw new TypeError(`not a signature key for ${algorithm}`)
  const key = await importKey(jwk, algorithm)
  if (key.type !== 'private') throw new TypeError('not a private key')
  keyObjects.set(key, createPrivateKey({ key: jwk, format: 'jwk' }))
  return key
}

/** The keys as node:crypto signs with them. They stay in this file, because unlike a CryptoKey they can be exported. */
const keyObjects = new WeakMap<CryptoKey, KeyObject>()

/** A new private key as a JWK. RSA gets 2048 bits and takes about 100 ms of a pool thread. */
export async function generatePrivateJwk(algorithm: SigningAlgorithm): Promise<Jwk> {
  const pair = await generateKeyPair(algorithm, { extractable: true, modulusLength: LEAST_RSA_BITS })
  return { ...(await exportJWK(pair.privateKey)) }
}

/** RFC 7638, with SHA-256: the same for the private and the public half. */
export const thumbprint = (jwk: Jwk, algorithm: string): Promise<string> =>
  calculateJwkThumbprint(publicPart(jwk, algorithm), 'sha256')

interface SignatureHeader {
  readonly alg: SigningAlgorithm
  readonly typ: string
  readonly kid: string
}

const HASHES: Readonly<Record<SigningAlgorithm, string>> = { ES256: 'sha256', RS256: 'sha256' }

/** On a thread of the pool: by RS256 it takes 250 µs. */
const signInPool = promisify(sign)

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The protected header as it is written in a token: the same for all tokens of one type that a key signs. */
const headers = new WeakMap<CryptoKey, Map<string, string>>()

function headerText(header: SignatureHeader, key: CryptoKey): string {
  const name = `${header.alg} ${header.typ} ${header.kid}`
  const known = headers.get(key)?.get(name)
  if (known !== undefined) return known
  const text = base64url(header)
  headers.set(key, new Map(headers.get(key)).set(name, text))
  return text
}

/** A JWS in compact serialisation (RFC 7515 §7.1). Rejects with TypeError if the key is not one of `importPrivateKey`. */
export async function signCompact(claims: Claims, header: SignatureHeader, key: CryptoKey): Promise<string> {
  const keyObject = keyObjects.get(key)
  if (keyObject === undefined) throw new TypeError('a key that was not imported here')
  const input = `${headerText(header, key)}.${base64url(claims)}`
  const how = { key: keyObject, ...ALGORITHMS.get(header.alg)?.options }
  const signature = await signInPool(HASHES[header.alg], Buffer.from(input), how)
  return `${input}.${signature.toString('base64url')}`
}

const queue = new SignatureQueue()

/** Signatures that wait to be checked. */
export const waitingSignatures = (): number => queue.waiting

/**
 * Whether the signature of a compact JWS is one of this key. The header is not looked at: the caller has checked that it
 * names `algorithm`.
 *
 * Rejects with TypeError if the key is for another algorithm, which is not the token's fault; with Fault
 * `token_judge_unavailable` if too many signatures wait, and `client_gone` if the caller left while this one did.
 */
export async function isSignedBy(
  token: string,
  key: PublicKey,
  algorithm: string,
  caller?: Caller,
): Promise<boolean> {
  if (key.algorithm !== algorithm) throw new TypeError(`a key for ${key.algorithm}, not for ${algorithm}`)
  // Nothing is decoded while it waits: a token may be long.
  return key.isSlow
    ? queue.slow(() => verifyInPool(token, key), caller)
    : queue.quick(() => verifyHere(token, key), caller)
}

/** Undefined for a signature that is not as long as all of the key's are. */
function partsOf(token: string, { length }: PublicKey): { input: Buffer; signature: Buffer } | undefined {
  const end = token.lastIndexOf('.')
  const signature = Buffer.from(token.slice(end + 1), 'base64url')
  if (length !== undefined && signature.length !== length) return undefined
  return { input: Buffer.from(token.slice(0, end), 'latin1'), signature }
}

const verifyByPool = promisify<string | null, Buffer, VerifyKeyObjectInput, Buffer, boolean>(verify)

/** OpenSSL reports some malformed signatures as errors. */
async function verifyInPool(token: string, key: PublicKey): Promise<boolean> {
  const parts = partsOf(token, key)
  if (parts === undefined) return false
  return verifyByPool(key.hash, parts.input, key.input, parts.signature).catch(() => false)
}

/** Whether the signature fits, at once in this thread. Whether the key is one for the token's algorithm, the caller has checked. */
export function verifyHere(token: string, key: PublicKey): boolean {
  const parts = partsOf(token, key)
  try {
    return parts !== undefined && verify(key.hash, parts.input, key.input, parts.signature)
  } catch {
    return false
  }
}

/** OIDC Core §3.1.3.6: the left half of the hash, base64url. `algorithm` is that of the id_token. */
export function accessTokenHash(token: string, algorithm: SigningAlgorithm): string {
  const digest = hash(HASHES[algorithm], token, 'buffer')
  return digest.subarray(0, digest.length / 2).toString('base64url')
}
