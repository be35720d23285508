import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bearer, expectFault, send, type Sent } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

const USERINFO = '/api/1.0/u/connect/userinfo'

let gateway: StartedPostern
let token: string
beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing' })
  token = (await issueToken(gateway, { scope: 'openid profile' })).access_token
})
afterAll(() => gateway.close())

const ask = ({ headers, ...more }: Partial<Sent> = {}) =>
  send(gateway, { target: USERINFO, ...more, headers: { ...bearer(token), ...headers } })

describe('C6.3.1: userinfo', () => {
  it('C6.3.1: GET answers the claims as a bare JSON object', async () => {
    const { status, headers, body } = await ask()
    expect(status).toBe(200)
    expect(JSON.parse(body)).toMatchObject({ sub: expect.any(String), name: 'Alice Beatrice Arden' })
    expect(JSON.parse(body)).not.toHaveProperty('Data')
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store, must-revalidate, no-cache, max-age=0',
    })
  })

  it('C6.3.1: HEAD and POST too', async () => {
    const [get, head, post] = await Promise.all([ask(), ask({ method: 'HEAD' }), ask({ method: 'POST' })])
    expect(post).toMatchObject({ status: 200, body: get.body })
    expect(head).toMatchObject({ status: 200, body: '' })
    expect(head.headers['content-length']).toBe(get.headers['content-length'])
  })

  it.each(['PUT', 'DELETE', 'OPTIONS', 'PATCH'])('C6.3.1: %s is 405 with Allow', async (method) => {
    const response = await ask({ method })
    expectFault(response, 'method_not_allowed')
    expect(response.headers['allow']).toBe('GET, HEAD, POST')
  })

  it.each([
    '*/*',
    'application/*',
    'application/json',
    'application/json;q=0.1, application/xml',
    'application/vnd.postern.action.v1+json',
    'APPLICATION/VND.POSTERN.ACTION.V1+JSON',
    'application/vnd.postern.action.v2+json, */*;q=0.1',
    '',
  ])('C6.3.1: Accept %j is answered in JSON, plain', async (accept) => {
    const { status, headers } = await ask({ headers: { Accept: accept } })
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('application/json; charset=utf-8')
  })

  it.each([
    ['application/xml', 'not_acceptable', 'xml'],
    ['application/vnd.postern.action.v1+xml', 'not_acceptable', 'xml'],
    ['text/html', 'not_acceptable', 'json'],
    ['application/jwt', 'not_acceptable', 'json'],
    ['application/json;q=0', 'not_acceptable', 'json'],
    ['application/vnd.postern.action.v2+json', 'unknown_action_version', 'json'],
  ] as const)('C6.3.1: Accept %s is %s', async (accept, fault, format) => {
    expectFault(await ask({ headers: { Accept: accept } }), fault, { format })
  })

  it('C6.3.1, C7.4: Content-Type is judged, a body is not used', async () => {
    const post = (type: string, body: string) =>
      ask({ method: 'POST', headers: { 'Content-Type': type }, body })
    expect(await post('application/x-www-form-urlencoded', 'access_token=x')).toMatchObject({ status: 200 })
    expect(await post('application/json', '{broken')).toMatchObject({ status: 200 })
    expectFault(await post('text/plain', 'a'), 'unsupported_media_type')
    expectFault(await ask({ headers: { 'Content-Type': 'text/plain' } }), 'unsupported_media_type')
  })

  it('C6.3.1: a token of any target, or of none, will do', async () => {
    const scopes = ['openid', 'openid target:b/GLOBEX', 'openid target:f/ACME/SUPER1']
    for (const scope of scopes) {
      const { access_token } = await issueToken(gateway, { scope })
      expect(await ask({ headers: bearer(access_token) })).toMatchObject({ status: 200 })
    }
  })

  it('C6.3.1: the query decides nothing; other paths below u are no actions', async () => {
    expect(await ask({ target: `${USERINFO}?x=1` })).toMatchObject({ status: 200 })
    expectFault(await ask({ target: `${USERINFO}/more` }), 'unknown_action')
    expectFault(await ask({ target: USERINFO.replace('userinfo', 'Userinfo') }), 'unknown_action')
  })
})
