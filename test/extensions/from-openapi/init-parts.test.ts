import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'
import { describing, made, type Written } from './described-service.ts'
import { postForm } from '../../support/oauth.ts'
import { postern } from '../../support/start-postern.ts'
import { answerJson, startUpstream } from '../../support/start-upstream.ts'

const OK = { '200': { description: 'ok' } }
const ref = (name: string) => ({ $ref: `#/components/${name}` })

/** The configuration of one operation. */
async function methodOf(method: string, operation: object, more: object = {}) {
  const { written, notes } = await made(
    describing([], {
      paths: { '/orders': { [method.toLowerCase()]: { responses: OK, ...operation } } },
      ...more,
    }),
  )
  return { own: written.actions[0]?.methods[method] as Record<string, unknown>, notes, written }
}

const body = (content: unknown) => ({ requestBody: { required: true, content } })

describe('what postern init takes of a description as it is', () => {
  it('C10, C7.4 keeps the media type that a service takes and answers, and clients may name it', async () => {
    const type = 'application/json-patch+json'
    const list = { type: 'array', items: { type: 'object' } }
    const answer = {
      '200': { description: 'ok', content: { 'application/vnd.shop+json': { schema: list } } },
    }
    const { own } = await methodOf('PATCH', { ...body({ [type]: { schema: list } }), responses: answer })
    expect(own).toMatchObject({
      body: { types: { [type]: 'json' }, schema: list },
      upstream: { body: { type }, types: { 'application/vnd.shop+json': 'json' } },
    })
  })

  it('C10, C7.4 sends a patch with the type of a patch', async () => {
    const upstream = await startUpstream(answerJson({}))
    const type = 'application/merge-patch+json'
    const schema = { type: 'object', properties: { name: { type: 'string', maxLength: 5 } } }
    const operation = { ...body({ [type]: { schema } }), responses: OK }
    const { file, shown } = await made(
      describing([], { paths: { '/orders': { patch: operation } } }),
      ...['--upstream', upstream.url, '--business', 'ACME'],
    )
    const service = await postern({ file, keeps: 'nothing' })
    const { client_id: client, client_secret: secret, username, password } = shown
    const params = { grant_type: 'password', username, password }
    const { json } = await postForm(service, '/connect/token', { client, secret, params })
    const call = async (text: string) =>
      (
        await fetch(`${service.baseUrl}/api/1.0/b/ACME/orders/orders`, {
          method: 'PATCH',
          headers: { Authorization: `Bearer ${String(json['access_token'])}`, 'Content-Type': type },
          body: text,
        })
      ).status
    expect([await call('{"name":"longer"}'), await call('{"name":"short"}')]).toEqual([400, 200])
    expect(
      upstream.requests.map(({ headers, body: sent }) => [headers['content-type'], String(sent)]),
    ).toEqual([[[type], '{"name":"short"}']])
  })

  it('C10 takes one of several types of JSON, and tells that the others are refused', async () => {
    const patch = { type: 'array', items: { type: 'object' } }
    const { own, notes } = await methodOf(
      'PATCH',
      body({
        'application/json-patch+json': { schema: patch },
        'application/json': { schema: { type: 'object' } },
      }),
    )
    expect(own['body']).toEqual({ schema: { type: 'object' } })
    expect(own['upstream']).toBeUndefined()
    expect(notes).toContainEqual(
      expect.stringContaining(
        'a body of application/json-patch+json is refused, because one of application/json',
      ),
    )
  })

  it('C10 keeps a form a form where its fields refer to words, have no type or may be null', async () => {
    const components = {
      schemas: {
        State: { type: 'string', enum: ['open', 'shut'] },
        Words: { type: 'array', items: { $ref: '#/components/schemas/State' } },
      },
    }
    const schema = {
      type: 'object',
      properties: {
        ...{ state: ref('schemas/State'), all: ref('schemas/Words'), kind: { enum: ['a', 'b'] } },
        note: { type: 'string', nullable: true },
      },
    }
    const { own } = await methodOf('POST', body({ 'application/x-www-form-urlencoded': { schema } }), {
      components,
    })
    const state = { type: 'string', enum: ['open', 'shut'] }
    expect(own).toMatchObject({
      body: {
        schema: {
          properties: {
            ...{ state, all: { type: 'array', items: state }, kind: { type: 'string', enum: ['a', 'b'] } },
            note: { type: 'string' },
          },
          additionalProperties: false,
        },
      },
      upstream: { body: { format: 'form' } },
    })
  })

  it('C10 follows references of content and of media types, and takes no media type without a slash', async () => {
    const schema = { type: 'object', properties: { no: { type: 'string' } } }
    const components = {
      'x-content': { 'application/json': { schema } },
      'x-media': { schema },
      ...{ schemas: {} },
    }
    const one = await methodOf('POST', body(ref('x-content')), { components })
    expect(one.own['body']).toEqual({ schema })
    const other = await methodOf('POST', body({ 'application/json': ref('x-media'), json: {} }), {
      components,
    })
    expect(other.own['body']).toEqual({ schema })
    expect(other.notes).toContainEqual(expect.stringContaining('nothing like it: the media type "json"'))
  })

  it.each([
    ['bytes', { schema: { type: 'string', format: 'binary' } }],
    ['anything', {}],
  ])('C10, C7.1 streams a body of any type that is %s, unread', async (_what, media) => {
    const { own } = await methodOf('POST', body({ '*/*': media }))
    expect([own['consumes'], own['body']]).toEqual([['*/*'], undefined])
  })

  it('C10 reads a body of any type with members as JSON, and answers of bytes pass as they are', async () => {
    const schema = { type: 'object', properties: { no: { type: 'string' } } }
    const bytes = {
      '200': { description: 'ok', content: { '*/*': { schema: { type: 'string', format: 'binary' } } } },
    }
    const { own } = await methodOf('POST', { ...body({ '*/*': { schema } }), responses: bytes })
    expect(own).toMatchObject({ body: { schema }, produces: ['*/*'] })
  })

  it.each([
    [{ type: 'integer' }, '{id:signed}'],
    [{ type: 'integer', minimum: -5 }, '{id:signed}'],
    [{ type: 'integer', minimum: 1 }, '{id:integer}'],
    [{ type: 'integer', minimum: 0, exclusiveMinimum: true }, '{id:integer}'],
    [{ type: 'integer', exclusiveMinimum: -1 }, '{id:integer}'],
  ])('C10, C3.3 takes numbers in a path as they are described: %j', async (schema, segment) => {
    const get = { parameters: [{ name: 'id', in: 'path', required: true, schema }], responses: OK }
    const { written } = await made(describing([], { paths: { '/orders/{id}': { get } } }))
    expect(written.actions[0]?.action).toBe(`orders/${segment}`)
  })

  it('C10, C4.11 lets a query parameter be empty that may be empty', async () => {
    const parameter = (name: string, schema: object, may = true) => ({
      ...{ name, in: 'query', schema, allowEmptyValue: may },
    })
    const { own, notes } = await methodOf('GET', {
      parameters: [
        parameter('state', { type: 'string', enum: ['open'], minLength: 1 }),
        ...[parameter('day', { type: 'string', format: 'date' }), parameter('full', { type: 'boolean' })],
        parameter('limit', { type: 'integer' }, false),
      ],
    })
    expect(own['parameters']).toEqual({
      ...{
        state: { type: 'string', enum: ['open', ''] },
        day: { type: 'string' },
        limit: { type: 'integer' },
      },
    })
    expect(notes).toContainEqual(expect.stringContaining('the query parameter full is not checked'))
  })
})

describe('media types of a configuration', () => {
  it.each([
    [['consumes', 'produces'], 'text', 1],
    [['consumes', 'produces'], '$ref', 1],
    [['consumes', 'produces'], 'text/csv, a/b', 1],
    [['consumes', 'produces'], 'text/csv; charset=utf-8', 0],
    [['consumes', 'produces'], '*/*', 0],
  ])('C7.1 check takes no media type without a slash: %j %s', async (keys, type, expected) => {
    const method = { scopes: { any: ['a'] }, ...Object.fromEntries(keys.map((key) => [key, [type]])) }
    const files = configFiles({
      'postern.yaml': JSON.stringify({
        actions: [{ level: 'business', area: 'a', action: 'b', methods: { PUT: method } }],
      }),
    })
    const { stderr } = await runVerb(['check', files('postern.yaml')])
    const told = stderr.match(/(?:consumes|produces)\[0\] {2}expected a media type or range/g) ?? []
    expect(told).toHaveLength(expected * keys.length)
  })
})

describe('references of a description', () => {
  it('C10 follows what is read alone: a reference of an example, an extension or an error may lead nowhere', async () => {
    const nowhere = ref('schemas/None')
    const schema = {
      type: 'object',
      example: nowhere,
      'x-note': nowhere,
      properties: { no: { default: nowhere } },
    }
    const content = { 'application/json': { schema, examples: { one: { $ref: 'missing.yaml#/one' } } } }
    const { own, notes } = await methodOf('POST', {
      ...body(content),
      responses: { ...OK, '400': nowhere },
      ...{ callbacks: { done: nowhere }, 'x-more': { $ref: 'http://127.0.0.1:9/x.yaml' } },
    })
    expect(own['body']).toEqual({ schema: { type: 'object', properties: { no: {} } } })
    expect(notes.filter((note) => note.includes('it refers to'))).toEqual([])
  })

  it('C10 leaves out the schema that a reference does not lead to, and tells where it stands', async () => {
    const files = configFiles({
      'api.yaml': `openapi: 3.0.3
info: { title: A, version: '1' }
paths:
  /orders:
    post:
      requestBody:
        content:
          application/json:
            schema:
              type: object
              properties:
                one: { $ref: '#/components/schemas/None' }
                two: { $ref: 'parts.yaml#/Missing' }
                three: { $ref: 'absent.yaml#/A' }
                four: { $ref: 'http://127.0.0.1:9/pet.yaml' }
                five: { $ref: 'parts.yaml#/Note' }
                six: { $ref: 'broken.yaml#/A' }
      responses: { '200': { description: ok } }
`,
      'parts.yaml': 'Note: { type: string, example: { $ref: none.yaml } }\n',
      'broken.yaml': 'A: [',
    })
    const from = files('api.yaml')
    const folder = join(dirname(from), 'own')
    const { stdout } = await runVerb(['init', folder, '--from', from, '--json', '--shared', '*'])
    const { notes } = JSON.parse(stdout) as { notes: readonly string[] }
    const after = 'what it stands for counts as not described'
    expect(notes.filter((note) => note.includes(after)).map((note) => note.replace(from, ''))).toEqual(
      [
        'it refers to #/components/schemas/None, and there is nothing of that name',
        'it refers to parts.yaml#/Missing, and there is nothing of that name',
        'it refers to absent.yaml#/A, and that file does not exist',
        'it refers to http://127.0.0.1:9/pet.yaml, and nothing is fetched: save that file, and refer to the copy',
        'it refers to broken.yaml#/A, and that file is neither YAML nor JSON',
      ].map(
        (why) => expect.stringMatching(new RegExp(`^:[0-9]+  ${RegExp.escape(why)}: ${after}$`)) as unknown,
      ),
    )
    const { actions, schemas } = parse(readFileSync(join(folder, 'postern.yaml'), 'utf8')) as Written
    expect(schemas).toEqual({ Note: { type: 'string' } })
    expect(actions[0]?.methods['POST']).toMatchObject({
      body: {
        schema: {
          properties: {
            ...{ one: {}, two: {}, three: {}, four: {}, six: {} },
            five: { $ref: '#/schemas/Note' },
          },
        },
      },
    })
    expect(await runVerb(['check', join(folder, 'postern.yaml')])).toMatchObject({ code: 0 })
  })
})

describe('what postern init tells of a large description', () => {
  const many = (count: number) =>
    describing([], {
      paths: Object.fromEntries(
        Array.from({ length: count }, (_, at) => {
          const schema = { type: 'object', not: {}, ...(at % 2 === 0 && { oneOf: [{}, {}] }) }
          return [
            `/orders-${at}`,
            { put: { ...body({ 'application/json': { schema } }), security: [], responses: OK } },
          ]
        }),
      ),
      info: { title: 'A' },
    })

  it('C10 tells one line for each kind, with a count; each of them with --verbose', async () => {
    const from = configFiles({ 'api.yaml': many(40) })('api.yaml')
    const init = (name: string, ...options: readonly string[]) =>
      runVerb(['init', join(dirname(from), name), '--from', from, '--shared', '*', ...options])
    const { stderr } = await init('short')
    const told = stderr.slice(0, stderr.indexOf('\n\n'))
    expect(told.replaceAll(from, 'api.yaml').split('\n')).toEqual([
      'Not in the file, or yours to decide (--verbose: each of them):',
      expect.stringMatching(/^api\.yaml {2}no path, query or header names a business/),
      'api.yaml:1  breaks a rule of OpenAPI: "version" is missing',
      'api.yaml:1  keywords of schemas are left out: not (40), oneOf (20) [40 times, first here]',
      'api.yaml:1  anybody may call these; here they take a token [40 times, first here]',
    ])
    const { stderr: verbose } = await init('long', '--verbose')
    expect(verbose.match(/anybody may call it; here it takes a token/g)).toHaveLength(40)
    expect(
      verbose.match(/PUT \/orders-7: of the schema of the body these are left out: not\n/g),
    ).toHaveLength(1)
  })
})
