import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { escapeName, unescapeName } from '../../../src/http/xml-name.ts'

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
      fc.string({ unit: 'binary' }),
      fc.string({ unit: 'grapheme' }),
      tricky.map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(key, (text) => {
        const name = escapeName(text)
        expect(unescapeName(name)).toBe(text)
        expect(name).toMatch(/^[\p{L}\p{Nl}\p{So}\p{Sk}\p{M}_\u{C0}-\u{EFFFF}][^\s<>&'"/=:?!\0-\x1F]*$/u)
      }),
      { numRuns: 3000 },
    )
  })
})
