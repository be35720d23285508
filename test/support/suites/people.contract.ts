import { describe, expect, it } from 'vitest'
import type { People } from '../../../src/base/contracts/people/people.ts'
import { hashSecret } from '../../../src/identity/directory/hashing/hasher.ts'
import { HASH } from '../directory.ts'

/** Records as in a configuration, by id and by user name. */
export interface WrittenPeople {
  readonly clients: Readonly<Record<string, object>>
  readonly users: Readonly<Record<string, object>>
}

export interface PeopleUnderTest {
  readonly name: string
  /** Over the places of test/support/directory.ts. */
  open(written: WrittenPeople): Promise<People>
}

const SECRET = hashSecret('one-of-our-own')

const WRITTEN: WrittenPeople = {
  clients: {
    'acme-books': {
      ...{ kind: 'customer', name: 'Acme Books', secrets: [SECRET], grants: ['password'] },
      ...{ agreement: '2026-01-15', businesses: ['ACME'], scopes: ['openid', 'fund.read'] },
      accessTokenLifetime: '10m',
    },
    pocket: {
      ...{ kind: 'public', name: 'Pocket', grants: ['authorization_code'], scopes: ['openid'] },
      ...{ redirectUris: ['http://127.0.0.1/callback'], requirePkce: true, disabled: true },
    },
  },
  users: {
    alice: {
      ...{ subject: 'subject-of-alice', password: HASH, customers: ['acme-books'] },
      ...{ access: { ACME: 'Reader' }, claims: { name: 'Alice', address: { locality: 'Sydney' } } },
    },
    'Bob O’Neill ✓': { subject: 'subject-of-bob', password: HASH, disabled: true, locked: true },
  },
}

/** Names that nobody has. */
const STRANGERS = ['', 'nobody', 'ACME-BOOKS', 'Alice', 'alice ', 'alice\0', '__proto__', 'constructor', '%']

/** What every directory must answer. */
export function describePeople(subject: PeopleUnderTest): void {
  describeClients(subject)
  describeUsers(subject, HASH)
}

function describeClients(subject: PeopleUnderTest): void {
  const opened = () => subject.open(WRITTEN)

  describe(`${subject.name}: clients`, () => {
    it('answers a client as it was written, defaults filled in, times in seconds', async () => {
      expect(await (await opened()).findClient('acme-books')).toEqual({
        id: 'acme-books',
        kind: 'customer',
        name: 'Acme Books',
        secretHashes: [SECRET],
        grants: ['password'],
        agreement: '2026-01-15',
        businesses: ['ACME'],
        scopes: ['openid', 'fund.read'],
        redirectUris: [],
        postLogoutRedirectUris: [],
        disabled: false,
        accessTokenLifetime: 600,
        authentication: ['client_secret_basic', 'client_secret_post'],
        requirePkce: false,
        requireBinding: true,
        answerScope: 'granted',
        resource: false,
      })
    })

    it('answers clients without a secret, and disabled ones', async () => {
      expect(await (await opened()).findClient('pocket')).toMatchObject({
        ...{ kind: 'public', secretHashes: [], requirePkce: true, disabled: true },
      })
    })

    it.each(STRANGERS)('knows no client by %j: keys compare exactly', async (key) => {
      expect(await (await opened()).findClient(key)).toBeUndefined()
    })

    it('answers the same, asked again and all at once', async () => {
      const people = await opened()
      const first = await people.findClient('acme-books')
      const again = await Promise.all(Array.from({ length: 50 }, () => people.findClient('acme-books')))
      for (const found of again) expect(found).toEqual(first)
    })
  })
}

/**
 * What every directory must answer of users.
 * @param passwordHash of all of them: undefined where Postern does not have it
 */
export function describeUsers(subject: PeopleUnderTest, passwordHash: string | undefined): void {
  const opened = () => subject.open(WRITTEN)

  describe(`${subject.name}: users`, () => {
    it('answers a user by name and by subject, the roles resolved', async () => {
      const people = await opened()
      const alice = await people.findUserByName('alice')
      expect(alice).toEqual({
        subject: 'subject-of-alice',
        username: 'alice',
        passwordHash,
        customers: ['acme-books'],
        disabled: false,
        locked: false,
        access: new Map([['ACME', { role: 'Reader', scopes: ['fund.read'] }]]),
        claims: { name: 'Alice', address: { locality: 'Sydney' } },
      })
      expect(await people.findUserBySubject('subject-of-alice')).toEqual(alice)
    })

    it('answers users whatever letters their names have, disabled and locked ones too', async () => {
      const people = await opened()
      const found = await people.findUserByName('Bob O’Neill ✓')
      expect(found).toMatchObject({ subject: 'subject-of-bob', disabled: true, locked: true })
      expect(await people.findUserBySubject('subject-of-bob')).toEqual(found)
    })

    it.each(STRANGERS)('knows no user by %j: keys compare exactly', async (key) => {
      const people = await opened()
      expect(await people.findUserByName(key)).toBeUndefined()
      expect(await people.findUserBySubject(key)).toBeUndefined()
    })

    it('does not take a name for a subject, nor a subject for a name', async () => {
      const people = await opened()
      expect(await people.findUserBySubject('alice')).toBeUndefined()
      expect(await people.findUserByName('subject-of-alice')).toBeUndefined()
    })

    it('answers the same, asked again and all at once', async () => {
      const people = await opened()
      const first = await people.findUserByName('alice')
      const again = await Promise.all(Array.from({ length: 50 }, () => people.findUserByName('alice')))
      for (const found of again) expect(found).toEqual(first)
    })
  })
}
