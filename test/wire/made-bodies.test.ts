import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { withActions } from '../support/made-bodies.ts'
import { bearer, send, type Sent } from '../support/requests.ts'
import type { RawResponse } from '../support/raw-http.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type ReceivedRequest, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const JSON_ = 'application/json'
const XML = 'application/xml'
const FORM = 'application/x-www-form-urlencoded'

const READ = 'scopes: { any: [fund.read] }'
const OPEN = `${READ}, body: { required: false }`

const ACTIONS = {
  typed: `{ POST: { ${OPEN}, upstream: { body: { template: {
    as: '{body/n}', text: 'n is {business}', object: '{body/o}', none: '{body/absent}', list: ['{body/absent}', '{body/l}', 1.50],
    "10": 1, "9": 2, __proto__: '{business}', nothing: null, yes: true, braces: '{{x}}' } } } } }`,
  setting: `{ POST: { ${OPEN}, upstream: { body: { set: { /data/company: '{business}', /no: 7 } } } } }`,
  requiring: `{ POST: { ${OPEN}, upstream: { body: { require: { /company: '{business}' } } } } }`,
  asked: `{ GET: { ${READ}, upstream: { method: POST, body: { template: { query: 'funds of {business}', id: '{requestId}' } } } } }`,
  named: `{ POST: { ${READ}, body: { schema: { type: object, required: [Id], properties: { Id: { type: string } } } }, upstream: { path: '/v2/{body/Id}', query: { of: '{body/Id}' }, headers: { X-Id: '{body/Id}' } } } }`,
  typing: `{ POST: { ${OPEN}, upstream: { body: { type: 'application/json-rpc' } } } }`,
}

let gateway: StartedPostern
let upstream: Upstream
let token: string

beforeAll(async () => {
  upstream = await openUpstream()
  gateway = await startPostern({
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: withActions(ACTIONS),
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await gateway.close()
  await upstream.close()
})

interface Outcome {
  readonly answer: RawResponse
  /** What the upstream got. */
  readonly sent: readonly ReceivedRequest[]
  readonly bodies: readonly string[]
}

async function call(action: string, body: string, type = JSON_, more: Partial<Sent> = {}): Promise<Outcome> {
  const before = upstream.requests.length
  const answer = await send(gateway, {
    method: 'POST',
    target: `/api/1.0/b/ACME/fund-data/${action}`,
    body,
    headers: { ...bearer(token), ...(body === '' ? {} : { 'Content-Type': type }) },
    ...more,
  })
  const sent = upstream.requests.slice(before)
  return { answer, sent, bodies: sent.map(({ body: bytes }) => bytes.toString()) }
}

const bodyOf = async (...given: Parameters<typeof call>): Promise<string | undefined> =>
  (await call(...given)).bodies[0]

const refusal = async (...given: Parameters<typeof call>): Promise<number> => {
  const { answer, sent } = await call(...given)
  expect(sent).toEqual([])
  return answer.status
}

describe('C8.7 the body is made by a template', () => {
  it('a leaf that is one placeholder keeps its type and its digits, and what is absent is left out', async () => {
    expect(await bodyOf('typed', '{"n":1.50,"o":{"a":[null,12345678901234567890]},"l":[1e5]}')).toBe(
      '{"as":1.50,"text":"n is ACME","object":{"a":[null,12345678901234567890]},"list":[[1e5],1.50],"10":1,"9":2,"__proto__":"ACME","nothing":null,"yes":true,"braces":"{x}"}',
    )
  })

  it('a value is never parsed again', async () => {
    const hostile = '{"n":"{business} ${x} {{y}} \\" \\n ]]> \\u2028"}'
    expect(JSON.parse((await bodyOf('typed', hostile)) ?? '')).toMatchObject({
      as: '{business} ${x} {{y}} " \n ]]> \u2028',
    })
  })

  it('a GET is sent as a POST with a body', async () => {
    const { sent, bodies } = await call('asked', '', JSON_, { method: 'GET' })
    expect(sent[0]).toMatchObject({ method: 'POST', headers: { 'content-type': [JSON_] } })
    expect(JSON.parse(bodies[0] ?? '')).toEqual({
      query: 'funds of ACME',
      id: sent[0]?.headers['x-request-id']?.[0],
    })
  })

  it('the type is that of the configuration, and the client’s body goes on byte for byte', async () => {
    const { sent, bodies } = await call('typing', ' {"a" : 1.0}')
    expect(bodies).toEqual([' {"a" : 1.0}'])
    expect(sent[0]?.headers['content-type']).toEqual(['application/json-rpc'])
  })
})

describe('C8.7 members of the client’s body are set', () => {
  it.each([
    ['{"a":1.0,"data":{"x":1}}', '{"a":1.0,"data":{"x":1,"company":"ACME"},"no":7}'],
    ['{}', '{"data":{"company":"ACME"},"no":7}'],
    ['', '{"data":{"company":"ACME"},"no":7}'],
    [
      '{"data":{"company":"X","Com-pany":"Y","COM_PANY":[1],"company[x]":2}}',
      '{"data":{"company":"ACME"},"no":7}',
    ],
    ['{"No":1,"Data":{"n":1}}', '{"Data":{"n":1,"company":"ACME"},"no":7}'],
    [
      '{"__proto__":{"company":"X"},"data":{}}',
      '{"__proto__":{"company":"X"},"data":{"company":"ACME"},"no":7}',
    ],
  ])('%s', async (given, sent) => {
    expect(await bodyOf('setting', given)).toBe(sent)
  })

  it.each([
    '{"data":{},"Data":{}}',
    '{"data":[]}',
    '{"data":"x"}',
    '{"data":null}',
    '[]',
    '"x"',
    '{"data":{},"data":{}}',
  ])('%s is 400, and nothing is sent', async (given) => {
    expect(await refusal('setting', given)).toBe(400)
  })
})

describe('C8.7 members of the client’s body are required', () => {
  it.each(['{"company":"ACME"}', ' { "a":1.0, "company" : "\\u0041CME" }'])(
    '%s goes on byte for byte',
    async (given) => {
      expect(await bodyOf('requiring', given)).toBe(given)
    },
  )

  it.each([
    '{"company":"HOOLI"}',
    '{"Company":"ACME"}',
    '{"company":"ACME","Company":"HOOLI"}',
    '{"company":"ACME","com_pany":"HOOLI"}',
    '{"company":"ACME","company":"HOOLI"}',
    '{"company":"ACME","comp\\u0061ny":"HOOLI"}',
    '{"company":"ACME","\\uff43ompany":"HOOLI"}',
    '{"company":"ACME","company\\u0000x":"HOOLI"}',
    '{"company":["ACME"]}',
    '{"company":{"x":"ACME"}}',
    '{"company":null}',
    '{}',
    '[{"company":"ACME"}]',
    '',
  ])('%s is 400, and nothing is sent', async (given) => {
    expect(await refusal('requiring', given)).toBe(400)
  })
})

describe('C8.7 path, query and headers name parts of the client’s body', () => {
  it('they are sent, and the body goes on', async () => {
    const { sent, bodies } = await call('named', '{"Id":"a b"}')
    expect(sent).toMatchObject([{ target: '/v2/a%20b?of=a%20b' }].slice(1))
    expect(bodies).toEqual([])
    const plain = await call('named', '{"Id":"7"}')
    expect(plain.sent).toMatchObject([{ target: '/v2/7?of=7', headers: { 'x-id': ['7'] } }])
    expect(plain.bodies).toEqual(['{"Id":"7"}'])
  })

  it.each([JSON.stringify({ Id: '../x' }), JSON.stringify({ Id: '' }), JSON.stringify({ Id: 'a/b' })])(
    '%s is 400, and nothing is sent',
    async (given) => {
      expect(await refusal('named', given)).toBe(400)
    },
  )

  it('XML and forms are read as JSON is', async () => {
    expect((await call('named', '<a><Id>7</Id></a>', XML)).sent[0]?.target).toBe('/v2/7?of=7')
    expect((await call('named', 'Id=7', FORM)).sent[0]?.target).toBe('/v2/7?of=7')
  })
})
