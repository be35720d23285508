import type { Change, FeedPage, FeedPlace, StoredValue } from '../../contracts/store.ts'
import type { Row } from './link.ts'

/**
 * A reading: first the end of the feed, with the store's clock as its value, then the changes. Undefined if the reader's
 * place is not in the feed any more.
 */
export function toPage(
  [end, ...found]: readonly Row[],
  after: FeedPlace | undefined,
  limit: number,
  ran: number,
): FeedPage | undefined {
  if (end === undefined) throw new Error('the table `feed` has no row')
  if (after !== undefined && !isAt(after, found[0]) && !isAt(after, end)) return undefined
  const later = found[0]?.['sequence'] === after?.sequence ? found.slice(1) : found
  const more = later.length > limit
  const changes = (more ? later.slice(0, limit) : later).map((row) => toChange(row, ran))
  const last = more ? placeOf(changes.at(-1)) : endOf(end)
  const keys = (end['topic'] ?? '') as string
  return { changes, last, now: Number(end['value']), keys, restarted: false, more }
}

/** Whether the place is still in the feed: as its first change, or as its end, of which the change was removed. */
const isAt = (after: FeedPlace, row: Row | undefined): boolean =>
  row?.['sequence'] === after.sequence && row['mark'] === after.mark

const endOf = ({ sequence, mark }: Row): FeedPlace | undefined =>
  sequence === 0 ? undefined : { sequence: sequence as number, mark: mark as string }

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
