import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'ldapts'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import createLdapPeople from '../../../config/examples/ldap-people.ts'
import createSqlPeople from '../../../config/examples/sql-people.ts'
import type { PeopleModule } from '../../../src/base/contracts/people/people-module.ts'
import { makeFolder } from '../../support/recipes/files.ts'
import { readPage } from '../../support/recipes/page.ts'
import type { StartedProgram } from '../../support/recipes/programs.ts'
import { freePort } from '../../support/free-port.ts'
import { ENTRIES, startSlapd } from '../../support/recipes/slapd.ts'
import { needing } from '../../support/machine.ts'

/** C5.7: the examples of people that live elsewhere, asked what only an attacker or a mishap asks. */

const CALL = { signal: new AbortController().signal }

/** A word that stands for many things in filters, DNs and statements. */
const INJECTIONS = [
  ...['*', 'd*', '*)(uid=*', 'dora)(|(uid=*', '\\2a', 'dora\\00', 'uid=dora,ou=people,dc=example,dc=com'],
  ...["' or '1'='1", "dora' --", 'dora"; drop table users', '%', '_ora'],
]

describe('C5.7 the example of users in SQL', () => {
  const folder = makeFolder()
  let database: DatabaseSync
  let people: PeopleModule
  const DORA = '9f1c6f0e-8d2b-4c55-a0a4-3c9d1f7b2e61'

  beforeAll(async () => {
    const file = join(folder.path, 'people.db')
    database = new DatabaseSync(file)
    database.exec(readPage('users-in-sql').files.get('users.sql') ?? '')
    people = await createSqlPeople({ database: file })
  })
  afterAll(async () => {
    await people.close?.()
    database.close()
    folder.remove()
  })

  const right = async (subject: string, password: string): Promise<boolean> => {
    const user = await people.findUserBySubject(subject, CALL)
    return people.verifyPassword(user ?? undefined, password, CALL)
  }

  it.each(INJECTIONS)('C5.7 T3.14 finds nobody by %j', async (name) => {
    expect(await people.findUserByName(name, CALL)).toBeUndefined()
    expect(await people.findUserBySubject(name, CALL)).toBeUndefined()
  })

  it('C5.7 takes the right password by either hash, and no other', async () => {
    const erin = (await people.findUserByName('erin', CALL))?.subject ?? ''
    for (const [subject, password] of [
      [DORA, 'dora-password'],
      [erin, 'erin-password'],
    ] as const) {
      expect(await right(subject, password)).toBe(true)
      for (const wrong of ['', ' ', 'x', `${password} `, password.toUpperCase()])
        expect(await right(subject, wrong)).toBe(false)
    }
  })

  it('C5.7 T3.9 compares for nobody too, and lets nobody in by it', async () => {
    for (const password of ['', 'x', 'dora-password'])
      expect(await people.verifyPassword(undefined, password, CALL)).toBe(false)
  })

  it.each([
    ['cut short', 'pbkdf2_sha256$600000$salt$'],
    ['of no iterations', 'pbkdf2_sha256$$salt$SOIdVzHP6VP6ZAMkLO7shFHhIMCVfoWfMDBIdBlC4hI='],
    ['of an unknown digest', 'pbkdf2_nothing$1$salt$SOIdVzHP6VP6ZAMkLO7shFHhIMCVfoWfMDBIdBlC4hI='],
    ['of another kind', 'md5$5f4dcc3b5aa765d61d8327deb882cf99'],
    ['empty', ''],
  ])('C5.7 throws, and tells no hash, where one is %s', async (_, hash) => {
    database
      .prepare('insert or replace into users values (?, ?, ?, null, 1, null, null)')
      .run('bad', 'bad', hash)
    const failed: unknown = await right('bad', 'x').catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(Error)
    expect(String(failed)).not.toMatch(/SOIdV|5f4dcc/)
  })

  it('C5.7 takes no password by a bcrypt hash that is cut short', async () => {
    const hash = '$2b$10$UYpPgsVh/RWdBFsdG694E'
    database
      .prepare('insert or replace into users values (?, ?, ?, null, 1, null, null)')
      .run('cut', 'cut', hash)
    expect(await right('cut', 'dora-password')).toBe(false)
  })
})

/** A referral to another server: who follows it would send the name, and perhaps the password, there. */
const referral = (port: number): string => `dn: ou=elsewhere,ou=people,dc=example,dc=com
objectClass: referral
objectClass: extensibleObject
ou: elsewhere
ref: ldap://127.0.0.1:${port}/ou=people,dc=example,dc=com??sub
`
const TWINS = ['one', 'two'].map(
  (ou) => `dn: uid=twin,ou=${ou},ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: twin
cn: Twin
sn: ${ou}
userPassword: twin-password
`,
)
const UNITS = ['one', 'two'].map(
  (ou) => `dn: ou=${ou},ou=people,dc=example,dc=com\nobjectClass: organizationalUnit\nou: ${ou}\n`,
)

describe('C5.7 the example of users in LDAP', needing('slapd', 'openssl'), () => {
  const folder = makeFolder()
  const elsewhere = createServer()
  let connections = 0
  let slapd: StartedProgram
  let people: PeopleModule
  let url: string
  const options = () => ({
    ...{ url, authority: join(folder.path, 'authority.pem') },
    reader: { dn: 'cn=postern,dc=example,dc=com', passwordFrom: 'TEST_LDAP_PASSWORD' },
    ...{ people: 'ou=people,dc=example,dc=com', groups: 'ou=groups,dc=example,dc=com' },
    nobody: 'cn=nobody,dc=example,dc=com',
  })

  beforeAll(async () => {
    elsewhere.on('connection', (socket) => {
      connections += 1
      socket.destroy()
    })
    await once(elsewhere.listen(0, '127.0.0.1'), 'listening')
    const { port: other } = elsewhere.address() as AddressInfo
    const port = await freePort()
    url = `ldaps://127.0.0.1:${port}`
    const entries = [...ENTRIES, referral(other), ...UNITS, ...TWINS]
    slapd = await startSlapd({ certificates: folder.path, port, entries })
    process.env['TEST_LDAP_PASSWORD'] = 'reader-password'
    people = await createLdapPeople(options())
    delete process.env['TEST_LDAP_PASSWORD']
  })
  afterAll(async () => {
    await slapd.stop()
    elsewhere.close()
    folder.remove()
  })

  const find = (name: string) => people.findUserByName(name, CALL)

  it('C5.7 finds a person with the roles that groups give, and not by referral', async () => {
    const dora = await find('dora')
    expect(dora).toMatchObject({
      ...{ username: 'dora', customers: ['acme-books'], access: { ACME: 'Administrator' }, disabled: false },
    })
    expect(dora?.subject).toMatch(/^[0-9a-f-]{36}$/)
    expect(await people.findUserBySubject(dora?.subject ?? '', CALL)).toEqual(dora)
    expect(await find('frank')).toMatchObject({ disabled: true })
    expect(connections).toBe(0)
  })

  it.each(INJECTIONS)('C5.7 T3.14 finds nobody by %j, which is a value and no filter', async (name) => {
    expect(await find(name)).toBeUndefined()
    expect(await people.findUserBySubject(name, CALL)).toBeUndefined()
  })

  it('C5.7 takes the right password, and no other', async () => {
    const dora = (await find('dora')) ?? undefined
    expect(await people.verifyPassword(dora, 'dora-password', CALL)).toBe(true)
    for (const wrong of ['x', 'dora-password ', 'DORA-PASSWORD', '*', 'reader-password'])
      expect(await people.verifyPassword(dora, wrong, CALL)).toBe(false)
  })

  it('C5.7 T3.14 takes no empty password, though the server says that such a bind succeeds', async () => {
    const client = new Client({ url, tlsOptions: { ca: readFileSync(join(folder.path, 'authority.pem')) } })
    onTestFinished(() => client.unbind())
    await client.bind('uid=dora,ou=people,dc=example,dc=com', '')
    const dora = (await find('dora')) ?? undefined
    expect(await people.verifyPassword(dora, '', CALL)).toBe(false)
    expect(await people.verifyPassword(undefined, '', CALL)).toBe(false)
  })

  it('C5.7 T3.9 tries the entry of nobody for nobody, and lets nobody in by it', async () => {
    for (const password of ['x', 'a-password-that-nobody-was-told'])
      expect(await people.verifyPassword(undefined, password, CALL)).toBe(false)
    const gone = { subject: '11111111-2222-3333-4444-555555555555', username: 'gone' }
    expect(await people.verifyPassword(gone, 'a-password-that-nobody-was-told', CALL)).toBe(false)
  })

  it('C5.7 throws where two entries have one name: it does not guess', async () => {
    await expect(find('twin')).rejects.toThrow('several entries')
  })

  it('C5.7 throws where the server cannot be reached, or is not trusted', async () => {
    process.env['TEST_LDAP_PASSWORD'] = 'reader-password'
    onTestFinished(() => {
      delete process.env['TEST_LDAP_PASSWORD']
    })
    const closed = await createLdapPeople({ ...options(), url: `ldaps://127.0.0.1:${await freePort()}` })
    await expect(closed.findUserByName('dora', CALL)).rejects.toThrow()
    const { authority, ...withoutAuthority } = options()
    expect(authority).toContain('authority.pem')
    const untrusting = await createLdapPeople(withoutAuthority)
    await expect(untrusting.findUserByName('dora', CALL)).rejects.toThrow(/certificate/)
  })

  it('C5.7 is not made without TLS, or without the reader’s password', async () => {
    const make = async (more: object): Promise<unknown> => createLdapPeople({ ...options(), ...more })
    await expect(make({})).rejects.toThrow('TEST_LDAP_PASSWORD is not set')
    await expect(make({ url: 'ldap://127.0.0.1:389' })).rejects.toThrow('ldaps://')
  })
})
