import { createHash, createHmac } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { bearer, expectFault, send, type Sent } from '../../support/requests.ts'
import { shared } from '../../support/shared.ts'
import { postern } from '../../support/start-postern.ts'
import {
  startUpstream,
  type UpstreamBehaviour,
  type UpstreamConnection,
} from '../../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

/** The examples of config/examples that run over a forwarder, as they are shipped, in front of a service of their kind. */

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
const JSON_TYPE = 'application/json'

const started = shared(async (example: string) => {
  const upstream = await startUpstream()
  const gateway = await postern({
    config: `examples/${example}.yaml`,
    keeps: 'nothing',
    environment: { FUNDS_URL: `${upstream.url}/base` },
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const ask = ({ headers, ...sent }: Sent) =>
    send(gateway, { ...sent, headers: { ...bearer(access_token), ...headers } })
  const post = (target: string, value: unknown, type = JSON_TYPE) =>
    ask({
      method: 'POST',
      target,
      body: typeof value === 'string' ? value : JSON.stringify(value),
      headers: { 'Content-Type': type },
    })
  return { upstream, ask, post }
})

async function inFrontOf(example: string, behaviour: UpstreamBehaviour) {
  const world = await started(example)
  world.upstream.behave(behaviour)
  return world
}

const json = (connection: UpstreamConnection, value: unknown, status = 200): void =>
  connection.respond({ status, headers: { 'Content-Type': JSON_TYPE }, body: JSON.stringify(value) })

describe('C8.9: the example that maps fields', () => {
  it('C8.9 sends the service its own names, and the client those of the API', async () => {
    const { upstream, ask, post } = await inFrontOf('map-fields', (connection) =>
      json(connection, { Funds: [{ fund_code: 'SUPER1', fund_name: 'Super', Size: 12.5 }] }),
    )
    const answer = await ask({ target: LIST })
    expect(JSON.parse(answer.body)).toEqual({
      Errors: [],
      Data: { Funds: [{ Code: 'SUPER1', Name: 'Super', Size: 12.5 }] },
    })
    expect((await post(CREATE, { Code: 'NEW1', Name: 'New' })).status).toBe(200)
    const [, written] = upstream.requests
    expect(written?.method).toBe('POST')
    expect(written?.target).toBe(`/base${CREATE}`)
    expect(JSON.parse(String(written?.body))).toEqual({ fund_code: 'NEW1', fund_name: 'New' })
    expect(written?.headers['content-type']).toEqual([JSON_TYPE])
  })

  it('C8.4 lets a refusal of the service through as without the module', async () => {
    const { ask } = await inFrontOf('map-fields', (connection) =>
      json(connection, { Errors: [{ Code: 'GONE', Message: 'Not here.' }], Data: {} }, 404),
    )
    const answer = await ask({ target: DETAIL })
    expect([answer.status, JSON.parse(answer.body)]).toEqual([
      404,
      { Errors: [{ Code: 'GONE', Message: 'Not here.' }], Data: {} },
    ])
  })
})

describe('C8.9: the example that merges two requests', () => {
  const FUND = '/base/businesses/ACME/funds/SUPER1'
  const service =
    (members: (connection: UpstreamConnection) => void): UpstreamBehaviour =>
    (connection) =>
      connection.request.target === FUND ? json(connection, { Code: 'SUPER1' }) : members(connection)

  it('C8.9 answers one action by both, sent under one request id', async () => {
    const { upstream, ask } = await inFrontOf(
      'merge-calls',
      service((connection) => json(connection, [{ Id: 1 }])),
    )
    const answer = await ask({ target: DETAIL })
    expect(JSON.parse(answer.body).Data).toEqual({ Code: 'SUPER1', Members: [{ Id: 1 }] })
    expect(upstream.requests.map(({ target }) => target).sort()).toEqual([FUND, `${FUND}/members?limit=100`])
    const ids = upstream.requests.map(({ headers }) => [headers['x-request-id'], headers['traceparent']])
    expect(ids[0]).toEqual(ids[1])
    expect(ids[0]?.[0]).toEqual([answer.headers['x-request-id']])
  })

  it('C8.9 can answer where one of them is 404, and not where one is broken', async () => {
    const none = await inFrontOf(
      'merge-calls',
      service((connection) => json(connection, {}, 404)),
    )
    expect(JSON.parse((await none.ask({ target: DETAIL })).body).Data).toEqual({
      Code: 'SUPER1',
      Members: [],
    })
    const broken = await inFrontOf(
      'merge-calls',
      service((connection) => json(connection, {}, 500)),
    )
    expectFault(await broken.ask({ target: DETAIL }), 'upstream_broken')
  })

  it('C8.4 is 503 where the service is reset, as without the module', async () => {
    const { ask } = await inFrontOf(
      'merge-calls',
      service((connection) => connection.reset()),
    )
    expectFault(await ask({ target: DETAIL }), 'upstream_unreachable')
  })

  it('C8.9 leaves other actions of its area as they are', async () => {
    const { upstream, ask } = await inFrontOf('merge-calls', (connection) => json(connection, { a: 1 }))
    expect(JSON.parse((await ask({ target: `${LIST}?x=1` })).body).Data).toEqual({ a: 1 })
    expect(upstream.requests.map(({ target }) => target)).toEqual([`/base${LIST}?x=1`])
  })
})

describe('C8.9: the example that signs', () => {
  const KEY = 'a key of the tests'

  /** The service's own check, of the bytes that it received. */
  const verify: UpstreamBehaviour = (connection) => {
    const { method, target, headers, body } = connection.request
    const [date = ''] = headers['x-date'] ?? []
    const digest = createHash('sha256').update(body).digest('hex')
    const expected = createHmac('sha256', KEY)
      .update([method, target, date, digest].join('\n'))
      .digest('base64')
    const [given = ''] = headers['authorization'] ?? []
    const [, signature] = /^HMAC-SHA256 KeyId="postern", Signature="(.*)"$/.exec(given) ?? []
    json(connection, { Verified: signature === expected })
  }

  it('C8.9 signs what the service receives: GET and POST, path, query and body', async () => {
    process.env['FUNDS_SIGNING_KEY'] = KEY
    onTestFinished(() => void Reflect.deleteProperty(process.env, 'FUNDS_SIGNING_KEY'))
    const { upstream, ask, post } = await inFrontOf('sign-requests', verify)
    const answers = [
      await ask({ target: `${DETAIL}?a=%41&b=ü`.replace('ü', '%C3%BC') }),
      await ask({ target: DETAIL.replace('SUPER1', 'SUPER%31') }),
      await post(CREATE, { Code: 'NEW1', Name: 'Né' }),
      await post(CREATE, 'Code=NEW2&Name=Form', 'application/x-www-form-urlencoded'),
    ]
    for (const { status, body } of answers)
      expect([status, JSON.parse(body).Data]).toEqual([200, { Verified: true }])
    expect((await ask({ method: 'HEAD', target: DETAIL })).status).toBe(200)
    expect(upstream.requests.map(({ method }) => method)).toEqual(['GET', 'GET', 'POST', 'POST', 'HEAD'])
    expect(JSON.stringify(answers)).not.toContain(KEY)
  })
})

describe('C8.9: the example in front of a SOAP service', () => {
  const NAMESPACE = 'http://funds.example/2024'
  const soap = (inner: string, status = 200): UpstreamBehaviour => {
    const body = `<?xml version="1.0"?><soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>${inner}</soap:Body></soap:Envelope>`
    return (connection) =>
      connection.respond({ status, headers: { 'Content-Type': 'text/xml; charset=utf-8' }, body })
  }
  const fault = (code: string) =>
    soap(
      `<soap:Fault><faultcode>${code}</faultcode><faultstring>No such fund.</faultstring></soap:Fault>`,
      500,
    )

  it('C8.9 answers JSON and XML clients, and asks in an envelope', async () => {
    const { upstream, ask } = await inFrontOf(
      'wrap-soap',
      soap(
        `<GetFundResponse xmlns="${NAMESPACE}"><Fund><Code>007</Code><Name>A &amp; B</Name></Fund></GetFundResponse>`,
      ),
    )
    const answer = await ask({ target: DETAIL })
    expect(answer.body).toBe('{"Errors":[],"Data":{"Code":"007","Name":"A & B"}}')
    const xml = await ask({ target: DETAIL, headers: { Accept: 'application/xml' } })
    expect(xml.body).toContain('<Data><Code>007</Code><Name>A &amp; B</Name></Data>')
    const [asked] = upstream.requests
    expect(asked).toMatchObject({ method: 'POST', target: '/base/soap' })
    expect(asked?.headers).toMatchObject({
      soapaction: [`"${NAMESPACE}#GetFund"`],
      accept: ['text/xml'],
      'content-type': ['text/xml; charset=utf-8'],
      'x-postern-business': ['ACME'],
    })
    expect(String(asked?.body)).toContain(
      `<f:GetFund xmlns:f="${NAMESPACE}"><f:Business>ACME</f:Business><f:Code>SUPER1</f:Code></f:GetFund>`,
    )
  })

  it('C8.9 escapes what a client sends', async () => {
    const { upstream, post } = await inFrontOf('wrap-soap', soap('<UpdateFundResponse/>'))
    expect((await post(DETAIL, { Name: '</f:Name><evil/>&' })).status).toBe(200)
    const text = String(upstream.requests[0]?.body)
    expect(text).toContain('<f:Name>&lt;/f:Name&gt;&lt;evil/&gt;&amp;</f:Name>')
  })

  it('C8.9 makes a list of one fund a list', async () => {
    const { ask } = await inFrontOf(
      'wrap-soap',
      soap('<ListFundsResponse><Fund><Code>A</Code></Fund></ListFundsResponse>'),
    )
    expect(JSON.parse((await ask({ target: LIST })).body).Data).toEqual({
      FundSummaries: [{ Code: 'A' }],
      TotalCount: 1,
    })
  })

  it.each([
    ['soap:Client.NotFound', 404],
    ['Invalid', 400],
    ['x:Conflict', 409],
  ])('C8.9 tells the fault %s as %i, with its text', async (code, status) => {
    const { ask } = await inFrontOf('wrap-soap', fault(code))
    const answer = await ask({ target: DETAIL })
    expect(answer.status).toBe(status)
    expect(JSON.parse(answer.body).Errors).toEqual([
      { Code: code.replace(/^.*[:.]/, ''), Message: 'No such fund.' },
    ])
  })

  it.each([
    ['a fault of its own', fault('soap:Server')],
    ['no SOAP', (connection: UpstreamConnection) => json(connection, {})],
    ['a document type', soap('<!DOCTYPE x><GetFundResponse/>')],
  ])('C8.4 is 500 for %s, and tells the client nothing of it', async (_case, behaviour) => {
    const { ask } = await inFrontOf('wrap-soap', behaviour)
    const answer = await ask({ target: DETAIL })
    expectFault(answer, 'upstream_broken')
  })
})
