import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import {
  type Claims,
  type KeyStanding,
  NEEDS_ISSUER,
  type TokenPolicy,
  type Verified,
} from '../../base/contracts/people/keys.ts'
import { type After, after as systemAfter, type Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { OpaqueVerifier, OpaqueVerifierParts } from '../../identity/keys/issuers/opaque-tokens.ts'
import { fetchJsonBytes, UnexpectedStatus } from '../../identity/keys/remote/fetch-json.ts'
import {
  badToken,
  checkClaims,
  LONGEST_LIFE,
  LONGEST_TOKEN,
  numericDate,
  parseObject,
} from '../../identity/keys/verify/token-verifier.ts'

interface IntrospectorParts extends OpaqueVerifierParts {
  readonly clientId: string
  readonly clientSecret: string
  readonly after?: After
}

/** How long an answer counts, for an active token and for any other, in milliseconds. */
const ACTIVE = 60_000
const INACTIVE = 10_000
/** After how long an answer about a token in use is asked for again, so that no call waits for it, in milliseconds. */
const RENEW = 50_000
/** The time between two attempts to renew an answer, and between two requests while the endpoint fails, in milliseconds. */
const PAUSE = 1_000
/** Failures in a row after which the endpoint counts as failing. */
const FAILING = 3
/** How long a whole introspection may take, the wait for a place included, in milliseconds. */
const DEADLINE = 2_000
/** How many requests run at once, and how many tokens may wait for a place. */
const AT_ONCE = 32
const WAITING = 1_000
/** How many answers are remembered, and how many bytes they may take together. */
const MOST_KNOWN = 10_000
const LARGEST_KNOWN = 32 * 1024 * 1024
/** The size of a remembered answer without its text, in bytes. */
const ENTRY_OVERHEAD = 512

const NOT_ACTIVE = 'introspection: not active'

interface Known {
  /** Undefined if the token is not active. */
  readonly claims: Claims | undefined
  /** How much memory it counts for, in bytes. */
  readonly size: number
  readonly standing: AnswerStanding
}

/**
 * Introspects the opaque tokens of one issuer (RFC 7662, C11.2).
 *
 * An answer counts for 60 s, by the token's hash. A token that is in use is introspected again 10 s before that, so
 * that its calls need not wait and its websockets stay open. Failures are Fault `token_judge_unavailable` (C4.15).
 */
export class Introspector implements OpaqueVerifier {
  readonly #parts: IntrospectorParts
  readonly #known = new LRUCache<string, Known>({
    max: MOST_KNOWN,
    maxSize: LARGEST_KNOWN,
    sizeCalculation: ({ size }) => size,
  })
  /** By hash: one request at a time for one token. */
  readonly #asked = new Map<string, Promise<Known>>()
  readonly #slots = new Slots(AT_ONCE, WAITING)
  #failures = 0
  #failedAt = Number.NEGATIVE_INFINITY
  #closed = false

  constructor(parts: IntrospectorParts) {
    this.#parts = parts
  }

  /**
   * The claims of an opaque token, with `iss` and `iat` where the answer has none. Rejects with Fault `invalid_token` if
   * it is not active or does not fit the policy; with `token_judge_unavailable` if that cannot be found out now.
   */
  async verify(token: string, policy: TokenPolicy): Promise<Verified> {
    if (token.length > LONGEST_TOKEN) throw badToken('too long')
    const id = hash('sha256', token, 'base64url')
    const known = this.#known.get(id)
    const { claims, standing } = known?.standing.counts() === true ? known : await this.#ask(id, token)
    if (claims === undefined) throw badToken(NOT_ACTIVE)
    return { claims: checkIntrospected(claims, policy, this.#parts.clock), key: standing }
  }

  /** The same by an answer that still counts: nobody is asked, and nothing is remembered (NEEDS_ISSUER). */
  verifyLocally(token: string, policy: TokenPolicy): Promise<Verified> {
    const known = this.#known.peek(hash('sha256', token, 'base64url'))
    if (known?.standing.counts() !== true)
      return Promise.reject(new Fault('token_judge_unavailable', { detail: NEEDS_ISSUER }))
    const { claims, standing } = known
    if (claims === undefined) return Promise.reject(badToken(NOT_ACTIVE))
    return Promise.resolve({ claims: checkIntrospected(claims, policy, this.#parts.clock), key: standing })
  }

  /** From now on no token that this object has introspected is accepted. */
  close(): void {
    this.#closed = true
    this.#known.clear()
  }

  #ask(id: string, token: string): Promise<Known> {
    const asked = this.#asked.get(id)
    if (asked !== undefined) return asked
    const asking = this.#introspect(token)
      .then(({ claims, length }) => this.#keep(id, token, claims, length))
      .finally(() => this.#asked.delete(id))
    this.#asked.set(id, asking)
    return asking
  }

  /** An answer that says the same as the one before keeps what was made of that: the principal, its tunnels. */
  #keep(id: string, token: string, claims: Claims | undefined, length: number): Known {
    const { clock } = this.#parts
    const before = this.#known.peek(id)
    const until = clock.monotonic() + (claims === undefined ? INACTIVE : ACTIVE)
    if (before?.standing.counts() === true && isDeepStrictEqual(before.claims, claims)) {
      before.standing.prolong(until)
      return before
    }
    before?.standing.end()
    const now = (): number => (this.#closed ? Number.POSITIVE_INFINITY : clock.monotonic())
    const standing = new AnswerStanding(until, now, () => this.#renew(id, token, known))
    const known: Known = { claims, size: (claims === undefined ? 0 : length) + ENTRY_OVERHEAD, standing }
    if (!this.#closed) this.#known.set(id, known)
    return known
  }

  /** A flood of other tokens may have pushed it out; its next answer must find it, or its tunnels would end. */
  #renew(id: string, token: string, known: Known): void {
    if (!this.#known.has(id)) this.#known.set(id, known)
    void this.#ask(id, token).catch(() => undefined)
  }

  async #introspect(token: string): ReturnType<typeof requestIntrospection> {
    const { clock, after = systemAfter } = this.#parts
    if (this.#failures >= FAILING) {
      const now = clock.monotonic()
      if (now - this.#failedAt < PAUSE) throw unavailable(new Error('the last requests failed a moment ago'))
      this.#failedAt = now
    }
    const deadline = new AbortController()
    const cancel = after(DEADLINE, () => deadline.abort(new Error('no answer in time')))
    try {
      await this.#slots.enter(deadline.signal)
      try {
        return await this.#send(token, deadline.signal)
      } finally {
        this.#slots.leave()
      }
    } catch (cause) {
      throw isUnavailable(cause) ? cause : unavailable(cause)
    } finally {
      cancel()
    }
  }

  async #send(token: string, signal: AbortSignal): ReturnType<typeof requestIntrospection> {
    const { issuer, endpoint, clock, recorder } = this.#parts
    try {
      signal.throwIfAborted()
      const url = await beforeAbort(endpoint(), signal)
      const answer = await requestIntrospection({ ...this.#parts, url, token, signal })
      if (this.#failures > 0) recorder.note('info', 'introspection_works_again', { issuer })
      this.#failures = 0
      return answer
    } catch (cause) {
      if (isOfOneToken(cause)) throw cause
      if (this.#failures === 0) recorder.note('error', 'introspection_failed', { issuer, cause })
      this.#failures += 1
      this.#failedAt = clock.monotonic()
      throw cause
    }
  }
}

const unavailable = (cause: unknown): Fault =>
  new Fault('token_judge_unavailable', { cause, detail: 'the token cannot be introspected' })

const isUnavailable = (thrown: unknown): boolean =>
  thrown instanceof Fault && thrown.code === 'token_judge_unavailable'

/** Statuses that say something about the endpoint, and nothing about the token. */
const OF_ENDPOINT: ReadonlySet<number> = new Set([401, 404, 405, 408, 429])

/**
 * Whether an endpoint, or a firewall in front of it, refused to read this one token. A caller who sends such tokens must
 * not make the endpoint count as failing for others.
 */
const isOfOneToken = (cause: unknown): boolean =>
  cause instanceof UnexpectedStatus &&
  cause.status >= 400 &&
  cause.status < 500 &&
  !OF_ENDPOINT.has(cause.status)

const beforeAbort = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', abort)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })

/** Whether an answer about a token still counts. It asks for the next one in time, as long as somebody uses it. */
class AnswerStanding implements KeyStanding {
  readonly #now: () => number
  readonly #renew: () => void
  #until: number
  #renewAt: number

  /** @param now milliseconds, monotonic; infinite once nothing counts any more */
  constructor(until: number, now: () => number, renew: () => void) {
    this.#now = now
    this.#renew = renew
    this.#until = until
    this.#renewAt = until - (ACTIVE - RENEW)
  }

  isTrusted(): boolean {
    const now = this.#now()
    if (now >= this.#until) return false
    if (now >= this.#renewAt) {
      this.#renewAt = now + PAUSE
      this.#renew()
    }
    return true
  }

  /** As `isTrusted`, but asks for nothing. */
  counts(): boolean {
    return this.#now() < this.#until
  }

  prolong(until: number): void {
    this.#until = until
    this.#renewAt = until - (ACTIVE - RENEW)
  }

  end(): void {
    this.#until = Number.NEGATIVE_INFINITY
  }
}

/** The largest answer, in bytes. */
const LARGEST = 64 * 1024

interface IntrospectionCall {
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
  readonly token: string
  readonly signal: AbortSignal
}

interface IntrospectionAnswer {
  /** Undefined if the token is not active. */
  readonly claims: Claims | undefined
  /** The length of the answer, in bytes. */
  readonly length: number
}

/** RFC 7662 §2. Rejects with an Error if there is no good answer; neither token nor secret is in it. */
async function requestIntrospection(call: IntrospectionCall): Promise<IntrospectionAnswer> {
  const { url, token, signal } = call
  const bytes = await fetchJsonBytes({
    url,
    what: 'the introspection endpoint',
    accept: 'application/json',
    strictType: true,
    largest: LARGEST,
    signal,
    headers: { authorization: basic(call) },
    form: new URLSearchParams({ token, token_type_hint: 'access_token' }),
  })
  const answer = parseObject(bytes, 'introspection')
  const { active } = answer
  if (typeof active !== 'boolean') throw new TypeError('the introspection endpoint does not say `active`')
  return { claims: active ? answer : undefined, length: bytes.length }
}

/** RFC 6749 §2.3.1: id and secret are form-encoded before they are joined. */
function basic({ clientId, clientSecret }: IntrospectionCall): string {
  const encoded = [clientId, clientSecret].map((text) =>
    new URLSearchParams({ '': text }).toString().slice(1),
  )
  return `Basic ${Buffer.from(encoded.join(':')).toString('base64')}`
}

/**
 * The claims of an active token, checked by the policy like those of a JWS. An answer may omit `iss`, because it comes
 * from the issuer, and `iat`: then the earliest moment that the policy allows is taken, so that no revocation rule is missed.
 * @throws Fault `invalid_token`
 */
function checkIntrospected(answer: Claims, policy: TokenPolicy, clock: Clock): Claims {
  requireAccessToken(answer, policy)
  const { issuer, longestLife = LONGEST_LIFE } = policy
  const claims = { iat: numericDate(answer, 'exp') - longestLife, iss: issuer, ...answer }
  checkClaims(claims, policy, clock)
  return claims
}

/**
 * Servers introspect refresh tokens too. Those have no audience, and no `token_type`: without an audience to check, the
 * type must be there. A type other than Bearer says that the token is bound to a key (RFC 9449 §6.2): where the key is
 * asked for, type and `cnf` must say the same.
 */
function requireAccessToken(answer: Claims, { audience, confirmation }: TokenPolicy): void {
  const { token_type: type, cnf } = answer
  const isBound = confirmation === 'prove' && cnf !== undefined
  if (type === undefined && audience !== undefined && !isBound) return
  const wanted = isBound ? 'dpop' : 'bearer'
  if (typeof type === 'string' && (type.toLowerCase() === wanted || confirmation === 'ignore')) return
  throw badToken(`introspection: token_type is not ${isBound ? 'DPoP' : 'Bearer'}`)
}

/** Limits how many pieces of work run at once. Others wait in their order, at most `mostWaiting` of them. */
export class Slots {
  readonly #most: number
  readonly #mostWaiting: number
  readonly #waiting = new Set<() => void>()
  #taken = 0

  constructor(most: number, mostWaiting: number) {
    this.#most = most
    this.#mostWaiting = mostWaiting
  }

  /** Then `leave` must be called once. Rejects if too many wait, or with the signal's reason. */
  async enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#taken < this.#most) {
      this.#taken += 1
      return
    }
    if (this.#waiting.size >= this.#mostWaiting) throw new Error('too many wait')
    await this.#wait(signal)
  }

  leave(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#taken -= 1
    else next()
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (settle: () => void): void => {
        this.#waiting.delete(enter)
        signal.removeEventListener('abort', abort)
        settle()
      }
      const enter = (): void => done(resolve)
      const abort = (): void => done(() => reject(signal.reason as Error))
      this.#waiting.add(enter)
      signal.addEventListener('abort', abort)
    })
  }
}
