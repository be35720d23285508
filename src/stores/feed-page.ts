import type { Change, FeedPage, FeedPlace } from '../contracts/store.ts'

/** Of changes in a store that never loses one while it runs, so that numbers alone tell them apart. */
export const NO_MARK = ''

/** A page of such a store. @param now the store's clock, milliseconds since the epoch */
export function toPage(
  changes: readonly Change[],
  after: FeedPlace | undefined,
  now: number,
  more: boolean,
): FeedPage {
  const newest = changes.at(-1)
  const last = newest === undefined ? after : { sequence: newest.sequence, mark: newest.mark }
  return { changes, last, now, restarted: false, more }
}
