import type { ClientsBody } from '../backends/templates/check-templates.ts'
import { compileTypes } from '../backends/forward/compile-answers.ts'
import type { BoundNames } from '../backends/forward/kept-out.ts'
import type { OfferedOperation, PublicSegment } from '../backends/forward/target/offered-operations.ts'
import type { AddedUpgrade, OpenedBackend } from '../backends/kinds.ts'
import { reportUnknownName } from '../../base/config/problem-text.ts'
import type { KeyPath, Problems } from '../../base/config/problems.ts'
import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import { SCOPE } from '../../base/config/scopes/schema.ts'
import type { Backend } from '../../base/contracts/calls/backend.ts'
import { isBodiless, isSafe } from '../../base/http/head/head.ts'
import { type JsonPointer, parseJsonPointer } from '../../base/http/body/json.ts'
import { type BodyTypes, isParsedType } from '../../base/http/head/media-type.ts'
import { compileValidator } from '../../base/http/body/validate-body.ts'
import { Fault } from '../../base/kernel/faults.ts'
import {
  type Action,
  type AuditRule,
  type BodyRule,
  compileScopeRule,
  isReportOnly,
  type Operation,
} from './action-table.ts'
import { type PatternSegment, takes } from './path-pattern.ts'
import { compileDocumentation } from './documentation.ts'
import type { NamedSchemas } from './linked-schemas.ts'
import { compileQueryRule, type QueryRule } from './parameters.ts'
import type { AreasConfig, BodyRuleConfig, OperationConfig, ScopeRuleConfig } from './schema.ts'

export interface CompileContext {
  readonly catalogue: Catalogue
  readonly backends: ReadonlyMap<string, OpenedBackend>
  readonly areas: AreasConfig
  /** The schemas that `#/schemas/NAME` names. */
  readonly schemas?: NamedSchemas
  /** Whether tokens of several issuers are accepted (C11.2). */
  readonly severalIssuers?: boolean
  /** Undefined: no operation may be upgraded. */
  readonly upgrade: AddedUpgrade | undefined
}

export interface ActionContext extends CompileContext {
  /** The operations that each backend answers, by the backend's name. Filled as they are compiled. */
  readonly offered: Map<string, OfferedOperation[]>
  /** The names by which calls tell the business, by the name of the backend that sends them. */
  readonly bound: ReadonlyMap<string, BoundNames>
  /** Whether a call of these segments is of this action. To be called when all actions are known. */
  readonly leadsTo: (action: Action, segments: readonly string[]) => boolean
}

const NO_BODY: BodyRule = { kind: 'none', schema: undefined, validate: undefined }

export function compileMethod(
  action: Action,
  method: string,
  config: OperationConfig,
  pattern: readonly PatternSegment[],
  context: ActionContext,
  path: KeyPath,
  problems: Problems,
): Operation {
  const { catalogue, areas } = context
  const query = compileQueryRule(config.parameters, [...path, 'parameters'], problems)
  const backend = backendOf(action, method, config, { pattern, query }, context, path, problems) ?? ABSENT
  const versions = [...new Set(config.versions)].sort((a, b) => a - b)
  const defaultVersion = config.defaultVersion ?? versions[0] ?? 1
  if (!versions.includes(defaultVersion))
    problems.error([...path, 'defaultVersion'], `is not one of the versions ${versions.join(', ')}`)
  const upgrade = context.upgrade?.isAllowed(config) ?? false
  const safe = isSafe(method) && isSafe(config.upstream?.method ?? method)
  checkBodyKeys(method, config, path, problems)
  if (upgrade)
    context.upgrade?.check({ method, upstreamMethod: config.upstream?.method, backend, path }, problems)
  return {
    action,
    method,
    backend,
    facts: {
      area: action.area,
      action: action.name,
      level: action.level === 'b' ? 'business' : 'fund',
      versioned: versions.length > 1 || versions[0] !== 1,
      safe,
      produces: config.produces,
    },
    scopes: compileScopeRule(
      checkedRule(config.scopes, catalogue, [...path, 'scopes'], problems),
      areas[action.area],
      catalogue,
    ),
    versions: { versions, defaultVersion },
    produces: config.produces,
    consumes: config.consumes,
    upgrade,
    query,
    body: compileBody(config.body, [...path, 'body'], problems),
    audit: compileAuditRule(config, { safe, upgrade, backend }, path, problems),
    items: config.items,
    documentation: compileDocumentation(
      config,
      { versions, defaultVersion, areaScopes: areas[action.area]?.scopes ?? [], pattern, query },
      path,
      problems,
    ),
  }
}

function checkBodyKeys(method: string, config: OperationConfig, path: KeyPath, problems: Problems): void {
  if (config.body && config.consumes)
    problems.error(
      [...path, 'consumes'],
      'streams the body through unparsed, so it cannot be used together with body',
    )
  for (const key of ['consumes', 'body'] as const)
    if (config[key] && method === 'GET')
      problems.error([...path, key], 'is not for GET: the body of a GET has no meaning')
  const sent = config.upstream?.method
  if (sent !== undefined && isBodiless(sent) && (config.body ?? config.consumes))
    problems.error([...path, 'upstream', 'method'], `is ${sent}, and the body of a ${sent} has no meaning`)
}

export const NO_NAMES: BoundNames = { names: [], lost: [] }

/** Stands in for a backend that does not exist, so that the other problems of a method are reported too. */
const ABSENT: Backend = {
  name: '',
  format: 'value',
  payload: 'bare',
  answer: () => Promise.reject(new Fault('internal')),
  upgrade: { isAsked: () => false, take: () => Promise.reject(new Fault('internal')) },
  close: () => Promise.resolve(),
}

/**
 * The backend that answers an operation: the area's or its own, with the changes of its `upstream` section (C8.7). Undefined
 * if there is none; if the area has none, the problem is reported at the area.
 */
function backendOf(
  own: Action,
  method: string,
  { upstream, produces, body, consumes }: OperationConfig,
  { pattern, query }: { readonly pattern: readonly PatternSegment[]; readonly query: QueryRule | undefined },
  { areas, backends, offered, bound, leadsTo, severalIssuers = false }: ActionContext,
  path: KeyPath,
  problems: Problems,
): Backend | undefined {
  const { level, area, name: action, parameters, isNested } = own
  const name = upstream?.backend ?? areas[area]?.backend ?? ''
  const backend = backends.get(name)
  const at = [...path, 'upstream']
  if (backend === undefined) {
    if (upstream?.backend !== undefined)
      reportUnknownName(problems, [...at, 'backend'], 'backend', name, backends.keys())
    return undefined
  }
  const calls = {
    described: `${area}/${action}`,
    level: level === 'b' ? 'business' : 'fund',
    parameters,
    rest: restName(pattern),
    isNested,
    reportOnly: isReportOnly(areas[area]),
    body: clientsBody(body, consumes),
    severalIssuers,
    query: query?.parameters,
  } as const
  const all = offered.get(name) ?? []
  offered.set(name, all)
  if (backend.forOperation)
    return backend.forOperation(
      {
        calls,
        method,
        producesOwn: produces !== undefined,
        upstream,
        bound: bound.get(backend.service ?? name) ?? NO_NAMES,
        consumes,
        at: path,
        offered: {
          operation: {
            level: calls.level,
            area,
            action,
            pattern: pattern.map(publicSegment),
            isAt: ({ segments }) => leadsTo(own, segments),
          },
          all,
        },
      },
      problems,
    )
  reportForwardingKeys(upstream, name, at, problems)
  return backend
}

function clientsBody(body: BodyRuleConfig | undefined, consumes: unknown): ClientsBody {
  if (consumes !== undefined) return { kind: 'streamed' }
  return body === undefined
    ? { kind: 'none' }
    : { kind: 'read', required: body.required, schema: body.schema }
}

function reportForwardingKeys(
  upstream: OperationConfig['upstream'],
  backend: string,
  at: KeyPath,
  problems: Problems,
): void {
  for (const key of Object.keys(upstream ?? {}))
    if (key !== 'backend')
      problems.error(
        [...at, key],
        `is for backends of kind http and stream, and ${backend} is of another kind`,
      )
}

const restName = (pattern: readonly PatternSegment[]): string | undefined =>
  pattern.flatMap((segment) => (segment.kind === 'rest' ? [segment.name] : []))[0]

const publicSegment = (segment: PatternSegment): PublicSegment =>
  segment.kind === 'literal'
    ? segment
    : { kind: segment.kind, name: segment.name, takes: (value) => takes(segment.type, value) }

function compileBody(config: BodyRuleConfig | undefined, path: KeyPath, problems: Problems): BodyRule {
  if (config === undefined) return NO_BODY
  const { schema } = config
  const types = compileBodyTypes(config.types, [...path, 'types'], problems)
  const rule = { kind: config.required ? 'required' : 'optional', schema, types } as const
  return { ...rule, validate: schema && compileValidator(schema) }
}

function compileBodyTypes(
  config: BodyRuleConfig['types'] = {},
  path: KeyPath,
  problems: Problems,
): BodyTypes | undefined {
  for (const name of Object.keys(config))
    if (isParsedType(name.toLowerCase()))
      problems.error([...path, name], 'is a type that all bodies may have')
  return compileTypes(config, path, problems)
}

function checkedRule(
  config: ScopeRuleConfig,
  catalogue: Catalogue,
  path: KeyPath,
  problems: Problems,
): ScopeRuleConfig {
  if ((config.any === undefined) === (config.all === undefined))
    problems.error(path, 'needs either any or all, so that no action is open to every token')
  for (const key of ['any', 'all'] as const)
    reportUnknownScopes(config[key] ?? [], catalogue, [...path, key], problems)
  return config
}

export function reportUnknownScopes(
  values: readonly string[],
  catalogue: Catalogue,
  path: KeyPath,
  problems: Problems,
): void {
  for (const [index, value] of values.entries())
    if (!catalogue.has(value)) reportUnknownName(problems, [...path, index], SCOPE, value, catalogue.values)
}

interface Nature {
  /** Whether the client's method and the one that its upstream is sent are both safe. */
  readonly safe: boolean
  readonly upgrade: boolean
  readonly backend: Backend
}

/**
 * Which calls of a method the audit trail records, and what it keeps of their bodies (C12.1.1, C12.2.2). Undefined: its
 * calls leave no record. Reports keys that do not go together.
 */
function compileAuditRule(
  config: OperationConfig,
  nature: Nature,
  path: KeyPath,
  problems: Problems,
): AuditRule | undefined {
  checkKeys(config, path, problems)
  const calls = config.audit === 'none' ? undefined : whichCalls(config, nature)
  if (calls === undefined) return undefined
  return { calls, fields: (config.auditFields ?? []).map((name) => ({ name, pointer: pointerOf(name) })) }
}

function whichCalls(
  { audit }: OperationConfig,
  { safe, upgrade, backend }: Nature,
): AuditRule['calls'] | undefined {
  if (!safe || audit === 'intent') return 'each'
  if (upgrade) return 'upgrade'
  return backend.sendsAnything === true ? 'change' : undefined
}

const pointerOf = (name: string): JsonPointer => (name.startsWith('/') ? parseJsonPointer(name) : [name])

function checkKeys(
  { audit, auditReason, auditFields, body, consumes }: OperationConfig,
  path: KeyPath,
  problems: Problems,
): void {
  if (audit === 'none' && auditReason === undefined)
    problems.error([...path, 'auditReason'], 'is missing: `audit: none` needs the reason')
  if (audit !== 'none' && auditReason !== undefined)
    problems.error([...path, 'auditReason'], 'has no use without `audit: none`')
  if (auditFields === undefined) return
  const at = [...path, 'auditFields']
  if (audit === 'none') problems.error(at, 'has no use with `audit: none`')
  else if (consumes !== undefined)
    problems.error(at, 'is for bodies that are parsed, and `consumes` streams them')
  else if (body === undefined) problems.error(at, 'has no use without a `body`')
}
