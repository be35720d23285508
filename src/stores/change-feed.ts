import type { Recorder } from '../contracts/recorder.ts'
import type { Change, Feed, FeedPage, FeedPlace, Store, StoredValue, Subscriber } from '../contracts/store.ts'
import { type After, after as systemAfter, type Clock } from '../kernel/clock.ts'
import { toFault } from '../kernel/faults.ts'

export type { Subscriber } from '../contracts/store.ts'

export interface FeedParts {
  readonly store: Store
  readonly clock: Clock
  /** The clock of this machine, where `clock` is that of the store. */
  readonly machine?: Clock
  readonly recorder: Pick<Recorder, 'note'>
  readonly after?: After
  /** Called after this process has appended a change: other processes should poll at once. */
  readonly appended?: () => void
}

/** A page that was asked for. */
interface Asked {
  /** Clock.monotonic(). */
  readonly askedAt: number
  readonly reading: Promise<FeedPage>
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
/** Of the change that a process appends when the store has lost some. It tells nothing. */
const RESTART_TOPIC = 'restart'
/** Milliseconds. */
const RESTART_KEPT = 3_600_000
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
  /** Live changes by their numbers, for later subscribers. */
  readonly #known = new Map<number, KnownChange>()
  /** Changes that the store has lost, and that are to be appended again. They stay in force. */
  readonly #lost = new Map<number, KnownChange>()
  #at: FeedPlace | undefined
  /** The highest number ever seen. */
  #highest = 0
  /** The store's numbers may go on below those that it has given before. */
  #isBehind = false
  #reading: Promise<void> | undefined
  #nextReading: Promise<void> | undefined
  #readAt = 0
  #readAtWall = 0
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
    for (const { change } of [...this.#lost.values(), ...this.#known.values()])
      if (change.topic === topic) subscriber.apply(change, false)
  }

  /**
   * Stores a change and applies it here, after all changes before it; resolves then. Other processes follow within a
   * second. `expiresAt` in milliseconds since the epoch. Rejects with Fault `identity_unavailable` if the store did
   * not accept it.
   */
  async append(topic: string, value: StoredValue, expiresAt?: number): Promise<void> {
    const place = await this.#appendAbove(topic, value, expiresAt)
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

  /**
   * Milliseconds since the feed was last read: about 250, unless the store cannot be reached. The larger one by both clocks
   * of this machine: Clock.monotonic() stands still while the machine is suspended, and a wall clock can be set back.
   */
  get age(): number {
    const { clock, machine = clock } = this.#parts
    return Math.max(machine.monotonic() - this.#readAt, machine.now() - this.#readAtWall)
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
    let asked: Asked | undefined = this.#ask(this.#at)
    while (asked !== undefined) {
      const { askedAt } = asked
      const page: FeedPage = await asked.reading
      // The next page is on its way while this one is applied.
      asked = page.more && !page.restarted ? this.#ask(page.last) : undefined
      const { last, changes } = page.restarted ? await this.#whole(page) : page
      if (page.restarted) this.#restart()
      for (const change of changes) this.#take(change, askedAt)
      this.#at = last
      this.#highest = Math.max(this.#highest, last?.sequence ?? 0)
    }
    if (this.#lost.size > 0 || this.#isBehind) await this.#restore()
    const { clock, machine = clock } = this.#parts
    this.#readAt = machine.monotonic()
    this.#readAtWall = machine.now()
  }

  #ask(at: FeedPlace | undefined): Asked {
    const reading = this.#parts.store.changes(at, PAGE)
    // Whoever applies the page before it learns of a failure when this one is its turn.
    reading.catch(() => undefined)
    return { askedAt: this.#parts.clock.monotonic(), reading }
  }

  /** All of it at once: so a switch is never off between two pages. */
  async #whole(first: FeedPage): Promise<Pick<FeedPage, 'last' | 'changes'>> {
    const changes = [...first.changes]
    let page = first
    while (page.more) {
      page = await this.#parts.store.changes(page.last, PAGE)
      for (const change of page.changes) changes.push(change)
    }
    return { last: page.last, changes }
  }

  #take(change: Change, askedAt: number): void {
    const { sequence, mark } = change
    // With another mark it is another change, that was given the number of a lost one.
    if (this.#lost.size > 0 && this.#lost.get(sequence)?.change.mark === mark) this.#lost.delete(sequence)
    this.#known.set(sequence, { change, keptUntil: askedAt + (change.remaining ?? 0) })
    this.#apply(change, false)
  }

  /** A failover has lost changes. What follows is all that the store has; what is not in it was lost. */
  #restart(): void {
    this.#parts.recorder.note('warn', 'change_feed.restarted', { sequence: this.#highest })
    for (const [sequence, known] of this.#known)
      if (this.#restored(known.change) !== undefined) this.#lost.set(sequence, known)
    this.#known.clear()
    for (const each of this.#subscribers.values()) for (const subscriber of each) subscriber.reset?.()
    this.#isBehind = true
  }

  /**
   * Appends again what must stay in force, with what makes the store's numbers go on above all that were given before: else a
   * new rule could get a lower number than the tokens in use.
   */
  async #restore(): Promise<void> {
    for (const [sequence, { change }] of this.#lost) {
      const value = this.#restored(change)
      if (value !== undefined) await this.#appendAbove(change.topic, value, change.expiresAt)
      this.#lost.delete(sequence)
    }
    if (this.#isBehind) await this.#appendAbove(RESTART_TOPIC, {}, this.#parts.clock.now() + RESTART_KEPT)
    this.#isBehind = false
  }

  #restored(change: Change): StoredValue | undefined {
    return this.#subscribers
      .get(change.topic)
      ?.map((each) => each.restore?.(change))
      .find((value) => value !== undefined)
  }

  #appendAbove(topic: string, value: StoredValue, expiresAt: number | undefined): Promise<FeedPlace> {
    return this.#parts.store.append(topic, value, { expiresAt, above: this.#highest })
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
    for (const [sequence, { change, keptUntil }] of this.#known) {
      if (change.expiresAt === undefined || change.expiresAt > now || keptUntil > at) continue
      this.#known.delete(sequence)
      for (const subscriber of this.#subscribers.get(change.topic) ?? []) subscriber.expire?.(change)
    }
  }
}
