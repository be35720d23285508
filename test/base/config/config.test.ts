import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { compileScopes, type ScopesConfig } from '../../../src/base/config/scopes/schema.ts'

function compile(config: ScopesConfig) {
  const report = new Problems()
  const catalogue = compileScopes(config, report)
  return {
    catalogue,
    problems: report.list.map(({ path, message, hint }) => [path.join('.'), message, hint]),
  }
}

const scope = (...implies: string[]) => ({ description: 'A scope', implies })

describe('the catalogue of scope values', () => {
  it('C5.1 holds the configured values after the built-in ones, and what they imply', () => {
    const { catalogue, problems } = compile({ 'fund.read': scope(), 'fund.maintain': scope('fund.read') })
    expect(problems).toEqual([])
    expect(catalogue.values.slice(-2)).toEqual(['fund.read', 'fund.maintain'])
    expect([...catalogue.close(['fund.maintain'])]).toEqual(['fund.maintain', 'fund.read'])
  })

  it('C5.1 refuses an implied value that is not in the catalogue, and suggests one', () => {
    const { problems } = compile({ 'fund.read': scope(), 'fund.maintain': scope('fund.raed') })
    expect(problems).toEqual([
      [
        'scopes.fund.maintain.implies.0',
        'names no scope of the catalogue: "fund.raed"',
        'did you mean "fund.read"?',
      ],
    ])
  })

  it.each(['openid', 'offline_access', 'target', 'target:b', 'target:x/y'])(
    'C5.1 refuses the name %s',
    (name) => {
      expect(compile({ [name]: scope() }).problems).toHaveLength(1)
    },
  )

  it.each([
    ['itself', { a: scope('a') }, [['scopes.a.implies.0', 'a → a']]],
    ['another', { a: scope('b'), b: scope('a') }, [['scopes.a.implies.0', 'a → b → a']]],
    [
      'a longer way, entered from outside, and told once',
      { top: scope('leaf', 'a'), a: scope('leaf', 'b'), b: scope('c'), c: scope('a'), leaf: scope() },
      [['scopes.a.implies.1', 'a → b → c → a']],
    ],
    [
      'two ways that have nothing in common',
      { a: scope('a'), b: scope('c'), c: scope('b') },
      [
        ['scopes.a.implies.0', 'a → a'],
        ['scopes.b.implies.0', 'b → c → b'],
      ],
    ],
    ['no cycle: two ways to one value', { a: scope('b', 'c'), b: scope('d'), c: scope('d'), d: scope() }, []],
  ])('C5.1 refuses a value that implies itself: by %s', (_case, config, expected) => {
    const told = compile(config).problems.map(([path, message]) => [
      path,
      message?.replace('makes it imply itself: ', ''),
    ])
    expect(told).toEqual(expected)
  })

  it('C5.1 lets no data scope imply an identity scope', () => {
    expect(compile({ a: scope('openid') }).problems).toHaveLength(1)
  })
})
