import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import type { HashOwner, PasswordHasher } from '../contracts/people.ts'
import {
  type Argon2Hash,
  ARGON2_COST,
  formatArgon2,
  isSecretHash,
  parseArgon2,
  verifySecret,
} from './secret-hash.ts'
import { VerificationQueue } from './verification-queue.ts'

const SALT_BYTES = 16
const TAG_BYTES = 32
/**
 * Jobs: about three seconds of waiting. After that a client should rather try again. One client gets half of them.
 */
const WAITING = 128
/** For clients that have failed too often. Few, because a client with the right secret tries again. */
const DOUBTFUL_WAITING = 4
/** Milliseconds that one hash takes. */
const ONE_HASH = 50

const argon2Async = promisify(argon2)

const derive = (secret: string, how: Argon2Hash): Promise<Buffer> =>
  argon2Async('argon2id', {
    message: secret,
    nonce: how.salt,
    parallelism: how.parallelism,
    tagLength: how.tag.length,
    memory: how.memory,
    passes: how.passes,
  })

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

export interface HasherOptions {
  readonly atOnce?: number
  /** Jobs that may wait in the ordinary line. */
  readonly waiting?: number
  readonly doubtfulWaiting?: number
  readonly timer?: ((ms: number) => Promise<void>) | undefined
}

/**
 * Passwords by argon2id, off the event loop; generated secrets by SHA-256, at once (C6.3.5).
 *
 * For an unknown client or user no secret can fit, but the answer must take as long as for a known one (T3.9). So a
 * hash is computed if that holds up nobody. Otherwise it only waits for that time: someone who invents names must not
 * keep others from logging in.
 */
export class Hasher implements PasswordHasher {
  readonly #queue: VerificationQueue
  readonly #dummy = dummyHash()

  constructor({
    atOnce = hashesAtOnce(),
    waiting = WAITING,
    doubtfulWaiting = DOUBTFUL_WAITING,
    timer,
  }: HasherOptions = {}) {
    const bounds = { atOnce, waiting, doubtfulWaiting, expected: ONE_HASH, alike: true }
    this.#queue = new VerificationQueue({
      ...bounds,
      full: 'identity_unavailable',
      what: 'password hashes',
      timer,
    })
  }

  /** How many hashes wait for their turn. */
  get waiting(): number {
    return this.#queue.waiting
  }

  /** Rejects with Fault `identity_unavailable` if too many hashes wait. */
  async hash(secret: string): Promise<string> {
    const fresh = dummyHash()
    const tag = await this.#queue.run('ordinary', undefined, () => derive(secret, fresh))
    return formatArgon2({ ...fresh, tag })
  }

  requireRoom({ name, doubted }: HashOwner): void {
    this.#queue.requireRoom(doubted ? 'doubtful' : 'ordinary', name)
  }

  /**
   * Whether the secret fits. A hash of another cost is checked at its own cost. No secret fits an unknown encoding;
   * it takes as long as a real one, and `check` reports it. Rejects with Fault `identity_unavailable` if too many
   * hashes wait.
   */
  async verify(secret: string, encoded: string | undefined, owner?: HashOwner): Promise<boolean> {
    if (encoded !== undefined && isSecretHash(encoded)) return verifySecret(secret, encoded)
    const line = owner?.doubted === true ? 'doubtful' : 'ordinary'
    const known = encoded === undefined ? undefined : parseArgon2(encoded)
    if (known === undefined) {
      await this.#queue.pretend(line, owner?.name, () => derive(secret, this.#dummy))
      return false
    }
    const tag = await this.#queue.run(line, owner?.name, () => derive(secret, known))
    return timingSafeEqual(tag, known.tag)
  }
}
