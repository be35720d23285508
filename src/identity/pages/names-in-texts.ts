/**
 * Names from outside in texts of ours. Their direction of writing must not turn the rest of a sentence around (Unicode,
 * UAX #9), and their length must not push the rest off the page.
 */

import { DIRECTION_CONTROLS, withoutDirectionControls } from '../../kernel/clean-text.ts'

/** Letters that are written from right to left, and the characters that steer directions. */
const STEERS = new RegExp(
  `[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}${DIRECTION_CONTROLS}]`,
  'u',
)
const FIRST_STRONG_ISOLATE = '\u2068'
const POP_ISOLATE = '\u2069'

/** Between isolates, without controls of its own; as it is, if it is written from left to right. */
export const isolated = (name: string): string =>
  STEERS.test(name) ? `${FIRST_STRONG_ISOLATE}${withoutDirectionControls(name)}${POP_ISOLATE}` : name

/** Characters: about two lines of a heading on a narrow screen. */
const LONGEST = 48

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** Its beginning, if it is long. */
function shortened(name: string): string {
  if (name.length <= LONGEST) return name
  const characters = [...graphemes.segment(name)].map(({ segment }) => segment)
  return characters.length <= LONGEST
    ? name
    : `${characters
        .slice(0, LONGEST - 1)
        .join('')
        .trimEnd()}…`
}

/** Whether a text shows its beginning only, so that the page has to offer the whole. */
export const isShortened = (name: string): boolean => shortened(name) !== name

type Texts = Readonly<Record<string, unknown>>

const isTexts = (value: unknown): value is Texts => typeof value === 'object' && value !== null

function preparing(value: unknown): unknown {
  if (typeof value === 'function') {
    const text = value as (...names: readonly unknown[]) => unknown
    return (...names: readonly unknown[]) =>
      text(...names.map((name) => (typeof name === 'string' ? isolated(shortened(name)) : name)))
  }
  if (!isTexts(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, preparing(inner)]))
}

/** The same texts. Those that take names isolate and shorten them. */
export const withNames = <T extends Texts>(texts: T): T => preparing(texts) as T
