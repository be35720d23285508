/** Label values that are known at load, and their positions. */

/** The value that stands for all words that are not known. */
export const UNKNOWN = 'other'

/** The position of a known word, or the last position, which is for all other words. */
export type Places = (word: string) => number

export function placesOf(words: readonly string[]): Places {
  const places = new Map(words.map((word, at) => [word, at]))
  const last = words.length - 1
  return (word) => places.get(word) ?? last
}
