import { statSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { send } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

const OPENID = '/.well-known/openid-configuration'
const OAUTH = '/.well-known/oauth-authorization-server'
const JWKS = '/.well-known/jwks.json'

let gateway: StartedPostern
beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing' })
})
afterAll(() => gateway.close())

const read = async (target: string, of = gateway) => {
  const response = await send(of, { target })
  expect(response.status).toBe(200)
  expect(response.headers['content-type']).toMatch(/^application\/json/)
  return JSON.parse(response.body) as Record<string, unknown>
}

describe('C6.3.2: discovery', () => {
  it('C6.3.2: tells the issuer and the endpoints; userinfo_endpoint is the C6.3.1 address', async () => {
    const { authUrl, baseUrl } = gateway
    const document = await read(OPENID)
    expect(document).toMatchObject({
      issuer: authUrl,
      token_endpoint: `${authUrl}/connect/token`,
      jwks_uri: `${authUrl}${JWKS}`,
      userinfo_endpoint: `${baseUrl}/api/1.0/u/connect/userinfo`,
    })
    expect(authUrl.endsWith('/')).toBe(false)
  })

  it('C6.3.2: tells what is supported, and what is not', async () => {
    const document = await read(OPENID)
    expect(document).toMatchObject({
      response_types_supported: ['code'],
      response_modes_supported: ['query', 'form_post'],
      subject_types_supported: ['public'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      request_parameter_supported: false,
      request_uri_parameter_supported: false,
      claims_parameter_supported: false,
    })
    expect(document['grant_types_supported']).toContain('password')
    for (const grant of ['client_credentials', 'implicit', 'urn:ietf:params:oauth:grant-type:device_code'])
      expect(document['grant_types_supported']).not.toContain(grant)
    expect(document['scopes_supported']).toEqual(
      expect.arrayContaining(['openid', 'profile', 'offline_access', 'fund.read', 'api1']),
    )
    expect(document['claims_supported']).toEqual(
      expect.arrayContaining([
        'sub',
        'name',
        'gender',
        'email',
        'address',
        'phone_number',
        'service_profile',
      ]),
    )
    expect(document['token_endpoint_auth_methods_supported']).toEqual(
      expect.arrayContaining(['client_secret_basic', 'none']),
    )
    expect(document['id_token_signing_alg_values_supported']).toEqual(
      expect.arrayContaining(['RS256', 'ES256']),
    )
  })

  it('C6.3.2: the same document at both addresses, by HEAD too', async () => {
    expect(await read(OAUTH)).toEqual(await read(OPENID))
    expect(await send(gateway, { method: 'HEAD', target: OPENID })).toMatchObject({ status: 200, body: '' })
  })

  it('C6.3.2: with a path in the issuer: appended to it for OpenID, inserted before it for RFC 8414', async () => {
    const authUrl = 'http://localhost:8999/tenant/one'
    const own = await postern({
      keeps: 'nothing',
      change: (loaded) => ({ ...loaded, server: { ...loaded.server, authUrl } }),
    })
    const document = await read(`/tenant/one${OPENID}`, own)
    expect(document).toMatchObject({ issuer: authUrl, token_endpoint: `${authUrl}/connect/token` })
    expect(await read(`${OAUTH}/tenant/one`, own)).toEqual(document)
    expect(await read(`/tenant/one${JWKS}`, own)).toHaveProperty('keys')
    expect(await send(own, { target: OPENID })).toMatchObject({ status: 404 })
  })
})

describe('C6.3.2, C6.3.4: the keys', () => {
  it('C6.3.2: are public, and name their algorithm, use and id', async () => {
    const { keys } = (await read(JWKS)) as { keys: Record<string, unknown>[] }
    expect(keys.map(({ alg }) => alg).sort()).toEqual(['ES256', 'RS256'])
    for (const key of keys) {
      expect(key).toMatchObject({ use: 'sig', kid: expect.any(String) })
      for (const secret of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k']) expect(key).not.toHaveProperty(secret)
    }
  })

  it('C6.3.4: are made on the first start, for the owner’s eyes only, and used again', async () => {
    const files = readdirSync(gateway.data, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.jwk'))
      .map((entry) => join(entry.parentPath, entry.name))
    expect(files.length).toBeGreaterThanOrEqual(2)
    for (const file of files) expect(statSync(file).mode & 0o777).toBe(0o600)
    const { access_token } = await issueToken(gateway, { scope: 'openid' })
    const again = await postern({ keeps: 'nothing', data: gateway.data })
    expect(await read(JWKS, again)).toEqual(await read(JWKS))
    expect(access_token.split('.')).toHaveLength(3)
  })

  it('C6.3.4: are never logged', () => {
    const text = JSON.stringify(gateway.log())
    expect(text).not.toContain('"d":')
    expect(text).not.toContain('PRIVATE')
  })
})
