import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { compileCatalogue } from '../../../src/base/config/scopes/catalogue.ts'
import { compileClient, toClient } from '../../../src/identity/directory/records/client-rules.ts'
import { problemsAt } from '../../../src/identity/directory/records/read-records.ts'
import { readStoredClient } from '../../../src/identity/directory/records/stored-directory.ts'
import { type ClientRecord, CORE_FORM } from '../../../src/identity/directory/records/schema.ts'
import { READING } from '../../support/settings.ts'

const SECRETS = [`sha256:${'A'.repeat(43)}`]

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

function record(kind: keyof typeof KINDS, more: Partial<ClientRecord> = {}): ClientRecord {
  return {
    id: 'app',
    name: 'App',
    secrets: SECRETS,
    businesses: ['ACME'],
    scopes: ['fund.read'],
    redirectUris: [],
    postLogoutRedirectUris: [],
    disabled: false,
    requirePkce: false,
    requireBinding: true,
    answerScope: 'granted',
    resource: false,
    ...KINDS[kind],
    ...more,
  }
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

const NONE: readonly string[] = []

describe('C6.1.2 how a client may authenticate', () => {
  it.each([
    ['with secrets, in the header and in the body', record('partner'), ['basic', 'post']],
    ['as it is written', record('partner', { authentication: ['client_secret_post'] }), ['post']],
    ['public, by nothing', record('public'), ['none']],
    [
      'with the retired secretPost: false, in the header',
      record('partner', { secretPost: false }),
      ['basic'],
    ],
    [
      'with the retired secretPost: true, in both',
      record('partner', { secretPost: true }),
      ['basic', 'post'],
    ],
  ])('%s', (_, of, methods) => {
    const short = compile(of).client.authentication.map((method) => method.replace(/^client_secret_/, ''))
    expect(short).toEqual(methods)
  })

  it('of a client that was stored with secretPost: false, which nobody may have chosen, are both', () => {
    const { record: read } = readStoredClient({
      record: { ...record('partner'), secretPost: false },
      ends: {},
    })
    expect(compile(read).client.authentication).toEqual(['client_secret_basic', 'client_secret_post'])
  })

  it('warns of secretPost, and names what to write', () => {
    const { told } = compile(record('partner', { secretPost: false }))
    expect(told).toEqual([
      ['warning', 'secretPost', 'is retired: write `authentication: [client_secret_basic]`'],
    ])
  })
})

describe('C6.1.2 the rules of a client', () => {
  it.each<[string, ClientRecord, string, RegExp]>([
    ['no secret', record('partner', { secrets: [] }), 'secrets', /needs a secret/],
    [
      'methods of a public client',
      record('public', { authentication: ['client_secret_basic'] }),
      'authentication',
      /nothing to authenticate/,
    ],
    [
      'secretPost beside authentication',
      record('partner', { secretPost: true, authentication: ['client_secret_post'] }),
      'secretPost',
      /stands beside/,
    ],
    [
      'another grant of a machine',
      record('machine', { grants: ['client_credentials', 'refresh_token'] }),
      'grants.1',
      /alone/,
    ],
    [
      'client_credentials of another kind',
      record('partner', { grants: ['authorization_code', 'client_credentials'] }),
      'grants',
      /only machines/,
    ],
    [
      'a person’s scope of a machine',
      record('machine', { scopes: ['fund.read', 'openid'] }),
      'scopes.1',
      /about a person/,
    ],
    [
      'offline_access of a machine',
      record('machine', { scopes: ['offline_access'] }),
      'scopes.0',
      /about a person/,
    ],
    [
      'redirects of a machine',
      record('machine', { redirectUris: ['https://a.example/cb'] }),
      'redirectUris',
      /no browser/,
    ],
    [
      'an agreement of a machine',
      record('machine', { agreement: '2026-01-15' }),
      'agreement',
      /means nothing/,
    ],
    [
      'unbound codes of a public client',
      record('public', { requireBinding: false }),
      'requireBinding',
      /always needs PKCE/,
    ],
    [
      'unbound codes beside requirePkce',
      record('partner', { requireBinding: false, requirePkce: true }),
      'requireBinding',
      /one of the two/,
    ],
  ])('refuse %s, with its line', (_, of, path, message) => {
    const errors = compile(of).told.filter(([severity]) => severity === 'error')
    expect(errors).toEqual([['error', path, expect.stringMatching(message)]])
  })

  it.each([
    ['a machine', record('machine')],
    ['all methods', record('partner', { authentication: ['client_secret_basic', 'client_secret_post'] })],
  ])('let pass %s', (_, of) => {
    expect(compile(of).told).toEqual(NONE)
  })

  it.each([
    ['unbound codes', record('partner', { requireBinding: false }), 'requireBinding'],
    ['a machine without a business', record('machine', { businesses: [] }), 'businesses'],
  ])('warn of %s', (_, of, path) => {
    expect(compile(of).told).toEqual([['warning', path, expect.any(String)]])
  })
})

describe('C6.3.5 a client of the store whose record demands what no extension here knows', () => {
  const clientOf = (more: object) => toClient({ ...record('partner'), ...more }, CORE_FORM)

  it.each([
    { dpop: 'required' },
    { requirePar: true },
    { profile: 'fapi2' },
    { authentication: ['client_secret_basic', 'private_key_jwt'] },
  ])('may hold nothing: %j', (more) => {
    expect(clientOf(more).disabled).toBe(true)
  })

  it.each([{ dpop: 'optional' }, { dpop: 'off' }, { requirePar: false }, { jwksUri: 'https://a.example' }])(
    'is as any other where it demands nothing: %j',
    (more) => {
      expect(clientOf(more).disabled).toBe(false)
    },
  )
})
