import { expect } from 'vitest'
import { authorizeUrl, CALLBACK, VERIFIER } from './audited-people.ts'
import { postForm, type OAuthAnswer } from './oauth.ts'
import type { Operated } from './operated.ts'
import { Person, type Shown } from './person.ts'
import { bearer, form, send } from './requests.ts'
import type { RawResponse } from './raw-http.ts'
import type { StartedPostern } from './start-postern.ts'

/** Where people see their account (C6.2.2). */
export const ACCOUNT = '/connect/account'

type Served = Operated & { readonly service: StartedPostern }

type Fields = Readonly<Record<string, string>>
type Headers = Readonly<Record<string, string>>

const SCOPE = 'openid offline_access fund.read target:b/ACME'

/** What a client of somebody holds, to be tried. */
interface Held {
  readonly access: string
  readonly refresh: string
  /** A code that nobody has redeemed. */
  readonly code: string
}

/** A user of the store, whom an operator has added, with what they hold. */
export class AccountOwner {
  readonly served: Served
  readonly username: string
  readonly subject: string
  /** At the account page, signed in. */
  readonly browser: Person

  private constructor(served: Served, username: string, subject: string) {
    this.served = served
    this.username = username
    this.subject = subject
    this.browser = new Person(served.authUrl)
  }

  /** Their password is their name with `-password` behind it. */
  static async add(served: Served, username: string, more: object = {}): Promise<AccountOwner> {
    const { status, body } = await served.admin('POST', '/users', {
      ...{ username, password: `${username}-password`, customers: ['acme-books'] },
      access: { ACME: 'Administrator' },
      ...more,
    })
    expect(status).toBe(201)
    const owner = new AccountOwner(served, username, String(body.record.subject))
    await owner.signIn()
    return owner
  }

  get password(): string {
    return `${this.username}-password`
  }

  /** Another browser of theirs, signed in. */
  async signIn(browser = this.browser): Promise<Person> {
    const page = await browser.logIn(await browser.open(ACCOUNT), this.username)
    expect(page.text).toContain('Your account')
    return browser
  }

  page(browser = this.browser): Promise<Shown> {
    return browser.open(ACCOUNT)
  }

  /** The form of the account page; its fields are `password`, and the same `again`, unless others are given. */
  async change(password: string, others: Fields = {}): Promise<Shown> {
    const page = await this.page()
    return this.browser.submit(page, { current: this.password, password, again: password, ...others })
  }

  /** The token that the forms of their page have. */
  async csrf(): Promise<string> {
    return /name="csrf" value="([^"]*)"/.exec((await this.page()).text)?.[1] ?? ''
  }

  /** A form, byte for byte, with the answer as it comes. */
  post(body: string, headers: Headers = {}): Promise<RawResponse> {
    const sent = { Cookie: this.browser.cookie, ...form({}).headers, ...headers }
    return send(this.served.service, { method: 'POST', target: ACCOUNT, headers: sent, body })
  }

  /** Whether a browser is signed in with this cookie. */
  async isSignedIn(cookie = this.browser.cookie): Promise<boolean> {
    const { body } = await send(this.served.service, { target: ACCOUNT, headers: { Cookie: cookie } })
    return body.includes('Your account')
  }

  /** Whether a password is theirs, at the password grant. */
  async mayLogIn(password: string): Promise<boolean> {
    const params = { grant_type: 'password', username: this.username, password, scope: SCOPE }
    return (await postForm(this.served, '/connect/token', { params })).status === 200
  }

  /** They allow the demo's partner something: it has tokens, and one more code. */
  async allow(): Promise<Held> {
    const asked = await this.browser.open(authorizeUrl())
    const { location } = await this.browser.submit(asked, { decision: 'allow' })
    const { json } = await this.redeem(location?.searchParams.get('code') ?? '')
    const again = await this.browser.open(authorizeUrl())
    return {
      access: String(json.access_token),
      refresh: String(json.refresh_token),
      code: again.location?.searchParams.get('code') ?? '',
    }
  }

  redeem(code: string): Promise<OAuthAnswer> {
    const params = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER }
    return postForm(this.served, '/connect/token', { params, client: 'ledgerline' })
  }

  refresh(token: string): Promise<OAuthAnswer> {
    const params = { grant_type: 'refresh_token', refresh_token: token }
    return postForm(this.served, '/connect/token', { params, client: 'ledgerline' })
  }

  /** The status of a call with an access token. */
  async call(token: string): Promise<number> {
    const target = '/api/1.0/b/ACME/fund-data/fund-list'
    return (await send(this.served.service, { target, headers: bearer(token) })).status
  }

  /** How many sessions they have. */
  async sessions(): Promise<number> {
    const { body } = await this.served.admin('GET', `/sessions?subject=${this.subject}`)
    return body.sessions.length
  }
}
