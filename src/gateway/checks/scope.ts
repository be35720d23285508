import type { Principal } from '../../contracts/principal.ts'
import { Fault } from '../../kernel/faults.ts'
import type { ScopeRule } from '../action.ts'

/** C4.7, C5.3: the token's scope satisfies the action's. Implication was compiled into the groups. */
export function requireScope({ scopes }: Principal, { groups, challenge }: ScopeRule): void {
  for (const group of groups)
    if (!haveCommon(scopes, group)) throw new Fault('insufficient_scope', { scope: challenge })
}

/** Goes over the token's few values; `isDisjointFrom` costs as much as all of them. */
function haveCommon(scopes: ReadonlySet<string>, group: ReadonlySet<string>): boolean {
  for (const value of scopes) if (group.has(value)) return true
  return false
}
