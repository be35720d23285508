import { Buffer } from 'node:buffer'
import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { PROOF_ALGORITHMS } from './schema.ts'
import type { Claims } from '../../base/contracts/people/keys.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { isJwk, isPrivateJwk, type Jwk, rsaWeakness } from '../../base/kernel/jwk.ts'
import { ALGORITHMS, type AlgorithmRow } from '../../identity/keys/verify/algorithms.ts'
import {
  fitsAlgorithm,
  type PublicKey,
  publicKeyOf,
  publicPart,
} from '../../identity/keys/verify/signatures.ts'

/** The key in the header of a proof, with all that verifies its signature. */
export interface ProofKey {
  readonly jkt: string
  readonly key: PublicKey
}

/** A fault whose text the sender reads: it is fixed, without a piece of the proof. */
export const badProof = (say: string): Fault => new Fault('invalid_dpop_proof', { say })

/** Members that make a verifier do more than check a signature with the key of the header (RFC 7515 §4.1, RFC 7797). */
const FORBIDDEN = ['crit', 'b64', 'jku', 'x5u', 'x5c', 'enc', 'zip'] as const

/** RFC 9449 §4.2. @throws Fault `invalid_dpop_proof` */
export function readProofHeader(header: Claims): ProofKey {
  const { alg, jwk, typ } = header
  if (typ !== 'dpop+jwt') throw badProof('The typ of its header is not dpop+jwt.')
  const forbidden = FORBIDDEN.find((member) => Object.hasOwn(header, member))
  if (forbidden !== undefined) throw badProof(`Its header may not have ${forbidden}.`)
  const row = PROOF_ALGORITHMS.some((name) => name === alg) ? ALGORITHMS.get(String(alg)) : undefined
  if (row === undefined) throw badProof(`Its alg is none of ${PROOF_ALGORITHMS.join(', ')}.`)
  if (!isJwk(jwk)) throw badProof('Its header has no jwk.')
  if (isPrivateJwk(jwk)) throw badProof('Its jwk has a private member: replace the key.')
  return keyOf(jwk, String(alg), row)
}

function keyOf(jwk: Jwk, algorithm: string, row: AlgorithmRow): ProofKey {
  const weakness = row.kty === 'RSA' ? weaknessOf(jwk) : undefined
  if (weakness !== undefined || !fitsAlgorithm(jwk, algorithm))
    throw badProof('Its jwk is too weak, too large, or no key for its alg.')
  try {
    const key = createPublicKey({ key: publicPart(jwk, algorithm), format: 'jwk' })
    return { jkt: thumbprintOf(key, row), key: publicKeyOf(key, algorithm, row) }
  } catch {
    throw badProof('Its jwk is no key.')
  }
}

/** The longest modulus, in bytes. The sender of a proof chooses its key, and a longer key makes its signature slower. */
const LONGEST_MODULUS = 512

const weaknessOf = (jwk: Jwk): string | undefined =>
  Buffer.from(String(jwk['n']), 'base64url').length > LONGEST_MODULUS ? 'it is too large' : rsaWeakness(jwk)

/**
 * RFC 7638, with SHA-256. jose's own waits for Web Crypto. Of the key as node:crypto writes it, so that a key has one
 * thumbprint however its sender has spelled it.
 */
function thumbprintOf(key: KeyObject, { members }: AlgorithmRow): string {
  const jwk: Jwk = { ...key.export({ format: 'jwk' }) }
  const required = [...members].sort().map((member) => [member, jwk[member]])
  return hash('sha256', JSON.stringify(Object.fromEntries(required)), 'base64url')
}
