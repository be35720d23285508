import { type BoundNames, warnOfLostNames } from '../backends/forward/kept-out.ts'
import type { OfferedOperation } from '../backends/forward/target/offered-operations.ts'
import type { OpenedBackend } from '../backends/kinds.ts'
import { reportUnknownName } from '../../base/config/problem-text.ts'
import { type KeyPath, pathText, type Problems } from '../../base/config/problems.ts'
import type { Backend } from '../../base/contracts/calls/backend.ts'
import {
  type Action,
  ActionTable,
  isReportOnly,
  type Operation,
  type ParameterBranch,
  type Route,
  type RouteNode,
} from './action-table.ts'
import {
  areDisjoint,
  parameterNames,
  type ParameterType,
  parsePathPattern,
  type PatternSegment,
  takes,
} from './path-pattern.ts'
import {
  type ActionContext,
  type CompileContext,
  compileMethod,
  NO_NAMES,
  reportUnknownScopes,
} from './compile-method.ts'
import { isSafe } from '../../base/http/head/head.ts'
import { restsMeet } from './rest-routes.ts'
import { SchemaLinker } from './linked-schemas.ts'
import type { ActionConfig, OperationConfig } from './schema.ts'

/** A configured action: its methods, its path, and its key path in the configuration. */
export interface ConfiguredRoute {
  readonly action: Action
  readonly methods: ReadonlyMap<string, Operation>
  readonly pattern: readonly PatternSegment[]
  readonly path: KeyPath
}

interface OpenRoute extends Route {
  readonly methods: Map<string, Operation>
  readonly allow: string[]
  readonly from: ConfiguredRoute[]
}

/**
 * Puts actions into the route table, and reports those that are ambiguous or cannot be reached:
 * - two actions with the same method at the same path;
 * - parameters of different types at one place that accept a common value;
 * - parameters all of whose values are literals of other actions at the same place.
 */
class RouteCompiler {
  readonly #table = new ActionTable<OpenRoute>()
  readonly #routes: { readonly route: OpenRoute; readonly configured: ConfiguredRoute }[] = []
  readonly #problems: Problems

  constructor(problems: Problems) {
    this.#problems = problems
  }

  /** Actions of one path are one route with the methods of all (C4.6), whatever names their parameters have. */
  add(configured: ConfiguredRoute): void {
    const { action, pattern } = configured
    const route = this.#table.add(action.level, action.area, pattern, {
      methods: new Map(),
      allow: [],
      from: [],
    })
    this.#routes.push({ route, configured })
    for (const [method, operation] of configured.methods) this.#offer(route, method, operation, configured)
    route.from.push(configured)
  }

  #offer(route: OpenRoute, method: string, operation: Operation, configured: ConfiguredRoute): void {
    const other = route.from.find(({ methods }) => methods.has(method))
    if (other !== undefined) {
      const why = (there: ConfiguredRoute): string => `is offered at this path by ${this.#name(there)} too`
      this.#problems.error([...configured.path, 'methods', method], why(other))
      this.#problems.error([...other.path, 'methods', method], why(configured))
      return
    }
    route.methods.set(method, operation)
    route.allow.push(method)
    if (method !== 'GET') return
    route.methods.set('HEAD', operation)
    route.allow.push('HEAD')
  }

  /**
   * Whether calls of a path are this action's, and not those of another one with a literal there. To be called when all
   * actions are added.
   * @param segments of the whole path, in canonical form
   */
  leadsTo(action: Action, segments: readonly string[]): boolean {
    const found = this.#table.find(action.level, action.area, segments, action.level === 'b' ? 5 : 6)
    return found?.value.from.some((each) => each.action === action) === true
  }

  finish(): ActionTable<Route> {
    this.#reportRests()
    const overlaps = [...this.#table.roots].flatMap(overlapsIn)
    for (const { routes, types } of overlaps) {
      const [one, other] = routes.map(({ from }) => from[0])
      if (one && other) this.#reportOverlap(one, other, types)
    }
    if (overlaps.length === 0)
      for (const each of this.#routes) this.#reportShadow(each.route, each.configured)
    return this.#table
  }

  #reportRests(): void {
    for (const [one, other] of [...this.#table.rests.values()].flatMap(pairsOf)) {
      const [first, second] = [one.value.from[0], other.value.from[0]]
      if (first === undefined || second === undefined || !restsMeet(one, other)) continue
      const why = (there: ConfiguredRoute): string =>
        `could match the same path as ${this.#name(there)}, and both have a parameter with dots`
      const hint = 'put different literals behind or before them, or give the parameters types'
      this.#problems.error([...first.path, 'action'], why(second), hint)
      this.#problems.error([...second.path, 'action'], why(first), hint)
    }
  }

  #reportOverlap(
    one: ConfiguredRoute,
    other: ConfiguredRoute,
    [type, otherType]: readonly [ParameterType, ParameterType],
  ): void {
    const why = (there: ConfiguredRoute, ...types: readonly ParameterType[]): string =>
      `overlaps with ${this.#name(there)}: ${types.map(typeText).join(' and ')} may take the same value there`
    const hint = 'give both parameters the same type, or put different literals beside them'
    this.#problems.error([...one.path, 'action'], why(other, type, otherType), hint)
    this.#problems.error([...other.path, 'action'], why(one, otherType, type), hint)
  }

  #reportShadow(route: OpenRoute, { action, pattern, path }: ConfiguredRoute): void {
    if (pattern.some(({ kind }) => kind === 'rest')) return
    const root = this.#table.rootOf(action.level, action.area)
    const shadow = root && shadowOf(root, pattern, route)?.from[0]
    if (shadow === undefined) return
    this.#problems.error(
      [...path, 'action'],
      `can never be reached: every value of its parameters stands as a literal beside them, as in ${this.#name(shadow)}`,
    )
  }

  /** `actions[3].action (demo.yaml:41)`. */
  #name({ path }: ConfiguredRoute): string {
    const key = [...path, 'action']
    const place = this.#problems.locate(key)
    return pathText(key) + (place === undefined ? '' : ` (${place.file}:${place.line})`)
  }
}

const typeText = ({ text }: ParameterType): string =>
  text === '' ? 'a parameter without a type' : `one of type ${text}`

/** Two routes that one request could match, by parameters of different types at one place. */
interface Overlap<T> {
  readonly routes: readonly [T, T]
  readonly types: readonly [ParameterType, ParameterType]
}

function overlapsIn<T>(node: RouteNode<T>): Overlap<T>[] {
  const here = pairsOf(node.parameters).flatMap(([one, other]): Overlap<T>[] => {
    if (areDisjoint(one.type, other.type)) return []
    const routes = commonPath(one.node, other.node)
    return routes === undefined ? [] : [{ routes, types: [one.type, other.type] }]
  })
  const below = [...node.literals.values(), ...node.parameters.map((each) => each.node)]
  return [...here, ...below.flatMap(overlapsIn)]
}

const pairsOf = <E>(items: readonly E[]): (readonly [E, E])[] =>
  items.flatMap((one, index) => items.slice(index + 1).map((other) => [one, other] as const))

/** Two routes, one below each node, that a common path leads to; undefined if there is none. */
function commonPath<T>(one: RouteNode<T>, other: RouteNode<T>): readonly [T, T] | undefined {
  if (one.value !== undefined && other.value !== undefined) return [one.value, other.value]
  for (const [next, across] of commonSteps(one, other)) {
    const found = commonPath(next, across)
    if (found) return found
  }
  return undefined
}

function* commonSteps<T>(
  one: RouteNode<T>,
  other: RouteNode<T>,
): Generator<readonly [RouteNode<T>, RouteNode<T>]> {
  for (const [text, next] of one.literals) {
    const same = other.literals.get(text)
    if (same) yield [next, same]
    for (const { type, node } of other.parameters) if (takes(type, text)) yield [next, node]
  }
  for (const [text, next] of other.literals)
    for (const { type, node } of one.parameters) if (takes(type, text)) yield [node, next]
  for (const { type, node } of one.parameters)
    for (const across of other.parameters) if (!areDisjoint(type, across.type)) yield [node, across.node]
}

/** One segment of a path that is tried: a text, or any value of a type other than the literals at its place. */
type Step = string | ParameterType

/** Paths that are tried for one pattern. Nobody writes literals for more. */
const MOST_TRIED = 10_000

/**
 * A route that hides another: every path of the pattern matches literals of other routes first. Undefined if some path
 * reaches `route`. The tree must have no overlaps.
 */
function shadowOf<T>(root: RouteNode<T>, pattern: readonly PatternSegment[], route: T): T | undefined {
  const choices = pattern.map(stepsOf)
  if (choices.reduce((product, { length }) => product * length, 1) > MOST_TRIED) return undefined
  let shadow: T | undefined
  for (const path of product(choices)) {
    const reached = follow(root, path, 0)
    if (reached === route || reached === undefined) return undefined
    shadow = reached
  }
  return shadow
}

const stepsOf = (segment: PatternSegment): readonly Step[] =>
  segment.kind === 'literal' ? [segment.text] : (segment.type.values ?? [segment.type])

function* product(choices: readonly (readonly Step[])[]): Generator<readonly Step[]> {
  const [first, ...rest] = choices
  if (first === undefined) yield []
  else for (const step of first) for (const path of product(rest)) yield [step, ...path]
}

/** Walks as `ActionTable.find` does: literals first. */
function follow<T>(node: RouteNode<T>, path: readonly Step[], index: number): T | undefined {
  const step = path[index]
  if (step === undefined) return node.value
  const literal = typeof step === 'string' ? node.literals.get(step) : undefined
  const found = literal && follow(literal, path, index + 1)
  if (found !== undefined) return found
  for (const branch of node.parameters) {
    const reached = takesStep(branch, step) ? follow(branch.node, path, index + 1) : undefined
    if (reached !== undefined) return reached
  }
  return undefined
}

const takesStep = <T>({ type }: ParameterBranch<T>, step: Step): boolean =>
  typeof step === 'string' ? takes(type, step) : step.text === type.text

export interface CompiledActions {
  readonly table: ActionTable<Route>
  /** The actions by slot. */
  readonly actions: readonly Action[]
  readonly routes: readonly ConfiguredRoute[]
  readonly reportOnly: ReadonlyMap<string, Backend>
}

/** Throws nothing. The result is to be used only if no problem was reported. */
export function compileActions(
  configured: readonly ActionConfig[],
  context: CompileContext,
  problems: Problems,
): CompiledActions {
  reportAreas(context, problems)
  const routes = new RouteCompiler(problems)
  const configuredRoutes: ConfiguredRoute[] = []
  const offered = new Map<string, OfferedOperation[]>()
  const bound = boundNamesOf(configured, context)
  const schemas = new SchemaLinker(context.schemas ?? {}, problems)
  for (const [index, config] of configured.entries()) {
    const path: KeyPath = ['actions', index]
    const pattern = readPattern(config.action, [...path, 'action'], problems)
    const compiled = compileAction(
      linkedAction(config, schemas, path),
      pattern ?? [],
      configuredRoutes.length,
      { ...context, offered, bound, leadsTo: (action, segments) => routes.leadsTo(action, segments) },
      path,
      problems,
    )
    if (pattern === undefined || !Object.hasOwn(context.areas, config.area)) continue
    const route = { ...compiled, pattern, path }
    configuredRoutes.push(route)
    routes.add(route)
  }
  for (const [service, names] of bound) warnOfLostNames(service, names, problems)
  return {
    table: routes.finish(),
    actions: configuredRoutes.map(({ action }) => action),
    routes: configuredRoutes,
    reportOnly: reportOnlyAreas(context, bound, problems),
  }
}

const linkedAction = (config: ActionConfig, schemas: SchemaLinker, path: KeyPath): ActionConfig => ({
  ...config,
  methods: Object.fromEntries(
    Object.entries(config.methods).map(([method, operation]) => [
      method,
      schemas.linkOperation(operation, [...path, 'methods', method]),
    ]),
  ),
})

function reportAreas({ areas, backends, catalogue }: CompileContext, problems: Problems): void {
  for (const [area, { backend, scopes = [] }] of Object.entries(areas)) {
    if (!backends.has(backend))
      reportUnknownName(problems, ['areas', area, 'backend'], 'backend', backend, backends.keys())
    reportUnknownScopes(scopes, catalogue, ['areas', area, 'scopes'], problems)
  }
}

/** The names by which calls tell the business, by the name of the backend that sends them. */
function boundNamesOf(
  configured: readonly ActionConfig[],
  { areas, backends }: CompileContext,
): ReadonlyMap<string, BoundNames> {
  const found = new Map<string, Set<string>>()
  const add = (backend: OpenedBackend | undefined, upstream?: OperationConfig['upstream']): void => {
    if (backend?.service === undefined) return
    const names = found.get(backend.service) ?? new Set()
    for (const name of backend.boundNames?.(upstream) ?? []) names.add(name)
    found.set(backend.service, names)
  }
  for (const { area, methods } of configured)
    for (const { upstream } of Object.values(methods))
      add(backends.get(upstream?.backend ?? areas[area]?.backend ?? ''), upstream)
  for (const area of Object.values(areas)) if (isReportOnly(area)) add(backends.get(area.backend))
  return new Map([...found].map(([service, names]) => [service, { names: [...names], lost: [] }]))
}

/** The backends of calls that match no action, which report-only areas forward too. */
function reportOnlyAreas(
  { areas, backends }: CompileContext,
  bound: ReadonlyMap<string, BoundNames>,
  problems: Problems,
): ReadonlyMap<string, Backend> {
  const found = new Map<string, Backend>()
  for (const [name, area] of Object.entries(areas)) {
    const backend = isReportOnly(area) ? backends.get(area.backend) : undefined
    const names = bound.get(backend?.service ?? '') ?? NO_NAMES
    const own = backend?.forUnmatched?.(name, names, problems) ?? backend
    if (own !== undefined) found.set(name, own)
  }
  return found
}

function readPattern(text: string, path: KeyPath, problems: Problems): readonly PatternSegment[] | undefined {
  try {
    return parsePathPattern(text)
  } catch (error) {
    problems.error(path, (error as SyntaxError).message)
    return undefined
  }
}

function compileAction(
  config: ActionConfig,
  pattern: readonly PatternSegment[],
  slot: number,
  context: ActionContext,
  path: KeyPath,
  problems: Problems,
): Pick<ConfiguredRoute, 'action' | 'methods'> {
  const area = Object.hasOwn(context.areas, config.area) ? context.areas[config.area] : undefined
  if (area === undefined)
    reportUnknownName(problems, [...path, 'area'], 'area', config.area, Object.keys(context.areas))
  const action: Action = {
    slot,
    level: config.level === 'business' ? 'b' : 'f',
    area: config.area,
    name: config.action,
    parameters: parameterNames(pattern),
    isNested: pattern.length > 1 || pattern.some(({ kind }) => kind === 'rest'),
  }
  const methods = Object.entries(config.methods).map(([method, operation]) => {
    const at = [...path, 'methods', method]
    return [method, compileMethod(action, method, operation, pattern, context, at, problems)] as const
  })
  return { action, methods: new Map(methods) }
}

/** Whether its calls may change something (RFC 9110 §9.2.1), by what the configuration says of it. */
const mayChange = (method: string, operation: OperationConfig, upgrade: CompileContext['upgrade']): boolean =>
  operation.audit !== 'none' &&
  (!isSafe(operation.upstream?.method ?? method) || upgrade?.isAllowed(operation) === true)

/**
 * The scope values whose tokens may change data, for the consent page (C6.2.2): those that a changing operation
 * requires, and those that imply them. Of values that are required together (`all`), those that a read requires too do
 * not count, unless reads require all of them.
 */
export function changingScopes(
  actions: readonly ActionConfig[],
  { catalogue, upgrade }: Pick<CompileContext, 'catalogue' | 'upgrade'>,
): ReadonlySet<string> {
  const operations = actions.flatMap(({ methods }) =>
    Object.entries(methods).map(([method, operation]) => ({
      operation,
      changes: mayChange(method, operation, upgrade),
    })),
  )
  const reading = new Set(
    operations.flatMap(({ operation: { scopes }, changes }) =>
      changes ? [] : [...(scopes.any ?? []), ...(scopes.all ?? [])],
    ),
  )
  const changing = operations
    .filter(({ changes }) => changes)
    .flatMap(({ operation: { scopes } }) => {
      const { any = [], all = [] } = scopes
      const own = all.filter((value) => !reading.has(value))
      return [...any, ...(own.length > 0 ? own : all)]
    })
  return new Set(changing.flatMap((value) => [...catalogue.satisfiers(value)]))
}
