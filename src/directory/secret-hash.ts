import { hash, timingSafeEqual } from 'node:crypto'

/**
 * Generated client secrets (128 bits or more) are stored as `sha256:` and the digest in base64url. Nobody can guess
 * them, so a slow hash would protect nothing, and a refresh does not have to wait for one.
 */
const PREFIX = 'sha256:'
const SHA256_HASH = /^sha256:[A-Za-z0-9_-]{43}$/

const digest = (secret: string): Buffer => hash('sha256', secret, 'buffer')

export const hashSecret = (secret: string): string => PREFIX + digest(secret).toString('base64url')

export const isSecretHash = (encoded: string): boolean => SHA256_HASH.test(encoded)

/** Compares in constant time. False for every other encoding. */
export function verifySecret(secret: string, encoded: string): boolean {
  if (!isSecretHash(encoded)) return false
  return timingSafeEqual(digest(secret), Buffer.from(encoded.slice(PREFIX.length), 'base64url'))
}

/**
 * The cost in an argon2id hash. All argon2 tools write such hashes in the PHC string format:
 * `$argon2id$v=19$m=19456,t=2,p=1$salt$hash`, salt and hash in base64 without padding.
 */
export interface Argon2Cost {
  /** KiB. */
  readonly memory: number
  readonly passes: number
  readonly parallelism: number
}

export interface Argon2Hash extends Argon2Cost {
  readonly salt: Buffer
  readonly tag: Buffer
}

/** The OWASP recommendation: 19 MiB, two passes, one lane. It takes about 50 ms of one core. */
export const ARGON2_COST: Argon2Cost = { memory: 19_456, passes: 2, parallelism: 1 }

// Limits, so that a record can't make a login too expensive: 1 GiB, 20 passes, 16 lanes.
const MAX_COST: Argon2Cost = { memory: 1_048_576, passes: 20, parallelism: 16 }

const ARGON2_HASH =
  /^\$argon2id\$v=19\$m=([0-9]{1,7}),t=([0-9]{1,2}),p=([0-9]{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{16,86})$/

const within = (cost: Argon2Cost): boolean =>
  cost.parallelism >= 1 &&
  cost.parallelism <= MAX_COST.parallelism &&
  cost.passes >= 1 &&
  cost.passes <= MAX_COST.passes &&
  // RFC 9106 §3.1: at least 8 KiB per lane.
  cost.memory >= 8 * cost.parallelism &&
  cost.memory <= MAX_COST.memory

function readCost(parts: readonly string[]): Argon2Cost | undefined {
  const [, memory, passes, parallelism] = parts
  const cost = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) }
  return within(cost) ? cost : undefined
}

/** Whether it is an argon2id hash (version 19) whose cost is within the limits. */
export const isArgon2 = (encoded: string): boolean => readCost(ARGON2_HASH.exec(encoded) ?? []) !== undefined

/** Undefined if `isArgon2` is false. */
export function parseArgon2(encoded: string): Argon2Hash | undefined {
  const parts = ARGON2_HASH.exec(encoded) ?? []
  const cost = readCost(parts)
  const [salt, tag] = parts.slice(4)
  if (cost === undefined || salt === undefined || tag === undefined) return undefined
  return { ...cost, salt: Buffer.from(salt, 'base64'), tag: Buffer.from(tag, 'base64') }
}

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replace(/(?<!=)=+$/, '')

export const formatArgon2 = ({ memory, passes, parallelism, salt, tag }: Argon2Hash): string =>
  `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(tag)}`
