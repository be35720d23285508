import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OperationUpstream, withForwardedActions } from '../support/forwarded-action.ts'
import { bearer, send } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken, MEMBER } from '../support/tokens.ts'

const LISTED = ['Link', 'Location', 'Content-Location', 'X-Node', 'Set-Cookie']
const BUSINESS = '/api/1.0/b/ACME/fund-data'

let upstream: Upstream
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  upstream = await openUpstream()
  const templates: Record<string, OperationUpstream> = {
    report: { path: '/v2/{business}/report' },
    'report/{year:integer}': { path: '/v2/{business}/reports/{year}.json' },
    'twin-a': { path: '/v2/{business}/twin' },
    'twin-b': { path: '/v2/{business}/twin' },
    'split/{a}/{b}': { path: '/v2/{business}/split/{a}-{b}' },
    whole: { path: '/v3/{action}' },
    'page/{name}': { path: '/v5/{name}' },
    'page/first': { path: '/v6/first' },
    keyed: { path: '/v4/keyed', query: { Key: 'secret', business: '{business}' } },
    hidden: { path: '/v2/{business}/hidden', responseHeaders: [] },
  }
  gateway = await startPostern({
    keeps: 'nothing',
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: `${upstream.url}/base` },
    change: withForwardedActions(templates, (backend) => ({
      ...backend,
      host: 'funds.internal',
      responseHeaders: LISTED,
    })),
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})

async function headersOf(headers: Record<string, string>, target = `${BUSINESS}/report`) {
  upstream.behave((connection) =>
    connection.respond({ headers: { 'Content-Type': 'application/json', ...headers }, body: '{}' }),
  )
  const response = await send(gateway, { target, headers: bearer(token) })
  expect(response.status, response.body).toBe(200)
  return response.headers
}
const locationOf = async (location: string, target?: string) =>
  (await headersOf({ Location: location }, target))['location']?.replace(gateway.baseUrl, '')

describe('C8.8 a URL of the upstream becomes the public one', () => {
  it.each([
    ['/base/v2/ACME/report', `${BUSINESS}/report`],
    ['/base/v2/ACME/reports/2026.json?page=2&x=%41#part', `${BUSINESS}/report/2026?page=2&x=%41`],
    ['reports/2026.json', `${BUSINESS}/report/2026`],
    ['http://funds.internal/base/v2/ACME/report', `${BUSINESS}/report`],
    ['//funds.internal/base/v2/ACME/report', `${BUSINESS}/report`],
    ['/base/v2/%41CME/report', `${BUSINESS}/report`],
    ['?page=2', `${BUSINESS}/report?page=2`],
    [`/base${BUSINESS}/fund-list`, `${BUSINESS}/fund-list`],
    ['/base/v3/whole', `${BUSINESS}/whole`],
    ['/base/v5/second', `${BUSINESS}/page/second`],
    ['/base/v6/first', `${BUSINESS}/page/first`],
  ])('C8.8 %s', async (given, expected) => {
    expect(await locationOf(given)).toBe(expected)
    expect((await headersOf({ 'Content-Location': given }))['content-location']).toBe(
      gateway.baseUrl + expected,
    )
  })

  it('C8.8 by the target’s own address', async () => {
    expect(await locationOf(`${upstream.url}/base/v2/ACME/report`)).toBe(`${BUSINESS}/report`)
  })

  it('C8.7, C8.8 without what is added to the query', async () => {
    const target = `${BUSINESS}/keyed`
    expect(await locationOf('/base/v4/keyed?Key=secret&page=2&k%65y=1&business=ACME', target)).toBe(
      `${target}?page=2`,
    )
  })

  it('C8.8 within the fund of the call', async () => {
    const detail = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
    const member = `/api/1.0/f/ACME/SUPER1/member-data/member-detail/${MEMBER}`
    expect(await locationOf(`/base${member}`, detail)).toBe(member)
    expect(await locationOf(`/base${member.replace('SUPER1', 'OTHER')}`, detail)).toBe(undefined)
    expect(await locationOf(`/base${BUSINESS}/fund-list`, detail)).toBe(undefined)
  })

  it.each([
    ['another business', '/base/v2/OTHER/report'],
    ['another place’s public URL', '/base/api/1.0/b/OTHER/fund-data/fund-list'],
    ['another version', '/base/api/2.0/b/ACME/fund-data/fund-list'],
    ['no operation', '/base/v2/ACME/elsewhere'],
    ['a parameter of another type', '/base/v2/ACME/reports/new.json'],
    ['a parameter that is another action’s name', '/base/v5/first'],
    ['two operations', '/base/v2/ACME/twin'],
    ['two readings', '/base/v2/ACME/split/a-b-c'],
    ['a path out of the target’s', '/v2/ACME/report'],
    ['another origin', 'http://other.internal/base/v2/ACME/report'],
    ['another scheme', 'https://funds.internal/base/v2/ACME/report'],
    ['another port', 'http://funds.internal:81/base/v2/ACME/report'],
    ['user information', 'http://u:p@funds.internal/base/v2/ACME/report'],
    ['a path that nobody sends', '/base/v2/ACME/x%2f..%2freport'],
    ['a script', 'javascript:alert(1)'],
    ['a file of the service', '/base/internal/admin'],
  ])('C8.8 %s is left out', async (_what, location) => {
    expect(await locationOf(location)).toBe(undefined)
    expect((await headersOf({ 'Content-Location': location }))['content-location']).toBe(undefined)
    expect((await headersOf({ Link: `<${location}>; rel=next` }))['link']).toBe(undefined)
  })

  it('C8.3, C8.8 without responseHeaders as before', async () => {
    const headers = await headersOf(
      { Link: '</base/v2/ACME/report>', Location: '/base/v2/ACME/report' },
      `${BUSINESS}/hidden`,
    )
    expect(headers).not.toHaveProperty('link')
    expect(headers).not.toHaveProperty('location')
  })
})

describe('C8.8, RFC 8288 each link is treated by itself', () => {
  it('C8.8 those of this place are kept, with their parameters', async () => {
    const { link } = await headersOf({
      Link:
        '<?page=2>; rel="next"; title="a, \\"b\\"; <c>", <http://elsewhere.example/>; rel=up,,' +
        ' </base/v2/ACME/reports/2025.json> ; rel=prev ; hreflang',
    })
    expect(link).toBe(
      `<${gateway.baseUrl}${BUSINESS}/report?page=2>; rel="next"; title="a, \\"b\\"; <c>", ` +
        `<${gateway.baseUrl}${BUSINESS}/report/2025>; rel="prev"; hreflang`,
    )
  })

  it('C8.8 an anchor is a URL too; a parameter that tells the upstream’s address goes with its link', async () => {
    const { link } = await headersOf({
      Link:
        '<?a>; anchor="#foo", <?b>; anchor="/base/internal", <?c>; rel="http://funds.internal/rel",' +
        ` <?d>; title="at 127.0.0.1", <?e=http%3A%2F%2Ffunds.internal>`,
    })
    expect(link).toBe(
      `<${gateway.baseUrl}${BUSINESS}/report?a>; anchor="${gateway.baseUrl}${BUSINESS}/report"`,
    )
  })

  it.each(['<?a', '?a', '<?a>; title="open', '<?a> <?b>', '<?a>; rel=next "x"', '<?a<b>>', ''])(
    'C8.8 %s cannot be read, and is left out',
    async (link) => {
      expect(await headersOf({ Link: link })).not.toHaveProperty('link')
    },
  )
})

it('C8.8 another header that tells the upstream’s address is left out', async () => {
  const headers = await headersOf({
    'X-Node': `node-1 (${upstream.url})`,
    'Set-Cookie': 'a=b; Domain=funds.internal',
  })
  expect(headers).not.toHaveProperty('x-node')
  expect(headers).not.toHaveProperty('set-cookie')
  expect((await headersOf({ 'X-Node': 'node-1' }))['x-node']).toBe('node-1')
})
