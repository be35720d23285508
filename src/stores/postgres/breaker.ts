/** Failures in a row after which nothing is asked for a while. */
const FAILURES = 5
/** Milliseconds. */
const PAUSE = 500

/**
 * Spares a store that does not answer, and the callers who would wait for it: after five failures in a row everything
 * fails at once for half a second. Then one request may try. The poll of the change feed tries soon enough by itself.
 */
export class Breaker {
  readonly #monotonic: () => number
  #failures = 0
  #openUntil = 0
  #isProbing = false

  constructor(monotonic: () => number = () => performance.now()) {
    this.#monotonic = monotonic
  }

  /** Whether requests fail at once at the moment, but for one that may try. */
  get isOpen(): boolean {
    return this.#failures >= FAILURES
  }

  /** Whether a request would fail at once. */
  get refuses(): boolean {
    return this.isOpen && (this.#isProbing || this.#monotonic() < this.#openUntil)
  }

  /** Whether a request may be sent. After true, `succeeded` or `failed` must be called. */
  admit(): boolean {
    if (this.refuses) return false
    this.#isProbing = this.isOpen
    return true
  }

  succeeded(): void {
    this.#failures = 0
    this.#isProbing = false
  }

  /** Whether everything fails at once from now on, and did not before. */
  failed(): boolean {
    this.#failures += 1
    this.#isProbing = false
    if (this.isOpen) this.#openUntil = this.#monotonic() + PAUSE
    return this.#failures === FAILURES
  }
}

/** New connections within a second, while none succeeds. */
const ATTEMPTS = 2
/** Milliseconds. */
const SECOND = 1000

/**
 * Limits the attempts to connect to a database that refuses or is away: many processes that all try at once would keep
 * one that starts from starting.
 */
export class ConnectionPace {
  readonly #monotonic: () => number
  /** Of the last attempts since one succeeded. */
  #attempts: number[] = []
  #isReachable = true
  #failure: unknown

  constructor(monotonic: () => number = () => performance.now()) {
    this.#monotonic = monotonic
  }

  /** Why the last attempt of anybody failed: told while no further one is made. */
  get failure(): unknown {
    return this.#failure
  }

  /** Whether a connection may be made now. Counts it. */
  admit(): boolean {
    if (this.#isReachable) return true
    const now = this.#monotonic()
    this.#attempts = this.#attempts.filter((at) => now - at < SECOND)
    if (this.#attempts.length >= ATTEMPTS) return false
    this.#attempts.push(now)
    return true
  }

  succeeded(): void {
    this.#isReachable = true
    this.#attempts = []
  }

  failed(thrown: unknown): void {
    this.#isReachable = false
    this.#failure = thrown
  }
}
