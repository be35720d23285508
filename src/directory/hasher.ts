import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { HashOwner, PasswordHasher } from '../contracts/people.ts'
import { Fault } from '../kernel/faults.ts'
import { HashQueue, type Line } from './hash-queue.ts'
import {
  type Argon2Hash,
  ARGON2_COST,
  formatArgon2,
  isSecretHash,
  parseArgon2,
  verifySecret,
} from './secret-hash.ts'

const SALT_BYTES = 16
const TAG_BYTES = 32
/**
 * Jobs: about three seconds of waiting. After that a client should rather try again. One client gets half of them.
 */
const WAITING = 128
/** For clients that have failed too often. Few, because a client with the right secret tries again. */
const DOUBTFUL_WAITING = 4
/** Seconds that one hash takes, to compute Retry-After. */
const ONE_HASH = 0.05

const derive = promisify(argon2)

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
  readonly timer?: (ms: number) => Promise<void>
}

/** How many durations are kept: they show how long a hash takes at the moment. */
const KEPT_DURATIONS = 16

const systemTimer = (ms: number): Promise<void> => delay(ms, undefined, { ref: false })

/**
 * Passwords by argon2id, off the event loop; generated secrets by SHA-256, at once (C6.3.5).
 *
 * For an unknown client or user no secret can fit, but the answer must take as long as for a known one (T3.9). So a
 * hash is computed if that holds up nobody. Otherwise it only waits for that time: someone who invents names must not
 * keep others from logging in.
 */
export class Hasher implements PasswordHasher {
  readonly #queue: HashQueue
  readonly #concurrent: number
  readonly #retryAfter: number
  readonly #timer: (ms: number) => Promise<void>
  readonly #dummy = dummyHash()
  readonly #durations = new Float64Array(KEPT_DURATIONS).fill(ONE_HASH * 1000)
  #hashed = 0

  constructor({
    atOnce = hashesAtOnce(),
    waiting = WAITING,
    doubtfulWaiting = DOUBTFUL_WAITING,
    timer = systemTimer,
  }: HasherOptions = {}) {
    this.#queue = new HashQueue({ concurrent: atOnce, ordinary: waiting, doubtful: doubtfulWaiting })
    this.#concurrent = atOnce
    this.#retryAfter = Math.max(1, Math.ceil((waiting * ONE_HASH) / atOnce))
    this.#timer = timer
  }

  /** Rejects with Fault `identity_unavailable` if too many hashes wait. */
  async hash(secret: string): Promise<string> {
    const fresh = dummyHash()
    return formatArgon2({ ...fresh, tag: await this.#hashInTurn('ordinary', undefined, secret, fresh) })
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
    if (known === undefined) return this.#spendTime(line, owner?.name, secret)
    return timingSafeEqual(await this.#hashInTurn(line, owner?.name, secret, known), known.tag)
  }

  /** Resolves with false after the time of a real check in this line, and rejects if a real one would (T3.9). */
  async #spendTime(line: Line, name: string | undefined, secret: string): Promise<false> {
    this.#refuseIfFull(line, name)
    if (line === 'doubtful' || this.#queue.isFree('doubtful'))
      await this.#derive('doubtful', name, secret, this.#dummy)
    else await this.#timer(this.#expected())
    return false
  }

  /** Milliseconds that a check in the ordinary line would take now. */
  #expected(): number {
    const one = this.#durations[Math.floor(Math.random() * KEPT_DURATIONS)] ?? ONE_HASH * 1000
    const rounds = Math.floor(this.#queue.ahead / this.#concurrent)
    // The hashes that run now are somewhere between start and end.
    return rounds === 0 ? one : one * (rounds + Math.random())
  }

  #hashInTurn(line: Line, name: string | undefined, secret: string, how: Argon2Hash): Promise<Buffer> {
    this.#refuseIfFull(line, name)
    return this.#derive(line, name, secret, how)
  }

  #refuseIfFull(line: Line, name: string | undefined): void {
    if (!this.#queue.isFull(line, name)) return
    throw new Fault('identity_unavailable', {
      detail: `the ${line} queue of password hashes is full`,
      retryAfter: this.#retryAfter,
    })
  }

  #derive(line: Line, name: string | undefined, secret: string, how: Argon2Hash): Promise<Buffer> {
    return this.#queue.run(line, name, async () => {
      const started = performance.now()
      const tag = await derive('argon2id', {
        message: secret,
        nonce: how.salt,
        parallelism: how.parallelism,
        tagLength: how.tag.length,
        memory: how.memory,
        passes: how.passes,
      })
      this.#durations[this.#hashed++ % KEPT_DURATIONS] = performance.now() - started
      return tag
    })
  }
}
