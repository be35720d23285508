import { LRUCache } from 'lru-cache'
import { NEEDS_ISSUER } from '../../../base/contracts/people/keys.ts'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { Fault } from '../../../base/kernel/faults.ts'
import { admitKeys, INTERVAL, type KeyRemark, KeySetReader } from '../remote/key-set-reader.ts'
import type { Jwk } from '../../../base/kernel/jwk.ts'
import { fitsAlgorithm, importPublicKey, publicPart, type PublicKey } from '../verify/signatures.ts'
import { type KeyFinder, Standing, type TrustedKey } from '../verify/token-verifier.ts'

interface ForeignKeysParts {
  readonly issuer: string
  /** Resolves with the keys of the key set (RFC 7517 §5); rejects if it cannot be read. */
  readonly fetchKeys: () => Promise<readonly Jwk[]>
  /** The endpoint for opaque tokens that the metadata names, if a reading has brought it. */
  readonly endpoint?: () => string | undefined
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  readonly pause?: (milliseconds: number) => Promise<void>
}

/** The time between two checks whether the key set should be read again, in milliseconds. */
const TICK = 250
/**
 * How long a `kid` that no reading brought counts as unknown without another one, in milliseconds. No longer than
 * the pause between two readings: otherwise someone who guesses the next `kid` could get its first tokens refused.
 */
const ABSENT = INTERVAL
/** Limits for unknown ids in memory and for calls that wait for a reading, so that a flood of ids costs little. */
const MAX_ABSENT = 1_000
const MAX_WAITING = 1_000
/** Most keys of one `kid` with which a signature is tried. */
const MAX_TRIED = 4
/** Most remarks remembered. Each is logged once, however often the key set is read. */
const MAX_REPORTED = 200

const systemPause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds).unref())

/** A key in use for one algorithm, as long as the issuer publishes it. */
interface Used {
  readonly algorithm: string
  readonly publicKey: Promise<PublicKey>
  readonly standing: Standing
}

/** `unknown`: the keys were never read, so no token can be verified. `stale`: the last reading failed. */
export type KeysState = 'unknown' | 'stale' | 'fresh'

/**
 * The keys of a foreign issuer (C11.2).
 *
 * Known keys stay in use while the issuer is down, however long. A token that cannot be verified for that reason gets
 * 503, never 401 (C4.15, T3.5). A token with an unknown `kid` waits for a reading that began after the token arrived,
 * so a rotation never causes a wrong 401. While tokens arrive, the key set is read again each minute. A key that is
 * missing then is withdrawn, with every token that it has verified (T3.10).
 */
export class ForeignKeys implements KeyFinder {
  readonly #parts: ForeignKeysParts
  readonly #reader: KeySetReader
  #keys: readonly Jwk[] = []
  /** By algorithm, `kid` and key. */
  #used = new Map<string, Used>()
  /** By `kid`: Clock.monotonic() at the start of the reading that did not bring it. */
  readonly #absent = new LRUCache<string, number>({ max: MAX_ABSENT })
  readonly #reported = new Set<string>()
  #waiting = 0
  #endpointAsked = false
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(parts: ForeignKeysParts) {
    this.#parts = parts
    this.#reader = new KeySetReader({
      read: async () => this.#use(await parts.fetchKeys()),
      clock: parts.clock,
      pause: parts.pause ?? systemPause,
      changed: (failure) => this.#reportReachable(failure),
    })
  }

  /** Reads the key set now, and again while it is in use or unreadable, until `close`. */
  start(): void {
    void this.#reader.refresh()
    this.#timer = setInterval(() => this.tick(), TICK).unref()
  }

  tick(): void {
    if (!this.#reader.isStale()) return
    if (this.#takeAsked() || !this.#reader.had) void this.#reader.refresh()
  }

  /** Stops reading. From now on no token that these keys have verified is accepted. */
  close(): void {
    clearInterval(this.#timer)
    this.#closed = true
    this.#keep([])
  }

  get state(): KeysState {
    if (!this.#reader.had) return 'unknown'
    return this.#reader.failing ? 'stale' : 'fresh'
  }

  async find(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined> {
    const known = this.#match(kid, algorithm)
    if (known.length > 0) {
      if (this.#reader.isStale()) void this.#reader.refresh()
      return this.#trust(known, algorithm)
    }
    if (kid !== undefined && this.#isAbsent(kid)) return undefined
    await this.#wait(() => this.#match(kid, algorithm).length > 0)
    const found = this.#match(kid, algorithm)
    if (found.length > 0) return this.#trust(found, algorithm)
    if (kid !== undefined) this.#absent.set(kid, this.#reader.begunAt)
    return undefined
  }

  /** Rejects with Fault `token_judge_unavailable`, NEEDS_ISSUER, if the key set would have to be read. */
  async findLocally(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined> {
    const known = this.#match(kid, algorithm)
    if (known.length > 0)
      return Promise.all(
        known.map(async (jwk) => ({
          publicKey: await importPublicKey(jwk, algorithm),
          standing: this.#used.get(idOf(jwk, algorithm))?.standing ?? new Standing(),
        })),
      )
    if (kid !== undefined && this.#isAbsent(kid)) return undefined
    throw new Fault('token_judge_unavailable', { detail: NEEDS_ISSUER })
  }

  /** The endpoint for opaque tokens, by the metadata. Rejects with Fault `token_judge_unavailable` if that cannot be read, or names none. */
  async endpoint(): Promise<string> {
    const known = (): string | undefined => this.#parts.endpoint?.()
    this.#endpointAsked = true
    if (known() === undefined) await this.#wait(() => known() !== undefined)
    const endpoint = known()
    if (endpoint !== undefined) return endpoint
    throw new Fault('token_judge_unavailable', { detail: 'the issuer names no introspection endpoint' })
  }

  /** Without a `kid` exactly one key must fit. */
  #match(kid: string | undefined, algorithm: string): readonly Jwk[] {
    const fitting = this.#keys.filter((jwk) => fitsAlgorithm(jwk, algorithm))
    if (kid === undefined) return fitting.length === 1 ? fitting : []
    return fitting.filter((jwk) => jwk['kid'] === kid).slice(0, MAX_TRIED)
  }

  /** The keys that can be used. Rejects with Fault `token_judge_unavailable` if none can. */
  async #trust(found: readonly Jwk[], algorithm: string): Promise<readonly TrustedKey[]> {
    const opened = await Promise.allSettled(
      found.map(async (jwk): Promise<TrustedKey> => {
        const { publicKey, standing } = this.#open(jwk, algorithm)
        return { publicKey: await publicKey, standing }
      }),
    )
    const usable = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    if (usable.length > 0) return usable
    const cause: unknown = opened.find((result) => result.status === 'rejected')?.reason
    throw new Fault('token_judge_unavailable', { cause, detail: 'a key of the issuer cannot be used' })
  }

  #open(jwk: Jwk, algorithm: string): Used {
    const id = idOf(jwk, algorithm)
    const known = this.#used.get(id)
    if (known !== undefined) return known
    const opened = { algorithm, publicKey: importPublicKey(jwk, algorithm), standing: new Standing() }
    this.#used.set(id, opened)
    return opened
  }

  #isAbsent(kid: string): boolean {
    const since = this.#absent.peek(kid)
    return since !== undefined && this.#parts.clock.monotonic() - since < ABSENT
  }

  async #wait(found: () => boolean): Promise<void> {
    if (this.#waiting >= MAX_WAITING)
      throw new Fault('token_judge_unavailable', { detail: 'too many tokens with unknown keys' })
    this.#waiting += 1
    try {
      await this.#reader.need(found)
    } catch (cause) {
      throw new Fault('token_judge_unavailable', { cause, detail: 'the keys of the issuer cannot be read' })
    } finally {
      this.#waiting -= 1
    }
  }

  #use(set: readonly Jwk[]): void {
    if (this.#closed) return
    const { keys, remarks } = admitKeys(set)
    this.#keep(keys)
    for (const { kid } of keys) if (typeof kid === 'string') this.#absent.delete(kid)
    for (const remark of remarks) this.#report(remark)
  }

  #keep(keys: readonly Jwk[]): void {
    this.#keys = keys
    for (const [id, { algorithm, standing }] of this.#used) {
      if (keys.some((jwk) => fitsAlgorithm(jwk, algorithm) && idOf(jwk, algorithm) === id)) continue
      standing.end()
      this.#used.delete(id)
    }
  }

  /** Whether a token that these keys have verified, or the endpoint, was used since the last call. */
  #takeAsked(): boolean {
    let asked = this.#endpointAsked
    this.#endpointAsked = false
    for (const { standing } of this.#used.values()) asked = standing.takeAsked() || asked
    return asked
  }

  #report({ level, event, kid, reason }: KeyRemark): void {
    const remark = `${event} ${kid} ${reason}`
    if (this.#reported.has(remark) || this.#reported.size >= MAX_REPORTED) return
    this.#reported.add(remark)
    this.#parts.recorder.note(level, event, { issuer: this.#parts.issuer, kid, reason })
  }

  #reportReachable(failure: { readonly cause: unknown } | undefined): void {
    const { issuer, recorder } = this.#parts
    if (failure === undefined) recorder.note('info', 'issuer_keys_reachable_again', { issuer })
    else recorder.note('error', 'issuer_keys_unreachable', { issuer, cause: failure.cause })
  }
}

const idOf = (jwk: Jwk, algorithm: string): string =>
  JSON.stringify([algorithm, jwk['kid'], publicPart(jwk, algorithm)])
