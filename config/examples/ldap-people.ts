/**
 * People in LDAP, for `directory.people`: one entry a person, groups for their roles, passwords verified by a bind over
 * TLS. The recipe config/recipes/users-in-ldap.md serves it; the contract is `postern/people`. Copy it, and put the
 * attributes of your own directory in.
 *
 * Nothing that a person typed becomes part of a DN or of a filter's text: filters are objects, which ldapts sends as
 * values, and the DN of a bind is that of an entry that was found. ldapts follows no referrals.
 */
import { readFileSync } from 'node:fs'
import { AndFilter, Client, type Entry, EqualityFilter, type Filter, InvalidCredentialsError } from 'ldapts'
import type { PeopleCall, PeopleFactory, PeopleUser } from 'postern/people'

interface Options {
  /** `ldaps://host:port`. */
  readonly url: string
  /** File with the authority that has signed the server's certificate, if it is one of your own. */
  readonly authority?: string
  /** An entry that may read people and groups, and the environment variable with its password. */
  readonly reader: { readonly dn: string; readonly passwordFrom: string }
  /** Where people are, and where groups are. */
  readonly people: string
  readonly groups: string
  /** An entry whose password nobody knows. It is tried for those who do not exist. */
  readonly nobody: string
}

/** Milliseconds of one step: below the two seconds that Postern gives a call. */
const STEP = 1000

const ATTRIBUTES = [
  ...['entryUUID', 'uid', 'cn', 'givenName', 'sn', 'mail', 'telephoneNumber'],
  ...['departmentNumber', 'employeeType'],
]

const createPeople: PeopleFactory<Options> = ({ url, authority, reader, people, groups, nobody }) => {
  if (!url.startsWith('ldaps://')) throw new Error('url: expected ldaps://…, since passwords go there')
  const password = process.env[reader.passwordFrom] ?? ''
  // A bind with a name and without a password is an anonymous one, and succeeds (RFC 4513 §5.1.2).
  if (password === '') throw new Error(`the environment variable ${reader.passwordFrom} is not set`)
  const tlsOptions = authority === undefined ? {} : { ca: readFileSync(authority) }

  /** A connection for one call: it costs a handshake, and leaves nothing to be repaired. */
  const connected = async <T>({ signal }: PeopleCall, work: (client: Client) => Promise<T>): Promise<T> => {
    await using client = new Client({ url, tlsOptions, timeout: STEP, connectTimeout: STEP })
    signal.addEventListener('abort', () => void client.unbind().catch(() => undefined))
    return await work(client)
  }

  const asReader = <T>(call: PeopleCall, work: (client: Client) => Promise<T>): Promise<T> =>
    connected(call, async (client) => {
      await client.bind(reader.dn, password)
      return work(client)
    })

  const findEntry = async (client: Client, attribute: string, value: string): Promise<Entry | undefined> => {
    const isPerson = equals('objectClass', 'inetOrgPerson')
    const filter = new AndFilter({ filters: [isPerson, equals(attribute, value)] })
    const asked = { scope: 'sub', filter, attributes: ATTRIBUTES, sizeLimit: 2 } as const
    const { searchEntries } = await client.search(people, asked)
    if (searchEntries.length > 1) throw new Error(`several entries have the same ${attribute}`)
    return searchEntries[0]
  }

  /** A group is a role at a business: `cn` is the role's name, `ou` the code of the business. */
  const rolesOf = async (client: Client, { dn }: Entry): Promise<Record<string, string>> => {
    const filter = new AndFilter({ filters: [equals('objectClass', 'groupOfNames'), equals('member', dn)] })
    const { searchEntries } = await client.search(groups, { scope: 'sub', filter, attributes: ['cn', 'ou'] })
    return Object.fromEntries(searchEntries.map((group) => [first(group, 'ou'), first(group, 'cn')]))
  }

  const find = (attribute: string, value: string, call: PeopleCall): Promise<PeopleUser | undefined> =>
    asReader(call, async (client) => {
      const entry = await findEntry(client, attribute, value)
      return entry && userOf(entry, await rolesOf(client, entry))
    })

  return {
    findUserByName: (username, call) => find('uid', username, call),
    // The server makes entryUUID. It stays when a person is renamed, and is never given again.
    findUserBySubject: (subject, call) => find('entryUUID', subject, call),

    async verifyPassword(user, typed, call) {
      const subject = user?.subject ?? NO_SUBJECT
      const entry = await asReader(call, (client) => findEntry(client, 'entryUUID', subject))
      const isRight = await connected(call, (client) => bindsAs(client, entry?.dn ?? nobody, typed))
      return isRight && entry !== undefined
    },
  }
}

export default createPeople

/** No entry has it. */
const NO_SUBJECT = '00000000-0000-0000-0000-000000000000'

const equals = (attribute: string, value: string): Filter => new EqualityFilter({ attribute, value })

async function bindsAs(client: Client, dn: string, password: string): Promise<boolean> {
  if (password === '') return false
  try {
    await client.bind(dn, password)
    return true
  } catch (error) {
    if (error instanceof InvalidCredentialsError) return false
    throw error
  }
}

const userOf = (entry: Entry, access: Readonly<Record<string, string>>): PeopleUser => ({
  subject: first(entry, 'entryUUID'),
  username: first(entry, 'uid'),
  customers: all(entry, 'departmentNumber'),
  access,
  disabled: all(entry, 'employeeType').includes('left'),
  claims: {
    name: first(entry, 'cn'),
    given_name: first(entry, 'givenName'),
    family_name: first(entry, 'sn'),
    email: first(entry, 'mail'),
    phone_number: first(entry, 'telephoneNumber'),
  },
})

/** The values of an attribute; an entry has none, one or several. */
const all = (entry: Entry, attribute: string): string[] => [entry[attribute] ?? []].flat().map(String)

const first = (entry: Entry, attribute: string): string => all(entry, attribute)[0] ?? ''
