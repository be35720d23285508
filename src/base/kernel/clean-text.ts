/** Keeps credentials and control characters out of lines of JSON, those of the log and of the trail, and out of names. */

export const REDACTED = '[redacted]'

/**
 * The characters that steer the direction of writing, for a class of a regular expression: marks, embeddings, overrides
 * and isolates (Unicode, UAX #9 §2). They have no shape, and turn around the text behind them.
 */
export const DIRECTION_CONTROLS = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069'
const DIRECTION_CONTROL = new RegExp(`[${DIRECTION_CONTROLS}]`, 'g')

export const withoutDirectionControls = (text: string): string => text.replace(DIRECTION_CONTROL, '')

/**
 * Characters that JSON does not escape and that a terminal or a line-based reader acts on: DEL, C1 controls, line and
 * paragraph separators, and those that steer the direction of writing.
 */
const TRICKS = new RegExp(`[\\x7f-\\x9f\\u2028\\u2029\\ufeff${DIRECTION_CONTROLS}]`, 'g')

/** A text with these characters as escapes such as `\u202e`. */
export const withoutTricks = (text: string): string => text.replace(TRICKS, escapeCharacter)

/** Every run of characters that a JWT may consist of. Runs don't overlap, so that each character is read once (T2.9). */
const WORDS = /[\w.-]+/g
/** A JWT at the start of a text: three segments. */
const JWT = /^eyJ[\w-]+\.[\w-]+\./
const CREDENTIALS = /\b(?:Bearer|Basic) +[\w.~+/=-]{6,}/g
const SUSPICIOUS = new RegExp(`${TRICKS.source}|eyJ|(?:Bearer|Basic) `)

/** Removes credentials, and escapes control characters: a line is one event for every reader (T2.7). */
export function cleanLine(line: string): string {
  if (!SUSPICIOUS.test(line)) return line
  return withoutTricks(line.replace(CREDENTIALS, REDACTED).replace(WORDS, withoutJwt))
}

/**
 * Cuts a word at the JWT in it. In each segment only the first `eyJ` is tried: if no JWT begins there, none begins at a
 * later `eyJ` of the same segment.
 */
function withoutJwt(word: string): string {
  for (let start = word.indexOf('eyJ'); start >= 0;) {
    if (JWT.test(word.slice(start))) return word.slice(0, start) + REDACTED
    const dot = word.indexOf('.', start)
    start = dot < 0 ? -1 : word.indexOf('eyJ', dot)
  }
  return word
}

/** Finds characters that JSON or cleanLine may change. Most texts have none. A space counts: credentials contain one. */
const UNPLAIN = /[^!#-[\]-~]|eyJ/

/** A text as a JSON string, cleaned as by `cleanLine`. */
export const quoteClean = (text: string): string =>
  UNPLAIN.test(text) ? cleanLine(JSON.stringify(text)) : `"${text}"`

const escapeCharacter = (character: string): string =>
  `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
