import { expect, it } from 'vitest'
import {
  type CallShape,
  checkTemplates,
  usedIn,
  usedPath,
  usedText,
} from '../../../src/gateway/backends/templates/check-templates.ts'
import { parseTemplate } from '../../../src/gateway/backends/templates/parse.ts'
import { compilePathTemplate } from '../../../src/gateway/backends/templates/places.ts'
import { problemLines, Problems } from '../../../src/base/config/problems.ts'

const DETAIL: CallShape = {
  described: 'member-data/member-detail/{memberId}',
  level: 'fund',
  parameters: ['memberId'],
  isNested: true,
  reportOnly: false,
}
const LIST: CallShape = {
  described: 'fund-data/fund-list',
  level: 'business',
  parameters: [],
  isNested: false,
  reportOnly: false,
}

function problems(source: string, calls: CallShape, isShared = false): readonly string[] {
  const problems = new Problems()
  const path = compilePathTemplate(source)
  const text = parseTemplate(source)
  if (typeof path === 'string' || typeof text === 'string') throw new TypeError(source)
  checkTemplates([usedPath(path, ['path'], isShared), usedText(text, ['text'], isShared)], calls, problems)
  return problemLines(problems)
}

it('C8.7 {issuer} has a value only where there are several issuers, and a caller', () => {
  expect(problems('/{issuer}', { ...LIST, severalIssuers: true })).toEqual([])
  expect(problems('/{issuer}', LIST)).toEqual(
    ['path', 'text'].map(
      (at) => `${at}  has {issuer}, which is the name of one of several issuers, and there are not several`,
    ),
  )
  expect(problems('/{issuer}', { ...LIST, severalIssuers: true, reportOnly: true })[0]).toContain(
    'in a report-only area',
  )
})

it('C8.7 built-in placeholders and path parameters are known', () => {
  expect(problems('/{business}/{subject}/{client}/{area}/{version}/{actionVersion}', LIST)).toEqual([])
  expect(problems('/{business}/{fund}/m-{memberId}', DETAIL)).toEqual([])
  expect(problems('/{action}', LIST)).toEqual([])
})

it('C8.7 an unknown placeholder is told, with the name that was probably meant', () => {
  expect(problems('/{busines}', LIST)[0]).toBe(
    'path  has {busines}, which fund-data/fund-list does not have — did you mean "business"?',
  )
  expect(problems('/{memberid}', DETAIL)[0]).toContain('did you mean "memberId"?')
  expect(problems('/{xyz}', LIST)[0]).toContain('there are {business}, {fund}, {subject}')
})

it('C8.7 {fund} of a business action is told; a backend’s path leaves it out as a whole segment', () => {
  expect(problems('/{fund}', LIST)).toHaveLength(2)
  expect(problems('/{fund}', LIST, true).map((line) => line.split(' ')[0])).toEqual(['text'])
  expect(problems('/f-{fund}', LIST, true)).toHaveLength(2)
  expect(problems('/{fund}', DETAIL)).toEqual([])
})

it('C8.7 a path parameter with the name of a built-in one is told where it is used', () => {
  expect(problems('/{client}', { ...DETAIL, parameters: ['client'] })[0]).toContain('it could mean either')
  expect(problems('/{business}', { ...DETAIL, parameters: ['client'] })).toEqual([])
})

it('C8.7 {action} of several segments stands as a whole segment of a path only', () => {
  expect(problems('/{action}', DETAIL).map((line) => line.split(' ')[0])).toEqual(['text'])
  expect(problems('/x-{action}', DETAIL)).toHaveLength(2)
})

it('C8.7 {subject} and {client} are refused in a report-only area', () => {
  for (const name of ['subject', 'client'])
    expect(problems(`/{${name}}`, { ...LIST, reportOnly: true })).toHaveLength(2)
})

it('C8.7 {query/…} is declared, and every call has it', () => {
  const parameter = (name: string, rest = {}) => ({ name, required: false, default: undefined, ...rest })
  const query = [
    parameter('limit', { default: 10 }),
    parameter('state', { required: true }),
    parameter('sort'),
  ]
  expect(problems('/{query/limit}/x-{query/state}', { ...LIST, query })).toEqual([])
  expect(problems('/{query/sort}', { ...LIST, query })).toHaveLength(2)
  expect(problems('/{query/sort}', { ...LIST, query })[0]).toContain('`required: true` or a `default`')
  expect(problems('/{query/limits}', { ...LIST, query })[0]).toContain('did you mean "limit"?')
  expect(problems('/{query/limit}', LIST)[0]).toContain('declare it in `parameters`')
  expect(problems('/{query/limit}', { ...LIST, query, reportOnly: true })[0]).toContain('report-only')
})

it('C8.7 {body/…} is of a body that is read, and every body has it', () => {
  const schema = { type: 'object', required: ['a'], properties: { a: {}, b: {} } } as const
  const body = { kind: 'read', required: true, schema } as const
  expect(problems('/{body/a}', { ...LIST, body })).toEqual([])
  expect(problems('/{body/b}', { ...LIST, body })).toHaveLength(2)
  expect(problems('/{body/a}', { ...LIST, body: { ...body, required: false } })).toHaveLength(2)
  expect(problems('/{body/a}', LIST)[0]).toContain('takes no body')
  expect(problems('/{body/a}', { ...LIST, body: { kind: 'streamed' } })[0]).toContain('unread')
})

it('C8.7 {body/…} of a member that a closed schema does not allow is a problem, in a body that is made too', () => {
  const leaf = (source: string, schema: object): readonly string[] => {
    const problems = new Problems()
    const template = parseTemplate(source)
    if (typeof template === 'string') throw new TypeError(template)
    const body = { kind: 'read', required: true, schema } as const
    checkTemplates(
      [{ at: ['t'], used: usedIn(template, 'leaf'), isShared: false }],
      { ...LIST, body },
      problems,
    )
    return problemLines(problems)
  }
  const closed = { type: 'object', additionalProperties: false } as const
  const item = { ...closed, properties: { b: {} } } as const
  const schema = {
    ...closed,
    properties: { a: {}, of: item, list: { type: 'array', items: item }, text: { type: 'string' } },
  }
  for (const source of ['{body/a}', '{body/a/any}', '{body/of/b}', '{body/list/0/b}', '{body}'])
    expect(leaf(source, schema)).toEqual([])
  for (const source of [
    '{body/x}',
    '{body/of/x}',
    '{body/list/0/x}',
    '{body/list/b}',
    '{body/text/x}',
    '{body/0}',
  ])
    expect(leaf(source, schema)).toEqual([
      expect.stringMatching(/does not allow — name the member in `properties`/),
    ])
  expect(leaf('{body/x}', { type: 'object', properties: { a: {} } })).toEqual([])
  expect(leaf('{body/x}', {})).toEqual([])
  expect(leaf('{body/x/y}', { ...closed, additionalProperties: item })).toHaveLength(1)
})

it('C8.7 a template that operations share is told once, with the first operation that it does not suit', () => {
  const problems = new Problems()
  const path = compilePathTemplate('/{memberId}')
  if (typeof path === 'string') throw new TypeError(path)
  for (const calls of [DETAIL, LIST, { ...LIST, described: 'fund-data/other' }])
    checkTemplates([usedPath(path, ['backends', 'funds', 'path'], true)], calls, problems)
  expect(problemLines(problems)).toHaveLength(1)
  expect(problemLines(problems)[0]).toContain('fund-data/fund-list')
})
