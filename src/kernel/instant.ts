/** Times as people write them. */

/** RFC 3339, with its zone: a time without one means something else on every machine. */
export const INSTANT_PATTERN =
  '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,3})?)?(Z|[+-][0-9]{2}:[0-9]{2})$'

const INSTANT = new RegExp(INSTANT_PATTERN)

/** Whether it is a moment that exists: `2026-02-30T…` is none. */
export const isInstant = (text: string): boolean => INSTANT.test(text) && !Number.isNaN(Date.parse(text))
