import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { escapeName, unescapeName } from '../../../src/base/http/xml/syntax.ts'
import { anyText } from '../../support/any-text.ts'

/** XML 1.0 fifth edition, productions [4] and [4a], without the colon: first and last code point of each range. */
const NAME_START = [
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
  [0xc0, 0xd6],
  [0xd8, 0xf6],
  [0xf8, 0x2ff],
  [0x370, 0x37d],
  [0x37f, 0x1fff],
  [0x200c, 0x200d],
  [0x2070, 0x218f],
  [0x2c00, 0x2fef],
  [0x3001, 0xd7ff],
  [0xf900, 0xfdcf],
  [0xfdf0, 0xfffd],
  [0x10000, 0xeffff],
] as const
const NAME_MORE = [
  [0x2d, 0x2e],
  [0x30, 0x39],
  [0xb7, 0xb7],
  [0x300, 0x36f],
  [0x203f, 0x2040],
] as const

const isWithin = (character: string, ranges: readonly (readonly [number, number])[]): boolean => {
  const point = character.codePointAt(0) ?? 0
  return ranges.some(([first, last]) => first <= point && point <= last)
}

function isNcName(name: string): boolean {
  const [first = '', ...rest] = name
  return (
    isWithin(first, NAME_START) &&
    rest.every((character) => isWithin(character, [...NAME_START, ...NAME_MORE]))
  )
}

describe('keys as element names', () => {
  it.each([
    ['Code', 'Code'],
    ['my_xml', 'my_xml'],
    ['_xyz', '_xyz'],
    ['_x0041', '_x0041'],
    ['xml', 'xml'],
    ['__proto__', '__proto__'],
    ['Größe', 'Größe'],
    ['名前', '名前'],
    ['😀', '😀'],
    ['a-b.c', 'a-b.c'],
    ['', '_x_'],
    ['_x_', '_x005F_x_'],
    ['1st', '_x0031_st'],
    ['-a', '_x002D_a'],
    ['.', '_x002E_'],
    ['a b', 'a_x0020_b'],
    ['a:b', 'a_x003A_b'],
    ['@type', '_x0040_type'],
    ['#text', '_x0023_text'],
    ['?xml', '_x003F_xml'],
    ['a><b', 'a_x003E__x003C_b'],
    ['_x0041_', '_x005F_x0041_'],
    ['_x0041_x0042_', '_x005F_x0041_x005F_x0042_'],
    ['_x00e9_', '_x005F_x00e9_'],
    ['_x0041 ', '_x005F_x0041_x0020_'],
    ['\0', '_x0000_'],
    ['\u{10FFFD}', '_xDBFF__xDFFD_'],
    // A space by Unicode, and a name character by XML 1.0 fifth edition.
    [' \u1680', '_x0020_\u1680'],
    ['\u2028', '_x2028_'],
  ])('C7.5 writes the key %j as %s, and reads it back', (key, name) => {
    expect(escapeName(key)).toBe(name)
    expect(unescapeName(name)).toBe(key)
  })

  it('C7.5 reads an escape in either case, needed or not', () => {
    expect(unescapeName('_x0041_b_x00e9_')).toBe('Abé')
  })

  it('C7.5 gives every key a name of its own that is an NCName', () => {
    const tricky = fc.array(
      fc.constantFrom('_', 'x', 'X', '0', '0041', '005F', ' ', 'F', ':', '_x_', '😀', '\0', '-'),
    )
    const key = fc.oneof(
      anyText(),
      fc.string({ unit: 'grapheme' }),
      tricky.map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(key, (text) => {
        const name = escapeName(text)
        expect(unescapeName(name)).toBe(text)
        expect(isNcName(name), JSON.stringify(name)).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })
})
