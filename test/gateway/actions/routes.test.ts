import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Problems, reportText } from '../../../src/base/config/problems.ts'
import { compileCatalogue } from '../../../src/base/config/scopes/catalogue.ts'
import type { Backend } from '../../../src/base/contracts/calls/backend.ts'
import { matchAction } from '../../../src/gateway/decide/checks.ts'
import { compileActions } from '../../../src/gateway/actions/compile-actions.ts'
import type { ActionConfig } from '../../../src/gateway/actions/schema.ts'
import { compileAuthorities, parseRequestTarget } from '../../../src/base/http/head/request-target.ts'

const CATALOGUE = compileCatalogue([{ name: 'read', description: 'Read', implies: [] }])
const BACKEND = { name: 'upstream', format: 'json', payload: 'bare' } as unknown as Backend
const AUTHORITIES = compileAuthorities(['http://api.example'])

type Methods = readonly ('GET' | 'POST' | 'PUT' | 'DELETE')[]
type Written = readonly [action: string, ...methods: Methods]

const actionOf = ([action, ...methods]: Written): ActionConfig =>
  ({
    level: 'business',
    area: 'docs',
    action,
    methods: Object.fromEntries(
      (methods.length === 0 ? ['GET'] : methods).map((method) => [
        method,
        { scopes: { any: ['read'] }, versions: [1], items: {} },
      ]),
    ),
  }) as unknown as ActionConfig

function compile(written: readonly Written[]) {
  const problems = new Problems()
  problems.locate = (path) => ({ file: 'a.yaml', line: 10 + Number(path[1]) })
  const known = {
    catalogue: CATALOGUE,
    backends: new Map([['upstream', BACKEND]]),
    areas: { docs: { backend: 'upstream' } },
    upgrade: undefined,
  }
  const { table, actions } = compileActions(written.map(actionOf), known, problems)
  const call = (method: string, path: string) => {
    const target = parseRequestTarget(`/api/1.0/b/ACME/docs/${path}`, AUTHORITIES)
    const { operation, params } = matchAction(table, target, method)
    return { action: operation.action.name, params: { ...params } }
  }
  return { told: reportText(problems), failed: problems.failed, call, actions }
}

const UUID = '7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f'

describe('C3.3 actions of one path', () => {
  it('C4.6 are one route: each offers its methods, under its own names of the parameters', () => {
    const { told, call } = compile([
      ['doc/{name}', 'GET'],
      ['doc/{docId}', 'POST', 'DELETE'],
    ])
    expect(told).toBe('')
    expect(call('GET', 'doc/a')).toEqual({ action: 'doc/{name}', params: { name: 'a' } })
    expect(call('HEAD', 'doc/a')).toEqual({ action: 'doc/{name}', params: { name: 'a' } })
    expect(call('POST', 'doc/b')).toEqual({ action: 'doc/{docId}', params: { docId: 'b' } })
    expect(() => call('PUT', 'doc/b')).toThrow(
      expect.objectContaining({ facts: { allow: ['GET', 'HEAD', 'POST', 'DELETE'] } }),
    )
  })

  it('C4.6 may share the way to different ends', () => {
    const { told, call } = compile([['doc/{id:uuid}/notes'], ['doc/{doc:uuid}/{note}'], ['doc/{d:uuid}']])
    expect(told).toBe('')
    expect(call('GET', `doc/${UUID}/notes`).action).toBe('doc/{id:uuid}/notes')
    expect(call('GET', `doc/${UUID}/7`)).toEqual({
      action: 'doc/{doc:uuid}/{note}',
      params: { doc: UUID, note: '7' },
    })
  })

  it.each<[string, Written, Written]>([
    ['names differ', ['doc/{name}', 'GET', 'POST'], ['doc/{docId}', 'POST']],
    ['they are equal', ['list'], ['list']],
  ])('are refused where two offer one method, both places named (%s)', (_, one, other) => {
    const { told, failed } = compile([one, other])
    const method = other[1] ?? 'GET'
    expect(failed).toBe(true)
    expect(told.split('\n')).toEqual([
      `a.yaml:10  actions[0].methods.${method}  is offered at this path by actions[1].action (a.yaml:11) too`,
      `a.yaml:11  actions[1].methods.${method}  is offered at this path by actions[0].action (a.yaml:10) too`,
      '',
    ])
  })
})

describe('C3.3 parameters of different types at one place', () => {
  it.each<readonly [string, string]>([
    ['doc/{id:uuid}', 'doc/{name}'],
    ['doc/{name}', 'doc/{n:integer}'],
    ['doc/{a:/[a-z]+/}', 'doc/{b:/[a-c]+/}'],
    ['doc/{a:/open|closed/}', 'doc/{b:/closed|gone/}'],
    ['doc/{a:/[0-9]+/}', 'doc/{b:integer}'],
    ['{id:uuid}/list', '{name}/{any}'],
    ['{id:uuid}/{any}', '{name}/list'],
    ['doc/{id:uuid}/x/{a}', 'doc/{name}/{b}/x'],
  ])('are refused where they overlap, both places named: %s and %s', (one, other) => {
    const { told, failed } = compile([['unrelated'], [one], [other]])
    expect(failed).toBe(true)
    const lines = told.trim().split('\n')
    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatch(
      /^a\.yaml:11 {2}actions\[1\]\.action {2}overlaps with actions\[2\]\.action \(a\.yaml:12\): /,
    )
    expect(lines[1]).toMatch(
      /^a\.yaml:12 {2}actions\[2\]\.action {2}overlaps with actions\[1\]\.action \(a\.yaml:11\): /,
    )
  })

  it.each<readonly [string, string]>([
    ['doc/{id:uuid}', 'doc/{n:integer}'],
    ['doc/{a:/open|closed/}', 'doc/{n:integer}'],
    ['doc/{a:/open|closed/}', 'doc/{b:/gone/}'],
    ['doc/{id:uuid}/notes', 'doc/{name}/files'],
    ['doc/{id:uuid}', 'doc/{name}/files'],
    ['a/{id:uuid}', 'b/{name}'],
    ['a/{id:uuid}', '{x}/{name}'],
  ])('are taken where no request could mean both: %s and %s', (one, other) => {
    expect(compile([[one], [other]]).told).toBe('')
  })

  it('a literal beside a parameter is legal, and wins', () => {
    const { told, call } = compile([
      ['doc/{name}'],
      ['doc/list'],
      ['{any}/list/{n:integer}'],
      ['doc/list/all'],
    ])
    expect(told).toBe('')
    expect(call('GET', 'doc/list').action).toBe('doc/list')
    expect(call('GET', 'doc/lists').action).toBe('doc/{name}')
    expect(call('GET', 'doc/list/all').action).toBe('doc/list/all')
    expect(call('GET', 'doc/list/7').action).toBe('{any}/list/{n:integer}')
  })

  it('a parameter whose every value stands as a literal beside it is refused', () => {
    const { told } = compile([['doc/{state:/open|closed/}'], ['doc/open'], ['doc/closed']])
    expect(told).toMatch(
      /^a\.yaml:10 {2}actions\[0\]\.action {2}can never be reached: .*actions\[2\]\.action \(a\.yaml:12\)\n$/,
    )
    expect(compile([['doc/{state:/open|closed/}'], ['doc/open']]).told).toBe('')
  })
})

describe('C3.3 whatever is configured', () => {
  const VALUES: Readonly<Record<string, readonly string[]>> = {
    '': ['zz', 'zzz', 'z.z'],
    ':uuid': [UUID, '00000000-0000-4000-8000-000000000000'],
    ':integer': ['7', '88', '999'],
    ':/a|b/': ['a', 'b'],
    ':/[ab]+x?/': ['abx', 'bax', 'aabx'],
  }
  const segment = fc.oneof(
    fc.constantFrom('a', 'b', 'list', '7'),
    fc.tuple(fc.constantFrom('p', 'q'), fc.constantFrom(...Object.keys(VALUES))),
  )
  type Segment = string | [string, string]
  const shape = fc.array(segment, { minLength: 1, maxLength: 3 })
  const written = (segments: readonly Segment[]): string =>
    segments.map((each, at) => (typeof each === 'string' ? each : `{${each[0]}${at}${each[1]}}`)).join('/')
  /** Some paths that an action means. */
  const pathsOf = (segments: readonly Segment[]): string[] =>
    segments.reduce<string[]>(
      (paths, each) =>
        paths.flatMap((path) =>
          (typeof each === 'string' ? [each] : (VALUES[each[1]] ?? [])).map((text) =>
            path === '' ? text : `${path}/${text}`,
          ),
        ),
      [''],
    )
  const method = fc.constantFrom('GET' as const, 'POST' as const, 'PUT' as const)

  it('every action is reachable, or the configuration is refused', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(shape, method), { minLength: 1, maxLength: 6 }), (all) => {
        const { failed, call, actions } = compile(all.map(([segments, verb]) => [written(segments), verb]))
        if (failed) return
        for (const [index, [segments, verb]] of all.entries()) {
          const reached = pathsOf(segments).some((path) => {
            try {
              return call(verb, path).action === actions[index]?.name
            } catch {
              return false
            }
          })
          expect([written(segments), reached]).toEqual([written(segments), true])
        }
      }),
      { numRuns: 1000 },
    )
  })

  it('the order of the actions changes nothing', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(shape, method), { minLength: 2, maxLength: 5 }), (all) => {
        const forth = compile(all.map(([segments, verb]) => [written(segments), verb]))
        const back = compile(all.map(([segments, verb]): Written => [written(segments), verb]).reverse())
        expect(back.failed).toBe(forth.failed)
        if (forth.failed) return
        const answer = (call: typeof forth.call, verb: string, path: string): unknown => {
          try {
            return call(verb, path)
          } catch (error) {
            return (error as { code: string }).code
          }
        }
        for (const [segments] of all)
          for (const path of pathsOf(segments))
            for (const verb of ['GET', 'POST'])
              expect(answer(back.call, verb, path)).toEqual(answer(forth.call, verb, path))
      }),
      { numRuns: 500 },
    )
  })
})
