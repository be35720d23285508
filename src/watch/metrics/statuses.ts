/** Statuses as label values: each that has a meaning by itself, and the class for all others (C11.1). */
import { STATUS_CODES } from 'node:http'

/** In the order of `classAt`. */
export const STATUS_CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** The classes come first. An upstream may answer with a status that nobody has registered. */
export const STATUSES: readonly string[] = [...STATUS_CLASSES, ...Object.keys(STATUS_CODES)]

const LAST = 599

/** Index in `STATUS_CLASSES`. What is below 100 or above 599 counts as the class that is nearest. */
export const classAt = (status: number): number => Math.floor(Math.min(LAST, Math.max(100, status)) / 100) - 1

const places = Uint8Array.from({ length: LAST + 1 }, (_, status) => {
  const known = STATUSES.indexOf(String(status))
  return known >= 0 ? known : classAt(status)
})

/** Index in `STATUSES`. */
export const statusAt = (status: number): number => places[status] ?? classAt(status)
