import { Buffer } from 'node:buffer'
import { createHash, hash, randomFillSync, timingSafeEqual } from 'node:crypto'

/** Random bytes that are drawn at once: each drawing costs several microseconds, however many they are. */
const POOL_BYTES = 4096
/** Bytes that are converted to text at once. Few, because a substring keeps the whole text in memory. */
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

/** Fresh random hex digits, at most 2 × TEXT_BYTES. They are prepared in advance, because every call needs some. */
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

/** The characters of base64url in the order of their bytes. */
const IN_ORDER = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'
/** For how many milliseconds ids begin alike. */
const TICK = 16
/** Five characters of time, which begin anew after 198 days, and 102 random bits. */
const TIME_LENGTH = 5
const RANDOM_LENGTH = 17

/**
 * An id of 22 characters that nobody else draws. Ids of the same time are next to each other in an index, so a store writes
 * few pages for many new records: for random ones it writes a page of each index for each record. Not a secret.
 * @param now milliseconds since the epoch
 */
export function newOrderedId(now: number): string {
  let ticks = Math.floor(now / TICK)
  let time = ''
  for (let at = 0; at < TIME_LENGTH; at += 1) {
    time = IN_ORDER.charAt(ticks % IN_ORDER.length) + time
    ticks = Math.floor(ticks / IN_ORDER.length)
  }
  return time + newSecret(13).slice(0, RANDOM_LENGTH)
}

const digest = (text: string): Buffer => hash('sha256', text, 'buffer')

/** Compares two secrets in constant time, whatever their contents and lengths. */
export const equalSecrets = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b))

/** Characters of base64url: 96 bits, so that no two roles have the same one. */
const LENGTH = 16

/** The role in an access token (C6.1.8). Not its name: only `service_profile` shows that to a client (C5.6). */
export const roleMark = (name: string): string =>
  createHash('sha256').update(`role\0${name}`).digest('base64url').slice(0, LENGTH)
