import { type KeyPath, pathText, type Report } from '../config/report.ts'
import { ActionTable } from './action-table.ts'
import type { Action, Operation, Route } from './action.ts'
import type { ParameterType, PatternSegment } from './path-pattern.ts'
import { overlapsIn, shadowOf } from './route-conflicts.ts'

/** An action of the configuration: what it offers, where, and where that stands in the file. */
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
 * Puts actions into the route table, and reports those that could not be reached or would be reached by some requests
 * only by chance: two that offer one method at one path, parameters of different types that take the same values at one
 * place, and parameters whose every value stands as a literal beside them.
 */
export class RouteCompiler {
  readonly #table = new ActionTable<OpenRoute>()
  readonly #routes: { readonly route: OpenRoute; readonly configured: ConfiguredRoute }[] = []
  readonly #report: Report

  constructor(report: Report) {
    this.#report = report
  }

  /** Actions of one path, however they call its parameters, are one route with the methods of all (C4.6). */
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
      this.#report.error([...configured.path, 'methods', method], why(other))
      this.#report.error([...other.path, 'methods', method], why(configured))
      return
    }
    route.methods.set(method, operation)
    route.allow.push(method)
    if (method !== 'GET') return
    route.methods.set('HEAD', operation)
    route.allow.push('HEAD')
  }

  finish(): ActionTable<Route> {
    const overlaps = [...this.#table.roots].flatMap(overlapsIn)
    for (const { routes, types } of overlaps) {
      const [one, other] = routes.map(({ from }) => from[0])
      if (one && other) this.#tellOverlap(one, other, types)
    }
    if (overlaps.length === 0) for (const each of this.#routes) this.#tellShadow(each.route, each.configured)
    return this.#table
  }

  #tellOverlap(
    one: ConfiguredRoute,
    other: ConfiguredRoute,
    [type, otherType]: readonly [ParameterType, ParameterType],
  ): void {
    const why = (there: ConfiguredRoute, ...types: readonly ParameterType[]): string =>
      `overlaps with ${this.#name(there)}: ${types.map(typeText).join(' and ')} may take the same value there`
    const hint = 'give both parameters the same type, or put different literals beside them'
    this.#report.error([...one.path, 'action'], why(other, type, otherType), hint)
    this.#report.error([...other.path, 'action'], why(one, otherType, type), hint)
  }

  #tellShadow(route: OpenRoute, { action, pattern, path }: ConfiguredRoute): void {
    const root = this.#table.rootOf(action.level, action.area)
    const shadow = root && shadowOf(root, pattern, route)?.from[0]
    if (shadow === undefined) return
    this.#report.error(
      [...path, 'action'],
      `can never be reached: every value of its parameters stands as a literal beside them, as in ${this.#name(shadow)}`,
    )
  }

  /** `actions[3].action (demo.yaml:41)`. */
  #name({ path }: ConfiguredRoute): string {
    const key = [...path, 'action']
    const place = this.#report.locate(key)
    return pathText(key) + (place === undefined ? '' : ` (${place.file}:${place.line})`)
  }
}

const typeText = ({ text }: ParameterType): string =>
  text === '' ? 'a parameter without a type' : `one of type ${text}`
