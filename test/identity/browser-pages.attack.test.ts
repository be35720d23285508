import { describe, expect, it } from 'vitest'
import { Fault } from '../../src/base/kernel/faults.ts'
import {
  answerIn,
  authorizePath,
  CALLBACK,
  openFlow,
  partner,
  UserAgent,
  obtainCode,
  type BrowserAnswer,
} from '../support/user-agent.ts'
import { formOf, ISSUER } from '../support/identity-under-test.ts'

/** T6: attacks on the pages of the identity service. */

const failing = (): Promise<never> => Promise.reject(new Fault('identity_unavailable'))
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

describe('T6 redirect_uri is compared character by character', () => {
  const tricks: readonly (readonly [string, string])[] = [
    ['a suffix', `${CALLBACK}/x`],
    ['a trailing slash', `${CALLBACK}/`],
    ['a longer last segment', `${CALLBACK}x`],
    ['a query', `${CALLBACK}?x=1`],
    ['an empty query', `${CALLBACK}?`],
    ['a fragment', `${CALLBACK}#x`],
    ['another host with the same beginning', 'https://app.test.evil.test/callback'],
    ['userinfo', 'https://app.test@evil.test/callback'],
    ['userinfo with a password', 'https://app.test:443@evil.test/callback'],
    ['own userinfo', 'https://x@app.test/callback'],
    ['an explicit default port', 'https://app.test:443/callback'],
    ['another port', 'https://app.test:444/callback'],
    ['an upper-case host', 'https://APP.test/callback'],
    ['an upper-case scheme', 'HTTPS://app.test/callback'],
    ['an upper-case path', 'https://app.test/Callback'],
    ['no TLS', 'http://app.test/callback'],
    ['no scheme', '//app.test/callback'],
    ['a path only', '/callback'],
    ['two slashes in the path', 'https://app.test//callback'],
    ['a backslash', 'https://app.test\\callback'],
    ['a backslash before the host', 'https:\\\\app.test/callback'],
    ['a backslash that ends the host', 'https://app.test\\@evil.test/callback'],
    ['a tab', 'https://app.test/call\tback'],
    ['a tab in the host', 'https://app.te\tst/callback'],
    ['a line end', `${CALLBACK}\r\nX-Evil: 1`],
    ['white space before', ` ${CALLBACK}`],
    ['white space after', `${CALLBACK} `],
    ['an encoded letter', 'https://app.test/%63allback'],
    ['an encoded slash', 'https://app.test%2Fcallback'],
    ['a dot segment', 'https://app.test/x/../callback'],
    ['an encoded dot segment', 'https://app.test/x/%2e%2e/callback'],
    ['a trailing dot on the host', 'https://app.test./callback'],
    ['a homograph', 'https://аpp.test/callback'],
    ['a script', 'javascript:alert(1)//https://app.test/callback'],
    ['data', 'data:text/html,https://app.test/callback'],
    ['two addresses', `${CALLBACK} https://evil.test/`],
    ['NUL', `${CALLBACK}\0`],
  ]
  it.each(tricks)('T6 %s', async (_, uri) => {
    const agent = new UserAgent(openFlow())
    const seen = await agent.get(authorizePath({ redirect_uri: uri }))
    expect(seen.status).toBe(400)
    expect(seen.headers).not.toHaveProperty('Location')
    expect(seen.text).not.toContain('evil.test')
    // Nor by the way through the form that the login page would have sent.
    const query = authorizePath({ redirect_uri: uri }).split('?')[1] ?? ''
    for (const path of ['/connect/login', '/connect/consent']) {
      const sent = await agent.send({ path: `${path}?${query}`, headers: FORM, body: 'decision=deny&csrf=x' })
      expect([path, sent.status, sent.headers['Location']]).toEqual([path, 400, undefined])
    }
  })
})

describe('T6 forms are believed only from the browser that was shown them', () => {
  it('T6 login CSRF: a login without the token of this browser logs nobody in', async () => {
    const service = openFlow()
    const attacker = new UserAgent(service)
    const theirs = await attacker.get(authorizePath())
    const victim = new UserAgent(service)
    const before = await victim.get(authorizePath())
    const foreign = /name="csrf" value="([^"]*)"/.exec(theirs.text)?.[1]
    for (const csrf of [foreign, undefined, '', 'x']) {
      const seen = await victim.submit(before, {
        username: 'alice',
        password: 'alice-password',
        decision: 'login',
        csrf,
      })
      expect(seen.text).toContain('Please sign in again')
    }
    expect(service.verified).toHaveLength(0)
    expect(await service.store.list('session')).toHaveLength(0)
  })

  it('T6 login CSRF: without a cookie the form is worth nothing, whatever token it brings', async () => {
    const service = openFlow()
    const attacker = new UserAgent(service)
    const page = await attacker.get(authorizePath())
    attacker.cookie = undefined
    expect((await attacker.logIn(page)).text).toContain('Please sign in again')
    expect(service.verified).toHaveLength(0)
  })

  it.each(['cross-site', 'same-site'])('T6 a form that the browser calls %s is refused', async (site) => {
    const service = openFlow()
    const agent = new UserAgent(service)
    const page = await agent.get(authorizePath())
    const foreign = new UserAgent(service, { 'sec-fetch-site': site })
    foreign.cookie = agent.cookie
    const seen = await foreign.logIn(page)
    expect(seen.text).toContain('<h1>Sign in</h1>')
    expect(service.verified).toHaveLength(0)
    const own = new UserAgent(service, { 'sec-fetch-site': 'same-origin' })
    own.cookie = agent.cookie
    expect((await own.logIn(page)).text).toContain('Allow Ledgerline')
  })

  const FOREIGN: readonly (readonly [string, string, string])[] = [
    ['of another site', ISSUER, 'https://evil.test'],
    ['of another port', ISSUER, `${ISSUER}:8443`],
    ['of another scheme', ISSUER, ISSUER.replace('http:', 'https:')],
    ['of a host below', ISSUER, 'http://evil.id.test'],
    ['of a host with the same beginning', ISSUER, `${ISSUER}.evil.test`],
    ['that is no origin', ISSUER, 'id.test'],
    ['that is there twice', ISSUER, `${ISSUER}, https://evil.test`],
    ['of another program on this machine', 'http://127.0.0.1:8080', 'http://localhost:8081'],
    ['of this machine, for a service elsewhere', ISSUER, 'http://localhost'],
    ['of elsewhere, at the port of this machine', 'http://localhost:8080', 'http://id.test:8080'],
  ]
  const OWN: readonly (readonly [string, string, string])[] = [
    ['of the service', ISSUER, ISSUER],
    ['`null`, which a page with the policy `no-referrer` has', ISSUER, 'null'],
    ['of another name of this machine', 'http://127.0.0.1:8080', 'http://localhost:8080'],
    ['of another address of this machine', 'http://localhost:8080', 'http://[::1]:8080'],
  ]
  const atIssuer = (issuer: string) => openFlow({ deps: { urls: { issuer, api: 'http://api.test' } } })
  const withOrigin = (agent: UserAgent, headers: Readonly<Record<string, string>>): UserAgent => {
    const other = new UserAgent(agent.service, headers)
    other.cookie = agent.cookie
    return other
  }

  it.each(FOREIGN)(
    'T6 a form with the right token is refused where the browser says no more than an Origin %s',
    async (_, issuer, origin) => {
      const service = atIssuer(issuer)
      const agent = new UserAgent(service)
      const login = await agent.get(authorizePath())
      const seen = await withOrigin(agent, { origin }).logIn(login)
      expect(seen.location?.pathname ?? seen.text).toMatch(/authorize|<h1>Sign in</)
      expect(service.verified).toHaveLength(0)
      const consent = await agent.logIn(await agent.get(authorizePath()))
      for (const decision of ['allow', 'deny'])
        expect((await withOrigin(agent, { origin }).submit(consent, { decision })).location?.origin).not.toBe(
          new URL(CALLBACK).origin,
        )
      expect(await service.store.list('consent')).toHaveLength(0)
      const logout = await agent.get('/connect/endsession')
      await withOrigin(agent, { origin }).submit(logout, { decision: 'logout' })
      const account = await agent.get('/connect/account')
      await withOrigin(agent, { origin }).submit(account, { everywhere: '1' })
      expect(await service.store.list('session')).toHaveLength(1)
    },
  )

  it.each(OWN)('T6 a form with the right token is believed with an Origin %s', async (_, issuer, origin) => {
    const service = atIssuer(issuer)
    const agent = withOrigin(new UserAgent(service), { origin })
    const login = await agent.get(authorizePath())
    expect((await agent.submit(login, { username: 'alice', csrf: 'x' })).text).toContain('sign in again')
    const consent = await agent.logIn(await agent.get(authorizePath()))
    expect(consent.text).toContain('Allow Ledgerline')
    expect(answerIn(await agent.submit(consent, { decision: 'allow' }))).toHaveProperty('code')
  })

  it('T6 `Sec-Fetch-Site` counts before the Origin, and a value that nobody knows is another site’s', async () => {
    const service = openFlow()
    const agent = new UserAgent(service)
    const page = await agent.get(authorizePath())
    for (const headers of [
      { 'sec-fetch-site': 'cross-site', origin: ISSUER },
      { 'sec-fetch-site': 'cross-site', origin: 'null' },
      { 'sec-fetch-site': 'none', origin: 'https://evil.test' },
      { 'sec-fetch-site': 'same-origin, cross-site' },
    ])
      await withOrigin(agent, headers).logIn(page)
    expect(service.verified).toHaveLength(0)
    // An alias of the service, whose pages the browser itself calls the same.
    const alias = withOrigin(agent, { 'sec-fetch-site': 'same-origin', origin: 'http://alias.test' })
    expect((await alias.logIn(page)).text).toContain('Allow Ledgerline')
  })

  it('T6 consent can’t be given without the page’s token, nor by GET', async () => {
    const service = openFlow()
    const agent = new UserAgent(service)
    const page = await agent.logIn(await agent.get(authorizePath()))
    for (const csrf of [undefined, 'x'])
      expect((await agent.submit(page, { decision: 'allow', csrf })).text).toContain('Allow Ledgerline')
    await agent.get(`${authorizePath().replace('authorize', 'consent')}&decision=allow`)
    expect(await service.store.list('consent')).toHaveLength(0)
    expect(await service.store.list('code')).toHaveLength(0)
  })

  it('T6 the token of before the login does not outlive it', async () => {
    const agent = new UserAgent(openFlow())
    const login = await agent.get(authorizePath())
    const old = /name="csrf" value="([^"]*)"/.exec(login.text)?.[1]
    const consent = await agent.logIn(login)
    const seen = await agent.submit(consent, { decision: 'allow', csrf: old })
    expect(seen.text).toContain('Allow Ledgerline')
  })

  it('T6 consent to more than the page showed can’t be smuggled into its form', async () => {
    const service = openFlow()
    const agent = new UserAgent(service)
    const page = await agent.logIn(await agent.get(authorizePath({ scope: 'openid fund.read target:b' })))
    await agent.submit(page, { decision: 'allow', business: 'INITECH', scope: 'fund.maintain' })
    expect(await service.store.list('code')).toHaveLength(0)
    await agent.submit(page, { decision: 'allow', business: 'ACME', scope: 'fund.maintain' })
    const [code] = await service.store.list('code')
    expect(code?.value['scope']).toBe('openid fund.read target:b/ACME')
  })
})

describe('T6 sessions', () => {
  const cookieOf = ({ headers }: BrowserAnswer): string => String(headers['Set-Cookie'] ?? '')

  it('T6 fixation: a login gives a new value, and the old one is nobody’s', async () => {
    const service = openFlow()
    const agent = new UserAgent(service)
    const page = await agent.get(authorizePath())
    const planted = agent.cookie
    await agent.logIn(page)
    expect(agent.cookie).not.toBe(planted)
    const attacker = new UserAgent(service)
    attacker.cookie = planted
    expect((await attacker.get('/connect/account')).text).toContain('<h1>Sign in</h1>')
  })

  it('T6 fixation: a second login ends the session that was there', async () => {
    const service = openFlow()
    const { agent } = await obtainCode(service)
    const first = agent.cookie
    await agent.logIn(await agent.get(authorizePath({ prompt: 'login' })), 'greta')
    const old = new UserAgent(service)
    old.cookie = first
    expect((await old.get('/connect/account')).text).toContain('<h1>Sign in</h1>')
    expect(await service.store.list('session')).toHaveLength(1)
  })

  it('T6 the cookie’s attributes over https', async () => {
    const urls = { issuer: 'https://id.test', api: 'https://api.test' }
    const service = openFlow({ deps: { urls } })
    const cookie = cookieOf(await new UserAgent(service).send({ method: 'GET', path: authorizePath() }))
    expect(cookie).toMatch(/^__Host-postern-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/)
  })

  it('T6 the cookie’s attributes on an http loopback', async () => {
    const urls = { issuer: 'http://127.0.0.1:8080', api: 'http://127.0.0.1:8080' }
    const service = openFlow({ deps: { urls } })
    const cookie = cookieOf(await new UserAgent(service).send({ method: 'GET', path: authorizePath() }))
    expect(cookie).toMatch(/^postern-session-8080=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
  })

  it('T6 the store holds no value that a cookie could be made of', async () => {
    const service = openFlow()
    const { agent } = await obtainCode(service)
    const value = agent.cookie?.split('=')[1] ?? ''
    expect(value).not.toBe('')
    expect(JSON.stringify(await service.store.list('session'))).not.toContain(value)
  })

  it.each(['', 'x', '"', 'a'.repeat(43), `${'a'.repeat(43)}; other=1`, '<script>'])(
    'T6 a cookie of %j is nobody’s',
    async (value) => {
      const agent = new UserAgent(openFlow())
      agent.cookie = `postern-session-80=${value}`
      expect((await agent.get('/connect/account')).text).toContain('<h1>Sign in</h1>')
    },
  )
})

describe('T6 what comes from outside is text in every page', () => {
  const EVIL = `"'><script>alert(1)</script><img src=x onerror=alert(1)>&lt;`
  const expectClean = ({ headers, text }: BrowserAnswer): void => {
    expect(text).not.toMatch(/<script>alert|<img src=x|onerror=alert\(1\)>/)
    expect(text).not.toContain(`value="${EVIL}`)
    for (const [name, value] of Object.entries(headers))
      if (name !== 'Location') expect(String(value)).not.toContain('alert')
  }

  it.each([
    'client_id',
    'redirect_uri',
    'state',
    'nonce',
    'scope',
    'login_hint',
    'response_type',
    'prompt',
    'max_age',
  ])('T6 %s', async (name) => {
    const agent = new UserAgent(openFlow())
    for (const mode of ['query', 'form_post'])
      expectClean(await agent.get(authorizePath({ response_mode: mode, [name]: EVIL })))
  })

  it('T6 a user name', async () => {
    const agent = new UserAgent(openFlow())
    const seen = await agent.logIn(await agent.get(authorizePath()), EVIL, EVIL)
    expectClean(seen)
    expect(seen.text).toContain('value="&quot;&#39;&gt;&lt;script&gt;')
  })

  it('T6 names of people, clients and browsers', async () => {
    const service = openFlow({ clients: [{ ...partner, name: EVIL }] })
    const agent = new UserAgent(service, { 'user-agent': EVIL })
    const consent = await agent.logIn(await agent.get(authorizePath()))
    expectClean(consent)
    await agent.submit(consent, { decision: 'allow' })
    expectClean(await agent.get('/connect/account'))
    expectClean(await agent.get(`/connect/account?done=${encodeURIComponent(EVIL)}`))
    expectClean(await agent.get(authorizePath({ prompt: 'none', response_mode: 'form_post' })))
  })

  it.each(['id_token_hint', 'post_logout_redirect_uri', 'state', 'client_id'])(
    'T6 at logout: %s',
    async (name) => {
      const agent = new UserAgent(openFlow())
      await agent.logIn(await agent.get('/connect/account'))
      expectClean(await agent.get(`/connect/endsession?${formOf({ [name]: EVIL })}`))
    },
  )

  it('T6 an error_description holds nothing that would end a quoted string or a line', async () => {
    const seen = await new UserAgent(openFlow()).get(authorizePath({ scope: 'a"b\\c\r\nd' }))
    expect(answerIn(seen)['error_description']).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
  })
})

describe('T6 no page leads elsewhere', () => {
  it.each(['next', 'return', 'return_to', 'redirect', 'redirect_uri', 'url', 'done'])(
    'T6 after login, %s is not gone to',
    async (name) => {
      const agent = new UserAgent(openFlow())
      const page = await agent.get(`/connect/account?${name}=https://evil.test/`)
      const seen = await agent.submit(page, {
        username: 'alice',
        password: 'alice-password',
        [name]: 'https://evil.test/',
      })
      expect(seen.location).toBeUndefined()
      expect(seen.text).toContain('Your account')
    },
  )

  it('T6 mix-up: iss names this service in every answer', async () => {
    const { agent } = await obtainCode(openFlow())
    for (const params of [{}, { prompt: 'none' }, { response_type: 'x' }])
      expect(answerIn(await agent.get(authorizePath(params)))['iss']).toBe(ISSUER)
  })
})

describe('T6 headers of every page', () => {
  const pages = async (): Promise<readonly (readonly [string, BrowserAnswer])[]> => {
    const agent = new UserAgent(openFlow())
    const login = await agent.get(authorizePath())
    const wrong = await agent.logIn(login, 'alice', 'wrong')
    const consent = await agent.logIn(login)
    const account = await agent.get('/connect/account')
    const formPost = await agent.get(authorizePath({ response_mode: 'form_post', response_type: 'x' }))
    const logout = await agent.get('/connect/endsession')
    const loggedOut = await agent.submit(logout, { decision: 'logout' })
    const error = await agent.get(authorizePath({ client_id: 'x' }))
    return Object.entries({ login, wrong, consent, account, formPost, logout, loggedOut, error })
  }

  it('T6 not kept, not framed, not sniffed, no referrer, nothing from elsewhere', async () => {
    for (const [name, { headers }] of await pages()) {
      const policy = String(headers['Content-Security-Policy'])
      expect([name, headers['Cache-Control']]).toEqual([name, 'no-store'])
      expect([name, headers['X-Frame-Options']]).toEqual([name, 'DENY'])
      expect([name, headers['X-Content-Type-Options']]).toEqual([name, 'nosniff'])
      expect([name, headers['Referrer-Policy']]).toEqual([name, 'no-referrer'])
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).toContain("base-uri 'none'")
      expect(policy).not.toMatch(/unsafe|\*|data:/)
      expect([name, policy.includes('script-src')]).toEqual([
        name,
        ['formPost', 'login', 'wrong'].includes(name),
      ])
    }
  })

  it('C6.2.3 T6 what goes wrong at the address of a page is not kept either, whatever it is', async () => {
    const agent = new UserAgent(openFlow())
    const down = new UserAgent(
      openFlow({ deps: { people: { ...agent.service.identity.dependencies.people, findClient: failing } } }),
    )
    const paths = ['authorize', 'login', 'consent', 'account', 'link', 'endsession'].map(
      (each) => `/connect/${each}`,
    )
    const query = authorizePath().split('?')[1] ?? ''
    const seen: (readonly [string, BrowserAnswer])[] = []
    for (const path of paths) {
      for (const method of ['PUT', 'DELETE', 'OPTIONS', 'HEAD', 'GET'])
        seen.push([`${method} ${path}`, await agent.send({ method, path })])
      seen.push([
        `a body ${path}`,
        await agent.send({ path, headers: { 'content-type': 'text/plain' }, body: 'x' }),
      ])
      seen.push([
        `a long body ${path}`,
        await agent.send({ path, headers: FORM, body: `x=${'y'.repeat(70_000)}` }),
      ])
      seen.push([`store ${path}`, await down.send({ method: 'GET', path: `${path}?${query}` })])
    }
    seen.push([
      'elsewhere',
      await agent.send({ method: 'GET', path: '/conect', headers: { accept: 'text/html' } }),
    ])
    expect(new Set(seen.map(([, { status }]) => status))).toEqual(new Set([200, 303, 400, 404, 405, 503]))
    for (const [what, { headers }] of seen)
      expect([what, headers['Cache-Control']]).toEqual([what, 'no-store'])
  })

  it('C6.2.3 pictures of a page have a size without its style sheet', async () => {
    const { text } = await new UserAgent(openFlow()).get(authorizePath())
    const pictures = [...text.matchAll(/<(?:svg|img)\b[^>]*>/g)].map(([element]) => element)
    expect(pictures).toHaveLength(1)
    for (const picture of pictures) expect(picture).toMatch(/ width="32" height="32"/)
  })

  it('C6.2.3 a page outside a client’s flow is kept apart from the window that opened it, no other is', async () => {
    const apart = (await pages())
      .filter(([, { headers }]) => headers['Cross-Origin-Opener-Policy'] === 'same-origin')
      .map(([name]) => name)
    expect(apart).toEqual(['account', 'loggedOut'])
  })

  it('C6.2.3 form-action names the client’s origin where the form leads there, and nobody else’s', async () => {
    const actions = (await pages()).map(([name, { headers }]) => [
      name,
      /form-action ([^;]*)/.exec(String(headers['Content-Security-Policy']))?.[1],
    ])
    const client = "'self' https://app.test"
    expect(Object.fromEntries(actions)).toEqual({
      login: client,
      wrong: client,
      consent: client,
      formPost: client,
      account: "'self'",
      logout: "'self'",
      loggedOut: "'self'",
      error: "'self'",
    })
  })

  it('C6.2.3 form-action of an app’s own scheme and of an IPv6 loopback', async () => {
    const redirects = ['com.example.app:/callback', 'http://[::1]/callback']
    const service = openFlow({ clients: [{ ...partner, kind: 'public', redirectUris: redirects }] })
    const policies = await Promise.all(
      ['com.example.app:/callback', 'http://[::1]:5100/callback'].map(
        async (redirect_uri) => (await new UserAgent(service).get(authorizePath({ redirect_uri }))).headers,
      ),
    )
    expect(String(policies[0]?.['Content-Security-Policy'])).toContain("form-action 'self' com.example.app:;")
    expect(String(policies[1]?.['Content-Security-Policy'])).toContain("form-action 'self' http:;")
  })

  it('T6 redirects with a code are not kept and leave no referrer', async () => {
    const { agent } = await obtainCode(openFlow())
    const { headers } = await agent.get(authorizePath())
    expect([headers['Cache-Control'], headers['Referrer-Policy']]).toEqual(['no-store', 'no-referrer'])
  })

  it('C6.2.3 the stylesheet may be kept; nothing personal is in it', async () => {
    const agent = new UserAgent(openFlow())
    const page = await agent.get(authorizePath())
    const href = /<link rel="stylesheet" href="([^"]+)"/.exec(page.text)?.[1] ?? ''
    const { headers, status } = await agent.get(href)
    expect([status, headers['Content-Type']]).toEqual([200, 'text/css; charset=utf-8'])
    expect(headers['Cache-Control']).toMatch(/^public, max-age=/)
    expect(headers).not.toHaveProperty('Set-Cookie')
  })
})
