import type { BodyFormat } from './body-schema.ts'

interface FormatRow {
  readonly test: (text: string) => boolean
  /** Follows "must be". */
  readonly expected: string
}

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/
const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[zZ]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/
const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i
const EMAIL =
  /^[^\s@"(),:;<>[\]\\]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.)+[\p{L}\p{N}-]{2,63}$/u

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

function isDate(text: string): boolean {
  const [, year, month, day] = (DATE.exec(text) ?? []).map(Number)
  if (year === undefined || month === undefined || day === undefined) return false
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  const days = (DAYS[month - 1] ?? 0) + (leap && month === 2 ? 1 : 0)
  return day >= 1 && day <= days
}

/** RFC 3339 §5.6, where the T may be in lower case. */
const isDateTime = (text: string): boolean =>
  /^[tT]$/.test(text.charAt(10)) && isDate(text.slice(0, 10)) && TIME.test(text.slice(11))

export const FORMATS: Readonly<Record<BodyFormat, FormatRow>> = {
  date: { test: isDate, expected: 'a date like 2001-12-31' },
  'date-time': { test: isDateTime, expected: 'a date and time like 2001-12-31T09:30:00Z' },
  uuid: { test: (text) => UUID.test(text), expected: 'a UUID like 7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f' },
  email: { test: (text) => text.length <= 254 && EMAIL.test(text), expected: 'an email address' },
}
