import { hash, randomFillSync, timingSafeEqual } from 'node:crypto'

/** Random bytes that are drawn at once: each drawing costs several microseconds, however many they are. */
const POOL_BYTES = 4096
/** Bytes that are converted to text at once. Few, since a substring keeps the whole text in memory. */
const TEXT_BYTES = 512
const pool = Buffer.alloc(POOL_BYTES)
let written = POOL_BYTES
let text = ''
let used = 0

/** Fresh random bytes, at most POOL_BYTES. They are overwritten later. */
function randomPart(count: number): Buffer {
  if (written + count > POOL_BYTES) {
    randomFillSync(pool)
    written = 0
  }
  written += count
  return pool.subarray(written - count, written)
}

/** Fresh random hex digits, at most 2 × TEXT_BYTES. They are prepared in advance, since every call needs some. */
function randomDigits(count: number): string {
  if (used + count > text.length) refill()
  used += count
  return text.slice(used - count, used)
}

function refill(): void {
  text = randomPart(TEXT_BYTES).toString('hex')
  used = 0
}

/** A fresh request or trace id: 128 random bits as 32 hex digits. */
export const newRequestId = (): string => randomDigits(32)

/** A fresh span id (W3C Trace Context): 64 random bits as 16 hex digits. */
export const newSpanId = (): string => randomDigits(16)

/** An unguessable value (token, code, secret) of `bytes` random bytes, base64url. Its bytes are kept nowhere else. */
export function newSecret(bytes = 32): string {
  const part = randomPart(bytes)
  const secret = part.toString('base64url')
  part.fill(0)
  return secret
}

const digest = (text: string): Buffer => hash('sha256', text, 'buffer')

/** Compares two secrets in constant time, whatever their contents and lengths. */
export const equalSecrets = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b))
