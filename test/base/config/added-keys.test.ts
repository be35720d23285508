import { describe, expect, it } from 'vitest'
import {
  flag,
  kinds,
  list,
  mapOf,
  optional,
  section,
  text,
  viewOf,
  withForms,
  withKeys,
  withShapes,
} from '../../../src/base/config/schema.ts'

const description = 'x'
const schema = section({
  own: text({ description }),
  things: list(section({ name: text({ description }) }), { description }),
  sources: mapOf(kinds({ one: section({}) }), { description }),
})
const KEYS = { more: flag({ description }), perhaps: optional(flag({ description })) }

describe('C10 keys that extensions add to a schema', () => {
  it('C10 stand in the section that is named, required as their schemas say', () => {
    const top = viewOf(withKeys(schema, [], KEYS))
    expect(Object.keys(top.properties ?? {})).toEqual(['own', 'things', 'sources', 'more', 'perhaps'])
    expect(top.required).toEqual(['own', 'things', 'sources', 'more'])
    const below = viewOf(withKeys(schema, ['things', '*'], KEYS))
    expect(below.properties?.['things']?.items?.required).toEqual(['name', 'more'])
    expect(viewOf(schema).properties?.['things']?.items?.required).toEqual(['name'])
  })

  it('C10 stand behind the keys that they name', () => {
    const [first, second] = [flag({ description, after: 'own' }), flag({ description, after: 'first' })]
    const view = viewOf(withKeys(schema, [], { first, second }))
    expect(Object.keys(view.properties ?? {})).toEqual(['own', 'first', 'second', 'things', 'sources'])
    expect(() => withKeys(schema, [], { lost: flag({ description, after: 'gone' }) })).toThrow('"gone"')
  })

  it('C10 may be other forms of keys that are there, in their place', () => {
    const view = viewOf(withForms(schema, ['things', '*'], { name: flag({ description }) }))
    expect(view.properties?.['things']?.items).toMatchObject({
      ...{ properties: { name: { type: 'boolean' } }, required: ['name'] },
    })
    expect(() => withForms(schema, [], { other: flag({ description }) })).toThrow('"other"')
  })

  it('C10 stand below each key of a section, where its place says so', () => {
    const inner = section({ one: section({}), two: optional(section({})) })
    const view = viewOf(withKeys(section({ inner }), ['inner', '*'], KEYS)).properties?.['inner']
    expect(Object.values(view?.properties ?? {}).map(({ required }) => required)).toEqual([
      ['more'],
      ['more'],
    ])
    expect(view?.required).toEqual(['one'])
  })

  it('C10 may be a kind of its own', () => {
    const view = viewOf(withShapes(schema, ['sources', '*'], { two: section(KEYS) }))
    const [item] = Object.values(view.properties?.['sources']?.patternProperties ?? {})
    expect(Object.keys(item?.shapes ?? {})).toEqual(['one', 'two'])
    const further = viewOf(withKeys(schema, ['sources', '*', 'one'], KEYS)).properties?.['sources']
    const [of] = Object.values(further?.patternProperties ?? {})
    expect(of?.shapes?.['one']?.required).toEqual(['more'])
  })

  it('C10 are refused where there is no such section, and where the key is there already', () => {
    for (const place of [['other'], ['*'], ['own', '*'], ['sources', '*', 'two']])
      expect(() => withKeys(schema, place, KEYS)).toThrow(TypeError)
    expect(() => withKeys(schema, [], { own: flag({ description }) })).toThrow('"own"')
    expect(() => withShapes(schema, ['sources', '*'], { one: section({}) })).toThrow('"one"')
  })
})
