import { createHash } from 'node:crypto'
import type { Client, User } from '../contracts/people.ts'
import type { RevokedTokens } from '../contracts/tokens.ts'
import type { Catalogue } from '../scopes/catalogue.ts'
import type { Directory } from './compile.ts'

/**
 * Whether a person or client may hold tokens now (C6.3.5): not if locked or disabled. Nothing else decides this.
 * Identity asks it at every endpoint (identity/dependencies.ts), and a reload asks it when it compares two directories.
 */
export const mayHold = ({
  disabled,
  locked = false,
}: Pick<Client, 'disabled'> & Partial<Pick<User, 'locked'>>): boolean => !disabled && !locked

interface ClientHoldings {
  /** If false, it holds nothing. */
  readonly mayHold: boolean
  readonly businesses: readonly string[]
}

interface UserHoldings {
  readonly username: string
  /** If false, the user holds nothing. */
  readonly mayHold: boolean
  /** A digest of the password's hash. If it changes, the user must log in again. */
  readonly password: string
  readonly businesses: readonly string[]
  readonly customers: readonly string[]
}

/** Who may hold what according to one directory. A later directory is compared with it. */
export interface Holdings {
  readonly businesses: ReadonlySet<string>
  readonly clients: ReadonlyMap<string, ClientHoldings>
  /** By subject. */
  readonly users: ReadonlyMap<string, UserHoldings>
}

export const NO_HOLDINGS: Holdings = { businesses: new Set(), clients: new Map(), users: new Map() }

/** Characters of base64url. The hash itself is not kept. */
const DIGEST = 22

const digestOf = (text: string): string =>
  createHash('sha256').update(text).digest('base64url').slice(0, DIGEST)

/** Of a whole directory, or of a part of it. */
export const holdingsOf = ({
  businesses = new Map(),
  clients = new Map(),
  users = new Map(),
}: Partial<Pick<Directory, 'businesses' | 'clients' | 'users'>>): Holdings => ({
  businesses: new Set(businesses.keys()),
  clients: new Map(
    [...clients.values()].map((client) => [
      client.id,
      { mayHold: mayHold(client), businesses: client.businesses },
    ]),
  ),
  users: new Map(
    [...users.values()].map((user) => [
      user.subject,
      {
        username: user.username,
        mayHold: mayHold(user),
        password: digestOf(user.password),
        businesses: Object.keys(user.access),
        customers: user.customers,
      },
    ]),
  ),
})

/** What must be ended because one directory replaces another. */
export interface Loss {
  readonly tokens: RevokedTokens
  /** Whether consents end too: after a removal, the id may be given to somebody else one day. */
  readonly consents: boolean
}

const losing = (tokens: RevokedTokens, consents = false): Loss => ({ tokens, consents })

const lost = (before: Iterable<string>, after: { includes(value: string): boolean }): string[] =>
  [...before].filter((value) => !after.includes(value))

const lostBusinesses = (before: Holdings, after: Holdings): Loss[] =>
  [...before.businesses]
    .filter((business) => !after.businesses.has(business))
    .map((business) => losing({ business }, true))

function lostByClient(client: string, before: ClientHoldings, after: ClientHoldings | undefined): Loss[] {
  if (after === undefined) return [losing({ client }, true)]
  if (!before.mayHold) return []
  if (!after.mayHold) return [losing({ client })]
  return lost(before.businesses, after.businesses).map((business) => losing({ client, business }))
}

function lostByUser(subject: string, before: UserHoldings, after: UserHoldings | undefined): Loss[] {
  if (after === undefined) return [losing({ subject }, true)]
  // If name and password both changed, the subject was given to somebody else.
  const another = before.username !== after.username && before.password !== after.password
  if (another) return [losing({ subject }, true)]
  if (!before.mayHold) return []
  if (!after.mayHold || before.password !== after.password) return [losing({ subject })]
  return [
    ...lost(before.businesses, after.businesses).map((business) => losing({ subject, business })),
    ...lost(before.customers, after.customers).map((client) => losing({ client, subject })),
  ]
}

/**
 * What must be ended: all that was removed, disabled, locked or got another password. That can be a business, a
 * client or a user; a business of a client or user; or a customer client of a user. New entries lose nothing.
 */
export const lossesBetween = (before: Holdings, after: Holdings): readonly Loss[] => [
  ...lostBusinesses(before, after),
  ...[...before.clients].flatMap(([id, client]) => lostByClient(id, client, after.clients.get(id))),
  ...[...before.users].flatMap(([subject, user]) => lostByUser(subject, user, after.users.get(subject))),
]

/**
 * The access tokens that hold a scope value which the client may not have any more. Its families and codes stay: what is
 * refreshed or redeemed is limited to what the client may have then. None of a client that loses everything anyway.
 */
export function scopesLost(
  before: Scoped,
  after: Scoped,
  catalogue: Pick<Catalogue, 'close'>,
): readonly Loss[] {
  if (!mayHold(before) || !mayHold(after)) return []
  const [had, has] = [catalogue.close(before.scopes), catalogue.close(after.scopes)]
  return [...had].filter((scope) => !has.has(scope)).map((scope) => losing({ client: before.id, scope }))
}

type Scoped = Pick<Client, 'id' | 'scopes' | 'disabled'>
