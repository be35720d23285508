import { reportUnknownName } from '../config/problem-text.ts'
import type { Problems, KeyPath } from '../config/problems.ts'
import type { OfferedOperation } from '../backends/forward/offered-operations.ts'
import type { Backend } from '../contracts/backend.ts'
import { type Action, type ActionTable, isReportOnly, type Route } from './action-table.ts'
import {
  type ActionContext,
  type CompileContext,
  compileOperation,
  reportUnknownScopes,
} from './compile-operation.ts'
import { RouteCompiler, type ConfiguredRoute } from './compile-routes.ts'
import type { ActionConfig } from './schema.ts'
import { parameterNames, parsePathPattern, type PatternSegment } from './path-pattern.ts'

export interface CompiledActions {
  readonly table: ActionTable<Route>
  /** Each stands at its slot. */
  readonly actions: readonly Action[]
  /** The same, with their paths and methods. */
  readonly routes: readonly ConfiguredRoute[]
  /** The backends of report-only areas, by area. */
  readonly reportOnly: ReadonlyMap<string, Backend>
}

/**
 * Compiles every action, and reports every problem of the areas and of the actions. Throws nothing. The result is to be
 * used only if nothing was reported.
 */
export function compileActions(
  configured: readonly ActionConfig[],
  context: CompileContext,
  problems: Problems,
): CompiledActions {
  reportAreas(context, problems)
  const routes = new RouteCompiler(problems)
  const configuredRoutes: ConfiguredRoute[] = []
  const offered = new Map<string, OfferedOperation[]>()
  for (const [index, config] of configured.entries()) {
    const path: KeyPath = ['actions', index]
    const pattern = readPattern(config.action, [...path, 'action'], problems)
    const compiled = compileAction(
      config,
      pattern ?? [],
      configuredRoutes.length,
      { ...context, offered, routes },
      path,
      problems,
    )
    if (pattern === undefined || !Object.hasOwn(context.areas, config.area)) continue
    const route = { ...compiled, pattern, path }
    configuredRoutes.push(route)
    routes.add(route)
  }
  return {
    table: routes.finish(),
    actions: configuredRoutes.map(({ action }) => action),
    routes: configuredRoutes,
    reportOnly: reportOnlyAreas(context, problems),
  }
}

function reportAreas({ areas, backends, catalogue }: CompileContext, problems: Problems): void {
  for (const [area, { backend, scopes = [] }] of Object.entries(areas)) {
    if (!backends.has(backend))
      reportUnknownName(problems, ['areas', area, 'backend'], 'backend', backend, backends.keys())
    reportUnknownScopes(scopes, catalogue, ['areas', area, 'scopes'], problems)
  }
}

/** The backends of calls that match no action, which report-only areas forward too. */
function reportOnlyAreas(
  { areas, backends }: CompileContext,
  problems: Problems,
): ReadonlyMap<string, Backend> {
  const found = new Map<string, Backend>()
  for (const [name, area] of Object.entries(areas)) {
    const backend = isReportOnly(area) ? backends.get(area.backend) : undefined
    backend?.checkUnmatched?.(name, problems)
    if (backend !== undefined) found.set(name, backend)
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
    isNested: pattern.length > 1,
  }
  const methods = Object.entries(config.methods).map(([method, operation]) => {
    const at = [...path, 'methods', method]
    return [method, compileOperation(action, method, operation, pattern, context, at, problems)] as const
  })
  return { action, methods: new Map(methods) }
}
