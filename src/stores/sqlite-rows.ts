import type { Change, Entry } from '../contracts/store.ts'
import { fromText } from './value-text.ts'

/** A row of `record`, without its kind and indexes. A type alias, so that it fits what node:sqlite answers. */
export type RecordRow = {
  readonly key: string
  readonly value: string
  readonly version: number
  readonly expires_at: number | null
  readonly used_at: number | null
}

export type ChangeRow = {
  readonly sequence: number
  readonly topic: string
  readonly value: string
  readonly expires_at: number | null
  readonly runs_until: number | null
}

export type CounterRow = {
  readonly count: number
  readonly ends_at: number
}

/**
 * A key as it stands in a column: escaped as JSON would. SQLite's text is UTF-8, in which two different lone
 * surrogates become the same character, and its tools cut text at a NUL; escaped, each key has a text of its own.
 */
export const keyToColumn = (key: string): string => JSON.stringify(key).slice(1, -1)

export const columnToKey = (column: string): string => JSON.parse(`"${column}"`) as string

export const toEntry = (row: RecordRow): Entry => ({
  key: columnToKey(row.key),
  value: fromText(row.value),
  version: row.version,
  expiresAt: row.expires_at ?? undefined,
  usedAt: row.used_at ?? undefined,
})

/** `ran`: how long the service has run, milliseconds. */
export const toChange = (row: ChangeRow, ran: number): Change => ({
  sequence: row.sequence,
  topic: row.topic,
  value: fromText(row.value),
  expiresAt: row.expires_at ?? undefined,
  remaining: row.runs_until === null ? undefined : row.runs_until - ran,
})
