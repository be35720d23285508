/** The changes that a process knows of the change feed. */
import type { Change, FeedPlace } from '../contracts/store.ts'
import type { Clock } from '../kernel/clock.ts'

interface KnownChange {
  readonly change: Change
  /** Clock.monotonic(): the change is kept at least until then. */
  readonly keptUntil: number
}

/** Milliseconds between two searches for expired changes. */
const SWEEP_INTERVAL = 10_000

const placeText = ({ sequence, mark }: FeedPlace): string => `${sequence} ${mark}`

export class LiveChanges {
  readonly #clock: Clock
  /** Live ones that were read, by their numbers. */
  readonly #read = new Map<number, KnownChange>()
  /** Appended here and not read back yet, by their places: a failover may have lost them. */
  readonly #unread = new Map<string, Change>()
  #sweptAt = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get read(): readonly Change[] {
    return Array.from(this.#read.values(), ({ change }) => change)
  }

  get unread(): readonly Change[] {
    return [...this.#unread.values()]
  }

  get hasUnread(): boolean {
    return this.#unread.size > 0
  }

  /** @param askedAt Clock.monotonic() of the reading */
  addRead(change: Change, askedAt: number): void {
    if (this.#unread.size > 0) this.#unread.delete(placeText(change))
    this.#read.set(change.sequence, { change, keptUntil: askedAt + (change.remaining ?? 0) })
  }

  /** A poll may have read it before the answer to its append came, and later ones too. */
  addUnread(change: Change): void {
    if (this.#read.get(change.sequence)?.change.mark !== change.mark)
      this.#unread.set(placeText(change), change)
  }

  isUnread(place: FeedPlace): boolean {
    return this.#unread.has(placeText(place))
  }

  /**
   * Takes one that was appended for one that was read, though no reading had it: so it is found to be lost when the whole
   * feed is read. Returns the milliseconds until it expires; undefined if a reading had it.
   */
  takeForRead(change: Change): number | undefined {
    if (!this.#unread.delete(placeText(change))) return undefined
    const left = (change.expiresAt ?? Number.POSITIVE_INFINITY) - this.#clock.now()
    this.#read.set(change.sequence, { change, keptUntil: this.#clock.monotonic() + Math.max(0, left) })
    return left
  }

  /** Those that were read. */
  forget(): void {
    this.#read.clear()
  }

  /** Forgets those that have expired, now and then. Both clocks must say so, as in the store (see Change.remaining). */
  sweep(expired: (change: Change) => void): void {
    const at = this.#clock.monotonic()
    if (at - this.#sweptAt < SWEEP_INTERVAL) return
    this.#sweptAt = at
    const now = this.#clock.now()
    for (const [sequence, { change, keptUntil }] of this.#read) {
      if (change.expiresAt === undefined || change.expiresAt > now || keptUntil > at) continue
      this.#read.delete(sequence)
      expired(change)
    }
  }
}
