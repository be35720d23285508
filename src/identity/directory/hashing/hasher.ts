import { Buffer } from 'node:buffer'
import { argon2, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import type { Problems } from '../../../base/config/problems.ts'
import type { HashOwner } from '../../../base/contracts/people/people.ts'
import { VerificationQueue } from './verification-queue.ts'

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

/** PHC string format: `$argon2id$v=19$m=19456,t=2,p=1$salt$hash`, salt and hash in base64 without padding. */
interface Argon2Cost {
  /** KiB. */
  readonly memory: number
  readonly passes: number
  readonly parallelism: number
}

interface Argon2Hash extends Argon2Cost {
  readonly salt: Buffer
  readonly tag: Buffer
}

/** The OWASP recommendation: 19 MiB, two passes, one lane. It takes about 50 ms of one core. */
const ARGON2_COST: Argon2Cost = { memory: 19_456, passes: 2, parallelism: 1 }

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

export function parseArgon2(encoded: string): Argon2Hash | undefined {
  const parts = ARGON2_HASH.exec(encoded) ?? []
  const cost = readCost(parts)
  const [salt, tag] = parts.slice(4)
  if (cost === undefined || salt === undefined || tag === undefined) return undefined
  return { ...cost, salt: Buffer.from(salt, 'base64'), tag: Buffer.from(tag, 'base64') }
}

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replace(/(?<!=)=+$/, '')

const formatArgon2 = ({ memory, passes, parallelism, salt, tag }: Argon2Hash): string =>
  `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(tag)}`

const SALT_BYTES = 16
const TAG_BYTES = 32
/** Jobs: about three seconds of waiting. After that a client should rather try again. One client gets half of them. */
const WAITING = 128
/** For clients that have failed too often. Few, because a client with the right secret tries again. */
const DOUBTFUL_WAITING = 4
/** How long one hash is thought to take before any was measured, in milliseconds. */
const ONE_HASH = 50

const argon2Async = promisify(argon2)

type Derive = (secret: string, how: Argon2Hash) => Promise<Buffer>

const argon2id: Derive = (secret, how) =>
  argon2Async('argon2id', {
    message: secret,
    nonce: how.salt,
    parallelism: how.parallelism,
    tagLength: how.tag.length,
    memory: how.memory,
    passes: how.passes,
  })

/** The longest text that is composed, in characters: the time it takes grows with the square of the length. */
const LONGEST_COMPOSED = 2048

/** NFC (RFC 8265 §4.2.1): keyboards give one letter as one character, or as two. */
const composed = (secret: string): string =>
  secret.length > LONGEST_COMPOSED ? secret : secret.normalize('NFC')

/** The texts that a typed password may have been hashed as. Those that earlier versions hashed were not composed. */
function readingsOf(secret: string): readonly string[] {
  const first = composed(secret)
  return first === secret ? [secret] : [first, secret]
}

/**
 * How many hashes may run at once. They run on libuv's pool (4 threads unless UV_THREADPOOL_SIZE says otherwise). Two
 * of its threads are left for token checks, DNS and files. Measured: with 4 hashes at once, a token check took 12 ms
 * instead of 0.2; with 16, 243 ms.
 */
export function hashesAtOnce(
  cores = availableParallelism(),
  poolSize = Number(process.env['UV_THREADPOOL_SIZE'] ?? 4),
): number {
  const pool = Number.isInteger(poolSize) && poolSize > 0 ? poolSize : 4
  return Math.max(1, Math.min(cores, pool - 2))
}

/** A hash with random salt and tag: no secret fits, and a check takes as long as with a real hash. */
const dummyHash = (): Argon2Hash => ({
  ...ARGON2_COST,
  salt: randomBytes(SALT_BYTES),
  tag: randomBytes(TAG_BYTES),
})

/**
 * Passwords by argon2id, off the event loop; generated secrets by SHA-256, at once (C6.3.5).
 *
 * For an unknown client or user no secret can fit, but the answer must take as long as for a known one (T3.9). So a
 * hash is computed if that holds up nobody. Otherwise it only waits for that time: someone who invents names must not
 * keep others from logging in.
 */
export class Hasher {
  readonly #queue: VerificationQueue
  readonly #dummy = dummyHash()
  readonly #derive: Derive

  constructor({
    atOnce = hashesAtOnce(),
    waiting = WAITING,
    doubtfulWaiting = DOUBTFUL_WAITING,
    timer,
    derive = argon2id,
  }: {
    readonly atOnce?: number
    /** Jobs that may wait in the ordinary line. */
    readonly waiting?: number
    readonly doubtfulWaiting?: number
    readonly timer?: ((ms: number) => Promise<void>) | undefined
    /** For tests. */
    readonly derive?: Derive
  } = {}) {
    this.#derive = derive
    this.#queue = new VerificationQueue({
      atOnce,
      waiting,
      doubtfulWaiting,
      expected: ONE_HASH,
      alike: true,
      full: 'identity_unavailable',
      what: 'password hashes',
      timer,
    })
  }

  get waiting(): number {
    return this.#queue.waiting
  }

  /** Hashes the composed form of a secret. Rejects with Fault `identity_unavailable` if too many hashes wait. */
  async hash(secret: string): Promise<string> {
    const fresh = dummyHash()
    const tag = await this.#queue.run('ordinary', undefined, () => this.#derive(composed(secret), fresh))
    return formatArgon2({ ...fresh, tag })
  }

  /** @throws Fault `identity_unavailable` if the queue is full for this owner */
  requireRoom({ name, doubted }: HashOwner): void {
    this.#queue.requireRoom(doubted ? 'doubtful' : 'ordinary', name)
  }

  /**
   * Whether the secret fits. A hash of another cost is checked at its own cost. No secret fits an unknown encoding;
   * it takes as long as a real one, and `check` reports it. How many hashes it takes depends on the secret's text alone
   * (T3.9). Rejects with Fault `identity_unavailable` if too many hashes wait.
   */
  async verify(secret: string, encoded: string | undefined, owner?: HashOwner): Promise<boolean> {
    if (encoded !== undefined && isSecretHash(encoded)) return verifySecret(secret, encoded)
    const line = owner?.doubted === true ? 'doubtful' : 'ordinary'
    const known = encoded === undefined ? undefined : parseArgon2(encoded)
    const readings = readingsOf(secret)
    const job = (): Promise<boolean> => this.#fits(readings, known ?? this.#dummy)
    if (known !== undefined) return this.#queue.run(line, owner?.name, job, readings.length)
    await this.#queue.pretend(line, owner?.name, job, readings.length)
    return false
  }

  /** Whether one of the texts fits. All are hashed, also behind one that does. */
  async #fits(texts: readonly string[], known: Argon2Hash): Promise<boolean> {
    let fits = false
    for (const text of texts) if (timingSafeEqual(await this.#derive(text, known), known.tag)) fits = true
    return fits
  }
}

/** How long the password of a user may be, in characters (OWASP ASVS 4.0 §2.1.1, §2.1.2). */
export const PASSWORD_LENGTH = { least: 12, most: 1024 } as const

/** In place of the hash of a password that was refused, or that nobody has set yet: none fits. */
export const NO_PASSWORD = formatArgon2({ ...ARGON2_COST, salt: Buffer.alloc(16), tag: Buffer.alloc(32) })

/** Reports what is wrong with a password, and never shows it. */
export function isPassword(given: unknown, problems: Pick<Problems, 'error'>): given is string {
  const { least, most } = PASSWORD_LENGTH
  const length = typeof given === 'string' ? composed(given).length : 0
  if (typeof given === 'string' && length >= least && length <= most) return true
  const expected = `expected a text of ${least} to ${most} characters`
  const trouble =
    given === undefined ? 'is missing' : typeof given === 'string' ? 'is too short or too long' : 'is no text'
  problems.error(['password'], `${trouble}: ${expected}`)
  return false
}
