/** JSON texts that are made by chance, right ones and damaged ones. */
import { below, oneOf, type Random, several } from './seeded-random.ts'

export const TEXTS: readonly string[] = [
  ...['', 'a', 'Errors', 'Data', 'Code', 'Message', 'Errors ', 'Messages', 'hello world, a longer text'],
  ...['é', '€uro', '😀', 'x'.repeat(15), 'x'.repeat(16), 'x'.repeat(17), 'y'.repeat(40)],
  ...['q"q', 'b\\b', '\n\t', '\u0000', '\ud800', '\u2028', '\u007f'],
]
export const NUMBERS = ['0', '-0', '1', '-12', '1.5', '1e5', '1E+5', '0.25e-10', '9'.repeat(20), '1e999']
const BLANKS = [' ', '\n', '\n    ', '\t', '\r\n', ' '.repeat(20), `\n${' '.repeat(15)}`]

export const blank = (random: Random): string => (below(random, 6) > 0 ? '' : oneOf(random, BLANKS))
export const around = (random: Random, text: string): string => blank(random) + text + blank(random)
export const joined = (random: Random, most: number, make: () => string): string =>
  several(random, most, make).join(`${blank(random)},`)

/** A string, some of its characters escaped though they need not be. */
export function stringText(random: Random, text: string): string {
  const written = Array.from(text, (character) => {
    if (below(random, 12) > 0) return JSON.stringify(character).slice(1, -1)
    return Array.from({ length: character.length }, (_, at) =>
      unitText(random, character.charCodeAt(at)),
    ).join('')
  })
  return `"${written.join('')}"`
}

function unitText(random: Random, unit: number): string {
  const digits = unit.toString(16).padStart(4, '0')
  return `\\u${below(random, 2) === 0 ? digits : digits.toUpperCase()}`
}

export function valueText(random: Random, depth: number): string {
  const kind = below(random, depth > 4 ? 6 : 9)
  if (kind === 0) return around(random, oneOf(random, NUMBERS))
  if (kind === 1) return around(random, oneOf(random, ['true', 'false', 'null']))
  if (kind < 6) return around(random, stringText(random, oneOf(random, TEXTS)))
  if (kind === 6)
    return around(random, `[${joined(random, 3, () => valueText(random, depth + 1))}${blank(random)}]`)
  return around(
    random,
    `{${joined(random, 3, () => memberText(random, TEXTS, valueText(random, depth + 1)))}}`,
  )
}

export const memberText = (random: Random, names: readonly string[], value: string): string =>
  `${around(random, stringText(random, oneOf(random, names)))}:${value}`

export const envelopeText = (random: Random): string =>
  around(random, `{${joined(random, 5, () => topMember(random))}}`)

function topMember(random: Random): string {
  const kind = below(random, 5)
  if (kind === 0) return memberText(random, TEXTS, valueText(random, 2))
  if (kind < 3) return memberText(random, ['Errors'], blank(random) + errorsText(random))
  return memberText(random, ['Data'], below(random, 4) > 0 ? '{}' : valueText(random, 2))
}

export const errorsText = (random: Random): string =>
  below(random, 5) === 0 ? valueText(random, 3) : `[${joined(random, 2, () => errorText(random))}]`

function errorText(random: Random): string {
  const kind = below(random, 4)
  if (kind === 0) return valueText(random, 3)
  if (kind < 3) return around(random, '{"Code":"a","Message":"b"}')
  const names = ['Code', 'Message', 'Code', 'Message', 'x', 'Errors']
  const value = (): string =>
    below(random, 6) > 0 ? stringText(random, oneOf(random, TEXTS)) : valueText(random, 3)
  return `{${joined(random, 4, () => memberText(random, names, value()))}}`
}

/** The first bytes of characters of every length, bytes that go on, and some that are in no UTF-8. */
const BYTES = [0x80, 0x9f, 0xa0, 0xbf, 0xc0, 0xc3, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff]
export const tellingOf = (signs: string): readonly number[] => [...Buffer.from(signs), ...BYTES]
const TELLING = tellingOf('"\\{}[],:.-+eE0u19tfn \n\t\u0000\u001f\u007f/bnr')

/** One or two bytes replaced, put in or taken away. */
export function damage(random: Random, bytes: Buffer, telling = TELLING): Buffer {
  let damaged = bytes
  for (let left = 1 + below(random, 2); left > 0; left--) {
    const byte = below(random, 8) > 0 ? oneOf(random, telling) : below(random, 256)
    const put = below(random, 3) > 0 ? [byte] : []
    const at = below(random, damaged.length + 1)
    const rest = damaged.subarray(at + below(random, 3))
    damaged = Buffer.concat([damaged.subarray(0, at), Buffer.from(put), rest])
  }
  return damaged
}
