import type { Report, KeyPath } from '../config/report.ts'
import type { Backend } from '../contracts/backend.ts'
import { compileValidator } from '../http/validate-body.ts'
import type { Catalogue } from '../scopes/catalogue.ts'
import { ActionTable } from './action-table.ts'
import type { Action, BodyRule, Operation, ScopeRule } from './action.ts'
import type { ActionConfig, AreasConfig, BodyRuleConfig, OperationConfig, ScopeRuleConfig } from './config.ts'
import { parsePathPattern, type PatternSegment } from './path-pattern.ts'

export interface CompiledActions {
  readonly table: ActionTable<Action>
  /** By slot. */
  readonly actions: readonly Action[]
  /** The backends of report-only areas, by area. */
  readonly reportOnly: ReadonlyMap<string, Backend>
}

interface Known {
  readonly catalogue: Catalogue
  readonly backends: ReadonlyMap<string, Backend>
  readonly areas: AreasConfig
}

const NO_BODY: BodyRule = { kind: 'none', schema: undefined, validate: undefined }

/** Compiles every action, or reports what is wrong with each (design: configuration). */
export function compileActions(
  configured: readonly ActionConfig[],
  known: Known,
  report: Report,
): CompiledActions {
  reportAreas(known, report)
  const table = new ActionTable<Action>()
  const actions: Action[] = []
  for (const [index, config] of configured.entries()) {
    const path: KeyPath = ['actions', index]
    const pattern = readPattern(config.action, [...path, 'action'], report)
    const action = compileAction(config, actions.length, known, path, report)
    if (pattern === undefined || action === undefined) continue
    if (table.add(action.level, config.area, pattern, action)) actions.push(action)
    else
      report.error(
        [...path, 'action'],
        'stands a second time at this level and area; it could never be reached',
      )
  }
  return { table, actions, reportOnly: reportOnlyAreas(known) }
}

function reportAreas({ areas, backends, catalogue }: Known, report: Report): void {
  for (const [area, { backend, scopes = [] }] of Object.entries(areas)) {
    if (!backends.has(backend))
      report.error(
        ['areas', area, 'backend'],
        `names no backend; there are ${[...backends.keys()].join(', ')}`,
      )
    reportUnknown(scopes, catalogue, ['areas', area, 'scopes'], report)
  }
}

function reportOnlyAreas({ areas, backends }: Known): ReadonlyMap<string, Backend> {
  const open = new Map<string, Backend>()
  for (const [area, { mode, backend: name }] of Object.entries(areas)) {
    const backend = mode === 'report-only' ? backends.get(name) : undefined
    if (backend !== undefined) open.set(area, backend)
  }
  return open
}

function reportUnknown(values: readonly string[], catalogue: Catalogue, path: KeyPath, report: Report): void {
  for (const value of values)
    if (!catalogue.has(value)) report.error(path, `names the scope ${value}, which is not in the catalogue`)
}

function readPattern(text: string, path: KeyPath, report: Report): readonly PatternSegment[] | undefined {
  try {
    return parsePathPattern(text)
  } catch (error) {
    report.error(path, (error as SyntaxError).message)
    return undefined
  }
}

function compileAction(
  config: ActionConfig,
  slot: number,
  known: Known,
  path: KeyPath,
  report: Report,
): Action | undefined {
  const area = Object.hasOwn(known.areas, config.area) ? known.areas[config.area] : undefined
  if (area === undefined) {
    report.error([...path, 'area'], `names no area; there are ${Object.keys(known.areas).join(', ')}`)
    return undefined
  }
  const backend = known.backends.get(area.backend)
  if (backend === undefined) return undefined // told with the area
  const methods = new Map<string, Operation>()
  const action: Action = {
    slot,
    level: config.level === 'business' ? 'b' : 'f',
    area: config.area,
    name: config.action,
    backend,
    methods,
    allow: allowOf(config),
  }
  for (const [method, operation] of Object.entries(config.methods))
    methods.set(
      method,
      compileOperation(action, method, operation, known, [...path, 'methods', method], report),
    )
  const get = methods.get('GET')
  if (get) methods.set('HEAD', get)
  return action
}

/** What Allow lists (C4.6): HEAD wherever GET is. */
const allowOf = (config: ActionConfig): readonly string[] =>
  Object.keys(config.methods).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))

function compileOperation(
  action: Action,
  method: string,
  config: OperationConfig,
  { catalogue, areas }: Known,
  path: KeyPath,
  report: Report,
): Operation {
  const versions = [...new Set(config.versions)].sort((a, b) => a - b)
  const defaultVersion = config.defaultVersion ?? versions[0] ?? 1
  if (!versions.includes(defaultVersion))
    report.error([...path, 'defaultVersion'], `is not one of the versions ${versions.join(', ')}`)
  if (config.body && config.consumes)
    report.error([...path, 'consumes'], 'streams the body through unparsed, so it cannot stand beside body')
  for (const key of ['consumes', 'body'] as const)
    if (config[key] && method === 'GET')
      report.error([...path, key], 'is not for GET, whose body means nothing')
  const websocket = config.websocket === true
  if (websocket && method !== 'GET') report.error([...path, 'websocket'], 'is for GET only (RFC 6455 §4.1)')
  if (websocket && action.backend.upgrade === undefined)
    report.error([...path, 'websocket'], 'needs a backend of kind stream')
  return {
    action,
    method,
    facts: {
      area: action.area,
      action: action.name,
      level: action.level === 'b' ? 'business' : 'fund',
      versioned: versions.length > 1 || versions[0] !== 1,
      produces: config.produces,
    },
    scopes: withArea(
      compileScopeRule(config.scopes, catalogue, [...path, 'scopes'], report),
      areas[action.area]?.scopes ?? [],
      catalogue,
    ),
    versions: { versions, defaultVersion },
    produces: config.produces,
    consumes: config.consumes,
    websocket,
    body: compileBody(config.body, [...path, 'body', 'schema'], report),
    items: config.items,
  }
}

function compileBody(config: BodyRuleConfig | undefined, path: KeyPath, report: Report): BodyRule {
  if (config === undefined) return NO_BODY
  const kind = config.required ? 'required' : 'optional'
  if (config.schema === undefined) return { kind, schema: undefined, validate: undefined }
  const schema = config.schema
  try {
    return { kind, schema, validate: compileValidator(schema) }
  } catch (error) {
    report.error(path, (error as Error).message)
    return { kind, schema, validate: undefined }
  }
}

/** C5.3: implication is applied here, at load: a rule holds every value that satisfies it. */
function compileScopeRule(
  config: ScopeRuleConfig,
  catalogue: Catalogue,
  path: KeyPath,
  report: Report,
): ScopeRule {
  const values = config.any ?? config.all ?? []
  if ((config.any === undefined) === (config.all === undefined))
    report.error(path, 'needs either any or all, so that no action is open to every token')
  reportUnknown(values, catalogue, path, report)
  const satisfiers = values.map((value) => catalogue.satisfiers(value))
  return config.all
    ? { challenge: values.join(' '), groups: satisfiers }
    : { challenge: values[0] ?? '', groups: [new Set(satisfiers.flatMap((set) => [...set]))] }
}

/** What an area needs is needed as all-of, beside the action's own rule, and stands behind it in a challenge (C4.13). */
function withArea(
  { groups, challenge }: ScopeRule,
  needed: readonly string[],
  catalogue: Catalogue,
): ScopeRule {
  return {
    challenge: [challenge, ...needed].join(' '),
    groups: [...groups, ...needed.map((value) => catalogue.satisfiers(value))],
  }
}
