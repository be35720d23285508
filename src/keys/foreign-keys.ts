import type { Recorder } from '../contracts/recorder.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import type { KeyFinder } from './key-finder.ts'
import { fitsAlgorithm, importPublicKey, type Jwk } from './signatures.ts'

export interface ForeignKeysParts {
  /** Fetches the key set (RFC 7517 §5): resolves with its keys, rejects if it cannot be had. */
  readonly fetchKeys: () => Promise<readonly Jwk[]>
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  /** Resolves after so many milliseconds; tests hand in their own. */
  readonly pause?: (milliseconds: number) => Promise<void>
}

/** Milliseconds. Keys that are known are asked for again when they are this old, behind the back of the call. */
const FRESH = 10 * 60_000
/** Between the beginnings of two fetches, whoever asks for whatever: what an unknown `kid` may cost the issuer. */
const INTERVAL = 1_000
/** How long a `kid` that a fetch did not bring is taken for unknown without another one. */
const ABSENT = 10_000
/** Unknown ids remembered, and calls that wait for a fetch, at most: a flood of ids costs no more memory than this. */
const MOST_ABSENT = 1_000
const MOST_WAITING = 1_000

const systemPause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds).unref())

/**
 * The keys of a foreign issuer (C11.2). Known keys go on while the issuer is down, however long: only what can't be
 * told is 503, never 401 (C4.15, T3.5). A token with an unknown `kid` waits for a fetch that began after it came, so
 * that a rotation is never a wrong 401; fetches are single, and at most one a second.
 */
export class ForeignKeys implements KeyFinder {
  readonly #parts: ForeignKeysParts
  readonly #pause: (milliseconds: number) => Promise<void>
  #keys: readonly Jwk[] | undefined
  #imported = new Map<string, Promise<CryptoKey>>()
  /** By `kid`: when a fetch that did not bring it began. */
  readonly #absent = new Map<string, number>()
  #begunAt = Number.NEGATIVE_INFINITY
  #fetchedAt = Number.NEGATIVE_INFINITY
  #next: Promise<void> | undefined
  #waiting = 0
  #down = false

  constructor(parts: ForeignKeysParts) {
    this.#parts = parts
    this.#pause = parts.pause ?? systemPause
  }

  async find(kid: string | undefined, algorithm: string): Promise<CryptoKey | undefined> {
    const known = this.#match(kid, algorithm)
    if (known !== undefined) {
      if (this.#now() - this.#fetchedAt > FRESH) void this.#fetchSoon().catch(() => undefined)
      return this.#import(known, algorithm)
    }
    if (kid !== undefined && this.#isAbsent(kid)) return undefined
    await this.#wait()
    const found = this.#match(kid, algorithm)
    if (found !== undefined) return this.#import(found, algorithm)
    if (kid !== undefined) this.#remember(kid)
    return undefined
  }

  /** Without a `kid` there must be no choice. */
  #match(kid: string | undefined, algorithm: string): Jwk | undefined {
    const fitting = (this.#keys ?? []).filter((jwk) => fitsAlgorithm(jwk, algorithm))
    if (kid === undefined) return fitting.length === 1 ? fitting[0] : undefined
    return fitting.find((jwk) => jwk['kid'] === kid)
  }

  #import(jwk: Jwk, algorithm: string): Promise<CryptoKey> {
    const id = `${algorithm} ${JSON.stringify(jwk)}`
    const imported = this.#imported.get(id) ?? importPublicKey(jwk, algorithm)
    this.#imported.set(id, imported)
    return imported.catch((cause: unknown) => {
      throw new Fault('token_judge_unavailable', { cause, detail: 'a key of the issuer cannot be used' })
    })
  }

  #isAbsent(kid: string): boolean {
    const since = this.#absent.get(kid)
    return since !== undefined && this.#now() - since < ABSENT
  }

  #remember(kid: string): void {
    this.#absent.delete(kid)
    this.#absent.set(kid, this.#begunAt)
    const [oldest] = this.#absent.keys()
    if (this.#absent.size > MOST_ABSENT && oldest !== undefined) this.#absent.delete(oldest)
  }

  async #wait(): Promise<void> {
    if (this.#waiting >= MOST_WAITING)
      throw new Fault('token_judge_unavailable', { detail: 'too many tokens with unknown keys' })
    this.#waiting += 1
    try {
      await this.#fetchSoon()
    } catch (cause) {
      throw new Fault('token_judge_unavailable', { cause, detail: 'the keys of the issuer cannot be had' })
    } finally {
      this.#waiting -= 1
    }
  }

  /** A fetch that begins after this call, shared by all who call before it begins. */
  #fetchSoon(): Promise<void> {
    this.#next ??= this.#pauseUntilDue().then(() => {
      this.#next = undefined
      return this.#fetch()
    })
    return this.#next
  }

  async #pauseUntilDue(): Promise<void> {
    const due = this.#begunAt + INTERVAL - this.#now()
    if (due > 0) await this.#pause(due)
  }

  async #fetch(): Promise<void> {
    this.#begunAt = this.#now()
    try {
      this.#use(await this.#parts.fetchKeys())
      if (this.#down) this.#parts.recorder.note('info', 'issuer_keys_reachable_again')
      this.#down = false
    } catch (cause) {
      if (!this.#down) this.#parts.recorder.note('error', 'issuer_keys_unreachable', { cause })
      this.#down = true
      throw cause
    }
  }

  #use(keys: readonly Jwk[]): void {
    this.#keys = keys
    this.#fetchedAt = this.#now()
    this.#imported = new Map()
    for (const { kid } of keys) if (typeof kid === 'string') this.#absent.delete(kid)
  }

  #now(): number {
    return this.#parts.clock.monotonic()
  }
}
