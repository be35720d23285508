/** Keeps secrets and tricks out of the log, whoever hands them in. */

const SECRET_KEY =
  /secret|passw|token(?!Type|Id$)|authorization|cookie|assertion|verifier|credential|private|^code$/i
const REDACTED = '[redacted]'
const MOST_DEPTH = 6
const MOST_TEXT = 2000

/** A copy of `value` without what stands under a name that secrets have; errors become plain data. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return value.length > MOST_TEXT ? `${value.slice(0, MOST_TEXT)}…` : value
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'function') return undefined // a toJSON would be called
  if (typeof value !== 'object' || value === null) return value
  if (depth >= MOST_DEPTH) return '[deep]'
  if (value instanceof Error) return redactError(value, depth)
  if (Array.isArray(value)) return value.map((item: unknown) => redact(item, depth + 1))
  const entries = Object.entries(value).map(([key, item]) => [
    key,
    SECRET_KEY.test(key) ? REDACTED : redact(item, depth + 1),
  ])
  return Object.fromEntries(entries)
}

function redactError(error: Error, depth: number): unknown {
  const { code } = error as { code?: unknown }
  return {
    name: error.name,
    message: error.message,
    ...(typeof code === 'string' && { code }),
    stack: error.stack,
    ...(error.cause !== undefined && { cause: redact(error.cause, depth + 1) }),
  }
}

/** What JSON leaves as it is, and a terminal or a line-based reader would act on: DEL, C1 controls, line and paragraph separators, direction marks. */

const TRICKS = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g
const CREDENTIALS = /eyJ[\w-]+\.[\w-]+\.[\w-]*|\b(?:Bearer|Basic) +[\w.~+/=-]{6,}/g
const SUSPICIOUS = new RegExp(`${TRICKS.source}|eyJ|(?:Bearer|Basic) `)

/**
 * The last look at a finished line of JSON: whatever got this far in an exception's message, say. A line is one event,
 * for every reader (T2.7); tokens are no reading matter.
 */
export function cleanLine(line: string): string {
  if (!SUSPICIOUS.test(line)) return line
  return line.replace(CREDENTIALS, REDACTED).replace(TRICKS, escapeCharacter)
}

/** What JSON or cleanLine may change, and most texts of a line don't hold: a space too, which stands in credentials. */
const UNPLAIN = /[^!#-[\]-~]|eyJ/

/** A text as JSON, cleaned as `cleanLine` does. */
export const quoteClean = (text: string): string =>
  UNPLAIN.test(text) ? cleanLine(JSON.stringify(text)) : `"${text}"`

const escapeCharacter = (character: string): string =>
  `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
