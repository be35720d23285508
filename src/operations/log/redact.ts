/** Keeps secrets and tricks out of the log, whoever hands them in, and every line short enough to be written. */

const SECRET_KEY =
  /secret|passw|token(?!Type|Id$)|authorization|cookie|assertion|verifier|credential|private|^code$/i
const REDACTED = '[redacted]'
/** How much of anything is told: what a client, an upstream or a module chooses has no end of its own. */
const MOST_DEPTH = 6
/** Characters of a text. */
const MOST_TEXT = 2000
/** Characters of an error's stack, which holds its message too. */
const MOST_STACK = 8000
/** Members of an object, items of a list. */
const MOST_MEMBERS = 100
/** Characters of everything that one call of `redact` hands back, about. */
const MOST_TOGETHER = 64_000

/** What is left to be told, of one call of `redact`. */
interface Budget {
  left: number
}

/**
 * A copy of `value` without what stands under a name that secrets have; errors become plain data. Never throws, whatever
 * the value does when it is read, and is never longer than some 64,000 characters.
 */
export function redact(value: unknown, depth = 0): unknown {
  try {
    return copy(value, depth, { left: MOST_TOGETHER })
  } catch {
    return '[unreadable]'
  }
}

function copy(value: unknown, depth: number, budget: Budget): unknown {
  if (typeof value === 'string') return cut(value, MOST_TEXT, budget)
  if (typeof value === 'bigint') return cut(String(value), MOST_TEXT, budget)
  if (typeof value === 'symbol') return cut(String(value), MOST_TEXT, budget)
  if (typeof value === 'function') return undefined // a toJSON would be called
  if (typeof value !== 'object' || value === null) return value
  if (depth >= MOST_DEPTH) return '[deep]'
  if (value instanceof Error) return copyError(value, depth, budget)
  if (Array.isArray(value))
    return value.slice(0, MOST_MEMBERS).map((item: unknown) => copy(item, depth + 1, budget))
  const copied: Record<string, unknown> = {}
  let members = 0
  for (const key of Object.keys(value)) {
    if (++members > MOST_MEMBERS || budget.left <= 0) break
    const item = SECRET_KEY.test(key)
      ? REDACTED
      : copy((value as Record<string, unknown>)[key], depth + 1, budget)
    Object.defineProperty(copied, cut(key, MOST_TEXT, budget), {
      value: item,
      enumerable: true,
      configurable: true,
    })
  }
  return copied
}

function cut(text: string, most: number, budget: Budget): string {
  const told = Math.max(0, Math.min(most, budget.left))
  const kept = text.length > told ? `${text.slice(0, told)}…` : text
  budget.left -= kept.length
  return kept
}

function copyError(error: Error, depth: number, budget: Budget): unknown {
  // Whoever threw it may have put anything there.
  const { name, message, stack, code, cause } = error as unknown as Readonly<Record<string, unknown>>
  return {
    name: cut(String(name), MOST_TEXT, budget),
    message: cut(String(message), MOST_TEXT, budget),
    ...(typeof code === 'string' && { code: cut(code, MOST_TEXT, budget) }),
    ...(typeof stack === 'string' && { stack: cut(frames(stack, String(message)), MOST_STACK, budget) }),
    ...(cause !== undefined && { cause: copy(cause, depth + 1, budget) }),
  }
}

/** A stack begins with the message, which may be all that would be told of it: then its frames alone are. */
function frames(stack: string, message: string): string {
  if (message.length <= MOST_TEXT) return stack
  const at = stack.indexOf(message)
  return at < 0 ? stack : stack.slice(0, at) + stack.slice(at + message.length)
}

/** What JSON leaves as it is, and a terminal or a line-based reader would act on: DEL, C1 controls, line and paragraph separators, direction marks. */

const TRICKS = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g
/** Every run of characters that a JWT may consist of. Runs don't overlap, so that each character is read once (T2.9). */
const WORDS = /[\w.-]+/g
/** From the start of a JWT on: its two dots, each behind something. */
const JWT = /^eyJ[\w-]+\.[\w-]+\./
const CREDENTIALS = /\b(?:Bearer|Basic) +[\w.~+/=-]{6,}/g
const SUSPICIOUS = new RegExp(`${TRICKS.source}|eyJ|(?:Bearer|Basic) `)

/**
 * The last look at a finished line of JSON: whatever got this far in an exception's message, say. A line is one event,
 * for every reader (T2.7); tokens are no reading matter.
 */
export function cleanLine(line: string): string {
  if (!SUSPICIOUS.test(line)) return line
  return line.replace(CREDENTIALS, REDACTED).replace(WORDS, withoutJwt).replace(TRICKS, escapeCharacter)
}

/**
 * A word up to the JWT in it. Of a segment's starts the first is the one that counts: what follows it up to the next
 * dot is the same for all of them.
 */
function withoutJwt(word: string): string {
  for (let start = word.indexOf('eyJ'); start >= 0;) {
    if (JWT.test(word.slice(start))) return word.slice(0, start) + REDACTED
    const dot = word.indexOf('.', start)
    start = dot < 0 ? -1 : word.indexOf('eyJ', dot)
  }
  return word
}

/** What JSON or cleanLine may change, and most texts of a line don't hold: a space too, which stands in credentials. */
const UNPLAIN = /[^!#-[\]-~]|eyJ/

/** A text as JSON, cleaned as `cleanLine` does. */
export const quoteClean = (text: string): string =>
  UNPLAIN.test(text) ? cleanLine(JSON.stringify(text)) : `"${text}"`

const escapeCharacter = (character: string): string =>
  `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
