import type { Change, Feed, Store, StoredValue, Subscriber } from '../contracts/store.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { Clock } from '../kernel/clock.ts'
import { toFault } from '../kernel/faults.ts'
import { after as systemAfter, type After } from '../kernel/after.ts'

export type { Subscriber } from '../contracts/store.ts'

export interface FeedParts {
  readonly store: Store
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  readonly after?: After
  /** Called when this process has appended: others should look at once. */
  readonly appended?: () => void
}

interface KnownChange {
  readonly change: Change
  /** Clock.monotonic(): not over before. */
  readonly keptUntil: number
}

/** How often the feed is read, in milliseconds: what another process appended is in force here within a second. */
const INTERVAL = 250
/** How often what has expired is looked for, in milliseconds. */
const SWEEP_INTERVAL = 10_000

/**
 * The numbered change feed (revocation rules, switches, directory and configuration generations) as this process
 * follows it: read whole at the start, then what is new, four times a second. What is known stays in memory, so
 * that the data path never asks the store, and goes on with what it knows where the store is out of reach.
 */
export class ChangeFeed implements Feed {
  readonly #parts: FeedParts
  readonly #after: After
  readonly #subscribers = new Map<string, Subscriber[]>()
  /** Live changes by sequence, for those who subscribe later. */
  readonly #known = new Map<number, KnownChange>()
  #sequence = 0
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

  /** What is known of the topic already is applied before this returns. */
  subscribe(topic: string, subscriber: Subscriber): void {
    this.#subscribers.set(topic, [...(this.#subscribers.get(topic) ?? []), subscriber])
    for (const { change } of this.#known.values()) if (change.topic === topic) subscriber.apply(change, false)
  }

  /**
   * Keeps a change and applies it here before it resolves, after everything that came before it; other processes
   * follow within a second. `expiresAt` in ms since the epoch. Rejects with Fault `identity_unavailable` if it could
   * not be kept.
   */
  async append(topic: string, value: StoredValue, expiresAt?: number): Promise<void> {
    const sequence = await this.#parts.store.append(topic, value, expiresAt)
    this.#parts.appended?.()
    await this.refresh()
    // It is kept, and the caller is told so; it must then be in force here, though not all before it could be read.
    if (this.#sequence < sequence) this.#apply({ sequence, topic, value, expiresAt }, true)
  }

  /** Reads now: resolves when all that was appended before the call is applied here, or could not be read. */
  refresh(): Promise<void> {
    // A reading under way may have looked before the change was there: one more follows, for all who ask meanwhile.
    this.#nextReading ??= (this.#reading ?? Promise.resolve()).then(() => {
      this.#nextReading = undefined
      this.#reading = this.#tryRead()
      return this.#reading
    })
    return this.#nextReading
  }

  /** Milliseconds since the feed was last read: some 250, unless the store is out of reach. */
  get age(): number {
    return this.#parts.clock.monotonic() - this.#readAt
  }

  /** Resolves when the store is asked no more. */
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
    const askedAt = this.#parts.clock.monotonic()
    const changes = await this.#parts.store.changes(this.#sequence)
    this.#readAt = this.#parts.clock.monotonic()
    for (const change of changes) {
      this.#sequence = change.sequence
      this.#known.set(change.sequence, { change, keptUntil: askedAt + (change.remaining ?? 0) })
      this.#apply(change, false)
    }
  }

  #apply(change: Change, early: boolean): void {
    for (const subscriber of this.#subscribers.get(change.topic) ?? []) subscriber.apply(change, early)
  }

  /** A change is over by both clocks (Change.remaining), as the store has it. */
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
