import {
  createLocalJWKSet,
  decodeProtectedHeader,
  jwtVerify,
  type JSONWebKeySet,
  type JWTPayload,
} from 'jose'
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { movableClock } from '../support/movable-clock.ts'
import { postForm, type OAuthAnswer } from '../support/oauth.ts'
import { Person, type Shown } from '../support/person.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'

/**
 * The cases of the OpenID Connect Basic OP profile, as its conformance suite has them: a test that is one of its
 * modules bears that name (`oidcc-…`). A person with a browser that knows cookies and forms walks them. All are run with
 * the settings of one client. Two of the modules fail by default, and each by one key: `requireBinding: false` is for
 * `oidcc-ensure-request-without-nonce-succeeds-for-code-flow`, which sends neither PKCE nor a nonce; a secret in the body
 * (`oidcc-server-client-secret-post`), once to be allowed for each client, is taken unless `authentication` leaves it out.
 */

const CALLBACK = 'https://app.test/callback'
const WITH_QUERY = 'https://app.test/other?fixed=1'
const BYE = 'https://app.test/bye'
const USERINFO = '/api/1.0/u/connect/userinfo'

const clock = movableClock()
let postern: StartedPostern
let keys: ReturnType<typeof createLocalJWKSet>

beforeAll(async () => {
  postern = await startPostern({
    keeps: 'nothing',
    clock,
    change: (configuration) => {
      const { directory, ...rest } = configuration
      const ledgerline = {
        ...directory.clients['ledgerline']!,
        requirePkce: false,
        requireBinding: false,
        strictRfc6749: true,
        redirectUris: [CALLBACK, WITH_QUERY],
        postLogoutRedirectUris: [BYE],
      }
      const bound = { ...ledgerline, requireBinding: true }
      const basicOnly = { ...ledgerline, authentication: ['client_secret_basic'] as const }
      return {
        ...rest,
        directory: { ...directory, clients: { ...directory.clients, ledgerline, basicOnly, bound } },
      }
    },
  })
  const jwks = await fetch(`${postern.authUrl}/.well-known/jwks.json`)
  keys = createLocalJWKSet((await jwks.json()) as JSONWebKeySet)
})
afterAll(() => postern.close())

/** `undefined` takes a parameter away. */
type Params = Readonly<Record<string, string | undefined>>

const given = (params: Params): Record<string, string> =>
  Object.fromEntries(
    Object.entries(params).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )

const queryOf = (params: Params = {}): URLSearchParams => {
  const asked: Params = {
    client_id: 'ledgerline',
    redirect_uri: CALLBACK,
    response_type: 'code',
    scope: 'openid',
    state: 's t&a"te',
    nonce: 'n-1',
    ...params,
  }
  return new URLSearchParams(given(asked))
}
const asking = (params?: Params): string => `/connect/authorize?${queryOf(params).toString()}`

const newPerson = (): Person => new Person(postern.authUrl)

/** What the client reads in the address it is called at. */
const answerIn = ({ location }: Shown): Record<string, string> =>
  Object.fromEntries(location?.searchParams ?? [])

/** Allows what is asked, where it wasn't allowed before: consent is remembered (C6.2.2). */
const allow = async (person: Person, shown: Shown): Promise<Shown> =>
  shown.text.includes('Allow Ledgerline') ? person.submit(shown, { decision: 'allow' }) : shown

/** Someone who has logged in, and allowed what `params` ask for. */
async function signIn(params?: Params, username?: string): Promise<{ person: Person; shown: Shown }> {
  const person = newPerson()
  const login = await person.open(asking(params))
  expect(login.text).toContain('Sign in')
  return { person, shown: await allow(person, await person.logIn(login, username)) }
}

const redeem = (shown: Shown, params: Params = {}): Promise<OAuthAnswer> =>
  postForm(postern, '/connect/token', {
    client: 'ledgerline',
    params: given({
      grant_type: 'authorization_code',
      code: answerIn(shown)['code'] ?? '',
      redirect_uri: CALLBACK,
      ...params,
    }),
  })

/** The claims of an id_token that passes a client's checks: signature, issuer, audience, times. */
async function claimsOf({ json }: OAuthAnswer): Promise<JWTPayload> {
  const { payload } = await jwtVerify(json.id_token, keys, {
    issuer: postern.authUrl,
    audience: 'ledgerline',
    algorithms: ['RS256'],
    currentDate: new Date(clock.now()),
    requiredClaims: ['sub', 'iat', 'exp'],
  })
  return payload
}

const userinfo = (token: string, init: RequestInit = {}): Promise<Response> =>
  fetch(postern.baseUrl + USERINFO, { headers: { authorization: `Bearer ${token}` }, ...init })

/** Claims without those of the protocol. */
const aboutPerson = (claims: object): Record<string, unknown> => {
  const protocol = ['iss', 'aud', 'iat', 'exp', 'auth_time', 'nonce', 'at_hash', 'sub']
  return Object.fromEntries(Object.entries(claims).filter(([name]) => !protocol.includes(name)))
}

describe('C6.2.1 the authorization request', () => {
  it('C6.2.1, RFC 9207 oidcc-server: a code, the state as it was sent, and iss; nothing else', async () => {
    const { shown } = await signIn()
    expect(shown.location?.href.startsWith(`${CALLBACK}?`)).toBe(true)
    expect(answerIn(shown)).toEqual({
      code: expect.stringMatching(/^[\w-]{43}$/),
      state: 's t&a"te',
      iss: postern.authUrl,
    })
  })

  it('C6.2.1 a request without state is answered without', async () => {
    const { shown } = await signIn({ state: undefined })
    expect(Object.keys(answerIn(shown)).sort()).toEqual(['code', 'iss'])
  })

  it('C6.2.1, OIDC Core §3.1.2.1 oidcc-ensure-post-request-succeeds: the same by POST', async () => {
    const person = newPerson()
    const login = await person.open('/connect/authorize', queryOf({ scope: 'openid email' }))
    expect(answerIn(await allow(person, await person.logIn(login)))).toHaveProperty('code')
  })

  it.each<[string, Params]>([
    ['oidcc-display-page', { display: 'page' }],
    ['oidcc-display-popup', { display: 'popup' }],
    ['oidcc-ui-locales', { ui_locales: 'se de' }],
    ['oidcc-claims-locales', { claims_locales: 'se' }],
    ['oidcc-ensure-request-with-acr-values-succeeds', { acr_values: '1 2' }],
    ['oidcc-ensure-request-with-unknown-parameter-succeeds', { extra: 'foobar' }],
    [
      'oidcc-claims-essential, which is not announced',
      { claims: '{"userinfo":{"name":{"essential":true}}}' },
    ],
    ['ensure-other-scope-order-succeeds', { scope: 'email openid' }],
  ])('C6.2.1 %s: is no obstacle to a code and an id_token', async (_, params) => {
    const { shown } = await signIn(params)
    const claims = await claimsOf(await redeem(shown))
    expect(claims['nonce']).toBe('n-1')
    expect(claims).not.toHaveProperty('acr')
  })

  it.each<[string, Params, string]>([
    ['oidcc-response-type-missing', { response_type: undefined }, 'invalid_request'],
    ['an unsupported response_type', { response_type: 'id_token token' }, 'unsupported_response_type'],
    [
      'oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported',
      { request: 'eyJhbGciOiJub25lIn0.e30.' },
      'request_not_supported',
    ],
    ['a request_uri', { request_uri: 'https://app.test/request' }, 'request_uri_not_supported'],
    [
      'oidcc-ensure-request-object-with-redirect-uri',
      { request: 'eyJhbGciOiJub25lIn0.eyJyZWRpcmVjdF91cmkiOiJodHRwczovL2V2aWwudGVzdC8ifQ.' },
      'request_not_supported',
    ],
    ['an unknown scope', { scope: 'openid no.such' }, 'invalid_scope'],
    ['oidcc-prompt-none-not-logged-in', { prompt: 'none' }, 'login_required'],
    ['none with another prompt', { prompt: 'none login' }, 'invalid_request'],
    ['a max_age that is no number', { max_age: 'soon' }, 'invalid_request'],
  ])('C6.2.1 %s: the client is told, with state and iss', async (_, params, error) => {
    const shown = await newPerson().open(asking(params))
    expect(shown.location?.href.startsWith(`${CALLBACK}?`)).toBe(true)
    const { error_description, ...rest } = answerIn(shown)
    expect(rest).toEqual({ error, state: 's t&a"te', iss: postern.authUrl })
    expect(error_description).not.toBe('')
  })

  it('C6.2.1 response_mode=form_post: the same parameters, in a form that goes to the client', async () => {
    const { shown } = await signIn({ response_mode: 'form_post' })
    expect([shown.status, shown.location]).toEqual([200, undefined])
    expect(shown.text).toContain(`action="${CALLBACK}"`)
    expect(shown.text).toMatch(/name="code" value="[\w-]{43}"/)
    expect(shown.text).toContain('name="state" value="s t&amp;a&quot;te"')
    expect(shown.text).toContain(`name="iss" value="${postern.authUrl}"`)
  })

  it('C6.2.2 denied at the consent page: access_denied, with state and iss', async () => {
    const person = newPerson()
    const consent = await person.logIn(await person.open(asking({ prompt: 'consent' })))
    const answer = answerIn(await person.submit(consent, { decision: 'deny' }))
    expect(answer).toMatchObject({ error: 'access_denied', state: 's t&a"te', iss: postern.authUrl })
    expect(answer).not.toHaveProperty('code')
  })
})

describe('C6.2.1 redirect_uri', () => {
  it.each<[string, string | undefined]>([
    ['oidcc-ensure-registered-redirect-uri: another one', 'https://evil.test/callback'],
    ['a longer path', `${CALLBACK}/more`],
    ['a query that is not registered', `${CALLBACK}?foo=bar`],
    ['another case', 'https://app.test/Callback'],
    ['a registered query left away', 'https://app.test/other'],
    ['none at all', undefined],
  ])('C6.2.1 %s: is an error page, and no redirect', async (_, redirect) => {
    const shown = await newPerson().open(asking({ redirect_uri: redirect }))
    expect([shown.status, shown.location]).toEqual([400, undefined])
    expect(shown.text).toContain('role="alert"')
  })

  it('C6.2.1 an unknown client: is an error page, and no redirect', async () => {
    const shown = await newPerson().open(asking({ client_id: 'nobody' }))
    expect([shown.status, shown.location]).toEqual([400, undefined])
  })

  it('C6.2.1, RFC 6749 §3.1.2 its own query is kept before the answer', async () => {
    const { shown } = await signIn({ redirect_uri: WITH_QUERY })
    expect(shown.location?.href.startsWith(`${WITH_QUERY}&code=`)).toBe(true)
    expect((await redeem(shown, { redirect_uri: WITH_QUERY })).status).toBe(200)
  })

  it('C6.1.6 a redemption with another registered one: is invalid_grant', async () => {
    const { shown } = await signIn()
    expect((await redeem(shown, { redirect_uri: WITH_QUERY })).json.error).toBe('invalid_grant')
  })
})

describe('C6.2.1, C6.2.2 prompt, max_age and hints', () => {
  const later = (): void => clock.advance(5000)

  it('C6.2.1 oidcc-prompt-login: asks again, and auth_time moves', async () => {
    const { person, shown } = await signIn()
    const first = await claimsOf(await redeem(shown))
    later()
    const login = await person.open(asking({ prompt: 'login' }))
    expect(login.text).toContain('Sign in')
    const again = await claimsOf(await redeem(await person.logIn(login)))
    expect(again.sub).toBe(first.sub)
    expect(again['auth_time']).toBe(Number(first['auth_time']) + 5)
  })

  it('C6.2.1 oidcc-prompt-none-logged-in: a code without a page, for the same login', async () => {
    const { person, shown } = await signIn()
    const first = await claimsOf(await redeem(shown))
    later()
    const silent = await person.open(asking({ prompt: 'none', nonce: 'n-2' }))
    const again = await claimsOf(await redeem(silent))
    expect(again).toMatchObject({ sub: first.sub, auth_time: first['auth_time'], nonce: 'n-2' })
  })

  it('C6.2.2 prompt=none for what was not allowed yet: is consent_required', async () => {
    const { person } = await signIn()
    const scope = 'openid fund.details.read target:b/ACME'
    expect(answerIn(await person.open(asking({ scope, prompt: 'none' })))['error']).toBe('consent_required')
  })

  it('C6.2.2 prompt=consent: asks again for what was allowed', async () => {
    const { person } = await signIn()
    const consent = await person.open(asking({ prompt: 'consent' }))
    expect(consent.text).toContain('Allow Ledgerline')
    expect(answerIn(await person.submit(consent, { decision: 'allow' }))).toHaveProperty('code')
  })

  it('C6.2.1 oidcc-max-age-1: an older login is asked again, and auth_time moves', async () => {
    const { person, shown } = await signIn()
    const first = await claimsOf(await redeem(shown))
    later()
    const silent = await person.open(asking({ max_age: '1', prompt: 'none' }))
    expect(answerIn(silent)['error']).toBe('login_required')
    const login = await person.open(asking({ max_age: '1' }))
    expect(login.text).toContain('Sign in')
    const again = await claimsOf(await redeem(await person.logIn(login)))
    expect(again['auth_time']).toBe(Number(first['auth_time']) + 5)
  })

  it('C6.2.1, C6.1.8 oidcc-max-age-10000: a younger login will do, and the id_token has auth_time', async () => {
    const { person, shown } = await signIn()
    const first = await claimsOf(await redeem(shown))
    later()
    const again = await claimsOf(await redeem(await person.open(asking({ max_age: '10000' }))))
    expect(again).toMatchObject({ sub: first.sub, auth_time: first['auth_time'] })
    expect(again.iat).toBe(Number(first.iat) + 5)
  })

  it('C6.2.2 oidcc-login-hint: stands in the field of the user name', async () => {
    const { text } = await newPerson().open(asking({ login_hint: 'bob@example.com' }))
    expect(/<input\s+id="username"[^>]*>/.exec(text)?.[0]).toContain('value="bob@example.com"')
  })

  it('C6.2.1 oidcc-id-token-hint: of this login a code without a page, of another one login_required', async () => {
    const alice = await signIn()
    const bob = await signIn({}, 'bob')
    const mine: string = (await redeem(alice.shown)).json.id_token
    const other: string = (await redeem(bob.shown)).json.id_token
    const silent = (hint: string): Promise<Shown> =>
      alice.person.open(asking({ prompt: 'none', id_token_hint: hint }))
    expect(answerIn(await silent(mine))).toHaveProperty('code')
    expect(answerIn(await silent(other))['error']).toBe('login_required')
  })
})

describe('C6.1.6, C6.1.8 the code and the id_token', () => {
  it('C6.1.3 oidcc-server: the token answer has the members of the profile, and is not kept', async () => {
    const { headers, json, status } = await redeem((await signIn()).shown)
    expect(status).toBe(200)
    expect(Object.keys(json).sort()).toEqual([
      'access_token',
      'expires_in',
      'id_token',
      'scope',
      'token_type',
    ])
    expect(json).toMatchObject({ token_type: 'Bearer', expires_in: 900, scope: 'openid' })
    expect(headers.get('cache-control')).toBe('no-store')
  })

  it('C6.1.3 a refusal of this client is not kept either; one of nobody in particular does not tell who exists', async () => {
    const params = { grant_type: 'authorization_code', code: 'x', redirect_uri: CALLBACK }
    const cacheOf = async (client: string, secret?: string): Promise<unknown> => {
      const sent = { client, params, ...(secret !== undefined && { secret }) }
      const { headers, json, status } = await postForm(postern, '/connect/token', sent)
      return [status, json.error, headers.get('cache-control')]
    }
    expect(await cacheOf('ledgerline')).toEqual([400, 'invalid_grant', 'no-store'])
    const unknown = [400, 'invalid_client', 'no-cache']
    expect(await cacheOf('ledgerline', 'wrong')).toEqual(unknown)
    expect(await cacheOf('nobody')).toEqual(unknown)
  })

  it('C6.1.8 oidcc-idtoken-signature: RS256, by a published key that its kid names', async () => {
    const { json } = await redeem((await signIn()).shown)
    const { alg, kid } = decodeProtectedHeader(json.id_token)
    const published = await fetch(`${postern.authUrl}/.well-known/jwks.json`)
    expect(alg).toBe('RS256')
    expect((await published.json()) as JSONWebKeySet).toMatchObject({
      keys: expect.arrayContaining([expect.objectContaining({ kid, kty: 'RSA', use: 'sig' })]),
    })
  })

  it('C6.1.8 the id_token has iss, sub, aud, exp, iat, auth_time, nonce and at_hash, as they must be', async () => {
    const answer = await redeem((await signIn()).shown)
    const half = createHash('sha256').update(answer.json.access_token).digest().subarray(0, 16)
    const now = Math.floor(clock.now() / 1000)
    expect(await claimsOf(answer)).toEqual({
      iss: postern.authUrl,
      sub: postern.configuration.directory.users['alice']?.subject,
      aud: 'ledgerline',
      iat: now,
      exp: now + 900,
      auth_time: now,
      nonce: 'n-1',
      at_hash: half.toString('base64url'),
    })
  })

  it('C6.1.2 oidcc-server-client-secret-post: unless the client may not use it', async () => {
    const redeemAs = async (client_id: string): Promise<Response> => {
      const { shown } = await signIn({ client_id })
      const body = new URLSearchParams({
        grant_type: 'authorization_code',
        code: answerIn(shown)['code'] ?? '',
        redirect_uri: CALLBACK,
        client_id,
        client_secret: 'ledgerline-secret',
      })
      return fetch(`${postern.authUrl}/connect/token`, { method: 'POST', body })
    }
    const posted = await redeemAs('ledgerline')
    expect([posted.status, await posted.json()]).toMatchObject([200, { id_token: expect.any(String) }])
    const refused = await redeemAs('basicOnly')
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: 'invalid_client' }])
  })

  const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
  const pkce: Params = {
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }

  it('C6.2.1 oidcc-ensure-request-with-valid-pkce-succeeds: with its verifier, and with no other', async () => {
    const { person, shown } = await signIn(pkce)
    expect((await claimsOf(await redeem(shown, { code_verifier: verifier })))['nonce']).toBe('n-1')
    for (const wrong of [undefined, verifier.toLowerCase()]) {
      const other = await person.open(asking({ ...pkce, prompt: 'none' }))
      const refused = await redeem(other, { code_verifier: wrong })
      expect(refused.json.error).toBe('invalid_grant')
    }
  })

  it.each<[string, Params]>([
    ['alone', {}],
    ['with PKCE', pkce],
  ])(
    'C6.2.1, C6.1.8 oidcc-ensure-request-without-nonce-succeeds-for-code-flow: %s, and its id_token has none',
    async (_, params) => {
      const { shown } = await signIn({ ...params, nonce: undefined })
      const code_verifier = params['code_challenge'] === undefined ? undefined : verifier
      expect(await claimsOf(await redeem(shown, { code_verifier }))).not.toHaveProperty('nonce')
    },
  )

  it('C6.2.1 without nonce and without PKCE, of a client whose codes must be bound: is invalid_request', async () => {
    const answer = answerIn(await newPerson().open(asking({ client_id: 'bound', nonce: undefined })))
    expect(answer['error']).toBe('invalid_request')
  })

  it.each([
    ['oidcc-codereuse', 0],
    ['oidcc-codereuse-30seconds', 31_000],
  ])('C6.1.6 %s: is invalid_grant, and what the first use gave ends', async (_, pause) => {
    const { shown } = await signIn({ scope: 'openid offline_access' })
    const { json } = await redeem(shown)
    expect((await userinfo(json.access_token)).status).toBe(200)
    clock.advance(pause)
    expect((await redeem(shown)).json.error).toBe('invalid_grant')
    expect((await userinfo(json.access_token)).status).toBe(401)
    const params = { grant_type: 'refresh_token', refresh_token: json.refresh_token }
    const refreshed = await postForm(postern, '/connect/token', { client: 'ledgerline', params })
    expect(refreshed.json.error).toBe('invalid_grant')
  })

  it('C6.2.4 a code after its 60 seconds: is invalid_grant', async () => {
    const { shown } = await signIn()
    clock.advance(61_000)
    expect((await redeem(shown)).json.error).toBe('invalid_grant')
  })

  it('C6.1.7 oidcc-refresh-token: a new id_token about the same login, without nonce', async () => {
    const answer = await redeem((await signIn({ scope: 'openid offline_access' })).shown)
    const { sub, iat, auth_time } = await claimsOf(answer)
    clock.advance(5000)
    const params = { grant_type: 'refresh_token', refresh_token: answer.json.refresh_token }
    const again = await claimsOf(await postForm(postern, '/connect/token', { client: 'ledgerline', params }))
    expect(again).toMatchObject({ sub, auth_time, iat: Number(iat) + 5 })
    expect(again).not.toHaveProperty('nonce')
  })
})

describe('C5.6, C6.3.1 claims and userinfo', () => {
  const alice = () => postern.configuration.directory.users['alice']?.claims
  const subject = () => postern.configuration.directory.users['alice']?.subject
  const acme = () => postern.configuration.directory.businesses['ACME']
  const profile = () => {
    const { name, given_name, middle_name, family_name, gender } = alice() ?? {}
    return { name, given_name, middle_name, family_name, gender }
  }
  const email = () => ({ email: alice()?.email })
  const address = () => ({ address: alice()?.address })
  const phone = () => ({ phone_number: alice()?.phone_number })
  const service = () => ({
    service_profile: {
      service_role: 'Administrator',
      business_name: 'Acme Advisory',
      business_code: 'ACME',
      business_address: acme()?.address,
      business_phone_number: acme()?.phoneNumber,
    },
  })
  type Some = () => object
  const none: Some = () => ({})
  const both: Some = () => ({ ...profile(), ...email() })

  it.each<[string, string, Some, Some]>([
    ['openid alone', 'openid', none, none],
    ['oidcc-scope-profile', 'openid profile', profile, profile],
    ['oidcc-scope-email', 'openid email', email, email],
    ['oidcc-scope-address', 'openid address', none, address],
    ['oidcc-scope-phone', 'openid phone', none, phone],
    ['service_profile', 'openid service_profile target:b/ACME', none, service],
    [
      'oidcc-scope-all',
      'openid profile email address phone',
      both,
      () => ({ ...both(), ...address(), ...phone() }),
    ],
  ])('C5.6, C6.1.8 %s: these claims in the id_token, those from userinfo', async (_, scope, told, more) => {
    const answer = await redeem((await signIn({ scope })).shown)
    const claims = await claimsOf(answer)
    const info = (await (await userinfo(answer.json.access_token)).json()) as { sub: string }
    expect(aboutPerson(claims)).toEqual(told())
    expect(aboutPerson(info)).toEqual(more())
    expect(info.sub).toBe(claims.sub)
  })

  it.each([
    ['oidcc-userinfo-get', 'GET'],
    ['oidcc-userinfo-post-header', 'POST'],
  ])('C6.3.1 %s: answers JSON, with the token in its header', async (_, method) => {
    const { json } = await redeem((await signIn({ scope: 'openid email' })).shown)
    const headers = { authorization: `Bearer ${json.access_token}` }
    const answer = await userinfo(json.access_token, { method, headers })
    expect([answer.status, await answer.json()]).toEqual([200, { sub: subject(), ...email() }])
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
  })

  it('C6.3.1 oidcc-userinfo-post-body: a token in a body counts for nothing, as RFC 6750 §2.2 allows', async () => {
    const { json } = await redeem((await signIn()).shown)
    const body = new URLSearchParams({ access_token: json.access_token })
    expect((await userinfo('', { method: 'POST', headers: {}, body })).status).toBe(401)
  })
})

describe('C6.3.3 logout', () => {
  const leaving = (params: Record<string, string>): string =>
    `/connect/endsession?${new URLSearchParams(params).toString()}`
  const isIn = async (person: Person): Promise<boolean> =>
    answerIn(await person.open(asking({ prompt: 'none' })))['error'] !== 'login_required'

  it('C6.3.3 with id_token_hint the session ends, and the browser goes back with state', async () => {
    const { person, shown } = await signIn()
    const { id_token } = (await redeem(shown)).json
    const left = await person.open(
      leaving({ id_token_hint: id_token, post_logout_redirect_uri: BYE, state: 'a b' }),
    )
    expect(left.location?.href).toBe(`${BYE}?state=a+b`)
    expect(await isIn(person)).toBe(false)
  })

  it('C6.3.3 without id_token_hint the person is asked first', async () => {
    const { person } = await signIn()
    const page = await person.open(leaving({}))
    expect(page.text).toContain('Sign out?')
    expect(await isIn(person)).toBe(true)
    expect((await person.submit(page, { decision: 'logout' })).text).toContain('You are signed out')
    expect(await isIn(person)).toBe(false)
  })

  it('C6.3.3 another post_logout_redirect_uri is an error page, and no redirect', async () => {
    const { person, shown } = await signIn()
    const { id_token } = (await redeem(shown)).json
    const params = { id_token_hint: id_token, post_logout_redirect_uri: 'https://evil.test/bye' }
    const page = await person.open(leaving(params))
    expect([page.status, page.location]).toEqual([400, undefined])
    expect(await isIn(person)).toBe(true)
  })
})
