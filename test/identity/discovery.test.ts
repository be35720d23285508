import { describe, expect, it } from 'vitest'
import { API, ISSUER, openTestIdentity } from '../support/identity-under-test.ts'

const get = (path: string, service = openTestIdentity(), method = 'GET') => service.send({ method, path })
const OPENID = '/.well-known/openid-configuration'
const RFC8414 = '/.well-known/oauth-authorization-server'

describe('C6.3.2 discovery', () => {
  it('C6.3.2 tells what this deployment offers', async () => {
    const { status, headers, json } = await get(OPENID)
    expect(status).toBe(200)
    expect(headers['Content-Type']).toMatch(/^application\/json/)
    expect(headers['Cache-Control']).toMatch(/max-age=[1-9]/)
    expect(json).toMatchObject({
      issuer: ISSUER,
      token_endpoint: `${ISSUER}/connect/token`,
      userinfo_endpoint: `${API}/api/1.0/u/connect/userinfo`,
      jwks_uri: `${ISSUER}/.well-known/jwks.json`,
      response_types_supported: ['code'],
      response_modes_supported: ['query', 'form_post'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256', 'ES256'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      request_parameter_supported: false,
      request_uri_parameter_supported: false,
      claims_parameter_supported: false,
    })
    expect(json.scopes_supported.slice(0, 2)).toEqual(['openid', 'profile'])
    expect(json.scopes_supported).toContain('fund.maintain')
    expect(json.claims_supported).toEqual(expect.arrayContaining(['sub', 'middle_name', 'service_profile']))
    expect(json.grant_types_supported).toContain('password')
    expect(json.token_endpoint_auth_methods_supported).toContain('client_secret_basic')
  })

  it.each([
    [['client_secret_basic'], ['client_secret_basic'], ['client_secret_basic']],
    [['client_secret_basic', 'none'], ['client_secret_basic', 'none'], ['client_secret_basic']],
    [['none'], ['none'], ['client_secret_basic']],
    [[], ['client_secret_basic'], ['client_secret_basic']],
  ] as const)(
    'C6.3.2 of clients with %j only their methods are announced',
    async (had, token, introspection) => {
      const clientMethods = { current: () => Promise.resolve(new Set(had)) }
      const { json } = await get(OPENID, openTestIdentity({ deps: { clientMethods } }))
      expect(json).toMatchObject({
        token_endpoint_auth_methods_supported: token,
        revocation_endpoint_auth_methods_supported: token,
        introspection_endpoint_auth_methods_supported: introspection,
      })
    },
  )

  it.each([
    [['pushed_requests'], true],
    [['pushed_requests', 'plain_requests'], undefined],
    [['plain_requests'], undefined],
    [[], undefined],
  ] as const)('C6.3.2 of clients with %j that all must push is announced: %s', async (had, announced) => {
    const clientMethods = { current: () => Promise.resolve(new Set(had)) }
    const { json } = await get(OPENID, openTestIdentity({ deps: { clientMethods } }))
    expect(json.pushed_authorization_request_endpoint).toBe(`${ISSUER}/connect/par`)
    expect(json.require_pushed_authorization_requests).toBe(announced)
  })

  it('C6.2.3 with an https issuer browsers are told to come by https only', async () => {
    const secure = openTestIdentity({ deps: { urls: { issuer: 'https://id.test', api: API } } })
    const answers = [await get(OPENID, secure), await get('/.well-known/jwks.json', secure)]
    for (const { headers } of answers) expect(headers['Strict-Transport-Security']).toBe('max-age=31536000')
    expect((await get(OPENID)).headers).not.toHaveProperty('Strict-Transport-Security')
  })

  it('C6.3.2 RFC 8414’s address has the same document', async () => {
    expect((await get(RFC8414)).json).toEqual((await get(OPENID)).json)
  })

  it('C6.3.2 with a path in the issuer, one is appended and the other inserted', async () => {
    const issuer = `${ISSUER}/auth/v2`
    const service = openTestIdentity({ deps: { urls: { issuer, api: API } } })
    const { json } = await get('/auth/v2/.well-known/openid-configuration', service)
    expect(json).toMatchObject({
      issuer,
      token_endpoint: `${issuer}/connect/token`,
      jwks_uri: `${issuer}/.well-known/jwks.json`,
    })
    expect((await get('/.well-known/oauth-authorization-server/auth/v2', service)).json).toEqual(json)
    expect((await get(OPENID, service)).json).toBe('outside')
  })

  it('C6.3.2 announces only what is served', async () => {
    const service = openTestIdentity()
    const { json } = await get(OPENID, service)
    const announced = Object.entries(json as object).flatMap(([name, value]) =>
      /_endpoint$|_uri$/.test(name) && name !== 'userinfo_endpoint' ? [new URL(String(value)).pathname] : [],
    )
    expect(announced).not.toHaveLength(0)
    for (const path of announced) expect([...service.identity.endpoints.keys()]).toContain(path)
  })

  it('C6.3.2 publishes the keys, and no private part', async () => {
    const { json } = await get('/.well-known/jwks.json')
    expect(json.keys.map((key: { kid: string }) => key.kid)).toEqual(['ES256', 'RS256'])
    for (const key of json.keys) expect(key).not.toHaveProperty('d')
  })

  it('C6.3.2 answers HEAD as GET', async () => {
    expect((await get(OPENID, openTestIdentity(), 'HEAD')).status).toBe(200)
  })
})

describe('C6.0 the identity paths', () => {
  it.each([
    [OPENID, 'POST', 'GET, HEAD'],
    ['/.well-known/jwks.json', 'DELETE', 'GET, HEAD'],
    ['/connect/token', 'GET', 'POST'],
    ['/connect/token', 'OPTIONS', 'POST'],
  ])('C6.0 %s %s is 405 and tells what is offered', async (path, method, allow) => {
    const { status, headers, json } = await get(path, openTestIdentity(), method)
    expect([status, headers['Allow'], json.error]).toEqual([405, allow, 'invalid_request'])
  })

  it.each(['/connect/x', '/connect', '/.well-known/x', '/connect/token/x', '/connect/Token'])(
    'C2.3 %s is left to the door that answers 404 enveloped',
    async (path) => {
      expect((await get(path)).json).toBe('outside')
    },
  )

  it('C9.2 switched off, they say so in JSON; discovery and keys go on', async () => {
    const closure = {
      message: 'Back at noon.',
      retryAfter: 60,
      admitsAddress: () => false,
      closedBy: [],
      clients: new Set<string>(),
    }
    const switches = { service: () => undefined, place: () => undefined, identity: () => closure }
    const service = openTestIdentity({ deps: { switches } })
    const { status, headers, json } = await get('/connect/token', service, 'POST')
    expect([status, headers['Retry-After']]).toEqual([503, '60'])
    expect(json).toEqual({ error: 'temporarily_unavailable', error_description: 'Back at noon.' })
    expect((await get(OPENID, service)).status).toBe(200)
    expect((await get('/.well-known/jwks.json', service)).status).toBe(200)
  })
})
