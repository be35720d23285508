/** Lists that are read page by page, in the order of their keys (C11.5). */
import type { PageQuery } from '../../base/contracts/records/store.ts'
import { type Members, members, type Schema, textSchema, listSchema } from './operation.ts'

/** The most rows of one page, and the rows of one where the request names no number. */
export const MOST_ROWS = 1000
export const ROWS = 100

/** The query parameter `limit` of every list. */
export const LIMIT = textSchema(`Rows at most: ${ROWS} if not given, up to ${MOST_ROWS}.`, {
  pattern: '^([1-9][0-9]{0,2}|1000)$',
})

/** The query parameter `after` of every list by key. */
export const AFTER = textSchema('`next` of the page before: the page begins behind this key.')

/** The query parameters of a list by key. */
export const PAGE_QUERY: Members = {
  limit: LIMIT,
  after: AFTER,
  prefix: textSchema('Only keys that begin with it, character by character.'),
}

/** The page that a query asks for. */
export const pageOf = ({
  after,
  limit,
  prefix,
}: Readonly<Record<string, string | undefined>>): PageQuery => ({
  after,
  limit: Number(limit ?? ROWS),
  ...(prefix !== undefined && { prefix }),
})

/** The schema of a page: its rows under `name`, and where the next one begins. */
export const pageSchema = (name: string, row: Schema): Schema =>
  members(
    {
      [name]: listSchema(row, 'In the order of their keys.'),
      next: textSchema('`after` of the next page. Absent after the last row.'),
    },
    [name],
  )

/** Rows of a page, and whether there may be more. */
export interface Rows<T> {
  readonly rows: readonly T[]
  /** The key of the last row; undefined if nothing comes after it. */
  readonly next: string | undefined
}

/** A page as it is answered. */
export const pageBody = <T>(name: string, { rows, next }: Rows<T>): Readonly<Record<string, unknown>> => ({
  [name]: rows,
  ...(next !== undefined && { next }),
})
