/** Who may do what, as a configuration says it: flat, so that two configurations can be compared. */
import type { Environment } from './config/references.ts'
import { Report } from './config/report.ts'
import type { Configuration } from './configuration.ts'
import { compileDirectory, type Directory } from './directory/compile.ts'
import type { Catalogue } from './scopes/catalogue.ts'
import { compileScopes } from './scopes/config.ts'

/** One thing that somebody may do. */
export interface Access {
  readonly kind: 'client' | 'role' | 'user'
  /** Client id, name of a role, or user name. */
  readonly who: string
  /** `GET fund-data/fund-list (business)`; for users, the role that they have. */
  readonly what: string
  /** Business code; empty for roles. */
  readonly where: string
}

interface Operation {
  readonly what: string
  readonly isOpenTo: (scopes: ReadonlySet<string>) => boolean
}

const operationsOf = ({ actions }: Configuration): Operation[] =>
  actions.flatMap(({ level, area, action, methods }) =>
    Object.entries(methods).map(([method, { scopes }]) => ({
      what: `${method} ${area}/${action} (${level})`,
      isOpenTo: (held) =>
        scopes.any?.some((value) => held.has(value)) ??
        scopes.all?.every((value) => held.has(value)) ??
        false,
    })),
  )

const openTo = (
  operations: readonly Operation[],
  catalogue: Catalogue,
  scopes: readonly string[],
): string[] => {
  const held = catalogue.close(scopes)
  return operations.filter(({ isOpenTo }) => isOpenTo(held)).map(({ what }) => what)
}

function clientAccess(
  { clients }: Directory,
  operations: readonly Operation[],
  catalogue: Catalogue,
): Access[] {
  const enabled = [...clients.values()].filter(({ disabled }) => !disabled)
  return enabled.flatMap(({ id, scopes, businesses }) =>
    openTo(operations, catalogue, scopes).flatMap((what) =>
      businesses.map((where): Access => ({ kind: 'client', who: id, what, where })),
    ),
  )
}

function userAccess({ users }: Directory): Access[] {
  const enabled = [...users.values()].filter(({ disabled }) => !disabled)
  return enabled.flatMap(({ username, access }) =>
    Object.entries(access).map(([where, what]): Access => ({ kind: 'user', who: username, what, where })),
  )
}

/** Everything that clients, roles and users may do. `environment` serves the files of the directory. */
export async function accessOf(configuration: Configuration, environment: Environment): Promise<Access[]> {
  const told = new Report()
  const catalogue = compileScopes(configuration.scopes, told)
  const directory = await compileDirectory(configuration.directory, catalogue, told, environment)
  const operations = operationsOf(configuration)
  const roles = Object.entries(configuration.directory.roles).flatMap(([who, { scopes }]) =>
    openTo(operations, catalogue, scopes).map((what): Access => ({ kind: 'role', who, what, where: '' })),
  )
  return [...clientAccess(directory, operations, catalogue), ...roles, ...userAccess(directory)]
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

/** What the second configuration gives and takes. */
export const compareAccess = (before: readonly Access[], after: readonly Access[]): AccessChange => ({
  gained: without(after, before),
  lost: without(before, after),
})
