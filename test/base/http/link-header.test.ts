import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type LinkValue, parseLink, writeLink } from '../../../src/base/http/head/reference.ts'

const ONE_LINE = fc.string({ unit: fc.constantFrom(...Array.from('aZ09 \t"\\;,=<>*%\'é\u00ff')) })
const target = fc
  .string({ unit: fc.constantFrom(...Array.from('aZ09/?&=%:;,"\\ \'')) })
  .filter((text) => !/[<>]/.test(text))
const name = fc.string({ unit: fc.constantFrom(...Array.from("az09!#$%&'*+-.^_`|~")), minLength: 1 })
const link: fc.Arbitrary<LinkValue> = fc.record({
  target,
  parameters: fc.array(fc.record({ name, value: ONE_LINE })),
})

/** Texts that are nearly Link headers. */
const near = fc
  .array(
    fc.constantFrom('<', '>', '<a>', ';', '; rel', '=', '"', '\\', ',', ' ', '\t', 'x', '"a"', 'é', '\n'),
  )
  .map((parts) => parts.join(''))

describe('the values of a Link header', () => {
  it('C8.8, RFC 8288 are read as they were written', () => {
    fc.assert(
      fc.property(fc.array(link), (links) => {
        expect(parseLink(writeLink(links))).toEqual(links)
      }),
    )
  })

  it('C8.8 no text makes reading throw; what is read means the same once it is written', () => {
    fc.assert(
      fc.property(fc.oneof(near, fc.string(), ONE_LINE), (header) => {
        const read = parseLink(header)
        if (read !== undefined) expect(parseLink(writeLink(read))).toEqual(read)
      }),
    )
  })

  it.each([
    ['<a>;rel=next', '<a>; rel="next"'],
    ['<a>; REL="a \\"b\\\\"', '<a>; rel="a \\"b\\\\"'],
    ["<a>; title*=UTF-8''%e2%82%ac", "<a>; title*=UTF-8''%e2%82%ac"],
    ['<a>; title*="no ext value"', '<a>; title*="no ext value"'],
    ['<>;;rel', '<>; rel'],
    [', ,<a>,,\t<b> , ', '<a>, <b>'],
    ['', ''],
  ])('C8.8, RFC 8288 §3 and RFC 8187 §3.2: %s is written %s', (given, written) => {
    expect(writeLink(parseLink(given) ?? [])).toBe(written)
  })

  it.each(['<a', 'a', '<a> <b>', '<a>; rel="open', '<a>; rel="open\\"', '<a>; rel=a b', '<a<b>>', '<a>; =b'])(
    'C8.8 %s cannot be read to its end',
    (header) => {
      expect(parseLink(header)).toBe(undefined)
    },
  )
})
