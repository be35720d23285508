import type { Change, FeedPage, FeedPlace, StoredValue } from '../../contracts/store.ts'
import type { Row } from './link.ts'

/** The rows of a reading: each has the end of the feed and the store's clock, and a change, or none if there is none. */
export function toPage(
  rows: readonly Row[],
  after: FeedPlace | undefined,
  limit: number,
  ran: number,
): FeedPage | undefined {
  const [first] = rows
  if (first === undefined) throw new Error('the table `feed` has no row')
  const found = rows.filter(({ sequence }) => sequence !== null)
  if (after !== undefined && !isAt(after, found[0], first)) return undefined
  const later = after === undefined ? found : found.filter(({ sequence }) => sequence !== after.sequence)
  const changes = later.slice(0, limit).map((row) => toChange(row, ran))
  const more = later.length > limit
  return {
    changes,
    last: more ? placeOf(changes.at(-1)) : endOf(first),
    now: first['now'] as number,
    restarted: false,
    more,
  }
}

/** Whether the reader's place is still in the feed: as its first change, or as its end, of which the change was removed. */
const isAt = (after: FeedPlace, found: Row | undefined, { last, last_mark: mark }: Row): boolean =>
  (found?.['sequence'] === after.sequence && found['mark'] === after.mark) ||
  (last === after.sequence && mark === after.mark)

const endOf = ({ last, last_mark: mark }: Row): FeedPlace | undefined =>
  last === 0 ? undefined : { sequence: last as number, mark: mark as string }

const placeOf = (change: Change | undefined): FeedPlace | undefined =>
  change && { sequence: change.sequence, mark: change.mark }

/** `ran`: how long the service has run on this store, in milliseconds. */
const toChange = (row: Row, ran: number): Change => ({
  sequence: row['sequence'] as number,
  mark: row['mark'] as string,
  topic: row['topic'] as string,
  value: JSON.parse(row['value'] as string) as StoredValue,
  expiresAt: (row['expires_at'] ?? undefined) as number | undefined,
  remaining: row['runs_until'] === null ? undefined : (row['runs_until'] as number) - ran,
})
