import type { Change, FeedPage, Store, StoredValue } from '../contracts/store.ts'

export interface LostChange {
  readonly change: Change
  /** With which it is appended again. */
  readonly value: StoredValue
}

/** Milliseconds: by so much before their end some changes may have been purged, since the clocks of nodes differ a little. */
const PURGED = 60_000

/** What a change says, when it is appended again. */
const wordsOf = ({ topic, expiresAt }: Change, value: StoredValue): string =>
  JSON.stringify([topic, value, expiresAt])

/**
 * The changes that a store has lost in a failover, and that are to be appended again. Several nodes append the same ones:
 * copies count as one, else their number would grow with each failover.
 */
export class LostChanges {
  readonly #restored: (change: Change) => StoredValue | undefined
  /** By what they say. */
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
      this.#lost.set(wordsOf(change, value), { change, value })
      first = Math.min(first, change.sequence)
      if ((change.expiresAt ?? Number.POSITIVE_INFINITY) > now + PURGED)
        oldest = Math.min(oldest, change.sequence)
    }
    // Another process may have appended some of them again already: with higher numbers.
    this.forget(stored.filter(({ sequence }) => sequence > first))
    return oldest
  }

  /** What the store has, need not be appended again. */
  forget(stored: readonly Change[]): void {
    if (this.#lost.size === 0) return
    for (const change of stored) {
      const value = this.#restored(change)
      if (value !== undefined) this.#lost.delete(wordsOf(change, value))
    }
  }

  /** Gives some to `append`, all at the same time. Those that it rejects stay lost. Rejects as it does. */
  async append(limit: number, append: (lost: LostChange) => Promise<unknown>): Promise<void> {
    await Promise.all(
      [...this.#lost.entries().take(limit)].map(async ([words, lost]) => {
        await append(lost)
        this.#lost.delete(words)
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
    // It has lost more meanwhile.
    if (page.restarted) changes = []
    for (const change of page.changes) changes.push(change)
  }
  return { last: page.last, changes }
}
