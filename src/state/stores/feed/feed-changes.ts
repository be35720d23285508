import type {
  Change,
  FeedPage,
  FeedPlace,
  FeedReading,
  Store,
  StoredValue,
} from '../../../base/contracts/records/store.ts'
import type { Clock } from '../../../base/kernel/clock.ts'

interface LostChange {
  readonly change: Change
  /** With which it is appended again. */
  readonly value: StoredValue
}

/** By how many milliseconds before their end some changes may have been purged, because the clocks of nodes differ a little. */
const PURGED = 60_000

const contentOf = ({ topic, expiresAt }: Change, value: StoredValue): string =>
  JSON.stringify([topic, value, expiresAt])

/** Lost in a failover. Several nodes append the same ones: copies count as one, otherwise they would multiply. */
export class LostChanges {
  readonly #restored: (change: Change) => StoredValue | undefined
  readonly #lost = new Map<string, LostChange>()

  /** @param restored the value with which a change is appended again; undefined: it is not */
  constructor(restored: (change: Change) => StoredValue | undefined) {
    this.#restored = restored
  }

  get size(): number {
    return this.#lost.size
  }

  get changes(): readonly Change[] {
    return Array.from(this.#lost.values(), ({ change }) => change)
  }

  /**
   * Adds those of the known changes that the store lacks.
   * @param stored all that it has
   * @returns the number of the oldest one that was not purged; Infinity if there is none
   */
  find(known: Iterable<Change>, stored: readonly Change[], now: number): number {
    const marks = new Map(stored.map(({ sequence, mark }) => [sequence, mark]))
    let first = Number.POSITIVE_INFINITY
    let oldest = Number.POSITIVE_INFINITY
    for (const change of known) {
      const value = marks.get(change.sequence) === change.mark ? undefined : this.#restored(change)
      if (value === undefined) continue
      this.#lost.set(contentOf(change, value), { change, value })
      first = Math.min(first, change.sequence)
      if ((change.expiresAt ?? Number.POSITIVE_INFINITY) > now + PURGED)
        oldest = Math.min(oldest, change.sequence)
    }
    // Another process may have appended some of them again already: with higher numbers.
    this.forget(stored.filter(({ sequence }) => sequence > first))
    return oldest
  }

  /** Changes that the store has need not be appended again. */
  forget(stored: readonly Change[]): void {
    if (this.#lost.size === 0) return
    for (const change of stored) {
      const value = this.#restored(change)
      if (value !== undefined) this.#lost.delete(contentOf(change, value))
    }
  }

  /** Gives some to `append`, all at the same time. Those that it rejects stay lost. Rejects as it does. */
  async append(limit: number, append: (lost: LostChange) => Promise<unknown>): Promise<void> {
    await Promise.all(
      [...this.#lost.entries().take(limit)].map(async ([content, lost]) => {
        await append(lost)
        this.#lost.delete(content)
      }),
    )
  }
}

/**
 * The rest of a feed that is read anew, and its first page. All of it at once: so a switch is never off between two pages.
 */
export async function readWhole(
  store: Pick<Store, 'changes'>,
  first: FeedPage,
  limit: number,
): Promise<Pick<FeedPage, 'last' | 'changes'>> {
  let changes = [...first.changes]
  let page = first
  while (page.more) {
    page = await store.changes(page.last, limit)
    // The store has lost more changes meanwhile.
    if (page.restarted) changes = []
    for (const change of page.changes) changes.push(change)
  }
  return { last: page.last, changes }
}

interface KnownChange {
  readonly change: Change
  /** Clock.monotonic(): the change is kept at least until then. */
  readonly keptUntil: number
}

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

const isSame = (one: FeedPlace | undefined, other: FeedPlace | undefined): boolean =>
  one?.sequence === other?.sequence && one?.mark === other?.mark

/** The changes of a reading behind a place; undefined if the reading leaves something out between them. */
export function changesBehind(
  at: FeedPlace | undefined,
  { from, page: { changes, last, restarted } }: FeedReading,
): readonly Change[] | undefined {
  if (restarted) return undefined
  if (isSame(at, last)) return []
  if (isSame(at, from)) return changes
  const index = changes.findIndex((change) => isSame(at, change))
  return index === -1 ? undefined : changes.slice(index + 1)
}

export const endsBefore = (at: FeedPlace | undefined, { page: { last, restarted } }: FeedReading): boolean =>
  !restarted && at !== undefined && (last?.sequence ?? 0) < at.sequence

/** The same reading, with its times as another process has them. */
export const readingAt = (reading: FeedReading, time: (ms: number) => number): FeedReading => ({
  ...reading,
  askedAt: time(reading.askedAt),
  answeredAt: time(reading.answeredAt),
})
