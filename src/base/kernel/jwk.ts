/** A JSON Web Key (RFC 7517), as far as it can be judged without cryptography. */
import { Buffer } from 'node:buffer'

/** As it was read: nothing of it is trusted yet. */
export type Jwk = Readonly<Record<string, unknown>>

export const isJwk = (value: unknown): value is Jwk =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Members of private and of symmetric keys (RFC 7518 §6.2.2, §6.3.2, §6.4; RFC 8037 §2). */
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const

export const isPrivateJwk = (key: Jwk): boolean => PRIVATE.some((member) => Object.hasOwn(key, member))

/** The fewest bits of the modulus (RFC 7518 §3.3). */
export const LEAST_RSA_BITS = 2048

/**
 * The longest exponent, in bytes. The more bytes, the slower a verification; with hundreds, it takes many times as long
 * as with 65537.
 */
const LONGEST_EXPONENT = 4

/** The big-endian bytes of a Base64urlUInt (RFC 7518 §2) without leading zeros; empty if it is no text. */
function integerBytes(value: unknown): Buffer {
  const bytes = Buffer.from(typeof value === 'string' ? value : '', 'base64url')
  const first = bytes.findIndex((byte) => byte !== 0)
  return first === -1 ? Buffer.alloc(0) : bytes.subarray(first)
}

/**
 * Why an RSA key is unfit to verify signatures; undefined if it is not. With the exponent 1, every message is its
 * own signature. An even exponent is no valid RSA.
 */
export function rsaWeakness({ n, e }: Jwk): string | undefined {
  const modulus = integerBytes(n)
  const [first = 0] = modulus
  return weaknessOfRsa(modulus.length * 8 - (Math.clz32(first) - 24), integerBytes(e))
}

/** @param exponent big-endian, without leading zeros */
export function weaknessOfRsa(bits: number, exponent: Uint8Array): string | undefined {
  if (bits < LEAST_RSA_BITS) return `its RSA modulus has less than ${LEAST_RSA_BITS} bits`
  const last = exponent.at(-1) ?? 0
  if (last % 2 === 0) return 'its RSA exponent is even'
  if (exponent.length > LONGEST_EXPONENT) return `its RSA exponent has more than ${LONGEST_EXPONENT * 8} bits`
  return exponent.length === 1 && last === 1 ? 'its RSA exponent is 1' : undefined
}

/**
 * Why nobody should be believed by this key (RFC 7518 §3, RFC 8725 §3.2); undefined if nothing is wrong at first sight.
 * Whether it is a key at all, only cryptography knows.
 */
export function jwkWeakness(key: Jwk): string | undefined {
  const kty = key['kty']
  if (kty === 'oct') return 'is a symmetric key: whoever checks a signature could also make one'
  if (isPrivateJwk(key)) return 'holds a private key: give the public part only, and replace this key'
  if (kty === 'RSA') return rsaWeakness(key)
  return kty === 'EC' || kty === 'OKP' ? undefined : 'is no public key of kty EC, OKP or RSA'
}
