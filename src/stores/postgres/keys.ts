import { createHash } from 'node:crypto'
import type { Page } from '../../contracts/store.ts'
import { byEscapedKey, endOfPrefix, escapedKey } from '../../kernel/key-order.ts'

/** Bytes. An index row of Postgres holds 2,704 of them, with kind, index value and key together. */
const LONGEST = 512
/** Bytes of a longer key that stand in its column as they are, so that order and prefixes hold. */
const HEAD = 400
/** Stands in no escaped key: so a shortened key is never the same as another key. */
const SEPARATOR = '\u0001'

/** The column of an escaped key: itself, or its beginning and its SHA-256. */
export function shortKey(escaped: string): string {
  if (escaped.length * 3 <= LONGEST || Buffer.byteLength(escaped) <= LONGEST) return escaped
  const head = Buffer.from(escaped)
    .subarray(0, HEAD)
    .toString('utf8')
    .replace(/\uFFFD$/, '')
  return head + SEPARATOR + createHash('sha256').update(escaped).digest('hex')
}

/** The column of an index value; null: it has none. */
export const indexColumn = (value: string | undefined): string | null =>
  value === undefined ? null : shortKey(escapedKey(value))

/** The columns `key` and `long_key`. The second holds the whole key where the first is shortened. */
export const keyColumns = (key: string): readonly [key: string, longKey: string | null] =>
  escapedKeyColumns(escapedKey(key))

export function escapedKeyColumns(escaped: string): readonly [key: string, longKey: string | null] {
  const short = shortKey(escaped)
  return [short, short === escaped ? null : escaped]
}

export const keyOf = (column: string, longKey: string | null): string =>
  JSON.parse(`"${longKey ?? column}"`) as string

/** The parameters of a page: first key, one that is not on it, first key behind, whole prefix, limit. */
export function partColumns({ after, limit, prefix = '' }: Partial<Page> = {}): readonly unknown[] {
  const whole = escapedKey(prefix)
  const begin = beginningOf(whole)
  const last = after === undefined ? null : shortKey(escapedKey(after))
  const from = last !== null && byEscapedKey(last, begin) > 0 ? last : begin
  return [from, last, endOfPrefix(begin) ?? null, whole, limit ?? null]
}

/** Of a long prefix only its beginning is in the columns of the keys. */
const beginningOf = (prefix: string): string => shortKey(prefix).split('\u0001')[0] ?? prefix
