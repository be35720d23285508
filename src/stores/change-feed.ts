import type { Recorder } from '../contracts/recorder.ts'
import type { Change, Feed, FeedPlace, Store, StoredValue, Subscriber } from '../contracts/store.ts'
import { type After, after as systemAfter, type Clock } from '../kernel/clock.ts'
import { toFault } from '../kernel/faults.ts'

export type { Subscriber } from '../contracts/store.ts'

export interface FeedParts {
  readonly store: Store
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  readonly after?: After
  /** Called after this process has appended a change: other processes should poll at once. */
  readonly appended?: () => void
}

interface KnownChange {
  readonly change: Change
  /** Clock.monotonic(): the change is kept at least until then. */
  readonly keptUntil: number
}

/** Milliseconds between two polls: what another process appended is in force here within a second. */
const INTERVAL = 250
/** Changes that one request to the store reads at most. */
const PAGE = 5000
/** Milliseconds between two searches for expired changes. */
const SWEEP_INTERVAL = 10_000

/**
 * The numbered change feed as this process follows it: revocation rules, switches, generations of directory and
 * configuration. It reads all changes at the start, then the new ones four times a second. Known changes stay in
 * memory. So the data path never asks the store, and it works on while the store cannot be reached.
 */
export class ChangeFeed implements Feed {
  readonly #parts: FeedParts
  readonly #after: After
  readonly #subscribers = new Map<string, Subscriber[]>()
  /** Live changes by sequence, for later subscribers. */
  readonly #known = new Map<number, KnownChange>()
  #at: FeedPlace | undefined
  /** The highest number ever seen. */
  #highest = 0
  #reading: Promise<void> | undefined
  #nextReading: Promise<void> | undefined
  #readAt = 0
  #sweptAt = 0
  #unreachable = false
  #stopped = false
  #cancel: () => void = () => undefined

  private constructor(parts: FeedParts) {
    this.#parts = parts
    this.#after = parts.after ?? systemAfter
  }

  /** Rejects with Fault `identity_unavailable` if the feed cannot be read at all. */
  static async open(parts: FeedParts): Promise<ChangeFeed> {
    const feed = new ChangeFeed(parts)
    await feed.#read()
    feed.#schedule()
    return feed
  }

  /** Changes of the topic that are known already are applied before this returns. */
  subscribe(topic: string, subscriber: Subscriber): void {
    this.#subscribers.set(topic, [...(this.#subscribers.get(topic) ?? []), subscriber])
    for (const { change } of this.#known.values()) if (change.topic === topic) subscriber.apply(change, false)
  }

  /**
   * Stores a change and applies it here, after all changes before it; resolves then. Other processes follow within a
   * second. `expiresAt` in milliseconds since the epoch. Rejects with Fault `identity_unavailable` if the store did
   * not accept it.
   */
  async append(topic: string, value: StoredValue, expiresAt?: number): Promise<void> {
    const place = await this.#parts.store.append(topic, value, { expiresAt, above: this.#highest })
    this.#parts.appended?.()
    await this.refresh()
    // The store has the change but could not be read: the change must be in force here all the same.
    if (this.#highest < place.sequence) this.#apply({ ...place, topic, value, expiresAt }, true)
  }

  /**
   * Polls now. Resolves when all changes appended before the call are applied here, or could not be read. Never
   * rejects.
   */
  refresh(): Promise<void> {
    // A poll under way may have missed the newest change. One more poll follows, shared by all callers meanwhile.
    this.#nextReading ??= (this.#reading ?? Promise.resolve()).then(() => {
      this.#nextReading = undefined
      this.#reading = this.#tryRead()
      return this.#reading
    })
    return this.#nextReading
  }

  /** Milliseconds since the feed was last read: about 250, unless the store cannot be reached. */
  get age(): number {
    return this.#parts.clock.monotonic() - this.#readAt
  }

  /** Stops polling. Resolves when no request to the store is left. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel()
    await (this.#nextReading ?? this.#reading)
  }

  #schedule(): void {
    if (this.#stopped) return
    this.#cancel = this.#after(INTERVAL, () => void this.refresh().then(() => this.#schedule()))
  }

  async #tryRead(): Promise<void> {
    try {
      await this.#read()
      if (this.#unreachable) this.#parts.recorder.note('info', 'change_feed.reachable_again')
      this.#unreachable = false
    } catch (thrown) {
      if (!this.#unreachable)
        this.#parts.recorder.note('error', 'change_feed.unreachable', { reason: toFault(thrown).message })
      this.#unreachable = true
    }
    this.#sweep()
  }

  async #read(): Promise<void> {
    let more = true
    while (more) {
      const askedAt = this.#parts.clock.monotonic()
      const page = await this.#parts.store.changes(this.#at, PAGE)
      for (const change of page.changes) this.#take(change, askedAt)
      this.#at = page.last
      this.#highest = Math.max(this.#highest, page.last?.sequence ?? 0)
      more = page.more
    }
    this.#readAt = this.#parts.clock.monotonic()
  }

  #take(change: Change, askedAt: number): void {
    this.#known.set(change.sequence, { change, keptUntil: askedAt + (change.remaining ?? 0) })
    this.#apply(change, false)
  }

  #apply(change: Change, early: boolean): void {
    for (const subscriber of this.#subscribers.get(change.topic) ?? []) subscriber.apply(change, early)
  }

  /** A change expires only when both clocks say so, as in the store (see Change.remaining). */
  #sweep(): void {
    const { clock } = this.#parts
    const at = clock.monotonic()
    if (at - this.#sweptAt < SWEEP_INTERVAL) return
    this.#sweptAt = at
    const now = clock.now()
    for (const { change, keptUntil } of this.#known.values()) {
      if (change.expiresAt === undefined || change.expiresAt > now || keptUntil > at) continue
      this.#known.delete(change.sequence)
      for (const subscriber of this.#subscribers.get(change.topic) ?? []) subscriber.expire?.(change)
    }
  }
}
