/** Who may hold what according to one directory, and what is lost where another one replaces it. */
import { createHash } from 'node:crypto'
import type { Catalogue } from '../../../base/config/scopes/catalogue.ts'
import type { Client, User } from '../../../base/contracts/people/people.ts'
import type { Entry, Store } from '../../../base/contracts/records/store.ts'
import type { RevokedTokens } from '../../../base/contracts/records/tokens.ts'
import type { Directory } from './compile.ts'
import { readRole, ROLE } from './schema.ts'
import { findAll, readStoredUser, USER } from './stored-directory.ts'

/** Whether one may hold anything (C6.3.5). Only this decides it: at every endpoint, and at a reload for both directories. */
export const mayHold = ({
  disabled,
  locked = false,
}: Pick<Client, 'disabled'> & Partial<Pick<User, 'locked'>>): boolean => !disabled && !locked

interface BusinessHoldings {
  /** If false, nobody may hold anything for it. */
  readonly mayHold: boolean
  readonly funds: 'any' | ReadonlySet<string>
}

export interface ClientHoldings {
  readonly mayHold: boolean
  readonly businesses: readonly string[]
  /** Before implication. */
  readonly scopes: readonly string[]
}

export interface UserHoldings {
  readonly username: string
  readonly mayHold: boolean
  /** A digest of the password's hash. If it changes, the user must log in again. */
  readonly password: string
  readonly access: Readonly<Record<string, string>>
  readonly customers: readonly string[]
}

export interface Holdings {
  /** Every scope value, with itself and all values that it implies. */
  readonly scopes: ReadonlyMap<string, ReadonlySet<string>>
  readonly businesses: ReadonlyMap<string, BusinessHoldings>
  /** The scope values of each role that is not disabled, before implication. */
  readonly roles: ReadonlyMap<string, readonly string[]>
  readonly clients: ReadonlyMap<string, ClientHoldings>
  readonly users: ReadonlyMap<string, UserHoldings>
}

export const NO_HOLDINGS: Holdings = {
  scopes: new Map(),
  businesses: new Map(),
  roles: new Map(),
  clients: new Map(),
  users: new Map(),
}

/** The length of a digest, in characters of base64url. The hash itself is not kept. */
const DIGEST = 22

const digestOf = (text: string): string =>
  createHash('sha256').update(text).digest('base64url').slice(0, DIGEST)

const mapped = <A, B>(map: ReadonlyMap<string, A>, to: (value: A) => B): ReadonlyMap<string, B> =>
  new Map([...map].map(([key, value]) => [key, to(value)]))

/** A whole directory, or a part of it. A store can switch a business off, a configuration cannot. */
export type HoldingParts = {
  readonly [K in 'clients' | 'users' | 'roles']?: Directory[K]
} & {
  readonly businesses?: ReadonlyMap<
    string,
    { readonly funds: BusinessHoldings['funds']; readonly disabled?: boolean }
  >
}

export const holdingsOf = (
  { businesses = new Map(), roles = new Map(), clients = new Map(), users = new Map() }: HoldingParts,
  catalogue: Pick<Catalogue, 'values' | 'close'>,
): Holdings => ({
  scopes: new Map(catalogue.values.map((value) => [value, catalogue.close([value])])),
  businesses: mapped(businesses, ({ funds, disabled = false }) => ({ mayHold: !disabled, funds })),
  roles: mapped(roles, ({ scopes }) => scopes),
  clients: mapped(clients, (client) => ({
    mayHold: mayHold(client),
    businesses: client.businesses,
    scopes: client.scopes,
  })),
  users: new Map(
    [...users.values()].map((user) => [
      user.subject,
      {
        username: user.username,
        mayHold: mayHold(user),
        password: digestOf(user.password),
        access: user.access,
        customers: user.customers,
      },
    ]),
  ),
})

export interface Loss {
  /** Everything that must be ended. */
  readonly tokens: RevokedTokens
  /** Whether consents end too: after a removal, the id may be given to somebody else one day. */
  readonly consents: boolean
}

const losing = (tokens: RevokedTokens, consents = false): Loss => ({ tokens, consents })

interface Compared {
  readonly before: Holdings
  readonly after: Holdings
  /** Scope values that nobody has as before. A rule ends them for everybody, so nobody's own loss names them. */
  readonly ofAll: ReadonlySet<string>
}

const without = (before: Iterable<string>, after: { includes(value: string): boolean }): string[] =>
  [...before].filter((value) => !after.includes(value))

const closed = (values: readonly string[], { scopes }: Holdings): ReadonlySet<string> =>
  new Set(values.flatMap((value) => [...(scopes.get(value) ?? [])]))

/** Scope values that were given before and are not given now. */
function fewer(
  had: readonly string[],
  has: readonly string[],
  { before, after, ofAll }: Compared,
): readonly string[] {
  const kept = closed(has, after)
  return [...closed(had, before)].filter((scope) => !kept.has(scope) && !ofAll.has(scope))
}

/** Empty if the second directory has no scope values: others issue a sidecar's tokens. */
function scopesLostByAll(before: Holdings, { scopes }: Holdings): ReadonlySet<string> {
  if (scopes.size === 0) return new Set()
  const lost = ([value, implied]: readonly [string, ReadonlySet<string>]): string[] =>
    [...implied].filter((each) => scopes.get(value)?.has(each) !== true)
  return new Set([...before.scopes].flatMap(lost))
}

function lostByBusiness(
  business: string,
  before: BusinessHoldings,
  after: BusinessHoldings | undefined,
): readonly Loss[] {
  if (after === undefined) return [losing({ business }, true)]
  if (!before.mayHold) return []
  if (!after.mayHold) return [losing({ business })]
  // With `any`, nobody knows which funds there were: one that is not listed now is refused at each call (C4.8).
  const { funds } = after
  if (before.funds === 'any' || funds === 'any') return []
  return [...before.funds].filter((fund) => !funds.has(fund)).map((fund) => losing({ business, fund }))
}

function lostByRole(role: string, had: readonly string[], compared: Compared): readonly Loss[] {
  const has = compared.after.roles.get(role)
  if (has === undefined) return [losing({ role })]
  return fewer(had, has, compared).map((scope) => losing({ role, scope }))
}

function lostByClient(client: string, before: ClientHoldings, compared: Compared): readonly Loss[] {
  const after = compared.after.clients.get(client)
  if (after === undefined) return [losing({ client }, true)]
  if (!before.mayHold) return []
  if (!after.mayHold) return [losing({ client })]
  return [
    ...without(before.businesses, after.businesses).map((business) => losing({ client, business })),
    ...fewer(before.scopes, after.scopes, compared).map((scope) => losing({ client, scope })),
  ]
}

/** At one business, where the user had a role. A role that gives less than before is ended by its own rule. */
function lostAtBusiness(
  { subject, business }: { readonly subject: string; readonly business: string },
  [role, next]: readonly [before: string, after: string | undefined],
  compared: Compared,
): readonly Loss[] {
  if (next === undefined) return [losing({ subject, business })]
  const had = compared.before.roles.get(role)
  if (role === next || had === undefined) return []
  const has = compared.after.roles.get(next)
  if (has === undefined) return [losing({ subject, business })]
  return fewer(had, has, compared).map((scope) => losing({ subject, business, scope }))
}

function lostByUser(subject: string, before: UserHoldings, compared: Compared): readonly Loss[] {
  const after = compared.after.users.get(subject)
  if (after === undefined) return [losing({ subject }, true)]
  // If name and password both changed, the subject was given to somebody else.
  const another = before.username !== after.username && before.password !== after.password
  if (another) return [losing({ subject }, true)]
  if (!before.mayHold) return []
  if (!after.mayHold || before.password !== after.password) return [losing({ subject })]
  return [
    ...Object.entries(before.access).flatMap(([business, role]) =>
      lostAtBusiness({ subject, business }, [role, after.access[business]], compared),
    ),
    ...without(before.customers, after.customers).map((client) => losing({ client, subject })),
  ]
}

/**
 * The losses to end because one directory replaces another (C6.3.6). New entries lose nothing. The only place that decides
 * it: for the editors of the store, for a reload, and for a start with another configuration.
 *
 * | What is less | What ends |
 * | --- | --- |
 * | a person or client is removed | all that they hold, consents too |
 * | a person or client is disabled or locked; a password is another | all that they hold |
 * | a business is removed | all that was issued for it, consents too |
 * | a business is disabled | all that was issued for it |
 * | a client or user is no longer at a business; a user no longer a client's customer | all that was issued for both |
 * | a fund is removed or disabled | the access tokens for it |
 * | a role is removed or disabled | the access tokens that were issued by it |
 * | a role, a client, or a user's role at a business gives fewer scope values | the access tokens that have one of those |
 * | a scope value is removed, or implies less | the access tokens that have the value that is gone |
 *
 * Where only access tokens end, families of refresh tokens stay: a refresh gives what is allowed then, or is refused.
 */
export function lossesBetween(before: Holdings, after: Holdings): readonly Loss[] {
  const ofAll = scopesLostByAll(before, after)
  const compared = { before, after, ofAll }
  return [
    ...[...ofAll].map((scope) => losing({ scope })),
    ...[...before.businesses].flatMap(([code, each]) =>
      lostByBusiness(code, each, after.businesses.get(code)),
    ),
    ...[...before.roles].flatMap(([name, scopes]) => lostByRole(name, scopes, compared)),
    ...[...before.clients].flatMap(([id, client]) => lostByClient(id, client, compared)),
    ...[...before.users].flatMap(([subject, user]) => lostByUser(subject, user, compared)),
  ]
}

type Finding = Pick<Store, 'find'>

const keysBeside = (
  one: ReadonlyMap<string, unknown>,
  other: ReadonlyMap<string, unknown>,
): readonly string[] => [...one.keys()].filter((key) => !other.has(key))

const rolesOf = (entries: readonly Entry[]): Holdings['roles'] =>
  new Map(
    entries
      .map(({ value }) => readRole(value))
      .filter(({ disabled }) => !disabled)
      .map(({ name, scopes }) => [name, scopes]),
  )

/** The roles of the store that count where a configuration has none of these names. */
const rolesFor = async (names: readonly string[], store: Finding): Promise<Holdings['roles']> =>
  rolesOf(await findAll(store, ROLE, names))

const NO_SCOPES = { values: [], close: () => new Set<string>() }

/** Users of the store whose names the second configuration has, and the first one had not. */
async function usersHidden(before: Holdings, after: Holdings, store: Finding): Promise<Holdings['users']> {
  const had = new Set([...before.users.values()].map(({ username }) => username))
  const names = [...after.users.values()].map(({ username }) => username).filter((name) => !had.has(name))
  const records = (await findAll(store, USER, names)).map(({ value }) => readStoredUser(value).record)
  return holdingsOf({ users: new Map(records.map((record) => [record.username, record])) }, NO_SCOPES).users
}

/**
 * Two configurations, each with those records of the store that count where only the other has one: of one name, the
 * configuration's counts. So one that is the first to have a role or a user may take away what the store's record gave.
 */
export async function withStored(
  before: Holdings,
  after: Holdings,
  store: Finding,
): Promise<{ readonly had: Holdings; readonly has: Holdings }> {
  const users = await usersHidden(before, after, store)
  const named = [...users.values()].flatMap(({ access }) => Object.values(access))
  const both = await rolesFor(named, store)
  const hidden = await rolesFor(keysBeside(after.roles, before.roles), store)
  const shown = await rolesFor(keysBeside(before.roles, after.roles), store)
  return {
    had: {
      ...before,
      roles: new Map([...both, ...hidden, ...before.roles]),
      users: new Map([...users, ...before.users]),
    },
    has: { ...after, roles: new Map([...both, ...shown, ...after.roles]) },
  }
}
