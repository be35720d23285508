import { afterEach, describe, expect, it, vi } from 'vitest'
import { LikeNames, memberReadings } from '../../../src/http/member-names.ts'

afterEach(() => vi.restoreAllMocks())

const likeNames = (...wanted: string[]) => new LikeNames(wanted, (name) => name)

describe('C8.7 names of members that are read alike', () => {
  it.each([
    ...['Company', 'com-pa_ny', 'company[x]', 'company.x', '[company]', 'company\0x', ' c\u200bompany'],
    ...['%63ompany', '%2525252563ompany', '%u0063ompany', '\uff43ompany', '\uff05\uff16\uff13ompany'],
    ...['comp%C2%ADany', 'com%5Bpany', 'company' + '['.repeat(10_000)],
  ])('T4.8 %j is read as company', (name) => {
    expect(likeNames('company').like({ a: 1, [name]: 2 }, 'company')).toEqual([name])
  })

  it.each(['companies', 'ompany', 'c', '', 'x[company]', '%2525\ufdfa0', 'company2'])('%j is not', (name) => {
    expect(likeNames('company').like({ [name]: 2 }, 'company')).toEqual([])
  })

  it('T4.8 the names of an object are read once, however many are looked for', () => {
    let read = 0
    const object = new Proxy(
      { a: 1, b: 2, 'c%41': 3 },
      { ownKeys: (target) => ((read += 1), Reflect.ownKeys(target)) },
    )
    const names = likeNames('one', 'two', 'three', 'four')
    for (const name of ['one', 'two', 'three', 'four']) names.like(object, name)
    expect(read).toBe(1)
  })

  it('T4.8 a name that is too long is not normalised as a whole', () => {
    const normalize = vi.spyOn(String.prototype, 'normalize')
    memberReadings(`${'x%41'.repeat(10_000)}\ufdfa`, 7)
    expect(normalize.mock.contexts.every((text) => String(text).length < 1000)).toBe(true)
  })
})
