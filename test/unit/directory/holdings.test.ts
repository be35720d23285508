import { describe, expect, it } from 'vitest'
import { Report } from '../../../src/config/report.ts'
import { compileDirectory } from '../../../src/directory/compile.ts'
import type { DirectoryConfig } from '../../../src/directory/config.ts'
import { holdingsOf, type Holdings, lossesBetween } from '../../../src/directory/holdings.ts'
import { compileCatalogue } from '../../../src/scopes/catalogue.ts'

const HASH = 'sha256:LrS2csIIenKerBXhR_QzSOAnV-FAjLrko9uDiwaZEYQ'
const PASSWORD =
  '$argon2id$v=19$m=19456,t=2,p=1$ONkPwx0e0TE+rLENpK9ssg$OjB8Q/llxpQX5ZPdg/d3WkrQivUVr9DkS90gzdW84vs'

const OTHER_PASSWORD = PASSWORD.replace('ONkPwx0e', 'OTHERx0e')

const client = (businesses: readonly string[], more: object = {}) => ({
  kind: 'customer' as const,
  name: 'A client',
  secrets: [HASH],
  grants: ['password' as const],
  agreement: '2026-01-15',
  businesses,
  scopes: ['openid'],
  redirectUris: [],
  postLogoutRedirectUris: [],
  disabled: false,
  secretPost: false,
  requirePkce: false,
  resource: false,
  ...more,
})

const user = (subject: string, access: Readonly<Record<string, string>>, more: object = {}) => ({
  subject,
  password: PASSWORD,
  customers: ['books'],
  disabled: false,
  locked: false,
  access,
  claims: {},
  ...more,
})

const business = { name: 'A business', funds: 'any' as const }

interface Changes {
  readonly businesses?: Readonly<Record<string, typeof business>>
  readonly clients?: Readonly<Record<string, ReturnType<typeof client>>>
  readonly users?: Readonly<Record<string, ReturnType<typeof user>>>
}

const WORLD = {
  businesses: { ACME: business, GLOBEX: business },
  clients: { books: client(['ACME', 'GLOBEX']), ledger: client(['ACME']) },
  users: {
    alice: user('sub-alice', { ACME: 'Reader', GLOBEX: 'Reader' }),
    bob: user('sub-bob', { ACME: 'Reader' }),
  },
}

async function compile(changes: Changes = {}): Promise<Holdings> {
  const config: DirectoryConfig = {
    ...WORLD,
    ...changes,
    roles: { Reader: { scopes: ['openid'] }, Other: { scopes: [] } },
    files: {},
  }
  return holdingsOf(await compileDirectory(config, compileCatalogue([]), new Report()))
}

const { alice, bob } = WORLD.users
const { books, ledger } = WORLD.clients

describe('C6.1.7 a directory that takes another’s place revokes', () => {
  it.each<[string, Changes, readonly object[]]>([
    ['nothing where nothing changed', {}, []],
    ['nothing where someone is added', { users: { ...WORLD.users, carol: user('sub-carol', {}) } }, []],
    [
      'nothing where a role changes',
      { users: { alice: { ...alice, access: { ACME: 'Other', GLOBEX: 'Reader' } }, bob } },
      [],
    ],
    [
      'C6.3.5 a user who is locked',
      { users: { alice: { ...alice, locked: true }, bob } },
      [{ subject: 'sub-alice' }],
    ],
    [
      'a user who has another password',
      { users: { alice: { ...alice, password: OTHER_PASSWORD }, bob } },
      [{ subject: 'sub-alice' }],
    ],
    [
      'a subject that is given to somebody else',
      { users: { eve: { ...alice, password: OTHER_PASSWORD }, bob } },
      [{ subject: 'sub-alice' }],
    ],
    ['nothing where a user name changes', { users: { alicia: alice, bob } }, []],
    ['a user who is removed', { users: { bob } }, [{ subject: 'sub-alice' }]],
    [
      'a user who is disabled',
      { users: { alice: { ...alice, disabled: true }, bob } },
      [{ subject: 'sub-alice' }],
    ],
    [
      'a user whose subject is another',
      { users: { alice: user('sub-new', alice.access), bob } },
      [{ subject: 'sub-alice' }],
    ],
    [
      'a business of a user',
      { users: { alice: user('sub-alice', { ACME: 'Reader' }), bob } },
      [{ subject: 'sub-alice', business: 'GLOBEX' }],
    ],
    [
      'a user of a customer',
      { users: { alice: user('sub-alice', alice.access, { customers: [] }), bob } },
      [{ client: 'books', subject: 'sub-alice' }],
    ],
    ['a client that is removed', { clients: { books } }, [{ client: 'ledger' }]],
    [
      'a client that is disabled',
      { clients: { books, ledger: client(['ACME'], { disabled: true }) } },
      [{ client: 'ledger' }],
    ],
    [
      'a business of a client',
      { clients: { books: client(['GLOBEX']), ledger } },
      [{ client: 'books', business: 'ACME' }],
    ],
    [
      'a business that is gone altogether',
      {
        businesses: { ACME: business },
        clients: { books: client(['ACME']), ledger },
        users: { alice: user('sub-alice', { ACME: 'Reader' }), bob },
      },
      [
        { business: 'GLOBEX' },
        { client: 'books', business: 'GLOBEX' },
        { subject: 'sub-alice', business: 'GLOBEX' },
      ],
    ],
  ])('%s', async (_, changes, rules) => {
    expect(lossesBetween(await compile(), await compile(changes)).map(({ tokens }) => tokens)).toEqual(rules)
  })

  it('nothing of what was disabled before', async () => {
    const before = { users: { alice: { ...alice, disabled: true }, bob }, clients: { books, ledger } }
    const after = { users: { alice: { ...alice, disabled: true, access: {} }, bob } }
    expect(lossesBetween(await compile(before), await compile(after))).toEqual([])
  })

  it('consents too of who is removed or whose subject is somebody else’s, and of nobody else', async () => {
    const removed = await compile({ users: { bob }, clients: { books } })
    expect(lossesBetween(await compile(), removed)).toEqual([
      { tokens: { client: 'ledger' }, consents: true },
      { tokens: { subject: 'sub-alice' }, consents: true },
    ])
    const given = await compile({ users: { eve: { ...alice, password: OTHER_PASSWORD }, bob } })
    expect(lossesBetween(await compile(), given)).toMatchObject([{ consents: true }])
    const locked = await compile({ users: { alice: { ...alice, locked: true }, bob } })
    expect(lossesBetween(await compile(), locked)).toMatchObject([{ consents: false }])
  })
})
