import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { onlyLessens } from '../../../src/base/config/lessens.ts'
import { viewOf } from '../../../src/base/config/schema.ts'
import { Problems } from '../../../src/base/config/problems.ts'
import { compileCatalogue } from '../../../src/base/config/scopes/catalogue.ts'
import { compileClient } from '../../../src/identity/directory/records/client-rules.ts'
import type { SecuredClient } from '../../../src/extensions/fapi/schema.ts'
import { problemsAt } from '../../../src/identity/directory/records/read-records.ts'
import type { ClientRecord } from '../../../src/identity/directory/records/schema.ts'
import type { Jwk } from '../../../src/base/kernel/jwk.ts'
import { type Configuration, onlyTakesAway } from '../../../src/operate/settings/configuration.ts'
import { SETTINGS } from '../../../src/serve/start/settings.ts'
import { READING } from '../../support/settings.ts'
import { DEMO } from '../../support/spawn-postern.ts'

const SECRETS = [`sha256:${'A'.repeat(43)}`]
const EC = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const PUBLIC_KEY = EC.publicKey.export({ format: 'jwk' }) as Jwk
const WEAK = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' }) as Jwk
const STRONG = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' }) as Jwk

const KINDS = {
  partner: { kind: 'partner', grants: ['authorization_code'], redirectUris: ['https://app.example/cb'] },
  public: {
    kind: 'public',
    grants: ['authorization_code'],
    redirectUris: ['https://app.example/cb'],
    secrets: [],
  },
  machine: { kind: 'machine', grants: ['client_credentials'] },
  customer: { kind: 'customer', grants: ['password'], agreement: '2026-01-15' },
} as const

/** Members of a record with those that the extension adds, unchecked. */
type Members = SecuredClient & Readonly<Record<string, unknown>>

function record(kind: keyof typeof KINDS, more: Members = {}): ClientRecord {
  const all = {
    id: 'app',
    name: 'App',
    secrets: SECRETS,
    businesses: ['ACME'],
    scopes: ['fund.read'],
    redirectUris: [],
    postLogoutRedirectUris: [],
    disabled: false,
    dpop: 'optional',
    requirePar: false,
    requirePkce: false,
    requireBinding: true,
    answerScope: 'granted',
    resource: false,
    ...KINDS[kind],
    ...more,
  }
  return all as ClientRecord
}

const known = {
  catalogue: compileCatalogue([{ name: 'fund.read', description: '', implies: [] }]),
  businesses: new Map([['ACME', {}]]),
  roles: new Map(),
  clients: new Map(),
  ...READING,
}

function compile(of: ClientRecord) {
  const problems = new Problems()
  const client = compileClient(of, known, problemsAt(problems, []))
  return {
    client,
    told: problems.list.map(({ path, severity, message }) => [severity, path.join('.'), message]),
  }
}

const FAPI2 = { profile: 'fapi2', secrets: [], jwks: [PUBLIC_KEY] } as const

const NONE: readonly string[] = []

describe('C6.1.2 how a client with keys may authenticate', () => {
  it.each([
    ['with keys alone, by them', record('partner', { secrets: [], jwks: [PUBLIC_KEY] }), ['private_key_jwt']],
    [
      'with keys at an address alone, by them',
      record('partner', { secrets: [], jwksUri: 'https://app.example/keys' }),
      ['private_key_jwt'],
    ],
    [
      'with secrets too, by them',
      record('partner', { jwks: [PUBLIC_KEY] }),
      ['client_secret_basic', 'client_secret_post'],
    ],
  ])('%s', (_, of, methods) => {
    expect(compile(of).client.authentication).toEqual(methods)
  })
})

describe('C6.1.2 the rules of a client with keys or a profile', () => {
  it.each<[string, ClientRecord, string, RegExp]>([
    [
      'a private key',
      record('partner', { jwks: [EC.privateKey.export({ format: 'jwk' }) as Jwk] }),
      'jwks.0',
      /private key/,
    ],
    ['a symmetric key', record('partner', { jwks: [{ kty: 'oct', k: 'AAAA' }] }), 'jwks.0', /symmetric/],
    ['a weak RSA key', record('partner', { jwks: [WEAK] }), 'jwks.0', /less than 2048 bits/],
    ['no key at all', record('partner', { jwks: [{ kty: 'XY' }] }), 'jwks.0', /no public key/],
    [
      'eleven keys',
      record('partner', { jwks: Array.from({ length: 11 }, () => PUBLIC_KEY) }),
      'jwks',
      /at most 10/,
    ],
    [
      'keys in two places',
      record('partner', { jwks: [PUBLIC_KEY], jwksUri: 'https://a.example/k' }),
      'jwksUri',
      /one of the two/,
    ],
    [
      'keys at http elsewhere',
      record('partner', { jwksUri: 'http://a.example/k' }),
      'jwksUri',
      /http to another machine/,
    ],
    ['keys of a public client', record('public', { jwks: [PUBLIC_KEY] }), 'jwks', /public client/],
    ['neither secret nor keys', record('partner', { secrets: [] }), 'secrets', /needs a secret, or keys/],
    [
      'a method without its keys',
      record('partner', { authentication: ['private_key_jwt'] }),
      'authentication.0',
      /needs `jwks`/,
    ],
    [
      'a method without its secret',
      record('partner', { secrets: [], jwks: [PUBLIC_KEY], authentication: ['client_secret_basic'] }),
      'authentication.0',
      /needs a secret/,
    ],
    ['requirePar of a machine', record('machine', { requirePar: true }), 'requirePar', /means nothing/],
    [
      'the password grant under FAPI 2.0',
      record('customer', { ...FAPI2 }),
      'grants',
      /contradicts `profile: fapi2`/,
    ],
    ['a secret under FAPI 2.0', record('partner', { ...FAPI2, secrets: SECRETS }), 'secrets', /remove it/],
    ['unbound tokens under FAPI 2.0', record('partner', { ...FAPI2, dpop: 'off' }), 'dpop', /DPoP/],
    [
      'RS256 under FAPI 2.0',
      record('partner', { ...FAPI2, idTokenAlgorithm: 'RS256' }),
      'idTokenAlgorithm',
      /ES256/,
    ],
    [
      'loose answers under FAPI 2.0',
      record('partner', { ...FAPI2, strictRfc6749: false }),
      'strictRfc6749',
      /RFC 6749/,
    ],
    [
      'FAPI 2.0 without keys',
      record('partner', { secrets: [], profile: 'fapi2' }),
      'profile',
      /needs the client’s keys/,
    ],
  ])('refuse %s, with its line', (_, of, path, message) => {
    const errors = compile(of).told.filter(([severity]) => severity === 'error')
    expect(errors).toEqual([['error', path, expect.stringMatching(message)]])
  })

  it('C6.1.9 make musts of what FAPI 2.0 asks', () => {
    const { client, told } = compile(record('partner', FAPI2))
    expect(told).toEqual(NONE)
    expect(client).toMatchObject({
      authentication: ['private_key_jwt'],
      dpop: 'required',
      requirePar: true,
      requirePkce: true,
      idTokenAlgorithm: 'ES256',
      strictRfc6749: true,
    })
  })

  it.each([
    ['a machine with keys', record('machine', { secrets: [], jwks: [STRONG, PUBLIC_KEY] })],
    ['keys on loopback', record('partner', { secrets: [], jwksUri: 'http://127.0.0.1:9000/keys' })],
    [
      'all methods',
      record('partner', { jwks: [PUBLIC_KEY], authentication: ['client_secret_basic', 'private_key_jwt'] }),
    ],
  ])('let pass %s', (_, of) => {
    expect(compile(of).told).toEqual(NONE)
  })

  it('warn of keys that no method uses', () => {
    expect(compile(record('partner', { jwks: [PUBLIC_KEY] })).told).toEqual([
      ['warning', 'authentication', expect.any(String)],
    ])
  })
})

it.each([
  ['requirePar', false, true, true],
  ['requirePar', true, false, false],
  ['dpop', 'optional', 'required', false],
  ['dpop', 'optional', 'off', false],
])('C12.1.7 a change of %s from %s to %s only takes away: %s', (member, before, after, expected) => {
  const { schema } = READING.clientForm
  expect(onlyLessens(viewOf(schema), { [member]: before }, { [member]: after })).toBe(expected)
})

it.each<[what: string, member: string, before: unknown, after: unknown, expected: boolean]>([
  ['demands pushed requests', 'requirePar', false, true, true],
  ['demands them no more', 'requirePar', true, false, false],
  ['takes a key away', 'jwks', [PUBLIC_KEY, STRONG], [PUBLIC_KEY], true],
  ['gives a key', 'jwks', [PUBLIC_KEY], [PUBLIC_KEY, STRONG], false],
])('C12.1.4 a reload that %s only takes away if it gives nothing', (_, member, before, after, expected) => {
  const { configuration } = SETTINGS.read(DEMO, {})
  const having = (value: unknown): Configuration => {
    const { directory } = configuration!
    const clients = { ...directory.clients, own: { ...directory.clients['ledgerline']!, [member]: value } }
    return { ...configuration!, directory: { ...directory, clients } }
  }
  expect(onlyTakesAway(SETTINGS.schema, having(before), having(after))).toBe(expected)
})
