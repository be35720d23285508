import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { actionOf, withActions } from '../support/audited-calls.ts'
import { withForwardedActions } from '../support/forwarded-action.ts'
import { readDescription } from '../support/openapi.ts'
import { bearer, expectFault, send } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream, type UpstreamAnswer } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const PATH = '/api/1.0/b/ACME/fund-data'
const LINKS = ['Location', 'Content-Location', 'Link']

/** What `upstream` of the GET of each action says. */
const UPSTREAMS = {
  units: { ranges: 'verbatim' },
  listed: { ranges: 'verbatim', requestHeaders: ['X-Mine'] },
  bytes: {},
  quiet: { forwarded: 'off', responseHeaders: LINKS },
  told: { responseHeaders: LINKS, redirects: { max: 1, within: [], origins: [] } },
} as const

const JSON_API = { types: { 'application/vnd.api+json': 'json', 'text/x-form': 'form' }, required: true }

let upstream: Upstream
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  upstream = await openUpstream()
  const posts = withActions(
    actionOf('typed', { POST: { body: JSON_API } }),
    actionOf('untyped', { POST: { body: { required: true } } }),
  )
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: (loaded) => posts(withForwardedActions(UPSTREAMS)(loaded)),
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})

function answered(
  action: keyof typeof UPSTREAMS | 'typed' | 'untyped',
  answer: UpstreamAnswer,
  { method = 'GET', headers = {}, body = '' } = {},
) {
  upstream.behave((connection) => connection.respond(answer))
  return send(gateway, {
    method,
    target: `${PATH}/${action}`,
    headers: { ...bearer(token), ...headers },
    body,
  })
}

const rows = (headers: Readonly<Record<string, string>> = {}, status = 206): UpstreamAnswer => ({
  status,
  headers: { 'Content-Type': 'application/json', ...headers },
  body: '[1,2]',
})
const sent = (name: string) => upstream.requests.at(-1)?.headers[name]

describe('C8.8 ranges: verbatim', () => {
  it.each([
    ['0-24', 'items'],
    ['items=0-24', undefined],
    ['0-24', undefined],
  ])(
    'Range: %s with Range-Unit: %s passes, and a 206 is enveloped with its Content-Range',
    async (range, unit) => {
      const headers = { Range: range, ...(unit !== undefined && { 'Range-Unit': unit }) }
      const response = await answered('units', rows({ 'Content-Range': '0-1/100' }), { headers })
      expect([sent('range'), sent('range-unit')]).toEqual([[range], unit === undefined ? undefined : [unit]])
      expect([response.status, response.body]).toEqual([206, '{"Errors":[],"Data":{"Items":[1,2]}}'])
      expect(response.headers['content-range']).toBe('0-1/100')
    },
  )

  it('converts such a part for clients of XML', async () => {
    const headers = { Range: '0-1', Accept: 'application/xml' }
    const response = await answered('units', rows({ 'Content-Range': '0-1/*' }), { headers })
    expect(response.status).toBe(206)
    expect(response.body).toContain('<Item type="number">1</Item>')
  })

  it.each([[{ Range: 'bytes=0-3' }], [{ Range: ' BYTES =0-3' }], [{ Range: '0-3', 'Range-Unit': 'bytes' }]])(
    '%j asks for bytes, which are not the client’s: it does not pass',
    async (headers) => {
      const response = await answered('units', rows({}, 200), { headers })
      expect([response.status, sent('range')]).toEqual([200, undefined])
      expectFault(
        await answered('units', rows({ 'Content-Range': '0-1/100' }), { headers }),
        'upstream_broken',
      )
    },
  )

  it('C8.2 passes though requestHeaders does not list it, and with If-Range', async () => {
    const headers = { Range: '0-1', 'Range-Unit': 'items', 'If-Range': '"7"', 'X-Other': 'a' }
    await answered('listed', rows(), { headers })
    expect([sent('range'), sent('range-unit'), sent('if-range'), sent('x-other')]).toEqual([
      ['0-1'],
      ['items'],
      ['"7"'],
      undefined,
    ])
  })

  it('C8.4 a part in bytes, or several, is 500', async () => {
    const headers = { Range: '0-1' }
    const bytes = rows({ 'Content-Range': 'bytes 0-4/9' })
    expectFault(await answered('units', bytes, { headers }), 'upstream_broken')
    const several = rows({ 'Content-Type': 'multipart/byteranges; boundary=a' })
    expectFault(await answered('units', several, { headers }), 'upstream_broken')
  })

  it('C8.4 a 416 tells how much there is', async () => {
    const answer = { status: 416, headers: { 'Content-Range': '*/100' } }
    const response = await answered('units', answer, { headers: { Range: '200-' } })
    expect([response.status, response.headers['content-range']]).toEqual([416, '*/100'])
  })

  it('C8.6 without it no range passes, and a 206 is 500', async () => {
    const response = await answered('bytes', rows(), { headers: { Range: '0-1' } })
    expectFault(response, 'upstream_broken')
    expect(sent('range')).toBeUndefined()
  })
})

describe('C8.2 forwarded: off', () => {
  it('tells the service nothing of where a call came from', async () => {
    const headers = { Forwarded: 'for=1.2.3.4', 'X-Forwarded-For': '1.2.3.4', X_Forwarded_Host: 'a' }
    await answered('quiet', rows({}, 200), { headers })
    expect(upstream.requests.at(-1)?.head).not.toMatch(/forwarded|1\.2\.3\.4/i)
    await answered('told', rows({}, 200), { headers })
    expect(sent('forwarded')?.[0]).not.toContain('1.2.3.4')
    expect(sent('x-forwarded-host')).toHaveLength(1)
  })

  it('C8.8 the public origin in Location, Content-Location and Link is the target’s own where it was told', async () => {
    const own = `${gateway.baseUrl}${PATH}/told?a=1`
    const headers = { 'Content-Location': own, Location: own, Link: `<${own}>; rel="next"` }
    const told = await answered('told', rows(headers, 201))
    expect(told.headers['content-location']).toBe(own)
    expect(told.headers['location']).toBe(own)
    expect(told.headers['link']).toBe(`<${own}>; rel="next"`)
    const quiet = await answered('quiet', rows(headers, 201))
    for (const name of LINKS) expect(quiet.headers).not.toHaveProperty(name.toLowerCase())
  })

  it('C8.8 other origins, other businesses and other paths stay out', async () => {
    for (const Location of [
      `https://evil.example${PATH}/told`,
      `${gateway.baseUrl}.evil.example${PATH}/told`,
      `${gateway.baseUrl}/api/1.0/b/OTHER/fund-data/told`,
      `${gateway.baseUrl}/signin`,
    ])
      expect((await answered('told', rows({ Location }, 201))).headers).not.toHaveProperty('location')
  })

  it('C8.8 a redirect to it is followed at the target, within the same business', async () => {
    upstream.behave((connection) =>
      connection.request.target.endsWith('/told')
        ? connection.respond({ status: 302, headers: { Location: `${gateway.baseUrl}${PATH}/bytes` } })
        : connection.respond(rows({}, 200)),
    )
    const target = `${PATH}/told`
    const response = await send(gateway, { target, headers: bearer(token) })
    expect([response.status, upstream.requests.at(-1)?.target]).toEqual([200, `${PATH}/bytes`])
    upstream.behave((connection) =>
      connection.respond({
        status: 302,
        headers: { Location: `${gateway.baseUrl}/api/1.0/b/OTHER/fund-data/bytes` },
      }),
    )
    const count = upstream.requests.length
    expectFault(await send(gateway, { target, headers: bearer(token) }), 'upstream_broken')
    expect(upstream.requests).toHaveLength(count + 1)
  })
})

describe('C7.4 body.types', () => {
  const post = (type: string, body: string) => ({ method: 'POST', headers: { 'Content-Type': type }, body })

  it.each([
    ['application/vnd.api+json', '{"a":1.50}', '{"a":1.50}'],
    ['Application/Vnd.Api+Json; ext="x"; charset=utf-8', '{"a":1}', '{"a":1}'],
    ['text/x-form', 'a=1&b=2', '{"a":"1","b":"2"}'],
    ['application/json', '[1]', '[1]'],
  ])('%s is read as they say, and sent as JSON', async (type, body, arrived) => {
    const response = await answered('typed', rows({}, 200), post(type, body))
    expect(response.status).toBe(200)
    expect(upstream.requests.at(-1)?.body.toString()).toBe(arrived)
    expect(sent('content-type')).toEqual(['application/json'])
  })

  it.each([
    'application/vnd.api+xml',
    'application/vnd.api+json; charset=utf-16',
    'application/vnd.api+json; charset=utf-8; charset=utf-8',
    'application/vnd.api+json, application/json',
    'text/plain',
  ])('%s is 415 as ever, and names the types that there are', async (type) => {
    const count = upstream.requests.length
    const response = await answered('typed', rows({}, 200), post(type, '{}'))
    expect(response.status).toBe(415)
    expect(response.body).toContain('application/vnd.api+json')
    expect(upstream.requests).toHaveLength(count)
  })

  it('elsewhere, and broken, it is refused', async () => {
    const count = upstream.requests.length
    const elsewhere = await answered('untyped', rows({}, 200), post('application/vnd.api+json', '{}'))
    expectFault(elsewhere, 'unsupported_media_type')
    const broken = await answered('typed', rows({}, 200), post('application/vnd.api+json', '{'))
    expect(broken.status).toBe(400)
    expect(upstream.requests).toHaveLength(count)
  })

  it('C11.3 its types stand in the description', async () => {
    const { paths } = await readDescription(gateway)
    const described = JSON.stringify(paths['/api/1.0/b/{businessCode}/fund-data/typed'])
    expect(described).toContain('"application/vnd.api+json"')
    expect(described).toContain('"text/x-form"')
  })
})
