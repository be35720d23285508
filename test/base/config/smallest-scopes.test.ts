import { describe, expect, it } from 'vitest'
import { compileCatalogue, smallestScopes } from '../../../src/base/config/scopes/catalogue.ts'

const define = (name: string, ...implies: string[]) => ({ name, description: name, implies })

const CATALOGUE = compileCatalogue([
  define('a.read'),
  define('a.write', 'a.read'),
  define('b.read'),
  define('all', 'a.write', 'b.read'),
])

const groups = (...values: string[]) => values.map((value) => CATALOGUE.satisfiers(value))

describe('C14.3 the fewest scope values that would do', () => {
  it.each([
    [[], [], []],
    [['a.read'], [], ['a.read']],
    [['a.write'], [], ['a.write']],
    [['a.read', 'b.read'], [], ['all']],
    [['a.read', 'b.read'], ['a.write'], ['b.read']],
    [['a.read'], ['all'], []],
    [['a.read', 'nothing'], [], undefined],
  ] as const)('C14.3 for %j beside %j are %j', (required, held, fewest) => {
    expect(smallestScopes(groups(...required), CATALOGUE, new Set(held))).toEqual(fewest)
  })

  it('C14.3 are found step by step where there are too many combinations', () => {
    const names = Array.from({ length: 60 }, (_, at) => `s${at}`)
    const catalogue = compileCatalogue(names.map((name) => define(name)))
    const fewest = smallestScopes(
      names.slice(0, 20).map((name) => catalogue.satisfiers(name)),
      catalogue,
    )
    expect(fewest?.toSorted()).toEqual(names.slice(0, 20).toSorted())
  })
})
