import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ActionTable } from '../../../src/gateway/actions/action-table.ts'
import { parsePathPattern } from '../../../src/gateway/actions/path-pattern.ts'
import { MOST_REST_SEGMENTS, restRouteOf, restsMeet } from '../../../src/gateway/actions/rest-routes.ts'

const REGISTRY = [
  'v2/{name...:/[a-z0-9._-]+/}/manifests/{reference}',
  'v2/{name...:/[a-z0-9._-]+/}/blobs/{digest}',
  'v2/{name...:/[a-z0-9._-]+/}/blobs/uploads/{id}',
  'v2/{name...:/[a-z0-9._-]+/}/tags/list',
]

function tableOf(paths: readonly string[]): ActionTable<string> {
  const table = new ActionTable<string>()
  for (const path of paths) table.add('b', 'area', parsePathPattern(path), path)
  return table
}

const find = (table: ActionTable<string>, path: string) => table.find('b', 'area', path.split('/'), 0)

const routeOf = (path: string) => restRouteOf(parsePathPattern(path), path)!
const meets = (one: string, other: string): boolean => restsMeet(routeOf(one), routeOf(other))

describe('C3.3 a rest parameter', () => {
  it('C3.3 stands for 1 to 32 segments, decoded and with slashes between them', () => {
    const table = tableOf(['v2/{name...}/manifests/{reference}'])
    expect(find(table, 'v2/a/b%20c/manifests/7')?.values).toEqual(['a/b c', '7'])
    expect(find(table, 'v2/manifests/7')).toBeUndefined()
    const of = (count: number) => find(table, `v2/${Array(count).fill('x').join('/')}/manifests/7`)
    expect(of(1)).toBeDefined()
    expect(of(MOST_REST_SEGMENTS)?.values[0]?.split('/')).toHaveLength(32)
    expect(of(MOST_REST_SEGMENTS + 1)).toBeUndefined()
  })

  it('C3.3 may stand anywhere, also alone', () => {
    expect(find(tableOf(['{all...}']), 'a/b')?.values).toEqual(['a/b'])
    expect(find(tableOf(['{all...}/end']), 'a/b/end')?.values).toEqual(['a/b'])
    expect(find(tableOf(['{all...}/end']), 'end')).toBeUndefined()
    expect(find(tableOf(['{a}/{all...}/{z}']), '1/2/3/4')?.values).toEqual(['1', '2/3', '4'])
  })

  it('C3.3 has a type that each of its segments must match', () => {
    const table = tableOf(REGISTRY)
    expect(find(table, 'v2/lib/nginx/manifests/latest')?.value).toBe(REGISTRY[0])
    expect(find(table, 'v2/lib/Nginx/manifests/latest')).toBeUndefined()
    expect(find(table, 'v2/x/blobs/uploads/1')?.value).toBe(REGISTRY[2])
    expect(find(table, 'v2/x/blobs/sha')?.value).toBe(REGISTRY[1])
  })

  it('C3.3 is tried last, after all other actions', () => {
    const table = tableOf(['files/{path...}', 'files/{id:integer}', 'files/index', 'files/{a}/{b}'])
    expect(find(table, 'files/index')?.value).toBe('files/index')
    expect(find(table, 'files/7')?.value).toBe('files/{id:integer}')
    expect(find(table, 'files/x/y')?.value).toBe('files/{a}/{b}')
    expect(find(table, 'files/x')?.value).toBe('files/{path...}')
  })

  it('C3.3 stands once in a path', () => {
    expect(() => parsePathPattern('{a...}/x/{b...}')).toThrow('one parameter with dots')
    expect(() => parsePathPattern('{a...}/{a}')).toThrow('stands twice')
    expect(() => parsePathPattern('x{a...}')).toThrow('neither')
    expect(() => parsePathPattern('{...}')).toThrow('neither')
  })
})

describe('C3.3 two paths with a rest parameter that one path could match', () => {
  it.each([
    ['v2/{a...}/x', 'v2/{b...}/{c}', true],
    ['{a...}', 'x/{b...}', true],
    ['{a...}/x', 'y/{b...}', true],
    ['{a...}/x', '{b...}/y', false],
    ['x/{a...}', 'y/{b...}', false],
    ['x/{a...:/[a-z]+|1/}', 'x/{b...:integer}', true],
    ['x/{a...:uuid}', 'x/{b...:integer}', false],
    ['{a...:/one|two/}/y', 'one/{b...:/two|three/}', false],
    ['{a...:/one|two/}/{y}', 'one/{b...:/two|three/}', true],
    [`${'x/'.repeat(40)}{a...}`, '{b...}', false],
    [`${'x/'.repeat(31)}{a...}`, '{b...}', true],
  ])('C3.3 %s and %s: %j', (one, other, expected) => {
    expect(meets(one, other)).toBe(expected)
    expect(meets(other, one)).toBe(expected)
  })

  it('C3.3 no two paths of an image registry are', () => {
    for (const one of REGISTRY) for (const other of REGISTRY) expect(meets(one, other)).toBe(one === other)
  })

  it('C3.3 are found: no path that is tried matches two that were not', () => {
    const segment = fc.constantFrom('a', 'b', '{x}', '{x:/a|c/}', '{x:/b|c/}')
    const rest = fc.constantFrom('{r...}', '{r...:/a|c/}', '{r...:/b|d/}')
    const numbered = (parts: readonly string[]) =>
      parts.map((part, at) => part.replace('{x', `{x${at}`)).join('/')
    const pattern = fc
      .tuple(fc.array(segment, { maxLength: 3 }), rest, fc.array(segment, { maxLength: 3 }))
      .map(([before, middle, after]) => numbered([...before, middle, ...after]))
    const path = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 9 })
    fc.assert(
      fc.property(pattern, pattern, path, (one, other, segments) => {
        const both = [one, other].every((each) => find(tableOf([each]), segments.join('/')) !== undefined)
        if (both) expect(meets(one, other)).toBe(true)
      }),
      { numRuns: 20_000 },
    )
  })
})
