/** The rule of the linter that keeps checks in the bundle. */
import { Linter } from 'eslint'
import { expect, it } from 'vitest'
import { NO_UNUSED_RESULTS } from '../.config/unused-results.ts'

const linter = new Linter()
const complaints = (code: string): number =>
  linter.verify(code, { rules: { 'no-restricted-syntax': [...NO_UNUSED_RESULTS] } }).length

it.each([
  'decodeURIComponent(x)',
  'try { decodeURIComponent(x) } catch { refuse() }',
  'void encodeURI(x)',
  'y && decodeURIComponent(x)',
  'y || decodeURIComponent(x)',
  'y ? decodeURIComponent(x) : z()',
  'f((decodeURIComponent(x), y))',
  'String(x)',
  'BigInt(x)',
  'JSON.parse(x)',
  'String.fromCodePoint(x)',
  'Object.entries(x)',
  'Reflect.ownKeys(x)',
  'structuredClone(x)',
  'RegExp(x)',
  'new RegExp(x)',
  'new URL(x)',
  "if (zone !== 'UTC') new Intl.DateTimeFormat('en', { zone })",
  'y && new URL(x)',
  'void new X509Certificate(x)',
])('a call that only computes, and whose result nobody uses, is refused: %s', (code) => {
  expect(complaints(code)).toBe(1)
})

it.each([
  'f(decodeURIComponent(x))',
  'if (decodeURIComponent(x) === y) f()',
  'y = decodeURIComponent(x)',
  'decodeURIComponent(x) && f()',
  'new Timer(x).start()',
  'refuse(x)',
  'void read(x)',
  'Object.assign(x, y)',
  'Object.freeze(x)',
  'Reflect.deleteProperty(x, y)',
  'Reflect.apply(x, y, z)',
])('others pass: %s', (code) => {
  expect(complaints(code)).toBe(0)
})
