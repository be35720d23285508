import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClientKey, makeClientKey } from '../support/client-assertions.ts'
import { withClient } from '../support/machines.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'

/** A machine on two libraries (C6.1.5a): a token for itself, by a secret or by a key, and calls with it. */

const SCOPE = 'fund.read business.fund.list'

let key: ClientKey
let postern: StartedPostern

beforeAll(async () => {
  key = await makeClientKey('ES256', { kid: 'one' })
  postern = await startPostern({
    change: (configuration) => {
      const machine = {
        kind: 'machine',
        grants: ['client_credentials'],
        scopes: SCOPE.split(' '),
        businesses: ['ACME'],
      } as const
      const signing = { ...machine, secrets: [], jwks: [key.jwk], dpop: 'required' } as const
      const both = { ...signing, businesses: ['ACME', 'GLOBEX'] } as const
      const one = withClient(withClient(configuration, 'nightly', machine), 'signer', signing)
      return withClient(one, 'both', both)
    },
  })
})
afterAll(() => postern.close())

const funds = (): URL => new URL('/api/1.0/b/ACME/fund-data/fund-list', postern.baseUrl)

/** RFC 8707: a business as the resource that a token is for. */
const businessAt = (code: string): string => `${postern.baseUrl}/api/1.0/b/${code}`

describe('openid-client', () => {
  const discover = (id: string, authentication?: client.ClientAuth): Promise<client.Configuration> =>
    client.discovery(new URL(postern.authUrl), id, `${id}-secret`, authentication, {
      // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to be noticed; loopback only
      execute: [client.allowInsecureRequests],
    })

  it('C6.1.5a gets a token for a machine as it comes, with the secret in the body', async () => {
    const configuration = await discover('nightly')
    const tokens = await client.clientCredentialsGrant(configuration, { scope: SCOPE })
    expect(tokens).toMatchObject({ token_type: 'bearer', scope: `${SCOPE} target:b/ACME` })
    expect(tokens.refresh_token).toBeUndefined()
    const call = [configuration, tokens.access_token, funds(), 'GET'] as const
    expect((await client.fetchProtectedResource(...call)).status).toBe(200)
    const userinfo = client.fetchUserInfo(configuration, tokens.access_token, 'nightly')
    await expect(userinfo).rejects.toMatchObject({
      status: 401,
      cause: [{ parameters: { error: 'insufficient_scope' } }],
    })
  })

  it('C6.1.5a gets a bound token for a machine with a key', async () => {
    const configuration = await discover('signer', client.PrivateKeyJwt(key.privateKey))
    const DPoP = client.getDPoPHandle(configuration, await client.randomDPoPKeyPair())
    const tokens = await client.clientCredentialsGrant(configuration, { scope: SCOPE }, { DPoP })
    expect(tokens).toMatchObject({ token_type: 'dpop', scope: `${SCOPE} target:b/ACME` })
    const proven = [undefined, undefined, { DPoP }] as const
    const call = [configuration, tokens.access_token, funds(), 'GET', ...proven] as const
    expect((await client.fetchProtectedResource(...call)).status).toBe(200)
  })

  it('C6.1.5a names the business of a machine of several by a resource', async () => {
    const configuration = await discover('both', client.PrivateKeyJwt(key.privateKey))
    const DPoP = client.getDPoPHandle(configuration, await client.randomDPoPKeyPair())
    const ask = (code: string): Promise<client.TokenEndpointResponse> =>
      client.clientCredentialsGrant(configuration, { scope: SCOPE, resource: businessAt(code) }, { DPoP })
    expect((await ask('GLOBEX')).scope).toBe(`${SCOPE} target:b/GLOBEX`)
    await expect(ask('ELSEWHERE')).rejects.toMatchObject({ error: 'invalid_target' })
  })
})

describe('oauth4webapi', () => {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to be noticed; loopback only
  const LOOPBACK = { [oauth.allowInsecureRequests]: true }

  it('C6.1.5a gets a bound token for a machine with a key', async () => {
    const issuer = new URL(postern.authUrl)
    const server = await oauth.processDiscoveryResponse(
      issuer,
      await oauth.discoveryRequest(issuer, LOOPBACK),
    )
    const self: oauth.Client = { client_id: 'signer' }
    const options = { ...LOOPBACK, DPoP: oauth.DPoP(self, await oauth.generateKeyPair('ES256')) }
    const asked = await oauth.clientCredentialsGrantRequest(
      server,
      self,
      oauth.PrivateKeyJwt({ key: key.privateKey, kid: 'one' }),
      { scope: SCOPE, resource: businessAt('ACME') },
      options,
    )
    const tokens = await oauth.processClientCredentialsResponse(server, self, asked)
    expect(tokens).toMatchObject({ token_type: 'dpop', scope: `${SCOPE} target:b/ACME` })
    const call = [tokens.access_token, 'GET', funds(), undefined, undefined, options] as const
    expect((await oauth.protectedResourceRequest(...call)).status).toBe(200)
  })
})
