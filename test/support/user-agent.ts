import { createHash } from 'node:crypto'
import type { Answer } from '../../src/base/contracts/calls/exchange.ts'
import { identityDoor } from '../../src/identity/identity.ts'
import {
  basic,
  client,
  exchangeOf,
  formOf,
  openTestIdentity,
  outside,
  user,
  type Sent,
  type JsonAnswer,
  type TestIdentity,
  type TestIdentityOptions,
} from './identity-under-test.ts'

export const CALLBACK = 'https://app.test/callback'
export const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
export const challengeOf = (verifier: string): string =>
  createHash('sha256').update(verifier).digest('base64url')

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

type Fields = Readonly<Record<string, string | undefined>>

export interface BrowserAnswer {
  readonly status: number
  readonly headers: Answer['headers']
  readonly text: string
  /** Of a redirect. */
  readonly location: URL | undefined
}

const unescape = (text: string): string =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')

/** A browser, as far as these pages need one: keeps a cookie, follows our own redirects, sends the forms it is shown. */
export class UserAgent {
  readonly service: TestIdentity
  readonly #headers: Readonly<Record<string, string>>
  cookie: string | undefined

  constructor(service: TestIdentity, headers: Readonly<Record<string, string>> = {}) {
    this.service = service
    this.#headers = headers
  }

  async send(sent: Sent): Promise<BrowserAnswer> {
    const headers = {
      ...this.#headers,
      ...(this.cookie !== undefined && { cookie: this.cookie }),
      ...sent.headers,
    }
    const answer = await identityDoor(() => this.service.identity, outside)(exchangeOf({ ...sent, headers }))
    const set = answer.headers['Set-Cookie']
    if (typeof set === 'string') this.cookie = set.split(';')[0]
    const { Location: location } = answer.headers
    return {
      status: answer.status,
      headers: answer.headers,
      text: typeof answer.body === 'string' ? answer.body : '',
      location: location === undefined ? undefined : new URL(String(location), 'http://id.test'),
    }
  }

  async follow(seen: BrowserAnswer): Promise<BrowserAnswer> {
    const { location } = seen
    if (location === undefined || location.origin !== 'http://id.test') return seen
    return this.get(`${location.pathname}${location.search}`)
  }

  async get(path: string): Promise<BrowserAnswer> {
    return this.follow(await this.send({ method: 'GET', path }))
  }

  async post(path: string, fields: Fields): Promise<BrowserAnswer> {
    return this.follow(await this.send({ path, headers: FORM, body: formOf(fields) }))
  }

  /** Sends a page's (last) form with its hidden field; `undefined` takes that away. */
  submit(page: BrowserAnswer, fields: Fields): Promise<BrowserAnswer> {
    const action = unescape(/<form method="post" action="([^"]*)"/.exec(page.text)?.[1] ?? '')
    const csrf = /name="csrf" value="([^"]*)"/.exec(page.text)?.[1]
    return this.post(action, { csrf, ...fields })
  }

  logIn(page: BrowserAnswer, username = 'alice', password = `${username}-password`): Promise<BrowserAnswer> {
    return this.submit(page, { username, password, decision: 'login' })
  }
}

export const partner = client('ledgerline', {
  kind: 'partner',
  name: 'Ledgerline',
  grants: ['authorization_code', 'refresh_token'],
  redirectUris: [CALLBACK, 'https://app.test/other?fixed=1'],
  postLogoutRedirectUris: ['https://app.test/bye'],
})

export const app = client('pocketbooks', {
  kind: 'public',
  name: 'Pocketbooks',
  secretHashes: [],
  grants: ['authorization_code', 'refresh_token'],
  redirectUris: ['http://127.0.0.1/callback', 'com.example.pocketbooks:/callback'],
})

/** alice may use ACME and INITECH; greta ACME and GLOBEX, read-only there; nina nothing. */
export const USERS = [
  user('alice'),
  user('greta', {
    access: new Map([
      ['ACME', { role: 'Administrator', scopes: ['fund.maintain', 'business.fund.list'] }],
      ['GLOBEX', { role: 'Read-only', scopes: ['fund.read'] }],
    ]),
  }),
  user('nina', { access: new Map() }),
]

export const openFlow = (options: TestIdentityOptions = {}): TestIdentity =>
  openTestIdentity({ clients: [partner, app, client('acme-books')], users: USERS, ...options })

/** The path of an authorization request; `undefined` takes a default parameter away. */
export const authorizePath = (params: Fields = {}): string =>
  `/connect/authorize?${formOf({
    client_id: 'ledgerline',
    redirect_uri: CALLBACK,
    response_type: 'code',
    scope: 'openid fund.read target:b/ACME',
    state: 's t&a"te',
    nonce: 'n-1',
    code_challenge: challengeOf(VERIFIER),
    code_challenge_method: 'S256',
    ...params,
  })}`

/** What a client reads in the answer. */
export const answerIn = ({ location }: BrowserAnswer): Record<string, string> =>
  Object.fromEntries(location?.searchParams ?? [])

/** Logs in, allows what is asked for, and so obtains a code; as alice unless another name is given. */
export async function obtainCode(
  service: TestIdentity,
  params: Fields = {},
  { username = 'alice', business }: { username?: string; business?: string } = {},
): Promise<{ agent: UserAgent; code: string }> {
  const agent = new UserAgent(service)
  let seen = await agent.logIn(await agent.get(authorizePath(params)), username)
  if (seen.status === 200) seen = await agent.submit(seen, { decision: 'allow', business })
  return { agent, code: answerIn(seen)['code'] ?? '' }
}

/** A redemption by ledgerline. */
export const redeem = (
  service: TestIdentity,
  code: string,
  params: Fields = {},
  authorization: string | undefined = basic('ledgerline'),
): Promise<JsonAnswer> =>
  service.send({
    headers: { ...FORM, ...(authorization !== '' && { authorization }) },
    body: formOf({
      grant_type: 'authorization_code',
      code,
      redirect_uri: CALLBACK,
      code_verifier: VERIFIER,
      ...params,
    }),
  })
