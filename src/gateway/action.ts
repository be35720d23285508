import type { ActionFacts, Backend } from '../contracts/backend.ts'
import type { ActionVersions } from '../http/accept.ts'
import type { BodySchema } from '../http/body-schema.ts'
import type { BodyValidator } from '../http/validate-body.ts'
import type { Catalogue } from '../scopes/catalogue.ts'
import type { AreasConfig, ScopeRuleConfig } from './config.ts'

/** A compiled scope rule: satisfied if the token has a value of each group (one group for any-of, C5.3). */
export interface ScopeRule {
  readonly groups: readonly ReadonlySet<string>[]
  /** The `scope` of an insufficient_scope challenge (C4.13). */
  readonly challenge: string
}

export interface BodyRule {
  readonly kind: 'none' | 'optional' | 'required'
  readonly schema: BodySchema | undefined
  readonly validate: BodyValidator | undefined
}

/** What one method of an action needs and gives. */
export interface Operation {
  readonly action: Action
  readonly method: string
  readonly facts: ActionFacts
  readonly scopes: ScopeRule
  readonly versions: ActionVersions
  readonly produces: readonly string[] | undefined
  readonly consumes: readonly string[] | undefined
  /** Whether a GET may ask for a websocket. */
  readonly websocket: boolean
  readonly body: BodyRule
  /** XML names of array items (C7.5). */
  readonly items: Readonly<Record<string, string>>
}

export interface Action {
  /** Its metric slot: its index in the compiled table. */
  readonly slot: number
  readonly level: 'b' | 'f'
  readonly area: string
  readonly name: string
  readonly backend: Backend
  /** The names of its path's parameters, from left to right. */
  readonly parameters: readonly string[]
}

/** What one path offers: the methods of all actions that are configured for it, however they call its parameters. */
export interface Route {
  readonly methods: ReadonlyMap<string, Operation>
  /** What Allow lists (C4.6): HEAD wherever GET is. */
  readonly allow: readonly string[]
}

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
