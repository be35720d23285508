import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Bank, BANK_CALLBACK, makeBank, withBanks } from '../../support/bank.ts'
import { Person } from '../../support/person.ts'
import { startPostern, type StartedPostern } from '../../support/start-postern.ts'

/**
 * A bank's client on two libraries (C6.1.9): discovery, a pushed request, a code, bound tokens, a call, a refresh. What
 * they validate of themselves is the test.
 */

const SCOPE = 'openid profile offline_access fund.read business.fund.list target:b/ACME'
const METADATA = { id_token_signed_response_alg: 'ES256' }

let bank: Bank
let postern: StartedPostern

beforeAll(async () => {
  bank = await makeBank('bank')
  postern = await startPostern({ change: (configuration) => withBanks([bank], configuration) })
})
afterAll(() => postern.close())

/** A person logs in, and allows what the address asks for, if they have not done so before. */
async function allow(address: URL): Promise<URL> {
  const person = new Person(postern.authUrl)
  const consent = await person.logIn(await person.open(address.href))
  const { location } = consent.text.includes('Allow Bank')
    ? await person.submit(consent, { decision: 'allow' })
    : consent
  return location ?? new URL(BANK_CALLBACK)
}

const funds = (): URL => new URL('/api/1.0/b/ACME/fund-data/fund-list', postern.baseUrl)
const ALGORITHMS = ['ES256', 'PS256', 'Ed25519'] as const

/** With its `kid`, as the client's record has it. */
const signing = (alg: (typeof ALGORITHMS)[number]): { key: CryptoKey; kid: string } => ({
  key: bank.keys[alg].privateKey,
  kid: `${bank.id}-${alg}`,
})

describe('openid-client', () => {
  it.each(ALGORITHMS)('C6.1.9 goes through FAPI 2.0 with keys of %s', async (alg) => {
    const configuration = await client.discovery(
      new URL(postern.authUrl),
      bank.id,
      METADATA,
      client.PrivateKeyJwt(signing(alg)),
      // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to be noticed; loopback only
      { execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks] },
    )
    const DPoP = client.getDPoPHandle(configuration, await client.randomDPoPKeyPair(alg))
    const verifier = client.randomPKCECodeVerifier()
    const expected = { state: client.randomState(), nonce: client.randomNonce() }
    const parameters = {
      ...expected,
      redirect_uri: BANK_CALLBACK,
      scope: SCOPE,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }
    const address = await client.buildAuthorizationUrlWithPAR(configuration, parameters, { DPoP })
    const checks = {
      pkceCodeVerifier: verifier,
      expectedState: expected.state,
      expectedNonce: expected.nonce,
      idTokenExpected: true,
    }
    const back = await allow(address)
    const tokens = await client.authorizationCodeGrant(configuration, back, checks, undefined, { DPoP })
    expect(tokens.token_type).toBe('dpop')
    const token = tokens.refresh_token ?? ''
    const refreshed = await client.refreshTokenGrant(configuration, token, undefined, { DPoP })
    expect(refreshed.refresh_token).toBe(token)
    const { access_token } = refreshed
    const { sub = '' } = tokens.claims() ?? {}
    const userinfo = await client.fetchUserInfo(configuration, access_token, sub, { DPoP })
    expect(userinfo.name).toBe('Alice Beatrice Arden')
    const proven = [undefined, undefined, { DPoP }] as const
    const answer = await client.fetchProtectedResource(configuration, access_token, funds(), 'GET', ...proven)
    expect(answer.status).toBe(200)
    const introspected = await client.tokenIntrospection(configuration, access_token)
    expect(introspected).toMatchObject({ active: true, token_type: 'DPoP' })
    await client.tokenRevocation(configuration, token)
    const late = client.refreshTokenGrant(configuration, token, undefined, { DPoP })
    await expect(late).rejects.toMatchObject({ error: 'invalid_grant' })
  })
})

describe('oauth4webapi', () => {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to be noticed; loopback only
  const LOOPBACK = { [oauth.allowInsecureRequests]: true }

  it.each(ALGORITHMS)('C6.1.9 goes through FAPI 2.0 with keys of %s', async (alg) => {
    const issuer = new URL(postern.authUrl)
    const server = await oauth.processDiscoveryResponse(
      issuer,
      await oauth.discoveryRequest(issuer, LOOPBACK),
    )
    const self: oauth.Client = { client_id: bank.id, ...METADATA }
    const authentication = oauth.PrivateKeyJwt(signing(alg))
    const options = { ...LOOPBACK, DPoP: oauth.DPoP(self, await oauth.generateKeyPair(alg)) }
    const verifier = oauth.generateRandomCodeVerifier()
    const [state, nonce] = [oauth.generateRandomState(), oauth.generateRandomNonce()]
    const parameters = {
      redirect_uri: BANK_CALLBACK,
      response_type: 'code',
      scope: SCOPE,
      state,
      nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }
    const pushed = await oauth.pushedAuthorizationRequest(server, self, authentication, parameters, options)
    const { request_uri } = await oauth.processPushedAuthorizationResponse(server, self, pushed)
    const address = new URL(server.authorization_endpoint ?? '')
    address.search = new URLSearchParams({ client_id: bank.id, request_uri }).toString()
    // It refuses an answer without `iss`, since discovery promises one.
    const back = oauth.validateAuthResponse(server, self, await allow(address), state)
    const redeemed = await oauth.authorizationCodeGrantRequest(
      server,
      self,
      authentication,
      back,
      BANK_CALLBACK,
      verifier,
      options,
    )
    const checks = { expectedNonce: nonce, requireIdToken: true }
    const tokens = await oauth.processAuthorizationCodeResponse(server, self, redeemed, checks)
    expect(tokens.token_type).toBe('dpop')
    const token = tokens.refresh_token ?? ''
    const refreshed = await oauth.processRefreshTokenResponse(
      server,
      self,
      await oauth.refreshTokenGrantRequest(server, self, authentication, token, options),
    )
    expect(refreshed.refresh_token).toBe(token)
    const { access_token } = refreshed
    const call = [access_token, 'GET', funds(), undefined, undefined, options] as const
    expect((await oauth.protectedResourceRequest(...call)).status).toBe(200)
  })
})
