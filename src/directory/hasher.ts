import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import type { PasswordHasher } from '../contracts/people.ts'
import { Fault } from '../kernel/faults.ts'
import { COST, formatArgon2, parseArgon2, type Argon2Hash } from './argon2-encoding.ts'
import { isSecretHash, verifySecret } from './secret-hash.ts'
import { Turnstile } from './turnstile.ts'

const SALT_BYTES = 16
const TAG_BYTES = 32
/** Two or three seconds of waiting: longer than that, a client had better come again. */
const WAITING = 64
/** What one hash takes, for telling when to come again. Seconds. */
const ONE_HASH = 0.05

const derive = promisify(argon2)

/**
 * How many hashes may run at once. They run on libuv's pool (4 threads unless UV_THREADPOOL_SIZE says otherwise),
 * and two of its threads are left to token checks, DNS and files: with 4 hashes in flight a token check was measured
 * to go from 0.2 to 12 ms, with 16 to 243 ms.
 */
export function hashesAtOnce(
  cores = availableParallelism(),
  poolSize = Number(process.env['UV_THREADPOOL_SIZE'] ?? 4),
): number {
  const pool = Number.isInteger(poolSize) && poolSize > 0 ? poolSize : 4
  return Math.max(1, Math.min(cores, pool - 2))
}

/** Nobody’s hash, its salt and tag drawn: checking against it takes as long as against a real one, and no secret fits. */
const nobodys = (): Argon2Hash => ({
  ...COST,
  salt: randomBytes(SALT_BYTES),
  tag: randomBytes(TAG_BYTES),
})

export interface HasherOptions {
  readonly atOnce?: number
  readonly waiting?: number
}

/** Passwords by argon2id, off the event loop; generated secrets by SHA-256, at once (C6.3.5). */
export class Hasher implements PasswordHasher {
  readonly #turnstile: Turnstile
  readonly #retryAfter: number
  readonly #nobody = nobodys()

  constructor({ atOnce = hashesAtOnce(), waiting = WAITING }: HasherOptions = {}) {
    this.#turnstile = new Turnstile(atOnce, waiting)
    this.#retryAfter = Math.max(1, Math.ceil((waiting * ONE_HASH) / atOnce))
  }

  /** How many wait at the moment, for the metrics. */
  get waiting(): number {
    return this.#turnstile.waiting
  }

  async hash(secret: string): Promise<string> {
    const fresh = nobodys()
    return formatArgon2({ ...fresh, tag: await this.#derive(secret, fresh) })
  }

  /**
   * A hash of older cost still verifies, at its own cost. An encoding that is none of ours takes the time of a real
   * one and fits nothing: the configuration's check is where it is told.
   */
  async verify(secret: string, encoded: string | undefined): Promise<boolean> {
    if (encoded !== undefined && isSecretHash(encoded)) return verifySecret(secret, encoded)
    const known = encoded === undefined ? undefined : parseArgon2(encoded)
    const tag = await this.#derive(secret, known ?? this.#nobody)
    return timingSafeEqual(tag, (known ?? this.#nobody).tag) && known !== undefined
  }

  async #derive(secret: string, how: Argon2Hash): Promise<Buffer> {
    if (this.#turnstile.full)
      throw new Fault('identity_unavailable', {
        detail: 'the queue of password hashes is full',
        retryAfter: this.#retryAfter,
      })
    return this.#turnstile.pass(() =>
      derive('argon2id', {
        message: secret,
        nonce: how.salt,
        parallelism: how.parallelism,
        tagLength: how.tag.length,
        memory: how.memory,
        passes: how.passes,
      }),
    )
  }
}
