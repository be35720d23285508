/** A person of whom Postern has data in every place, and what of it is found in the files of a service. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect } from 'vitest'
import { authorizeUrl, CALLBACK, SCOPE, VERIFIER } from './audited-people.ts'
import { postForm } from './oauth.ts'
import { Person } from './person.ts'

/** The proxy in front is trusted (`behindProxy`), and names this network. */
export const ADDRESS = '198.51.100.77'
const FROM = { 'X-Forwarded-For': ADDRESS, 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/151.0' }

/** Names that stand nowhere else, so that they can be searched for. */
export const DORA = {
  username: 'dora-dunkelfeld',
  subject: 'sub-of-dunkelfeld-4711',
  password: 'dora-dunkelfeld-password',
  customers: ['acme-books'],
  access: { ACME: 'Administrator' },
  claims: { name: 'Dora Wintermute', email: 'dora@wintermute.example', phone_number: '+61 2 5550 9977' },
}

/** A service, and how its operators call it. */
export interface OperatedService {
  readonly data: string
  readonly authUrl: string
  readonly adminUrl: string
}

export interface Answered {
  readonly status: number
  readonly text: string
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever the API says; the tests judge it
  readonly body: any
}

export async function asOperator(
  { adminUrl, data }: Pick<OperatedService, 'adminUrl' | 'data'>,
  method: string,
  path: string,
  body?: object,
): Promise<Answered> {
  const token = readFileSync(join(data, 'admin-token'), 'utf8').trim()
  const response = await fetch(`${adminUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, text, body: JSON.parse(text) as unknown }
}

export const erase = (service: Pick<OperatedService, 'adminUrl' | 'data'>, subject = DORA.subject) =>
  asOperator(service, 'POST', `/subjects/${subject}/erase`, { reason: 'request 4711' })

export const exportOf = (service: Pick<OperatedService, 'adminUrl' | 'data'>, subject = DORA.subject) =>
  asOperator(service, 'GET', `/subjects/${subject}/export`)

/** A login by the password, at the customer's client. */
export const byPassword = (service: Pick<OperatedService, 'authUrl'>, user: Partial<typeof DORA> = {}) =>
  postForm(service, '/connect/token', {
    params: {
      ...{ grant_type: 'password', username: user.username ?? DORA.username },
      ...{ password: user.password ?? DORA.password, scope: SCOPE },
    },
    headers: FROM,
  })

export const byRefresh = (service: Pick<OperatedService, 'authUrl'>, token: string) =>
  postForm(service, '/connect/token', { params: { grant_type: 'refresh_token', refresh_token: token } })

/** Signs in by a browser at her account page, and answers what she is shown there. */
export async function byBrowser({ authUrl }: Pick<OperatedService, 'authUrl'>, username = DORA.username) {
  const person = new Person(authUrl, FROM)
  const shown = await person.logIn(await person.open('/connect/account'), username)
  return { person, shown }
}

/** Adds her, changes her, and lets her sign in: with a session, families, a consent, a network and a link. */
export async function becomeKnown(service: OperatedService) {
  const { claims, ...rest } = DORA
  const first = { ...rest, claims: { ...claims, email: 'first@wintermute.example' } }
  expect((await asOperator(service, 'POST', '/users', first)).status).toBe(201)
  expect((await asOperator(service, 'PATCH', `/users/${DORA.username}`, { claims })).status).toBe(200)
  expect((await byPassword(service, { password: 'not her password' })).status).toBe(400)
  const { json } = await byPassword(service)
  const person = new Person(service.authUrl, FROM)
  const page = await person.logIn(await person.open(authorizeUrl()), DORA.username)
  const { location } = await person.submit(page, { decision: 'allow' })
  const code = location?.searchParams.get('code') ?? ''
  const params = {
    grant_type: 'authorization_code',
    ...{ code, redirect_uri: CALLBACK, code_verifier: VERIFIER },
  }
  const through = await postForm(service, '/connect/token', { params, client: 'ledgerline' })
  expect(through.status).toBe(200)
  const link = await asOperator(service, 'POST', `/users/${DORA.username}/link`, {})
  expect(link.status).toBe(201)
  return { person, accessToken: String(json.access_token), refreshToken: String(json.refresh_token) }
}

/** Opens the store beside its service, for a look. */
export function lookInto<T>({ data }: Pick<OperatedService, 'data'>, look: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(join(data, 'postern.sqlite'), { readOnly: true, timeout: 10_000 })
  try {
    return look(db)
  } finally {
    db.close()
  }
}

interface Row {
  readonly kind: string
  readonly key: string
  readonly value: string
}

/** The records that name the person by subject or name, or are kept by one of them. */
export const recordsAbout = (service: Pick<OperatedService, 'data'>): readonly Row[] =>
  lookInto(service, (db) =>
    (db.prepare('SELECT kind, key, value, subject FROM record').all() as unknown as Row[]).filter((row) =>
      [DORA.subject, DORA.username].some((text) => JSON.stringify(row).includes(text)),
    ),
  )

/** Every value of the person, and the hashes that Postern has made of some, as the store has them now. */
export function valuesOf(service: Pick<OperatedService, 'data'>): readonly string[] {
  const rows = recordsAbout(service)
  const hashes = rows.flatMap(({ value }) => value.match(/\$[\w$=,+/-]{20,}|"[\w-]{43}"/g) ?? [])
  // Not that of a session: it is the SHA-256 of what was drawn by chance, and a record of the trail has it as the login's id.
  const keys = rows.flatMap(({ kind, key }) => (/^(consent|password_link)$/.test(kind) ? [key] : []))
  const { claims, password } = DORA
  return [
    ...new Set([
      ...Object.values(claims),
      ...['first@wintermute.example', 'wintermute', password, ADDRESS],
      ...hashes.map((text) => text.replaceAll('"', '')),
      ...keys,
    ]),
  ]
}

/** The files of the store and of the trail that have one of the texts, with it. */
export function foundIn(
  { data }: Pick<OperatedService, 'data'>,
  texts: readonly string[],
): readonly string[] {
  const trail = join(data, 'audit')
  const files = [
    ...['', '-wal', '-shm'].map((end) => join(data, `postern.sqlite${end}`)),
    ...(existsSync(trail)
      ? readdirSync(trail, { recursive: true, withFileTypes: true })
          .filter((file) => file.isFile())
          .map((file) => join(file.parentPath, file.name))
      : []),
  ].filter((file) => existsSync(file))
  return files.flatMap((file) => {
    const bytes = readFileSync(file)
    return texts.filter((text) => bytes.includes(text)).map((text) => `${file.slice(data.length)}: ${text}`)
  })
}
