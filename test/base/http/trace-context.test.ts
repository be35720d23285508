import { describe, expect, it } from 'vitest'
import { nextTraceparent, nextTracestate } from '../../../src/base/http/head/trace-context.ts'

/** The cases of the test suite of W3C Trace Context (github.com/w3c/trace-context, test/test.py). */

const TRACE = '12345678901234567890123456789012'
const SPAN = 'b7ad6b7169203331'
const GOOD = `00-${TRACE}-${SPAN}-01`
const NEW = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$/

const traceOf = (traceparent: string): string => traceparent.split('-')[1] ?? ''

describe('C8.2 traceparent', () => {
  it('C8.2 begins a trace where none came', () => {
    expect(nextTraceparent(undefined)).toMatch(NEW)
    expect(nextTraceparent(undefined)).not.toBe(nextTraceparent(undefined))
  })

  it.each([
    ['version 00', GOOD],
    ['a later version', `cc-${TRACE}-${SPAN}-01`],
    ['a later version with further parts', `cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`],
  ])('C8.2 goes on with %s, by a span of ours', (_, incoming) => {
    const next = nextTraceparent(incoming)
    expect(next).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`))
    expect(next).not.toContain(SPAN)
  })

  it.each([
    ['00', '00'],
    ['01', '01'],
    ['02', '00'],
    ['03', '01'],
    ['fe', '00'],
    ['ff', '01'],
  ])('C8.2 of the flags %s goes on with %s', (flags, next) => {
    expect(nextTraceparent(`00-${TRACE}-${SPAN}-${flags}`)).toMatch(new RegExp(`^00-${TRACE}-.{16}-${next}$`))
  })

  it.each([
    ['two of them', `${GOOD}, ${GOOD}`],
    ['version 00 with a tail', `${GOOD}.`],
    ['version 00 with further parts', `${GOOD}-what-the-future-will-be-like`],
    ['version ff', `ff-${TRACE}-${SPAN}-01`],
    ['a later version with a tail that is no part', `cc-${TRACE}-${SPAN}-01.what-the-future-will-be-like`],
    ['a version of other characters', `.0-${TRACE}-${SPAN}-01`],
    ['a version of other characters', `0.-${TRACE}-${SPAN}-01`],
    ['a version in upper case', `CC-${TRACE}-${SPAN}-01`],
    ['a version too long', `000-${TRACE}-${SPAN}-01`],
    ['a version too long', `0000-${TRACE}-${SPAN}-01`],
    ['a version too short', `0-${TRACE}-${SPAN}-01`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a trace of other characters', `00-.${TRACE.slice(1)}-${SPAN}-01`],
    ['a trace of other characters', `00-${TRACE.slice(1)}.-${SPAN}-01`],
    ['a trace in upper case', `00-ABCDEF${TRACE.slice(6)}-${SPAN}-01`],
    ['a trace too long', `00-${TRACE}3-${SPAN}-01`],
    ['a trace too short', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a span of other characters', `00-${TRACE}-.${SPAN.slice(1)}-01`],
    ['a span of other characters', `00-${TRACE}-${SPAN.slice(1)}.-01`],
    ['a span too long', `00-${TRACE}-${SPAN}7-01`],
    ['a span too short', `00-${TRACE}-${SPAN.slice(1)}-01`],
    ['flags of other characters', `00-${TRACE}-${SPAN}-.0`],
    ['flags of other characters', `00-${TRACE}-${SPAN}-0.`],
    ['flags too long', `00-${TRACE}-${SPAN}-001`],
    ['flags too short', `00-${TRACE}-${SPAN}-1`],
    ['nothing', ''],
  ])('C8.2 begins a trace in place of %s', (_, incoming) => {
    const next = nextTraceparent(incoming)
    expect(next).toMatch(NEW)
    expect(traceOf(next)).not.toBe(traceOf(incoming))
    expect(nextTracestate('foo=1', incoming)).toBeUndefined()
  })
})

describe('C8.2 tracestate', () => {
  it('C8.2 ends where its trace does', () => {
    expect(nextTracestate('foo=1', GOOD)).toBe('foo=1')
    expect(nextTracestate('foo=1', undefined)).toBeUndefined()
    expect(nextTracestate('foo=1', [GOOD, GOOD])).toBeUndefined()
  })

  const members = (count: number): string =>
    Array.from({ length: count }, (_, at) => `bar${String(at + 1).padStart(2, '0')}=${at + 1}`).join(',')
  const ALL_OF_KEYS = 'abcdefghijklmnopqrstuvwxyz0123456789_-*/'
  const ALL_OF_VALUES = Array.from({ length: 0x7f - 0x20 }, (_, at) => String.fromCharCode(0x20 + at))
    .filter((character) => character !== ',' && character !== '=')
    .join('')

  it.each([
    ['several lines', 'foo=1,bar=2, rojo=1,congo=2, baz=3', 'foo=1,bar=2,rojo=1,congo=2,baz=3'],
    ['an empty line behind', 'foo=1, ', 'foo=1'],
    ['an empty line before', ', foo=1', 'foo=1'],
    ['blanks', '\tfoo=1 \t , \t bar=2, \t baz=3 ', 'foo=1,bar=2,baz=3'],
    ['one key twice', 'foo=1,foo=2', 'foo=1,foo=2'],
    ['all characters', `${ALL_OF_KEYS}=${ALL_OF_VALUES}`, `${ALL_OF_KEYS}=${ALL_OF_VALUES}`],
    ['a tenant', 'a-tenant/1@vendor=1', 'a-tenant/1@vendor=1'],
    ['32 members', members(32), members(32)],
    ['the longest key', `${'z'.repeat(256)}=1`, `${'z'.repeat(256)}=1`],
    [
      'the longest tenant and vendor',
      `${'t'.repeat(241)}@${'v'.repeat(14)}=1`,
      `${'t'.repeat(241)}@${'v'.repeat(14)}=1`,
    ],
    ['the longest value', `foo=${'v'.repeat(256)}`, `foo=${'v'.repeat(256)}`],
  ])('C8.2 goes on with %s', (_, incoming, next) => {
    expect(nextTracestate(incoming, GOOD)).toBe(next)
  })

  it.each([
    ['nothing', ''],
    ['33 members', members(33)],
    ['a blank behind a key', 'foo =1'],
    ['a key in upper case', 'FOO=1'],
    ['a key with a point', 'foo.bar=1'],
    ['a vendor without a name', 'foo@=1,bar=2'],
    ['a tenant without a name', '@foo=1,bar=2'],
    ['two marks', 'foo@@bar=1,bar=2'],
    ['two vendors', 'foo@bar@baz=1,bar=2'],
    ['a longer key', `foo=1,${'z'.repeat(257)}=1`],
    ['a longer tenant', `foo=1,${'t'.repeat(242)}@v=1`],
    ['a longer vendor', `foo=1,t@${'v'.repeat(15)}=1`],
    ['a value with an equals sign', 'foo=bar=baz'],
    ['no value', 'foo=,bar=3'],
    ['a longer value', `foo=${'v'.repeat(257)}`],
    ['a value outside ASCII', 'foo=\u00e9'],
    ['no member', 'foo'],
  ])('C8.2 is dropped with %s', (_, incoming) => {
    expect(nextTracestate(incoming, GOOD)).toBeUndefined()
  })
})
