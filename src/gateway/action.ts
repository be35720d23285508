import type { ActionFacts, Backend } from '../contracts/backend.ts'
import type { ActionVersions } from '../http/accept.ts'
import type { BodySchema } from '../http/body-schema.ts'
import type { BodyValidator } from '../http/validate-body.ts'

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
