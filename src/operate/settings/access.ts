import type { Problems } from '../../base/config/problems.ts'
import type { Client, User } from '../../base/contracts/people/people.ts'
import { mayHold } from '../../identity/directory/records/holdings.ts'
import { isReportOnly, satisfies } from '../../gateway/actions/action-table.ts'
import { GRANTS } from '../../identity/grants/grants.ts'
import type { Configuration } from './configuration.ts'
import { type ListedOperation, type Parties, type PartiesParts, readParties } from './parties.ts'

/** One right of one party. */
export interface AccessRight {
  readonly kind: 'anybody' | 'client' | 'role' | 'user' | 'operation'
  /**
   * Client id, role name or user name. `anybody`: everyone who can reach the service. `operation`: the operation itself, not
   * a caller; it is told of one that both configurations have.
   */
  readonly who: string
  /** Such as `GET fund-data/fund-list (business)`. For users, their role. For operations, a version. */
  readonly what: string
  /** Business code; empty if the right is not tied to a business. */
  readonly where: string
}

const textOf = ({ method, area, action, level }: ListedOperation): string =>
  `${method} ${area}/${action} (${level})`

function openTo({ operations, catalogue }: Parties, scopes: readonly string[]): string[] {
  const held = catalogue.close(scopes)
  return operations.filter(({ rule }) => satisfies(held, rule)).map(textOf)
}

/** A report-only area requires no token, and forwards paths that match no action too. */
const openToAnybody = ({ areas }: Configuration): AccessRight[] =>
  Object.entries(areas)
    .filter(([, area]) => isReportOnly(area))
    .map(([name]) => ({
      kind: 'anybody',
      who: 'anybody',
      what: `every call of ${name}, without a token too (report-only)`,
      where: '',
    }))

function clientAccess(parties: Parties, client: Client): AccessRight[] {
  const { id, grants, scopes, businesses } = client
  if (!mayHold(client)) return []
  const access = (what: string, where: string): AccessRight => ({ kind: 'client', who: id, what, where })
  const usable = grants.filter((grant) => GRANTS.get(grant)?.mayUse(client, parties.clock))
  const places = businesses.filter((code) => parties.directory.businesses.has(code))
  return [
    ...usable.map((grant) => access(`the grant ${grant}`, '')),
    ...openTo(parties, scopes).flatMap((what) => places.map((where) => access(what, where))),
  ]
}

function userAccess({ directory: { businesses } }: Parties, user: User): AccessRight[] {
  const { username, access, customers } = user
  if (!mayHold(user)) return []
  const right = (what: string, where: string): AccessRight => ({ kind: 'user', who: username, what, where })
  return [
    ...[...access].filter(([where]) => businesses.has(where)).map(([where, { role }]) => right(role, where)),
    ...customers.map((client) => right(`a login through ${client}`, '')),
  ]
}

const versionsOf = ({ operations }: Parties): AccessRight[] =>
  operations.flatMap((operation) =>
    operation.versions.map((version) => ({
      kind: 'operation' as const,
      who: textOf(operation),
      where: '',
      what: `version ${version}`,
    })),
  )

/** What everybody may do, as flat rows to compare. If `problems` has failed, the result must not be used. */
export async function accessOf(
  configuration: Configuration,
  parts: PartiesParts,
  problems: Problems,
): Promise<AccessRight[]> {
  const parties = await readParties(configuration, parts, problems)
  const roles = Object.entries(configuration.directory.roles).flatMap(([who, { scopes }]) =>
    openTo(parties, scopes).map((what): AccessRight => ({ kind: 'role', who, what, where: '' })),
  )
  return [
    ...openToAnybody(configuration),
    ...versionsOf(parties),
    ...[...parties.clients.values()].flatMap((client) => clientAccess(parties, client)),
    ...roles,
    ...[...parties.users()].flatMap((user) => userAccess(parties, user)),
  ]
}

export interface AccessChange {
  readonly gained: readonly AccessRight[]
  readonly lost: readonly AccessRight[]
}

const keyOf = ({ kind, who, what, where }: AccessRight): string => JSON.stringify([kind, who, what, where])

const without = (all: readonly AccessRight[], others: readonly AccessRight[]): AccessRight[] => {
  const keys = new Set(others.map(keyOf))
  return all.filter((access) => !keys.has(keyOf(access)))
}

const operationsIn = (access: readonly AccessRight[]): ReadonlySet<string> =>
  new Set(access.filter(({ kind }) => kind === 'operation').map(({ who }) => who))

/** The rights that the second configuration adds and removes. */
export function compareAccess(before: readonly AccessRight[], after: readonly AccessRight[]): AccessChange {
  // Where an operation as a whole is added or removed, its callers are told.
  const inBoth = operationsIn(before).intersection(operationsIn(after))
  const isTold = ({ kind, who }: AccessRight): boolean => kind !== 'operation' || inBoth.has(who)
  return { gained: without(after, before).filter(isTold), lost: without(before, after).filter(isTold) }
}
