/** A JSON Web Key (RFC 7517), as far as it can be judged without cryptography. */
import { Buffer } from 'node:buffer'

export type Jwk = Readonly<Record<string, unknown>> & { readonly kty?: unknown; readonly kid?: unknown }

/** Members of private and of symmetric keys (RFC 7518 §6.2.2, §6.3.2, §6.4; RFC 8037 §2). */
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const

export const isPrivateJwk = (key: Jwk): boolean => PRIVATE.some((member) => Object.hasOwn(key, member))

/** Bits of the modulus (RFC 7518 §3.3). */
export const LEAST_RSA_BITS = 2048

/** The least significant bits are all there; leading zero bytes do not count. */
function bitsOf(n: unknown): number {
  if (typeof n !== 'string') return 0
  const bytes = Buffer.from(n, 'base64url')
  const first = bytes.findIndex((byte) => byte !== 0)
  return first < 0 ? 0 : (bytes.length - first) * 8 - Math.clz32(bytes[first] ?? 0) + 24
}

/**
 * Why nobody should be believed by this key (RFC 7518 §3, RFC 8725 §3.2); undefined if nothing is wrong at first sight.
 * Whether it is a key at all, only cryptography knows.
 */
export function jwkWeakness(key: Jwk): string | undefined {
  if (key.kty === 'oct') return 'is a symmetric key: whoever checks a signature could also make one'
  if (isPrivateJwk(key)) return 'holds a private key: give the public part only, and replace this key'
  if (key.kty === 'RSA' && bitsOf(key['n']) < LEAST_RSA_BITS)
    return `is an RSA key of less than ${LEAST_RSA_BITS} bits`
  return ['RSA', 'EC', 'OKP'].includes(String(key.kty)) ? undefined : 'is no public key of kty EC, OKP or RSA'
}
