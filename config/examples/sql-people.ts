/**
 * People in a table of your own, for `directory.people`: here in a SQLite file, with passwords that were hashed by bcrypt
 * or PBKDF2. The recipe config/recipes/users-in-sql.md serves it; the contract is `postern/people`. Copy it, and put your
 * own tables and driver in.
 */
import { pbkdf2, timingSafeEqual } from 'node:crypto'
import { resolve } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { compare } from 'bcryptjs'
import type { PeopleFactory, PeopleUser } from 'postern/people'

interface Options {
  /** The file, relative to the folder that Postern is started in. */
  readonly database: string
}

const USER = 'select id, login, customer, active, name, email from users where'

/** The database is opened at the first call: Postern also makes this module to check a configuration. */
const createPeople: PeopleFactory<Options> = ({ database }) => {
  let opened: Statements | undefined
  const statements = (): Statements => (opened ??= open(resolve(database)))

  const find = (by: 'byName' | 'bySubject', key: string): PeopleUser | undefined => {
    const { [by]: user, roles } = statements()
    const row = user.get(key)
    return row && userOf(row, roles.all(row['id'] ?? ''))
  }

  return {
    findUserByName: (username) => find('byName', username),
    findUserBySubject: (subject) => find('bySubject', subject),

    async verifyPassword(user, password) {
      // Read anew each time: a password that was changed a moment ago is refused.
      const row = user && statements().hash.get(user.subject)
      const hash = typeof row?.['password'] === 'string' ? row['password'] : NOBODYS
      return (await isRight(password, hash)) && hash !== NOBODYS
    },

    close: () => opened?.database.close(),
  }
}

export default createPeople

interface Statements {
  readonly database: DatabaseSync
  readonly byName: StatementSync
  readonly bySubject: StatementSync
  readonly roles: StatementSync
  readonly hash: StatementSync
}

/** Values are bound to the `?`, and are never part of the statement. */
function open(file: string): Statements {
  const database = new DatabaseSync(file, { readOnly: true })
  return {
    database,
    byName: database.prepare(`${USER} login = ?`),
    bySubject: database.prepare(`${USER} id = ?`),
    roles: database.prepare('select business, role from roles where user_id = ?'),
    hash: database.prepare('select password from users where id = ?'),
  }
}

type Row = NonNullable<ReturnType<StatementSync['get']>>

const userOf = (row: Row, roles: readonly Row[]): PeopleUser => ({
  subject: String(row['id']),
  username: String(row['login']),
  customers: row['customer'] === null ? [] : [String(row['customer'])],
  access: Object.fromEntries(roles.map(({ business, role }) => [String(business), String(role)])),
  disabled: row['active'] !== 1,
  claims: { name: textOf(row['name']), email: textOf(row['email']) },
})

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)

/** Of a password that nobody knows: who does not exist costs as much as who does. */
const NOBODYS = '$2b$10$p7tmOR0wfs4lc8f/aNclSukp33aUSlToR99g4nNWPkGZ2eKaxVFcK'

/** Two kinds of hashes, as applications leave them behind. */
function isRight(password: string, hash: string): boolean | Promise<boolean> {
  if (hash.startsWith('pbkdf2_')) return isPbkdf2(password, hash)
  // In JavaScript: other logins by this module wait meanwhile. Of cost 10 it is about 50 ms.
  if (/^\$2[aby]\$/.test(hash)) return compare(password, hash)
  throw new Error('a user’s hash is of a kind that this module does not know')
}

/** Bytes. */
const LEAST_DIGEST = 20

const derive = promisify(pbkdf2)

/** As Django writes it: `pbkdf2_sha256$600000$salt$base64`. In a thread of Node’s own, beside this one. */
async function isPbkdf2(password: string, hash: string): Promise<boolean> {
  const [kind = '', iterations = '', salt = '', digest = ''] = hash.split('$')
  const expected = Buffer.from(digest, 'base64')
  // Every password would have a digest of no bytes.
  if (expected.length < LEAST_DIGEST) throw new Error('a user’s PBKDF2 hash is cut short')
  const given = await derive(
    password,
    salt,
    Number(iterations),
    expected.length,
    kind.slice('pbkdf2_'.length),
  )
  return timingSafeEqual(given, expected)
}
