import type { Principal } from '../../contracts/principal.ts'
import { Fault } from '../../kernel/faults.ts'
import type { ScopeRule } from '../action.ts'

/** C4.7, C5.3: the token's scope satisfies the action's. Implication was compiled into the groups. */
export function requireScope({ scopes }: Principal, { groups, challenge }: ScopeRule): void {
  for (const group of groups)
    if (scopes.isDisjointFrom(group)) throw new Fault('insufficient_scope', { scope: challenge })
}
