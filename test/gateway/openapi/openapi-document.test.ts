import { SETTINGS } from '../../support/settings.ts'
import { describe, expect, it } from 'vitest'
import { answersByStatus } from '../../../src/gateway/backends/forward/response/response.ts'
import { Problems } from '../../../src/base/config/problems.ts'
import type { AuthorizationDescription } from '../../../src/base/contracts/calls/api-description.ts'
import type { Backend } from '../../../src/base/contracts/calls/backend.ts'
import type { BodySchema } from '../../../src/base/http/body/body-schema.ts'
import { compileActions } from '../../../src/gateway/actions/compile-actions.ts'
import { describeApi } from '../../../src/gateway/describe/describe.ts'
import type { OpenapiConfig } from '../../../src/gateway/actions/description-schema.ts'
import { openapiDocument } from '../../../src/gateway/openapi/document.ts'
import type { NamedSchemas } from '../../../src/gateway/actions/linked-schemas.ts'
import type { ActionConfig, AreasConfig } from '../../../src/gateway/actions/schema.ts'
import { CATALOGUE } from '../../support/gateway.ts'
import { needing } from '../../support/machine.ts'
import {
  lint,
  lintBySpectral,
  type OpenapiDocument,
  type OpenapiOperation,
  type OpenapiResponse,
  resolved,
} from '../../support/openapi.ts'

/** A backend that forwards everything, and can take websockets over. */
const backend: Backend = {
  name: 'internal-funds',
  format: 'json',
  payload: 'envelope',
  possibleAnswers: (_action, method) => answersByStatus({ method, faults: ['upstream_timeout'] }),
  answer: () => Promise.reject(new Error('nothing is called')),
  upgrade: { isAsked: () => false, take: () => Promise.reject(new Error('nothing is called')) },
  close: () => Promise.resolve(),
}

const OWN: AuthorizationDescription = {
  kind: 'own',
  issuer: 'https://id.example',
  authorizationUrl: 'https://id.example/connect/authorize',
  tokenUrl: 'https://id.example/connect/token',
  grants: ['password', 'authorization_code', 'refresh_token'],
}

/** Its services take and send elements of their own (C7.7). */
const inXml: Backend = { ...backend, name: 'funds-in-xml', xml: {} as NonNullable<Backend['xml']> }

interface Given {
  readonly actions?: readonly object[]
  readonly areas?: AreasConfig
  readonly schemas?: NamedSchemas
  readonly openapi?: Exclude<OpenapiConfig, 'off'>
  readonly authorization?: AuthorizationDescription
}

function documentOf(given: Given = {}) {
  const { actions = [list()], areas = AREAS, schemas, openapi = {}, authorization = OWN } = given
  const problems = new Problems()
  const compiled = compileActions(
    actions as unknown as readonly ActionConfig[],
    {
      catalogue: CATALOGUE,
      backends: new Map([backend, inXml].map((each) => [each.name, each])),
      areas,
      upgrade: SETTINGS.added.backends.upgrade,
      ...(schemas && { schemas }),
    },
    problems,
  )
  expect(problems.list.filter(({ severity }) => severity === 'error')).toEqual([])
  const api = describeApi({
    actions: compiled,
    ...{ areas, catalogue: CATALOGUE, openapi, baseUrl: 'https://api.acme.test' },
    ...{ vendor: 'acme', defaultFormat: 'json', bodyLimit: 100 },
    limits: {
      clientRate: true,
      addressRate: true,
      shedding: true,
      severalBackends: true,
      proofs: true,
      audited: true,
    },
  })
  const { license, contact } = openapi
  return JSON.parse(openapiDocument(api, { authorization, license, contact })) as OpenapiDocument
}

type Own = OpenapiOperation & { readonly 'x-postern-path': string }

const AREAS: AreasConfig = { funds: { backend: backend.name } }
const rule = { scopes: { any: ['fund.read'] }, versions: [1], items: {} }
const action = (name: string, methods: object, area = 'funds') => ({
  level: 'business',
  area,
  action: name,
  methods,
})
const list = (operation: object = {}, area?: string) =>
  action('list', { GET: { ...rule, ...operation } }, area)
const onlyOperation = (document: OpenapiDocument) => Object.values(Object.values(document.paths)[0]!)[0]!
const responseOf = (document: OpenapiDocument, status: string) =>
  resolved(document, onlyOperation(document).responses[status]) as OpenapiResponse

describe('C11.3 the OpenAPI document', () => {
  const text = { type: 'string' } as const
  const entry = { type: 'object', properties: { 'a b': text, Tags: { type: 'array', items: text } } }
  const ALL_KINDS: Given = {
    areas: {
      funds: { backend: backend.name, scopes: ['openid'], description: 'Funds <of> a business' },
      streams: { backend: backend.name, mode: 'report-only' },
      xml: { backend: inXml.name },
      '2026-q1': { backend: backend.name },
    },
    schemas: { Fund: entry as BodySchema, 'any.error': entry as BodySchema, NoData: { type: 'object' } },
    actions: [
      action('{id:uuid}', {
        GET: { ...rule, versions: [1, 3], defaultVersion: 3, data: { properties: { 'a b': text } } },
        PUT: { ...rule, body: { required: false, schema: { type: 'object' } } },
      }),
      action('{number:integer}', { GET: rule, DELETE: rule }),
      action('{state:/open|closed/}/of/{code:/[A-Z]{2}/}', {
        GET: { ...rule, produces: ['text/csv', 'image/*'] },
      }),
      action('forms', {
        POST: {
          ...rule,
          data: { $ref: '#/schemas/any.error' },
          body: { required: true, schema: { $ref: '#/schemas/Fund' } },
          examples: { 'a.b-c_d': { body: { 'a b': 'é <&>' }, data: { Tags: ['x'] } } },
        },
        GET: {
          ...rule,
          data: { $ref: '#/schemas/NoData' },
          parameters: { 'odd name': { type: 'integer', required: true }, 'page[size]': { ...text } },
        },
      }),
      action('~._-', { GET: { ...rule, data: entry } }),
      action('fund-list', { GET: { ...rule, data: entry, items: { Tags: 'Tag' } } }),
      action('fund_list', { GET: { ...rule, data: entry } }),
      { ...action('fund-list', { GET: { ...rule, data: { ...entry, required: ['Tags'] } } }), level: 'fund' },
      action('tree/{path...}', { GET: rule, PROPFIND: rule, REPORT: { ...rule, data: entry } }),
      action(
        'upload',
        { POST: { ...rule, consumes: ['application/pdf', 'multipart/form-data'] } },
        'streams',
      ),
      action('ticks', { GET: { ...rule, websocket: true, produces: ['text/event-stream'] } }, 'streams'),
      action('only', { GET: { ...rule, produces: ['application/xml'] } }, 'xml'),
      action('mapped', { PATCH: { ...rule, data: entry, body: { required: true, schema: entry } } }, 'xml'),
      action('1', { QUERY: { ...rule, data: entry, body: { required: true } } }, '2026-q1'),
    ],
  }

  it('C11.3 of an API of all kinds of operations has nothing that linters find wrong', async () => {
    expect(await lint(documentOf(ALL_KINDS))).toEqual([])
  })

  it('C11.3 of an API of all kinds of operations passes spectral', needing('spectral'), async () => {
    expect(await lintBySpectral(documentOf(ALL_KINDS))).toEqual([])
    const { info, ...rest } = documentOf(ALL_KINDS)
    const bad = { ...rest, info: { ...info, contact: undefined } }
    expect(await lintBySpectral(bad)).toMatchObject([{ rule: 'info-contact' }])
  })

  const schemaNames = (document: OpenapiDocument): readonly string[] =>
    Object.keys(document.components['schemas'] ?? {})

  it('C11.3.7 names components so that generators make names of types of them, and none of two', () => {
    const document = documentOf(ALL_KINDS) as OpenapiDocument & Pick<OpenapiDocument, 'components'>
    const further = (document as unknown as Record<string, OpenapiDocument['components']>)[
      'x-postern-components'
    ]
    const sections = [document.components, further ?? {}].flatMap((each) =>
      ['schemas', 'responses', 'parameters'].map((section) => Object.keys(each[section] ?? {})),
    )
    const names = sections.flat()
    for (const name of names) expect(name).toMatch(/^[A-Za-z][A-Za-z0-9._-]*$/)
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(names.length)
    expect(schemaNames(document)).toEqual(
      expect.arrayContaining([
        ...['Fund', 'any.error', 'NoData', 'NoData_2', 'AnyError', 'NotAuthorisedFailure'],
        ...['FundsByIdPutRequest', 'FundsFormsPostResponse', 'FundsFundListOfFund', 'XmlMappedPatchRequest'],
        expect.stringMatching(/^FundsFundList_[0-9a-f]{8}$/),
      ]),
    )
  })

  it('C11.3.7 keeps the names of components where operations come and go', () => {
    // Of those that share a path, the first stands in the document.
    const actions = (ALL_KINDS.actions ?? []).slice(2)
    const all = documentOf({ ...ALL_KINDS, actions })
    const reversed = documentOf({ ...ALL_KINDS, actions: actions.slice(1).toReversed() })
    for (const section of ['schemas', 'responses', 'parameters'])
      for (const name of Object.keys(reversed.components[section] ?? {}))
        expect([name, reversed.components[section]?.[name]]).toEqual([name, all.components[section]?.[name]])
  })

  it('C11.3.7 has a type for the `Data` of an operation, for its body, for its errors and for their list', () => {
    const data = { type: 'object', properties: { Amount: { type: 'number' } } }
    const body = { required: true, schema: data }
    const document = documentOf({
      areas: { accounts: { backend: backend.name } },
      actions: [action('balance', { GET: { ...rule, data }, PUT: { ...rule, data, body } }, 'accounts')],
    })
    const { schemas = {} } = document.components
    const to = (name: string) => ({ $ref: `#/components/schemas/${name}` })
    expect(schemas['AccountsBalance']).toEqual(data)
    expect(schemas['AccountsBalanceResponse']).toMatchObject({
      properties: {
        Errors: { type: 'array', maxItems: 0, items: to('AnyError') },
        Data: to('AccountsBalance'),
      },
    })
    expect(schemas['AccountsBalancePutRequest']).toEqual(data)
    expect(schemas['AccountsBalancePutResult']).toEqual(data)
    expect(schemas['NotAuthorisedFailure']).toMatchObject({
      properties: { Errors: { items: to('NotAuthorisedError') }, Data: to('NoData') },
    })
    expect(schemas['NotAuthorisedError']).toMatchObject({
      properties: { Code: { enum: ['API_NOT_AUTHORISED'] } },
      xml: { name: 'Error' },
    })
  })

  it('C11.3.7 mixes up nothing where actions are called what components are', () => {
    const dataOf = (name: string) => ({ type: 'object', properties: { [name]: text } })
    const get = (area: string, name: string) =>
      action(name, { GET: { ...rule, data: dataOf(`${area}-${name}`) } }, area)
    const areas = Object.fromEntries(
      ['no', 'any', 'accounts'].map((area) => [area, { backend: backend.name }]),
    )
    const actions = [
      ...[
        get('accounts', 'balance'),
        get('accounts', 'balance-response'),
        get('accounts', 'balance-success'),
      ],
      ...[get('no', 'data'), get('any', 'error'), get('any', 'success'), get('any', 'failure')],
      action('list', { GET: rule }, 'any'),
    ]
    const document = documentOf({ areas, actions })
    const { schemas = {} } = document.components
    for (const [path, item] of Object.entries(document.paths)) {
      const [area, name] = path.split('/').slice(-2)
      const { content } = resolved(document, item['get']!.responses['200']) as OpenapiResponse
      const answer = resolved(document, content?.['application/json']?.schema) as {
        readonly properties: { readonly Data: object; readonly Errors: { readonly items: object } }
      }
      expect(resolved(document, answer.properties.Data)).toEqual(
        name === 'list' ? { type: 'object' } : dataOf(`${area!}-${name!}`),
      )
      expect(resolved(document, answer.properties.Errors.items)).toMatchObject({ xml: { name: 'Error' } })
    }
    expect(new Set(Object.keys(schemas).map((name) => name.toLowerCase())).size).toBe(
      Object.keys(schemas).length,
    )
  })

  it('C11.3.1 has what only methods without a place in OpenAPI use beside the components', () => {
    const document = documentOf({
      actions: [list(), action('tree', { PROPFIND: { ...rule, data: { type: 'object', properties: {} } } })],
    }) as OpenapiDocument & { readonly 'x-postern-components': OpenapiDocument['components'] }
    expect(Object.keys(document['x-postern-components']['responses'] ?? {})).toContain(
      'FundsTreePropfindSuccess',
    )
    expect(JSON.stringify(document.components)).not.toContain('Propfind')
  })

  it('C11.3 says whose it is, and what it is, where the configuration does not', () => {
    expect(documentOf().info).toMatchObject({
      contact: { name: 'The operator of api.acme.test' },
      description: expect.stringContaining('access token'),
    })
    const contact = { name: 'Support', email: 'support@acme.test' }
    expect(documentOf({ openapi: { contact, description: 'Ours' } }).info).toMatchObject({
      contact,
      description: 'Ours',
    })
  })

  it('C11.3.4 has an alternative for each value of any, and one for all values of all', () => {
    const of = (scopes: object) => onlyOperation(documentOf({ actions: [list({ scopes })] })).security
    expect(of({ any: ['fund.read', 'openid'] })).toEqual([{ oauth2: ['fund.read'] }, { oauth2: ['openid'] }])
    expect(of({ all: ['fund.read', 'openid'] })).toEqual([{ oauth2: ['fund.read', 'openid'] }])
  })

  it('C11.3.4 describes every scope value, and says which others include it', () => {
    const { securitySchemes } = documentOf().components
    const flow = {
      tokenUrl: 'https://id.example/connect/token',
      refreshUrl: 'https://id.example/connect/token',
      scopes: expect.objectContaining({
        openid: 'Sign you in',
        'fund.read': 'Read (included in fund.write)',
      }),
    }
    expect(securitySchemes?.['oauth2']).toMatchObject({
      type: 'oauth2',
      flows: {
        authorizationCode: { ...flow, authorizationUrl: 'https://id.example/connect/authorize' },
        password: flow,
      },
    })
  })

  it('C11.3.5 names the issuers of a sidecar, of which each is enough', () => {
    const metadataUrl = 'https://one.example/.well-known/openid-configuration'
    const document = documentOf({
      authorization: {
        kind: 'foreign',
        issuers: [
          { name: 'one', issuer: 'https://one.example', metadataUrl },
          { name: 'two', issuer: 'https://two.example', metadataUrl: undefined },
        ],
      },
    })
    expect(document.components['securitySchemes']).toMatchObject({
      one: { type: 'openIdConnect', openIdConnectUrl: metadataUrl },
      two: { type: 'http', scheme: 'bearer', description: expect.stringContaining('https://two.example') },
    })
    expect(onlyOperation(document).security).toEqual([{ one: ['fund.read'] }, { two: ['fund.read'] }])
  })

  it('C11.3.5 asks for no token in a report-only area, and says why', () => {
    const areas: AreasConfig = { funds: { backend: backend.name, mode: 'report-only' } }
    const operation = onlyOperation(documentOf({ areas }))
    expect(operation.security).toContainEqual({})
    expect(operation['x-postern-mode']).toBe('report-only')
    // What the data service refuses is still there, but no 401 of Postern's own checks.
    expect(responseOf(documentOf({ areas }), '401').description).not.toContain('No access token was sent')
  })

  it('C11.3.1 says which target a token needs, in a word and in words', () => {
    const operation = onlyOperation(documentOf())
    expect(operation['x-postern-target']).toBe('business')
    expect(operation.description).toContain('`target:b/CODE`')
  })

  it('C11.3.3 has the headers of each failure', () => {
    const document = documentOf()
    const headers = (status: string) => Object.keys(responseOf(document, status).headers)
    expect(headers('401')).toContain('WWW-Authenticate')
    expect(headers('405')).toContain('Allow')
    for (const status of ['429', '503']) expect(headers(status)).toContain('Retry-After')
    for (const status of ['200', '404', '429'])
      expect(headers(status)).toEqual(expect.arrayContaining(['RateLimit']))
    expect(headers('416')).toContain('Content-Range')
  })

  it('C8.6, C11.3.1 says that a change may name the version that it is of, and tells the new one', () => {
    const methods = { GET: rule, PUT: { ...rule, body: { required: true } }, DELETE: rule }
    const document = documentOf({ actions: [action('list', methods)] })
    const [operations = {}] = Object.values(document.paths)
    for (const [method, operation] of Object.entries(operations)) {
      const names = operation.parameters.map((each) => (resolved(document, each) as { name: string }).name)
      const [own, other] = ['If-Match', 'If-None-Match'].map((name) => names.includes(name))
      expect([method, own, other]).toEqual([method, method !== 'get', method === 'get'])
      const success = resolved(document, operation.responses['200']) as OpenapiResponse
      expect(Object.keys(success.headers)).toContain('ETag')
    }
  })

  it('C11.3.3 has no list of codes where errors of the data service may come', () => {
    const document = documentOf()
    const codes = (status: string) => {
      const { schema } = responseOf(document, status).content?.['application/json'] ?? {}
      const { properties } = resolved(document, schema) as { properties: { Errors: { items: object } } }
      return JSON.stringify(resolved(document, properties.Errors.items))
    }
    expect(codes('501')).toContain('"enum":["API_NOT_IMPLEMENTED"]')
    expect(codes('404')).not.toContain('"enum"')
    expect(codes('4XX')).not.toContain('"enum"')
  })

  it('C11.3.2 tells the XML names of arrays, of their items and of keys that are no names', () => {
    const data = {
      type: 'object',
      properties: { Funds: { type: 'array', items: { type: 'string' } }, 'a b': { type: 'string' } },
    }
    const document = documentOf({ actions: [list({ data, items: { Funds: 'Fund' } })] })
    const schema = resolved(document, responseOf(document, '200').content?.['application/xml']?.schema)
    expect(schema).toMatchObject({ xml: { name: 'ApiResponse' } })
    const { properties } = schema as { readonly properties: { readonly Data: object } }
    expect(resolved(document, properties.Data)).toMatchObject({
      properties: {
        Funds: { xml: { wrapped: true }, items: { type: 'string', xml: { name: 'Fund' } } },
        'a b': { xml: { name: 'a_x0020_b' } },
      },
    })
  })

  const FUND: NamedSchemas = {
    Fund: {
      type: 'object',
      properties: {
        Parent: { $ref: '#/schemas/Fund' },
        Members: { type: 'array', items: { $ref: '#/schemas/Member' } },
        'a b': { $ref: '#/schemas/Member' },
      },
    },
    Member: { type: 'object', properties: { Fund: { $ref: '#/schemas/Fund' }, Note: { type: 'string' } } },
    Plan: { $ref: '#/schemas/Fund' },
  }

  it('C11.3.7 has schemas with a name as components that refer to each other, and to themselves', async () => {
    const to = (name: string) => ({ $ref: `#/components/schemas/${name}` })
    const body = {
      required: true,
      schema: { type: 'object', properties: { Plan: { $ref: '#/schemas/Plan' } } },
    }
    const data = { $ref: '#/schemas/Fund' }
    const document = documentOf({
      schemas: FUND,
      actions: [action('list', { GET: { ...rule, data }, PUT: { ...rule, data, body } })],
    })
    const { schemas = {} } = document.components
    expect(schemas['Fund']).toEqual({
      type: 'object',
      properties: {
        Parent: to('Fund'),
        Members: { type: 'array', items: { ...to('Member'), xml: { name: 'Item' } }, xml: { wrapped: true } },
        'a b': { ...to('Member'), xml: { name: 'a_x0020_b' } },
      },
    })
    expect(schemas['Member']).toMatchObject({ properties: { Fund: to('Fund') } })
    expect(schemas['FundsListPutRequest']).toMatchObject({ properties: { Plan: to('Fund') } })
    expect(schemas['FundsListResponse']).toMatchObject({
      properties: { Data: { type: 'object', ...to('Fund') } },
    })
    expect(await lint(document)).toEqual([])
  })

  it('C11.3.7 says that no value fits where a schema is false, and stays valid', async () => {
    const never = { enum: [] }
    const schema = {
      type: 'object',
      properties: { Admin: never, Any: {}, List: { type: 'array', items: never } },
    }
    const data = { type: 'object', properties: { Never: { $ref: '#/schemas/Never' } } }
    const document = documentOf({
      schemas: { Never: never },
      actions: [action('list', { PUT: { ...rule, data, body: { required: true, schema } } })],
    })
    const { schemas = {} } = document.components
    expect(schemas['Never']).toEqual({ not: {} })
    expect(schemas['FundsListPutRequest']).toMatchObject({
      properties: { Admin: { not: {} }, Any: {}, List: { items: { not: {} } } },
    })
    expect(await lint(document)).toEqual([])
  })

  it('C11.3.7 has a component of its own for operations that name the items of its lists differently', () => {
    const data = { $ref: '#/schemas/Fund' }
    const items = [{}, { Members: 'Member' }, { Members: 'Member', Others: 'Other' }]
    const { schemas = {} } = documentOf({
      schemas: { ...FUND, NoData: { type: 'object' } },
      actions: [
        ...items.map((names, at) => action(`list-${at}`, { GET: { ...rule, data, items: names } })),
        list({ data: { $ref: '#/schemas/NoData' } }),
      ],
    }).components
    const names = Object.keys(schemas).filter((name) => /^(?:Fund(?!s)|Member|NoData)/.test(name))
    expect(names.toSorted()).toEqual([
      ...['Fund', 'FundWithMember', 'Member', 'MemberWithMember', 'NoData', 'NoData_2'],
    ])
    expect(schemas['FundWithMember']).toMatchObject({
      properties: {
        Members: { items: { xml: { name: 'Member' } } },
        Parent: { $ref: expect.stringMatching(/FundWithMember$/) },
      },
    })
  })

  it('C11.3.6 escapes what would begin HTML, wherever a text comes from', () => {
    const bad = '<img src=x onerror=alert(1)>'
    const document = documentOf({
      areas: { funds: { backend: backend.name, description: bad } },
      actions: [list({ description: bad, data: { type: 'object', description: bad } })],
      openapi: { description: bad },
    })
    const text = JSON.stringify(document)
    expect(text).not.toContain('<')
    expect(text.match(/&lt;img/g)?.length).toBe(4)
  })

  it('C11.3.6 names no backend', () => {
    expect(JSON.stringify(documentOf())).not.toContain(backend.name)
  })

  it('C11.3.1 has one operation where only the types of parameters differ, and it names the others', () => {
    const document = documentOf({
      actions: [action('{id:uuid}', { GET: rule }), action('{number:integer}', { GET: rule, DELETE: rule })],
    })
    expect(Object.keys(document.paths)).toEqual(['/api/1.0/b/{businessCode}/funds/{id}'])
    const [item] = Object.values(document.paths)
    expect(Object.keys(item!)).toEqual(['get', 'delete', 'x-postern-variants'])
    expect(item!['get']!.description).toContain('`get-business-funds-number`')
    expect(item!['get']!.parameters[1]).toMatchObject({
      name: 'id',
      schema: { anyOf: [{ format: 'uuid' }, { type: 'integer' }] },
    })
    expect(item!['delete']!.parameters[1]).toMatchObject({ name: 'id', schema: { type: 'integer' } })
  })

  it('C11.3.9 has each operation as it is where the types of parameters lead to several, or name them otherwise', () => {
    const data = (name: string) => ({ type: 'object', properties: { [name]: text } })
    const examplesOf = (name: string) => ({ data: data(name), examples: { one: { data: { [name]: name } } } })
    const document = documentOf({
      actions: [
        action('{id:uuid}', { GET: { ...rule, ...examplesOf('A'), parameters: { all: text } } }),
        action('{number:integer}', { GET: { ...rule, ...examplesOf('B') }, DELETE: rule }),
      ],
    })
    const [item] = Object.values(document.paths) as unknown as [Record<string, Record<string, Own[]>>]
    const { GET: got = [], DELETE: [removed] = [] } = item['x-postern-variants']!
    const own = (of: unknown): boolean => !Object.hasOwn(Object(of), '$ref')
    expect(got.map((each) => each.parameters.filter(own))).toEqual([
      [
        { name: 'id', in: 'path', required: true, schema: { type: 'string', format: 'uuid' } },
        expect.objectContaining({ name: 'all' }),
      ],
      [expect.objectContaining({ name: 'number', schema: { type: 'integer', format: 'int64', minimum: 0 } })],
    ])
    const shown = got.map((each) => {
      const { content } = resolved(document, each.responses['200']) as OpenapiResponse
      const { examples } = content!['application/json']!
      return (resolved(document, examples!['one']) as { value: { Data: object } }).value.Data
    })
    expect(shown).toEqual([{ A: 'A' }, { B: 'B' }])
    expect(removed).toMatchObject({
      operationId: 'delete-business-funds-number',
      'x-postern-path': '/api/1.0/b/{businessCode}/funds/{number}',
    })
    expect(Object.keys(document.components['schemas']!).filter((name) => name.includes('_'))).toEqual([])
  })

  it('C11.3.9 says what an action is called, which version is the usual one, and what items are called in XML', () => {
    const own = (operation: object, name?: string) =>
      onlyOperation(documentOf({ actions: [action(name ?? 'list', { GET: { ...rule, ...operation } })] }))
    expect(own({}, 'of/{id:uuid}')).toMatchObject({ 'x-postern-action': 'of/{id:uuid}' })
    expect(own({ versions: [1, 3], defaultVersion: 3 })).toMatchObject({ 'x-postern-default-version': 3 })
    expect(own({ items: { Tags: 'Tag' } })).toMatchObject({ 'x-postern-items': { Tags: 'Tag' } })
    const plain = Object.keys(own({ produces: ['text/csv'] }))
    expect(plain.filter((name) => name.startsWith('x-'))).toEqual(['x-postern-action', 'x-postern-target'])
  })

  it('C11.3.9 says what belongs together in an example, and has its values of the path', () => {
    const examples = {
      one: { summary: 'Few', parameters: { id: '7', word: 'a' }, data: { A: 'x' } },
      other: { version: 2, parameters: { id: '9007199254740993', word: 'b' } },
    }
    const of = { ...rule, versions: [1, 2], data: { type: 'object' }, examples }
    const operation = onlyOperation(documentOf({ actions: [action('{id:integer}/{word}', { GET: of })] }))
    expect(operation).toMatchObject({
      'x-postern-examples': { one: { summary: 'Few', version: 1 }, other: { version: 2 } },
    })
    expect(operation.parameters.slice(1, 3)).toMatchObject([
      { name: 'id', examples: { one: { value: 7 }, other: { value: '9007199254740993' } } },
      { name: 'word', examples: { one: { value: 'a' }, other: { value: 'b' } } },
    ])
  })

  it('C11.3.9 has the values of an example in their places where the path names its parameters otherwise', () => {
    const examples = { one: { parameters: { id: '7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f', number: '7' } } }
    const document = documentOf({
      actions: [
        action('{number:integer}/{id:integer}', { GET: rule }),
        action('{id:uuid}/{number:integer}', { DELETE: { ...rule, examples } }),
      ],
    })
    const [item] = Object.values(document.paths)
    expect(item!['delete']!.parameters.slice(1, 3)).toMatchObject([
      { name: 'number', examples: { one: { value: examples.one.parameters.id } } },
      { name: 'id', examples: { one: { value: 7 } } },
    ])
  })

  it('C11.3.9 says what each segment of a long parameter is, and has its value as a text', () => {
    const examples = { one: { parameters: { path: '7' } } }
    const [, rest] = onlyOperation(
      documentOf({ actions: [action('{path...:integer}', { GET: { ...rule, examples } })] }),
    ).parameters
    expect(rest).toMatchObject({
      'x-postern-rest': true,
      'x-postern-segment': { type: 'integer', minimum: 0 },
      schema: { type: 'string' },
      examples: { one: { value: '7' } },
    })
  })

  it('C11.3.9 says how large a body may be that is read, and nothing of one that is not', () => {
    const bodyOf = (operation: object) =>
      onlyOperation(documentOf({ actions: [action('list', { POST: { ...rule, ...operation } })] }))
        .requestBody
    expect(bodyOf({ body: { required: true } })).toMatchObject({ 'x-postern-limit': 100 })
    expect(bodyOf({ consumes: ['text/csv'] })).toEqual({ content: { 'text/csv': {} } })
  })

  it('C11.3.9 says which XML is of the data service’s own', () => {
    const document = documentOf({
      areas: { funds: { backend: inXml.name } },
      actions: [action('list', { POST: { ...rule, data: entry, body: { required: true } } })],
    })
    const contents = [onlyOperation(document).requestBody?.content, responseOf(document, '200').content]
    const own = contents.map((content = {}) =>
      Object.keys(content).filter((type) => Object.hasOwn(content[type]!, 'x-postern-own-xml')),
    )
    expect(own).toEqual([['application/xml'], ['application/xml', 'application/vnd.acme.action.v1+xml']])
  })

  it('C11.3.9 names the codes of each failure, also where the data service may tell its own', () => {
    const document = documentOf()
    const statuses = Object.keys(onlyOperation(document).responses).filter((status) =>
      /^(?!416)[45]\d\d$/.test(status),
    )
    expect(statuses).toContain('404')
    const codes = statuses.map((status) => [status, Object(responseOf(document, status))['x-postern-codes']])
    for (const [status, named] of codes)
      expect([status, named]).toEqual([status, expect.arrayContaining([expect.stringMatching(/^API_/)])])
    expect(Object.fromEntries(codes)).toMatchObject({
      401: ['API_NOT_AUTHORISED'],
      404: ['API_NOT_FOUND'],
      500: ['API_INTERNAL_ERROR'],
    })
  })
})
