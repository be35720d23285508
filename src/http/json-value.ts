/**
 * A value that JSON can say. Objects have a null prototype, so `__proto__` is plain data. A number whose literal
 * JavaScript would rewrite (`1e5`, `1.0`, `-0`, twenty digits) is kept as JSON.rawJSON, which JSON.stringify
 * writes back as it was (C7.5 "a number's literal survives").
 */
export type JsonValue = null | boolean | number | string | RawNumber | JsonValue[] | JsonObject

export interface JsonObject {
  [key: string]: JsonValue
}

/** What JSON.rawJSON makes. Told apart by JSON.isRawJSON alone. */
export interface RawNumber {
  readonly rawJSON: string
}

declare global {
  // ES2026 (JSON.parse source text access), in every Node that runs this; TypeScript's own library lacks it still.
  interface JSON {
    /** A value that JSON.stringify writes as this literal. Throws SyntaxError unless it is a JSON scalar. */
    rawJSON(literal: string): RawNumber
    isRawJSON(value: unknown): value is RawNumber
  }
}

/** RFC 8259 §6, whole text: sign, integer part, fraction, exponent. */
const JSON_NUMBER = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/**
 * The JSON value of a number's literal. One that JavaScript would write back otherwise (`1e5`, `1.0`, `-0`, twenty
 * digits) is kept as it stands (C7.5 "a number's literal survives"). Throws SyntaxError if it is no JSON scalar.
 */
export function numberOf(literal: string): number | RawNumber {
  const number = Number(literal)
  return String(number) === literal ? number : JSON.rawJSON(literal)
}

/** The value of a text that is a number as JSON writes it: no white space, leading zeros, `+` or NaN; else undefined. */
export const parseNumberLiteral = (text: string): number | RawNumber | undefined =>
  JSON_NUMBER.test(text) ? numberOf(text) : undefined

/** How JSON writes a number: as it came, if that was kept. */
export const literalOf = (value: number | RawNumber): string =>
  typeof value === 'number' ? String(value) : value.rawJSON

/** Sign × 0.digits × 10^magnitude, without zeros at either end of `digits`; zero has none. */
interface Decimal {
  readonly sign: -1 | 1
  readonly digits: string
  readonly magnitude: number
}

function decimalOf(literal: string): Decimal | undefined {
  const [, minus, whole = '', fraction = '', exponent = '0'] = JSON_NUMBER.exec(literal) ?? []
  if (minus === undefined) return undefined
  const all = whole + fraction
  let start = 0
  let end = all.length
  while (start < end && all[start] === '0') start++
  while (start < end && all[end - 1] === '0') end--
  return {
    sign: minus === '' ? 1 : -1,
    digits: all.slice(start, end),
    magnitude: whole.length - start + Number(exponent),
  }
}

/** Whether a text is the literal of a whole number, in any spelling: `1e3` and `1.0` are. */
export function isIntegerLiteral(text: string): boolean {
  const decimal = decimalOf(text)
  return decimal !== undefined && (decimal.digits === '' || decimal.digits.length <= decimal.magnitude)
}

/** Orders two number literals by value, exactly, however long they are: negative, 0 or positive, as a sort wants it. */
export function compareLiterals(a: string, b: string): number {
  const [left, right] = [decimalOf(a), decimalOf(b)]
  if (left === undefined || right === undefined) throw new RangeError('not a number literal')
  const [leftSign, rightSign] = [signOf(left), signOf(right)]
  if (leftSign !== rightSign) return leftSign - rightSign
  return leftSign * compareMagnitudes(left, right)
}

const signOf = ({ sign, digits }: Decimal): number => (digits === '' ? 0 : sign)

function compareMagnitudes(a: Decimal, b: Decimal): number {
  if (a.magnitude !== b.magnitude) return a.magnitude < b.magnitude ? -1 : 1
  return a.digits === b.digits ? 0 : a.digits < b.digits ? -1 : 1
}
