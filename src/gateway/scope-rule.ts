import type { Catalogue } from '../scopes/catalogue.ts'
import type { ScopeRule } from './action.ts'
import type { AreasConfig, ScopeRuleConfig } from './config.ts'

type AreaConfig = AreasConfig[string]

/**
 * What a method of an action needs of a token's scope (C5.3): its own rule, and all that its area needs, which stands
 * behind it in a challenge (C4.13). Implication is applied here, at load: a rule holds every value that satisfies it.
 * The gateway, and `postern diff`, know of a rule through this function alone.
 */
export function compileScopeRule(
  { any, all }: ScopeRuleConfig,
  area: AreaConfig | undefined,
  catalogue: Catalogue,
): ScopeRule {
  const values = any ?? all ?? []
  const needed = area?.scopes ?? []
  const satisfiers = values.map((value) => catalogue.satisfiers(value))
  const groups = all ? satisfiers : [new Set(satisfiers.flatMap((set) => [...set]))]
  return {
    challenge: [...(all ?? values.slice(0, 1)), ...needed].join(' '),
    groups: [...groups, ...needed.map((value) => catalogue.satisfiers(value))],
  }
}

/** Whether a token's values satisfy a rule (C4.7). */
export function satisfies(scopes: ReadonlySet<string>, { groups }: ScopeRule): boolean {
  for (const group of groups) if (!haveCommon(scopes, group)) return false
  return true
}

/** Goes over the token's few values; `isDisjointFrom` costs as much as all of them. */
function haveCommon(scopes: ReadonlySet<string>, group: ReadonlySet<string>): boolean {
  for (const value of scopes) if (group.has(value)) return true
  return false
}

/** Whether an area refuses nobody: its calls reach the upstream whatever the token (src/gateway/report-only.ts). */
export const isReportOnly = (area: AreaConfig | undefined): boolean => area?.mode === 'report-only'
