import { createHash, randomBytes, randomFillSync, timingSafeEqual } from 'node:crypto'

/** Random bytes that are drawn at once. */
const POOL_BYTES = 4096
/** Bytes that are converted to text at once. Few, since a substring keeps the whole text in memory. */
const TEXT_BYTES = 512
const pool = Buffer.alloc(POOL_BYTES)
let written = POOL_BYTES
let text = ''
let used = 0

/** Fresh random hex digits, at most 2 × TEXT_BYTES. They are prepared in advance, since every call needs some. */
function randomDigits(count: number): string {
  if (used + count > text.length) refill()
  used += count
  return text.slice(used - count, used)
}

function refill(): void {
  if (written === POOL_BYTES) {
    randomFillSync(pool)
    written = 0
  }
  text = pool.toString('hex', written, written + TEXT_BYTES)
  written += TEXT_BYTES
  used = 0
}

/** A fresh request or trace id: 128 random bits as 32 hex digits. */
export const newRequestId = (): string => randomDigits(32)

/** A fresh span id (W3C Trace Context): 64 random bits as 16 hex digits. */
export const newSpanId = (): string => randomDigits(16)

/** An unguessable value (token, code, secret) of `bytes` random bytes, base64url. */
export const newSecret = (bytes = 32): string => randomBytes(bytes).toString('base64url')

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares two secrets in constant time, whatever their contents and lengths. */
export const equalSecrets = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b))
