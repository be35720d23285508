import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import {
  checkAnswers,
  checkProduces,
  compileAnswers,
} from '../../../src/gateway/backends/forward/compile-answers.ts'

type Config = Parameters<typeof compileAnswers>[0]

const PLAIN = { payload: 'bare', data: undefined, errors: undefined, types: undefined } as const

/** What is wrong with a section, below it. */
function problemsOf(
  config: Config,
  shared: Partial<Parameters<typeof checkAnswers>[1]> = {},
): readonly string[] {
  const problems = new Problems()
  const own = {
    ...compileAnswers(config, [], ['at'], problems),
    ...(config.payload && { payload: config.payload }),
  }
  checkAnswers(own, { ...PLAIN, ...shared, ...own }, ['at'], problems)
  return problems.list.map(({ path }) => path.slice(1).join('.'))
}

const present = { present: '/error', code: '/error/code' }

describe('C8.8 what answers are said to be', () => {
  it.each<[string, Config, readonly string[]]>([
    ['types of two spellings', { types: { 'A/B': 'json', 'a/b': 'xml' } }, ['types.a/b']],
    ['a text within envelopes', { types: { 'text/plain': 'text' }, payload: 'envelope' }, ['types']],
    ['a part of a text', { data: '/a', payload: 'text' }, ['data']],
    ['a part of nothing', { data: '/a', payload: 'none' }, ['data']],
    ['a part of envelopes', { data: '/a', payload: 'envelope' }, ['data']],
    ['errors in a text', { errors: present, payload: 'text' }, ['errors']],
    ['statuses without codes', { errors: { present: '/error', statuses: { a: 400 } } }, ['errors.statuses']],
    [
      'statuses that are none of errors',
      { errors: { ...present, statuses: { a: 200, b: 204, c: 302, d: 401, e: 403, f: 502, g: 404 } } },
      ['a', 'b', 'c', 'd', 'e', 'f'].map((code) => `errors.statuses.${code}`),
    ],
    ['errors of which nothing is read', { errors: { list: '/errors' } }, ['errors']],
  ])('%s are a problem', (_name, config, expected) => {
    expect(problemsOf(config)).toEqual(expected)
  })

  it.each<[string, Config]>([
    ['errors that have no codes', { errors: { present: '/error' } }],
    ['errors in envelopes', { errors: present, payload: 'envelope' }],
    ['errors before nothing', { errors: present, payload: 'none' }],
    ['types and a part', { types: { 'text/plain': 'text', 'text/xml': 'xml' }, data: '/a' }],
  ])('%s are none', (_name, config) => {
    expect(problemsOf(config)).toEqual([])
  })

  it('an operation is told of what its backend says', () => {
    expect(problemsOf({ payload: 'text' }, { data: ['a'] })).toEqual(['payload'])
    expect(problemsOf({}, { data: ['a'], payload: 'text' })).toEqual([])
  })

  it('C7.1 an operation with `produces` has no data', () => {
    const problems = new Problems()
    checkProduces({ data: '/a', types: {}, payload: 'none' }, ['at'], problems)
    checkProduces({ payload: 'envelope' }, ['at'], problems)
    expect(problems.list.map(({ path }) => path.at(-1))).toEqual(['data', 'types', 'payload'])
  })
})
