import * as oauth from 'oauth4webapi'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'

/** oauth4webapi against the running service, step by step: each response passes its own checks of the RFCs. */

let gateway: StartedPostern

beforeAll(async () => {
  gateway = await startPostern()
})
afterAll(async () => {
  await gateway.close()
})

// eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to be noticed; loopback only
const LOOPBACK = { [oauth.allowInsecureRequests]: true }
const CLIENT: oauth.Client = { client_id: 'acme-books', id_token_signed_response_alg: 'RS256' }

async function discover(algorithm: 'oidc' | 'oauth2' = 'oidc'): Promise<oauth.AuthorizationServer> {
  const issuer = new URL(gateway.authUrl)
  const response = await oauth.discoveryRequest(issuer, { algorithm, ...LOOPBACK })
  return oauth.processDiscoveryResponse(issuer, response)
}

async function passwordGrant(
  server: oauth.AuthorizationServer,
  parameters: Record<string, string>,
): Promise<oauth.TokenEndpointResponse> {
  const authentication = oauth.ClientSecretBasic('acme-books-secret')
  const response = await oauth.genericTokenEndpointRequest(
    server,
    CLIENT,
    authentication,
    'password',
    parameters,
    LOOPBACK,
  )
  return oauth.processGenericTokenEndpointResponse(server, CLIENT, response)
}

describe('oauth4webapi', () => {
  it.each(['oidc', 'oauth2'] as const)('C6.3.2 accepts the %s metadata', async (algorithm) => {
    expect((await discover(algorithm)).issuer).toBe(gateway.authUrl)
  })

  it('C6.1 accepts the token response, the id_token’s signature, userinfo and the access token', async () => {
    const server = await discover()
    const scope = 'openid profile email service_profile business.fund.list target:b/ACME'
    const username = 'alice'
    const tokens = await passwordGrant(server, { username, password: 'alice-password', scope })
    expect(tokens.scope).toBe(scope)
    const { sub = '' } = oauth.getValidatedIdTokenClaims(tokens) ?? {}
    const response = await oauth.userInfoRequest(server, CLIENT, tokens.access_token, LOOPBACK)
    const userinfo = await oauth.processUserInfoResponse(server, CLIENT, sub, response)
    expect(userinfo).toMatchObject({ sub, service_profile: { business_code: 'ACME' } })
    const call = new Request(`${gateway.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`, {
      headers: { Authorization: `Bearer ${tokens.access_token}` },
    })
    const claims = await oauth.validateJwtAccessToken(server, call, gateway.baseUrl, LOOPBACK)
    expect(claims).toMatchObject({ sub, client_id: 'acme-books', scope })
  })

  it('C6.1.4 reads refusals as OAuth errors', async () => {
    const server = await discover()
    const refused = passwordGrant(server, { username: 'nobody', password: 'x', scope: 'openid' })
    await expect(refused).rejects.toMatchObject({ error: 'invalid_grant', status: 400 })
    const unknown = passwordGrant(server, { username: 'alice', password: 'alice-password', scope: 'nothing' })
    await expect(unknown).rejects.toMatchObject({ error: 'invalid_scope' })
  })
})

describe('oauth4webapi with a pushed request', () => {
  const ASKING: oauth.Client = { client_id: 'ledgerline' }

  const push = async (server: oauth.AuthorizationServer, parameters: Record<string, string>) => {
    const authentication = oauth.ClientSecretBasic('ledgerline-secret')
    const response = await oauth.pushedAuthorizationRequest(
      server,
      ASKING,
      authentication,
      parameters,
      LOOPBACK,
    )
    return oauth.processPushedAuthorizationResponse(server, ASKING, response)
  }

  it('C6.2.1a accepts the answer', async () => {
    const parameters = {
      redirect_uri: 'http://127.0.0.1:8090/callback',
      response_type: 'code',
      scope: 'fund.read target:b/ACME',
      code_challenge: await oauth.calculatePKCECodeChallenge(oauth.generateRandomCodeVerifier()),
      code_challenge_method: 'S256',
    }
    const { expires_in, request_uri } = await push(await discover(), parameters)
    expect(expires_in).toBe(60)
    expect(request_uri).toMatch(/^urn:ietf:params:oauth:request_uri:/)
  })

  it('C6.2.1a reads its refusal as an OAuth error', async () => {
    const pushing = push(await discover(), { redirect_uri: 'https://evil.test/', response_type: 'code' })
    await expect(pushing).rejects.toMatchObject({ error: 'invalid_request' })
  })
})

describe('oauth4webapi with DPoP', () => {
  it.each(['ES256', 'PS256', 'Ed25519'])('C6.1.3 accepts tokens bound to a key of %s', async (algorithm) => {
    const server = await discover()
    expect(server.dpop_signing_alg_values_supported).toContain(algorithm)
    const DPoP = oauth.DPoP(CLIENT, await oauth.generateKeyPair(algorithm))
    const options = { ...LOOPBACK, DPoP }
    const authentication = oauth.ClientSecretBasic('acme-books-secret')
    const scope = 'openid offline_access business.fund.list target:b/ACME'
    const login = { username: 'alice', password: 'alice-password', scope }
    const tokens = await oauth.processGenericTokenEndpointResponse(
      server,
      CLIENT,
      await oauth.genericTokenEndpointRequest(server, CLIENT, authentication, 'password', login, options),
    )
    expect(tokens.token_type).toBe('dpop')
    const refreshed = await oauth.processRefreshTokenResponse(
      server,
      CLIENT,
      await oauth.refreshTokenGrantRequest(
        server,
        CLIENT,
        authentication,
        tokens.refresh_token ?? '',
        options,
      ),
    )
    const url = new URL('/api/1.0/b/ACME/fund-data/fund-list', gateway.baseUrl)
    const call = await oauth.protectedResourceRequest(
      refreshed.access_token,
      'GET',
      url,
      undefined,
      undefined,
      options,
    )
    expect(call.status).toBe(200)
    const introspected = await oauth.processIntrospectionResponse(
      server,
      CLIENT,
      await oauth.introspectionRequest(server, CLIENT, authentication, refreshed.access_token, LOOPBACK),
    )
    expect(introspected).toMatchObject({
      active: true,
      token_type: 'DPoP',
      cnf: { jkt: await DPoP.calculateThumbprint() },
    })
  })
})
