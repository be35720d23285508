/** Names from outside in texts of ours: their direction of writing must not turn the rest around (Unicode, UAX #9). */

/** Letters that are written from right to left, and the characters that steer directions. */
const STEERS =
  /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u
const CONTROLS = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g
const FIRST_STRONG_ISOLATE = '\u2068'
const POP_ISOLATE = '\u2069'

/** The name between isolates, without controls of its own; as it is, if it is written from left to right. */
export const isolated = (name: string): string =>
  STEERS.test(name) ? `${FIRST_STRONG_ISOLATE}${name.replace(CONTROLS, '')}${POP_ISOLATE}` : name

type Texts = Readonly<Record<string, unknown>>

const isTexts = (value: unknown): value is Texts => typeof value === 'object' && value !== null

function isolating(value: unknown): unknown {
  if (typeof value === 'function') {
    const text = value as (...names: readonly unknown[]) => unknown
    return (...names: readonly unknown[]) =>
      text(...names.map((name) => (typeof name === 'string' ? isolated(name) : name)))
  }
  if (!isTexts(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, isolating(inner)]))
}

/** The same texts. Each that takes names isolates them. */
export const isolatingNames = <T extends Texts>(texts: T): T => isolating(texts) as T
