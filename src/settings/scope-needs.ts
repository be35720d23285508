/** Which scopes an action needs, what implies them, and which clients and roles have them (C14.5). */
import type { Client } from '../contracts/people.ts'
import { compileScopeRule, satisfies } from '../gateway/action-table.ts'
import { matchAction, requireApiVersion } from '../gateway/checks.ts'
import type { CompiledActions } from '../gateway/compile-actions.ts'
import { USERINFO_PATH } from '../gateway/userinfo.ts'
import type { RequestTarget } from '../http/request-target.ts'
import { leastOf } from '../config/scopes/alternatives.ts'
import type { Catalogue } from '../config/scopes/catalogue.ts'
import { type Missing, missingForAnyToken } from './obtainable.ts'
import type { ListedOperation, Parties } from './parties.ts'

/** One scope value of which a token needs it or one that implies it. */
export interface NeededValue {
  readonly value: string
  readonly impliedBy: readonly string[]
}

/** A client whose tokens may have the scope. */
export interface ClientWithScope {
  readonly client: Client
  /** Those of its configured values that count here. */
  readonly by: readonly string[]
  /** Why it gets no token all the same. */
  readonly missing: readonly Missing[]
}

export interface ScopeNeeds {
  readonly operation: ListedOperation
  /** A token needs one value of each group. */
  readonly groups: readonly (readonly NeededValue[])[]
  readonly clients: readonly ClientWithScope[]
  readonly roles: readonly string[]
}

/** Userinfo is no configured action (C6.3.1). */
const userinfoOf = (method: string, catalogue: Catalogue): ListedOperation => ({
  ...{ slot: -1, level: 'user', area: 'connect', action: 'userinfo', method, versions: [1] },
  rule: compileScopeRule({ any: ['openid'] }, undefined, catalogue),
  reportOnly: false,
})

/**
 * The operation that a method and a path mean, by the gateway's own checks.
 *
 * @throws Fault `unknown_api_version`, `unknown_action`, `method_not_allowed`
 */
export function operationAt(
  method: string,
  target: RequestTarget,
  { table }: Pick<CompiledActions, 'table'>,
  { catalogue, operations }: Parties,
): ListedOperation | undefined {
  requireApiVersion(target)
  if (target.path === USERINFO_PATH) return userinfoOf(method, catalogue)
  const { operation } = matchAction(table, target, method)
  const named = operation.method === 'HEAD' ? 'GET' : operation.method
  return operations.find((each) => each.slot === operation.action.slot && each.method === named)
}

function neededOf(group: ReadonlySet<string>, catalogue: Catalogue): readonly NeededValue[] {
  return leastOf(group, catalogue).map((value) => ({
    value,
    impliedBy: [...catalogue.satisfiers(value)].filter((other) => other !== value),
  }))
}

const countingValues = (
  scopes: readonly string[],
  { rule }: ListedOperation,
  catalogue: Catalogue,
): readonly string[] =>
  scopes.filter((value) => rule.groups.some((group) => !group.isDisjointFrom(catalogue.close([value]))))

/** What an operation needs, and who has it. */
export function scopeNeeds(operation: ListedOperation, parties: Parties): ScopeNeeds {
  const { catalogue, clients, directory, clock } = parties
  const has = (scopes: readonly string[]): boolean => satisfies(catalogue.close(scopes), operation.rule)
  return {
    operation,
    groups: operation.rule.groups.map((group) => neededOf(group, catalogue)),
    clients: [...clients.values()]
      .filter(({ scopes }) => has(scopes))
      .map((client) => ({
        client,
        by: countingValues(client.scopes, operation, catalogue),
        missing: missingForAnyToken({ client }, clock),
      })),
    roles: [...directory.roles.values()].filter(({ scopes }) => has(scopes)).map(({ role }) => role),
  }
}
