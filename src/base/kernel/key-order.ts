import { Buffer } from 'node:buffer'

/**
 * The order of the store's keys, in every store and in lists that join the store with something else: by the UTF-8 bytes
 * of the escaped key. So for keys without quotes, backslashes and control characters it is the order of code points.
 */

/**
 * A key as JSON writes it, without the quotes, so that different keys have different text. Without that, UTF-8 would
 * make one character of two different lone surrogates, and tools would cut the text at a NUL.
 */
export const escapedKey = (key: string): string => JSON.stringify(key).slice(1, -1)

export const byEscapedKey = (one: string, other: string): number =>
  Buffer.compare(Buffer.from(one), Buffer.from(other))

/** Without what is escaped, and without surrogates: the order of UTF-16 is that of UTF-8. Nearly every key. */
const PLAIN = /^[ !#-[\]-\ud7ff]*$/

export function byKey(one: string, other: string): number {
  if (one === other) return 0
  if (PLAIN.test(one) && PLAIN.test(other)) return one < other ? -1 : 1
  return byEscapedKey(escapedKey(one), escapedKey(other))
}

const LAST_CODE_POINT = 0x10_ffff
/** The code points behind it are the surrogates, which no well-formed text has. */
const LAST_BEFORE_SURROGATES = 0xd7ff
const FIRST_AFTER_SURROGATES = 0xe000

/** The smallest text that comes after everything that begins with `prefix` (escaped); undefined if there is none. */
export function endOfPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0)
  while (points.at(-1) === LAST_CODE_POINT) points.pop()
  const last = points.pop()
  if (last === undefined) return undefined
  const next = last === LAST_BEFORE_SURROGATES ? FIRST_AFTER_SURROGATES : last + 1
  return String.fromCodePoint(...points, next)
}
