import fc from 'fast-check'
import { parse } from 'node:querystring'
import { describe, expect, it } from 'vitest'
import { compileQueryFilter, DIVIDES } from '../../../src/base/http/head/query.ts'

const filter = compileQueryFilter({ taken: ['business', 'fund_id'], only: undefined, strict: false })!
const only = compileQueryFilter({ taken: ['business'], only: ['page', 'ids[]', 'a b'], strict: false })!

describe('what of a client’s query passes', () => {
  it('C8.7 T2.10 every character is known that normalising makes a separator or an escape', () => {
    const made: string[] = []
    for (let code = 0; code < 0x11_00_00; code += 1) {
      const text = String.fromCodePoint(code)
      if (/[%&;]/.test(text.normalize('NFKD')) !== DIVIDES.test(text)) made.push(code.toString(16))
    }
    expect(made).toEqual([])
  })

  it.each([
    '?business=X',
    '?BUSINESS=X',
    '?Business',
    '?b%75siness=X',
    '?b%2575siness=X',
    '?%62%75%73%69%6e%65%73%73=X',
    '?+business=X',
    '?business+=X',
    '?busi%20ness=X',
    '?%00business=X',
    '?business%00=X',
    '?busi%2Bness=X',
    '?business%E2%80%8B=X',
    '?business%C2%A0=X',
    '?business[]=X',
    '?business[0]=X',
    '?business%5B%5D=X',
    '?business%255B%255D=X',
    '?business.id=X',
    '?business%2Eid=X',
    '?[business]=X',
    '?%5Bbusiness%5D=X',
    '?buſiness=X'.replace('ſ', '%C5%BF'),
    '?bus%C4%B1ness=X',
    '?BUS%C4%B0NESS=X',
    '?busi%CC%87ness=X',
    '?fund.id=X',
    '?fund+id=X',
    '?fund%20id=X',
    '?fund[id=X',
    '?FUND_ID=X',
    '?%zz=X',
    '?business%=X',
    '?%FF=X',
    '?%u0062usiness=X',
    '?100%25=X',
    '??business=X',
    '?%3Fbusiness=X',
    '?%253F??business=X',
    '??[business]=X',
    '?business%00x=X',
    '?+busi%6Eess%2500[x]=X',
  ])('C8.7 T2.10 %s does not', (query) => {
    expect(filter(query)).toBe('')
    expect(filter(`?a=1&${query.slice(1)}&b=2`)).toBe('?a=1&b=2')
    expect(filter(`?a=1;${query.slice(1)};b=2`)).toBe('?a=1;b=2')
    expect(filter(`${query}&a=1`)).toBe('?a=1')
  })

  it.each([
    '',
    '?',
    '?&',
    '?&&a',
    '?=',
    '?=business',
    '?a=business',
    '?a=1&a=2;a[]=3',
    '?busines=1',
    '?businesses=1',
    '?xbusiness=1',
    '?x[business]=1',
    '?x.business=1',
    '?a=%zz%FF\\..%00',
    '??busines=1',
    '?a?b&c=d=e&f=?',
    '?%C3%A9=1',
    '?fundid=1',
  ])('C8.7 %s does, byte for byte', (query) => {
    expect(filter(query)).toBe(query)
  })

  it('C8.7 with a list, only listed names pass, after one decoding and in this very case', () => {
    expect(only('?page=1&Page=2&pag%65=3&pag%2565=4&page[]=5&x=6&ids[]=7&ids%5B%5D=8&ids=9&a+b=1&&')).toBe(
      '?page=1&pag%65=3&ids[]=7&ids%5B%5D=8&a+b=1',
    )
    expect(only('?business=1')).toBe('')
    expect(only('?')).toBe('')
  })

  it('C8.7 nothing to take out and no list: every pair passes', () => {
    expect(compileQueryFilter({ taken: [], only: undefined, strict: false })).toBeUndefined()
  })
})

/** A spelling of `business`, of those that somebody reads as it. */
const spelling = fc
  .tuple(
    fc.array(fc.tuple(fc.boolean(), fc.constantFrom(0, 0, 1, 2)), { minLength: 8, maxLength: 8 }),
    fc.constantFrom('', '+', '%20', '%00', '%09', '['),
    fc.constantFrom('', '[]', '%5B%5D', '%255b', '.id', '%2e', '[a][b]', '+', '%00', ']'),
  )
  .map(([letters, before, behind]) => {
    const written = letters.map(([upper, depth], at) => {
      const letter = 'business'.charAt(at)
      const cased = upper ? letter.toUpperCase() : letter
      const escaped = `%${cased.charCodeAt(0).toString(16)}`
      return [cased, escaped, escaped.replace('%', '%25')][depth]
    })
    return before + written.join('') + behind
  })

const piece = fc.oneof(
  fc
    .tuple(spelling, fc.string({ unit: fc.constantFrom('a', '=', '%', '2', '?') }))
    .map(([name, value]) => `${name}=${value}`),
  spelling,
  fc.string({ unit: fc.constantFrom('a', 'b', '=', '%41', '+', '[', ']', '.', '%', '?', '%C3%A9') }),
)
const query = fc
  .tuple(piece, fc.array(fc.tuple(fc.constantFrom('&', ';'), piece)))
  .map(([first, rest]) => `?${first}${rest.flat().join('')}`)

/** How others read names; each at its worst. */
const read = (text: string, decodings: number): readonly string[] => {
  const names = [...Object.keys(parse(text)), ...new URLSearchParams(text).keys()]
  if (decodings > 1) return names.flatMap((name) => read(name.replaceAll('=', ''), decodings - 1))
  return names
}

describe('whatever a client sends', () => {
  it('C8.7 T2.10 no parser finds a name that was taken, under any spelling', () => {
    fc.assert(
      fc.property(query, (text) => {
        const passed = filter(text).slice(1)
        const names = passed
          .split(/[&;]/)
          .flatMap((pair) => [...read(pair, 1), ...read(pair.split('=')[0] ?? '', 2)])
        for (const name of names)
          expect(name.replaceAll(/[\s\0]/g, '').toLowerCase()).not.toMatch(/^\[*business(?:$|[[.\]])/)
      }),
    )
  })

  it('C8.7 what passes stands there as it was sent, in its order', () => {
    fc.assert(
      fc.property(query, (text) => {
        if (filter(text) === '') return
        const sent = text.slice(1).split(/(?=[&;])/)
        let at = 0
        for (const pair of filter(text)
          .slice(1)
          .split(/(?=[&;])/)) {
          const found = sent.findIndex(
            (each, index) => index >= at && each.replace(/^[&;]/, '') === pair.replace(/^[&;]/, ''),
          )
          expect(found, pair).toBeGreaterThanOrEqual(at)
          at = found + 1
        }
      }),
    )
  })
})
