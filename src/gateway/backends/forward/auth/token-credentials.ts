import { hash } from 'node:crypto'
import { headerLine, type HeaderText } from '../../../../base/http/head/header-text.ts'
import type { Clock } from '../../../../base/kernel/clock.ts'
import { Fault } from '../../../../base/kernel/faults.ts'
import type { OAuth2Config } from '../schema/schema.ts'
import type { Credentials } from './credentials.ts'
import { type GrantedToken, NoToken, TokenEndpoint } from './token-endpoint.ts'

/** One second, in milliseconds. */
const SECOND = 1000
/** How long before its end a token is renewed, in milliseconds; at most half of its life. */
const AHEAD = 30 * SECOND
/** How long a token lives, in milliseconds: where its answer states no life, and at most. */
const UNKNOWN_LIFE = 60 * SECOND
const LONGEST_LIFE = 24 * 60 * 60 * SECOND
/** The time from one failure to the next attempt, in milliseconds: doubled each time, within these limits. */
const SHORTEST_WAIT = SECOND
const LONGEST_WAIT = 30 * SECOND

const waitAfter = (failures: number): number => Math.min(SHORTEST_WAIT * 2 ** (failures - 1), LONGEST_WAIT)

interface HeldToken {
  readonly line: HeaderText
  /** When the token is renewed, by Clock.monotonic(). */
  readonly renewAt: number
  readonly expiresAt: number
}

interface TokenFetching {
  /** Rejects with NoToken. Called once at a time. */
  readonly ask: () => Promise<GrantedToken>
  readonly clock: Clock
  /** Called with the reason when tokens cannot be got, or the reason changes; with undefined afterwards. */
  readonly changed: (failure: string | undefined) => void
}

/**
 * An access token of the client credentials grant, for all calls of a backend (C8.7). Nothing happens without calls: one
 * that finds the token near its end has it renewed, and is sent with the old one; one that finds none waits.
 */
export class TokenCredentials implements Credentials {
  readonly name = 'authorization'
  readonly renewable = true
  readonly templates = []
  readonly #how: TokenFetching
  #token: HeldToken | undefined
  #fetching: Promise<HeaderText> | undefined
  #failures = 0
  /** Before this time, by Clock.monotonic(), no fetch begins. */
  #retryAt = Number.NEGATIVE_INFINITY
  /** Why the last fetch failed; undefined after a success. */
  #reason: string | undefined
  /** How many tokens the upstream refused recently. */
  #refusals = 0
  /** When the upstream refused the last one, by Clock.monotonic(). */
  #refusedAt = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(how: TokenFetching) {
    this.#how = how
  }

  line(): HeaderText | Promise<HeaderText> {
    const now = this.#how.clock.monotonic()
    const token = this.#token
    if (token === undefined || now >= token.expiresAt) return this.#wait(now)
    if (now >= token.renewAt) this.#renew(now)
    return token.line
  }

  /**
   * A token is thrown away once, however many calls it was refused to. An upstream that refuses every token must not
   * cost a fetch per call, nor take the token from others whom it serves: after a refusal the next token stays for 1 s
   * whatever the upstream says of it, then 2 s, up to 30 s. A minute without refusals ends that.
   */
  refused(line: HeaderText): boolean {
    if (this.#token?.line !== line) return true
    const now = this.#how.clock.monotonic()
    const since = now - this.#refusedAt
    if (since >= 2 * LONGEST_WAIT) this.#refusals = 0
    if (this.#refusals > 0 && since < waitAfter(this.#refusals)) return false
    this.#refusals += 1
    this.#refusedAt = now
    this.#token = undefined
    return true
  }

  get isFetching(): boolean {
    return this.#fetching !== undefined
  }

  close(): void {
    this.#isClosed = true
  }

  #wait(now: number): Promise<HeaderText> {
    if (this.#fetching !== undefined) return this.#fetching
    return this.#mayFetch(now) ? this.#fetch(now) : Promise.reject(this.#unavailable(now))
  }

  #renew(now: number): void {
    // Nobody waits for it. If it fails, `changed` is called, and the next call tries again.
    if (this.#fetching === undefined && this.#mayFetch(now)) this.#fetch(now).catch(() => undefined)
  }

  #mayFetch(now: number): boolean {
    return !this.#isClosed && now >= this.#retryAt
  }

  #fetch(began: number): Promise<HeaderText> {
    this.#fetching = this.#fetchFrom(began).finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching
  }

  async #fetchFrom(began: number): Promise<HeaderText> {
    try {
      const token = this.#hold(await this.#how.ask(), began)
      this.#failures = 0
      this.#report(undefined)
      return token.line
    } catch (error) {
      this.#failures += 1
      const now = this.#how.clock.monotonic()
      this.#retryAt = now + waitAfter(this.#failures)
      this.#report(error instanceof NoToken ? error.message : 'it could not be asked')
      throw this.#unavailable(now)
    }
  }

  /** Its life counts from the request on: the endpoint cannot have counted from earlier. */
  #hold({ accessToken, life = UNKNOWN_LIFE }: GrantedToken, began: number): HeldToken {
    const lasts = Math.min(life, LONGEST_LIFE)
    const expiresAt = began + lasts
    if (lasts < SECOND || expiresAt <= this.#how.clock.monotonic())
      throw new NoToken('its token had expired when it came')
    const line = headerLine(this.name, `Bearer ${accessToken}`)
    this.#token = { line, renewAt: expiresAt - Math.min(AHEAD, lasts / 2), expiresAt }
    return this.#token
  }

  #report(reason: string | undefined): void {
    if (reason === this.#reason || this.#isClosed) return
    this.#reason = reason
    this.#how.changed(reason)
  }

  #unavailable(now: number): Fault {
    return new Fault('upstream_token_unavailable', {
      detail: `no token for the upstream: ${this.#reason ?? 'the backend was closed'}`,
      retryAfter: Math.max(0, this.#retryAt - now) / SECOND,
    })
  }
}

/** @param business whose credentials they are, where they differ from call to call */
type TokenChanged = (failure: string | undefined, business?: string) => void

interface TokenSource {
  readonly endpoint: TokenEndpoint
  readonly credentials: TokenCredentials
}

/** How many credentials that differ from call to call are kept: those of the latest calls. */
const MOST_RENDERED = 1000

/** The digest of each file of authorities that was read. */
const digests = new WeakMap<Buffer, string>()

function digestOf(ca: Buffer): string {
  const digest = digests.get(ca) ?? hash('sha256', ca)
  digests.set(ca, digest)
  return digest
}

const keyOf = (config: OAuth2Config, ca: Buffer | undefined): string =>
  JSON.stringify([config, ca && digestOf(ca)])

/** Credentials with the same configuration share a token; a reload that does not change the backend keeps it. */
export class TokenSources {
  readonly #clock: Clock
  readonly #changed: TokenChanged
  /** By their configuration and what is in the file of authorities, which may be renewed under its name. */
  readonly #sources = new Map<string, TokenSource>()
  /** The sources for businesses, likewise; the one that was asked for last is the last. */
  readonly #rendered = new Map<string, TokenSource>()
  #isClosed = false

  /** @param changed called with the reason when tokens cannot be got; with undefined when they can be got again */
  constructor(clock: Clock, changed: TokenChanged) {
    this.#clock = clock
    this.#changed = changed
  }

  /** @param ca PEM text of the authorities to trust instead of the system's */
  credentialsOf(config: OAuth2Config, ca: Buffer | undefined): TokenCredentials {
    const key = keyOf(config, ca)
    const source = this.#sources.get(key) ?? this.#open(config, ca)
    this.#sources.set(key, source)
    return source.credentials
  }

  /**
   * Credentials that were made for a call. Those that differ in anything share nothing: no token, no wait after a
   * failure, no refusal.
   * @param business whose call it is: for the log
   * @throws Fault `upstream_token_unavailable` where all that may be kept wait for a token
   */
  renderedOf(config: OAuth2Config, ca: Buffer | undefined, business: string): TokenCredentials {
    const key = keyOf(config, ca)
    const source = this.#rendered.get(key) ?? this.#openRendered(config, ca, business)
    this.#rendered.delete(key)
    this.#rendered.set(key, source)
    return source.credentials
  }

  #openRendered(config: OAuth2Config, ca: Buffer | undefined, business: string): TokenSource {
    if (this.#rendered.size >= MOST_RENDERED) this.#dropOldest()
    return this.#open(config, ca, business)
  }

  /** It is not closed: a call that has its token may still be told that the upstream refuses it. */
  #dropOldest(): void {
    for (const [key, { credentials }] of this.#rendered)
      if (!credentials.isFetching) {
        this.#rendered.delete(key)
        return
      }
    const detail = `tokens for ${MOST_RENDERED} different credentials are awaited already`
    throw new Fault('upstream_token_unavailable', { detail, retryAfter: 1, unchanged: true })
  }

  #open(config: OAuth2Config, ca: Buffer | undefined, business?: string): TokenSource {
    const endpoint = new TokenEndpoint(config, ca)
    const credentials = new TokenCredentials({
      ask: () => endpoint.ask(),
      clock: this.#clock,
      changed: (failure) => this.#changed(failure, business),
    })
    if (this.#isClosed) credentials.close()
    return { endpoint, credentials }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const all = [...this.#sources.values(), ...this.#rendered.values()]
    for (const { credentials } of all) credentials.close()
    await Promise.all(all.map(({ endpoint }) => endpoint.close()))
  }
}
