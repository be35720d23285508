/** How far a node has seen the change feed, and whether its store is as far (C11.7.3). */

/** What a node remembers of the feed when it starts again. */
export interface SeenFeed {
  /** The highest number, which is a time as well (Change.sequence). */
  readonly sequence: number
  /** The store was older than that, and nobody has accepted it yet. */
  readonly doubted: boolean
}

/** Milliseconds. A failover loses less; a backup that was restored more. */
const LOST_BY_FAILOVER = 5 * 60_000

export class FeedProgress {
  #highest: number
  #isDoubted: boolean

  constructor(seen: SeenFeed | undefined) {
    this.#highest = seen?.sequence ?? 0
    this.#isDoubted = seen?.doubted ?? false
  }

  /** The highest number ever seen. */
  get highest(): number {
    return this.#highest
  }

  /** The store is older than what this node has seen, and nobody has accepted that. */
  get isDoubted(): boolean {
    return this.#isDoubted
  }

  saw(sequence: number | undefined): void {
    this.#highest = Math.max(this.#highest, sequence ?? 0)
  }

  /**
   * Compares a store whose whole feed was read. Numbers may be ahead of the time, and then tell nothing about it.
   * @param before the highest number that was seen before this reading
   * @param newest the highest number that the store has now
   * @param lostSince the number of the oldest change that is known and that the store lacks. Where changes are rare, the newest
   *   one is old though little was lost. Undefined: nothing is known but `before`
   * @returns milliseconds by which the store is older, if it is doubted from now on
   */
  compare(
    before: number,
    newest: number | undefined,
    now: number,
    lostSince: number | undefined,
  ): number | undefined {
    const behind = Math.min(before, now) - (newest ?? 0)
    const isRecent = lostSince !== undefined && now - lostSince <= LOST_BY_FAILOVER
    if (behind <= LOST_BY_FAILOVER || isRecent || this.#isDoubted) return undefined
    this.#isDoubted = true
    return behind
  }

  /**
   * The store is as it should be. False if it is not doubted.
   * @param sequence what whoever says so had seen: a store that is accepted is no older one that comes later
   */
  accept(sequence: number): boolean {
    if (!this.#isDoubted || this.#highest > sequence + LOST_BY_FAILOVER) return false
    this.#isDoubted = false
    return true
  }
}
