import type { Clock } from '../kernel/clock.ts'

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
