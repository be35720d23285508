import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { urlOfNobody } from '../support/free-port.ts'
import { replacedOver } from '../support/over-module.ts'
import { bearer, envelopeOf, expectFault, send } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { answerJson, openUpstream, type Upstream, type UpstreamBehaviour } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'
import { FAULTS } from '../../src/base/kernel/fault-table.ts'

/** C8.4a: what a client is told of a change that the service may have made. */

const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'
const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const BODY = JSON.stringify({ Code: 'NEW1', Name: 'New' })
const JSON_TYPE = { 'Content-Type': 'application/json' }
const ANY = {}
const XML = { Accept: 'application/xml' }

const over = replacedOver()
let upstream: Upstream
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  upstream = await openUpstream()
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: (loaded) => {
      const { funds } = loaded.backends
      if (funds?.kind !== 'http') throw new TypeError('config/upstream.yaml has an http backend "funds"')
      const timeouts = { ...funds.timeouts, firstByte: 300 }
      const { limits } = loaded.server
      return {
        ...loaded,
        server: { ...loaded.server, limits: { ...limits, answer: 1000 } },
        backends: { ...loaded.backends, funds: { ...funds, timeouts } },
      }
    },
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})

const create = (headers: Record<string, string> = {}) =>
  send(gateway, {
    method: 'POST',
    target: CREATE,
    body: BODY,
    headers: { ...bearer(token), ...JSON_TYPE, ...headers },
  })
const read = () => send(gateway, { target: LIST, headers: bearer(token) })
const lineOf = (id: string | undefined) =>
  gateway.log().find(({ requestId, event }) => requestId === id && event === 'call')

const json = (body: string): UpstreamBehaviour => {
  return (connection) => connection.respond({ status: 201, headers: JSON_TYPE, body })
}
const status = (given: number, headers: Record<string, string> = {}): UpstreamBehaviour => {
  return (connection) => connection.respond({ status: given, headers })
}

/** How the service answers a change, what the log tells of it, and what the client accepts. */
const UNKNOWN: readonly (readonly [string, UpstreamBehaviour, string, Record<string, string>])[] = [
  ['what is no JSON', json('{"a":'), 'upstream_broken', ANY],
  [
    'a page',
    (it) => it.respond({ headers: { 'Content-Type': 'text/html' }, body: '<p>' }),
    'upstream_broken',
    ANY,
  ],
  [
    'a coding',
    (it) => it.respond({ headers: { ...JSON_TYPE, 'Content-Encoding': 'gzip' }, body: 'x' }),
    'upstream_broken',
    ANY,
  ],
  ['what XML cannot say', json('{"Name":"a\\u0000b"}'), 'answer_unconvertible', XML],
  ['more than can be converted', json(`{"a":"${'x'.repeat(2000)}"}`), 'answer_too_large', XML],
  ['a part', status(206, JSON_TYPE), 'upstream_broken', ANY],
  ['where the result is', status(303, { Location: '/result' }), 'upstream_broken', ANY],
  ['500', status(500, { 'Retry-After': '7' }), 'upstream_broken', ANY],
  ['502', status(502, { 'Retry-After': '7' }), 'upstream_unavailable', ANY],
  ['504', status(504), 'upstream_unavailable', ANY],
  ['what is no HTTP', (it) => it.raw('nonsense\r\n\r\n'), 'MalformedResponse', ANY],
  ['nothing, and closes', (it) => it.reset(), 'upstream_unreachable', ANY],
  [
    'a part of a body, and closes',
    (it) =>
      it.socket.end(
        'HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"a"',
      ),
    'upstream_unreachable',
    ANY,
  ],
  ['nothing', () => undefined, 'upstream_timeout', ANY],
]

describe('C8.4a a change that the service may have made', () => {
  it.each(UNKNOWN)(
    'C8.4a it answers %s: 500 of its own, without Retry-After',
    async (_what, behaviour, stands, more) => {
      upstream.behave(behaviour)
      const before = upstream.requests.length
      const answer = await create(more)
      const format = more === XML ? 'xml' : 'json'
      expectFault(answer, 'outcome_unknown', { format })
      expect(answer.body).toContain('The change may have been made')
      expect(answer.headers).not.toHaveProperty('retry-after')
      expect(upstream.requests.length - before).toBe(1)
      const line = lineOf(answer.headers['x-request-id'])
      expect(line).toMatchObject({ status: 500, level: 'error', reason: 'outcome_unknown' })
      expect(JSON.stringify(line)).toContain(stands)
    },
  )

  it('C2 the code is one of its own, in JSON and in XML', () => {
    const { wire, text, status: told } = FAULTS.outcome_unknown
    expect([wire, told]).toEqual(['API_OUTCOME_UNKNOWN', 500])
    expect(envelopeOf('xml', wire, text)).toContain('<Code>API_OUTCOME_UNKNOWN</Code>')
  })
})

describe('C8.4a where nothing was changed, the call may be sent again', () => {
  it.each([
    ['503', status(503, { 'Retry-After': '7' }), 'upstream_unavailable', '7'],
    ['501', status(501), 'upstream_broken', undefined],
    ['401', status(401), 'upstream_broken', undefined],
    ['403', status(403), 'upstream_forbade', undefined],
  ] as const)('C8.4 the service answers %s', async (_given, behaviour, code, retryAfter) => {
    upstream.behave(behaviour)
    const answer = await create()
    expectFault(answer, code)
    expect(answer.headers['retry-after']).toBe(retryAfter)
  })

  it('C8.4 the service cannot be reached', async () => {
    const { ask } = await over('{ request: () => undefined }', { under: { target: await urlOfNobody() } })
    const answer = await ask({ method: 'POST', target: CREATE, body: BODY, headers: JSON_TYPE })
    expectFault(answer, 'upstream_unreachable')
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
  })

  it('C8.4 a read is told as before', async () => {
    upstream.behave(json('{"a":'))
    expectFault(await read(), 'upstream_broken')
    upstream.behave(status(504))
    const answer = await read()
    expectFault(answer, 'upstream_unavailable')
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
  })
})

describe('C8.4a modules', () => {
  const post = { method: 'POST', target: CREATE, body: BODY, headers: JSON_TYPE }

  it.each([
    ['throws after the change', `{ response: () => { throw new Error('x') } }`],
    ['answers what is no answer', '{ response: () => 1 }'],
  ])('C8.4a, C8.9 one that %s', async (_what, source) => {
    const { ask } = await over(source, { behaviour: answerJson({}, { status: 201 }) })
    expectFault(await ask(post), 'outcome_unknown')
  })

  it('C8.4a, C8.9 one whose second request is refused, after the first was carried out', async () => {
    let count = 0
    const { ask } = await over(
      `{ answer: async ({ forward }) => { await forward(); throw await forward().then((a) => a.json()) } }`,
      {
        behaviour: (connection) => {
          count += 1
          if (count === 1) answerJson({}, { status: 201 })(connection)
          else connection.respond({ status: 503 })
        },
      },
    )
    expectFault(await ask(post), 'outcome_unknown')
  })
})

describe('C11.3.3 the description of the API', () => {
  it('C11.3.3 lists it for changes, and for no read', async () => {
    const answer = await send(gateway, { target: '/.well-known/openapi.json' })
    const { paths } = JSON.parse(answer.body) as {
      readonly paths: Record<string, Record<string, { readonly responses: Record<string, unknown> }>>
    }
    const resolved = (path: string, method: string): string => {
      const found = Object.entries(paths).find(([each]) => each.endsWith(path))?.[1][method]
      return JSON.stringify(follow(JSON.parse(answer.body), found?.responses['500']))
    }
    expect(resolved('/fund-data/fund-create', 'post')).toContain('API_OUTCOME_UNKNOWN')
    expect(resolved('/fund-data/fund-list', 'get')).toContain('API_INTERNAL_ERROR')
    expect(resolved('/fund-data/fund-list', 'get')).not.toContain('API_OUTCOME_UNKNOWN')
  })
})

/** A node of the document with its references replaced. */
function follow(document: unknown, node: unknown): unknown {
  if (typeof node !== 'object' || node === null) return node
  if ('$ref' in node && typeof node.$ref === 'string') {
    const steps = node.$ref.slice('#/'.length).split('/')
    return follow(
      document,
      steps.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], document),
    )
  }
  if (Array.isArray(node)) return node.map((each: unknown) => follow(document, each))
  return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, follow(document, value)]))
}
