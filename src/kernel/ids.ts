import { randomBytes, randomFillSync } from 'node:crypto'

const POOL_BYTES = 4096
const ID_BYTES = 16
const pool = Buffer.alloc(POOL_BYTES)
let used = POOL_BYTES

/** A fresh request or trace id: 128 random bits as 32 hex digits. Drawn from a pool, since every call needs one. */
export function newRequestId(): string {
  if (used + ID_BYTES > POOL_BYTES) {
    randomFillSync(pool)
    used = 0
  }
  const id = pool.toString('hex', used, used + ID_BYTES)
  used += ID_BYTES
  return id
}

/** An unguessable value (token, code, secret) of `bytes` random bytes, base64url. */
export const newSecret = (bytes = 32): string => randomBytes(bytes).toString('base64url')
