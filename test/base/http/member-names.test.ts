import { afterEach, describe, expect, it, vi } from 'vitest'
import { LikeNames, WantedNames } from '../../../src/base/http/names/like-names.ts'
import { memberReadings } from '../../../src/base/http/names/member-names.ts'
import { compileFindHidden, readingsOf } from '../../../src/base/http/head/query.ts'
import { pairLike, spelledLike } from '../../support/hostile-names.ts'
import { propertyTimes } from '../../support/property-seed.ts'
import { below, oneOf, randomFrom } from '../../support/seeded-random.ts'

afterEach(() => vi.restoreAllMocks())

const wantedNames = (...wanted: string[]) => new WantedNames(wanted, (name) => name)
const likeNames = (...wanted: string[]) => new LikeNames(wantedNames(...wanted))

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

  it('T4.8 a name is given up at the first letter that no wanted one has, and nothing of it is normalised', () => {
    const names = wantedNames('company')
    const hostile = (at: number): readonly string[] => [
      ...[
        `\ufdfa${at}`,
        `%2525\ufdfa${at}`,
        `e\u0301${at}`,
        `\uff43\uff4f\uff4d\uff50\uff41\uff4e\uff59${at}`,
      ],
      ...[
        `%${'25'.repeat(20)}63ompany${at}`,
        `%EF%BC%85%EF%BC%96${at}`,
        `com-pany${at}`,
        '\u200b'.repeat(at),
      ],
    ]
    // What a character leaves is found once, when it is met first.
    for (const name of hostile(1)) names.readingsIn(name)
    const normalize = vi.spyOn(String.prototype, 'normalize')
    for (let at = 1; at < 100; at += 1)
      for (const name of hostile(at)) expect(names.readingsIn(name)).toEqual([])
    expect(normalize).not.toHaveBeenCalled()
  })

  it('T4.8 a name hides in no escapes that only normalising makes, however long they are', () => {
    const wide = Array.from('organization_unit', (letter) => `\uff05${letter.charCodeAt(0).toString(16)}`)
    const nested = wide.map((escape) => encodeURIComponent(escape).replaceAll('%', '\uff05')).join('')
    expect(likeNames('organization_unit').like({ [nested]: 1 }, 'organization_unit')).toEqual([nested])
  })

  it('T4.8 a name that is looked for and was not said to be wanted is a mistake, never one that is not there', () => {
    expect(() => likeNames('company').like({ company: 1 }, 'fund')).toThrow(RangeError)
  })
})

describe('C8.7, T4.8 names are followed as they are read', () => {
  /** Those of ASCII, and others: of marks, of letters that fold to two, of more than one way. */
  const WANTED = [
    ...[
      ['company'],
      ['company', 'companyid', 'company.id', 'id'],
      ['iks'],
      ['K_k-i'],
      ['a', 'ab', 'abc'],
      ['x%41', 'o'],
    ],
    ...[
      ['straße'],
      ['société', 'soc'],
      ['e\u0301te'],
      ['\ufb01ks', 'c'],
      ['ΛΟΓΟΣ'],
      ['한글'],
      ['\u{10428}x'],
      ['a]b'],
    ],
  ]

  it.each(WANTED)('what is found of %j is what all readings of the name have', (...wanted) => {
    const random = randomFrom(Number(process.env['PROPERTY_SEED'] ?? 20_261_128))
    const names = wantedNames(...wanted)
    const looked = new Set(wanted.flatMap((name) => memberReadings(name)))
    let found = 0
    for (let time = 0; time < 400 * propertyTimes; time += 1) {
      const name = spelledLike(random, oneOf(random, wanted), below(random, 4))
      const read = memberReadings(name).filter((reading) => looked.has(reading))
      expect([name, [...new Set(names.readingsIn(name))].sort()]).toEqual([name, [...new Set(read)].sort()])
      if (read.length > 0) found += 1
    }
    // Neither all of them nor none.
    expect(found).toBeGreaterThan(50)
    expect(found).toBeLessThan(400 * propertyTimes)
  })

  /** The same without following names: each decoding, whole, divided at each separator. */
  const isHidden = (text: string, wanted: readonly string[]): boolean => {
    const readings = new Set(wanted.flatMap(readingsOf))
    const lenient = (part: string): string =>
      part.replaceAll(/(?:%[0-9a-f]{2})+|%u[0-9a-f]{4}/gi, (escapes) =>
        /^%u/i.test(escapes)
          ? String.fromCharCode(Number.parseInt(escapes.slice(2), 16))
          : Buffer.from(escapes.replaceAll('%', ''), 'hex').toString(),
      )
    const once = (part: string): string => {
      const spaced = part.replaceAll('+', ' ')
      try {
        return decodeURIComponent(spaced)
      } catch {
        return lenient(spaced)
      }
    }
    let all = [text]
    for (let level = 0; level <= 3; level += 1) {
      const both = all.flatMap((each) => [each, each.normalize('NFKC')])
      for (const each of both)
        for (const [index, pair] of each.split(/[&;]/).entries())
          if (index === 0 || pair.includes('='))
            if (readingsOf(pair.replace(/=[^]*/, '')).some((reading) => readings.has(reading))) return true
      all = [...new Set(both.map(once))]
    }
    return false
  }

  it.each(WANTED.filter((names) => !names.some((name) => name.includes('%'))))(
    'what hides %j in a pair is found, and nothing else',
    (...wanted) => {
      const random = randomFrom(Number(process.env['PROPERTY_SEED'] ?? 20_261_129))
      const find = compileFindHidden(wanted)
      for (let time = 0; time < 200 * propertyTimes; time += 1) {
        const pair = `${pairLike(random, oneOf(random, wanted))}%26`
        expect([pair, find(pair, 'pair') !== undefined]).toEqual([pair, isHidden(pair, wanted)])
      }
    },
  )
})
