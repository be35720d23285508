import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import type { OperationDescription } from '../../../src/base/contracts/calls/api-description.ts'
import type { Backend } from '../../../src/base/contracts/calls/backend.ts'
import { compileActions } from '../../../src/gateway/actions/compile-actions.ts'
import type { ActionConfig, AreasConfig } from '../../../src/gateway/actions/schema.ts'
import { type Described, describeApi } from '../../../src/gateway/describe/describe.ts'
import { BACKEND_CHECK, CHECKS } from '../../../src/gateway/decide/order.ts'
import { CATALOGUE } from '../../support/gateway.ts'

const backend: Backend = {
  name: 'funds',
  format: 'json',
  payload: 'bare',
  possibleAnswers: () => ({
    successes: { other: false, notModified: false, precondition: false, ranges: false },
    faults: [],
    ownErrors: [],
    otherRefusals: false,
    bytes: false,
  }),
  answer: () => Promise.reject(new Error('nothing is called')),
  close: () => Promise.resolve(),
}

const LIMITS = {
  clientRate: true,
  addressRate: true,
  shedding: true,
  severalBackends: true,
  proofs: true,
  audited: true,
}

interface Given {
  readonly actions: readonly object[]
  readonly areas?: AreasConfig
  readonly more?: Partial<Described>
}

function describedOf({ actions, areas = { 'fund-data': { backend: 'funds' } }, more }: Given) {
  const report = new Problems()
  const compiled = compileActions(
    actions as unknown as readonly ActionConfig[],
    { catalogue: CATALOGUE, backends: new Map([['funds', backend]]), areas, upgrade: undefined },
    report,
  )
  const api = describeApi({
    actions: compiled,
    ...{ areas, catalogue: CATALOGUE, openapi: undefined, baseUrl: 'https://api.example' },
    ...{ vendor: 'acme', defaultFormat: 'json', bodyLimit: 100, limits: LIMITS },
    ...more,
  })
  return { api, problems: report.list.map(({ path, message }) => `${path.join('.')} ${message}`) }
}

const rule = { scopes: { any: ['fund.read'] }, versions: [1], items: {} }
const action = (name: string, methods: object, level = 'business') => ({
  level,
  area: 'fund-data',
  action: name,
  methods,
})

const only = (operation: object, areas?: AreasConfig): OperationDescription =>
  describedOf({ actions: [action('list', { GET: { ...rule, ...operation } })], ...(areas && { areas }) }).api
    .areas[0]!.operations[0]!

describe('the description of the API', () => {
  it('C11.3.1 has a path with the places and the parameters of the action, and an id of its own names', () => {
    const { api } = describedOf({
      actions: [action('detail/{id:uuid}/{state:/open|closed/}', { GET: rule }, 'fund')],
    })
    const [operation] = api.areas[0]!.operations
    expect(operation).toMatchObject({
      id: 'get-fund-fund-data-detail-id-state',
      path: '/api/1.0/f/{businessCode}/{fundCode}/fund-data/detail/{id}/{state}',
      parameters: [
        { name: 'businessCode', kind: 'business', type: '' },
        { name: 'fundCode', kind: 'fund', type: '' },
        { name: 'id', kind: 'own', type: 'uuid' },
        { name: 'state', kind: 'own', values: ['open', 'closed'] },
      ],
    })
  })

  it('C11.3.1 keeps ids apart that the names alone would make equal', () => {
    const { api } = describedOf({ actions: [action('a-b/c', { GET: rule }), action('a/b-c', { GET: rule })] })
    const ids = api.areas[0]!.operations.map(({ id }) => id)
    expect(new Set(ids).size).toBe(2)
    for (const id of ids) expect(id).toMatch(/^get-business-fund-data-a-b-c-[0-9a-f]{8}$/)
  })

  it('C11.3.1 names a parameter of the action that has the name of a place as configured', () => {
    const { api } = describedOf({ actions: [action('{businessCode}', { GET: rule })] })
    expect(api.areas[0]!.operations[0]!.path).toBe('/api/1.0/b/{businessCode_}/fund-data/{businessCode}')
  })

  it('C11.3.4 lists one alternative for each value of any, and what the area requires in each', () => {
    const areas = { 'fund-data': { backend: 'funds', scopes: ['fund.write'] } }
    expect(only({ scopes: { any: ['fund.read', 'openid'] } }, areas).scopes).toEqual([
      ['fund.read', 'fund.write'],
      ['openid', 'fund.write'],
    ])
    expect(only({ scopes: { all: ['openid', 'fund.read'] } }).scopes).toEqual([['openid', 'fund.read']])
  })

  it('C11.3.2 has the plain types and the vendor type of each version', () => {
    const { answer } = only({ versions: [2, 1], defaultVersion: 2 })
    expect(
      answer.types.map((each) => (typeof each === 'string' ? each : `${each.type} ${each.version}`)),
    ).toEqual([
      'application/json 2',
      'application/xml 2',
      'application/vnd.acme.action.v1+json 1',
      'application/vnd.acme.action.v1+xml 1',
      'application/vnd.acme.action.v2+json 2',
      'application/vnd.acme.action.v2+xml 2',
    ])
  })

  it('C11.3.3 has every fault of the checks for some operation but those that belong to no action', () => {
    const { api } = describedOf({
      actions: [
        action('{id:uuid}', {
          GET: rule,
          POST: { ...rule, parameters: { limit: {} }, body: { required: true, schema: { type: 'object' } } },
        }),
      ],
    })
    const raised = new Set(api.areas[0]!.operations.flatMap(({ faults }) => faults))
    const all = [...CHECKS, BACKEND_CHECK].flatMap(({ faults }) => faults)
    expect(all.filter((code) => !raised.has(code))).toEqual([
      'connect_refused',
      'outside',
      'unknown_api_version',
      'client_gone',
    ])
  })

  it('C11.3.3 has no fault that an operation cannot raise', () => {
    const limits = {
      clientRate: false,
      addressRate: false,
      shedding: false,
      severalBackends: false,
      proofs: false,
      audited: false,
    }
    const { api } = describedOf({ actions: [action('list', { GET: rule })], more: { limits } })
    const { faults } = api.areas[0]!.operations[0]!
    for (const code of ['rate_limited', 'overloaded', 'unknown_action', 'body_missing', 'audit_unavailable'])
      expect(faults).not.toContain(code)
    expect(only({ produces: ['text/csv'] }).faults).not.toContain('unknown_action_version')
  })

  it('C11.3.5 has no refusal for a report-only area that is not enforced there', () => {
    const areas: AreasConfig = { 'fund-data': { backend: 'funds', mode: 'report-only' } }
    const { mode, faults } = only({}, areas)
    expect(mode).toBe('report-only')
    for (const code of ['no_credentials', 'insufficient_scope', 'unknown_place', 'not_acceptable'])
      expect(faults).not.toContain(code)
    expect(faults).toContain('service_maintenance')
  })

  it('C11.3.6 leaves hidden areas out, with the scope values that only they name', () => {
    const { api } = describedOf({
      actions: [action('list', { GET: rule })],
      more: { openapi: { hide: ['fund-data'] } },
    })
    expect(api.areas).toEqual([])
    expect(api.scopes.map(({ name }) => name)).not.toContain('fund.read')
  })
})

describe('the documentation of an operation', () => {
  const problemsOf = (operation: object) =>
    describedOf({ actions: [action('list', { POST: { ...rule, ...operation } })] }).problems

  it('C11.3.7 refuses an example that does not fit the schema of Data or of the body', () => {
    const data = { type: 'object', properties: { Count: { type: 'integer' } }, additionalProperties: false }
    const body = { required: true, schema: { type: 'object', required: ['Name'] } }
    const examples = { one: { data: { Count: 'two', More: 1 }, body: {} } }
    expect(problemsOf({ data, body, examples })).toEqual([
      'actions.0.methods.POST.examples.one.data does not fit its schema: Count must be a whole number',
      'actions.0.methods.POST.examples.one.data does not fit its schema: More is not known here',
      'actions.0.methods.POST.examples.one.body does not fit its schema: Name is required',
    ])
  })

  it('C11.3.7 refuses a schema of Data that is not of an object', () => {
    expect(problemsOf({ data: { enum: [] } })).toEqual([
      'actions.0.methods.POST.data.type must be object: `Data` always is one',
    ])
    expect(problemsOf({ data: { type: 'array' } })).toEqual([
      'actions.0.methods.POST.data.type must be object: `Data` always is one',
    ])
  })

  it('C11.3.7 refuses an example of a version, a body or data that there is not', () => {
    const examples = { one: { version: 3, body: {}, data: [] } }
    expect(problemsOf({ examples })).toEqual([
      'actions.0.methods.POST.examples.one.version is not one of the versions 1',
      'actions.0.methods.POST.examples.one.data does not fit its schema: it must be an object',
      'actions.0.methods.POST.examples.one.body has no use: the operation takes no body that is parsed',
    ])
  })

  it('C11.3.7 refuses a value of a parameter that the path has not, or that does not fit its type', () => {
    const examples = { one: { parameters: { id: 'x', other: '1' } } }
    const given = [action('detail/{id:uuid}', { GET: { ...rule, examples } })]
    expect(describedOf({ actions: given }).problems).toEqual([
      'actions.0.methods.GET.examples.one.parameters.id does not fit the type of the parameter',
      'actions.0.methods.GET.examples.one.parameters.other is no parameter of the path of the action',
    ])
  })

  it('C11.3.7 refuses a value of a rest parameter that no path has', () => {
    const of = (path: string) => {
      const examples = { one: { parameters: { path } } }
      return describedOf({ actions: [action('files/{path...:/[a-z]+/}', { GET: { ...rule, examples } })] })
        .problems
    }
    const wrong = 'actions.0.methods.GET.examples.one.parameters.path does not fit the type of the parameter'
    for (const path of ['a', 'a/b', Array(32).fill('a').join('/')]) expect(of(path)).toEqual([])
    for (const path of ['a/1', Array(33).fill('a').join('/')]) expect(of(path)).toEqual([wrong])
    const examples = { one: { parameters: { id: '', path: 'a//b' } } }
    const untyped = [action('{id}/{path...}', { GET: { ...rule, examples } })]
    expect(describedOf({ actions: untyped }).problems).toEqual([
      'actions.0.methods.GET.examples.one.parameters.id does not fit the type of the parameter',
      wrong,
    ])
  })

  it('C11.3.7 refuses a value of the query that is not declared, or that does not fit', () => {
    const parameters = { limit: { type: 'integer' } }
    const examples = { one: { query: { limit: 'x', other: 1 } }, two: { query: { limit: 5 } } }
    expect(problemsOf({ parameters, examples })).toEqual([
      'actions.0.methods.POST.examples.one.query.limit does not fit its schema: it must be a whole number',
      'actions.0.methods.POST.examples.one.query.other is not declared in `parameters`',
    ])
  })
})
