export const DAY_MS = 86_400_000

const DURATION = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: DAY_MS } as const
const SIZE = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const

export const DURATION_PATTERN = '^[0-9]+(ms|s|m|h|d)$'
export const SIZE_PATTERN = '^[0-9]+(B|KiB|MiB|GiB)$'

/** The same pattern without texts whose number is zero. */
export const aboveZero = (pattern: string): string => pattern.replace('^', '^(?!0+[A-Za-z])')

function parseUnits(text: string, pattern: string, units: Readonly<Record<string, number>>): number {
  const unit = new RegExp(pattern).exec(text)?.[1]
  const factor = unit === undefined ? undefined : units[unit]
  if (factor === undefined)
    throw new RangeError(`not a number with a unit of ${Object.keys(units).join(', ')}`)
  return Number.parseInt(text, 10) * factor
}

/** `"30s"` → milliseconds. Throws RangeError on anything that DURATION_PATTERN does not match. */
export const parseDuration = (text: string): number => parseUnits(text, DURATION_PATTERN, DURATION)

/** Milliseconds → `"30s"`: in the largest unit of which it is a whole number. */
export function durationText(ms: number): string {
  const units = Object.entries(DURATION).toReversed()
  const [unit, factor] = units.find(([, factor]) => ms !== 0 && ms % factor === 0) ?? ['ms', 1]
  return `${ms / factor}${unit}`
}

/** `"1MiB"` → bytes. Throws RangeError on anything that SIZE_PATTERN does not match. */
export const parseSize = (text: string): number => parseUnits(text, SIZE_PATTERN, SIZE)

const SIZE_NAMES = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** Bytes → `"12 MiB"`, rounded, for people. */
export function sizeText(bytes: number): string {
  const power = Math.min(SIZE_NAMES.length - 1, Math.floor(Math.log(Math.max(1, bytes)) / Math.log(1024)))
  return `${Math.round(bytes / 1024 ** power)} ${SIZE_NAMES[power] ?? 'B'}`
}

/** A time of RFC 3339, with its zone: a time without one means something else on every machine. */
export const INSTANT_PATTERN =
  '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,3})?)?(Z|[+-][0-9]{2}:[0-9]{2})$'

const INSTANT = new RegExp(INSTANT_PATTERN)

/** Date.parse takes the 30th of February for the 2nd of March. */
const isDay = (day: string): boolean => new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)

/** Whether it is a moment that exists: `2026-02-30T…` is none. */
export const isInstant = (text: string): boolean =>
  INSTANT.test(text) && !Number.isNaN(Date.parse(text)) && isDay(text.slice(0, 10))

/** Milliseconds since the epoch as RFC 3339; undefined stays so. */
export const instantText = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : new Date(ms).toISOString()
