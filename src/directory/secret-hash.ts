import { createHash, timingSafeEqual } from 'node:crypto'

/**
 * Generated client secrets (128 bits or more) are kept as `sha256:` and the digest in base64url: nobody can guess
 * them, so slowness would protect nothing, and a refresh need not wait for a password hash.
 */
const PREFIX = 'sha256:'
const ENCODED = /^sha256:[A-Za-z0-9_-]{43}$/

const digest = (secret: string): Buffer => createHash('sha256').update(secret).digest()

export const hashSecret = (secret: string): string => PREFIX + digest(secret).toString('base64url')

export const isSecretHash = (encoded: string): boolean => ENCODED.test(encoded)

/** In constant time. False for every other encoding. */
export function verifySecret(secret: string, encoded: string): boolean {
  if (!isSecretHash(encoded)) return false
  return timingSafeEqual(digest(secret), Buffer.from(encoded.slice(PREFIX.length), 'base64url'))
}
