import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadFile } from '../../../src/base/config/load.ts'
import type { Problems } from '../../../src/base/config/problems.ts'
import { section } from '../../../src/base/config/schema.ts'
import { compileCatalogue } from '../../../src/base/config/scopes/catalogue.ts'
import { compileDirectory, type Directory } from '../../../src/identity/directory/records/compile.ts'
import { Hasher, hashSecret } from '../../../src/identity/directory/hashing/hasher.ts'
import { directorySchema } from '../../../src/identity/directory/records/schema.ts'
import { findDemoSecrets } from '../../../src/operate/settings/dangers.ts'
import { READING } from '../../support/settings.ts'

const HASH = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
const SECRET = hashSecret('one-of-our-own')
const schema = section({ directory: directorySchema })
const catalogue = compileCatalogue([
  { name: 'fund.read', description: 'See', implies: ['fund.member.read'] },
  { name: 'fund.member.read', description: 'See members', implies: [] },
])

const client = {
  kind: 'customer',
  name: 'Acme Books',
  secrets: [SECRET],
  grants: ['password', 'refresh_token'],
  agreement: '2026-01-15',
  businesses: ['ACME'],
  scopes: ['openid', 'fund.read'],
}
const user = {
  subject: 'subject-of-alice',
  password: HASH,
  customers: ['acme-books'],
  access: { ACME: 'Reader' },
}
const directory = {
  businesses: {
    ACME: { name: 'Acme Advisory', funds: ['SUPER1', 'SUPER2'] },
    OPEN: { name: 'Open', funds: 'any' },
  },
  roles: { Reader: { scopes: ['fund.read'] } },
  clients: { 'acme-books': client },
  users: { alice: user },
}

interface Outcome {
  readonly problems: Problems
  readonly told: string[]
  readonly made: Directory | undefined
}

/** Through a real file, as an operator writes it (JSON is YAML). */
async function compile(
  written: object,
  files: Readonly<Record<string, string | Buffer>> = {},
): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-directory-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  await writeFile(join(folder, 'own.yaml'), JSON.stringify({ directory: written }))
  const { value, problems } = loadFile(schema, join(folder, 'own.yaml'), {})
  const made = value && (await compileDirectory(value.directory, catalogue, problems, READING))
  const told = problems.list.map(({ path, message }) => `${path.slice(1).join('.')} ${message}`)
  return { problems, told, made }
}

const withClient = (changes: object): object => ({
  ...directory,
  clients: { 'acme-books': { ...client, ...changes } },
})
const withUser = (changes: object): object => ({ ...directory, users: { alice: { ...user, ...changes } } })

describe('a directory in the configuration', () => {
  it('answers who exists', async () => {
    const { told, made } = await compile(directory)
    expect(told).toEqual([])
    expect(made?.places.findBusiness('ACME')).toEqual({
      code: 'ACME',
      name: 'Acme Advisory',
      funds: new Set(['SUPER1', 'SUPER2']),
    })
    expect(made?.places.findBusiness('OPEN')?.funds).toBe('any')
    expect(await made?.people.findClient('acme-books')).toEqual({
      id: 'acme-books',
      kind: 'customer',
      name: 'Acme Books',
      secretHashes: [SECRET],
      grants: ['password', 'refresh_token'],
      agreement: '2026-01-15',
      businesses: ['ACME'],
      scopes: ['openid', 'fund.read'],
      redirectUris: [],
      postLogoutRedirectUris: [],
      disabled: false,
      authentication: ['client_secret_basic', 'client_secret_post'],
      requirePkce: false,
      requireBinding: true,
      answerScope: 'granted',
      resource: false,
    })
    const alice = await made?.people.findUserByName('alice')
    expect(alice).toEqual({
      username: 'alice',
      subject: 'subject-of-alice',
      passwordHash: HASH,
      customers: ['acme-books'],
      disabled: false,
      locked: false,
      access: new Map([['ACME', { role: 'Reader', scopes: ['fund.read'] }]]),
      claims: {},
    })
    expect(await made?.people.findUserBySubject('subject-of-alice')).toEqual(alice)
  })

  it('C3.5 compares exactly, and knows nothing of what objects are made of', async () => {
    const { made } = await compile(directory)
    for (const name of ['acme', 'ACME ', '__proto__', 'constructor', '']) {
      expect(made?.places.findBusiness(name)).toBeUndefined()
      expect(await made?.people.findClient(name)).toBeUndefined()
      expect(await made?.people.findUserByName(name)).toBeUndefined()
    }
  })

  it('gives token lifetimes in seconds', async () => {
    const { made } = await compile(withClient({ accessTokenLifetime: '10m' }))
    expect((await made?.people.findClient('acme-books'))?.accessTokenLifetime).toBe(600)
  })

  it('may be left out whole, as a sidecar does (C11.2)', async () => {
    const { told, made } = await compile({})
    expect(told).toEqual([])
    expect(made?.places.findBusiness('ACME')).toBeUndefined()
  })
})

describe('problems are told by key path', () => {
  const partner = { kind: 'partner', grants: ['authorization_code'], redirectUris: ['https://a.example/cb'] }
  const open = { kind: 'public', secrets: [], grants: ['authorization_code'], agreement: undefined }
  it.each<[string, object, RegExp]>([
    [
      'an unknown business',
      withClient({ businesses: ['ACMEE'] }),
      /^clients\.acme-books\.businesses\.0 names no/,
    ],
    [
      'an unknown scope',
      withClient({ scopes: ['fund.reed'] }),
      /^clients\.acme-books\.scopes\.0 names no scope/,
    ],
    ['a target as scope', withClient({ scopes: ['target:b/ACME'] }), /scopes\.0 is a target/],
    ['a secret that is no hash', withClient({ secrets: ['plain-text'] }), /secrets\.0 expected a hash/],
    ['no secret', withClient({ secrets: [] }), /secrets a customer client needs/],
    ['three secrets', withClient({ secrets: [SECRET, SECRET, SECRET] }), /secrets expected at most two/],
    [
      'a public client with a secret',
      withClient({ ...open, secrets: [SECRET] }),
      /secrets a public client has no/,
    ],
    [
      'a public client with passwords',
      withClient({ ...open, grants: ['password'] }),
      /grants a public client may not/,
    ],
    [
      'a partner with passwords',
      withClient({ ...partner, grants: ['password'] }),
      /grants a partner client may not/,
    ],
    [
      'a code flow to nowhere',
      withClient({ ...partner, redirectUris: [] }),
      /redirectUris expected at least one/,
    ],
    ['a public resource', withClient({ ...open, resource: true }), /resource a public client/],
    ['no such day', withClient({ agreement: '2026-13-40' }), /agreement is not a valid date/],
    ['a life of two days', withClient({ accessTokenLifetime: '2d' }), /accessTokenLifetime expected/],
    ['a default scope beyond the own', withClient({ defaultScope: 'email' }), /defaultScope holds "email"/],
    [
      'a default target elsewhere',
      withClient({ defaultScope: 'openid target:b/OPEN' }),
      /defaultScope holds "target/,
    ],
    [
      'an unknown customer',
      withUser({ customers: ['acme-book'] }),
      /^users\.alice\.customers\.0 names no client/,
    ],
    [
      'an unknown role',
      withUser({ access: { ACME: 'Raeder' } }),
      /^users\.alice\.access\.ACME names no role/,
    ],
    ['access to no business', withUser({ access: { NOPE: 'Reader' } }), /access\.NOPE names no business/],
    ['a plain password', withUser({ password: 'alice-password' }), /^users\.alice\.password expected a hash/],
    ['a fast hash as password', withUser({ password: SECRET }), /^users\.alice\.password expected a hash/],
    ['a subject with a space', withUser({ subject: 'a b' }), /^users\.alice\.subject /],
    [
      'one subject twice',
      { ...directory, users: { alice: user, bob: user } },
      /^users\.bob\.subject also belongs to "alice"/,
    ],
    [
      'a fund twice',
      { businesses: { A: { name: 'A', funds: ['X', 'X'] } } },
      /^businesses\.A\.funds\.1 is listed twice/,
    ],
    [
      'a fund with a slash',
      { businesses: { A: { name: 'A', funds: ['X/Y'] } } },
      /^businesses\.A\.funds\.0 expected/,
    ],
    [
      'a fund that is a number',
      { businesses: { A: { name: 'A', funds: [7] } } },
      /^businesses\.A\.funds\.0 expected/,
    ],
    [
      'all funds',
      { businesses: { A: { name: 'A', funds: 'all' } } },
      /^businesses\.A\.funds expected a list/,
    ],
    ['a code of two dots', { businesses: { '..': { name: 'A', funds: 'any' } } }, /^businesses\.\.\. /],
    ['a code with a space', { businesses: { 'A B': { name: 'A', funds: 'any' } } }, /^businesses\.A B /],
    ['a client id with a colon', { clients: { 'a:b': client } }, /^clients\.a:b /],
    [
      'an unknown scope in a role',
      { roles: { R: { scopes: ['nope'] } } },
      /^roles\.R\.scopes\.0 names no scope/,
    ],
  ])('%s', async (_, written, expected) => {
    const { problems, told } = await compile(written)
    expect(problems.failed).toBe(true)
    expect(told).toContainEqual(expect.stringMatching(expected))
  })

  it('C6.1.5 only warns of a customer without agreement', async () => {
    const { problems, told } = await compile(withClient({ agreement: undefined }))
    expect(problems.failed).toBe(false)
    expect(told).toContainEqual(expect.stringMatching(/^clients\.acme-books\.agreement is missing/))
  })

  it('never shows a secret', async () => {
    const { problems } = await compile(withClient({ secrets: ['hunter2-hunter2'] }))
    expect(JSON.stringify(problems.list)).not.toContain('hunter2')
  })

  it('suggests what was meant', async () => {
    const { problems } = await compile(withUser({ access: { ACME: 'Raeder' } }))
    expect(problems.list[0]?.hint).toContain('Reader')
  })
})

describe('T6 redirect URIs', () => {
  const withUri = (uri: string, kind = 'partner'): object => ({
    ...withClient({
      kind,
      grants: ['authorization_code'],
      redirectUris: [uri],
      ...(kind === 'public' && { secrets: [] }),
    }),
    users: {},
  })

  it.each([
    'https://app.example.com/callback',
    'https://app.example.com/callback?tenant=1',
    'http://127.0.0.1:8090/callback',
    'http://127.0.0.1/callback',
    'http://[::1]/callback',
    'http://localhost:3000/',
  ])('may be %s', async (uri) => {
    expect((await compile(withUri(uri))).told).toEqual([])
  })

  it.each([
    '/callback',
    'app.example.com/callback',
    'https://app.example.com/callback#x',
    'https://app.example.com/#',
    'http://app.example.com/callback',
    'http://127.0.0.1.evil.example/callback',
    'https://user:secret@app.example.com/',
    'https://*.example.com/callback',
    'https://app.example.com\\@evil.example/',
    'https://app.example.com/a b',
    'https://app.example.com/\tx',
    'javascript:alert(1)',
    'data:text/html,x',
    'com.example.app:/callback',
    '',
  ])('may not be %j', async (uri) => {
    const { told } = await compile(withUri(uri))
    expect(told).toContainEqual(expect.stringMatching(/redirectUris\.0 /))
  })

  it('may have the own scheme of an app, for a public client only (RFC 8252 §7.1)', async () => {
    expect((await compile(withUri('com.example.app:/callback', 'public'))).told).toEqual([])
    expect((await compile(withUri('myapp:/callback', 'public'))).told).not.toEqual([])
  })
})

describe('a directory in JSON Lines', () => {
  const lines = (...records: object[]): string => records.map((record) => JSON.stringify(record)).join('\n')
  const bob = { username: 'bob', ...user, subject: 'subject-of-bob' }
  const here = { ...directory, files: { users: 'users.jsonl' } }

  it('adds to what stands inline, and is the same as inline', async () => {
    const { told, made } = await compile(here, { 'users.jsonl': `${lines(bob)}\r\n\n` })
    expect(told).toEqual([])
    const [alice, other] = [
      await made?.people.findUserByName('alice'),
      await made?.people.findUserByName('bob'),
    ]
    expect(other).toEqual({ ...alice, username: 'bob', subject: 'subject-of-bob' })
  })

  it('holds businesses and clients too', async () => {
    const { made, told } = await compile(
      { roles: directory.roles, files: { businesses: 'b.jsonl', clients: 'c.jsonl', users: 'u.jsonl' } },
      {
        'b.jsonl': lines({ code: 'ACME', ...directory.businesses.ACME }),
        'c.jsonl': lines({ id: 'acme-books', ...client, accessTokenLifetime: '5m' }),
        'u.jsonl': lines(bob),
      },
    )
    expect(told).toEqual([])
    expect((await made?.people.findClient('acme-books'))?.accessTokenLifetime).toBe(300)
    expect(made?.places.findBusiness('ACME')?.funds).toEqual(new Set(['SUPER1', 'SUPER2']))
  })

  it.each<[string, string, RegExp]>([
    ['no JSON', '{"username": hunter2', /^files\.users is not JSON/],
    ['no object', '[]', /^files\.users /],
    [
      'thousands of levels',
      `{"claims":${'['.repeat(5000)}${']'.repeat(5000)}}`,
      /^files\.users is nested too deep/,
    ],
    [
      'a user who stands inline too',
      lines({ ...bob, username: 'alice' }),
      /^files\.users\.username occurs twice/,
    ],
    [
      'a subject that stands inline too',
      lines({ ...bob, subject: user.subject }),
      /^files\.users\.subject also belongs to/,
    ],
    ['an unknown key', lines({ ...bob, pasword: 'x' }), /^files\.users\.pasword is not a known key/],
    ['a missing key', lines({ ...bob, subject: undefined }), /^files\.users\.subject is missing/],
    ['a wrong type', lines({ ...bob, disabled: 'yes' }), /^files\.users\.disabled /],
    [
      'an unknown role',
      lines({ ...bob, access: { ACME: 'Nobody' } }),
      /^files\.users\.access\.ACME names no role/,
    ],
  ])('tells the line of %s', async (_, text, expected) => {
    const { problems, told } = await compile(here, { 'users.jsonl': `\n${text}\n` })
    expect(told).toContainEqual(expect.stringMatching(expected))
    const [problem] = problems.list
    expect(problem && problems.placeOf(problem)).toMatchObject({ line: 2 })
    expect(JSON.stringify(problems.list)).not.toContain('hunter2')
  })

  it('C11.6.1 makes no problem of what refers to a record that could not be read', async () => {
    const { told } = await compile(
      { ...directory, clients: {}, files: { clients: 'clients.jsonl' } },
      { 'clients.jsonl': lines({ id: 'acme-books', ...client, agreemnt: 1 }) },
    )
    expect(told).toEqual([expect.stringMatching(/^files\.clients\.agreemnt is not a known key/)])
  })

  it('C11.6.1 suggests the scope value that a default scope probably means', async () => {
    const { problems } = await compile(withClient({ defaultScope: 'fund.raed' }))
    expect(problems.list.map(({ hint }) => hint)).toEqual(['did you mean "fund.read"?'])
  })

  it('tells twenty problems of a file and how many more there are', async () => {
    const { told } = await compile(here, { 'users.jsonl': '{}x\n'.repeat(100) })
    expect(told).toHaveLength(21)
    expect(told[20]).toBe('files.users has 80 more problems')
  })

  it('tells of a file that cannot be read or is no UTF-8', async () => {
    const foreign = Buffer.from('{"username":"\xfc"}', 'latin1')
    for (const files of [{}, { 'users.jsonl': foreign }])
      expect((await compile(here, files)).told).toContainEqual(
        expect.stringMatching(/^files\.users cannot be read/),
      )
  })

  it('reads characters that stand across chunks', async () => {
    const many = Array.from({ length: 2000 }, (_, i) => ({
      ...bob,
      username: `ünïcode-${i}`,
      subject: `s-${i}`,
      claims: { name: '名前'.repeat(50) },
    }))
    const { told, made } = await compile(here, { 'users.jsonl': lines(...many) })
    expect(told).toEqual([])
    expect(made?.users.size).toBe(2001)
    expect((await made?.people.findUserByName('ünïcode-1999'))?.claims.name).toBe('名前'.repeat(50))
  })
})

describe('T7 demo secrets', () => {
  it('C10 are found however they are hashed, and under whatever name a client has', async () => {
    const hasher = new Hasher()
    const { made } = await compile({
      ...directory,
      clients: {
        'acme-books': { ...client, secrets: [await hasher.hash('acme-books-secret')] },
        renamed: { ...client, secrets: [hashSecret('ledgerline-secret')] },
        own: client,
      },
      users: {
        alice: { ...user, password: await hasher.hash('alice-password') },
        bob: { ...user, subject: 'b' },
      },
    })
    expect(made && (await findDemoSecrets(made, hasher))).toEqual([
      'client renamed',
      'client acme-books',
      'user alice',
    ])
  })
})
