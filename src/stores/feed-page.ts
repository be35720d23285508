import type { Change, FeedPage, FeedPlace, FeedReading } from '../contracts/store.ts'

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

const isSame = (one: FeedPlace | undefined, other: FeedPlace | undefined): boolean =>
  one?.sequence === other?.sequence && one?.mark === other?.mark

/** What of a reading is behind a place; undefined if the reading leaves something out between them. */
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

/** Whether a reading ends before a place. */
export const endsBefore = (at: FeedPlace | undefined, { page: { last, restarted } }: FeedReading): boolean =>
  !restarted && at !== undefined && (last?.sequence ?? 0) < at.sequence

/** The same reading, with its times as another process has them. */
export const readingAt = (reading: FeedReading, time: (ms: number) => number): FeedReading => ({
  ...reading,
  askedAt: time(reading.askedAt),
  answeredAt: time(reading.answeredAt),
})
