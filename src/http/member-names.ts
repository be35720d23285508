/**
 * What names of members are read as (C8.7): as names of the query are, without regard to `-` and `_` besides, decoded as
 * often as it can be, normalised or not. A name costs about as much as its length: a hostile body has thousands of them.
 */
import { Buffer } from 'node:buffer'
import { caseless, SKIPPED } from './query.ts'

const LETTERS = /^[A-Za-z0-9]*$/
const PLAIN = /^[A-Za-z0-9_-]*$/
const JOINTS = /[-_]/g
const ASCII = /^[\0-\x7f]*$/

const [PERCENT, PLUS, SPACE, SMALL_U, NUL] = [0x25, 0x2b, 0x20, 0x75, 0]
/** Before a byte of an escape that is not ASCII: it is one of several of a character. */
const BYTE = 0x1_00_00
/** Units behind which no decoding changes anything any more: the longest escape is `%u0041`. */
const LONGEST_ESCAPE = 6

const hexOf = (unit: number | undefined): number => {
  if (unit === undefined) return -1
  if (unit >= 0x30 && unit <= 0x39) return unit - 0x30
  const small = unit | SPACE
  return small >= 0x61 && small <= 0x66 && unit < 0x80 ? small - 0x57 : -1
}

/** The number that the last digits stand for; -1 if they are no digits. */
function hexAtEnd(units: readonly number[], count: number): number {
  let value = 0
  for (let at = units.length - count; at < units.length; at += 1) {
    const digit = hexOf(units[at])
    if (digit < 0) return -1
    value = value * 16 + digit
  }
  return value
}

/** Decodes what ends in an escape, and what that makes, until it ends in none. */
function decodeEnd(units: number[]): void {
  for (;;) {
    const { length } = units
    const [width, value] =
      units[length - 3] === PERCENT
        ? [3, hexAtEnd(units, 2)]
        : units[length - 6] === PERCENT && ((units[length - 5] ?? 0) | SPACE) === SMALL_U
          ? [6, hexAtEnd(units, 4)]
          : [0, -1]
    if (value < 0) return
    units.length -= width
    if (width === 3 && value >= 0x80) units.push(BYTE + value)
    else if (!isLeftOut(value)) units.push(value)
  }
}

/** White space, controls and joints of ASCII: no reading has them. A NUL ends a name. */
const isLeftOut = (unit: number): boolean =>
  unit !== NUL && (unit <= SPACE || unit === 0x7f || unit === 0x2d || unit === 0x5f || unit === PLUS)

const isLetter = (unit: number): boolean =>
  (unit >= 0x30 && unit <= 0x39) || ((unit | SPACE) >= 0x61 && (unit | SPACE) <= 0x7a)

/** Whether what is decoded has more letters than any wanted name, whatever follows. */
function isTooLong(units: readonly number[], most: number): boolean {
  let letters = 0
  for (let at = 0; at < units.length - LONGEST_ESCAPE; at += 1) if (isLetter(units[at] ?? 0)) letters += 1
  return letters > most
}

/** How many units are read before it is asked whether they are too many. */
const ASKED = 64

/** A text decoded as often as it can be, as a lenient service does it; what is beyond `most` letters may be cut off. */
function decoded(text: string, most: number): string {
  const units: number[] = []
  let asked = most + ASKED
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (isLeftOut(unit)) continue
    units.push(unit)
    decodeEnd(units)
    if (units.length < asked) continue
    if (isTooLong(units, most)) break
    asked = units.length * 2
  }
  return textOf(units)
}

function textOf(units: readonly number[]): string {
  let text = ''
  for (let at = 0; at < units.length; at += 1) {
    const unit = units[at] ?? 0
    if (unit < BYTE) {
      text += String.fromCharCode(unit)
      continue
    }
    const bytes: number[] = []
    for (; (units[at] ?? 0) >= BYTE; at += 1) bytes.push((units[at] ?? 0) - BYTE)
    at -= 1
    text += Buffer.from(bytes).toString()
  }
  return text
}

/** Normalising may make an escape, and decoding what can be normalised. */
const MOST_ROUNDS = 4

/** Before the first letter: brackets and dots of nested values, and `?`. */
const BEFORE = /^[[\].?]+/
const NESTED = /[[\].]/
const AS_VARIABLE = /[\s.[_-]/g

function readingsIn(text: string): readonly string[] {
  if (LETTERS.test(text)) return [text.toLowerCase()]
  const isAscii = ASCII.test(text)
  const whole = isAscii
    ? text.toLowerCase()
    : caseless(text.replaceAll(SKIPPED_BUT_NUL, '')).replaceAll(JOINTS, '')
  const end = whole.indexOf('\0')
  const shown = end < 0 ? whole : whole.replaceAll('\0', '')
  const found = [firstName(shown), asVariable(whole)]
  if (end < 0) return found
  const before = whole.slice(0, end)
  return [...found, firstName(before), asVariable(before)]
}

const SKIPPED_BUT_NUL = new RegExp(`(?!\\0)${SKIPPED.source}`, 'gu')

const firstName = (text: string): string => {
  const name = text.replace(BEFORE, '')
  const end = name.search(NESTED)
  return end < 0 ? name : name.slice(0, end)
}

const asVariable = (text: string): string => text.replaceAll(AS_VARIABLE, '')

/**
 * All readings of a name that have at most so many letters; those of others may be missing or cut.
 * @param most letters of the longest name that is looked for
 */
export function memberReadings(name: string, most = Infinity): readonly string[] {
  if (PLAIN.test(name)) return [(LETTERS.test(name) ? name : name.replaceAll(JOINTS, '')).toLowerCase()]
  let text = decoded(name, most)
  if (ASCII.test(text)) return readingsIn(text)
  const readings = [...readingsIn(text)]
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const normal = decoded(text.normalize('NFKC'), most)
    if (normal === text) break
    readings.push(...readingsIn(normal))
    text = normal
  }
  return readings
}

/**
 * Names of objects that some service may read as wanted ones. Each object is read once, however many names are looked for in
 * it, unless it is changed by others.
 */
export class LikeNames {
  readonly #wanted = new Set<string>()
  readonly #most: number
  readonly #nameOf: (key: string) => string
  readonly #objects = new Map<object, Map<string, Set<string>>>()

  /** @param nameOf a key as it is compared */
  constructor(wanted: readonly string[], nameOf: (key: string) => string) {
    this.#nameOf = nameOf
    for (const name of wanted) for (const reading of memberReadings(nameOf(name))) this.#wanted.add(reading)
    this.#most = Math.max(0, ...[...this.#wanted].map(({ length }) => length))
  }

  /** The keys of an object that may be read as a name, in their order. */
  like(object: Readonly<Record<string, unknown>>, name: string): readonly string[] {
    const keys = this.#keysOf(object)
    const found = new Set<string>()
    if (Object.hasOwn(object, name)) found.add(name)
    for (const reading of memberReadings(this.#nameOf(name)))
      for (const key of keys.get(reading) ?? []) if (Object.hasOwn(object, key)) found.add(key)
    return [...found]
  }

  /** To be told of a key that an object gets. */
  add(object: Readonly<Record<string, unknown>>, key: string): void {
    this.#note(this.#keysOf(object), key)
  }

  #keysOf(object: Readonly<Record<string, unknown>>): Map<string, Set<string>> {
    const known = this.#objects.get(object)
    if (known !== undefined) return known
    const keys = new Map<string, Set<string>>()
    for (const key in object) this.#note(keys, key)
    this.#objects.set(object, keys)
    return keys
  }

  #note(keys: Map<string, Set<string>>, key: string): void {
    const name = this.#nameOf(key)
    for (const reading of memberReadings(name, this.#most)) {
      if (!this.#wanted.has(reading)) continue
      const same = keys.get(reading)
      if (same === undefined) keys.set(reading, new Set([key]))
      else same.add(key)
    }
  }
}
