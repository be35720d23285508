import { describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { explain } from '../support/explained.ts'
import { replacedService } from '../support/replaced-service.ts'
import { bearer, expectFault, send } from '../support/requests.ts'
import { startUpstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'

type Get = NonNullable<Configuration['actions'][number]['methods']['GET']>

const LIMIT = { limit: { type: 'integer', minimum: 1, maximum: 50, default: 10 } } as const

/** Changes the operations of `fund-list` (GET) and `fund-create` (POST). */
const withOperations =
  (own: Partial<Get>) =>
  (loaded: Configuration): Configuration => ({
    ...loaded,
    actions: loaded.actions.map((action) => {
      const { GET, POST } = action.methods
      if (action.action === 'fund-list' && GET)
        return { ...action, methods: { ...action.methods, GET: { ...GET, ...own } } }
      if (action.action === 'fund-create' && POST)
        return { ...action, methods: { ...action.methods, POST: { ...POST, ...own } } }
      return action
    }),
  })

const replace = replacedService({ keeps: 'nothing' })

async function serve(own: Partial<Get>, change: (loaded: Configuration) => Configuration = (same) => same) {
  const upstream = await startUpstream()
  const gateway = await replace({
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: (loaded) => change(withOperations(own)(loaded)),
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const call = (query: string) => send(gateway, { target: LIST + query, headers: bearer(access_token) })
  return { gateway, upstream, call, token: access_token }
}

describe('C4.11 declared parameters of the query', () => {
  it('C4.11 a value that fits goes on with all else of the query, byte for byte', async () => {
    const { upstream, call } = await serve({ parameters: LIMIT })
    for (const query of ['?limit=50', '', '?other=1&limit=7&x=%41', '?%6cimit=1', '?limited=99', '?a=limit'])
      expect((await call(query)).status).toBe(200)
    expect(upstream.requests.map(({ target }) => target.slice(LIST.length))).toEqual([
      ...['?limit=50', '', '?other=1&limit=7&x=%41', '?%6cimit=1', '?limited=99', '?a=limit'],
    ])
  })

  it.each([
    [
      'another shape',
      ['?limit=ten', '?limit=', '?limit', '?limit=1.5', '?limit=+5', '?limit=05', '?limit=%zz'],
    ],
    ['an exponent, which some read as the digits before it', ['?limit=5000e-2', '?limit=1e1', '?limit=1E0']],
    [
      'a value that the schema refuses',
      ['?limit=51', '?limit=0', '?limit=-1', '?limit=99999999999999999999'],
    ],
    ['a repetition', ['?limit=1&limit=1', '?limit=1&limit=999', '?limit=1;limit=2']],
    [
      'another spelling, by itself or beside it',
      [
        ...['?Limit=999', '?limit=1&LIMIT=999', '?limit%00=999', '?limit%00x=1', '?limit[]=1', '?limit[a]=1'],
        ...[
          '?limit.x=1',
          '?%20limit=9',
          '?limit%20=9',
          '?lim%0dit=9',
          '??limit=9',
          '?[limit=9',
          '?limi%74%20=9',
        ],
        ...[
          '?%256cimit=999',
          '?%EF%BD%8Cimit=999',
          '?lim%69t%=9',
          '?l%C4%B1mit=1&LIM%49T=9',
          '?L%C4%B0M%C4%B0T=9',
        ],
      ],
    ],
    [
      'one that a service would find after another decoding',
      [
        '?a=1%26limit=999',
        '?a=1%2526limit%253D999',
        '?a=1%3Blimit=9',
        '?limit=1%26limit=9',
        '?a=1%EF%BC%86limit=9',
      ],
    ],
    ['a separator that not all split at', ['?a=1;limit=5', '?limit=5;a=1']],
  ])('C4.11, T1.7 %s is 400 that names the parameter, and nothing is sent', async (_what, queries) => {
    const { upstream, call } = await serve({ parameters: LIMIT })
    for (const query of queries) {
      const answer = await call(query)
      expectFault(answer, 'query_invalid')
      expect(answer.body).toMatch(/limit|name of a parameter/)
    }
    expect(upstream.requests).toEqual([])
  })

  it('C4.11 the Message says what the parameter must be', async () => {
    const { call } = await serve({
      parameters: { ...LIMIT, state: { enum: ['open', 'closed'], required: true }, all: { type: 'boolean' } },
    })
    const messageOf = async (query: string): Promise<string> =>
      (JSON.parse((await call(query)).body) as { Errors: [{ Message: string }] }).Errors[0].Message
    expect(await messageOf('?state=open&limit=51')).toContain('Parameter limit: must be at most 50.')
    expect(await messageOf('?state=x')).toContain('Parameter state: must be "open" or "closed".')
    expect(await messageOf('')).toContain('Parameter state: is required.')
    expect(await messageOf('?state=open&all=yes')).toContain('Parameter all: must be true or false.')
    expect(await messageOf('?state=open&limit=a')).toContain(
      'Parameter limit: must be a whole number in digits.',
    )
  })

  it('C4.11 is asked behind Accept and before the body', async () => {
    const { gateway, token } = await serve({ parameters: LIMIT })
    const post = (headers: Record<string, string>, body = '{') =>
      send(gateway, {
        ...{ method: 'POST', target: `${CREATE}?limit=0`, body },
        headers: { ...bearer(token), 'Content-Type': 'application/json', ...headers },
      })
    expectFault(await post({}), 'query_invalid')
    expectFault(await post({ 'Content-Type': 'text/plain' }), 'query_invalid')
    expectFault(await post({ Accept: 'image/png' }), 'not_acceptable')
  })

  it('C8.7 a parameter stands in path, query and header; its default where the call has none', async () => {
    const { upstream, call } = await serve({
      parameters: { ...LIMIT, $filter: { type: 'string', default: 'all' } },
      upstream: {
        path: '/top/{query/limit}/{query/$filter}',
        query: { size: '{query/limit}' },
        headers: { 'X-Limit': '{query/limit}' },
      },
    })
    await call('?limit=20&%24filter=a%20b')
    await call('')
    expect(upstream.requests.map(({ target, headers }) => [target, headers['x-limit']?.join()])).toEqual([
      ['/top/20/a%20b?limit=20&%24filter=a%20b&size=20', '20'],
      ['/top/10/all?size=10', '10'],
    ])
  })

  it('C8.7 the digits of a number arrive as they were written', async () => {
    const { upstream, call } = await serve({
      parameters: { at: { type: 'number', required: true } },
      upstream: { path: '/at/{query/at}', queryOnly: [] },
    })
    for (const at of ['1.50', '12345678901234567890.12', '-0.5'])
      expect((await call(`?at=${at}`)).status).toBe(200)
    expect(upstream.requests.map(({ target }) => target)).toEqual([
      ...['/at/1.50', '/at/12345678901234567890.12', '/at/-0.5'],
    ])
  })

  it('C8.7 `query` and `queryOnly` take the client’s pair out', async () => {
    const { upstream, call } = await serve({
      parameters: LIMIT,
      upstream: { query: { limit: '{query/limit}' }, queryOnly: ['sort'] },
    })
    expect((await call('?sort=a&x=1&limit=5')).status).toBe(200)
    expect(upstream.requests[0]?.target).toBe(`${LIST}?sort=a&limit=5`)
  })

  it('C8.7 a value that cannot stand in a path is 400, and nothing is sent', async () => {
    const { upstream, call } = await serve({
      parameters: { name: { type: 'string', required: true } },
      upstream: { path: '/named/{query/name}' },
    })
    for (const name of ['..', '.', 'a%2Fb', 'a%5Cb', '%2e%2e', 'a%00', 'a%253b', ''])
      expectFault(await call(`?name=${name}`), 'unsendable_argument')
    expect(upstream.requests).toEqual([])
  })

  it('C4.11 nested names are several parameters', async () => {
    const { call } = await serve({
      parameters: { 'page[size]': { type: 'integer', maximum: 9 }, 'page[number]': { type: 'integer' } },
    })
    expect((await call('?page[size]=9&page[number]=3')).status).toBe(200)
    expect((await call('?page%5Bsize%5D=9')).status).toBe(200)
    for (const query of ['?page[size]=10', '?page[Size]=1', '?page=1', '?page[other]=1', '?page[size][]=1'])
      expectFault(await call(query), 'query_invalid')
  })

  it('C4.11 a report-only area refuses nothing, and tells what it would have refused', async () => {
    const { upstream, call } = await serve({ parameters: LIMIT }, (loaded) => ({
      ...loaded,
      areas: { ...loaded.areas, 'fund-data': { ...loaded.areas['fund-data']!, mode: 'report-only' } },
    }))
    expect((await call('?limit=51')).status).toBe(200)
    expect(upstream.requests[0]?.headers['x-postern-decision']).toEqual([
      'would-refuse; reason=query_invalid',
    ])
  })

  it('C14.2 explain says which parameters are declared, and what is wrong', async () => {
    const { gateway, token } = await serve({ parameters: LIMIT })
    const rowOf = async (query: string) => {
      const explained = await explain(gateway, { target: LIST + query, headers: bearer(token) })
      return explained.checks.find(({ title }) => title.startsWith('declared parameters'))
    }
    expect(await rowOf('?limit=5')).toMatchObject({ verdict: 'passed', facts: { declared: ['limit'] } })
    expect(await rowOf('?limit=51')).toMatchObject({ verdict: 'failed', reason: 'query_invalid' })
    expect((await rowOf('?limit=51'))?.words).toContain('Parameter limit: must be at most 50.')
  })
})

it('C11.3.1 the description lists declared parameters, with the values of examples', async () => {
  const { gateway } = await serve({
    parameters: { ...LIMIT, state: { enum: ['open', 'a b'], required: true, description: 'Which <ones>' } },
    examples: { few: { query: { limit: 2, state: 'a b' } } },
  })
  const { body } = await send(gateway, { target: '/.well-known/openapi.json' })
  const document = JSON.parse(body) as {
    paths: Record<string, Record<string, { parameters: { in?: string }[]; responses: object }>>
  }
  const get = document.paths['/api/1.0/b/{businessCode}/fund-data/fund-list']?.['get']
  expect(get?.parameters.filter((each) => each.in === 'query')).toEqual([
    {
      name: 'limit',
      in: 'query',
      schema: { type: 'integer', minimum: 1, maximum: 50, default: 10 },
      examples: { few: { value: 2 } },
    },
    {
      name: 'state',
      in: 'query',
      description: 'Which &lt;ones>',
      required: true,
      schema: { type: 'string', enum: ['open', 'a b'] },
      examples: { few: { value: 'a b' } },
    },
  ])
  expect(Object.keys(get?.responses ?? {})).toContain('400')
})

it('C4.11 a parameter may be of a schema with a name, with `required` or a default beside the reference', async () => {
  const { upstream, call } = await serve(
    {
      parameters: {
        first: { $ref: '#/schemas/Size', required: true },
        second: { $ref: '#/schemas/Size', default: 3 },
      },
      upstream: { path: '/sizes/{query/first}/{query/second}', queryOnly: [] },
    },
    (loaded) => ({ ...loaded, schemas: { Size: { type: 'integer', maximum: 9 } } }),
  )
  expect((await call('?first=9')).status).toBe(200)
  for (const query of ['', '?first=10', '?first=1&second=10']) expectFault(await call(query), 'query_invalid')
  expect(upstream.requests.map(({ target }) => target)).toEqual(['/sizes/9/3'])
})
