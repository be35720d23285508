import { describe, expect, it } from 'vitest'
import {
  fitsStrongly,
  fitsWeakly,
  readTag,
  readTagCondition,
  withOpaque,
} from '../../../src/base/http/head/entity-tag.ts'

const strong = (opaque: string) => ({ weak: false, opaque })

describe('entity tags', () => {
  it.each([
    ['*', '*'],
    [' * ', '*'],
    ['"a"', [strong('a')]],
    ['""', [strong('')]],
    ['"a,b" , W/"c"', [strong('a,b'), { weak: true, opaque: 'c' }]],
    [',"a",,\t"b",', [strong('a'), strong('b')]],
    ['"ä"', [strong('ä')]],
  ])('are read from %j', (header, condition) => {
    expect(readTagCondition(header)).toEqual(condition)
  })

  it.each([
    '',
    ' ',
    ',',
    'a',
    '"a',
    'a"',
    '"a" "b"',
    '"a"b',
    'w/"a"',
    'W/ "a"',
    '*, "a"',
    '"a", *',
    '"a\u0000"',
  ])('are not read from %j', (header) => {
    expect(readTagCondition(header)).toBeUndefined()
  })

  it('are at most a hundred in a list', () => {
    const list = (count: number): string => Array.from({ length: count }, (_, at) => `"${at}"`).join(',')
    expect(readTagCondition(list(100))).toHaveLength(100)
    expect(readTagCondition(list(101))).toBeUndefined()
  })

  it('C8.6 stand alone in an ETag, with nothing around them', () => {
    expect(readTag('"a,b"')).toEqual(strong('a,b'))
    expect(readTag('W/""')).toEqual({ weak: true, opaque: '' })
    for (const odd of ['a', '"a', '"a"b"', '"a" ', 'w/"a"', '"a","b"', '*', '"a\n"', '"a b"'])
      expect([odd, readTag(odd)]).toEqual([odd, undefined])
  })

  it('C8.6 get another opaque part, member by member; what is no list stays as it came', () => {
    const change = (opaque: string): string => opaque.replace(/-x$/, '')
    expect(withOpaque(',"a-x",,W/"b-x" ,\t"c"', change)).toBe('"a", W/"b", "c"')
    for (const same of ['*', '"a" ,"b"', '"a-x', '"a-x", *', 'a-x', 'Sun, 01 Nov 2026 00:00:00 GMT', ''])
      expect(withOpaque(same, change)).toBe(same)
  })

  it('are compared strongly by If-Match, weakly by If-None-Match', () => {
    const weak = readTagCondition('W/"a"') ?? []
    expect([fitsStrongly(weak, 'a'), fitsWeakly(weak, 'a')]).toEqual([false, true])
    expect([fitsStrongly('*', 'a'), fitsWeakly('*', 'a')]).toEqual([true, true])
    expect(fitsStrongly([strong('b'), strong('a')], 'a')).toBe(true)
    expect(fitsWeakly([strong('b')], 'a')).toBe(false)
  })
})
