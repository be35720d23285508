/**
 * What names of members are read as (C8.7): as names of the query are, without regard to `-` and `_` besides, decoded as
 * often as it can be, normalised or not. A name costs about as much as its length: a hostile body has thousands of them.
 */
import { Buffer } from 'node:buffer'
import { caseless, isLeftOut, SKIPPED } from './fold.ts'

const LETTERS = /^[A-Za-z0-9]*$/
const PLAIN = /^[A-Za-z0-9_-]*$/
const JOINTS = /[-_]/g
export const ASCII = /^[\0-\x7f]*$/

export const PERCENT = 0x25
export const SMALL_U = 0x75
const SPACE = 0x20
/** Added to a byte of an escape that is not ASCII, which is one of several of a character. No code point is so large. */
export const BYTE = 0x11_00_00
export const hexOf = (unit: number | undefined): number => {
  if (unit === undefined) return -1
  if (unit >= 0x30 && unit <= 0x39) return unit - 0x30
  const small = unit | SPACE
  return small >= 0x61 && small <= 0x66 && unit < 0x80 ? small - 0x57 : -1
}

/** The number that the digits before an end stand for; -1 if they are no digits. */
export function hexAtEnd(units: readonly number[], end: number, count: number): number {
  let value = 0
  for (let at = end - count; at < end; at += 1) {
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
    const width = units[length - 3] === PERCENT ? 3 : units[length - 6] === PERCENT ? 6 : 0
    if (width === 0 || (width === 6 && ((units[length - 5] ?? 0) | SPACE) !== SMALL_U)) return
    const value = hexAtEnd(units, length, width === 3 ? 2 : 4)
    if (value < 0) return
    units.length -= width
    if (width === 3 && value >= 0x80) units.push(BYTE + value)
    else if (!isLeftOut(value)) units.push(value)
  }
}

/** A text decoded as often as it can be, as a lenient service does it. */
function decoded(text: string): string {
  const units: number[] = []
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (isLeftOut(unit)) continue
    units.push(unit)
    decodeEnd(units)
  }
  return textOfUnits(units)
}

/** Code points, units and bytes (`BYTE`) as a text. */
export function textOfUnits(units: readonly number[]): string {
  let text = ''
  for (let at = 0; at < units.length; at += 1) {
    const unit = units[at] ?? 0
    if (unit < BYTE) {
      text += String.fromCodePoint(unit)
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

/** All readings of a name. */
export function memberReadings(name: string): readonly string[] {
  if (PLAIN.test(name)) return [(LETTERS.test(name) ? name : name.replaceAll(JOINTS, '')).toLowerCase()]
  let text = decoded(name)
  if (ASCII.test(text)) return readingsIn(text)
  const readings = [...readingsIn(text)]
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const normal = decoded(text.normalize('NFKC'))
    if (normal === text) break
    readings.push(...readingsIn(normal))
    text = normal
  }
  return readings
}
