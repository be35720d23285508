/** What people, clients and operators have from a service, and whether the next service on its data folder goes on with it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { authorizeUrl, SCOPE } from './audited-people.ts'
import { postForm } from './oauth.ts'
import { Person } from './person.ts'
import type { SpawnedPostern } from './spawn-postern.ts'
import { issueToken } from './tokens.ts'

/** A service whose admin API and token endpoint are used as any version has them. */
type Service = Pick<SpawnedPostern, 'authUrl' | 'baseUrl' | 'adminUrl'>

export interface Holdings {
  readonly accessToken: string
  readonly refreshToken: string
  /** An access token that was withdrawn, with its family. */
  readonly withdrawn: { readonly accessToken: string; readonly refreshToken: string }
  /** Logged in, and has allowed the partner what it asks for. */
  readonly person: Person
  /** A user who was added by the admin API. */
  readonly username: string
  /** The ids of the keys that the service signs with, or has signed with. */
  readonly keys: readonly string[]
}

type Order = readonly [method: 'POST' | 'PUT', path: string]

async function order(service: Service, data: string, [method, path]: Order, body: object): Promise<void> {
  const token = readFileSync(join(data, 'admin-token'), 'utf8').trim()
  const response = await fetch(`${service.adminUrl}${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  const answer = await response.text()
  if (!response.ok) throw new Error(`${path}: ${response.status} ${answer}`)
}

async function keysOf({ authUrl }: Service): Promise<readonly string[]> {
  const { jwks_uri } = (await (await fetch(`${authUrl}/.well-known/openid-configuration`)).json()) as {
    jwks_uri: string
  }
  const { keys } = (await (await fetch(jwks_uri)).json()) as { keys: readonly { readonly kid: string }[] }
  return keys.map(({ kid }) => kid)
}

/** Alice logs in with a browser, and allows the partner what it asks for, if she has not before. */
async function logIn({ authUrl }: Service): Promise<Person> {
  const person = new Person(authUrl)
  const shown = await person.logIn(await person.open(authorizeUrl()))
  const { location } = shown.location ? shown : await person.submit(shown, { decision: 'allow' })
  expect(location?.searchParams.get('code')).toEqual(expect.any(String))
  return person
}

async function tokens(service: Service) {
  const { access_token: accessToken, refresh_token: refreshToken = '' } = await issueToken(service, {
    scope: SCOPE,
  })
  return { accessToken, refreshToken }
}

/** One of everything that is kept. `username` is added; the calls of members are closed. */
export async function collect(service: Service, data: string, username: string): Promise<Holdings> {
  const withdrawn = await tokens(service)
  const { status } = await postForm(service, '/connect/revocation', {
    params: { token: withdrawn.refreshToken },
  })
  expect(status).toBe(200)
  await order(service, data, ['POST', '/users'], {
    ...{ username, password: `${username}-password`, customers: ['acme-books'] },
    access: { ACME: 'Read-only' },
  })
  await order(service, data, ['PUT', '/maintenance'], { scope: 'area/member-data' })
  return {
    ...(await tokens(service)),
    ...{ withdrawn, username, person: await logIn(service), keys: await keysOf(service) },
  }
}

const FUNDS = '/api/1.0/b/ACME/fund-data/fund-list'
const MEMBERS = '/api/1.0/f/ACME/SUPER1/member-data/member-list'

async function statusOf({ baseUrl }: Service, token: string, path = FUNDS): Promise<number> {
  const response = await fetch(`${baseUrl}${path}`, { headers: { Authorization: `Bearer ${token}` } })
  await response.arrayBuffer()
  return response.status
}

const refresh = (service: Service, refreshToken: string) =>
  postForm(service, '/connect/token', {
    params: { grant_type: 'refresh_token', refresh_token: refreshToken },
  })

/** The refresh token is good. Answers what it gave. */
async function expectRefreshed(service: Service, held: Holdings): Promise<Holdings> {
  const { json, status } = await refresh(service, held.refreshToken)
  expect(status).toBe(200)
  const [accessToken = '', refreshToken = ''] = [json.access_token, json.refresh_token] as string[]
  expect(await statusOf(service, accessToken)).toBe(200)
  return { ...held, accessToken, refreshToken }
}

async function expectUnknown(service: Service, refreshToken: string): Promise<void> {
  const { json, status } = await refresh(service, refreshToken)
  expect([status, json.error]).toEqual([400, 'invalid_grant'])
}

/** Tokens, logins, consents, people, revocations and switches are as they were. Answers the holdings of now. */
export async function expectKept(service: Service, held: Holdings): Promise<Holdings> {
  expect(await keysOf(service)).toEqual(expect.arrayContaining([...held.keys]))
  expect(await statusOf(service, held.accessToken)).toBe(200)
  expect(await statusOf(service, held.accessToken, MEMBERS)).toBe(503)

  expect(await statusOf(service, held.withdrawn.accessToken)).toBe(401)
  await expectUnknown(service, held.withdrawn.refreshToken)
  const now = await expectRefreshed(service, held)

  const { location } = await held.person.open(authorizeUrl({ prompt: 'none' }))
  expect(Object.fromEntries(location?.searchParams ?? [])).toHaveProperty('code')

  const { username } = held
  const stored = await issueToken(service, { username, scope: 'fund.read target:b/ACME' })
  expect(await statusOf(service, stored.access_token)).toBe(200)
  return now
}
