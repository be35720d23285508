import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import type {
  Change,
  Feed,
  FeedPage,
  FeedPlace,
  FeedReading,
  Store,
  StoredValue,
  Subscriber,
} from '../../../base/contracts/records/store.ts'
import { type After, after as systemAfter, type Clock, repeatedly } from '../../../base/kernel/clock.ts'
import { toFault } from '../../../base/kernel/faults.ts'
import { aheadOfRequests, waitInBudget } from '../../../base/kernel/store-budget.ts'
import { changesBehind, endsBefore, LiveChanges, LostChanges, readWhole } from './feed-changes.ts'
import { FeedProgress, type SeenFeed } from './feed-progress.ts'

interface PendingPage {
  readonly from: FeedPlace | undefined
  /** Clock.monotonic(), and the wall time. */
  readonly askedAt: number
  readonly askedAtWall: number
  readonly reading: Promise<FeedPage>
}

/** Changes that one request to the store reads at most. */
const PAGE = 5000
/** How old the last reading that was handed over may be, in milliseconds. If it is older, this process reads itself. */
const HANDED_FOR = 600
/** How old a reading may be for its keys to be used, in milliseconds. */
const CURRENT = 1000

/** Asks the store for the change feed, and knows how old the newest answer is. */
class FeedQuestions {
  readonly #store: Store
  readonly #machine: Clock
  readonly #hasRead: (reading: FeedReading) => void
  #askedAt = 0
  #askedAtWall = 0
  #handedAt = Number.NEGATIVE_INFINITY
  #keys: string | undefined

  constructor(store: Store, machine: Clock, hasRead: (reading: FeedReading) => void) {
    this.#store = store
    this.#machine = machine
    this.#hasRead = hasRead
  }

  /**
   * Milliseconds since the store was asked for what was read last: about 250, unless it cannot be reached. The larger one by
   * both clocks: Clock.monotonic() stops while the machine is suspended, and a wall clock can be set back.
   */
  get age(): number {
    return Math.max(this.#machine.monotonic() - this.#askedAt, this.#machine.now() - this.#askedAtWall)
  }

  /** Differs after the keys in the store have changed. `age`: milliseconds since it was read. Undefined: not known. */
  get keys(): { readonly mark: string; readonly age: number } | undefined {
    const { age } = this
    return this.#keys === undefined || age > CURRENT ? undefined : { mark: this.#keys, age }
  }

  /** Whether another process of the machine hands its readings over. */
  get areHandedOver(): boolean {
    return this.#machine.monotonic() - this.#handedAt < HANDED_FOR
  }

  ask(from: FeedPlace | undefined): PendingPage {
    const times = { askedAt: this.#machine.monotonic(), askedAtWall: this.#machine.now() }
    const asked = { from, ...times, reading: this.#store.changes(from, PAGE) }
    // The caller that applies the pages handles a failure when its turn comes: until then it must not count as unhandled.
    asked.reading.catch(() => undefined)
    return asked
  }

  came({ from, askedAt, askedAtWall }: PendingPage, page: FeedPage): void {
    this.#hasRead({ from, page, askedAt, askedAtWall, answeredAt: this.#machine.monotonic() })
  }

  /** Read to its end. The time of the request counts: the answer may have waited while this process was paused. */
  applied(
    { askedAt, askedAtWall }: Pick<PendingPage, 'askedAt' | 'askedAtWall'>,
    keys: string | undefined,
  ): void {
    this.#askedAt = askedAt
    this.#askedAtWall = askedAtWall
    this.#keys = keys
  }

  appliedHanded(reading: FeedReading): void {
    this.#handedAt = reading.askedAt
    if (!reading.page.more && reading.askedAt > this.#askedAt) this.applied(reading, reading.page.keys)
  }
}

interface FeedParts {
  readonly store: Store
  readonly clock: Clock
  /** The clock of this machine, where `clock` is that of the store. */
  readonly machine?: Clock
  readonly recorder: Pick<Recorder, 'note'>
  readonly after?: After
  /** How far this node had seen the feed before this process started. */
  readonly seen?: SeenFeed | undefined
}

/** The other processes of a node. */
interface FeedFollowers {
  /** This process has appended a change: they read the feed at once. */
  pollChanges(): void
  /** They take over what this process has read. */
  takeReading?(reading: FeedReading): void
}

/** Milliseconds between two polls: what another process appended is in force here within a second. */
const INTERVAL = 250
/** Topic and life (milliseconds) of the change that is appended when the store has lost some. It is empty. */
const RESTART_TOPIC = 'restart'
const RESTART_KEPT = 3_600_000
/** Lost changes that are appended between two readings: so what others append meanwhile is not read late. */
const BATCH = 100

/**
 * The numbered change feed as this process follows it: revocation rules, switches, generations of directory and
 * configuration. It reads all changes at the start, then the new ones four times a second. Known changes stay in
 * memory. So the data path never asks the store, and it works on while the store cannot be reached.
 */
export class ChangeFeed implements Feed {
  readonly #parts: FeedParts
  readonly #subscribers = new Map<string, Subscriber[]>()
  readonly #known: LiveChanges
  readonly #questions: FeedQuestions
  readonly #progress: FeedProgress
  /** Changes that the store has lost, and that are to be appended again. They stay in force. */
  readonly #lost = new LostChanges((change) => this.#restored(change))
  #at: FeedPlace | undefined
  /** The store's numbers may continue below those that it has given before. */
  #isBehind = false
  #reading: Promise<void> | undefined
  #nextReading: Promise<void> | undefined
  #isReading = false
  #unreachable = false
  #stopped = false
  #endPolling: () => void = () => undefined
  #followers: FeedFollowers | undefined

  private constructor(parts: FeedParts) {
    this.#parts = parts
    this.#known = new LiveChanges(parts.clock)
    const { store, clock, machine = clock } = parts
    const hasRead = (reading: FeedReading): void => this.#followers?.takeReading?.(reading)
    this.#questions = new FeedQuestions(store, machine, hasRead)
    this.#progress = new FeedProgress(parts.seen, parts.clock)
  }

  /** Rejects with Fault `identity_unavailable` if the feed cannot be read at all. */
  static async open(parts: FeedParts): Promise<ChangeFeed> {
    const feed = new ChangeFeed(parts)
    await feed.#read()
    feed.#endPolling = repeatedly(parts.after ?? systemAfter, INTERVAL, () => feed.#poll())
    return feed
  }

  /** From now on the other processes of the node learn what this one appends, and with `takeReading` what it reads. */
  shareWith(followers: FeedFollowers): void {
    this.#followers = followers
  }

  /** Changes of the topic that are known already are applied before this returns. */
  subscribe(topic: string, subscriber: Subscriber): void {
    this.#subscribers.set(topic, [...(this.#subscribers.get(topic) ?? []), subscriber])
    for (const change of [...this.#lost.changes, ...this.#known.read])
      if (change.topic === topic) subscriber.apply(change, false)
    for (const change of this.#known.unread) if (change.topic === topic) subscriber.apply(change, true)
  }

  /**
   * Stores a change and applies it here, after all changes before it; resolves then. Other processes follow within a
   * second. `expiresAt` in milliseconds since the epoch. Rejects with Fault `identity_unavailable` if the store did
   * not accept it.
   */
  async append(topic: string, value: StoredValue, expiresAt?: number): Promise<void> {
    const change = await this.#appendUnread(topic, value, expiresAt)
    this.#followers?.pollChanges()
    await waitInBudget(this.refresh(), () => undefined)
    // The store has the change but could not be read: the change must be in force here nevertheless.
    if (this.#known.isUnread(change)) this.#apply(change, true)
  }

  /** Resolves when all changes appended before are applied here, or could not be read. Never rejects. */
  refresh(): Promise<void> {
    // A poll under way may have missed the newest change. One more poll follows, shared by all callers meanwhile.
    this.#nextReading ??= (this.#reading ?? Promise.resolve()).then(() => {
      this.#nextReading = undefined
      // It is shared: that one of its callers has little time left must not count as a failure of the store.
      this.#reading = aheadOfRequests(() => this.#tryRead())
      return this.#reading
    })
    return this.#nextReading
  }

  get age(): number {
    return this.#questions.age
  }

  get keys(): FeedQuestions['keys'] {
    return this.#questions.keys
  }

  /** The store has lost changes, and those that must stay in force are not appended again yet. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /** If it does not follow on what is known here, this process reads itself, as if nothing was handed over. */
  take(reading: FeedReading): void {
    if (this.#stopped || this.#isReading || endsBefore(this.#at, reading)) return
    const { page, askedAt } = reading
    const isWhole = !this.#known.hasUnread && this.#lost.size === 0 && !this.#isBehind
    const changes = isWhole ? changesBehind(this.#at, reading) : undefined
    if (changes === undefined) return void this.refresh()
    for (const change of changes) this.#take(change, askedAt)
    this.#at = page.last
    this.#progress.saw(page.last)
    this.#questions.appliedHanded(reading)
    this.#noteReachable()
    this.#sweep()
  }

  get seen(): SeenFeed {
    return { sequence: this.#progress.highest, doubted: this.#progress.isDoubted }
  }

  /** As `seen`, but for changes that are younger than five minutes, which a power cut may take from a store of this machine. */
  get settled(): SeenFeed {
    return { sequence: this.#progress.numbers.settled, doubted: this.#progress.isDoubted }
  }

  /** The store is as it should be, though it is older than what this node has seen (FeedProgress). */
  accept(sequence: number): void {
    if (!this.#progress.accept(sequence)) return
    // The next reading appends a change, so that new rules get higher numbers than the tokens in use.
    this.#isBehind = true
    void this.refresh()
  }

  /** Stops polling. Resolves when no request to the store is left. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#endPolling()
    await (this.#nextReading ?? this.#reading)
  }

  async #poll(): Promise<number> {
    if (!this.#questions.areHandedOver) await this.refresh()
    return INTERVAL
  }

  async #tryRead(): Promise<void> {
    this.#isReading = true
    try {
      await this.#read()
      this.#noteReachable()
    } catch (thrown) {
      if (!this.#unreachable)
        this.#parts.recorder.note('error', 'change_feed.unreachable', { reason: toFault(thrown).message })
      this.#unreachable = true
    } finally {
      this.#isReading = false
    }
    this.#sweep()
  }

  #noteReachable(): void {
    if (this.#unreachable) this.#parts.recorder.note('info', 'change_feed.reachable_again')
    this.#unreachable = false
  }

  async #read(): Promise<void> {
    for (;;) {
      const isWhole = await this.#readPages()
      if (isWhole && (this.#progress.isDoubted || (this.#lost.size === 0 && !this.#isBehind))) return
      if (isWhole) await this.#restore()
    }
  }

  /** False if the store lacks what it has taken from this process: then the next reading is one of the whole feed. */
  async #readPages(): Promise<boolean> {
    const { unread } = this.#known
    const { numbers } = this.#progress
    let isWholeFeed = this.#at === undefined
    let newest = this.#questions.ask(this.#at)
    let asked: PendingPage | undefined = newest
    let keys: string | undefined
    let oldestLost = Number.POSITIVE_INFINITY
    while (asked !== undefined) {
      newest = asked
      const page: FeedPage = await asked.reading
      keys = page.keys
      this.#questions.came(asked, page)
      // The next page is on its way while this one is applied.
      asked = page.more && !page.restarted ? this.#questions.ask(page.last) : undefined
      const { last, changes } = page.restarted ? await readWhole(this.#parts.store, page, PAGE) : page
      isWholeFeed ||= page.restarted
      if (page.restarted) oldestLost = this.#restart(unread, changes)
      else this.#lost.forget(changes)
      for (const change of changes) this.#take(change, newest.askedAt)
      this.#at = last
      this.#progress.saw(last)
    }
    if (isWholeFeed) this.#compare(numbers, oldestLost)
    const missing = this.#keepMissing(unread)
    this.#at = missing ?? this.#at
    this.#questions.applied(newest, keys)
    return missing === undefined
  }

  #compare(before: FeedProgress['numbers'], oldestLost: number): void {
    const behind = this.#progress.compare(before, { newest: this.#at?.sequence, oldestLost })
    if (behind === undefined) return
    const facts = { seen: new Date(before.highest).toISOString(), minutes: Math.round(behind / 60_000) }
    this.#parts.recorder.note('error', 'store.older_than_seen', facts)
  }

  #take(change: Change, askedAt: number): void {
    this.#known.addRead(change, askedAt)
    this.#progress.saw(change)
    this.#apply(change, false)
  }

  /** As if it had been read. Returns the place of one such change that has not just expired. */
  #keepMissing(unread: readonly Change[]): FeedPlace | undefined {
    let place: FeedPlace | undefined
    for (const change of unread) {
      const left = this.#known.takeForRead(change)
      if (left === undefined) continue
      this.#apply(change, true)
      if (left > 0) place = { sequence: change.sequence, mark: change.mark }
    }
    return place
  }

  /** A failover has lost changes: returns as `LostChanges.find`. @param changes all that the store has */
  #restart(unread: readonly Change[], changes: readonly Change[]): number {
    this.#parts.recorder.note('warn', 'change_feed.restarted', { sequence: this.#progress.highest })
    this.#keepMissing(unread)
    const oldestLost = this.#lost.find(this.#known.read, changes, this.#parts.clock.now())
    this.#known.forget()
    for (const each of this.#subscribers.values()) for (const subscriber of each) subscriber.reset?.()
    this.#isBehind = true
    return oldestLost
  }

  /** Appends them with numbers above all before: otherwise a new rule might get a lower one than tokens in use. */
  async #restore(): Promise<void> {
    await this.#lost.append(BATCH, ({ change: { topic, expiresAt }, value }) =>
      this.#appendUnread(topic, value, expiresAt),
    )
    if (this.#lost.size > 0 || !this.#isBehind) return
    await this.#appendAbove(RESTART_TOPIC, {}, this.#parts.clock.now() + RESTART_KEPT)
    this.#isBehind = false
  }

  #restored(change: Change): StoredValue | undefined {
    return this.#subscribers
      .get(change.topic)
      ?.map((each) => each.restore?.(change))
      .find((value) => value !== undefined)
  }

  async #appendUnread(topic: string, value: StoredValue, expiresAt: number | undefined): Promise<Change> {
    const place = await this.#appendAbove(topic, value, expiresAt)
    const change = { ...place, topic, value, expiresAt }
    this.#known.addUnread(change)
    return change
  }

  #appendAbove(topic: string, value: StoredValue, expiresAt: number | undefined): Promise<FeedPlace> {
    return this.#parts.store.append(topic, value, { expiresAt, above: this.#progress.highest })
  }

  #apply(change: Change, early: boolean): void {
    for (const subscriber of this.#subscribers.get(change.topic) ?? []) subscriber.apply(change, early)
  }

  #sweep(): void {
    this.#known.sweep((change) => {
      for (const subscriber of this.#subscribers.get(change.topic) ?? []) subscriber.expire?.(change)
    })
  }
}
