/**
 * Signatures and keys of JOSE (RFC 7515, 7517, 7518, 7638). The only file that imports jose. Its traps:
 * - It decodes base64url leniently, so sixteen spellings of one token verify: token-verifier.ts checks the spelling
 *   first.
 * - `importJWK` lets the caller's algorithm win over the key's own `alg`, and hands symmetric keys out as bytes:
 *   `importPublicKey` refuses both.
 * - `compactVerify` honours `crit` and `b64`: token-verifier.ts refuses such headers before it gets here.
 */
import { Buffer } from 'node:buffer'
import { hash, createPrivateKey, type KeyObject, sign, type SigningOptions } from 'node:crypto'
import { promisify } from 'node:util'
import { calculateJwkThumbprint, compactVerify, errors, exportJWK, generateKeyPair, importJWK } from 'jose'
import type { Claims } from '../contracts/keys.ts'
import type { SigningAlgorithm } from '../contracts/people.ts'
import { ALGORITHMS } from './algorithms.ts'

/** A JSON Web Key as it was read. Nothing of it is trusted yet. */
export type Jwk = Readonly<Record<string, unknown>>

const MIN_RSA_BITS = 2048

/** Whether the key may be used with the algorithm: by type, curve, and its own `alg` and `use` if it has them. */
export function fitsAlgorithm(jwk: Jwk, algorithm: string): boolean {
  const row = ALGORITHMS.get(algorithm)
  return (
    row !== undefined &&
    jwk['kty'] === row.kty &&
    (row.crv === undefined || row.crv.some((crv) => crv === jwk['crv'])) &&
    (jwk['alg'] ?? algorithm) === algorithm &&
    (jwk['use'] ?? 'sig') === 'sig'
  )
}

/** Only the public members of a key, so that no private one can get into a published key set. */
export function publicPart(jwk: Jwk, algorithm: string): Jwk {
  const members = ALGORITHMS.get(algorithm)?.members ?? []
  return Object.fromEntries(members.map((member) => [member, jwk[member]]))
}

/** The big-endian bytes of a Base64urlUInt (RFC 7518 §2) without leading zeros; empty if it is no text. */
function integerBytes(value: unknown): Buffer {
  const bytes = Buffer.from(typeof value === 'string' ? value : '', 'base64url')
  const first = bytes.findIndex((byte) => byte !== 0)
  return first === -1 ? Buffer.alloc(0) : bytes.subarray(first)
}

/**
 * Why an RSA key is too weak to verify signatures; undefined if it is not. With the exponent 1, every message is its
 * own signature. An even exponent is no valid RSA.
 */
export function rsaWeakness({ n, e }: Jwk): string | undefined {
  const modulus = integerBytes(n)
  const [first = 0] = modulus
  return weaknessOf(modulus.length * 8 - (Math.clz32(first) - 24), integerBytes(e))
}

/** `exponent` is big-endian, without leading zeros. */
function weaknessOf(bits: number, exponent: Uint8Array): string | undefined {
  if (bits < MIN_RSA_BITS) return `its RSA modulus has less than ${MIN_RSA_BITS} bits`
  const last = exponent.at(-1) ?? 0
  if (last % 2 === 0) return 'its RSA exponent is even'
  return exponent.length === 1 && last === 1 ? 'its RSA exponent is 1' : undefined
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
  const weakness = weaknessOf(modulusLength, publicExponent)
  if (weakness !== undefined) throw new TypeError(weakness)
  return key
}

/** Rejects with an Error if the key is malformed, symmetric, too weak, or for another algorithm. */
export async function importPublicKey(jwk: Jwk, algorithm: string): Promise<CryptoKey> {
  if (!fitsAlgorithm(jwk, algorithm)) throw new TypeError(`not a signature key for ${algorithm}`)
  return importKey(publicPart(jwk, algorithm), algorithm)
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
  const pair = await generateKeyPair(algorithm, { extractable: true, modulusLength: MIN_RSA_BITS })
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

/** RFC 7518 §3.4: ECDSA signatures are two numbers of fixed length, and no ASN.1. */
const OPTIONS: Readonly<Record<SigningAlgorithm, SigningOptions>> = {
  ES256: { dsaEncoding: 'ieee-p1363' },
  RS256: {},
}

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The protected header as it stands in a token: the same for all that a key signs of one type. */
const headers = new WeakMap<CryptoKey, Map<string, string>>()

function headerText(header: SignatureHeader, key: CryptoKey): string {
  const name = `${header.alg} ${header.typ} ${header.kid}`
  const known = headers.get(key)?.get(name)
  if (known !== undefined) return known
  const text = base64url(header)
  headers.set(key, new Map(headers.get(key)).set(name, text))
  return text
}

/**
 * A JWS in compact serialisation (RFC 7515 §7.1). By node:crypto and not by jose, whose Web Crypto costs this thread half
 * as much again. Rejects with TypeError if the key is not one of `importPrivateKey`.
 */
export async function signCompact(claims: Claims, header: SignatureHeader, key: CryptoKey): Promise<string> {
  const keyObject = keyObjects.get(key)
  if (keyObject === undefined) throw new TypeError('a key that was not imported here')
  const input = `${headerText(header, key)}.${base64url(claims)}`
  const how = { key: keyObject, ...OPTIONS[header.alg] }
  const signature = await signInPool(HASHES[header.alg], Buffer.from(input), how)
  return `${input}.${signature.toString('base64url')}`
}

/** Rejects only if the key itself cannot be used, which is not the token's fault. */
export async function isSignedBy(token: string, key: CryptoKey, algorithm: string): Promise<boolean> {
  try {
    await compactVerify(token, key, { algorithms: [algorithm] })
    return true
  } catch (thrown) {
    if (thrown instanceof errors.JOSEError) return false
    throw thrown
  }
}

/** OIDC Core §3.1.3.6: the left half of the hash, base64url. `algorithm` is that of the id_token. */
export function accessTokenHash(token: string, algorithm: SigningAlgorithm): string {
  const digest = hash(HASHES[algorithm], token, 'buffer')
  return digest.subarray(0, digest.length / 2).toString('base64url')
}
