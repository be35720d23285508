import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openBrowser, openClientPage, type ClientPage } from '../support/browser.ts'
import { needing } from '../support/machine.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'

/** The code flow with strict settings: the client libraries judge every answer (C6.2, C6.1.6 to C6.1.8). */

const SCOPE = 'openid profile email service_profile offline_access fund.read target:b'
const SECRET = 'ledgerline-secret'

let site: ClientPage
let postern: StartedPostern
let callback: string
let bye: string

beforeAll(async () => {
  site = await openClientPage()
  callback = `${site.origin}/callback`
  bye = `${site.origin}/bye`
  postern = await startPostern({
    change: ({ directory, ...rest }) => {
      const ledgerline = {
        ...directory.clients['ledgerline']!,
        redirectUris: [callback],
        postLogoutRedirectUris: [bye],
      }
      return { ...rest, directory: { ...directory, clients: { ...directory.clients, ledgerline } } }
    },
  })
})
afterAll(async () => {
  await postern.close()
  await site.close()
})

/** In Chromium: logs in, chooses ACME, allows, and later logs out. */
interface Person {
  readonly allow: (url: URL) => Promise<URL>
  readonly leave: (url: URL) => Promise<string>
}

async function openPerson(): Promise<Person> {
  const { close, context } = await openBrowser()
  onTestFinished(close)
  const page = await context.newPage()
  return {
    allow: async (url) => {
      await page.goto(url.href)
      await page.getByLabel('User name').fill('alice')
      await page.getByLabel('Password', { exact: true }).fill('alice-password')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByLabel('Acme Advisory').check()
      await page.getByRole('button', { name: 'Allow', exact: true }).click()
      await page.waitForURL(`${site.origin}/**`)
      return new URL(page.url())
    },
    leave: async (url) => {
      await page.goto(url.href)
      return page.url()
    },
  }
}

// eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to be noticed; loopback only
const LOOPBACK = { [oauth.allowInsecureRequests]: true }
const SELF: oauth.Client = {
  client_id: 'ledgerline',
  id_token_signed_response_alg: 'RS256',
  require_auth_time: true,
}
const AUTHENTICATION = oauth.ClientSecretBasic(SECRET)

/** Discovery, authorize and the code's redemption by oauth4webapi, which judges each answer. */
async function walkStepByStep(person: Person) {
  const issuer = new URL(postern.authUrl)
  const discovered = await oauth.discoveryRequest(issuer, { algorithm: 'oidc', ...LOOPBACK })
  const server = await oauth.processDiscoveryResponse(issuer, discovered)
  const verifier = oauth.generateRandomCodeVerifier()
  const [nonce, state] = [oauth.generateRandomNonce(), oauth.generateRandomState()]
  const asked = new URL(server.authorization_endpoint ?? '')
  asked.search = new URLSearchParams({
    client_id: SELF.client_id,
    redirect_uri: callback,
    response_type: 'code',
    scope: SCOPE,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    nonce,
    state,
  }).toString()
  const parameters = oauth.validateAuthResponse(server, SELF, await person.allow(asked), state)
  const redeem = (): Promise<Response> =>
    oauth.authorizationCodeGrantRequest(
      server,
      SELF,
      AUTHENTICATION,
      parameters,
      callback,
      verifier,
      LOOPBACK,
    )
  const answer = await redeem()
  const tokens = await oauth.processAuthorizationCodeResponse(server, SELF, answer, {
    expectedNonce: nonce,
    maxAge: 600,
    requireIdToken: true,
  })
  await oauth.validateApplicationLevelSignature(server, answer, LOOPBACK)
  const refresh = (token = ''): Promise<Response> =>
    oauth.refreshTokenGrantRequest(server, SELF, AUTHENTICATION, token, LOOPBACK)
  return { server, tokens, redeem, refresh, state }
}

describe('C6.2 the code flow with clients that others wrote', needing('chromium'), () => {
  it('C6.2, C6.1.7, C6.3.3 openid-client: discovery, authorize, code, userinfo, refresh, introspect, revoke, logout', async () => {
    const configuration = await client.discovery(
      new URL(postern.authUrl),
      'ledgerline',
      { id_token_signed_response_alg: 'RS256', require_auth_time: true, default_max_age: 600 },
      client.ClientSecretBasic(SECRET),
      // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to be noticed; loopback only
      { execute: [client.allowInsecureRequests] },
    )
    client.enableNonRepudiationChecks(configuration)
    const verifier = client.randomPKCECodeVerifier()
    const [nonce, state] = [client.randomNonce(), client.randomState()]
    const person = await openPerson()
    const asked = client.buildAuthorizationUrl(configuration, {
      redirect_uri: callback,
      scope: SCOPE,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      nonce,
      state,
    })
    const tokens = await client.authorizationCodeGrant(configuration, await person.allow(asked), {
      pkceCodeVerifier: verifier,
      expectedNonce: nonce,
      expectedState: state,
      idTokenExpected: true,
    })
    expect(tokens.scope).toBe(SCOPE.replace('target:b', 'target:b/ACME'))
    const subject = tokens.claims()?.sub ?? ''
    const userinfo = await client.fetchUserInfo(configuration, tokens.access_token, subject)
    expect(userinfo).toMatchObject({ service_profile: { business_code: 'ACME' } })
    const refreshed = await client.refreshTokenGrant(configuration, tokens.refresh_token ?? '')
    expect(refreshed.claims()?.sub).toBe(subject)
    const active = async (): Promise<boolean> =>
      (await client.tokenIntrospection(configuration, refreshed.access_token)).active
    expect(await active()).toBe(true)
    await client.tokenRevocation(configuration, refreshed.refresh_token ?? '')
    expect(await active()).toBe(false)
    const left = client.buildEndSessionUrl(configuration, {
      id_token_hint: tokens.id_token ?? '',
      post_logout_redirect_uri: bye,
      state,
    })
    expect(await person.leave(left)).toBe(`${bye}?state=${state}`)
  })

  it('C6.2, C6.1.7, C6.3.3 oauth4webapi: the same step by step, each answer validated', async () => {
    const person = await openPerson()
    const { refresh, server, state, tokens } = await walkStepByStep(person)
    const { sub = '', auth_time } = oauth.getValidatedIdTokenClaims(tokens) ?? {}
    const told = await oauth.userInfoRequest(server, SELF, tokens.access_token, LOOPBACK)
    expect(await oauth.processUserInfoResponse(server, SELF, sub, told)).toMatchObject({
      given_name: 'Alice',
      service_profile: { business_code: 'ACME' },
    })

    const answer = await refresh(tokens.refresh_token)
    const refreshed = await oauth.processRefreshTokenResponse(server, SELF, answer)
    await oauth.validateApplicationLevelSignature(server, answer, LOOPBACK)
    expect(oauth.getValidatedIdTokenClaims(refreshed)).toMatchObject({ sub, auth_time })
    const introspect = async (token: string): Promise<oauth.IntrospectionResponse> => {
      const asked = await oauth.introspectionRequest(server, SELF, AUTHENTICATION, token, LOOPBACK)
      return oauth.processIntrospectionResponse(server, SELF, asked)
    }
    const scope = SCOPE.replace('target:b', 'target:b/ACME')
    const described = { active: true, client_id: SELF.client_id, iss: server.issuer, scope, sub }
    expect(await introspect(refreshed.access_token)).toMatchObject(described)
    expect(await introspect(refreshed.refresh_token ?? '')).toMatchObject({ active: true, sub })

    const revoked = await oauth.revocationRequest(
      server,
      SELF,
      AUTHENTICATION,
      refreshed.refresh_token ?? '',
      LOOPBACK,
    )
    await oauth.processRevocationResponse(revoked)
    for (const token of [tokens.access_token, refreshed.access_token, refreshed.refresh_token ?? ''])
      expect(await introspect(token)).toEqual({ active: false })
    const ended = oauth.processRefreshTokenResponse(server, SELF, await refresh(refreshed.refresh_token))
    await expect(ended).rejects.toMatchObject({ error: 'invalid_grant' })

    const left = new URL(server.end_session_endpoint ?? '')
    left.search = new URLSearchParams({
      id_token_hint: refreshed.id_token ?? '',
      post_logout_redirect_uri: bye,
      state,
    }).toString()
    expect(await person.leave(left)).toBe(`${bye}?state=${state}`)
  })

  it('C6.1.6 oauth4webapi: a code’s second use is invalid_grant, and ends what the first one gave', async () => {
    const { redeem, refresh, server, tokens } = await walkStepByStep(await openPerson())
    const replayed = oauth.processAuthorizationCodeResponse(server, SELF, await redeem())
    await expect(replayed).rejects.toMatchObject({ error: 'invalid_grant' })
    const ended = oauth.processRefreshTokenResponse(server, SELF, await refresh(tokens.refresh_token))
    await expect(ended).rejects.toMatchObject({ error: 'invalid_grant' })
  })
})
