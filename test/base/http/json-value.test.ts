import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  compareLiterals,
  isIntegerLiteral,
  literalOf,
  parseNumberLiteral,
} from '../../../src/base/http/body/json.ts'

const scaled = fc.tuple(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), fc.nat(40))
/** value × 10^-places, written out. */
const literal = ([value, places]: [bigint, number]): string => `${value}e-${places}`

describe('number literals', () => {
  it('C7.5 survive, whatever their length', () => {
    fc.assert(
      fc.property(scaled, (number) => {
        const value = parseNumberLiteral(literal(number))
        expect(value === undefined ? undefined : literalOf(value)).toBe(literal(number))
      }),
    )
    for (const text of ['007', '+1', '.5', '1.', ' 1', '1 ', '', '-', 'NaN', 'Infinity', '0x1', '1n', '١'])
      expect(parseNumberLiteral(text)).toBeUndefined()
  })

  it('C7.5 compare exactly, as big integers of one scale do', () => {
    fc.assert(
      fc.property(scaled, scaled, ([a, i], [b, j]) => {
        const [left, right] = [a * 10n ** BigInt(40 - i), b * 10n ** BigInt(40 - j)]
        const expected = left < right ? -1 : left > right ? 1 : 0
        expect(Math.sign(compareLiterals(literal([a, i]), literal([b, j]))) === expected).toBe(true)
      }),
    )
    expect(compareLiterals('-0.0', '0e9') === 0).toBe(true)
    expect(compareLiterals('1e999999', '9e999998')).toBeGreaterThan(0)
  })

  it('C7.5 are whole numbers by value, not by spelling', () => {
    fc.assert(
      fc.property(scaled, ([value, places]) => {
        expect(isIntegerLiteral(literal([value, places]))).toBe(value % 10n ** BigInt(places) === 0n)
      }),
    )
  })
})
