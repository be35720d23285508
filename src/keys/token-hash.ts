import { createHash } from 'node:crypto'
import type { SigningAlgorithm } from '../contracts/people.ts'

const HASHES: Readonly<Record<SigningAlgorithm, string>> = { ES256: 'sha256', RS256: 'sha256' }

/** `at_hash` (OIDC Core §3.1.3.6): left half of the token's hash by the id_token's own algorithm, base64url. */
export function accessTokenHash(token: string, algorithm: SigningAlgorithm): string {
  const digest = createHash(HASHES[algorithm]).update(token, 'ascii').digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}
