import type { Principal } from '../../contracts/principal.ts'
import { Fault } from '../../kernel/faults.ts'
import type { ScopeRule } from '../action.ts'
import { satisfies } from '../scope-rule.ts'

/** C4.7: the token's scope satisfies the action's. */
export function requireScope({ scopes }: Principal, rule: ScopeRule): void {
  if (!satisfies(scopes, rule)) throw new Fault('insufficient_scope', { scope: rule.challenge })
}
