import type { AttemptStanding, GuessingKey } from '../../src/base/contracts/people/lockouts.ts'
import { describe, expect, it } from 'vitest'
import { client, ISSUER, user } from '../support/identity-under-test.ts'
import {
  answerIn,
  app,
  type BrowserAnswer,
  authorizePath,
  CALLBACK,
  openFlow,
  partner,
  UserAgent,
  USERS,
  obtainCode,
} from '../support/user-agent.ts'

const at = async (path: string, service = openFlow()) => new UserAgent(service).get(path)

describe('C6.2.1 what is told to the client', () => {
  const rules: readonly (readonly [string, Parameters<typeof authorizePath>[0], string])[] = [
    ['a missing response_type', { response_type: undefined }, 'invalid_request'],
    ['an implicit response_type', { response_type: 'token' }, 'unsupported_response_type'],
    ['a hybrid response_type', { response_type: 'code id_token' }, 'unsupported_response_type'],
    ['an unknown response_mode', { response_mode: 'fragment' }, 'invalid_request'],
    ['request', { request: 'e30.e30.' }, 'request_not_supported'],
    ['request_uri', { request_uri: 'https://app.test/r' }, 'request_uri_not_supported'],
    ['an unknown scope', { scope: 'openid no.such' }, 'invalid_scope'],
    ['nothing but a target', { scope: 'target:b/ACME' }, 'invalid_scope'],
    ['nothing but a bare target', { scope: 'target:b' }, 'invalid_scope'],
    ['a bare and a named target', { scope: 'openid target:b target:b/ACME' }, 'invalid_scope'],
    ['another business than the client’s', { scope: 'openid target:b/INITECH' }, 'invalid_scope'],
    ['no scope and no default', { scope: undefined }, 'invalid_scope'],
    ['the plain challenge method', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['a challenge without a method', { code_challenge_method: undefined }, 'invalid_request'],
    ['a method without a challenge', { code_challenge: undefined }, 'invalid_request'],
    ['a challenge that is no SHA-256', { code_challenge: 'short' }, 'invalid_request'],
    ['none with another prompt', { prompt: 'none login' }, 'invalid_request'],
    ['an unknown prompt', { prompt: 'create' }, 'invalid_request'],
    ['a max_age that is no number', { max_age: '-1' }, 'invalid_request'],
    ['prompt=none without a login', { prompt: 'none' }, 'login_required'],
  ]
  it.each(rules)('C6.2.1 %s is told by redirect', async (_, params, error) => {
    const seen = await at(authorizePath(params))
    expect(seen.status).toBe(303)
    expect(seen.location?.href.startsWith(`${CALLBACK}?`)).toBe(true)
    expect(answerIn(seen)).toMatchObject({ error, state: 's t&a"te', iss: ISSUER })
    expect(answerIn(seen)['error_description']).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
  })

  it.each(['scope', 'state', 'prompt'])('C6.0 a repeated %s is invalid_request by redirect', async (name) => {
    const answer = answerIn(await at(`${authorizePath()}&${name}=openid`))
    expect(answer).toMatchObject({ error: 'invalid_request', iss: ISSUER })
    expect(answer['state']).toBe(name === 'state' ? undefined : 's t&a"te')
  })

  it('C6.2.1 a client that may not use the code grant is unauthorized_client', async () => {
    const service = openFlow({ clients: [client('ledgerline', { redirectUris: [CALLBACK] })] })
    expect(answerIn(await at(authorizePath(), service))['error']).toBe('unauthorized_client')
  })

  it('C6.2.1 the query that a redirect URI has is kept', async () => {
    const redirect = 'https://app.test/other?fixed=1'
    const { location } = await at(authorizePath({ redirect_uri: redirect, prompt: 'none' }))
    expect(location?.href.startsWith(`${redirect}&error=login_required&`)).toBe(true)
  })

  it('C6.2.1 form_post has the parameters in a form, a nonced script and a button', async () => {
    const seen = await at(authorizePath({ response_mode: 'form_post', prompt: 'none' }))
    expect(seen.status).toBe(200)
    expect(seen.text).toContain(`action="${CALLBACK}"`)
    expect(seen.text).toContain('name="error" value="login_required"')
    expect(seen.text).toContain('name="state" value="s t&amp;a&quot;te"')
    expect(seen.text).toContain(`name="iss" value="${ISSUER}"`)
    expect(seen.text).toMatch(/<button type="submit">/)
    const nonce = /script-src 'nonce-([^']+)'/.exec(String(seen.headers['Content-Security-Policy']))?.[1]
    expect(seen.text).toContain(`<script nonce="${String(nonce)}">`)
  })

  it('C6.2.1 display, ui_locales, claims_locales and acr_values are ignored', async () => {
    const more = { display: 'popup', ui_locales: 'de', claims_locales: 'de', acr_values: '1', foo: 'bar' }
    expect((await at(authorizePath(more))).text).toContain('Sign in')
  })
})

describe('C6.2.1 what is told on a page, and never by a redirect', () => {
  const rules: readonly (readonly [string, string])[] = [
    ['an unknown client', authorizePath({ client_id: 'nobody' })],
    ['no client', authorizePath({ client_id: undefined })],
    ['a repeated client_id', `${authorizePath()}&client_id=ledgerline`],
    ['no redirect_uri', authorizePath({ redirect_uri: undefined })],
    ['an unregistered redirect_uri', authorizePath({ redirect_uri: 'https://evil.test/' })],
    ['a repeated redirect_uri', `${authorizePath()}&redirect_uri=${encodeURIComponent(CALLBACK)}`],
    ['a bad escape', `${authorizePath()}&x=%zz`],
  ]
  it.each(rules)('C6.2.1 %s', async (_, path) => {
    const seen = await at(path)
    expect(seen.status).toBe(400)
    expect(seen.headers).not.toHaveProperty('Location')
    expect(seen.headers['Content-Type']).toMatch(/^text\/html/)
    expect(seen.text).toContain('role="alert"')
  })

  it('C6.2.1 a disabled client', async () => {
    const seen = await at(authorizePath(), openFlow({ clients: [{ ...partner, disabled: true }] }))
    expect([seen.status, seen.location]).toEqual([400, undefined])
  })

  it('C6.0 a wrong method is 405 in JSON', async () => {
    const seen = await new UserAgent(openFlow()).send({ method: 'DELETE', path: authorizePath() })
    expect([seen.status, seen.headers['Allow']]).toEqual([405, 'GET, HEAD, POST'])
    expect(JSON.parse(seen.text)).toMatchObject({ error: 'invalid_request' })
  })

  it('C9.2 a maintenance of the identity endpoints', async () => {
    const closure = {
      message: 'Back at <noon>.',
      retryAfter: 60,
      admitsAddress: () => false,
      closedBy: [],
      clients: new Set<string>(),
    }
    const switches = { service: () => undefined, place: () => undefined, identity: () => closure }
    const seen = await at(authorizePath(), openFlow({ deps: { switches } }))
    expect([seen.status, seen.headers['Retry-After']]).toEqual([503, '60'])
    expect(seen.text).toContain('Back at &lt;noon&gt;.')
  })
})

describe('C6.2.1 PKCE by kind of client', () => {
  const without = { code_challenge: undefined, code_challenge_method: undefined }
  const loopback = { client_id: 'pocketbooks', redirect_uri: 'http://127.0.0.1:51004/callback' }

  it('C6.2.1 a public client needs it', async () => {
    expect(answerIn(await at(authorizePath({ ...loopback, ...without })))['error']).toBe('invalid_request')
  })

  it.each([
    ['may leave it out with openid and nonce', {}, 200],
    ['may not without nonce', { nonce: undefined }, 303],
    ['may not without openid', { scope: 'fund.read target:b/ACME' }, 303],
  ])('C6.2.1 a confidential client %s', async (_, params, status) => {
    expect((await at(authorizePath({ ...without, ...params }))).status).toBe(status)
  })

  it('C6.2.1 a setting requires it of a confidential client', async () => {
    const service = openFlow({ clients: [{ ...partner, requirePkce: true }] })
    expect(answerIn(await at(authorizePath(without), service))['error']).toBe('invalid_request')
  })

  it.each([
    ['http://127.0.0.1:51004/callback', 200],
    ['http://127.0.0.1:1/callback', 200],
    ['http://127.0.0.1/callback', 200],
    ['com.example.pocketbooks:/callback', 200],
    ['http://127.0.0.1:51004/other', 400],
    ['http://127.0.0.1:99999/callback', 400],
    ['http://127.0.0.1:080/callback', 400],
    ['http://localhost:51004/callback', 400],
    ['https://127.0.0.1:51004/callback', 400],
    ['http://127.0.0.1:51004@evil.test/callback', 400],
  ])('C6.2.1 RFC 8252 a native app’s redirect %s', async (redirect, status) => {
    expect((await at(authorizePath({ client_id: 'pocketbooks', redirect_uri: redirect }))).status).toBe(
      status,
    )
  })

  it('C6.2.1 the port of a confidential client’s loopback redirect is not free', async () => {
    const service = openFlow({ clients: [{ ...partner, redirectUris: ['http://127.0.0.1:8090/callback'] }] })
    expect(
      (await at(authorizePath({ redirect_uri: 'http://127.0.0.1:8091/callback' }), service)).status,
    ).toBe(400)
    expect(
      (await at(authorizePath({ redirect_uri: 'http://127.0.0.1:8090/callback' }), service)).status,
    ).toBe(200)
  })
})

describe('C6.2.2 login and consent', () => {
  it('C6.2.2 login, consent, code', async () => {
    const agent = new UserAgent(openFlow())
    const login = await agent.get(authorizePath())
    expect(login.text).toContain('to continue to Ledgerline')
    const consent = await agent.logIn(login)
    expect(consent.text).toContain('Allow Ledgerline to connect?')
    expect(consent.text).toContain('At Acme Advisory')
    const { location, status } = await agent.submit(consent, { decision: 'allow' })
    expect([status, location?.origin]).toEqual([303, 'https://app.test'])
    expect(location?.searchParams.get('code')).toMatch(/^[\w-]{43}$/)
    expect(location?.searchParams.get('state')).toBe('s t&a"te')
    expect(location?.searchParams.get('iss')).toBe(ISSUER)
  })

  it('C6.2.2 denied, the client learns access_denied', async () => {
    const agent = new UserAgent(openFlow())
    const consent = await agent.logIn(await agent.get(authorizePath()))
    expect(answerIn(await agent.submit(consent, { decision: 'deny' }))['error']).toBe('access_denied')
  })

  it('C6.2.2 cancelled at the login page, too', async () => {
    const agent = new UserAgent(openFlow())
    const seen = await agent.submit(await agent.get(authorizePath()), { decision: 'cancel' })
    expect(answerIn(seen)['error']).toBe('access_denied')
  })

  it.each([
    ['a wrong password', 'alice', 'wrong'],
    ['an unknown user', 'nobody', 'x'],
    ['a locked user', 'locked', 'locked-password'],
    ['a disabled user', 'gone', 'gone-password'],
  ])('T3.9 %s is told as any other', async (_, username, password) => {
    const users = [...USERS, user('locked', { locked: true }), user('gone', { disabled: true })]
    const service = openFlow({ users })
    const agent = new UserAgent(service)
    const seen = await agent.logIn(await agent.get(authorizePath()), username, password)
    expect(seen.status).toBe(422)
    expect(seen.text).toContain('do not match an active account')
    expect(seen.text).not.toContain(`value="${password}"`)
    expect(service.verified).toHaveLength(1)
  })

  it('C6.2.2 missing fields are named, and cost no attempt', async () => {
    const service = openFlow()
    const agent = new UserAgent(service)
    const seen = await agent.submit(await agent.get(authorizePath()), {})
    expect(seen.status).toBe(422)
    expect(seen.text).toContain('<a href="#username">')
    expect(seen.text).toContain('aria-describedby="password-wrong"')
    expect(service.verified).toHaveLength(0)
  })

  it('T3.8 failures at the login page are counted with the same guard as at the token endpoint', async () => {
    const keys: unknown[] = []
    const service = openFlow()
    const guard = service.identity.dependencies.guessing
    const dependencies = { ...service.identity.dependencies, guessing: { attempt: watch } }
    function watch<T>(key: GuessingKey, standing: AttemptStanding, verify: () => Promise<T | undefined>) {
      keys.push(key)
      return guard.attempt(key, standing, verify)
    }
    const agent = new UserAgent({ ...service, identity: { ...service.identity, dependencies } })
    await agent.logIn(await agent.get(authorizePath()), 'alice', 'wrong')
    expect(keys).toEqual([{ user: 'alice', client: '', network: '192.0.2.7' }])
  })

  it('C6.2.2 login_hint is filled in', async () => {
    expect((await at(authorizePath({ login_hint: 'al"ice' }))).text).toContain('value="al&quot;ice"')
  })

  it('C6.2.2 consent is remembered for this scope set and business, and no other', async () => {
    const { agent } = await obtainCode(openFlow())
    expect(answerIn(await agent.get(authorizePath()))['code']).toBeDefined()
    expect(answerIn(await agent.get(authorizePath({ prompt: 'none' })))['code']).toBeDefined()
    const more = { scope: 'openid email fund.read target:b/ACME' }
    expect((await agent.get(authorizePath(more))).text).toContain('Allow Ledgerline')
    expect(answerIn(await agent.get(authorizePath({ ...more, prompt: 'none' })))['error']).toBe(
      'consent_required',
    )
    const other = { client_id: 'pocketbooks', redirect_uri: 'http://127.0.0.1:9/callback' }
    expect((await agent.get(authorizePath(other))).text).toContain('Allow Pocketbooks')
  })

  it.each([
    'http://127.0.0.1:51004/callback',
    'http://127.0.0.1/callback',
    'http://[::1]:9/callback',
    'http://localhost:5000/callback',
    'https://app.localhost/callback',
    'com.example.pocketbooks:/callback',
  ])('C6.2.2 RFC 8252 §8.6: a public client is asked for every time at %s', async (redirect_uri) => {
    const redirectUris = [redirect_uri, 'http://[::1]/callback', 'http://127.0.0.1/callback']
    const service = openFlow({ clients: [partner, { ...app, redirectUris }] })
    const own = { client_id: 'pocketbooks', redirect_uri }
    const { agent, code } = await obtainCode(service, own)
    expect(code).not.toBe('')
    const codes = (await service.store.list('code')).length
    const silent = answerIn(await agent.get(authorizePath({ ...own, prompt: 'none' })))
    expect([silent['error'], silent['code']]).toEqual(['interaction_required', undefined])
    const seen = await agent.get(authorizePath(own))
    expect(seen.text).toContain('Allow Pocketbooks')
    expect(await service.store.list('code')).toHaveLength(codes)
    expect(answerIn(await agent.submit(seen, { decision: 'allow' }))['code']).toBeDefined()
  })

  it('C6.2.2 a public client whose redirect is a web address of its own is asked for once', async () => {
    const redirect_uri = 'https://app.test/callback'
    const service = openFlow({ clients: [partner, { ...app, redirectUris: [redirect_uri] }] })
    const { agent } = await obtainCode(service, { client_id: 'pocketbooks', redirect_uri })
    const again = authorizePath({ client_id: 'pocketbooks', redirect_uri, prompt: 'none' })
    expect(answerIn(await agent.get(again))['code']).toBeDefined()
  })

  it('C6.2.2 a client that has a secret is asked for once at a loopback address too', async () => {
    const redirect_uri = 'http://127.0.0.1:8090/callback'
    const service = openFlow({ clients: [{ ...partner, redirectUris: [redirect_uri] }] })
    const { agent } = await obtainCode(service, { redirect_uri })
    expect(answerIn(await agent.get(authorizePath({ redirect_uri, prompt: 'none' })))['code']).toBeDefined()
  })

  it('C6.2.2 lasting access is named, and remembered without prompt=consent', async () => {
    const scope = 'openid offline_access'
    const service = openFlow()
    const agent = new UserAgent(service)
    const consent = await agent.logIn(await agent.get(authorizePath({ scope })))
    expect(consent.text).toContain('keeps this access when you are not there')
    await agent.submit(consent, { decision: 'allow' })
    expect(answerIn(await agent.get(authorizePath({ scope })))['code']).toBeDefined()
  })

  it('C6.2.2 access that is not lasting is named with its length: that of the client, or of all', async () => {
    const told = async (more: Partial<typeof partner>): Promise<string> => {
      const service = openFlow({ clients: [{ ...partner, ...more }] })
      const agent = new UserAgent(service)
      return (await agent.logIn(await agent.get(authorizePath({ scope: 'openid' })))).text
    }
    expect(await told({})).toContain('Ledgerline has this access for 15 minutes after you allow it.')
    const brief = await told({ accessTokenLifetime: 300 })
    expect(brief).toContain('Ledgerline has this access for 5 minutes after you allow it.')
  })

  it('C6.2.1 prompt=consent asks again', async () => {
    const { agent } = await obtainCode(openFlow())
    const seen = await agent.get(authorizePath({ prompt: 'consent' }))
    expect(seen.text).toContain('Allow Ledgerline')
    expect(answerIn(await agent.submit(seen, { decision: 'allow' }))['code']).toBeDefined()
  })

  it.each(['login', 'select_account', 'login consent'])(
    'C6.2.1 prompt=%s asks who it is, once',
    async (prompt) => {
      const { agent } = await obtainCode(openFlow())
      const seen = await agent.get(authorizePath({ prompt }))
      expect(seen.text).toContain('Sign in')
      const next = await agent.logIn(seen)
      if (prompt.includes('consent')) expect(next.text).toContain('Allow Ledgerline')
      else expect(answerIn(next)['code']).toBeDefined()
    },
  )

  it('C6.2.1 max_age asks again when the login is older', async () => {
    const service = openFlow()
    const { agent } = await obtainCode(service)
    service.clock.at += 60_000
    expect(answerIn(await agent.get(authorizePath({ max_age: '60' })))['code']).toBeDefined()
    const silent = await agent.get(authorizePath({ max_age: '59', prompt: 'none' }))
    expect(answerIn(silent)['error']).toBe('login_required')
    const seen = await agent.get(authorizePath({ max_age: '0' }))
    service.clock.at += 5000
    expect(answerIn(await agent.logIn(seen))['code']).toBeDefined()
  })

  it('C6.2.1 max_age=0 asks again also within the second of the login', async () => {
    const { agent } = await obtainCode(openFlow())
    const silent = await agent.get(authorizePath({ max_age: '0', prompt: 'none' }))
    expect(answerIn(silent)['error']).toBe('login_required')
    const again = await agent.get(authorizePath({ max_age: '0' }))
    expect(answerIn(await agent.logIn(again))['code']).toBeDefined()
  })

  it.each(['GET', 'POST'])('C6.2.1 a state of 2,048 bytes comes back whole, by %s', async (method) => {
    const state = '!'.repeat(2048)
    const agent = new UserAgent(openFlow())
    const path = authorizePath({ state })
    const login =
      method === 'GET'
        ? await agent.get(path)
        : await agent.post('/connect/authorize', Object.fromEntries(new URLSearchParams(path.split('?')[1])))
    const consent = await agent.logIn(login)
    expect(answerIn(await agent.submit(consent, { decision: 'allow' }))).toMatchObject({
      code: expect.any(String) as string,
      state,
    })
  })

  it.each([
    ['a longer state', { state: '!'.repeat(2049) }, 'The state is longer than 2048 bytes.'],
    ['a state of more bytes than characters', { state: 'é'.repeat(1025) }, 'The state is longer than'],
    ['parameters that no address can hold', { nonce: '!'.repeat(2600) }, 'are allowed: shorten state, nonce'],
  ])('C6.2.1 %s is refused on a page, before anything is typed', async (_case, params, words) => {
    const path = authorizePath(params)
    const fields = Object.fromEntries(new URLSearchParams(path.split('?')[1]))
    for (const seen of [await at(path), await new UserAgent(openFlow()).post('/connect/authorize', fields)]) {
      expect([seen.status, seen.location]).toEqual([400, undefined])
      expect(seen.text).toContain(words)
      expect(seen.text).not.toContain('type="password"')
    }
  })

  it.each(['nonce', 'login_hint'])(
    'C6.2.1 a %s of 2,048 bytes will do, a longer one is refused',
    async (name) => {
      const isLogin = ({ status, text }: BrowserAnswer): boolean =>
        status === 200 && text.includes('type="password"')
      expect(isLogin(await at(authorizePath({ [name]: 'n'.repeat(2048) })))).toBe(true)
      for (const value of ['n'.repeat(2049), 'é'.repeat(1025)]) {
        const path = authorizePath({ [name]: value })
        const fields = Object.fromEntries(new URLSearchParams(path.split('?')[1]))
        for (const seen of [
          await at(path),
          await new UserAgent(openFlow()).post('/connect/authorize', fields),
        ])
          expect(answerIn(seen)).toMatchObject({
            error: 'invalid_request',
            error_description: expect.stringContaining(`The ${name} is longer than 2048 bytes.`) as string,
          })
      }
    },
  )

  it('C6.2.1 by POST from the client’s site, the browser’s cookie decides on the way through GET', async () => {
    const { agent } = await obtainCode(openFlow())
    const query = authorizePath().split('?')[1] ?? ''
    const { cookie } = agent
    agent.cookie = undefined
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const sent = await agent.send({ path: '/connect/authorize', headers, body: query })
    expect(sent.status).toBe(303)
    agent.cookie = cookie
    expect(answerIn(await agent.follow(sent))['code']).toBeDefined()
  })

  it('C6.2.1 by POST, errors are told as by GET', async () => {
    const body = authorizePath({ response_type: 'token' }).split('?')[1] ?? ''
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const seen = await new UserAgent(openFlow()).send({ path: '/connect/authorize', headers, body })
    expect(answerIn(seen)['error']).toBe('unsupported_response_type')
  })

  it('C6.2.3 a user who is disabled or locked meanwhile is logged out', async () => {
    for (const state of [{ disabled: true }, { locked: true }]) {
      const service = openFlow()
      const { agent } = await obtainCode(service)
      Object.assign(service.deps.people, {
        findUserBySubject: () => Promise.resolve(user('alice', state)),
      })
      expect((await agent.get(authorizePath())).text).toContain('Sign in')
      expect(await service.store.list('session')).toHaveLength(0)
    }
  })

  it('C6.2.3 a session ends after its lifetime', async () => {
    const service = openFlow()
    const { agent } = await obtainCode(service)
    service.clock.at += 12 * 3_600_000
    expect((await agent.get(authorizePath())).text).toContain('Sign in')
  })
})

describe('C6.2.2 the business picker', () => {
  const page = async (scope: string, username = 'greta', more = {}) => {
    const agent = new UserAgent(openFlow())
    return { agent, seen: await agent.logIn(await agent.get(authorizePath({ scope, ...more })), username) }
  }
  const offered = (text: string): string[] =>
    [...text.matchAll(/name="business"[^>]*?value="(\w+)"/gs)].map((match) => match[1] ?? '')

  it.each([
    ['a bare target:b', 'openid fund.read target:b', ['ACME', 'GLOBEX']],
    ['a data scope without a target', 'openid fund.read', ['ACME', 'GLOBEX']],
    ['service_profile without a target', 'openid service_profile', ['ACME', 'GLOBEX']],
    ['identity scopes with a bare target', 'openid target:b', ['ACME', 'GLOBEX']],
    ['identity scopes alone', 'openid profile email address phone offline_access', []],
    ['a target', 'openid fund.read service_profile target:b/ACME', []],
    ['only where something is left', 'fund.maintain target:b', ['ACME']],
  ])('C6.2.2 %s', async (_, scope, businesses) => {
    expect(offered((await page(scope)).seen.text)).toEqual(businesses)
  })

  it('C6.2.2 offers what both client and user may use: one is preselected, of several none is', async () => {
    const { seen } = await page('openid fund.read target:b', 'alice')
    expect(offered(seen.text)).toEqual(['ACME'])
    expect(seen.text.match(/ checked/g)).toHaveLength(1)
    expect((await page('openid fund.read target:b')).seen.text).not.toContain(' checked')
  })

  it('C6.2.2 the chosen business becomes the target, and what the role lacks is dropped', async () => {
    const service = openFlow()
    const scope = 'openid target:b fund.read fund.maintain'
    const { code } = await obtainCode(service, { scope }, { username: 'greta', business: 'GLOBEX' })
    const [entry] = await service.store.list('code')
    expect(code).not.toBe('')
    expect(entry?.value['scope']).toBe('openid target:b/GLOBEX fund.read')
  })

  it('C6.2.2 an implied choice stands at the end of the scope', async () => {
    const service = openFlow()
    await obtainCode(service, { scope: 'openid fund.read' }, { business: 'ACME' })
    const [entry] = await service.store.list('code')
    expect(entry?.value['scope']).toBe('openid fund.read target:b/ACME')
  })

  it.each(['INITECH', 'NOWHERE', undefined])(
    'C6.2.2 %s, which was not offered, can’t be chosen',
    async (business) => {
      const { agent, seen } = await page('openid fund.read target:b', 'alice')
      const again = await agent.submit(seen, { decision: 'allow', business })
      expect([again.status, again.location]).toEqual([422, undefined])
      expect(again.text).toContain('Choose a business.')
    },
  )

  it('C6.2.2 the first button of every form, which Enter presses, is the one that goes on', async () => {
    const service = openFlow()
    const agent = new UserAgent(service)
    const login = await agent.get(authorizePath({ scope: 'openid fund.read target:b' }))
    const consent = await agent.logIn(login, 'greta')
    const nobody = await page('openid target:b', 'nina')
    const logout = await agent.get('/connect/endsession')
    const first = ({ text }: { text: string }) =>
      [...text.matchAll(/<form[^]*?<\/form>/g)].map(
        ([form]) => /<button[^>]* value="([^"]*)"/.exec(form)?.[1],
      )
    expect([login, consent, nobody.seen, logout].flatMap(first)).toEqual(['login', 'allow', 'deny', 'logout'])
  })

  it('C6.2.2 with prompt=none it is interaction_required', async () => {
    const { agent } = await page('openid fund.read target:b')
    const path = authorizePath({ scope: 'openid fund.read target:b', prompt: 'none' })
    expect(answerIn(await agent.get(path))['error']).toBe('interaction_required')
  })

  it.each(['openid target:b', 'openid fund.read'])(
    'C6.2.2 who has no business is told so: %s',
    async (scope) => {
      const { agent, seen } = await page(scope, 'nina')
      expect(seen.text).toContain('You have no business to connect')
      expect(seen.text.split('Signed in as')).toHaveLength(2)
      expect(seen.text).not.toMatch(/<<<|===|>>>/)
      expect(seen.text).not.toContain('value="allow"')
      const forced = await agent.submit(seen, { decision: 'allow', business: 'ACME' })
      expect([forced.status, forced.location]).toEqual([200, undefined])
      expect(answerIn(await agent.submit(seen, { decision: 'deny' }))['error']).toBe('access_denied')
      const silent = await agent.get(authorizePath({ scope, prompt: 'none' }))
      expect(answerIn(silent)['error']).toBe('interaction_required')
    },
  )

  it('C6.2.2 what is asked about the person alone goes on without a business', async () => {
    const profile = await page('openid service_profile', 'nina')
    expect(profile.seen.text).toContain('Allow Ledgerline')
  })

  it('C5.4 a target that is not the user’s is invalid_scope, told once the user is known', async () => {
    const { seen } = await page('openid target:b/GLOBEX', 'alice')
    expect(answerIn(seen)['error']).toBe('invalid_scope')
  })

  it('C6.2.2 the business chosen before comes first the next time, and is not preselected', async () => {
    const service = openFlow()
    const scope = 'openid fund.read target:b'
    const { agent } = await obtainCode(service, { scope }, { username: 'greta', business: 'GLOBEX' })
    const seen = await agent.get(authorizePath({ scope }))
    expect(offered(seen.text)).toEqual(['GLOBEX', 'ACME'])
    expect(seen.text).toContain('allowed before')
    expect(seen.text).not.toContain(' checked')
  })
})

it('C6.3.2 the discovery document announces the flow', async () => {
  const { json } = await openFlow().send({ method: 'GET', path: '/.well-known/openid-configuration' })
  expect(json).toMatchObject({
    authorization_endpoint: `${ISSUER}/connect/authorize`,
    end_session_endpoint: `${ISSUER}/connect/endsession`,
  })
  expect(json.grant_types_supported).toContain('authorization_code')
})
