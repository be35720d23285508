/** Times as people write them. */

/** RFC 3339, with its zone: a time without one means something else on every machine. */
export const INSTANT_PATTERN =
  '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,3})?)?(Z|[+-][0-9]{2}:[0-9]{2})$'

const INSTANT = new RegExp(INSTANT_PATTERN)

/** Date.parse takes the 30th of February for the 2nd of March. */
const isDay = (day: string): boolean => new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)

/** Whether it is a moment that exists: `2026-02-30T…` is none. */
export const isInstant = (text: string): boolean =>
  INSTANT.test(text) && !Number.isNaN(Date.parse(text)) && isDay(text.slice(0, 10))
