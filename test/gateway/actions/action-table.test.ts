import { describe, expect, it } from 'vitest'
import { ActionTable } from '../../../src/gateway/actions/action-table.ts'
import { parsePathPattern } from '../../../src/gateway/actions/path-pattern.ts'

const MEMBER = '7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f'

function tableOf(paths: readonly string[]): ActionTable<string> {
  const table = new ActionTable<string>()
  for (const path of paths) expect(table.add('f', 'area', parsePathPattern(path), path)).toBe(path)
  return table
}

const find = (table: ActionTable<string>, ...segments: string[]) => table.find('f', 'area', segments, 0)

describe('the action table', () => {
  it('C3.3: finds an action of several segments with its decoded parameters', () => {
    const found = find(tableOf(['members/{id}/notes/{note}']), 'members', 'a%20b', 'notes', '7')
    expect(found).toEqual({ value: 'members/{id}/notes/{note}', values: ['a b', '7'] })
  })

  it('C3.3: does not match a value of the wrong shape for a typed parameter', () => {
    const table = tableOf(['detail/{id:uuid}'])
    expect(find(table, 'detail', MEMBER)?.values).toEqual([MEMBER])
    expect(find(table, 'detail', `${MEMBER}0`)).toBeUndefined()
    expect(find(table, 'detail', `${MEMBER}\n`)).toBeUndefined()
  })

  it.each([
    ['integer', ['0', '12'], ['-1', '-0', '01', '1.0', '']],
    ['signed', ['0', '12', '-12'], ['-0', '--1', '-01', '+1', '1e3', `1${'0'.repeat(18)}`]],
  ])('C3.3: a whole number of type %s has one spelling', (type, taken, refused) => {
    const table = tableOf([`detail/{id:${type}}`])
    for (const value of taken) expect(find(table, 'detail', value)?.values).toEqual([value])
    for (const value of refused) expect(find(table, 'detail', value)).toBeUndefined()
  })

  it('C3.3: a pattern must match the whole value', () => {
    const table = tableOf(['year/{year:/[0-9]{4}/}'])
    expect(find(table, 'year', '2026')).toBeDefined()
    expect(find(table, 'year', '20261')).toBeUndefined()
  })

  it('prefers literals, then typed parameters, then the untyped one, and goes back where a branch ends', () => {
    const table = tableOf(['{any}', 'list', '{id:uuid}', 'list/{any}/end', '{any}/other'])
    expect(find(table, 'list')?.value).toBe('list')
    expect(find(table, MEMBER)?.value).toBe('{id:uuid}')
    expect(find(table, 'x')?.value).toBe('{any}')
    expect(find(table, 'list', 'other')?.value).toBe('{any}/other')
  })

  it('C3.5: compares literals exactly, case included, and never finds what objects inherit', () => {
    const table = tableOf(['list'])
    expect(find(table, 'List')).toBeUndefined()
    expect(find(table, '__proto__')).toBeUndefined()
    expect(find(table, 'constructor')).toBeUndefined()
  })

  it.each(['a/{b}', 'a/{other}'])('C4.6 answers what is at a path already: %s', (path) => {
    const table = tableOf(['a/{b}'])
    expect(table.add('f', 'area', parsePathPattern(path), 'again')).toBe('a/{b}')
  })

  it.each(['a//b', '..', 'a/{b', '{1}', '{a:nothing}', '{a}/{a}', 'ä', 'a b', ''])(
    'C3.3: refuses the pattern %j when the configuration is loaded',
    (pattern) => {
      expect(() => parsePathPattern(pattern)).toThrow(SyntaxError)
    },
  )
})
