import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bearer, form, send } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { basic, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

let gateway: StartedPostern
beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing' })
})
afterAll(() => gateway.close())

const tokenRequest = (fields: Record<string, string>, authorization = basic('acme-books')) => {
  const alice = { grant_type: 'password', username: 'alice', password: 'alice-password', scope: 'openid' }
  const { headers, body } = form({ ...alice, ...fields })
  const sent = { method: 'POST', target: '/connect/token', body }
  return send(gateway, { ...sent, headers: { ...headers, Authorization: authorization } })
}

/** Other tests prove these too, where they belong; here they stand together, as the contract lists them. */
describe('C13: deviations, all deliberate', () => {
  it('C13: header names are case-insensitive', async () => {
    const { access_token } = await issueToken(gateway, { scope: 'fund.read target:b/ACME' })
    const headers = { aUTHORIZATION: `Bearer ${access_token}`, ACCEPT: 'application/xml', hOST: '127.0.0.1' }
    const response = await send(gateway, { target: LIST, headers })
    expect(response).toMatchObject({ status: 200 })
    expect(response.headers['content-type']).toContain('xml')
  })

  it('C13: invalid_client is 400, and answers of the token endpoint are no-cache only', async () => {
    const response = await tokenRequest({}, basic('nobody'))
    expect(response).toMatchObject({ status: 400, headers: { 'cache-control': 'no-cache' } })
    expect(response.body).toContain('"invalid_client"')
    expect((await tokenRequest({})).headers['cache-control']).toBe('no-cache')
  })

  it('C13: the schemes Basic and Bearer count in exact case', async () => {
    expect((await tokenRequest({}, basic('acme-books').replace('B', 'b'))).body).toContain('invalid_client')
    const { access_token } = await issueToken(gateway, { scope: 'fund.read target:b/ACME' })
    const headers = { Authorization: `bearer ${access_token}` }
    expect(await send(gateway, { target: LIST, headers })).toMatchObject({ status: 401 })
  })

  it('C13: insufficient scope is 401', async () => {
    const { access_token } = await issueToken(gateway, { scope: 'profile target:b/ACME' })
    const response = await send(gateway, { target: LIST, headers: bearer(access_token) })
    expect(response.status).toBe(401)
    expect(response.headers['www-authenticate']).toContain('insufficient_scope')
  })

  it('C13: unknown scope values are refused', async () => {
    expect((await tokenRequest({ scope: 'openid unheard.of' })).body).toContain('invalid_scope')
  })

  it('C13: the password grant is there, for customers only', async () => {
    expect(await tokenRequest({})).toMatchObject({ status: 200 })
    expect((await tokenRequest({}, basic('ledgerline'))).body).toContain('unauthorized_client')
  })

  it.each([
    'implicit',
    'urn:ietf:params:oauth:grant-type:device_code',
    'urn:ietf:params:oauth:grant-type:token-exchange',
    'urn:openid:params:grant-type:ciba',
  ])('C13: %s is not offered', async (grant_type) => {
    expect((await tokenRequest({ grant_type })).body).toContain('unsupported_grant_type')
    const { body } = await send(gateway, { target: '/.well-known/openid-configuration' })
    expect(body).not.toContain(grant_type)
    expect(body).not.toContain('device_authorization_endpoint')
  })
})
