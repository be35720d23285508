import { createHash } from 'node:crypto'
import type { Holdings } from '../directory/holdings.ts'

/** Maps and sets as lists: JSON knows neither. */
const plain = (_key: string, value: unknown): unknown =>
  value instanceof Map || value instanceof Set ? [...(value as Iterable<unknown>)] : value

/**
 * Who may have what by a directory, in one word. What is served and what a reload takes rights away by are read by
 * several, from files that may change meanwhile: where the words are the same, the readings were.
 */
export const digestOfHoldings = (holdings: Holdings): string =>
  createHash('sha256').update(JSON.stringify(holdings, plain)).digest('base64url')
