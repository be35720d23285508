/**
 * Records of the store that a configuration hides, or hides no more: where both have one of a name, the configuration's
 * counts. So a configuration that is the first to have a role or a user may take away what the store's record gave.
 */
import type { Entry, Store } from '../contracts/store.ts'
import { holdingsOf, type Holdings } from './holdings.ts'
import { readRole, ROLE } from './place-records.ts'
import { findAll } from './references.ts'
import { readStoredUser, USER } from './stored-directory.ts'

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

/** Two configurations, each with those records of the store that count where only the other has one. */
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
