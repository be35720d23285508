import type { Recorder } from '../contracts/recorder.ts'
import type {
  Change,
  Feed,
  FeedPage,
  FeedPlace,
  FeedReading,
  Store,
  StoredValue,
  Subscriber,
} from '../contracts/store.ts'
import { type After, after as systemAfter, type Clock } from '../kernel/clock.ts'
import { toFault } from '../kernel/faults.ts'
import { aheadOfRequests, waitInBudget } from '../kernel/store-budget.ts'
import { changesBehind, endsBefore } from './feed-page.ts'
import { LostChanges, readWhole } from './lost-changes.ts'

export type { Subscriber } from '../contracts/store.ts'

export interface FeedParts {
  readonly store: Store
  readonly clock: Clock
  /** The clock of this machine, where `clock` is that of the store. */
  readonly machine?: Clock
  readonly recorder: Pick<Recorder, 'note'>
  readonly after?: After
  /** What this node has seen of the feed before this process started. */
  readonly seen?: SeenFeed | undefined
  /** Called after this process has appended a change: other processes should poll at once. */
  readonly appended?: () => void
  /** Called with each page that this process has read, for other processes of the machine. */
  readonly hasRead?: ((reading: FeedReading) => void) | undefined
}

/** What a node remembers of the feed when it starts again. */
export interface SeenFeed {
  /** The highest number, which is a time as well (Change.sequence). */
  readonly sequence: number
  /** The store was older than that, and nobody has accepted it yet. */
  readonly doubted: boolean
}

/** A page that was asked for. */
interface Asked {
  readonly from: FeedPlace | undefined
  /** Clock.monotonic(), and the wall time. */
  readonly askedAt: number
  readonly askedAtWall: number
  readonly reading: Promise<FeedPage>
}

type NewestReading = Pick<Asked, 'askedAt' | 'askedAtWall'> & { readonly page: Pick<FeedPage, 'keys'> }

interface KnownChange {
  readonly change: Change
  /** Clock.monotonic(): the change is kept at least until then. */
  readonly keptUntil: number
}

/** Milliseconds between two polls: what another process appended is in force here within a second. */
const INTERVAL = 250
/** Milliseconds. If the reading that was handed over last is older, this process reads itself. */
const HANDED_FOR = 600
/** Milliseconds. An older reading tells nothing of the keys. */
const CURRENT = 1000
/** Changes that one request to the store reads at most. */
const PAGE = 5000
/** Of the change that a process appends when the store has lost some. It tells nothing. */
const RESTART_TOPIC = 'restart'
/** Milliseconds. */
const RESTART_KEPT = 3_600_000
/** Lost changes that are appended between two readings: so what others append meanwhile is not read late. */
const BATCH = 100
/** Milliseconds. A failover loses less; a backup that was restored more (C11.7.3). */
const LOST_BY_FAILOVER = 5 * 60_000
/** Milliseconds between two searches for expired changes. */
const SWEEP_INTERVAL = 10_000

const placeText = ({ sequence, mark }: FeedPlace): string => `${sequence} ${mark}`

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
  /** Changes that this process has appended, and not read back yet, by their places: a failover may have lost them. */
  readonly #unread = new Map<string, Change>()
  /** Changes that the store has lost, and that are to be appended again. They stay in force. */
  readonly #lost = new LostChanges((change) => this.#restored(change))
  #at: FeedPlace | undefined
  /** The highest number ever seen. */
  #highest = 0
  /** The store's numbers may go on below those that it has given before. */
  #isBehind = false
  /** The store is older than what this node has seen, and nobody has accepted that. */
  #isDoubted: boolean
  #reading: Promise<void> | undefined
  #nextReading: Promise<void> | undefined
  #isReading = false
  #readAt = 0
  #readAtWall = 0
  #handedAt = Number.NEGATIVE_INFINITY
  #keys: string | undefined
  #sweptAt = 0
  #unreachable = false
  #stopped = false
  #cancel: () => void = () => undefined

  private constructor(parts: FeedParts) {
    this.#parts = parts
    this.#after = parts.after ?? systemAfter
    this.#highest = parts.seen?.sequence ?? 0
    this.#isDoubted = parts.seen?.doubted ?? false
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
    for (const change of [...this.#lost.changes, ...this.#knownChanges()])
      if (change.topic === topic) subscriber.apply(change, false)
    for (const change of this.#unread.values()) if (change.topic === topic) subscriber.apply(change, true)
  }

  /**
   * Stores a change and applies it here, after all changes before it; resolves then. Other processes follow within a
   * second. `expiresAt` in milliseconds since the epoch. Rejects with Fault `identity_unavailable` if the store did
   * not accept it.
   */
  async append(topic: string, value: StoredValue, expiresAt?: number): Promise<void> {
    const change = await this.#appendUnread(topic, value, expiresAt)
    this.#parts.appended?.()
    await waitInBudget(this.refresh(), () => undefined)
    // The store has the change but could not be read: the change must be in force here all the same.
    if (this.#unread.has(placeText(change))) this.#apply(change, true)
  }

  /**
   * Polls now. Resolves when all changes appended before the call are applied here, or could not be read. Never
   * rejects.
   */
  refresh(): Promise<void> {
    // A poll under way may have missed the newest change. One more poll follows, shared by all callers meanwhile.
    this.#nextReading ??= (this.#reading ?? Promise.resolve()).then(() => {
      this.#nextReading = undefined
      // It is shared: one of its callers may have little time left, and that tells nothing of the store.
      this.#reading = aheadOfRequests(() => this.#tryRead())
      return this.#reading
    })
    return this.#nextReading
  }

  /**
   * Milliseconds since the store was asked for what was read last: about 250, unless it cannot be reached. The larger one by
   * both clocks: Clock.monotonic() stands still while the machine is suspended, and a wall clock can be set back.
   */
  get age(): number {
    const { clock, machine = clock } = this.#parts
    return Math.max(machine.monotonic() - this.#readAt, machine.now() - this.#readAtWall)
  }

  /** What tells whether the keys in the store have changed, and its age as `age`; undefined if it is not known now. */
  get keys(): { readonly mark: string; readonly age: number } | undefined {
    const { age } = this
    return this.#keys === undefined || age > CURRENT ? undefined : { mark: this.#keys, age }
  }

  /** The store has lost changes, and those that must stay in force are not appended again yet. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /**
   * Takes over what another process of the machine has read. If that does not follow on what is known here, this process
   * reads itself, as it does when nothing is handed over for a while.
   */
  take(reading: FeedReading): void {
    if (this.#stopped || this.#isReading || endsBefore(this.#at, reading)) return
    const { page, askedAt } = reading
    const isWhole = this.#unread.size === 0 && this.#lost.size === 0 && !this.#isBehind
    const changes = isWhole ? changesBehind(this.#at, reading) : undefined
    if (changes === undefined) return void this.refresh()
    for (const change of changes) this.#take(change, askedAt)
    this.#at = page.last
    this.#highest = Math.max(this.#highest, page.last?.sequence ?? 0)
    this.#handedAt = askedAt
    if (!page.more && askedAt > this.#readAt) this.#noteReading(reading)
    this.#tellReachable()
    this.#sweep()
  }

  /** What is to be remembered. */
  get seen(): SeenFeed {
    return { sequence: this.#highest, doubted: this.#isDoubted }
  }

  /**
   * The store is as it should be, though it is older than what this node has seen.
   * @param sequence what whoever says so had seen: a store that is accepted is no older one that comes later
   */
  accept(sequence: number): void {
    if (!this.#isDoubted || this.#highest > sequence + LOST_BY_FAILOVER) return
    this.#isDoubted = false
    // The next reading appends a change, so that new rules get higher numbers than the tokens in use.
    this.#isBehind = true
    void this.refresh()
  }

  /** Stops polling. Resolves when no request to the store is left. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel()
    await (this.#nextReading ?? this.#reading)
  }

  #schedule(): void {
    if (this.#stopped) return
    this.#cancel = this.#after(INTERVAL, () => {
      const { clock, machine = clock } = this.#parts
      const isHanded = machine.monotonic() - this.#handedAt < HANDED_FOR
      void (isHanded ? Promise.resolve() : this.refresh()).then(() => this.#schedule())
    })
  }

  async #tryRead(): Promise<void> {
    this.#isReading = true
    try {
      await this.#read()
      this.#tellReachable()
    } catch (thrown) {
      if (!this.#unreachable)
        this.#parts.recorder.note('error', 'change_feed.unreachable', { reason: toFault(thrown).message })
      this.#unreachable = true
    } finally {
      this.#isReading = false
    }
    this.#sweep()
  }

  #tellReachable(): void {
    if (this.#unreachable) this.#parts.recorder.note('info', 'change_feed.reachable_again')
    this.#unreachable = false
  }

  async #read(): Promise<void> {
    for (;;) {
      const isWhole = await this.#readPages()
      if (isWhole && (this.#isDoubted || (this.#lost.size === 0 && !this.#isBehind))) return
      if (isWhole) await this.#restore()
    }
  }

  /** False if the store lacks what it has taken from this process: then the next reading is one of the whole feed. */
  async #readPages(): Promise<boolean> {
    const unread = [...this.#unread.values()]
    const highest = this.#highest
    let isWholeFeed = this.#at === undefined
    let newest = this.#ask(this.#at)
    let asked: Asked | undefined = newest
    let keys: string | undefined
    while (asked !== undefined) {
      newest = asked
      const page: FeedPage = await asked.reading
      keys = page.keys
      this.#handOn(asked, page)
      // The next page is on its way while this one is applied.
      asked = page.more && !page.restarted ? this.#ask(page.last) : undefined
      const { last, changes } = page.restarted ? await readWhole(this.#parts.store, page, PAGE) : page
      isWholeFeed ||= page.restarted
      if (page.restarted) this.#restart(unread, changes)
      else this.#lost.forget(changes)
      for (const change of changes) this.#take(change, newest.askedAt)
      this.#at = last
      this.#highest = Math.max(this.#highest, last?.sequence ?? 0)
    }
    if (isWholeFeed) this.#compare(highest)
    const missing = this.#keepMissing(unread)
    this.#at = missing ?? this.#at
    this.#noteReading({ ...newest, page: { keys } })
    return missing === undefined
  }

  /** Not the time of the answer counts: it may have lain in the socket while this process was paused. */
  #noteReading({ askedAt, askedAtWall, page: { keys } }: NewestReading): void {
    this.#readAt = askedAt
    this.#readAtWall = askedAtWall
    this.#keys = keys
  }

  #handOn({ from, askedAt, askedAtWall }: Asked, page: FeedPage): void {
    const { clock, machine = clock, hasRead } = this.#parts
    hasRead?.({ from, page, askedAt, askedAtWall, answeredAt: machine.monotonic() })
  }

  /** Numbers may be ahead of the time, and then tell nothing about it. */
  #compare(highest: number): void {
    const behind = Math.min(highest, this.#parts.clock.now()) - (this.#at?.sequence ?? 0)
    if (behind <= LOST_BY_FAILOVER || this.#isDoubted) return
    this.#isDoubted = true
    const facts = { seen: new Date(highest).toISOString(), minutes: Math.round(behind / 60_000) }
    this.#parts.recorder.note('error', 'store.older_than_seen', facts)
  }

  #ask(at: FeedPlace | undefined): Asked {
    const { store, clock, machine = clock } = this.#parts
    const asked = {
      from: at,
      askedAt: machine.monotonic(),
      askedAtWall: machine.now(),
      reading: store.changes(at, PAGE),
    }
    // Whoever applies the page before it learns of a failure when this one is its turn.
    asked.reading.catch(() => undefined)
    return asked
  }

  #take(change: Change, askedAt: number): void {
    if (this.#unread.size > 0) this.#unread.delete(placeText(change))
    this.#known.set(change.sequence, { change, keptUntil: askedAt + (change.remaining ?? 0) })
    this.#apply(change, false)
  }

  /**
   * Takes over what was appended before a reading and was not in it, as if it had been read: so it is found to be lost when
   * the whole feed is read. Returns the place of one such change that has not just expired.
   */
  #keepMissing(unread: readonly Change[]): FeedPlace | undefined {
    const { clock } = this.#parts
    let place: FeedPlace | undefined
    for (const change of unread) {
      if (!this.#unread.delete(placeText(change))) continue
      const left = (change.expiresAt ?? Number.POSITIVE_INFINITY) - clock.now()
      this.#known.set(change.sequence, { change, keptUntil: clock.monotonic() + Math.max(0, left) })
      this.#apply(change, true)
      if (left > 0) place = { sequence: change.sequence, mark: change.mark }
    }
    return place
  }

  /** A failover has lost changes. @param changes all that the store has; what is not in it was lost */
  #restart(unread: readonly Change[], changes: readonly Change[]): void {
    this.#parts.recorder.note('warn', 'change_feed.restarted', { sequence: this.#highest })
    this.#keepMissing(unread)
    this.#lost.find(this.#knownChanges(), changes)
    this.#known.clear()
    for (const each of this.#subscribers.values()) for (const subscriber of each) subscriber.reset?.()
    this.#isBehind = true
  }

  /**
   * Appends again what must stay in force, with what makes the store's numbers go on above all that were given before: else a
   * new rule could get a lower number than the tokens in use.
   */
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
    // A poll may have read it before its answer came, and later ones too.
    if (this.#known.get(place.sequence)?.change.mark !== place.mark)
      this.#unread.set(placeText(place), change)
    return change
  }

  #appendAbove(topic: string, value: StoredValue, expiresAt: number | undefined): Promise<FeedPlace> {
    return this.#parts.store.append(topic, value, { expiresAt, above: this.#highest })
  }

  #knownChanges(): readonly Change[] {
    return Array.from(this.#known.values(), ({ change }) => change)
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
