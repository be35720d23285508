import * as client from 'openid-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { recordsOf } from '../support/audit-files.ts'
import { wholeTrail } from '../support/audited-people.ts'
import { Person } from '../support/person.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'

/** openid-client against the running service: what it validates of itself is the test. */

let gateway: StartedPostern

beforeAll(async () => {
  gateway = await startPostern()
})
afterAll(async () => {
  await gateway.close()
})

// eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to be noticed; loopback only
const LOOPBACK = { execute: [client.allowInsecureRequests] }

const discover = (id = 'acme-books', algorithm: 'oidc' | 'oauth2' = 'oidc'): Promise<client.Configuration> =>
  client.discovery(
    new URL(gateway.authUrl),
    id,
    { id_token_signed_response_alg: 'RS256' },
    client.ClientSecretBasic(`${id}-secret`),
    { ...LOOPBACK, algorithm },
  )

const ALICE = { username: 'alice', password: 'alice-password' }

describe('openid-client', () => {
  it.each(['oidc', 'oauth2'] as const)('C6.3.2 discovers the service by %s metadata', async (algorithm) => {
    const metadata = (await discover('acme-books', algorithm)).serverMetadata()
    expect(metadata.issuer).toBe(gateway.authUrl)
    expect(metadata.userinfo_endpoint).toBe(`${gateway.baseUrl}/api/1.0/u/connect/userinfo`)
    expect(metadata.supportsPKCE()).toBe(true)
  })

  it('C6.1 gets a token by password, with form-encoded Basic; its id_token and userinfo validate', async () => {
    const configuration = await discover()
    client.enableNonRepudiationChecks(configuration)
    const tokens = await client.genericGrantRequest(configuration, 'password', {
      ...ALICE,
      scope: 'openid profile email offline_access fund.read target:b/ACME',
    })
    expect(tokens).toMatchObject({ token_type: 'bearer', expires_in: 900 })
    expect(tokens.refresh_token).toEqual(expect.any(String))
    const claims = tokens.claims()
    expect(claims).toMatchObject({ iss: gateway.authUrl, aud: 'acme-books', given_name: 'Alice' })
    const userinfo = await client.fetchUserInfo(configuration, tokens.access_token, claims?.sub ?? '')
    expect(userinfo).toMatchObject({ given_name: 'Alice', email: 'alice@example.com' })
    const { status } = await client.fetchProtectedResource(
      configuration,
      tokens.access_token,
      new URL('/api/1.0/b/ACME/fund-data/fund-list', gateway.baseUrl),
      'GET',
    )
    expect(status).toBe(200)
  })

  it('C6.1.2 form-encodes a secret with reserved characters, and still comes in', async () => {
    // Every character of the demo's secrets is unreserved to us and reserved to its encoder.
    const header = { authorization: '' }
    const configuration = await discover()
    configuration[client.customFetch] = (url, options) => {
      header.authorization ||= new Headers(options.headers).get('authorization') ?? ''
      return fetch(url, options as RequestInit)
    }
    await client.genericGrantRequest(configuration, 'password', { ...ALICE, scope: 'openid' })
    const sent = Buffer.from(header.authorization.slice('Basic '.length), 'base64').toString()
    expect(sent).toBe('acme%2Dbooks:acme%2Dbooks%2Dsecret')
  })

  it('C6.1.4 reads its refusals as OAuth errors', async () => {
    const configuration = await discover()
    const refused = client.genericGrantRequest(configuration, 'password', {
      username: 'alice',
      password: 'wrong',
      scope: 'openid',
    })
    await expect(refused).rejects.toMatchObject({ error: 'invalid_grant', status: 400 })
    const stranger = await client.discovery(
      new URL(gateway.authUrl),
      'acme-books',
      {},
      client.ClientSecretBasic('wrong'),
      LOOPBACK,
    )
    await expect(
      client.genericGrantRequest(stranger, 'password', { ...ALICE, scope: 'openid' }),
    ).rejects.toMatchObject({ error: 'invalid_client', status: 400 })
  })

  it('C12.3 gets, refreshes and revokes tokens, each with its record and no secret in the trail', async () => {
    const configuration = await discover()
    const scope = 'openid offline_access fund.read target:b/ACME'
    const first = await client.genericGrantRequest(configuration, 'password', { ...ALICE, scope })
    const second = await client.refreshTokenGrant(configuration, first.refresh_token ?? '')
    await client.tokenRevocation(configuration, second.refresh_token ?? '')
    const { sub = '' } = first.claims() ?? {}
    for (const [event, count] of [
      ['token.issued', 2],
      ['token.revoked', 1],
    ] as const) {
      const about = recordsOf(gateway, event).slice(-count)
      expect(about).toHaveLength(count)
      expect(JSON.stringify(about.at(-1))).toContain(sub)
    }
    const trail = wholeTrail(gateway)
    const secrets = [first, second].flatMap((tokens) => [
      tokens.access_token,
      tokens.refresh_token ?? '',
      tokens.id_token ?? '',
    ])
    for (const secret of [...secrets, ALICE.password, 'acme-books-secret']) {
      expect(secret).not.toBe('')
      expect(trail.includes(secret)).toBe(false)
    }
  })

  it('C4.13 reads the challenge of a refused call', async () => {
    const configuration = await discover()
    const userinfo = client.fetchUserInfo(configuration, 'x.y.z', 'nobody')
    await expect(userinfo).rejects.toMatchObject({
      status: 401,
      cause: [{ scheme: 'bearer', parameters: { realm: gateway.baseUrl, error: 'invalid_token' } }],
    })
  })
})

describe('openid-client with a pushed request', () => {
  it.each([
    ['', undefined],
    [' with a proof, that binds the code too', 'ES256'],
  ])('C6.2.1a pushes it%s, and gets tokens for the code', async (_, algorithm) => {
    const redirect_uri = 'http://127.0.0.1:8090/callback'
    const configuration = await discover('ledgerline')
    expect(configuration.serverMetadata().pushed_authorization_request_endpoint).toBe(
      `${gateway.authUrl}/connect/par`,
    )
    const options = algorithm !== undefined && {
      DPoP: client.getDPoPHandle(configuration, await client.randomDPoPKeyPair(algorithm)),
    }
    const verifier = client.randomPKCECodeVerifier()
    const expected = { state: client.randomState(), nonce: client.randomNonce() }
    const parameters = {
      ...expected,
      redirect_uri,
      scope: 'openid fund.read target:b/ACME',
      prompt: 'consent',
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }
    const address = await client.buildAuthorizationUrlWithPAR(configuration, parameters, options || {})
    expect([...address.searchParams.keys()].sort()).toEqual(['client_id', 'request_uri'])
    const person = new Person(gateway.authUrl)
    const consent = await person.logIn(await person.open(address.href))
    const { location } = await person.submit(consent, { decision: 'allow' })
    const checks = {
      pkceCodeVerifier: verifier,
      expectedState: expected.state,
      expectedNonce: expected.nonce,
    }
    const back = location ?? new URL(redirect_uri)
    const tokens = await client.authorizationCodeGrant(configuration, back, checks, undefined, options || {})
    expect(tokens.token_type).toBe(algorithm ? 'dpop' : 'bearer')
    expect(tokens.scope).toBe('openid fund.read target:b/ACME')
  })
})

describe('openid-client with DPoP', () => {
  let strict: StartedPostern
  beforeAll(async () => {
    strict = await startPostern({
      change: ({ identity, ...rest }) => ({
        ...rest,
        identity: { ...identity, dpop: { nonce: 'required' } },
      }),
    })
  })
  afterAll(async () => {
    await strict.close()
  })

  const scope = 'openid offline_access business.fund.list target:b/ACME'

  /** Tokens by password and by refresh, userinfo and a call: each with a proof of the handle's key. */
  async function useBoundTokens(
    { authUrl, baseUrl }: StartedPostern,
    algorithm: string,
    metadata: Partial<client.ClientMetadata> = {},
  ): Promise<void> {
    const configuration = await client.discovery(
      new URL(authUrl),
      'acme-books',
      { id_token_signed_response_alg: 'RS256', ...metadata },
      client.ClientSecretBasic('acme-books-secret'),
      LOOPBACK,
    )
    const DPoP = client.getDPoPHandle(configuration, await client.randomDPoPKeyPair(algorithm))
    const first = await client.genericGrantRequest(configuration, 'password', { ...ALICE, scope }, { DPoP })
    // It compares words of the protocol without their case.
    expect(first.token_type).toBe('dpop')
    const second = await client.refreshTokenGrant(configuration, first.refresh_token ?? '', undefined, {
      DPoP,
    })
    const { sub = '' } = first.claims() ?? {}
    const userinfo = await client.fetchUserInfo(configuration, second.access_token, sub, { DPoP })
    expect(userinfo.sub).toBe(sub)
    const url = new URL('/api/1.0/b/ACME/fund-data/fund-list', baseUrl)
    const { status } = await client.fetchProtectedResource(
      configuration,
      second.access_token,
      url,
      'GET',
      undefined,
      undefined,
      { DPoP },
    )
    expect(status).toBe(200)
  }

  it.each(['ES256', 'PS256', 'Ed25519'])('C6.1.3 gets and uses tokens bound to a key of %s', (algorithm) =>
    useBoundTokens(gateway, algorithm),
  )

  it('C6.1.0 gets and sends nonces by itself, where they are required', () => useBoundTokens(strict, 'ES256'))

  it('C6.1.0 a clock that is an hour late does not matter', () =>
    useBoundTokens(gateway, 'ES256', { [client.clockSkew]: -3600, [client.clockTolerance]: 7200 }))
})
