import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  type JSONWebKeySet,
  type JWTPayload,
  jwtVerify,
} from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Bank, BANK_CALLBACK, makeBank, withBanks } from '../../support/bank.ts'
import { provenHeaders } from '../../support/bound-tokens.ts'
import { assertedBy, assertion, type AssertionOptions } from '../../support/client-assertions.ts'
import { movableClock } from '../../support/movable-clock.ts'
import type { OAuthAnswer } from '../../support/oauth.ts'
import { Person, type Shown } from '../../support/person.ts'
import { type Prover, prover } from '../../support/prover.ts'
import { startPostern, type StartedPostern } from '../../support/start-postern.ts'

/**
 * What the FAPI 2.0 Security Profile asks of an authorization server, as its conformance suite has it: a test that is one
 * of the modules of `fapi2-security-profile-final-test-plan` (openid_connect, private_key_jwt, dpop, plain_fapi) bears
 * that name, without `fapi2-security-profile-final-` before it.
 */

const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const FUNDS = '/api/1.0/b/ACME/fund-data/fund-list'
const USERINFO = '/api/1.0/u/connect/userinfo'
const SCOPE = 'openid profile offline_access fund.read business.fund.list target:b/ACME'

const clock = movableClock()
let bank: Bank
let other: Bank
let postern: StartedPostern
let person: Person
let keys: ReturnType<typeof createLocalJWKSet>

beforeAll(async () => {
  ;[bank, other] = await Promise.all([makeBank('bank'), makeBank('other-bank')])
  postern = await startPostern({
    keeps: 'nothing',
    clock,
    change: (configuration) => {
      const { accessToken, code, ...identity } = configuration.identity
      return withBanks([bank, other], {
        ...configuration,
        // What the profile decides does not follow the deployment.
        identity: {
          ...identity,
          accessToken: { ...accessToken, algorithm: 'RS256' },
          code: { ...code, lifetime: 300_000 },
        },
      })
    },
  })
  const jwks = await fetch(`${postern.authUrl}/.well-known/jwks.json`)
  keys = createLocalJWKSet((await jwks.json()) as JSONWebKeySet)
  person = new Person(postern.authUrl)
  const consent = await person.logIn(await person.open(opening((await push()).json.request_uri)))
  await person.submit(consent, { decision: 'allow' })
})
afterAll(() => postern.close())

/** `undefined` takes a parameter away. */
type Params = Readonly<Record<string, string | undefined>>

interface Sending {
  /** The bank unless told otherwise. */
  readonly by?: Bank
  readonly alg?: keyof Bank['keys']
  readonly assertion?: AssertionOptions
  /** The whole header `DPoP`. */
  readonly dpop?: string
  /** Also a request without an assertion. */
  readonly proves?: boolean
}

const given = (params: Params): Record<string, string> =>
  Object.fromEntries(
    Object.entries(params).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )

const assertionOf = ({ by = bank, alg = 'ES256', assertion: options }: Sending = {}): Promise<string> =>
  assertion(by.keys[alg], { client: by.id, audience: postern.authUrl, now: clock.now(), ...options })

async function post(path: string, params: Params, dpop?: string): Promise<OAuthAnswer> {
  const { headers, status, ...response } = await fetch(`${postern.authUrl}${path}`, {
    method: 'POST',
    headers: dpop === undefined ? {} : { dpop },
    body: new URLSearchParams(given(params)),
  }).then(async (answer) => ({
    headers: answer.headers,
    status: answer.status,
    text: await answer.text(),
  }))
  return { status, headers, json: response.text === '' ? undefined : JSON.parse(response.text) }
}

/** A request that the client proves by an assertion. */
async function send(path: string, params: Params, sending: Sending = {}): Promise<OAuthAnswer> {
  const { dpop, proves = true } = sending
  const asserted = proves ? assertedBy(await assertionOf(sending)) : {}
  return post(path, { ...asserted, ...params }, dpop)
}

const push = (params: Params = {}, sending: Sending = {}): Promise<OAuthAnswer> =>
  send(
    '/connect/par',
    {
      response_type: 'code',
      redirect_uri: BANK_CALLBACK,
      scope: SCOPE,
      state: 'state-1',
      nonce: 'nonce-1',
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      ...params,
    },
    sending,
  )

const opening = (requestUri: string, params: Params = {}): string =>
  `/connect/authorize?${new URLSearchParams(given({ client_id: bank.id, request_uri: requestUri, ...params })).toString()}`

const answerIn = ({ location }: Shown): Record<string, string> =>
  Object.fromEntries(location?.searchParams ?? [])

/** What the client is answered by the person who is logged in and has allowed it all. */
async function authorize(params?: Params, sending?: Sending): Promise<Record<string, string>> {
  const { json, status } = await push(params, sending)
  expect(status).toBe(201)
  return answerIn(await person.open(opening(json.request_uri)))
}

const codeFor = async (params?: Params, sending?: Sending): Promise<string> =>
  (await authorize(params, sending))['code'] ?? ''

const proofFor = (path: string, by: Prover, claims: object = {}): string =>
  by.prove({ htm: 'POST', htu: `${postern.authUrl}${path}`, ...claims })

const newKey = (): Prover => prover(clock)

const redeem = (code: string, by: Prover, params: Params = {}, sending: Sending = {}): Promise<OAuthAnswer> =>
  send(
    '/connect/token',
    {
      grant_type: 'authorization_code',
      code,
      redirect_uri: BANK_CALLBACK,
      code_verifier: VERIFIER,
      ...params,
    },
    { dpop: proofFor('/connect/token', by), ...sending },
  )

const refresh = (token: string, by: Prover, sending: Sending = {}): Promise<OAuthAnswer> =>
  send(
    '/connect/token',
    { grant_type: 'refresh_token', refresh_token: token },
    { dpop: proofFor('/connect/token', by), ...sending },
  )

const call = (
  token: string,
  by: Prover,
  {
    target = FUNDS,
    claims = {},
    scheme = 'DPoP',
  }: { target?: string; claims?: object; scheme?: string } = {},
): Promise<Response> => {
  const { DPoP } = provenHeaders(by, token, { baseUrl: postern.baseUrl, target }, { ...claims })
  return fetch(postern.baseUrl + target, { headers: { Authorization: `${scheme} ${token}`, DPoP } })
}

/** The claims of an id_token that passes a client's checks. */
async function claimsOf({ json }: OAuthAnswer): Promise<JWTPayload> {
  const { payload } = await jwtVerify(json.id_token, keys, {
    issuer: postern.authUrl,
    audience: bank.id,
    algorithms: ['ES256'],
    currentDate: new Date(clock.now()),
    requiredClaims: ['sub', 'iat', 'exp'],
  })
  return payload
}

const errorOf = ({ json, status }: OAuthAnswer): unknown => [status, json.error]

describe('C6.1.9 the flow', () => {
  it('C6.1.9, C6.3.2 discovery-end-point-verification: what the profile needs is announced', async () => {
    const answer = await fetch(`${postern.authUrl}/.well-known/openid-configuration`)
    expect(await answer.json()).toMatchObject({
      issuer: postern.authUrl,
      pushed_authorization_request_endpoint: `${postern.authUrl}/connect/par`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      token_endpoint_auth_methods_supported: expect.arrayContaining(['private_key_jwt']),
      token_endpoint_auth_signing_alg_values_supported: expect.arrayContaining(['ES256', 'PS256', 'Ed25519']),
      dpop_signing_alg_values_supported: expect.arrayContaining(['ES256', 'PS256', 'Ed25519']),
      grant_types_supported: expect.arrayContaining(['authorization_code', 'refresh_token']),
    })
  })

  it('C6.1.9 happy-flow: a pushed request, a code with iss, bound tokens of ES256, and calls with them', async () => {
    const key = newKey()
    const { code, ...rest } = await authorize()
    expect(rest).toEqual({ state: 'state-1', iss: postern.authUrl })
    // 256 bits: more than the 128 that the suite measures.
    expect(code).toMatch(/^[\w-]{43}$/)
    const answer = await redeem(code ?? '', key)
    expect(answer.json).toMatchObject({ token_type: 'DPoP', expires_in: 900, scope: SCOPE })
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(decodeProtectedHeader(answer.json.access_token)).toMatchObject({ alg: 'ES256', typ: 'at+jwt' })
    expect(decodeJwt(answer.json.access_token)).toMatchObject({ cnf: { jkt: key.jkt }, client_id: bank.id })
    expect(await claimsOf(answer)).toMatchObject({ nonce: 'nonce-1' })
    expect((await call(answer.json.access_token, key)).status).toBe(200)
    expect((await call(answer.json.access_token, key, { target: USERINFO })).status).toBe(200)
  })

  it('C6.1.9 user-rejects-authentication: access_denied, with state and iss', async () => {
    const { json } = await push({ prompt: 'consent' })
    const consent = await person.open(opening(json.request_uri))
    expect(answerIn(await person.submit(consent, { decision: 'deny' }))).toEqual({
      error: 'access_denied',
      error_description: expect.any(String),
      state: 'state-1',
      iss: postern.authUrl,
    })
  })

  it('C6.1.9 ensure-authorization-request-without-state-success: the answer has none', async () => {
    expect(Object.keys(await authorize({ state: undefined })).sort()).toEqual(['code', 'iss'])
  })

  it('C6.1.9 ensure-authorization-request-without-nonce-success: the id_token has none', async () => {
    const answer = await redeem(await codeFor({ nonce: undefined }), newKey())
    expect(await claimsOf(answer)).not.toHaveProperty('nonce')
  })

  it('C6.1.9 ensure-authorization-request-with-64-char-nonce-success', async () => {
    const nonce = 'n'.repeat(64)
    expect(await claimsOf(await redeem(await codeFor({ nonce }), newKey()))).toMatchObject({ nonce })
  })

  it('C6.1.9 ensure-authorization-request-with-long-nonce: 65 characters are refused', async () => {
    expect(errorOf(await push({ nonce: 'n'.repeat(65) }))).toEqual([400, 'invalid_request'])
  })

  it('C6.1.9 ensure-authorization-request-with-long-state: returned as it was sent, or refused', async () => {
    const state = 's'.repeat(2048)
    expect(await authorize({ state })).toMatchObject({ state })
    expect(errorOf(await push({ state: `${state}s` }))).toEqual([400, 'invalid_request'])
  })

  it.each<[string, Params]>([
    ['ensure-other-scope-order-succeeds', { scope: SCOPE.split(' ').reverse().join(' ') }],
    [
      'test-claims-parameter-identity-claims, which is not announced',
      { claims: '{"id_token":{"name":{"essential":true}}}' },
    ],
  ])('C6.1.9 %s', async (_, params) => {
    expect((await redeem(await codeFor(params), newKey())).status).toBe(200)
  })
})

describe('C6.1.9 pushed requests', () => {
  const refusedPage = async (shown: Promise<Shown>): Promise<void> => {
    const { status, location, text } = await shown
    expect([status, location]).toEqual([400, undefined])
    expect(text).toContain('role="alert"')
  }

  it('C6.1.9 ensure-unsigned-authorization-request-without-using-par-fails', async () => {
    const query = new URLSearchParams({
      client_id: bank.id,
      response_type: 'code',
      redirect_uri: BANK_CALLBACK,
      scope: SCOPE,
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
    })
    const answer = answerIn(await person.open(`/connect/authorize?${query.toString()}`))
    expect(answer).toMatchObject({ error: 'invalid_request', iss: postern.authUrl })
    expect(answer).not.toHaveProperty('code')
  })

  it('C6.1.9 par-without-duplicate-parameters: client_id and request_uri are enough', async () => {
    const { json, headers, status } = await push()
    expect([status, headers.get('cache-control'), json.expires_in]).toEqual([201, 'no-store', 60])
    expect(answerIn(await person.open(opening(json.request_uri)))).toHaveProperty('code')
  })

  it.each<[string, Params]>([
    ['ensure-different-state-inside-and-outside-request-object', { state: 'other' }],
    ['ensure-different-nonce-inside-and-outside-request-object', { nonce: 'other' }],
  ])('C6.1.9 %s: what was pushed counts', async (_, params) => {
    const { json } = await push()
    const { code, state } = answerIn(await person.open(opening(json.request_uri, params)))
    expect(state).toBe('state-1')
    expect(await claimsOf(await redeem(code ?? '', newKey()))).toMatchObject({ nonce: 'nonce-1' })
  })

  it('C6.1.9 state-only-outside-request-object-not-used', async () => {
    const { json } = await push({ state: undefined })
    expect(answerIn(await person.open(opening(json.request_uri, { state: 'other' })))).not.toHaveProperty(
      'state',
    )
  })

  it.each<[string, Params, string]>([
    ['ensure-request-object-without-redirect-uri-fails', { redirect_uri: undefined }, 'invalid_request'],
    ['ensure-redirect-uri-in-authorization-request', { redirect_uri: '' }, 'invalid_request'],
    [
      'plain-fapi-tolerate-unregistered-redirect-uri, refused here',
      { redirect_uri: 'https://evil.test/' },
      'invalid_request',
    ],
    [
      'ensure-response-type-code-idtoken-fails',
      { response_type: 'code id_token' },
      'unsupported_response_type',
    ],
    ['ensure-response-type-token-fails', { response_type: 'token' }, 'unsupported_response_type'],
    [
      'par-authorization-request-containing-request_uri-form-param',
      { request_uri: 'urn:ietf:params:oauth:request_uri:x' },
      'invalid_request',
    ],
    [
      'par-ensure-pkce-required',
      { code_challenge: undefined, code_challenge_method: undefined },
      'invalid_request',
    ],
    [
      'par-plain-pkce-rejected',
      { code_challenge: VERIFIER, code_challenge_method: 'plain' },
      'invalid_request',
    ],
  ])('C6.1.9 %s', async (_, params, error) => {
    expect(errorOf(await push(params))).toEqual([400, error])
  })

  it.each(['GET', 'PUT'])('C6.1.9 par-attempt-invalid-http-method: %s', async (method) => {
    expect((await fetch(`${postern.authUrl}/connect/par`, { method })).status).toBe(405)
  })

  it('C6.1.9 par-ensure-reused-request-uri-prior-to-auth-completion-succeeds', async () => {
    const { json } = await push()
    const stranger = new Person(postern.authUrl)
    const first = await stranger.open(opening(json.request_uri))
    expect(first.text).toContain('Sign in')
    const again = await stranger.open(opening(json.request_uri))
    expect(answerIn(await stranger.logIn(again))).toHaveProperty('code')
  })

  it('C6.1.9 par-attempt-reuse-request_uri', async () => {
    const { json } = await push()
    expect(answerIn(await person.open(opening(json.request_uri)))).toHaveProperty('code')
    await refusedPage(person.open(opening(json.request_uri)))
  })

  it('C6.1.9 par-attempt-to-use-expired-request_uri', async () => {
    const { json } = await push()
    clock.advance(61_000)
    await refusedPage(person.open(opening(json.request_uri)))
  })

  it('C6.1.9 par-attempt-to-use-request_uri-for-different-client', async () => {
    const { json } = await push()
    await refusedPage(person.open(opening(json.request_uri, { client_id: other.id })))
  })
})

describe('C6.1.9 codes', () => {
  it('C6.1.9 ensure-pkce-code-verifier-required, incorrect-pkce-code-verifier-rejected', async () => {
    for (const code_verifier of [undefined, VERIFIER.toLowerCase()]) {
      const refused = await redeem(await codeFor(), newKey(), { code_verifier })
      expect(errorOf(refused)).toEqual([400, 'invalid_grant'])
    }
  })

  it('C6.1.9 ensure-authorization-code-is-bound-to-client: another client’s attempt changes nothing', async () => {
    const code = await codeFor()
    const key = newKey()
    expect(errorOf(await redeem(code, key, {}, { by: other }))).toEqual([400, 'invalid_grant'])
    expect((await redeem(code, key)).status).toBe(200)
  })

  it('C6.1.9 attempt-reuse-authorization-code-after-one-second: and what it gave ends', async () => {
    const code = await codeFor()
    const key = newKey()
    const { json } = await redeem(code, key)
    clock.advance(1000)
    expect(errorOf(await redeem(code, key))).toEqual([400, 'invalid_grant'])
    expect((await call(json.access_token, key)).status).toBe(401)
    expect(errorOf(await refresh(json.refresh_token, key))).toEqual([400, 'invalid_grant'])
  })

  it('C6.1.9 ensure-token-endpoint-fails-with-expired-auth-code: after 60 s, whatever the deployment says', async () => {
    const code = await codeFor()
    clock.advance(60_001)
    expect(errorOf(await redeem(code, newKey()))).toEqual([400, 'invalid_grant'])
  })

  it('C6.1.9 ensure-client-id-in-token-endpoint: another one than that of the assertion is refused', async () => {
    const refused = await redeem(await codeFor(), newKey(), { client_id: other.id })
    expect([400, 401]).toContain(refused.status)
    expect(refused.json).not.toHaveProperty('access_token')
  })

  it('C6.1.9 of another grant: a password is no way in', async () => {
    const params = { grant_type: 'password', username: 'alice', password: 'alice-password', scope: SCOPE }
    const dpop = proofFor('/connect/token', newKey())
    expect(errorOf(await send('/connect/token', params, { dpop }))).toEqual([400, 'unauthorized_client'])
  })
})

describe('C6.1.9 the key that tokens are bound to', () => {
  it('C6.1.9 ensure-holder-of-key-required: without a proof no token, and the code still works', async () => {
    const code = await codeFor()
    const params = {
      grant_type: 'authorization_code',
      code,
      redirect_uri: BANK_CALLBACK,
      code_verifier: VERIFIER,
    }
    expect(errorOf(await send('/connect/token', params))).toEqual([400, 'invalid_dpop_proof'])
    expect((await redeem(code, newKey())).status).toBe(200)
  })

  it('C6.1.9 ensure-holder-of-key-required: nor is a call answered without one, or with Bearer', async () => {
    const key = newKey()
    const { access_token } = (await redeem(await codeFor(), key)).json
    const plain = await fetch(postern.baseUrl + FUNDS, {
      headers: { Authorization: `Bearer ${access_token}` },
    })
    expect([plain.status, plain.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringMatching(/^DPoP /),
    ])
    expect((await call(access_token, key, { scheme: 'Bearer' })).status).toBe(401)
    expect((await call(access_token, newKey())).status).toBe(401)
  })

  it.each(['dpop', 'DPOP'])('C6.1.9 access-token-type-header-case-sensitivity: %s', async (scheme) => {
    const key = newKey()
    const { access_token } = (await redeem(await codeFor(), key)).json
    expect((await call(access_token, key, { scheme })).status).toBe(200)
  })

  const seconds = (): number => Math.floor(clock.now() / 1000)

  it.each<[string, () => object]>([
    ['check-dpop-proof-nbf-exp', () => ({ nbf: seconds(), exp: seconds() + 300 })],
    ['ensure-dpopproof-with-iat-10seconds-before-succeeds', () => ({ iat: seconds() - 10 })],
    ['ensure-dpopproof-with-iat-10seconds-after-succeeds', () => ({ iat: seconds() + 10 })],
  ])('C6.1.9 %s: at all three endpoints', async (_, claims) => {
    const key = newKey()
    const code = await codeFor({}, { dpop: proofFor('/connect/par', key, claims()) })
    const { json, status } = await redeem(code, key, {}, { dpop: proofFor('/connect/token', key, claims()) })
    expect(status).toBe(200)
    expect((await call(json.access_token, key, { claims: claims() })).status).toBe(200)
  })

  it('C6.1.9 ensure-mismatched-dpop-jkt-fails', async () => {
    const pushed = await push({ dpop_jkt: newKey().jkt }, { dpop: proofFor('/connect/par', newKey()) })
    expect(errorOf(pushed)).toEqual([400, 'invalid_dpop_proof'])
  })

  it('C6.1.9 ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt', async () => {
    const code = await codeFor({}, { dpop: proofFor('/connect/par', newKey()) })
    expect(errorOf(await redeem(code, newKey()))).toEqual([400, 'invalid_grant'])
  })

  it('C6.1.9 ensure-token-endpoint-fails-with-mismatched-dpop-jkt', async () => {
    const code = await codeFor({ dpop_jkt: newKey().jkt })
    expect(errorOf(await redeem(code, newKey()))).toEqual([400, 'invalid_grant'])
  })

  it('C6.1.9 ensure-dpopproof-at-par-endpoint-binding-success, ensure-dpop-auth-code-binding-success', async () => {
    const key = newKey()
    const proven = await codeFor({}, { dpop: proofFor('/connect/par', key) })
    expect((await redeem(proven, key)).status).toBe(200)
    const both = await codeFor({ dpop_jkt: key.jkt }, { dpop: proofFor('/connect/par', key) })
    expect((await redeem(both, key)).status).toBe(200)
  })

  it.each<[string, object, object]>([
    ['another typ', {}, { typ: 'jwt' }],
    ['alg none', {}, { alg: 'none' }],
    ['no jwk', {}, { jwk: undefined }],
    ['another method', { htm: 'GET' }, {}],
    ['another address', { htu: 'https://evil.test/connect/token' }, {}],
    ['no jti', { jti: undefined }, {}],
  ])('C6.1.9 dpop-negative-tests: %s at the token endpoint', async (_, claims, header) => {
    const htu = `${postern.authUrl}/connect/token`
    const dpop = newKey().prove({ htm: 'POST', htu, ...claims }, { ...header })
    const refused = await redeem(await codeFor(), newKey(), {}, { dpop })
    expect(errorOf(refused)).toEqual([400, 'invalid_dpop_proof'])
  })

  it('C6.1.9 dpop-negative-tests: of calls, without ath, with that of another token, and a proof once more', async () => {
    const key = newKey()
    const { access_token } = (await redeem(await codeFor(), key)).json
    for (const ath of [undefined, 'x'.repeat(43)])
      expect((await call(access_token, key, { claims: { ath } })).status).toBe(401)
    const jti = 'once'
    expect((await call(access_token, key, { claims: { jti } })).status).toBe(200)
    expect((await call(access_token, key, { claims: { jti } })).status).toBe(401)
  })

  it('C6.1.0 a proof that is asked for a nonce uses nothing up: the same request goes again', async () => {
    const key = newKey()
    const form = {
      ...assertedBy(await assertionOf()),
      grant_type: 'authorization_code',
      code: await codeFor(),
      redirect_uri: BANK_CALLBACK,
      code_verifier: VERIFIER,
    }
    const late = { iat: seconds() - 3600 }
    const asked = await post('/connect/token', form, proofFor('/connect/token', key, late))
    expect(errorOf(asked)).toEqual([400, 'use_dpop_nonce'])
    const nonce = asked.headers.get('dpop-nonce')
    const given = await post('/connect/token', form, proofFor('/connect/token', key, { ...late, nonce }))
    expect(given.status).toBe(200)
  })
})

describe('C6.1.9 assertions of the client', () => {
  it.each(['ES256', 'PS256', 'Ed25519'] as const)('C6.1.9 %s proves the client', async (alg) => {
    expect((await push({}, { alg })).status).toBe(201)
  })

  it('C6.1.9 ensure-signed-client-assertion-with-RS256-fails', async () => {
    const refused = await push({}, { alg: 'RS256' })
    expect(refused.json).toMatchObject({ error: 'invalid_client' })
  })

  it('C6.1.9 ensure-client-assertion-in-token-endpoint: nothing else proves the client', async () => {
    const refused = await redeem(await codeFor(), newKey(), { client_id: bank.id }, { proves: false })
    expect(refused.json.error).toMatch(/^invalid_(client|request)$/)
    const posted = await redeem(
      await codeFor(),
      newKey(),
      { client_id: bank.id, client_secret: 'ledgerline-secret' },
      { proves: false },
    )
    expect(posted.json.error).toBe('invalid_client')
  })

  const seconds = (): number => Math.floor(clock.now() / 1000)

  it.each<[string, () => AssertionOptions]>([
    [
      'ensure-client-assertion-with-exp-is-5-minutes-in-past-fails',
      () => ({ claims: { exp: seconds() - 300 } }),
    ],
    ['ensure-client-assertion-with-wrong-aud-fails', () => ({ audience: 'https://evil.test' })],
    ['ensure-client-assertion-with-no-sub-fails', () => ({ claims: { sub: undefined } })],
    ['par-test-array-as-audience-fails', () => ({ audience: [postern.authUrl] })],
    [
      'par-test-array-as-audience-fails, of two',
      () => ({ audience: [postern.authUrl, 'https://evil.test'] }),
    ],
    ['par-test-par-endpoint-url-as-audience-fails', () => ({ audience: `${postern.authUrl}/connect/par` })],
    [
      'par-test-token-endpoint-url-as-audience-fails',
      () => ({ audience: `${postern.authUrl}/connect/token` }),
    ],
    [
      'par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails',
      () => ({ claims: { nbf: seconds() + 61, iat: seconds() + 61 } }),
    ],
    ['an iat that is 61 s ahead', () => ({ claims: { iat: seconds() + 61 } })],
  ])('C6.1.9 %s', async (_, options) => {
    expect((await push({}, { assertion: options() })).json.error).toBe('invalid_client')
    const redeemed = await redeem(await codeFor(), newKey(), {}, { assertion: options() })
    expect(redeemed.json.error).toBe('invalid_client')
  })

  it.each([8, 10])(
    'C6.1.9 par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted: %i s',
    async (ahead) => {
      const claims = { nbf: seconds() + ahead, iat: seconds() + ahead }
      expect((await push({}, { assertion: { claims } })).status).toBe(201)
    },
  )

  it('C6.1.2 an assertion counts once', async () => {
    const form = { ...assertedBy(await assertionOf()), grant_type: 'refresh_token', refresh_token: 'x' }
    const first = await post('/connect/token', form, proofFor('/connect/token', newKey()))
    expect(first.json.error).toBe('invalid_grant')
    const second = await post('/connect/token', form, proofFor('/connect/token', newKey()))
    expect(second.json.error).toBe('invalid_client')
  })
})

describe('C6.1.9, C6.1.7 refresh tokens', () => {
  it('C6.1.9 refresh-token: stays the same, however often and however many at once it is used', async () => {
    const key = newKey()
    const first = await redeem(await codeFor(), key)
    const token: string = first.json.refresh_token
    const uses = [
      ...(await Promise.all(Array.from({ length: 8 }, () => refresh(token, key)))),
      await refresh(token, key),
    ]
    // Longer than a used token that is replaced would work.
    clock.advance(120_000)
    uses.push(await refresh(token, key))
    for (const { json, status } of uses)
      expect([status, json.refresh_token, json.token_type]).toEqual([200, token, 'DPoP'])
    const last = uses.at(-1)!
    expect(new Set(uses.map(({ json }) => json.access_token)).size).toBe(uses.length)
    expect(decodeProtectedHeader(last.json.access_token).alg).toBe('ES256')
    expect((await claimsOf(last)).sub).toBe((await claimsOf(first)).sub)
    expect((await call(last.json.access_token, key)).status).toBe(200)
  })

  it('C6.1.9 refresh-token: works for its own client alone, with a proof, and not after it was revoked', async () => {
    const key = newKey()
    const { refresh_token } = (await redeem(await codeFor(), key)).json
    expect(errorOf(await refresh(refresh_token, key, { by: other }))).toEqual([400, 'invalid_grant'])
    const params = { grant_type: 'refresh_token', refresh_token }
    expect(errorOf(await send('/connect/token', params))).toEqual([400, 'invalid_dpop_proof'])
    expect((await refresh(refresh_token, key)).status).toBe(200)
    expect((await send('/connect/revocation', { token: refresh_token })).status).toBe(200)
    expect(errorOf(await refresh(refresh_token, key))).toEqual([400, 'invalid_grant'])
  })
})
