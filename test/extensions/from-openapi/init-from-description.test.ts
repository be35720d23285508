import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'
import { describe, expect, it } from 'vitest'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'
import { callsOf, made, type Written } from './described-service.ts'
import { largeDescription } from '../../support/large-description.ts'
import { sized } from '../../support/long.ts'
import { postForm } from '../../support/oauth.ts'
import { postern } from '../../support/start-postern.ts'
import { answerJson, startUpstream } from '../../support/start-upstream.ts'

const PETS = `openapi: 3.0.3
info: { title: Pets, version: '1.0' }
servers:
  - url: https://{host}/v2/
    variables: { host: { default: pets.internal } }
tags: [{ name: Pet Store, description: All about pets. }]
components:
  securitySchemes:
    key: { type: apiKey, in: header, name: X-Key }
    login:
      type: oauth2
      flows: { clientCredentials: { tokenUrl: 'https://id.example.com', scopes: { 'pets:write': Change pets } } }
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: { type: string, format: uuid, readOnly: true }
        name: { type: string, maxLength: 20 }
        kind: { type: string, enum: [cat, dog], nullable: true }
        price: { type: number, minimum: 0, exclusiveMinimum: true }
        parent: { $ref: '#/components/schemas/Pet' }
paths:
  /pets:
    get:
      tags: [Pet Store]
      summary: List pets
      responses:
        '200':
          description: Pets
          content: { application/json: { schema: { type: array, items: { $ref: '#/components/schemas/Pet' } } } }
    post:
      tags: [Pet Store]
      security: [{ login: ['pets:write'] }]
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: '#/components/schemas/Pet' } } }
      responses: { '201': { description: Made } }
    trace: { responses: { '200': { description: Traced } } }
  /pets/{pet-id}:
    parameters: [{ name: pet-id, in: path, required: true, schema: { type: integer } }]
    get: { tags: [Pet Store], responses: { '200': { description: A pet } } }
    delete: { tags: [Pet Store], responses: { '204': { description: Gone } } }
  /pets/{pet-id}/photo:
    put:
      tags: [Pet Store]
      parameters: [{ name: pet-id, in: path, required: true, schema: { type: integer } }]
      requestBody: { content: { image/png: {} } }
      responses: { '200': { description: The photo, content: { image/png: {} } } }
  /businesses/{businessId}/funds/{fundId}/members/{memberId}.json:
    parameters:
      - { name: businessId, in: path, required: true, schema: { type: string } }
      - { name: fundId, in: path, required: true, schema: { type: string } }
      - { name: memberId, in: path, required: true, schema: { type: string, format: uuid } }
    get: { responses: { '200': { description: A member, content: { application/json: {} } } } }
`

describe('postern init --from', () => {
  it('C10 makes areas, actions, types and scopes of OpenAPI 3.0, and tells line by line what it cannot say', async () => {
    const { written, notes, file, tried } = await made(PETS)
    expect(callsOf(written)).toEqual([
      ...['GET pets', 'POST pets', 'GET pets/{pet_id:signed}', 'DELETE pets/{pet_id:signed}'],
      ...['PUT pets/{pet_id:signed}/photo', 'GET members/{memberId:uuid}'],
    ])
    expect(written.backends.service.target.default).toBe('https://pets.internal/v2')
    expect(written.areas).toEqual({
      'pet-store': { backend: 'service', description: 'All about pets.' },
      members: { backend: 'service' },
    })
    expect(written.scopes).toEqual({
      'pet-store.read': { description: 'See Pet Store' },
      'pets:write': { description: 'Change pets' },
      'pet-store.maintain': { description: 'See and change Pet Store', implies: ['pet-store.read'] },
      'members.read': { description: 'See members' },
    })
    const pet = (name: string, required: readonly string[]) => ({
      type: 'object',
      properties: {
        id: { type: 'string', format: 'uuid' },
        name: { type: 'string', maxLength: 20 },
        kind: { type: ['string', 'null'], enum: ['cat', 'dog', null] },
        price: { type: 'number', minimum: 0 },
        parent: { $ref: `#/schemas/${name}` },
      },
      required,
    })
    expect(written.actions[0]?.methods).toEqual({
      GET: {
        ...{ summary: 'List pets', scopes: { any: ['pet-store.read'] } },
        data: {
          type: 'object',
          properties: { Items: { type: 'array', items: { $ref: '#/schemas/Pet' } } },
        },
      },
      POST: { scopes: { all: ['pets:write'] }, body: { schema: { $ref: '#/schemas/Pet.sent' } } },
    })
    // What is read only need not be sent.
    expect(written.schemas).toEqual({
      Pet: pet('Pet', ['id', 'name']),
      'Pet.sent': pet('Pet.sent', ['name']),
    })
    expect(notes).toEqual([
      'api.yaml:9  the service asks for key; if it shall go on: backends.service.headers: { X-Key: { env: UPSTREAM_KEY } }',
      'api.yaml:10  the service asks for login; tokens of clients do not go on. If it shall get one of its own: backends.service.auth',
      'api.yaml:14  of the schema Pet these are left out: exclusiveMinimum',
      'api.yaml:39  TRACE /pets: left out: TRACE is no method of an action',
    ])
    expect(await runVerb(['check', file])).toMatchObject({ code: 0, stdout: `${file}: can be served\n` })
    expect(tried).toMatch(/GET \/api\/1\.0\/b\/EXAMPLE\/pet-store\/pets$/)
  })

  it('C10 serves it at once: the first client calls, and the service is asked as its description says', async () => {
    const upstream = await startUpstream(answerJson({ Name: 'First' }))
    const { file, shown } = await made(PETS, '--business', 'ACME', '--upstream', `${upstream.url}/v2`)
    const service = await postern({ file, keeps: 'nothing' })
    const { client_id: client, client_secret: secret, username, password } = shown
    const params = { grant_type: 'password', username, password }
    const { json } = await postForm(service, '/connect/token', { client, secret, params })
    const headers = {
      Authorization: `Bearer ${String(json['access_token'])}`,
      'Content-Type': 'application/json',
    }
    const call = async (path: string, body?: string) => {
      const method = body === undefined ? 'GET' : 'POST'
      const url = `${service.baseUrl}/api/1.0${path}`
      return (await fetch(url, { method, headers, ...(body !== undefined && { body }) })).status
    }
    const member = '7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f'
    expect(await call('/b/ACME/pet-store/pets')).toBe(200)
    expect(await call('/b/ACME/pet-store/pets/12?full=1')).toBe(200)
    expect(await call('/b/ACME/pet-store/pets', '{"name":"Rex"}')).toBe(200)
    expect(await call(`/f/ACME/SUPER1/members/members/${member}`)).toBe(200)
    expect(await call('/b/ACME/pet-store/pets', '{"name":"much longer than twenty"}')).toBe(400)
    expect(await call('/b/ACME/pet-store/pets/rex')).toBe(404)
    expect(upstream.requests.map(({ method, target }) => `${method} ${target}`)).toEqual([
      ...['GET /v2/pets', 'GET /v2/pets/12?full=1', 'POST /v2/pets'],
      `GET /v2/businesses/ACME/funds/SUPER1/members/${member}.json`,
    ])
  })

  it('C10 reads OpenAPI 3.1 as JSON, with alternatives, scopes to choose from, and types that tie', async () => {
    const ok = { '200': { description: 'ok' } }
    const order = {
      allOf: [
        { type: 'object', properties: { Code: { type: 'string' } }, required: ['Code'] },
        { type: 'object', properties: { State: { anyOf: [{ type: 'string' }, { type: 'null' }] } } },
      ],
    }
    const of = (name: string, schema: unknown) => [{ name, in: 'path', required: true, schema }]
    const { written, notes } = await made(
      JSON.stringify(
        {
          openapi: '3.1.0',
          info: { title: 'Orders', version: '1' },
          components: {
            securitySchemes: { login: { type: 'openIdConnect', openIdConnectUrl: 'https://id.example.com' } },
          },
          paths: {
            '/tenants/{tenantId}/orders': {
              post: {
                security: [{ login: ['orders.make'] }, { login: ['orders.all', 'openid'] }],
                requestBody: { content: { 'application/vnd.shop+json': { schema: order } } },
                responses: ok,
              },
            },
            '/states/{state}': {
              get: { parameters: of('state', { enum: ['open', 'shut'] }), responses: ok },
            },
            '/codes/{code}': { get: { parameters: of('code', { pattern: '^[A-Z]{2}$' }), responses: ok } },
            '/things/{id}': { get: { parameters: of('id', { type: 'integer' }), responses: ok } },
            '/things/{name}/x': { get: { parameters: of('name', { type: 'string' }), responses: ok } },
            '/a b/{x}-{y}': { get: { responses: ok } },
          },
        },
        null,
        2,
      ),
      ...['--business', 'ACME'],
    )
    expect(callsOf(written)).toEqual([
      ...['POST orders', 'GET states/{state:/open|shut/}', 'GET codes/{code:/[A-Z]{2}/}'],
      ...['GET things/{id}', 'GET things/{name}/x'],
    ])
    expect(written.actions[0]?.methods['POST']).toEqual({
      scopes: { any: ['orders.make', 'orders.all'] },
      body: {
        required: false,
        schema: {
          type: 'object',
          required: ['Code'],
          properties: { Code: { type: 'string' }, State: { type: ['string', 'null'] } },
        },
        types: { 'application/vnd.shop+json': 'json' },
      },
      upstream: { path: '/tenants/{business}/orders', body: { type: 'application/vnd.shop+json' } },
    })
    expect(notes.filter((note) => !note.includes('breaks a rule'))).toEqual([
      expect.stringContaining('the service asks for login; tokens of clients do not go on'),
      expect.stringContaining('GET /things/{id}: {id} takes any segment'),
      expect.stringContaining('GET /a b/{x}-{y}: left out: the segment'),
    ])
  })

  it('C10 reads OpenAPI 2.0, with its forms and bodies', async () => {
    const { written, notes } = await made(`swagger: '2.0'
info: { title: Old, version: '1' }
host: old.internal:8443
basePath: /api
schemes: [https]
consumes: [application/json]
produces: [application/json]
paths:
  /orders:
    post:
      parameters:
        - { name: order, in: body, required: true, schema: { $ref: '#/definitions/Order' } }
      responses: { 200: { description: Made, schema: { $ref: '#/definitions/Order' } } }
  /orders/{id}/paper:
    post:
      consumes: [multipart/form-data]
      parameters:
        - { name: id, in: path, required: true, type: string, format: uuid }
        - { name: paper, in: formData, type: file }
      responses: { 200: { description: Kept } }
  /orders/{id}/note:
    post:
      deprecated: true
      consumes: [application/x-www-form-urlencoded]
      parameters:
        - { name: id, in: path, required: true, type: string, format: uuid }
        - { name: text, in: formData, type: string, required: true, maxLength: 80 }
      responses: { 200: { description: Kept } }
definitions:
  Order: { type: object, properties: { Code: { type: string, maxLength: 9 } } }
`)
    const order = { type: 'object', properties: { Code: { type: 'string', maxLength: 9 } } }
    expect(written.backends.service.target.default).toBe('https://old.internal:8443/api')
    expect(written.schemas).toEqual({ Order: order })
    expect(written.actions).toEqual([
      {
        ...{ level: 'business', area: 'orders', action: 'orders' },
        methods: {
          POST: {
            scopes: { any: ['orders.maintain'] },
            ...{ body: { schema: { $ref: '#/schemas/Order' } }, data: { $ref: '#/schemas/Order' } },
          },
        },
      },
      {
        ...{ level: 'business', area: 'orders', action: 'orders/{id:uuid}/paper' },
        methods: { POST: { scopes: { any: ['orders.maintain'] }, consumes: ['multipart/form-data'] } },
      },
      {
        ...{ level: 'business', area: 'orders', action: 'orders/{id:uuid}/note' },
        methods: {
          POST: {
            ...{ description: 'Deprecated.', scopes: { any: ['orders.maintain'] } },
            body: {
              schema: {
                ...{ type: 'object', required: ['text'] },
                properties: { text: { type: 'string', maxLength: 80 } },
                additionalProperties: false,
              },
            },
            upstream: { body: { format: 'form' } },
          },
        },
      },
    ])
    // Without a business in its paths, the service must know it in another way.
    expect(notes).toEqual([
      expect.stringMatching(
        /^api\.yaml {2}no path, query or header names a business.* --business-in path:id \(2 operations\)$/,
      ),
      expect.stringContaining('POST /orders/{id}/note: a form with other fields'),
    ])
  })

  it('C10 proposes scopes by what an operation is about, and a role that only reads', async () => {
    const ok = { '200': { description: 'ok' } }
    const login = (...names: readonly string[]) => [{ login: names }]
    const { written, notes, file } = await made(
      JSON.stringify({
        openapi: '3.0.3',
        info: { title: 'Shop', version: '1' },
        components: {
          securitySchemes: {
            login: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: '/t', scopes: {} } } },
          },
        },
        paths: {
          '/api/v1/baskets': {
            get: { security: login('read'), responses: ok },
            post: { security: login('read', 'write'), responses: ok },
          },
          '/api/v1/prices(day={day})': {
            get: {
              security: [],
              parameters: [{ name: 'day', in: 'path', required: true, schema: { type: 'integer' } }],
              responses: ok,
            },
          },
        },
      }),
    )
    expect(callsOf(written)).toEqual([
      ...['GET api/v1/baskets', 'POST api/v1/baskets', 'GET api/v1/prices-day/{day:signed}'],
    ])
    expect(Object.keys(written.areas as object)).toEqual(['baskets', 'prices-day'])
    const { directory } = parse(readFileSync(file, 'utf8')) as { directory: { roles: unknown } }
    expect(directory.roles).toEqual({
      Administrator: { scopes: ['read', 'write', 'prices-day.read'] },
      'Read-only': { scopes: ['read', 'prices-day.read'] },
    })
    expect(notes).toContainEqual(
      expect.stringContaining('anybody may call it; here it takes a token with prices-day.read'),
    )
  })

  it.each([
    ['openapi: 4.0.0\npaths: {}\n', 'expected version 3.1, 3.0 or 2.0 of OpenAPI, got "4.0.0"'],
    ['swagger: 2.0\npaths: {}\n', 'must be a string'],
    ['', 'expected an OpenAPI description'],
    ['openapi: [\n', /api\.yaml:2: is neither YAML nor JSON from here on\n$/],
    [
      `{"openapi": "3.1.0", "x-deep": ${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
      'is nested too deep to be read: 100 levels at most',
    ],
    // A thousand millions of values, of which each is there once.
    [
      `a0: &a0 [0, 0]\n${Array.from({ length: 30 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]\n`).join('')}`,
      'expected an OpenAPI description',
    ],
    ['openapi: 3.1.0\npaths: &paths { x-self: *paths }\n', 'is nested too deep to be read'],
    [`openapi: 3.1.0\npaths: ${'['.repeat(200)}${']'.repeat(200)}\n`, 'is nested too deep to be read'],
    ['just a text', 'api.yaml: expected an OpenAPI description'],
    [
      "openapi: 3.1.0\ninfo: { title: A, version: '1' }\npaths: {}\n",
      'describes no operation that can be served',
    ],
    [undefined, 'api.yaml cannot be read (ENOENT: there is no such file or folder)'],
  ])('C10 refuses a description that it cannot use, and writes nothing: %#', async (description, why) => {
    const from = configFiles(description === undefined ? {} : { 'api.yaml': description })('api.yaml')
    const folder = join(dirname(from), 'own')
    const { code, stdout, stderr } = await runVerb(['init', folder, '--from', from])
    expect(stderr).toMatch(why)
    expect(stderr).not.toMatch(/^ +at /m)
    expect([code, stdout, existsSync(folder)]).toEqual([1, '', false])
  })

  const ok = { '200': { description: 'ok' } }

  /** A description in OpenAPI 3.0 of these paths. */
  const describing = (paths: unknown, more: object = {}) =>
    JSON.stringify({ openapi: '3.0.3', info: { title: 'Shop', version: '1' }, ...more, paths })

  const parameter = (place: string, name: string) => ({ name, in: place, schema: { type: 'string' } })

  it('C10 sends the business and the fund of the call wherever the service takes them, never those of the client', async () => {
    const upstream = await startUpstream(answerJson({ Name: 'First' }))
    const get = (...parameters: readonly unknown[]) => ({ get: { parameters, responses: ok } })
    const { file, shown, notes } = await made(
      describing({
        '/orders': get(parameter('header', 'X-Tenant-ID')),
        '/items': get(parameter('query', 'tenant_id'), parameter('query', 'limit')),
        '/parts': get(parameter('query', 'businessId'), parameter('header', 'fund-code')),
      }),
      ...['--business', 'ACME', '--upstream', upstream.url],
    )
    expect(notes.filter((note) => note.includes('business'))).toEqual([])
    const service = await postern({ file, keeps: 'nothing' })
    const { client_id: client, client_secret: secret, username, password } = shown
    const params = { grant_type: 'password', username, password }
    const { json } = await postForm(service, '/connect/token', { client, secret, params })
    const headers = {
      ...{ Authorization: `Bearer ${String(json['access_token'])}`, 'X-Tenant-ID': 'GLOBEX' },
      ...{ X_Tenant_ID: 'GLOBEX', 'Fund-Code': 'OTHER' },
    }
    for (const path of [
      ...['/b/ACME/orders/orders', '/b/ACME/items/items?tenant_id=GLOBEX&limit=2&Tenant_ID=GLOBEX'],
      '/f/ACME/SUPER1/parts/parts?businessId=GLOBEX',
    ])
      expect((await fetch(`${service.baseUrl}/api/1.0${path}`, { headers })).status).toBe(200)
    expect(upstream.requests.map(({ target }) => target)).toEqual([
      ...['/orders', '/items?limit=2&tenant_id=ACME', '/parts?businessId=ACME'],
    ])
    expect(upstream.requests[0]?.headers).toMatchObject({ 'x-tenant-id': ['ACME'] })
    expect(upstream.requests[0]?.headers).not.toHaveProperty('x_tenant_id')
    expect(upstream.requests[2]?.headers).toMatchObject({ 'fund-code': ['SUPER1'] })
  })

  const withTenant = { type: 'object', properties: { tenantId: { type: 'string' } } }
  const sending = (schema: unknown, more: object = {}) => ({
    '/orders': {
      post: { requestBody: { content: { 'application/json': { schema } } }, responses: ok, ...more },
    },
  })

  it.each([
    [
      'a body, also within its parts',
      describing(sending({ type: 'array', items: { allOf: [{ properties: { order: withTenant } }] } })),
      'POST /orders: order.tenantId of the body',
    ],
    [
      'a schema that contains itself',
      describing(sending({ $ref: '#/components/schemas/Order' }), {
        components: {
          schemas: {
            Order: { properties: { parent: { $ref: '#/components/schemas/Order' }, tenantId: {} } },
          },
        },
      }),
      'POST /orders: tenantId of the body',
    ],
    [
      'a body that is described elsewhere, with a schema that contains itself',
      describing(sending({}, { requestBody: { $ref: '#/components/requestBodies/Order' } }), {
        components: {
          requestBodies: {
            Order: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Order' } } } },
          },
          schemas: {
            Order: { properties: { parent: { $ref: '#/components/schemas/Order' }, tenantId: {} } },
          },
        },
      }),
      'POST /orders: tenantId of the body',
    ],
    [
      'a cookie',
      describing(sending({}, { parameters: [parameter('cookie', 'tenant')] })),
      'POST /orders: the cookie tenant',
    ],
  ])(
    'C10 writes nothing where a client would choose the business: %s',
    async (_title, description, which) => {
      const from = configFiles({ 'api.yaml': description })('api.yaml')
      const folder = join(dirname(from), 'own')
      const { code, stdout, stderr } = await runVerb(['init', folder, '--from', from])
      expect(stderr).toContain(`${from}:1  ${which}\n`)
      expect([code, stdout, existsSync(folder)]).toEqual([1, '', false])
    },
  )

  it('C10 reads what other files have, also where a schema of theirs contains itself', async () => {
    const files = configFiles({
      'api.yaml': describing({
        '/orders/{id}': { $ref: 'parts/paths.yaml#/orders' },
        '/things': { post: { requestBody: { $ref: 'parts/bodies.yaml#/Order' }, responses: ok } },
      }),
      'parts/paths.yaml': `orders:
  parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
  post: { requestBody: { $ref: 'bodies.yaml#/Order' }, responses: { '200': { description: ok } } }`,
      'parts/bodies.yaml': `Order: { content: { application/json: { schema: { $ref: '#/Schema' } } } }
Schema: { type: object, properties: { tenantId: { type: string }, parent: { $ref: '#/Schema' } } }`,
    })
    const from = files('api.yaml')
    const folder = join(dirname(from), 'own')
    const { code, stderr } = await runVerb(['init', folder, '--from', from])
    expect(stderr).toContain('POST /orders/{id}: tenantId of the body')
    expect(stderr).toContain('POST /things: tenantId of the body')
    expect([code, existsSync(folder)]).toEqual([1, false])
    const taken = ['--business-in', 'path:id']
    // /things has no business.
    expect(await runVerb(['init', folder, '--from', from, ...taken])).toMatchObject({ code: 3 })
    const { actions, schemas } = parse(readFileSync(join(folder, 'postern.yaml'), 'utf8')) as Written
    expect(schemas).toEqual({
      Schema: {
        type: 'object',
        properties: { tenantId: { type: 'string' }, parent: { $ref: '#/schemas/Schema' } },
      },
    })
    const body = { schema: { $ref: '#/schemas/Schema' } }
    expect(actions.map(({ methods }) => methods['POST'])).toMatchObject([{ body }, { body }])
  })

  it('C10 sends the business of the call also where the service asks for it as for a key', async () => {
    const securitySchemes = {
      tenant: { type: 'apiKey', in: 'header', name: 'X-Tenant-ID' },
      key: { type: 'apiKey', in: 'header', name: 'X-Key' },
    }
    const { written, notes } = await made(
      describing(
        {
          '/orders': {
            get: { security: [{ tenant: [], key: [] }], responses: ok },
            delete: { responses: ok },
          },
        },
        { components: { securitySchemes } },
      ),
    )
    const upstream = { headers: { 'X-Tenant-ID': '{business}' } }
    expect(written.actions[0]?.methods).toMatchObject({ GET: { upstream }, DELETE: { upstream } })
    expect(notes).toEqual([expect.stringContaining('the service asks for key')])
  })

  it('C10 sends a header with the business to every operation, also where the description lacks it', async () => {
    const { written } = await made(
      describing({
        '/orders': {
          get: { parameters: [parameter('header', 'X-Tenant-ID')], responses: ok },
          delete: { parameters: [parameter('header', 'x-tenant-id')], responses: ok },
          post: { parameters: [parameter('query', 'limit')], responses: ok },
        },
      }),
    )
    const inSmall = { upstream: { headers: { 'x-tenant-id': '{business}' } } }
    expect(written.actions[0]?.methods).toMatchObject({
      GET: { upstream: { headers: { 'X-Tenant-ID': '{business}' } } },
      ...{ DELETE: inSmall, POST: inSmall },
    })
  })

  it('C10 takes a business that a body only answers, and tells a fund that a client chooses', async () => {
    const { notes } = await made(
      describing(
        sending({
          properties: { tenantId: { type: 'string', readOnly: true }, fundCode: { type: 'string' } },
        }),
      ),
    )
    expect(notes).toContainEqual(
      expect.stringContaining('POST /orders: the client chooses the fund by fundCode of the body'),
    )
  })

  it('C10, C8.7 renames path parameters that mean something else in a template', async () => {
    const names = ['tenant', 'requestId', 'client', 'query', 'body']
    const path = `/${names.map((name) => `{${name}}`).join('/')}/jobs`
    const parameters = names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
    const { written } = await made(describing({ [path]: { get: { parameters, responses: ok } } }))
    expect(callsOf(written)).toEqual(['GET {requestId_}/{client_}/{query_}/{body_}/jobs'])
    expect(written.actions[0]?.methods['GET']).toMatchObject({
      upstream: { path: '/{business}/{requestId_}/{client_}/{query_}/{body_}/jobs' },
    })
  })

  it('C10 tells that an address with a tenant reaches the same one for every business', async () => {
    const servers = [{ url: 'https://{tenant}.shop.internal', variables: { tenant: { default: 'acme' } } }]
    const { notes } = await made(describing({ '/orders': { get: { responses: ok } } }, { servers }))
    expect(notes).toContainEqual(
      expect.stringContaining('the address has {tenant}: calls of every business go to that of "acme"'),
    )
  })

  it.each(['--business-in path:org', '--fund-parameter org'])(
    'C10 refuses %s where no operation has it',
    async (option) => {
      const paths = {
        '/orders/{orgId}': {
          get: { parameters: [{ ...parameter('path', 'orgId'), required: true }], responses: ok },
        },
      }
      const from = configFiles({ 'api.yaml': describing(paths) })('api.yaml')
      const folder = join(dirname(from), 'own')
      const { code, stderr } = await runVerb(['init', folder, '--from', from, ...option.split(' ')])
      expect(stderr).toContain(`${option}: no operation of ${from} has such a`)
      expect(stderr).toContain('There are path:orgId (1 operation)')
      expect([code, existsSync(folder)]).toEqual([1, false])
    },
  )

  const LEDGER = {
    '/orders': {
      get: {
        tags: ['Orders'],
        parameters: [
          { ...parameter('header', 'xero-tenant-id'), required: true },
          { name: 'limit', in: 'query', required: true, schema: { type: 'integer', maximum: 50 } },
          { name: 'filter', in: 'query', schema: { type: 'object' } },
        ],
        responses: ok,
      },
      post: {
        tags: ['Orders'],
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Order' } } } },
        responses: ok,
      },
    },
    '/notes/{org}/{id}': {
      get: {
        tags: ['Notes'],
        parameters: ['org', 'id'].map((name) => ({ ...parameter('path', name), required: true })),
        responses: ok,
      },
    },
  }
  const ORDER = {
    components: {
      schemas: {
        Order: {
          type: 'object',
          required: ['no', 'company'],
          properties: { no: { type: 'string' }, company: { type: 'string' } },
        },
      },
    },
    servers: [{ url: 'https://{shop}.example.com/v2', variables: { shop: { default: 'acme' } } }],
  }
  const IN_BODY = ['--business-in', 'body:/company={business.company}']

  it('C10 puts values of the business where options say, and what it puts there is no client’s', async () => {
    const upstream = await startUpstream(answerJson({ Name: 'First' }))
    const { file, shown, written } = await made(
      describing(LEDGER, ORDER),
      ...['--business', 'ACME', '--upstream', upstream.url],
      ...[
        '--business-in',
        'header:xero-tenant-id={business.tenant}',
        '--business-in',
        'path:org',
        ...IN_BODY,
      ],
      ...['--value', 'ACME.tenant=t-7', '--value', 'ACME.company=c=9'],
    )
    expect(callsOf(written)).toEqual(['GET orders', 'POST orders', 'GET {id}'])
    expect(written.actions[0]?.methods['GET']).toMatchObject({
      parameters: { limit: { type: 'integer', maximum: 50, required: true } },
    })
    expect(written.schemas).toEqual({
      'Order.sent': { type: 'object', required: ['no'], properties: { no: { type: 'string' } } },
    })
    const service = await postern({ file, keeps: 'nothing' })
    const { client_id: client, client_secret: secret, username, password } = shown
    const params = { grant_type: 'password', username, password }
    const { json } = await postForm(service, '/connect/token', { client, secret, params })
    const headers = {
      ...{ Authorization: `Bearer ${String(json['access_token'])}`, 'xero-tenant-id': 'GLOBEX' },
      'Content-Type': 'application/json',
    }
    const api = `${service.baseUrl}/api/1.0/b/ACME`
    expect((await fetch(`${api}/orders/orders?limit=51`, { headers })).status).toBe(400)
    expect((await fetch(`${api}/orders/orders?limit=50`, { headers })).status).toBe(200)
    expect((await fetch(`${api}/notes/7`, { headers })).status).toBe(200)
    const body = '{"no":"1","Company":"GLOBEX"}'
    expect((await fetch(`${api}/orders/orders`, { method: 'POST', headers, body })).status).toBe(200)
    expect(upstream.requests.map(({ target }) => target)).toEqual([
      ...['/v2/orders?limit=50', '/v2/notes/ACME/7', '/v2/orders'],
    ])
    for (const { headers: sent } of upstream.requests) expect(sent['xero-tenant-id']).toEqual(['t-7'])
    expect(JSON.parse(String(upstream.requests[2]?.body))).toEqual({ no: '1', company: 'c=9' })
  })

  it('C10 tells the business by the host, or by its own headers, where options say so', async () => {
    const only = ['--only', 'GET /notes*']
    const { file } = await made(
      describing(LEDGER, ORDER),
      ...[...only, '--business-in', 'host={business.shop}', '--value', 'EXAMPLE.shop=ex'],
    )
    expect(readFileSync(file, 'utf8')).toContain('host: "{business.shop}.example.com"')
    const { file: other, written } = await made(
      describing(LEDGER, ORDER),
      ...['--only', 'Notes', '--business-in', 'identity'],
    )
    expect(callsOf(written)).toEqual(['GET notes/{org}/{id}'])
    expect(readFileSync(other, 'utf8')).toContain('identity: headers')
  })

  it('C10 finds a member of the body whose name a pointer escapes', async () => {
    const named = (of: object) => JSON.parse(JSON.stringify(of).replaceAll('"company"', '"org/no"')) as object
    const { written } = await made(
      describing(named(LEDGER), named(ORDER)),
      ...['--only', 'POST /orders', '--business', 'ACME', '--value', 'ACME.company=c'],
      ...['--business-in', 'body:/org~1no={business.company}'],
    )
    expect(written.schemas).toMatchObject({ 'Order.sent': { required: ['no'] } })
  })

  it.each([
    [
      ['--business-in', 'header:tenant'],
      1,
      'There are header:xero-tenant-id (1 operation), body:/company (1 operation), path:org (1 operation)',
    ],
    [['--business-in', 'query:xero-tenant-id'], 1, 'no operation of'],
    [['--business-in', 'cookie:tenant'], 2, 'expected header:NAME, path:NAME'],
    [['--business-in', 'path:org=ACME'], 2, 'expected header:NAME, path:NAME'],
    [['--business-in', 'path:org={business.tenant}'], 2, 'write --value EXAMPLE.tenant=…'],
    [['--business-in', 'path:org', '--value', 'HOOLI.tenant=1'], 2, 'there is no business HOOLI'],
    [['--business-in', 'path:org', '--value', 'tenant'], 2, 'expected CODE.KEY=VALUE'],
    [['--only', 'Nothing'], 1, 'Its tags are Orders, Notes'],
    [['--only', 'PUT /orders'], 1, 'has no such operation'],
  ])('C10 refuses %j, says why, and writes nothing', async (options, expected, why) => {
    const from = configFiles({ 'api.yaml': describing(LEDGER, ORDER) })('api.yaml')
    const folder = join(dirname(from), 'own')
    const { code, stderr } = await runVerb(['init', folder, '--from', from, ...options])
    expect(stderr).toContain(why)
    expect([code, existsSync(folder)]).toEqual([expected, false])
  })

  it('C10 takes many schemas that refer to each other, each once, and the check takes the file', async () => {
    const description = JSON.stringify(
      largeDescription({ operations: sized(30, 60), schemas: sized(10, 20) }),
      null,
      1,
    )
    const { file, written } = await made(description, '--business-in', 'header:X-Tenant-ID')
    expect(callsOf(written)).toHaveLength(sized(30, 60))
    expect(readFileSync(file).length).toBeLessThan(2 * description.length)
    expect(await runVerb(['check', file])).toMatchObject({ code: 0 })
  })

  it('C10 keeps true and false where a description has them as schemas, and the check takes them', async () => {
    const description = {
      openapi: '3.1.0',
      info: { title: 'Pets', version: '1' },
      components: { schemas: { Never: false, Any: true, Joined: { allOf: [{ type: 'object' }, false] } } },
      paths: {
        '/pets': {
          post: {
            parameters: [{ name: 'debug', in: 'query', schema: false }],
            requestBody: {
              content: {
                'application/json': {
                  schema: {
                    type: 'object',
                    properties: {
                      admin: false,
                      tag: true,
                      list: { type: 'array', items: false },
                      never: { $ref: '#/components/schemas/Never' },
                      any: { $ref: '#/components/schemas/Any' },
                      joined: { $ref: '#/components/schemas/Joined' },
                      either: { anyOf: [false, { type: 'string' }] },
                      exact: { const: { a: [1] } },
                    },
                  },
                },
              },
            },
            responses: { 200: { description: 'Made' } },
          },
        },
      },
    }
    const { file, written } = await made(JSON.stringify(description))
    const { body, parameters } = written.actions[0]?.methods['POST'] as {
      readonly body: { readonly schema: unknown }
      readonly parameters: unknown
    }
    expect(body.schema).toMatchObject({
      properties: {
        admin: false,
        tag: true,
        list: { items: false },
        never: { $ref: '#/schemas/Never' },
        either: { type: 'string' },
        exact: { const: { a: [1] } },
      },
    })
    expect(written.schemas).toEqual({
      Any: true,
      Joined: false,
      Never: false,
    })
    expect(parameters).toEqual({ debug: false })
    expect(await runVerb(['check', file])).toMatchObject({ code: 0 })
  })

  it('C10 tells where a description breaks the rules of OpenAPI, and takes what it can', async () => {
    const { written, notes } = await made(
      PETS.replace("info: { title: Pets, version: '1.0' }", 'info: { title: Pets }'),
    )
    expect(callsOf(written)).toHaveLength(6)
    expect(notes).toContainEqual(expect.stringMatching(/^api\.yaml:2 {2}breaks a rule of OpenAPI: .*version/))
  })
})
