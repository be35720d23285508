import type { Buffer } from 'node:buffer'
import type { Clock } from '../../../base/kernel/clock.ts'
import { isJwk, isPrivateJwk, type Jwk, rsaWeakness } from '../../../base/kernel/jwk.ts'
import { fetchJsonBytes } from './fetch-json.ts'

/** How long a request may take, in milliseconds. */
const TIMEOUT = 5_000
/** The largest key set, in bytes: room for some hundreds of RSA keys. */
const LARGEST = 256 * 1024

/** The media types in `Accept`: the type of RFC 7517 §8.5, and the one that most servers send. */
export const JWKS_TYPES = 'application/jwk-set+json, application/json'

/** RFC 7517 §5. Redirects are not followed. Rejects with an Error if there is no good answer within 5 seconds. */
export async function fetchJwks(url: string): Promise<readonly Jwk[]> {
  const bytes = await fetchJsonBytes({
    url,
    what: 'the key set',
    accept: JWKS_TYPES,
    largest: LARGEST,
    signal: AbortSignal.timeout(TIMEOUT),
  })
  return parseJwks(bytes)
}

/** @throws Error if it is no key set (RFC 7517 §5) */
export function parseJwks(bytes: Buffer): readonly Jwk[] {
  const { keys } = JSON.parse(bytes.toString()) as { keys?: unknown }
  if (!Array.isArray(keys)) throw new TypeError('the key set has no keys')
  return keys.filter(isJwk)
}

/** The members of a public key and of its use (RFC 7517 §4, RFC 7518 §6). All others are dropped. */
const PUBLIC_MEMBERS = ['kty', 'crv', 'x', 'y', 'n', 'e', 'kid', 'alg', 'use', 'key_ops'] as const

/** A line for the log about a key of a foreign set. It never contains a piece of the key. */
export interface KeyRemark {
  readonly level: 'info' | 'warn'
  readonly event: string
  readonly kid: string | undefined
  readonly reason: string
}

interface AdmittedKeys {
  /** Public members only. */
  readonly keys: readonly Jwk[]
  readonly remarks: readonly KeyRemark[]
}

interface Refusal {
  readonly level: KeyRemark['level']
  /** Why the key must not be used to verify tokens; undefined if it may. */
  readonly reasonOf: (jwk: Jwk) => string | undefined
}

const namesVerify = (operations: unknown): boolean =>
  Array.isArray(operations) && operations.includes('verify')

const REFUSALS: readonly Refusal[] = [
  // `info`, because it is usual: issuers that encrypt publish such keys too.
  {
    level: 'info',
    reasonOf: ({ use }) => (use === undefined || use === 'sig' ? undefined : 'its `use` is not `sig`'),
  },
  {
    level: 'warn',
    reasonOf: ({ key_ops: operations }) =>
      operations === undefined || namesVerify(operations) ? undefined : 'its `key_ops` do not name `verify`',
  },
  { level: 'warn', reasonOf: (jwk) => (jwk['kty'] === 'RSA' ? rsaWeakness(jwk) : undefined) },
]

/**
 * Which keys of a foreign key set may verify tokens, and remarks about the others. In a client's set a key with private
 * members may not, because others could sign as the client.
 */
export function admitKeys(set: readonly Jwk[], owner: 'issuer' | 'client' = 'issuer'): AdmittedKeys {
  const remarks: KeyRemark[] = []
  const keys = set.filter((jwk) => {
    const kid = typeof jwk['kid'] === 'string' ? jwk['kid'].slice(0, 100) : undefined
    const isPrivate = isPrivateJwk(jwk)
    if (isPrivate)
      remarks.push({ level: 'warn', event: `${owner}_key_private`, kid, reason: privateText(owner) })
    if (isPrivate && owner === 'client') return false
    for (const { level, reasonOf } of REFUSALS) {
      const reason = reasonOf(jwk)
      if (reason === undefined) continue
      remarks.push({ level, event: `${owner}_key_refused`, kid, reason })
      return false
    }
    return true
  })
  if (keys.length === 0)
    remarks.push({ level: 'warn', event: `${owner}_keys_empty`, kid: undefined, reason: emptyText(owner) })
  return { keys: keys.map(publicMembers), remarks }
}

const emptyText = (owner: string): string =>
  `the key set has no key that may verify tokens: all tokens of the ${owner} are refused`

const privateText = (owner: string): string =>
  'the key set contains private members of this key: everyone who has read the set can sign with it; the ' +
  `${owner} should replace the key`

const publicMembers = (jwk: Jwk): Jwk =>
  Object.fromEntries(
    PUBLIC_MEMBERS.flatMap((member) => (jwk[member] === undefined ? [] : [[member, jwk[member]]])),
  )

interface KeySetReaderParts {
  /** Reads the key set and starts to use it; rejects if it cannot be read. */
  readonly read: () => Promise<void>
  readonly clock: Clock
  /** Called with the cause when readings begin to fail, and with undefined when they succeed again. */
  readonly changed: (failure: { readonly cause: unknown } | undefined) => void
  readonly pause: (milliseconds: number) => Promise<void>
}

/** The age at which a key set in use is read again, in milliseconds. No call waits for that. */
const FRESH = 60_000
/** The time between two attempts while it cannot be read, in milliseconds. No call waits for these either. */
const RETRY = 5_000
/**
 * The shortest time between the starts of any two readings, in milliseconds: it limits what unknown ids cost the issuer.
 * From the third failure in a row on it doubles, up to RETRY.
 */
export const INTERVAL = 1_000

/**
 * Decides when a foreign key set is read: one reading at a time, at most one a second, and fewer while they fail.
 *
 * A slow issuer must not hold up all callers. So after a slow failure, or two failures in a row, only the caller that
 * starts the next reading waits for it, and all others fail at once. After one quick failure all wait for the next
 * reading, because it comes soon.
 */
export class KeySetReader {
  readonly #parts: KeySetReaderParts
  #begunAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined
  #next: Promise<void> | undefined
  #had = false
  #failures = 0
  #slow = false

  constructor(parts: KeySetReaderParts) {
    this.#parts = parts
  }

  /** Whether a reading has ever succeeded. */
  get had(): boolean {
    return this.#had
  }

  get failing(): boolean {
    return this.#failures > 0
  }

  /** Clock.monotonic() at the start of the last reading. */
  get begunAt(): number {
    return this.#begunAt
  }

  /**
   * Resolves when the reading under way has made `found` true, or when a reading that began after this call has
   * succeeded. Rejects with the cause if the key set cannot be read.
   */
  async need(found: () => boolean): Promise<void> {
    if (this.#isHopeless() && !this.#mayBegin()) throw new Error('the last attempt failed a moment ago')
    if (this.#reading !== undefined) {
      await this.#reading
      if (found()) return
    }
    await this.#readNext()
  }

  /** Whether it should be read again if it is in use. */
  isStale(): boolean {
    const age = this.#parts.clock.monotonic() - this.#begunAt
    return this.#reading === undefined && age >= (this.failing || !this.#had ? RETRY : FRESH)
  }

  /** Reads it without making a call wait. Never rejects; failures go to `changed`. */
  async refresh(): Promise<void> {
    await this.#readNext().catch(() => undefined)
  }

  #isHopeless(): boolean {
    return this.failing && (this.#slow || this.#failures > 1)
  }

  #mayBegin(): boolean {
    return this.#reading === undefined && this.#next === undefined && this.#untilDue() <= 0
  }

  #untilDue(): number {
    const pause = Math.min(RETRY, INTERVAL * 2 ** Math.max(0, this.#failures - 2))
    return this.#begunAt + pause - this.#parts.clock.monotonic()
  }

  /** A reading that begins after this call. All who call before it begins share it. */
  #readNext(): Promise<void> {
    if (this.#next !== undefined) return this.#next
    const next = this.#afterThis().finally(() => {
      // By then other callers may wait for the reading after it.
      if (this.#next === next) this.#next = undefined
    })
    this.#next = next
    return next
  }

  async #afterThis(): Promise<void> {
    // If the reading under way fails, those who wait for the next one fail at once.
    await this.#reading
    const due = this.#untilDue()
    if (due > 0) await this.#parts.pause(due)
    this.#next = undefined
    this.#reading = this.#read().finally(() => {
      this.#reading = undefined
    })
    await this.#reading
  }

  async #read(): Promise<void> {
    this.#begunAt = this.#parts.clock.monotonic()
    try {
      await this.#parts.read()
      this.#had = true
      if (this.failing) this.#parts.changed(undefined)
      this.#failures = 0
    } catch (cause) {
      if (!this.failing) this.#parts.changed({ cause })
      this.#failures += 1
      this.#slow = this.#parts.clock.monotonic() - this.#begunAt >= INTERVAL
      throw cause
    }
  }
}
