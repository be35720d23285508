/** Lists who may do what in a configuration, as flat rows, so that two configurations can be compared. */
import type { Environment } from '../config/references.ts'
import type { Report } from '../config/report.ts'
import type { Configuration } from './configuration.ts'
import type { Client, User } from '../contracts/people.ts'
import { compileDirectory, type Directory } from '../directory/compile.ts'
import { compileUser, toClient } from '../directory/compile-records.ts'
import { mayHold } from '../directory/holdings.ts'
import type { StoredClient, StoredUser } from '../directory/stored-directory.ts'
import { compileScopeRule, isReportOnly, satisfies } from '../gateway/action-table.ts'
import { GRANTS } from '../identity/grants/grants.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Catalogue } from '../scopes/catalogue.ts'
import { compileScopes } from '../scopes/config.ts'

/** One right of one party. */
export interface Access {
  readonly kind: 'anybody' | 'client' | 'role' | 'user'
  /** Client id, role name or user name. `anybody`: everyone who can reach the service. */
  readonly who: string
  /** Such as `GET fund-data/fund-list (business)`. For users, their role. */
  readonly what: string
  /** Business code; empty if the right is not tied to a business. */
  readonly where: string
}

/** The part of the directory that is in the store. */
export interface StoredPeopleRecords {
  readonly clients: readonly StoredClient[]
  readonly users: readonly StoredUser[]
}

export interface AccessParts {
  /** Reads the files of the directory. */
  readonly environment: Environment
  readonly stored: StoredPeopleRecords
  readonly clock: Clock
}

interface Operation {
  readonly what: string
  readonly isOpenTo: (scopes: ReadonlySet<string>) => boolean
}

/** Uses the gateway's own scope rule of each action (C4.7), with area scopes and implication. */
const operationsOf = ({ actions, areas }: Configuration, catalogue: Catalogue): Operation[] =>
  actions.flatMap(({ level, area, action, methods }) =>
    Object.entries(methods).map(([method, { scopes }]) => {
      const rule = compileScopeRule(scopes, areas[area], catalogue)
      return {
        what: `${method} ${area}/${action} (${level})`,
        isOpenTo: (held: ReadonlySet<string>) => satisfies(held, rule),
      }
    }),
  )

const openTo = (
  operations: readonly Operation[],
  catalogue: Catalogue,
  scopes: readonly string[],
): string[] => {
  const held = catalogue.close(scopes)
  return operations.filter(({ isOpenTo }) => isOpenTo(held)).map(({ what }) => what)
}

/** A report-only area requires no token, and forwards paths that match no action too. */
const openToAnybody = ({ areas }: Configuration): Access[] =>
  Object.entries(areas)
    .filter(([, area]) => isReportOnly(area))
    .map(([name]) => ({
      kind: 'anybody',
      who: 'anybody',
      what: `every call of ${name}, without a token too (report-only)`,
      where: '',
    }))

/** Of two clients with the same id the configuration's counts (directory/people.ts). */
const clientsOf = ({ clients }: Directory, { stored }: AccessParts): Client[] => [
  ...clients.values(),
  ...stored.clients.map(({ record }) => toClient(record)).filter(({ id }) => !clients.has(id)),
]

function clientAccess(
  { businesses: known }: Directory,
  client: Client,
  operations: readonly Operation[],
  catalogue: Catalogue,
  clock: Clock,
): Access[] {
  const { id, grants, scopes, businesses } = client
  if (!mayHold(client)) return []
  const access = (what: string, where: string): Access => ({ kind: 'client', who: id, what, where })
  const usable = grants.filter((grant) => GRANTS.get(grant)?.mayUse(client, clock))
  const places = businesses.filter((code) => known.has(code))
  return [
    ...usable.map((grant) => access(`the grant ${grant}`, '')),
    ...openTo(operations, catalogue, scopes).flatMap((what) => places.map((where) => access(what, where))),
  ]
}

const usersOf = ({ users, roles }: Directory, { stored }: AccessParts): User[] =>
  [
    ...users.values(),
    ...stored.users.map(({ record }) => record).filter((user) => !users.has(user.username)),
  ].map((record) => compileUser(record, roles))

function userAccess({ businesses }: Directory, user: User): Access[] {
  const { username, access, customers } = user
  if (!mayHold(user)) return []
  const right = (what: string, where: string): Access => ({ kind: 'user', who: username, what, where })
  return [
    ...[...access].filter(([where]) => businesses.has(where)).map(([where, { role }]) => right(role, where)),
    ...customers.map((client) => right(`a login through ${client}`, '')),
  ]
}

/**
 * Everything that anybody, clients, roles and users may do. Problems of the scopes and the directory go to the report. If
 * it has failed, the result must not be used.
 */
export async function accessOf(
  configuration: Configuration,
  parts: AccessParts,
  report: Report,
): Promise<Access[]> {
  const catalogue = compileScopes(configuration.scopes, report)
  const directory = await compileDirectory(configuration.directory, catalogue, report, parts.environment)
  const operations = operationsOf(configuration, catalogue)
  const roles = Object.entries(configuration.directory.roles).flatMap(([who, { scopes }]) =>
    openTo(operations, catalogue, scopes).map((what): Access => ({ kind: 'role', who, what, where: '' })),
  )
  return [
    ...openToAnybody(configuration),
    ...clientsOf(directory, parts).flatMap((client) =>
      clientAccess(directory, client, operations, catalogue, parts.clock),
    ),
    ...roles,
    ...usersOf(directory, parts).flatMap((user) => userAccess(directory, user)),
  ]
}

export interface AccessChange {
  readonly gained: readonly Access[]
  readonly lost: readonly Access[]
}

const keyOf = ({ kind, who, what, where }: Access): string => JSON.stringify([kind, who, what, where])

const without = (all: readonly Access[], others: readonly Access[]): Access[] => {
  const keys = new Set(others.map(keyOf))
  return all.filter((access) => !keys.has(keyOf(access)))
}

/** The rights that the second configuration adds and removes. */
export const compareAccess = (before: readonly Access[], after: readonly Access[]): AccessChange => ({
  gained: without(after, before),
  lost: without(before, after),
})
