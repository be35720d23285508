import { describe, expect, it } from 'vitest'
import { changingScopes } from '../../../src/gateway/actions/compile-actions.ts'
import type { ActionConfig } from '../../../src/gateway/actions/schema.ts'
import { compileCatalogue } from '../../../src/base/config/scopes/catalogue.ts'

const CATALOGUE = compileCatalogue([
  { name: 'pets.read', description: 'See pets', implies: [] },
  { name: 'pets.write', description: 'Change pets', implies: [] },
  { name: 'pets.all', description: 'See and change pets', implies: ['pets.read', 'pets.write'] },
])

const changing = (methods: Readonly<Record<string, object>>): readonly string[] => [
  ...changingScopes([{ methods } as unknown as ActionConfig], { catalogue: CATALOGUE, upgrade: undefined }),
]

const BOTH = { scopes: { all: ['pets.read', 'pets.write'] } }

describe('C6.2.2 the scope values that let a client change data', () => {
  it('are those of methods that are not safe, and those that imply them', () => {
    const methods = { GET: { scopes: { any: ['pets.read'] } }, POST: { scopes: { any: ['pets.write'] } } }
    expect(changing(methods)).toEqual(['pets.write', 'pets.all'])
  })

  it('are not those that a change takes beside others, and that reading takes alone', () => {
    expect(changing({ GET: { scopes: { all: ['pets.read'] } }, POST: BOTH })).toEqual([
      'pets.write',
      'pets.all',
    ])
  })

  it('are all that a change takes where reading takes the same', () => {
    expect(changing({ GET: BOTH, POST: BOTH })).toEqual(['pets.read', 'pets.all', 'pets.write'])
    const one = { scopes: { all: ['pets.read'] } }
    expect(changing({ GET: one, DELETE: one })).toEqual(['pets.read', 'pets.all'])
  })

  it('are none of calls that only read by another method', () => {
    const search = { scopes: { all: ['pets.read'] }, audit: 'none' }
    expect(changing({ POST: search, GET: { scopes: { all: ['pets.read'] } } })).toEqual([])
    const asked = { scopes: { any: ['pets.read'] }, upstream: { method: 'GET' } }
    expect(changing({ POST: asked })).toEqual([])
  })
})
