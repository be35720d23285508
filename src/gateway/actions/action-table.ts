import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import type { ExampleDescription } from '../../base/contracts/calls/api-description.ts'
import type { ActionFacts, Backend } from '../../base/contracts/calls/backend.ts'
import type { CheckDescription, CheckResult } from '../../base/contracts/calls/explanation.ts'
import type { ActionVersions } from '../../base/http/head/accept.ts'
import type { BodySchema } from '../../base/http/body/body-schema.ts'
import type { JsonPointer } from '../../base/http/body/json.ts'
import { decodeSegment, type RequestTarget } from '../../base/http/head/request-target.ts'
import type { BodyTypes } from '../../base/http/head/media-type.ts'
import type { BodyValidator } from '../../base/http/body/validate-body.ts'
import type { QueryRule } from './parameters.ts'
import { type ParameterType, type PatternSegment, takes } from './path-pattern.ts'
import { matchRest, type RestRoute, restRouteOf, restShape } from './rest-routes.ts'
import type { AreasConfig, ScopeRuleConfig } from './schema.ts'

/** A compiled scope rule (C5.3). A token satisfies it if it has a value of each group; a rule of `any` is one group. */
export interface ScopeRule {
  readonly groups: readonly ReadonlySet<string>[]
  /** The `scope` of an insufficient_scope challenge (C4.13). */
  readonly challenge: string
}

export interface BodyRule {
  readonly kind: 'none' | 'optional' | 'required'
  readonly schema: BodySchema | undefined
  readonly validate: BodyValidator | undefined
  /** Media types besides those of C7.4. */
  readonly types?: BodyTypes | undefined
}

/** A part of a request's body that the audit trail keeps (C12.2.2). */
interface KeptField {
  readonly name: string
  readonly pointer: JsonPointer
}

/** What the audit trail keeps of an operation's calls (C12.1.1). */
export interface AuditRule {
  /**
   * Which calls have a record: `each`; `upgrade`: those that upgrade their connection; `change`: those for which code of the
   * user's sends a request that is not safe.
   */
  readonly calls: 'each' | 'upgrade' | 'change'
  readonly fields: readonly KeptField[]
}

/** How the documents describe a method of an action, in addition to what the gateway does with its calls. */
export interface Documentation {
  readonly summary: string | undefined
  readonly description: string | undefined
  /** The schema of `Data`. */
  readonly data: BodySchema | undefined
  readonly examples: readonly ExampleDescription[]
  /** As `OperationDescription.scopes`. */
  readonly scopes: readonly (readonly string[])[]
}

/** One method of an action: what it requires of a call, and what it answers. */
export interface Operation {
  readonly action: Action
  readonly method: string
  /** The area's backend, or the operation's own where its `upstream` section says something different (C8.7). */
  readonly backend: Backend
  readonly facts: ActionFacts
  readonly scopes: ScopeRule
  readonly versions: ActionVersions
  readonly produces: readonly string[] | undefined
  readonly consumes: readonly string[] | undefined
  /** Whether a GET may ask for an upgrade of its connection. */
  readonly upgrade: boolean
  /** Undefined: none of its query's parameters is declared. */
  readonly query: QueryRule | undefined
  readonly body: BodyRule
  /** Undefined: its calls leave no record. */
  readonly audit: AuditRule | undefined
  /** XML names of array items (C7.5). */
  readonly items: Readonly<Record<string, string>>
  /** Undefined for an operation that the configuration does not have (decide/report-only.ts). */
  readonly documentation: Documentation | undefined
}

export interface Action {
  /** Its metric slot: its index in the compiled table. */
  readonly slot: number
  readonly level: 'b' | 'f'
  readonly area: string
  readonly name: string
  /** Names of the path parameters, from left to right. */
  readonly parameters: readonly string[]
  /** Whether its path has more than one segment. */
  readonly isNested: boolean
}

/** The methods of one path, of several actions perhaps, each with its own names for the path parameters. */
export interface Route {
  readonly methods: ReadonlyMap<string, Operation>
  /** The value of `Allow` (C4.6). Where GET is, HEAD is too. */
  readonly allow: readonly string[]
}

type AreaConfig = AreasConfig[string]

/**
 * The scope rule of a method (C5.3): its own rule, and every value that its area requires. A challenge lists the area's
 * values last (C4.13). Implication is applied here, when the configuration is loaded: a group holds every value that
 * satisfies it. The gateway and `postern access --against` both use this function, so that they cannot disagree.
 * A rule must have either `any` or `all`. Where it has both, which `compileActions` reports, only `all` is read; where
 * it has neither, no token satisfies it.
 */
export function compileScopeRule(
  { any, all }: ScopeRuleConfig,
  area: AreaConfig | undefined,
  catalogue: Catalogue,
): ScopeRule {
  const satisfiersOf = (value: string): ReadonlySet<string> => catalogue.satisfiers(value)
  const ofArea = area?.scopes ?? []
  const alternatives = any ?? []
  const groups = all?.map(satisfiersOf) ?? [
    new Set(alternatives.flatMap((value) => [...satisfiersOf(value)])),
  ]
  return {
    challenge: [...(all ?? alternatives.slice(0, 1)), ...ofArea].join(' '),
    groups: [...groups, ...ofArea.map(satisfiersOf)],
  }
}

export function satisfies(scopes: ReadonlySet<string>, { groups }: ScopeRule): boolean {
  for (const group of groups) if (!haveCommon(scopes, group)) return false
  return true
}

/** A loop over the token's few values is faster here than `isDisjointFrom`. */
function haveCommon(scopes: ReadonlySet<string>, group: ReadonlySet<string>): boolean {
  for (const value of scopes) if (group.has(value)) return true
  return false
}

export const isReportOnly = (area: AreaConfig | undefined): boolean => area?.mode === 'report-only'

/** The branch for a parameter. Parameters of one type at one place share a branch, whatever their names. */
export interface ParameterBranch<T> {
  readonly type: ParameterType
  readonly node: RouteNode<T>
}

export interface RouteNode<T> {
  readonly literals: Map<string, RouteNode<T>>
  /** The untyped parameter is last: it takes every value. */
  readonly parameters: ParameterBranch<T>[]
  value: T | undefined
}

const newNode = <T>(): RouteNode<T> => ({ literals: new Map(), parameters: [], value: undefined })

interface Match<T> {
  readonly value: T
  /** Values of the path parameters, decoded, from left to right. */
  readonly values: readonly string[]
}

const NO_VALUES: readonly string[] = Object.freeze([])

/**
 * The route table: one tree per level and area, so that a lookup costs the same with ten actions or ten thousand.
 * It matches canonical segments (C3.4) exactly, case included. A literal wins over a parameter, and both win over a rest.
 */
export class ActionTable<T> {
  readonly #roots = new Map<string, RouteNode<T>>()
  readonly #rests = new Map<string, readonly RestRoute<T>[]>()

  /** Puts `value` at a path that has none yet. @returns the value that is at the path now */
  add(level: 'b' | 'f', area: string, pattern: readonly PatternSegment[], value: T): T {
    const key = `${level}/${area}`
    const rest = restRouteOf(pattern, value)
    if (rest !== undefined) return this.#addRest(key, rest)
    let node = this.#roots.get(key)
    if (node === undefined) this.#roots.set(key, (node = newNode()))
    for (const segment of pattern) node = branch(node, segment)
    return (node.value ??= value)
  }

  #addRest(key: string, route: RestRoute<T>): T {
    if (!this.#roots.has(key)) this.#roots.set(key, newNode())
    const routes = this.#rests.get(key) ?? []
    const same = routes.find((each) => restShape(each) === restShape(route))
    if (same === undefined) this.#rests.set(key, [...routes, route])
    return (same ?? route).value
  }

  /** @param from index of the first segment below the area */
  find(level: string, area: string, segments: readonly string[], from: number): Match<T> | undefined {
    const key = `${level}/${area}`
    const root = this.#roots.get(key)
    const found = root === undefined ? undefined : walk(root, segments, from, undefined)
    if (found !== undefined || this.#rests.size === 0) return found
    for (const route of this.#rests.get(key) ?? []) {
      const values = matchRest(route, segments, from)
      if (values !== undefined) return { value: route.value, values }
    }
    return undefined
  }

  /** The routes with a rest parameter, by level and area. */
  get rests(): ReadonlyMap<string, readonly RestRoute<T>[]> {
    return this.#rests
  }

  rootOf(level: 'b' | 'f', area: string): RouteNode<T> | undefined {
    return this.#roots.get(`${level}/${area}`)
  }

  get roots(): Iterable<RouteNode<T>> {
    return this.#roots.values()
  }
}

/** Index of the area's segment in `/api/{version}/b/{business}/{area}` and `/api/{version}/f/{business}/{fund}/{area}`. */
export const AREA_AT: Readonly<Record<string, number>> = { b: 4, f: 5 }

const LEVELS: Readonly<Record<string, string>> = { b: 'business', f: 'fund' }

/** Describes the result of C4.6. */
export function explainAction(
  actions: ActionTable<Route>,
  target: RequestTarget | undefined,
  method: string,
  operation: Operation | undefined,
  { fault }: CheckResult,
): CheckDescription {
  if (target === undefined) return { facts: {}, words: 'The path is not known.' }
  if (fault === undefined && operation !== undefined) {
    const { action, backend, upgrade: websocket } = operation
    const { area, name } = action
    return {
      facts: { problem: undefined, area, action: name, backend: backend.name, websocket },
      words: `${method} of ${area}/${name}, from backend ${backend.name}.`,
    }
  }
  if (fault?.code === 'method_not_allowed') {
    const { allow = [] } = fault.facts
    return {
      facts: { problem: 'method', allowed: allow },
      words: `The action exists, and does not offer ${method}: it offers ${allow.join(', ')}.`,
    }
  }
  return explainMissing(actions, target.segments)
}

/** Why there is no action: somebody who mistyped one finds it among those that the area has at the level. */
function explainMissing(actions: ActionTable<Route>, segments: readonly string[]): CheckDescription {
  const [own, other] = segments[2] === 'f' ? (['f', 'b'] as const) : (['b', 'f'] as const)
  const level = LEVELS[segments[2] ?? '']
  const areaAt = AREA_AT[own] ?? 0
  const segment = segments[areaAt]
  if (level === undefined || segment === undefined)
    return {
      facts: { problem: 'path' },
      words:
        'No such action: the path of one begins with /api/1.0/b/{business}/ or /api/1.0/f/{business}/{fund}/.',
    }
  const area = decodeSegment(segment)
  const otherLevel = actions.find(other, segment, segments, areaAt + 1) && LEVELS[other]
  const hint = otherLevel === undefined ? '' : ` There is one at ${otherLevel} level.`
  const root = actions.rootOf(own, segment)
  if (root === undefined)
    return {
      facts: { problem: 'area', area, level, otherLevel },
      words: `No such action: there is no area ${area} at ${level} level.${hint}`,
    }
  const names = listed(root, actions.rests.get(`${own}/${segment}`) ?? [])
  return {
    facts: { problem: 'action', area, level, otherLevel },
    words: `No such action: area ${area} has none of this path at ${level} level.${hint}${names}`,
  }
}

const MOST_NAMED = 10

function listed(root: RouteNode<Route>, rests: readonly RestRoute<Route>[]): string {
  const routes = [...routesBelow(root), ...rests.map(({ value }) => value)]
  const names = [...new Set(routes.flatMap(namesOf))]
  const more = names.length > MOST_NAMED ? `, and ${names.length - MOST_NAMED} more` : ''
  return names.length === 0 ? '' : ` It has ${names.slice(0, MOST_NAMED).join(', ')}${more}.`
}

const namesOf = ({ methods }: Route): readonly string[] =>
  [...methods.values()].map(({ action }) => action.name)

function routesBelow({ value, literals, parameters }: RouteNode<Route>): readonly Route[] {
  const below = [...literals.values(), ...parameters.map(({ node }) => node)]
  return [...(value === undefined ? [] : [value]), ...below.flatMap(routesBelow)]
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
