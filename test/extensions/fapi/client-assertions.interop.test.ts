import type { CryptoKey } from 'jose'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { describe, expect, it } from 'vitest'
import { type ClientKey, makeClientKey, withSigner } from '../../support/client-assertions.ts'
import { postern, type StartedPostern } from '../../support/start-postern.ts'

/** Libraries that others wrote, with `private_key_jwt` as they come. */

const LOGIN = { username: 'alice', password: 'alice-password', scope: 'fund.read target:b/ACME' }
const NAMES = ['ES256', 'PS256', 'RS256', 'Ed25519'] as const

const start = async (key: ClientKey): Promise<StartedPostern> =>
  postern({ change: withSigner({ jwks: [key.jwk] }) })

/** As libraries take it: the key alone, or with its id. */
const formsOf = ({
  jwk,
  privateKey,
}: ClientKey): readonly (CryptoKey | { key: CryptoKey; kid: string })[] => [
  privateKey,
  { key: privateKey, kid: String(jwk.kid) },
]

describe('C6.1.2 openid-client with PrivateKeyJwt', () => {
  it.each(NAMES)('C6.1.2 gets tokens, asks about them and revokes them with a key of %s', async (alg) => {
    const key = await makeClientKey(alg, { kid: 'one' })
    const service = await start(key)
    for (const form of formsOf(key)) {
      const configuration = await openid.discovery(
        new URL(service.authUrl),
        'signer',
        {},
        openid.PrivateKeyJwt(form),
        // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to be noticed; loopback only
        { execute: [openid.allowInsecureRequests] },
      )
      const { access_token: token } = await openid.genericGrantRequest(configuration, 'password', LOGIN)
      expect(await openid.tokenIntrospection(configuration, token)).toMatchObject({ active: true })
      await openid.tokenRevocation(configuration, token)
      expect(await openid.tokenIntrospection(configuration, token)).toEqual({ active: false })
    }
  })
})

describe('C6.1.2 oauth4webapi with PrivateKeyJwt', () => {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to be noticed; loopback only
  const LOOPBACK = { [oauth.allowInsecureRequests]: true }

  it.each(NAMES)(
    'C6.1.2 gets tokens with a key of %s, for the issuer and for the token endpoint',
    async (alg) => {
      const key = await makeClientKey(alg, { kid: 'one' })
      const service = await start(key)
      const issuer = new URL(service.authUrl)
      const server = await oauth.processDiscoveryResponse(
        issuer,
        await oauth.discoveryRequest(issuer, LOOPBACK),
      )
      const client: oauth.Client = { client_id: 'signer' }
      for (const audience of [service.authUrl, `${service.authUrl}/connect/token`, undefined]) {
        const authentication = oauth.PrivateKeyJwt(key.privateKey, {
          [oauth.modifyAssertion]: (_, payload) => {
            if (audience !== undefined) payload['aud'] = audience
          },
        })
        const response = await oauth.genericTokenEndpointRequest(
          ...([server, client, authentication, 'password', LOGIN, LOOPBACK] as const),
        )
        const tokens = await oauth.processGenericTokenEndpointResponse(server, client, response)
        expect(tokens.scope).toBe(LOGIN.scope)
      }
    },
  )
})
