import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { configurationText } from '../../../src/cli/init/configuration-text.ts'
import { openDescription } from '../../../src/extensions/from-openapi/described.ts'
import { withoutBusiness } from '../../../src/extensions/from-openapi/operations-table.ts'
import { hashSecret } from '../../../src/identity/directory/hashing/hasher.ts'
import { reportText } from '../../../src/base/config/problems.ts'
import { configFiles } from '../../support/config-files.ts'
import { sized } from '../../support/long.ts'
import { describing } from './described-service.ts'
import { SETTINGS } from '../../support/settings.ts'

const PASSWORD = `$argon2id$v=19$m=19456,t=2,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`

/** What `check` says of the file that is made of a description; undefined if nothing of it can be served. */
async function problemsOf(description: unknown): Promise<string | undefined> {
  const from = configFiles({ 'api.json': JSON.stringify(description) })('api.json')
  const open = openDescription(from, [], 'http://127.0.0.1:9000')
  let described
  try {
    const none = { only: [], shared: [], notBusiness: [], fund: undefined, places: undefined }
    described = open.described(none)
  } catch (thrown) {
    if ((thrown as Error).name === 'DescriptionError') return undefined
    throw thrown
  }
  const { service, operations } = described
  expect(withoutBusiness(operations).length).toBeLessThanOrEqual(operations.length)
  const file = join(dirname(from), 'postern.yaml')
  const text = configurationText({
    ...{ upstream: open.upstream, client: 'first', user: 'first', service, values: {} },
    ...{ businesses: [{ code: 'ACME', name: 'Acme' }], data: join(dirname(from), 'data') },
    ...{
      added: [],
      agreement: '2026-01-15',
      subject: 'a',
      secretHash: hashSecret('x'),
      passwordHash: PASSWORD,
    },
  })
  writeFileSync(file, text)
  const problems = await SETTINGS.check(file, {})
  return problems.failed ? reportText(problems) : ''
}

const NAMES = [
  ...['id', 'ID', 'x-y', 'x_y', 'tenantId', 'business', 'fundCode', '1st', 'ä', 'query', 'body', 'requestId'],
  ...['constructor', '__proto__', 'subject', 'filter[name]', 'a.b', '$top', 'path...', 'client'],
] as const

const name = fc.constantFrom(...NAMES)

const segment = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('orders', 'Orders', 'open', 'shut', 'tenants', 'v1', 'api') },
  { weight: 2, arbitrary: name.map((each) => `{${each}}`) },
  fc.constantFrom(
    'a b',
    'a-b',
    'ü',
    '..',
    '',
    '%7B',
    ':go',
    'x;y',
    'orders({id})',
    '{id}.json',
    '{id}-{x-y}',
    "it's",
  ),
)

const path = fc.array(segment, { minLength: 0, maxLength: 4 }).map((segments) => `/${segments.join('/')}`)

const scalar = fc.oneof(
  fc.record(
    {
      type: fc.constantFrom('string', 'integer', 'number', 'boolean', ['string', 'null'], 'file', 'any'),
      format: fc.constantFrom('uuid', 'date', 'binary', 'int64', 'odd'),
      enum: fc.constantFrom(['open', 'shut'], [1, -2], [], [null], [{ a: 1 }], ['a b']),
      pattern: fc.constantFrom('^[a-z]+$', '[', '^(?!a)b$', '\\d{2}', '^a|b$'),
      minimum: fc.constantFrom(0, -3, '1'),
      maxLength: fc.constantFrom(3, -1, 1.5, 'x'),
      minLength: fc.constantFrom(0, 9),
      nullable: fc.boolean(),
      default: fc.constantFrom('x', 1, null),
      const: fc.constantFrom('open', 4, { a: 1 }, [1]),
    },
    { requiredKeys: [] },
  ),
  fc
    .constantFrom('#/components/schemas/Order', '#/components/schemas/None', 'other.yaml#/A')
    .map((to) => ({ $ref: to })),
)

const schema: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.record(
      {
        type: fc.constantFrom('object', ['object', 'null']),
        properties: fc.dictionary(fc.constantFrom('no', 'kind', '__proto__', 'a/b', 'ä'), tie('schema'), {
          maxKeys: 3,
        }),
        required: fc.constantFrom(['no'], ['no', 'no'], ['kind', 'x'], []),
        additionalProperties: fc.oneof(fc.boolean(), tie('schema')),
      },
      { requiredKeys: [] },
    ),
    fc.record({ type: fc.constant('array'), items: tie('schema') }, { requiredKeys: ['type'] }),
    fc.array(tie('schema'), { maxLength: 2 }).map((allOf) => ({ allOf })),
    fc.array(tie('schema'), { maxLength: 2 }).map((oneOf) => ({ oneOf })),
  ),
})).schema

const content = fc.dictionary(
  fc.constantFrom(
    ...['application/json', 'application/merge-patch+json', 'application/xml', '*/*', 'json', 'text/csv'],
    ...[
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'application/json; charset=utf-8',
      'a b/c',
    ],
  ),
  fc.record({ schema }, { requiredKeys: [] }),
  { maxKeys: 3 },
)

const parameter = fc.record(
  {
    name: fc.oneof(name, fc.constantFrom('Limit', 'limit', 'a b', '[]', 'page=1', 'Host', 'Content-Type')),
    in: fc.constantFrom('query', 'header', 'query', 'path'),
    schema: scalar,
    required: fc.boolean(),
    allowEmptyValue: fc.boolean(),
    description: fc.constantFrom('Some\n\nwords', '<b>', ''),
  },
  { requiredKeys: ['name', 'in'] },
)

const operation = fc.record(
  {
    tags: fc.constantFrom(['Orders'], ['orders'], ['Öl & Gas'], ['  '], ['1']),
    summary: fc.constantFrom('See them', '', 'x'.repeat(500), 'a: b # c'),
    deprecated: fc.boolean(),
    parameters: fc.array(parameter, { maxLength: 3 }),
    requestBody: fc.record({ content, required: fc.boolean() }, { requiredKeys: ['content'] }),
    responses: fc.record({ '200': fc.record({ content }, { requiredKeys: [] }) }),
    security: fc.constantFrom(
      [],
      [{ login: ['read'] }],
      [{ login: ['read', 'write'] }, { login: ['openid'] }],
    ),
  },
  { requiredKeys: ['responses'] },
)

const description = fc.record(
  {
    openapi: fc.constantFrom('3.0.3', '3.1.0'),
    info: fc.constant({ title: 'A', version: '1' }),
    paths: fc.dictionary(
      path,
      fc.dictionary(
        fc.constantFrom('get', 'post', 'put', 'patch', 'delete', 'options', 'trace', 'head'),
        operation,
        {
          minKeys: 1,
          maxKeys: 3,
        },
      ),
      { minKeys: 1, maxKeys: 6 },
    ),
    servers: fc.constantFrom(
      ...[
        [{ url: 'https://a.example/{version}/x' }],
        [{ url: '/{stage}' }],
        [{ url: 'https://{host}' }],
        [{}],
      ],
      [{ url: 'https://a.example/{v}', variables: { v: { default: 'a b' } } }],
    ),
    components: fc.record({
      schemas: fc.record({ Order: schema }),
      securitySchemes: fc.constant({
        login: {
          type: 'oauth2',
          flows: {
            clientCredentials: { tokenUrl: '/t', scopes: { read: 'Read', 'wri te': 'x', 'target:x': '' } },
          },
        },
      }),
    }),
  },
  { requiredKeys: ['openapi', 'info', 'paths'] },
)

describe('postern init --from', () => {
  it('C10 writes what check takes, whatever the description has', async () => {
    await fc.assert(
      fc.asyncProperty(description, async (each) => {
        expect((await problemsOf(each)) ?? '').toBe('')
      }),
      { numRuns: sized(15, 25) },
    )
  })

  it.each([
    ['two methods of one path with parameters of different names', ['/a/{id}/b/{x}', 'PUT /a/{no}/b/{y}']],
    ['paths that differ in case alone', ['/orders/{id}', '/Orders/{ID}']],
    ['two parameters that have one name in a configuration', ['/a/{x-y}/{x_y}']],
    ['words beside a parameter', ['/a/open', '/a/{id}', '/a-b/{id}', '/a b/{id}']],
    ['a code alone', ['/{tenantId}', '/', '/{id}']],
  ])('C10 writes what check takes: %s', async (_what, paths) => {
    expect(await problemsOf(JSON.parse(describing(paths)))).toBe('')
  })

  it.each([
    [{ url: 'https://a.example/{version}/x' }, 'https://a.example/x'],
    [{ url: '/{stage}/v2' }, 'http://127.0.0.1:9000/v2'],
    [{ url: 'https://{host}/v2' }, 'http://127.0.0.1:9000'],
  ])('C10 leaves a variable without a value out of the address: %j', async (server, upstream) => {
    const from = configFiles({ 'api.json': describing(['/a'], { servers: [server] }) })('api.json')
    const open = openDescription(from, [], 'http://127.0.0.1:9000')
    expect(open.upstream).toBe(upstream)
    expect(await problemsOf(JSON.parse(describing(['/a'], { servers: [server] })))).toBe('')
  })
})
