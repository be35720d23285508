import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import type { Backend } from '../../../src/base/contracts/calls/backend.ts'
import { compileActions } from '../../../src/gateway/actions/compile-actions.ts'
import type { ActionConfig, AreasConfig, OperationConfig } from '../../../src/gateway/actions/schema.ts'
import { CATALOGUE, FUND_LIST, makeGateway, exchangeOf } from '../../support/gateway.ts'
import { matchAction } from '../../../src/gateway/decide/checks.ts'

const BACKEND = { name: 'funds', format: 'json', payload: 'bare' } as unknown as Backend
const OPERATION = { scopes: { any: ['fund.read'] }, versions: [1], items: {} } as unknown as OperationConfig

const actionOf = (config: Partial<ActionConfig> = {}): ActionConfig => ({
  level: 'business',
  area: 'fund-data',
  action: 'fund-list',
  methods: { GET: OPERATION },
  ...config,
})

function compile(
  actions: readonly ActionConfig[],
  areas: AreasConfig = { 'fund-data': { backend: 'funds' } },
) {
  const report = new Problems()
  const known = { catalogue: CATALOGUE, backends: new Map([['funds', BACKEND]]), areas, upgrade: undefined }
  const compiled = compileActions(actions, known, report)
  return {
    ...compiled,
    problems: report.list.map(({ path }) => path.join('.')),
    messages: report.list.map(({ message }) => message).join('\n'),
  }
}

/** What GET of the business-level `fund-list` is compiled to. */
function operationOf(
  operation: Partial<OperationConfig>,
  method: 'GET' | 'POST' = 'GET',
  level = 'business',
) {
  const action = actionOf({
    level: level as ActionConfig['level'],
    methods: { [method]: { ...OPERATION, ...operation } },
  })
  const { runtime } = makeGateway({ actions: [action] })
  const path = level === 'business' ? FUND_LIST : 'f/ACME/SUPER1/fund-data/fund-list'
  const { target } = exchangeOf(path)
  return matchAction(runtime.actions, target as Parameters<typeof matchAction>[1], method).operation
}

describe('the configuration of areas', () => {
  it('an area whose backend does not exist is reported once, and so are its unknown scopes', () => {
    const { problems, messages } = compile([actionOf()], {
      'fund-data': { backend: 'none', scopes: ['x', 'fund.read'] },
    })
    expect(problems).toEqual(['areas.fund-data.backend', 'areas.fund-data.scopes.0'])
    expect(messages).toContain('x')
  })

  it('C4 the backends of report-only areas are known by their area, those of other areas are not', () => {
    const { reportOnly } = compile([], {
      'fund-data': { backend: 'funds' },
      old: { backend: 'funds', mode: 'report-only' },
    })
    expect([...reportOnly]).toEqual([['old', BACKEND]])
  })
})

describe('the configuration of actions', () => {
  it('every action with a problem is reported, and the others are compiled', () => {
    const { problems, actions } = compile([
      actionOf({ action: 'a//b' }),
      actionOf({ area: 'none' }),
      actionOf({ action: '{x', area: 'none' }),
      actionOf(),
    ])
    expect(problems).toEqual(['actions.0.action', 'actions.1.area', 'actions.2.action', 'actions.2.area'])
    expect(actions).toMatchObject([{ slot: 0, name: 'fund-list', level: 'b' }])
  })

  it('C7.3 versions are sorted, and the least is the default', () => {
    expect(operationOf({ versions: [10, 2, 3, 2] }).versions).toEqual({
      versions: [2, 3, 10],
      defaultVersion: 2,
    })
    expect(operationOf({ versions: [1, 2], defaultVersion: 2 }).versions.defaultVersion).toBe(2)
    expect(compile([actionOf({ methods: { GET: { ...OPERATION, defaultVersion: 7 } } })]).problems).toEqual([
      'actions.0.methods.GET.defaultVersion',
    ])
  })

  it('C8.2 the backend is told the level, and the version unless there is only the first', () => {
    expect(operationOf({}).facts).toMatchObject({ level: 'business', versioned: false })
    expect(operationOf({}, 'GET', 'fund').facts).toMatchObject({ level: 'fund', versioned: false })
    expect(operationOf({ versions: [2] }).facts.versioned).toBe(true)
    expect(operationOf({ versions: [1, 2] }).facts.versioned).toBe(true)
  })

  it('C4.11 a body is required, optional, or not taken', () => {
    expect(operationOf({}, 'POST').body.kind).toBe('none')
    expect(operationOf({ body: { required: true } }, 'POST').body.kind).toBe('required')
    expect(operationOf({ body: { required: false } }, 'POST').body.kind).toBe('optional')
  })

  it('C4.11 body and consumes exclude each other, and GET has neither', () => {
    const consumes = ['text/csv']
    const body = { required: true }
    const problemsOf = (method: 'GET' | 'POST', operation: Partial<OperationConfig>) =>
      compile([actionOf({ methods: { [method]: { ...OPERATION, ...operation } } })]).problems
    expect(problemsOf('POST', { consumes })).toEqual([])
    expect(problemsOf('POST', { body })).toEqual([])
    expect(problemsOf('POST', { consumes, body })).toEqual(['actions.0.methods.POST.consumes'])
    expect(problemsOf('GET', { consumes })).toEqual(['actions.0.methods.GET.consumes'])
    expect(problemsOf('GET', { body })).toEqual(['actions.0.methods.GET.body'])
  })

  it('C4.7 scopes are in the catalogue, and are either any or all', () => {
    const problemsOf = (scopes: OperationConfig['scopes']) =>
      compile([actionOf({ methods: { GET: { ...OPERATION, scopes } } })]).problems
    const path = 'actions.0.methods.GET.scopes'
    expect(problemsOf({ all: ['fund.read', 'fund.write'] })).toEqual([])
    expect(problemsOf({ any: ['fund.read', 'x'] })).toEqual([`${path}.any.1`])
    expect(problemsOf({ all: ['y'] })).toEqual([`${path}.all.0`])
    expect(problemsOf({})).toEqual([path])
    expect(problemsOf({ any: ['fund.read'], all: ['fund.read'] })).toEqual([path])
  })
})
