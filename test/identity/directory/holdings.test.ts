import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { compileCatalogue } from '../../../src/base/config/scopes/catalogue.ts'
import { compileDirectory } from '../../../src/identity/directory/records/compile.ts'
import { type Holdings, holdingsOf, lossesBetween } from '../../../src/identity/directory/records/holdings.ts'
import type { DirectoryConfig } from '../../../src/identity/directory/records/schema.ts'
import { READING } from '../../support/settings.ts'

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
  dpop: 'optional' as const,
  requirePkce: false,
  requireBinding: true,
  answerScope: 'granted' as const,
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

const business = { name: 'A business', funds: ['F1', 'F2'] }

interface Changes {
  readonly businesses?: Readonly<Record<string, typeof business>>
  readonly clients?: Readonly<Record<string, ReturnType<typeof client>>>
  readonly users?: Readonly<Record<string, ReturnType<typeof user>>>
  readonly roles?: Readonly<Record<string, { readonly scopes: readonly string[] }>>
  /** What each scope value implies. */
  readonly implied?: Readonly<Record<string, readonly string[]>>
}

const WORLD = {
  businesses: { ACME: business, GLOBEX: business },
  clients: { books: client(['ACME', 'GLOBEX']), ledger: client(['ACME']) },
  users: {
    alice: user('sub-alice', { ACME: 'Reader', GLOBEX: 'Reader' }),
    bob: user('sub-bob', { ACME: 'Reader' }),
  },
}

const ROLES = { Reader: { scopes: ['see'] }, Other: { scopes: [] }, Editor: { scopes: ['change'] } }
const IMPLIED = { see: [], change: ['see'], other: [] }

async function compile({ implied = IMPLIED, ...changes }: Changes = {}): Promise<Holdings> {
  const config: DirectoryConfig = { ...WORLD, roles: ROLES, ...changes, files: {} }
  const scopes = Object.entries(implied).map(([name, implies]) => ({ name, description: '', implies }))
  const catalogue = compileCatalogue(scopes)
  return holdingsOf(await compileDirectory(config, catalogue, new Problems(), READING), catalogue)
}

const { alice, bob } = WORLD.users
const { books, ledger } = WORLD.clients

describe('C6.1.7 C6.3.6 a directory that takes another’s place revokes', () => {
  it.each<[string, Changes, readonly object[]]>([
    ['nothing where nothing changed', {}, []],
    ['nothing where someone is added', { users: { ...WORLD.users, carol: user('sub-carol', {}) } }, []],
    [
      'C6.3.6 what the role of a user gave at a business, and another one does not',
      { users: { alice: { ...alice, access: { ACME: 'Other', GLOBEX: 'Reader' } }, bob } },
      [{ subject: 'sub-alice', business: 'ACME', scope: 'see' }],
    ],
    [
      'nothing where a user gets a role that gives the same and more',
      { users: { alice: { ...alice, access: { ACME: 'Editor', GLOBEX: 'Reader' } }, bob } },
      [],
    ],
    [
      'C6.3.6 what a role gives no more, with what that implied',
      { roles: { ...ROLES, Editor: { scopes: ['other'] } } },
      [
        { role: 'Editor', scope: 'change' },
        { role: 'Editor', scope: 'see' },
      ],
    ],
    [
      'C6.3.6 of a role that lost a value only this one, where another still implies the rest',
      { roles: { ...ROLES, Editor: { scopes: ['see'] } } },
      [{ role: 'Editor', scope: 'change' }],
    ],
    ['nothing where a role gives more', { roles: { ...ROLES, Other: { scopes: ['change'] } } }, []],
    [
      'C6.3.6 a role that is gone',
      { roles: { Reader: ROLES.Reader, Other: ROLES.Other } },
      [{ role: 'Editor' }],
    ],
    [
      'C6.3.6 scope values of a client',
      { clients: { books, ledger: client(['ACME'], { scopes: [] }) } },
      [{ client: 'ledger', scope: 'openid' }],
    ],
    [
      'C6.3.6 a value that another one implies no more, for everybody',
      { implied: { ...IMPLIED, change: [] } },
      [{ scope: 'see' }],
    ],
    [
      'C6.3.6 a value that is gone, for everybody, and for nobody once more',
      {
        implied: { see: [], other: [] },
        roles: { ...ROLES, Editor: { scopes: ['other'] } },
      },
      [{ scope: 'change' }, { scope: 'see' }],
    ],
    ['nothing where there are more scope values', { implied: { ...IMPLIED, more: ['see'] } }, []],
    [
      'C6.3.6 a fund that is listed no more, and no other',
      { businesses: { ACME: { ...business, funds: ['F1'] }, GLOBEX: business } },
      [{ business: 'ACME', fund: 'F2' }],
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
    const before = await compile()
    expect(lossesBetween(before, await compile(changes)).map(({ tokens }) => tokens)).toEqual(rules)
    expect(lossesBetween(before, before)).toEqual([])
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
