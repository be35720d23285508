import type { ActionFacts, Backend } from '../contracts/backend.ts'
import type { ActionVersions } from '../http/accept.ts'
import type { BodySchema } from '../http/body-schema.ts'
import type { BodyValidator } from '../http/validate-body.ts'
import type { Catalogue } from '../scopes/catalogue.ts'
import type { AreasConfig, ScopeRuleConfig } from './config.ts'
import { decodeSegment } from '../http/request-target.ts'
import { takes, type ParameterType, type PatternSegment } from './path-pattern.ts'

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

/** A parameter's branch: of one place and one type there is one, however the parameter is called. */
export interface ParameterBranch<T> {
  readonly type: ParameterType
  readonly node: RouteNode<T>
}

export interface RouteNode<T> {
  readonly literals: Map<string, RouteNode<T>>
  /** Typed ones come before the untyped one. */
  readonly parameters: ParameterBranch<T>[]
  value: T | undefined
}

const newNode = <T>(): RouteNode<T> => ({ literals: new Map(), parameters: [], value: undefined })

export interface Match<T> {
  readonly value: T
  /** The parameters' values, decoded, from left to right. */
  readonly values: readonly string[]
}

const NO_VALUES: readonly string[] = Object.freeze([])

/**
 * The route table: one tree per level and area, so that a lookup costs the same with ten actions or ten thousand.
 * It sees canonical segments only (C3.4), and matches them exactly, case included. A literal wins over a parameter.
 */
export class ActionTable<T> {
  readonly #roots = new Map<string, RouteNode<T>>()

  /** Puts `value` at a path, unless there is one: then that one is answered. */
  add(level: 'b' | 'f', area: string, pattern: readonly PatternSegment[], value: T): T {
    const key = `${level}/${area}`
    let node = this.#roots.get(key)
    if (node === undefined) this.#roots.set(key, (node = newNode()))
    for (const segment of pattern) node = branch(node, segment)
    return (node.value ??= value)
  }

  /** `from` is the index of the first segment below the area. */
  find(level: string, area: string, segments: readonly string[], from: number): Match<T> | undefined {
    const root = this.#roots.get(`${level}/${area}`)
    return root === undefined ? undefined : walk(root, segments, from, undefined)
  }

  rootOf(level: 'b' | 'f', area: string): RouteNode<T> | undefined {
    return this.#roots.get(`${level}/${area}`)
  }

  get roots(): Iterable<RouteNode<T>> {
    return this.#roots.values()
  }
}

function branch<T>(node: RouteNode<T>, segment: PatternSegment): RouteNode<T> {
  if (segment.kind === 'literal') {
    const next = node.literals.get(segment.text) ?? newNode<T>()
    node.literals.set(segment.text, next)
    return next
  }
  const { type } = segment
  const same = node.parameters.find((each) => each.type.text === type.text)
  if (same) return same.node
  const added = { type, node: newNode<T>() }
  node.parameters.push(added)
  node.parameters.sort((a, b) => Number(a.type.test === undefined) - Number(b.type.test === undefined))
  return added.node
}

interface Bound {
  readonly value: string
  readonly before: Bound | undefined
}

function walk<T>(
  node: RouteNode<T>,
  segments: readonly string[],
  index: number,
  bound: Bound | undefined,
): Match<T> | undefined {
  const segment = segments[index]
  if (segment === undefined)
    return node.value === undefined ? undefined : { value: node.value, values: collect(bound) }
  const literal = node.literals.get(segment)
  const found = literal && walk(literal, segments, index + 1, bound)
  if (found || node.parameters.length === 0) return found
  return walkParameters(node, decodeSegment(segment), segments, index, bound)
}

function walkParameters<T>(
  node: RouteNode<T>,
  value: string,
  segments: readonly string[],
  index: number,
  before: Bound | undefined,
): Match<T> | undefined {
  for (const { type, node: next } of node.parameters) {
    if (!takes(type, value)) continue
    const found = walk(next, segments, index + 1, { value, before })
    if (found) return found
  }
  return undefined
}

function collect(bound: Bound | undefined): readonly string[] {
  if (bound === undefined) return NO_VALUES
  const values: string[] = []
  for (let at: Bound | undefined = bound; at; at = at.before) values.unshift(at.value)
  return values
}
