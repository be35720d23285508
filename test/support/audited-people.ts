import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { AuditEvent } from '../../src/base/kernel/audit-events.ts'
import { recordsOf, type WrittenRecord } from './audit-files.ts'
import { postForm, type OAuthAnswer } from './oauth.ts'
import { Person, type Shown } from './person.ts'
import { bearer, send } from './requests.ts'
import { shared } from './shared.ts'
import { postern, type StartedPostern, type StartOptions } from './start-postern.ts'

/** The demo's user, and what she lets a client have. */
export const ALICE = '45733adb-9b07-4d40-ae57-20cf9b802f51'
export const SCOPE = 'openid offline_access fund.read target:b/ACME'
export const HERE = '127.0.0.1'

/** RFC 7636, appendix B. */
export const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
export const CALLBACK = 'http://127.0.0.1:8090/callback'
const ALWAYS_SECRET = ['alice-password', 'acme-books-secret', 'ledgerline-secret', VERIFIER]

type Params = Readonly<Record<string, string>>

/** The address of an authorization request of the demo's partner. */
export const authorizeUrl = (params: Params = {}): string =>
  `/connect/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id: 'ledgerline',
    redirect_uri: CALLBACK,
    scope: SCOPE,
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    ...params,
  }).toString()}`

/** Alice logs in by a browser of hers, and a client like the demo's partner gets her tokens. */
export async function logInThrough(service: { readonly authUrl: string }, client = 'ledgerline') {
  const person = new Person(service.authUrl)
  const page = await person.logIn(await person.open(authorizeUrl({ client_id: client })))
  const { location } = await person.submit(page, { decision: 'allow' })
  const params = {
    grant_type: 'authorization_code',
    code: location?.searchParams.get('code') ?? '',
    redirect_uri: CALLBACK,
    code_verifier: VERIFIER,
  }
  const secret = 'ledgerline-secret'
  const { json } = await postForm(service, '/connect/token', { params, client, secret })
  const idToken = String(json.id_token)
  const logOut = () => person.open(`/connect/endsession?id_token_hint=${idToken}`)
  return { person, idToken, refreshToken: String(json.refresh_token), logOut }
}

/** All that is kept of a trail, as it stands in its files: records, the values beside, the manifest. */
export function wholeTrail({ data }: Pick<StartedPostern, 'data'>): string {
  const folder = join(data, 'audit')
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
  return files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1')).join('\n')
}

/** What a record says of the object it is about. */
export const onOf = (record: WrittenRecord | undefined) =>
  record?.['on'] as { readonly id: string; readonly family: string }

/** A service whose clients remember every secret that they were given. */
class AuditedPeople {
  readonly service: StartedPostern
  readonly #secrets: (string | undefined)[] = [...ALWAYS_SECRET]

  constructor(service: StartedPostern) {
    this.service = service
  }

  /** The records of an event, once there are so many. */
  async recorded(event: AuditEvent, count = 1): Promise<readonly WrittenRecord[]> {
    await expect.poll(() => recordsOf(this.service, event).length, { timeout: 30_000 }).toBe(count)
    return recordsOf(this.service, event)
  }

  byPassword(password = 'alice-password', username = 'alice'): Promise<OAuthAnswer> {
    return this.#tokens({ grant_type: 'password', username, password, scope: SCOPE })
  }

  byRefresh(token: string, client?: string): Promise<OAuthAnswer> {
    return this.#tokens({ grant_type: 'refresh_token', refresh_token: token }, client)
  }

  byCode(code: string): Promise<OAuthAnswer> {
    const params = { code, redirect_uri: CALLBACK, code_verifier: VERIFIER }
    return this.#tokens({ grant_type: 'authorization_code', ...params }, 'ledgerline')
  }

  revoke(token: string, client?: string): Promise<OAuthAnswer> {
    return this.#post('/connect/revocation', { token }, client)
  }

  /** A person whose session is a secret. */
  async loggedIn(): Promise<Person> {
    const person = new Person(this.service.authUrl)
    await person.logIn(await person.open('/connect/account'))
    this.#secrets.push(person.cookie.split('=')[1])
    return person
  }

  /** A person who has logged in for the partner, and is asked. */
  async asked(): Promise<{ readonly person: Person; readonly page: Shown }> {
    const person = new Person(this.service.authUrl)
    const page = await person.logIn(await person.open(authorizeUrl()))
    this.#secrets.push(person.cookie.split('=')[1])
    return { person, page }
  }

  /** A person who has allowed what the partner asked for. */
  async walk(): Promise<{ readonly person: Person; readonly code: string }> {
    const { page, person } = await this.asked()
    const code = this.codeOf(await person.submit(page, { decision: 'allow' }))
    expect(code).not.toBe('')
    return { person, code }
  }

  codeOf({ location }: Shown): string {
    const code = location?.searchParams.get('code') ?? ''
    this.#secrets.push(code)
    return code
  }

  async userinfo(token: string): Promise<number> {
    const sent = { target: '/api/1.0/u/connect/userinfo', headers: bearer(token) }
    return (await send(this.service, sent)).status
  }

  /** The secrets of this test that stand anywhere in the trail. */
  told(): readonly (string | undefined)[] {
    const trail = wholeTrail(this.service)
    return this.#secrets.filter((secret) => secret !== undefined && secret !== '' && trail.includes(secret))
  }

  async #tokens(params: Params, client?: string): Promise<OAuthAnswer> {
    const answer = await this.#post('/connect/token', params, client)
    const { access_token, id_token, refresh_token } = answer.json
    this.#secrets.push(params['refresh_token'], params['code'], access_token, id_token, refresh_token)
    return answer
  }

  #post(path: string, params: Params, client?: string): Promise<OAuthAnswer> {
    return postForm(this.service, path, { params, ...(client !== undefined && { client }) })
  }
}

/** For one test, which fails if any secret stands in the trail at its end. Its store is in memory. */
export const auditedPeople = async (options: StartOptions = {}): Promise<AuditedPeople> =>
  keepingSecrets(await postern({ keeps: 'trail', ...options }))

/** The same for a file or a `describe`, whose tests share a service: nobody consents, is locked out or moves its clock. */
export function sharedPeople(): () => Promise<AuditedPeople> {
  const serve = shared(() => postern({ keeps: 'trail' }))
  return async () => keepingSecrets(await serve())
}

function keepingSecrets(service: StartedPostern): AuditedPeople {
  const people = new AuditedPeople(service)
  onTestFinished(() => expect(people.told()).toEqual([]))
  return people
}
