/** T6.1: characters that steer the direction of writing, in names that others read. */
import { describe, expect, it } from 'vitest'
import { loadFile } from '../../src/base/config/load.ts'
import { problemLines } from '../../src/base/config/problems.ts'
import { section } from '../../src/base/config/schema.ts'
import { directorySchema } from '../../src/identity/directory/records/schema.ts'
import { administered } from '../support/administered.ts'
import { configFiles } from '../support/config-files.ts'
import { authorizePath, openFlow, partner, UserAgent } from '../support/user-agent.ts'
import { client, user } from '../support/identity-under-test.ts'
import { SnapshotPlaces } from '../../src/identity/directory/records/places.ts'
import { code } from '../support/scope.ts'

/** Marks, embeddings, overrides, isolates (Unicode, UAX #9 §2). */
const CONTROLS = [
  0x061c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069,
]
const CODES = CONTROLS.map((point) => point.toString(16).padStart(4, '0'))
const turned = (hex: string): string => `Acme ${String.fromCodePoint(Number.parseInt(hex, 16))}skooB`
const ANY = new RegExp(`[${CODES.map((hex) => `\\u${hex}`).join('')}]`)

/** A hash, of nothing that anybody uses. */
const HASH = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'

const readDirectory = (directory: object): readonly string[] => {
  const file = configFiles({ 'a.yaml': JSON.stringify({ directory }) })('a.yaml')
  return problemLines(loadFile(section({ directory: directorySchema }), file, {}).problems)
}

describe('T6.1 a name that turns what stands around it', () => {
  it.each(CODES)('T6.1 is refused in the configuration: U+%s', (hex) => {
    const name = turned(hex)
    const aClient = { kind: 'public', grants: ['authorization_code'], scopes: [] }
    const aUser = { subject: 's', password: HASH }
    const cases: readonly (readonly [string, object])[] = [
      ['clients.a.name', { clients: { a: { ...aClient, name } } }],
      ['businesses.A.name', { businesses: { A: { name, funds: 'any' } } }],
      ['roles', { roles: { [name]: { scopes: [] } } }],
      ['users', { users: { [name]: aUser } }],
      ...['name', 'given_name', 'middle_name', 'family_name'].map(
        (claim) =>
          [`users.a.claims.${claim}`, { users: { a: { ...aUser, claims: { [claim]: name } } } }] as const,
      ),
    ]
    for (const [path, directory] of cases) {
      const problems = readDirectory(directory)
      expect([path, problems]).toEqual([path, [expect.stringContaining(`directory.${path}`)]])
      expect(problems[0]).toContain('without characters that steer the direction of writing')
      // Whoever reads why must not be turned around either.
      expect(problems[0]).not.toMatch(ANY)
      expect(problems[0]).toContain(`\\u${hex}`)
    }
    expect(readDirectory({ clients: { a: { ...aClient, name: 'مؤسسة שלום Acme' } } })).toEqual([])
  })

  it('T6.1 is refused by the admin API, which says why: clients, users, businesses, funds, roles', async () => {
    const { call } = await administered()
    await call('POST', '/businesses', { body: { code: 'HOOLI', name: 'Hooli' } })
    const name = turned('202e')
    const common = { password: 'a-long-enough-password' }
    for (const [path, body] of [
      ['/clients', { id: 'tally', kind: 'customer', name, agreement: '2026-01-15', scopes: ['openid'] }],
      ['/users', { ...common, username: name }],
      ['/users', { ...common, username: 'dora', claims: { name } }],
      ['/businesses', { code: 'INITECH', name }],
      ['/businesses/HOOLI/funds', { code: 'F1', name }],
      ['/roles', { name, scopes: ['openid'] }],
    ] as const) {
      const answer = await call('POST', path, { body })
      expect([path, answer.status]).toEqual([path, 400])
      expect(answer.text).toContain('without characters that steer the direction of writing')
    }
    const renamed = await call('PATCH', '/businesses/HOOLI', { body: { name } })
    expect(renamed.status).toBe(400)
  })

  it('T6.1 that an earlier version has stored turns nothing on a page: it is isolated, without its controls', async () => {
    const name = 'Acme \u202eskooB'
    const businesses = [code('ACME'), code('INITECH')].map(
      (each) => [each, { code: each, name: `${name} Pty`, funds: new Set<never>() }] as const,
    )
    const service = openFlow({
      clients: [{ ...partner, name, businesses: ['ACME', 'INITECH'] }, client('acme-books')],
      users: [user('alice', { claims: { name: `${name} Arden` } })],
      deps: { places: new SnapshotPlaces(new Map(businesses)) },
    })
    const agent = new UserAgent(service)
    const login = await agent.get(authorizePath({ scope: 'openid fund.read target:b' }))
    const consent = await agent.logIn(login)
    expect(consent.text).toContain('<bdi>Acme skooB Pty</bdi>')
    await agent.submit(consent, { decision: 'allow', business: 'ACME' })
    const applications = await agent.get('/connect/account')
    expect(applications.text).toContain('<h3><bdi>Acme skooB</bdi></h3>')
    for (const { text } of [login, consent, applications]) {
      expect(text).toContain('\u2068Acme skooB')
      expect(text.replaceAll(/\u2068Acme skooB[A-Za-z ]*\u2069/g, '')).not.toMatch(ANY)
    }
  })
})
