import { type Jwk, rsaWeakness } from './signatures.ts'
import type { Clock } from '../kernel/clock.ts'

const TIMEOUT_MS = 5_000
/** Bytes: some hundreds of RSA keys. */
const LARGEST = 256 * 1024

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length
    if (length > LARGEST) throw new RangeError('the key set is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

const isKey = (value: unknown): value is Jwk =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reads a JWK Set (RFC 7517 §5) from an address. Redirects are not followed: who else may serve keys is not theirs to say. */
export async function fetchJwks(url: string): Promise<readonly Jwk[]> {
  const response = await fetch(url, {
    headers: { accept: 'application/jwk-set+json, application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  if (response.status !== 200) throw new Error(`the key set answered ${response.status}`)
  const { keys } = JSON.parse(await readBounded(response)) as { keys?: unknown }
  if (!Array.isArray(keys)) throw new TypeError('the key set has no keys')
  return keys.filter(isKey)
}

/** The members of a public key and what is said about its use (RFC 7517 §4, RFC 7518 §6). Others are not kept. */
const PUBLIC_MEMBERS = ['kty', 'crv', 'x', 'y', 'n', 'e', 'kid', 'alg', 'use', 'key_ops'] as const
/** Of a private or a symmetric key: they have no business in a published set. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const

/** What an operator is told about a key of an issuer. Never holds a piece of the key. */
export interface KeyRemark {
  readonly level: 'info' | 'warn'
  readonly event: string
  /** As the issuer says it; undefined if it says none. */
  readonly kid: string | undefined
  readonly reason: string
}

export interface AdmittedKeys {
  /** Public members only. */
  readonly keys: readonly Jwk[]
  readonly remarks: readonly KeyRemark[]
}

interface Refusal {
  readonly level: KeyRemark['level']
  /** Why the key may not verify; undefined if it may. */
  readonly reasonOf: (jwk: Jwk) => string | undefined
}

const namesVerify = (operations: unknown): boolean =>
  Array.isArray(operations) && operations.includes('verify')

const REFUSALS: readonly Refusal[] = [
  // Usual: the keys of issuers that encrypt too.
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

/** Which keys of a foreign key set may verify, and what is to be told of the others. */
export function admitKeys(set: readonly Jwk[]): AdmittedKeys {
  const remarks: KeyRemark[] = []
  const keys = set.filter((jwk) => {
    const kid = typeof jwk['kid'] === 'string' ? jwk['kid'].slice(0, 100) : undefined
    if (PRIVATE_MEMBERS.some((member) => jwk[member] !== undefined))
      remarks.push({ level: 'warn', event: 'issuer_key_private', kid, reason: PRIVATE })
    for (const { level, reasonOf } of REFUSALS) {
      const reason = reasonOf(jwk)
      if (reason === undefined) continue
      remarks.push({ level, event: 'issuer_key_refused', kid, reason })
      return false
    }
    return true
  })
  if (keys.length === 0)
    remarks.push({ level: 'warn', event: 'issuer_keys_empty', kid: undefined, reason: EMPTY })
  return { keys: keys.map(publicMembers), remarks }
}

const EMPTY = 'the key set holds no key that may verify: all tokens of the issuer are refused'

const PRIVATE =
  'the key set holds private members of it: whoever has read the set can sign with it; the issuer should replace it'

const publicMembers = (jwk: Jwk): Jwk =>
  Object.fromEntries(
    PUBLIC_MEMBERS.flatMap((member) => (jwk[member] === undefined ? [] : [[member, jwk[member]]])),
  )

export interface KeySetReaderParts {
  /** Reads the key set and takes it into use; rejects if it cannot be had. */
  readonly read: () => Promise<void>
  readonly clock: Clock
  /** Told when readings begin to fail, with the cause, and when they succeed again. */
  readonly changed: (failure: { readonly cause: unknown } | undefined) => void
  /** Resolves after so many milliseconds. */
  readonly pause: (milliseconds: number) => Promise<void>
}

/** Milliseconds. A key set in use is read again when it is this old, behind the back of the calls. */
const FRESH = 60_000
/** Between two attempts while it cannot be had, also behind their back. */
const RETRY = 5_000
/** Between the beginnings of two readings, whoever asks for whatever: what an unknown `kid` may cost the issuer. */
export const INTERVAL = 1_000

/**
 * When a foreign key set is read: once at a time, at most once a second, and so that a slow issuer costs one caller one
 * wait. Where it was slow to fail, or has failed twice in a row, only a caller that begins another reading waits for it;
 * all others hear at once that it cannot be told. After one quick failure all wait for the next reading: it is near.
 */
export class KeySetReader {
  readonly #parts: KeySetReaderParts
  #begunAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined
  #next: Promise<void> | undefined
  #had = false
  /** Readings in a row. */
  #failures = 0
  #slow = false

  constructor(parts: KeySetReaderParts) {
    this.#parts = parts
  }

  /** Whether it was ever had. */
  get had(): boolean {
    return this.#had
  }

  /** Whether the last reading failed. */
  get failing(): boolean {
    return this.#failures > 0
  }

  /** When the last reading began, Clock.monotonic(). */
  get begunAt(): number {
    return this.#begunAt
  }

  /**
   * Resolves when `found` is true after a reading, or a reading that began after this call has succeeded. Rejects with
   * the cause where it cannot be had.
   */
  async need(found: () => boolean): Promise<void> {
    if (this.#isHopeless() && !this.#mayBegin()) throw new Error('the last attempt failed a moment ago')
    if (this.#reading !== undefined) {
      await this.#reading
      if (found()) return
    }
    await this.#readNext()
  }

  /** Whether it should be read again, if it is in use. */
  isStale(): boolean {
    const age = this.#parts.clock.monotonic() - this.#begunAt
    return this.#reading === undefined && age >= (this.failing || !this.#had ? RETRY : FRESH)
  }

  /** Reads it behind the back of the calls. Never rejects: `changed` is told. */
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
    return this.#begunAt + INTERVAL - this.#parts.clock.monotonic()
  }

  /** A reading that begins after this call, shared by all who call before it begins. */
  #readNext(): Promise<void> {
    if (this.#next !== undefined) return this.#next
    const next = this.#afterThis().finally(() => {
      // Meanwhile others may wait for the one after it.
      if (this.#next === next) this.#next = undefined
    })
    this.#next = next
    return next
  }

  async #afterThis(): Promise<void> {
    // Where the one under way fails, those who wait for the next one are told at once.
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
      this.#slow = this.#untilDue() <= 0
      throw cause
    }
  }
}
