import { beforeEach, describe, expect, it, vi } from 'vitest'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import {
  basic,
  exchangeOf,
  formOf,
  outside,
  type JsonAnswer,
  type TestIdentity,
} from '../../support/identity-under-test.ts'
import { identityDoor } from '../../../src/identity/identity.ts'
import {
  answerIn,
  app,
  type BrowserAnswer,
  CALLBACK,
  challengeOf,
  openFlow,
  partner,
  redeem,
  UserAgent,
  USERS,
  VERIFIER,
} from '../../support/user-agent.ts'

type Fields = Readonly<Record<string, string | undefined>>

const ASKED: Fields = {
  redirect_uri: CALLBACK,
  response_type: 'code',
  scope: 'openid fund.read target:b/ACME',
  state: 's t&a"te',
  nonce: 'n-1',
  code_challenge: challengeOf(VERIFIER),
  code_challenge_method: 'S256',
}

const MINUTE = 60_000

let service: TestIdentity

beforeEach(() => {
  service = openFlow({ clients: [partner, { ...partner, id: 'other' }, app] })
})

const pushAs = (
  headers: Readonly<Record<string, string>>,
  params: Fields = {},
  to = service,
): Promise<JsonAnswer> =>
  to.send({
    path: '/connect/par',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: formOf({ ...ASKED, ...params }),
  })

const push = (params: Fields = {}, to = service): Promise<JsonAnswer> =>
  pushAs({ authorization: basic('ledgerline') }, params, to)

const pushed = async (params: Fields = {}): Promise<string> => String((await push(params)).json.request_uri)

const pathOf = (uri: string, more: Fields = {}): string =>
  `/connect/authorize?${formOf({ client_id: 'ledgerline', request_uri: uri, ...more })}`

/** Of an error page: what is said below for those who can mend it. */
const errorOn = (page: BrowserAnswer): string | undefined => {
  expect(page.location).toBeUndefined()
  expect(page.status).toBe(400)
  return /<dd>([a-z_]+)<\/dd>/.exec(page.text)?.[1]
}

const isLogin = ({ status, text }: BrowserAnswer): boolean =>
  status === 200 && text.includes('name="password"')
const isConsent = ({ status, text }: BrowserAnswer): boolean =>
  status === 200 && text.includes('value="allow"')

const allow = (agent: UserAgent, page: BrowserAnswer): Promise<BrowserAnswer> =>
  agent.submit(page, { decision: 'allow' })

describe('C6.2.1a pushing a request', () => {
  it('C6.2.1a answers 201 with a reference of 43 characters and its lifetime, which may not be kept', async () => {
    const { headers, json, status } = await push()
    expect(status).toBe(201)
    expect(json).toEqual({
      request_uri: expect.stringMatching(/^urn:ietf:params:oauth:request_uri:[A-Za-z0-9_-]{43}$/),
      expires_in: 60,
    })
    expect(headers['Cache-Control']).toBe('no-store')
    expect(headers['Content-Type']).toMatch(/^application\/json/)
  })

  it('C6.2.1a tells the lifetime that is configured', async () => {
    const other = openFlow({ config: { par: { lifetime: 5000 } } })
    expect((await push({}, other)).json.expires_in).toBe(5)
  })

  it('C6.2.1a keeps the hash of the reference, and of the request what an authorization request may hold', async () => {
    const uri = await pushed({ username: 'alice', password: 'by mistake', client_secret: undefined })
    const [entry] = await service.store.list('pushed_request')
    expect(JSON.stringify(entry)).not.toContain(uri.split(':').at(-1))
    expect(JSON.stringify(entry)).not.toContain('by mistake')
    expect(entry?.value).toMatchObject({ client: 'ledgerline', params: { ...ASKED } })
  })

  it.each<readonly [string, Fields, string]>([
    ['a missing redirect_uri', { redirect_uri: undefined }, 'invalid_request'],
    ['a redirect_uri that is not registered', { redirect_uri: 'https://evil.test/' }, 'invalid_request'],
    ['a missing response_type', { response_type: undefined }, 'invalid_request'],
    ['another response_type', { response_type: 'token' }, 'unsupported_response_type'],
    ['an unknown response_mode', { response_mode: 'fragment' }, 'invalid_request'],
    ['a request object', { request: 'e30.e30.' }, 'invalid_request'],
    ['a request_uri', { request_uri: 'https://app.test/r' }, 'invalid_request'],
    [
      'a request_uri of ours',
      { request_uri: `urn:ietf:params:oauth:request_uri:${'a'.repeat(43)}` },
      'invalid_request',
    ],
    ['a state of over 2,048 bytes', { state: 'é'.repeat(1025) }, 'invalid_request'],
    ['a nonce of over 2,048 bytes', { nonce: 'n'.repeat(2049) }, 'invalid_request'],
    ['a login_hint of over 2,048 bytes', { login_hint: 'é'.repeat(1025) }, 'invalid_request'],
    ['an unknown scope', { scope: 'openid no.such' }, 'invalid_scope'],
    ['another business', { scope: 'openid target:b/INITECH' }, 'invalid_scope'],
    ['a challenge that is not S256', { code_challenge_method: 'plain' }, 'invalid_request'],
    [
      'neither PKCE nor a nonce',
      { code_challenge: undefined, code_challenge_method: undefined, nonce: undefined },
      'invalid_request',
    ],
    ['prompt none beside another', { prompt: 'none login' }, 'invalid_request'],
    ['a max_age that is no number', { max_age: 'soon' }, 'invalid_request'],
    ['a state that is too long', { state: 's'.repeat(2049) }, 'invalid_request'],
    ['a client_id of another client', { client_id: 'other' }, 'invalid_request'],
  ])('C6.2.1a refuses %s as JSON, and keeps nothing', async (_, params, error) => {
    const { json, status, headers } = await push(params)
    expect({ status, error: json.error }).toEqual({ status: 400, error })
    expect(headers['Location']).toBeUndefined()
    expect(await service.store.list('pushed_request')).toEqual([])
  })

  it('C6.2.1a authenticates the client as the token endpoint does', async () => {
    const wrong = await pushAs({ authorization: basic('ledgerline', 'wrong') })
    expect({ status: wrong.status, error: wrong.json.error }).toEqual({
      status: 400,
      error: 'invalid_client',
    })
    expect((await pushAs({}, { client_id: 'ledgerline' })).json.error).toBe('invalid_client')
    expect((await pushAs({}, {})).json.error).toBe('invalid_client')
  })

  it('C6.2.1a takes the request of a public client by its client_id', async () => {
    const redirect_uri = 'com.example.pocketbooks:/callback'
    const { json, status } = await pushAs({}, { client_id: 'pocketbooks', redirect_uri })
    expect(status).toBe(201)
    const path = `/connect/authorize?${formOf({ client_id: 'pocketbooks', request_uri: json.request_uri })}`
    expect(isLogin(await new UserAgent(service).get(path))).toBe(true)
  })

  it('C6.2.1a refuses a client that has no code grant', async () => {
    const other = openFlow({ clients: [{ ...partner, grants: ['refresh_token'] }] })
    expect((await push({}, other)).json.error).toBe('unauthorized_client')
  })

  it('C6.2.1a has no limit of the address: what a query could not carry is pushed and granted', async () => {
    const long = { nonce: '!'.repeat(2048), login_hint: 'é'.repeat(1024) }
    expect(formOf(long).length).toBeGreaterThan(8192)
    const agent = new UserAgent(service)
    const seen = await allow(agent, await agent.logIn(await agent.get(pathOf(await pushed(long)))))
    expect(answerIn(seen)['code']).toEqual(expect.any(String))
  })

  it('C6.2.1a keeps 1,000 open requests of a client, and answers 429 to another one until one is decided or expires', async () => {
    const first = await pushed()
    for (let open = 1; open < 1000; open += 1) await push()
    const refused = await push()
    expect({ status: refused.status, error: refused.json.error }).toEqual({
      status: 429,
      error: 'temporarily_unavailable',
    })
    expect(refused.headers['Retry-After']).toEqual(expect.any(String))
    expect((await pushAs({ authorization: basic('other', 'ledgerline-secret') })).status).toBe(201)
    const agent = new UserAgent(service)
    await allow(agent, await agent.logIn(await agent.get(pathOf(first))))
    expect((await push()).status).toBe(201)
    expect((await push()).status).toBe(429)
    service.clock.at += MINUTE
    expect((await push()).status).toBe(201)
  })

  it('C6.2.1a counts the open requests of a public client by network', async () => {
    const door = identityDoor(() => service.identity, outside)
    const from = async (clientAddress: string): Promise<number> => {
      const sent = {
        path: '/connect/par',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: formOf({ ...ASKED, client_id: 'pocketbooks', redirect_uri: 'http://127.0.0.1/callback' }),
      }
      return (await door({ ...exchangeOf(sent), clientAddress })).status
    }
    for (let open = 0; open < 1000; open += 1) await from('2001:db8::1')
    expect(await from('2001:db8::2')).toBe(429)
    expect(await from('2001:db8:0:1::2')).toBe(201)
  })

  it('C6.2.1a is 503 while the store is down', async () => {
    vi.spyOn(service.store, 'create').mockRejectedValueOnce(new Fault('identity_unavailable'))
    expect((await push()).status).toBe(503)
  })
})

describe('C6.2.1a authorizing a pushed request', () => {
  it('C6.2.1a grants what was pushed; the pages carry the reference in place of the parameters', async () => {
    const uri = await pushed()
    const agent = new UserAgent(service)
    const login = await agent.get(pathOf(uri))
    const consent = await agent.logIn(login)
    for (const page of [login, consent]) {
      expect(page.text).toContain(
        formOf({ client_id: 'ledgerline', request_uri: uri }).replaceAll('&', '&amp;'),
      )
      expect(page.text).not.toContain('code_challenge')
    }
    const seen = await allow(agent, consent)
    expect(seen.location?.href.startsWith(`${CALLBACK}?`)).toBe(true)
    const { code = '', iss, state } = answerIn(seen)
    expect({ iss, state }).toEqual({ iss: 'http://id.test', state: ASKED['state'] })
    expect((await redeem(service, code)).json.scope).toBe('openid fund.read target:b/ACME')
  })

  it('C6.2.1a nothing counts beside client_id and request_uri', async () => {
    const uri = await pushed()
    const agent = new UserAgent(service)
    const beside = {
      redirect_uri: 'https://app.test/other?fixed=1',
      scope: 'openid fund.maintain target:b/GLOBEX',
      state: 'of somebody else',
      response_mode: 'form_post',
      code_challenge: challengeOf('another verifier'),
      prompt: 'none',
      request: 'e30.e30.',
    }
    const seen = await allow(agent, await agent.logIn(await agent.get(pathOf(uri, beside))))
    expect(seen.location?.href.startsWith(`${CALLBACK}?`)).toBe(true)
    const { code = '', state } = answerIn(seen)
    expect(state).toBe(ASKED['state'])
    expect((await redeem(service, code)).json.scope).toBe('openid fund.read target:b/ACME')
  })

  it('C6.2.1a a parameter that was not pushed is not taken from the address', async () => {
    const uri = await pushed({ state: undefined })
    const agent = new UserAgent(service)
    const seen = await allow(agent, await agent.logIn(await agent.get(pathOf(uri, { state: 'added' }))))
    expect(answerIn(seen)).not.toHaveProperty('state')
  })

  it('C6.2.1a may be sent by POST too', async () => {
    const uri = await pushed()
    const agent = new UserAgent(service)
    const page = await agent.post('/connect/authorize', { client_id: 'ledgerline', request_uri: uri })
    expect(isLogin(page)).toBe(true)
  })

  it.each<readonly [string, (uri: string) => string]>([
    ['an unknown reference', () => pathOf(`urn:ietf:params:oauth:request_uri:${'a'.repeat(43)}`)],
    ['the reference of another client', (uri) => pathOf(uri, { client_id: 'other' })],
    ['a reference that is shortened', (uri) => pathOf(uri.slice(0, -1))],
    ['two references', (uri) => `${pathOf(uri)}&${formOf({ request_uri: uri })}`],
    ['another request_uri beside', (uri) => `${pathOf(uri)}&request_uri=https%3A%2F%2Fapp.test%2Fr`],
  ])('C6.2.1a %s is an error page, never a redirect', async (_, path) => {
    const seen = await new UserAgent(service).get(`${path(await pushed())}&${formOf(ASKED)}`)
    expect(errorOn(seen)).toBe('invalid_request_uri')
  })

  it('C6.2.1a an unknown client is an error page as ever', async () => {
    expect(errorOn(await new UserAgent(service).get(pathOf(await pushed(), { client_id: 'nobody' })))).toBe(
      'invalid_request',
    )
  })

  it('C6.2.1 a request_uri that is not of our making stays unsupported', async () => {
    const path = `/connect/authorize?${formOf({ ...ASKED, client_id: 'ledgerline', request_uri: 'https://app.test/r' })}`
    expect(answerIn(await new UserAgent(service).get(path))['error']).toBe('request_uri_not_supported')
  })

  it('C6.2.1a the request is checked again: what the client may not have any more is refused', async () => {
    const store = new MemoryStore(service.clock)
    const before = openFlow({ store })
    const { json } = await push({}, before)
    const after = openFlow({ store, clients: [{ ...partner, redirectUris: ['https://app.test/new'] }] })
    after.clock.at = before.clock.at
    expect(errorOn(await new UserAgent(after).get(pathOf(json.request_uri)))).toBe('invalid_request')
  })
})

describe('C6.2.1a the life of a pushed request', () => {
  it('C6.2.1a opening it uses nothing up: programs, HEAD and other browsers may come before', async () => {
    const uri = await pushed()
    for (let program = 0; program < 3; program += 1)
      expect(isLogin(await new UserAgent(service).get(pathOf(uri)))).toBe(true)
    const head = await new UserAgent(service).send({ method: 'HEAD', path: pathOf(uri) })
    expect(head.status).toBe(200)
    const agent = new UserAgent(service)
    await agent.get(pathOf(uri))
    const seen = await allow(agent, await agent.logIn(await agent.get(pathOf(uri))))
    expect(answerIn(seen)['code']).toEqual(expect.any(String))
  })

  it('C6.2.1a a program that asks without a login and without pages uses nothing up either', async () => {
    const uri = await pushed({ prompt: 'none' })
    for (let program = 0; program < 2; program += 1)
      expect(answerIn(await new UserAgent(service).get(pathOf(uri)))['error']).toBe('login_required')
  })

  it('C6.2.1a HEAD makes nothing: the browser that sent it has no time of its own', async () => {
    const uri = await pushed()
    await new UserAgent(service).send({ method: 'HEAD', path: pathOf(uri) })
    expect(await service.store.list('pushed_request_opening')).toEqual([])
  })

  it('C6.2.1a who has not opened it within its lifetime comes too late', async () => {
    const uri = await pushed()
    service.clock.at += MINUTE - 1
    expect(isLogin(await new UserAgent(service).get(pathOf(uri)))).toBe(true)
    service.clock.at += 1
    expect(errorOn(await new UserAgent(service).get(pathOf(uri)))).toBe('invalid_request_uri')
  })

  it('C6.2.1a the browser that opened it has 30 minutes for reload, sign-in and consent', async () => {
    const uri = await pushed()
    const agent = new UserAgent(service)
    await agent.get(pathOf(uri))
    service.clock.at += 20 * MINUTE
    const login = await agent.get(pathOf(uri))
    expect(isLogin(login)).toBe(true)
    const consent = await agent.logIn(login)
    expect(isConsent(consent)).toBe(true)
    service.clock.at += 9 * MINUTE
    expect(isConsent(await agent.get(pathOf(uri)))).toBe(true)
    expect(answerIn(await allow(agent, consent))['code']).toEqual(expect.any(String))
  })

  it('C6.2.1a after 30 minutes it is over, before a password is looked at', async () => {
    const uri = await pushed()
    const agent = new UserAgent(service)
    const login = await agent.get(pathOf(uri))
    service.clock.at += 30 * MINUTE
    expect(errorOn(await agent.get(pathOf(uri)))).toBe('invalid_request_uri')
    expect(errorOn(await agent.logIn(login))).toBe('invalid_request_uri')
    expect(service.verified).toEqual(['sha256:ledgerline-secret'])
  })

  it('C6.2.1a a login in another tab takes along what the browser has opened', async () => {
    const uri = await pushed({ prompt: 'login' })
    const agent = new UserAgent(service)
    await agent.get(pathOf(uri))
    await agent.logIn(await agent.get('/connect/account'))
    service.clock.at += 20 * MINUTE
    expect(isConsent(await agent.get(pathOf(uri)))).toBe(true)
  })

  it('C6.2.1a a code uses it up, in every browser', async () => {
    const uri = await pushed()
    const other = new UserAgent(service)
    const waiting = await other.logIn(await other.get(pathOf(uri)), 'greta')
    const agent = new UserAgent(service)
    const consent = await agent.logIn(await agent.get(pathOf(uri)))
    expect(answerIn(await allow(agent, consent))['code']).toEqual(expect.any(String))
    for (const seen of [
      await agent.get(pathOf(uri)),
      await allow(agent, consent),
      await allow(other, waiting),
      await new UserAgent(service).get(pathOf(uri)),
    ])
      expect(errorOn(seen)).toBe('invalid_request_uri')
  })

  it('C6.2.1a of 20 decisions at once one gives a code', async () => {
    const uri = await pushed()
    const waiting = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const agent = new UserAgent(service)
        return { agent, page: await agent.logIn(await agent.get(pathOf(uri))) }
      }),
    )
    const seen = await Promise.all(waiting.map(({ agent, page }) => allow(agent, page)))
    const won = seen.filter(({ location }) => location !== undefined)
    expect(won.map((answer) => Object.keys(answerIn(answer)))).toEqual([['code', 'state', 'iss']])
    for (const lost of seen.filter((each) => !won.includes(each)))
      expect(errorOn(lost)).toBe('invalid_request_uri')
    expect(await service.store.list('code')).toHaveLength(1)
  })

  it('C6.2.1a a remembered consent gives the code at once, and uses it up', async () => {
    const agent = new UserAgent(service)
    await allow(agent, await agent.logIn(await agent.get(pathOf(await pushed()))))
    const uri = await pushed()
    expect(answerIn(await agent.get(pathOf(uri)))['code']).toEqual(expect.any(String))
    expect(errorOn(await agent.get(pathOf(uri)))).toBe('invalid_request_uri')
  })

  it.each(['cancel', 'deny'])('C6.2.1a to %s uses it up', async (decision) => {
    const uri = await pushed()
    const agent = new UserAgent(service)
    const login = await agent.get(pathOf(uri))
    const page = decision === 'deny' ? await agent.logIn(login) : login
    const seen = await agent.submit(page, { decision })
    expect(seen.location?.href.startsWith(CALLBACK)).toBe(true)
    expect(answerIn(seen)).toMatchObject({ error: 'access_denied', state: ASKED['state'] })
    expect(errorOn(await agent.get(pathOf(uri)))).toBe('invalid_request_uri')
    expect(errorOn(await agent.submit(page, { decision }))).toBe('invalid_request_uri')
  })

  it('C6.2.1a what is refused to a person who is logged in uses it up', async () => {
    const uri = await pushed({ prompt: 'none' })
    const agent = new UserAgent(service)
    await agent.logIn(await agent.get('/connect/account'))
    expect(answerIn(await agent.get(pathOf(uri)))['error']).toBe('consent_required')
    expect(errorOn(await agent.get(pathOf(uri)))).toBe('invalid_request_uri')
  })

  it('C6.2.1a a failure on our side uses nothing up: the person tries again', async () => {
    const uri = await pushed()
    const agent = new UserAgent(service)
    const consent = await agent.logIn(await agent.get(pathOf(uri)))
    const failing = vi.spyOn(service.store, 'redeem').mockRejectedValueOnce(new Fault('identity_unavailable'))
    expect((await allow(agent, consent)).status).toBe(503)
    expect(answerIn(await allow(agent, consent))['code']).toEqual(expect.any(String))
    failing.mockRestore()
  })

  it('C6.2.1a remembers 100 browsers that have opened it; another one has the lifetime alone', async () => {
    const uri = await pushed()
    for (let program = 0; program < 100; program += 1) await new UserAgent(service).get(pathOf(uri))
    const agent = new UserAgent(service)
    expect(isLogin(await agent.get(pathOf(uri)))).toBe(true)
    expect(await service.store.list('pushed_request_opening')).toHaveLength(100)
    service.clock.at += MINUTE
    expect(errorOn(await agent.get(pathOf(uri)))).toBe('invalid_request_uri')
  })
})

describe('C6.2.1a a login that the request demands', () => {
  it.each<readonly [string, Fields]>([
    ['prompt=login', { prompt: 'login' }],
    ['max_age=0', { max_age: '0' }],
    ['max_age=60', { max_age: '60' }],
  ])('C6.2.1a %s wants a login since it was opened, and is content with that', async (_, params) => {
    const agent = new UserAgent(service)
    await agent.logIn(await agent.get('/connect/account'))
    service.clock.at += 5 * MINUTE
    const uri = await pushed(params)
    const login = await agent.get(pathOf(uri))
    expect(isLogin(login)).toBe(true)
    expect(isLogin(await agent.get(pathOf(uri)))).toBe(true)
    const consent = await agent.logIn(login)
    expect(isConsent(consent)).toBe(true)
    service.clock.at += 5 * MINUTE
    expect(isConsent(await agent.get(pathOf(uri)))).toBe(true)
    const { code = '' } = answerIn(await allow(agent, consent))
    expect((await redeem(service, code)).status).toBe(200)
  })

  it('C6.2.1a a login of another browser does not count', async () => {
    const uri = await pushed({ prompt: 'login' })
    const [one, two] = [new UserAgent(service), new UserAgent(service)]
    await two.logIn(await two.get('/connect/account'))
    await two.get(pathOf(uri))
    await one.logIn(await one.get(pathOf(uri)))
    expect(isLogin(await two.get(pathOf(uri)))).toBe(true)
  })

  it('C6.2.2 the link to another account leads to a login, and on to the same request', async () => {
    const uri = await pushed({ login_hint: 'alice' })
    const agent = new UserAgent(service)
    const consent = await agent.logIn(await agent.get(pathOf(uri)))
    const link = /href="([^"]*switch=1)"/.exec(consent.text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    const login = await agent.get(link)
    expect(isLogin(login)).toBe(true)
    expect(login.text).not.toContain('value="alice"')
    const seen = await allow(agent, await agent.logIn(login, 'greta'))
    const { json } = await redeem(service, answerIn(seen)['code'] ?? '')
    expect(service.primed.find(({ token }) => token === json.access_token)?.principal.subject).toBe(
      'sub-greta',
    )
  })

  it('C6.2.2 the search and the pages of businesses keep the reference', async () => {
    const uri = await pushed({ scope: 'openid fund.read target:b' })
    const agent = new UserAgent(service)
    const consent = await agent.logIn(await agent.get(pathOf(uri)))
    const searched = await agent.get(pathOf(uri, { find: 'Acme', from: '0' }))
    expect([consent, searched].every(isConsent)).toBe(true)
    const seen = await agent.submit(searched, { decision: 'allow', business: 'ACME' })
    expect(answerIn(seen)['code']).toEqual(expect.any(String))
  })
})

describe('C6.2.1a over nodes that share a store', () => {
  it('C6.2.1a is pushed to one node, opened at another, and decided once over both', async () => {
    const store = service.store
    const nodes = [service, openFlow({ store, users: USERS })]
    const uri = await pushed()
    const waiting = await Promise.all(
      nodes.map(async (node) => {
        const agent = new UserAgent(node)
        return { agent, page: await agent.logIn(await agent.get(pathOf(uri))) }
      }),
    )
    const seen = await Promise.all(waiting.map(({ agent, page }) => allow(agent, page)))
    expect(seen.filter(({ location }) => location !== undefined)).toHaveLength(1)
  })
})

describe('C6.2.1a a client that must push', () => {
  const must = { ...partner, requirePar: true }

  beforeEach(() => {
    service = openFlow({ clients: [must] })
  })

  it.each(['authorize', 'login', 'consent'])(
    'C6.2.1a is refused by redirect at %s, with state and iss, where it has not',
    async (page) => {
      const query = formOf({ ...ASKED, client_id: 'ledgerline' })
      const agent = new UserAgent(service)
      const seen = await agent.post(
        `/connect/${page}?${query}`,
        page === 'authorize' ? { ...ASKED, client_id: 'ledgerline' } : { decision: 'deny' },
      )
      expect(seen.location?.href.startsWith(CALLBACK)).toBe(true)
      expect(answerIn(seen)).toMatchObject({
        error: 'invalid_request',
        state: ASKED['state'],
        iss: 'http://id.test',
      })
    },
  )

  it('C6.2.1a gets a code for what it has pushed', async () => {
    const uri = await pushed()
    const agent = new UserAgent(service)
    const seen = await allow(agent, await agent.logIn(await agent.get(pathOf(uri))))
    expect(answerIn(seen)['code']).toEqual(expect.any(String))
  })
})

describe('C6.2.1a what is counted of pushed requests', () => {
  it('C6.2.1a counts what was taken, refused and decided, and what could not be opened', async () => {
    const counted: string[] = []
    service = openFlow({
      deps: {
        recorder: {
          ...service.deps.recorder,
          count: (of, ...labels) => counted.push([of, ...labels].join(' ')),
        },
      },
    })
    const uri = await pushed()
    await push({ scope: 'no.such' })
    const agent = new UserAgent(service)
    await allow(agent, await agent.logIn(await agent.get(pathOf(uri))))
    await agent.get(pathOf(uri))
    vi.spyOn(service.store, 'create').mockRejectedValueOnce(new Fault('identity_unavailable'))
    await push()
    expect(counted.filter((each) => each.startsWith('pushedRequests'))).toEqual(
      ['pushed', 'refused', 'decided', 'invalid', 'failed'].map((result) => `pushedRequests ${result}`),
    )
  })
})
