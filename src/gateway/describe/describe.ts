import { createHash } from 'node:crypto'
import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import type {
  AnswerDescription,
  ApiDescription,
  AreaDescription,
  BodyDescription,
  MediaTypeDescription,
  OperationDescription,
  ParameterDescription,
  ScopeDescription,
} from '../../base/contracts/calls/api-description.ts'
import type { Backend, Payload, PossibleAnswers } from '../../base/contracts/calls/backend.ts'
import { type Format, PLAIN_TYPES, vendorType } from '../../base/http/head/accept.ts'
import type { BodySchema } from '../../base/http/body/body-schema.ts'
import { MEDIA_TYPE_OF } from '../../base/http/head/media-type.ts'
import { isReportOnly, type Operation } from '../actions/action-table.ts'
import type { PatternSegment } from '../actions/path-pattern.ts'
import { API_VERSION } from '../decide/checks.ts'
import type { CompiledActions, ConfiguredRoute } from '../actions/compile-actions.ts'
import type { AreasConfig } from '../actions/schema.ts'
import { faultFinder, type Limits, type OperationFacts } from './faults.ts'
import type { OpenapiConfig } from '../actions/description-schema.ts'

export interface Described {
  readonly actions: Pick<CompiledActions, 'routes'>
  readonly areas: AreasConfig
  readonly catalogue: Catalogue
  readonly openapi: OpenapiConfig | undefined
  readonly baseUrl: string
  readonly vendor: string
  readonly defaultFormat: Format
  /** The most bytes of a body that is parsed. */
  readonly bodyLimit: number
  readonly limits: Limits
}

const TITLE = 'Data API'

export function describeApi(described: Described): ApiDescription {
  const { openapi, baseUrl } = described
  const about = openapi === undefined || openapi === 'off' ? {} : openapi
  const hidden = new Set(about.hide)
  const areas = describeAreas(described, hidden)
  return {
    title: about.title ?? TITLE,
    description: about.description,
    baseUrl,
    scopes: describeScopes(described, areas, hidden),
    areas,
  }
}

function describeAreas(described: Described, hidden: ReadonlySet<string>): readonly AreaDescription[] {
  const routes = described.actions.routes.filter(({ action }) => !hidden.has(action.area))
  const shapes = { faultsOf: faultFinder(), typesOf: typeFinder(described) }
  const byArea = Map.groupBy(withIds(routes), ({ route }) => route.action.area)
  return Object.entries(described.areas).flatMap(([name, area]): AreaDescription[] => {
    const found = byArea.get(name)
    if (found === undefined) return []
    const operations = found.map((each) => describeOperation(each, described, shapes))
    return [{ name, description: area.description, mode: modeOf(area), operations }]
  })
}

const modeOf = (area: AreasConfig[string] | undefined): AreaDescription['mode'] =>
  isReportOnly(area) ? 'report-only' : 'enforce'

interface Identified {
  readonly id: string
  readonly route: ConfiguredRoute
  readonly operation: Operation
}

/** An id is made of the operation's own names. Where two would be the same, each gets a digest of its exact path. */
function withIds(routes: readonly ConfiguredRoute[]): readonly Identified[] {
  const all = routes.flatMap((route) =>
    [...route.methods.values()].map((operation) => ({ id: idOf(operation, route), route, operation })),
  )
  const taken = Map.groupBy(all, ({ id }) => id)
  return all.map((each) =>
    taken.get(each.id)?.length === 1 ? each : { ...each, id: `${each.id}-${digestOf(each.operation)}` },
  )
}

const idOf = ({ method, facts: { level, area } }: Operation, { pattern }: ConfiguredRoute): string =>
  [
    method.toLowerCase(),
    level,
    area,
    ...pattern.map((segment) => (segment.kind === 'literal' ? segment.text : segment.name)),
  ]
    .join('-')
    .replaceAll('~', '-')

const digestOf = ({ method, action: { level, area, name } }: Operation): string =>
  createHash('sha256').update(`${method} ${level}/${area}/${name}`).digest('hex').slice(0, 8)

type Types = readonly MediaTypeDescription[]

/** The parts that operations of one shape share: made once, and the same object for each of them. */
interface Shapes {
  readonly faultsOf: (facts: OperationFacts) => OperationDescription['faults']
  readonly typesOf: (versions: Operation['versions']) => Types
}

function describeOperation(
  { id, route, operation }: Identified,
  described: Described,
  { faultsOf, typesOf }: Shapes,
): OperationDescription {
  const { documentation, versions, facts } = operation
  const answers = operation.backend.possibleAnswers?.(facts, operation.method) ?? ANYTHING
  const reportOnly = isReportOnly(described.areas[facts.area])
  const parameters = parametersOf(operation, route.pattern)
  const typed = parameters.some(({ type, rest }) => type !== '' || rest)
  return {
    id,
    area: facts.area,
    action: facts.action,
    level: facts.level,
    method: operation.method,
    path: pathOf(operation, route.pattern),
    parameters,
    query: operation.query?.parameters ?? [],
    mode: reportOnly ? 'report-only' : 'enforce',
    scopes: documentation?.scopes ?? [],
    summary: documentation?.summary,
    description: documentation?.description,
    ...versions,
    answer: answerOf(operation, answers, typesOf, reportOnly),
    body: bodyOf(operation, described.bodyLimit),
    websocket: operation.upgrade,
    examples: documentation?.examples ?? [],
    faults: faultsOf({ operation, answers, limits: described.limits, typed, reportOnly }),
    ownErrors: answers.ownErrors,
    otherRefusals: answers.otherRefusals,
    hasRateHeaders: described.limits.clientRate,
  }
}

/** The possible answers of a backend without `possibleAnswers`. */
const ANYTHING: PossibleAnswers = {
  successes: { other: true, notModified: true, precondition: true, ranges: true },
  faults: ['upstream_unreachable', 'upstream_timeout', 'upstream_broken'],
  ownErrors: [],
  otherRefusals: true,
  bytes: true,
}

const PLACES = { business: 'businessCode', fund: 'fundCode' } as const

/** The names of the places in the path: not those of parameters of the action's own. */
function placeNames({ action }: Operation): Readonly<Record<'business' | 'fund', string>> {
  const free = (name: string): string => (action.parameters.includes(name) ? free(`${name}_`) : name)
  return { business: free(PLACES.business), fund: free(PLACES.fund) }
}

function pathOf(operation: Operation, pattern: readonly PatternSegment[]): string {
  const { level, area } = operation.action
  const { business, fund } = placeNames(operation)
  const place = level === 'f' ? `f/{${business}}/{${fund}}` : `b/{${business}}`
  const own = pattern.map((segment) => (segment.kind === 'literal' ? segment.text : `{${segment.name}}`))
  return ['/api', API_VERSION, place, area, ...own].join('/')
}

function parametersOf(
  operation: Operation,
  pattern: readonly PatternSegment[],
): readonly ParameterDescription[] {
  const names = placeNames(operation)
  const place = (kind: 'business' | 'fund'): ParameterDescription => ({
    name: names[kind],
    kind,
    rest: false,
    type: '',
    values: undefined,
  })
  return [
    place('business'),
    ...(operation.action.level === 'f' ? [place('fund')] : []),
    ...pattern.flatMap((segment): ParameterDescription[] =>
      segment.kind === 'literal'
        ? []
        : [
            {
              name: segment.name,
              kind: 'own',
              rest: segment.kind === 'rest',
              type: segment.type.text,
              values: segment.type.values,
            },
          ],
    ),
  ]
}

function answerOf(
  { produces, versions, documentation, items, backend }: Operation,
  { successes }: PossibleAnswers,
  typesOf: Shapes['typesOf'],
  reportOnly: boolean,
): AnswerDescription {
  if (produces !== undefined) return { kind: 'own', types: produces, successes }
  const data = documentation?.data ?? DATA_OF[backend.payload]
  return {
    kind: 'envelope',
    types: typesOf(versions),
    data,
    mayBeEmpty: successes.other && (data?.required ?? []).length > 0,
    items,
    ownXml: backend.xml !== undefined || [...(backend.types?.values() ?? [])].includes('xml'),
    // Parts are of the data service's own bytes, which reach a client only where nothing is converted (C8.6). This is also
    // true of a call that a report-only area let through although its `Accept` would be refused.
    successes: {
      ...successes,
      ranges: successes.ranges && (passesParts(backend) || reportOnly),
      ...(backend.ranges === 'verbatim' && { otherUnits: true }),
    },
  }
}

const passesParts = ({ payload, isSearched, ranges }: Backend): boolean =>
  (payload === 'envelope' && isSearched !== true) || ranges === 'verbatim'

/** What `Data` is where the configuration does not say it. Undefined: any object. */
const DATA_OF: Readonly<Record<Payload, BodySchema | undefined>> = {
  bare: undefined,
  envelope: undefined,
  text: { type: 'object', properties: { Value: { type: 'string' } }, required: ['Value'] },
  none: { type: 'object', properties: {}, additionalProperties: false },
}

const FORMATS: readonly Format[] = ['json', 'xml']

function typeFinder(described: Described): Shapes['typesOf'] {
  const known = new Map<string, Types>()
  return (versions) => {
    const key = `${versions.defaultVersion} ${versions.versions.join()}`
    let types = known.get(key)
    if (types === undefined) known.set(key, (types = envelopeTypes(versions, described)))
    return types
  }
}

/** The types of an envelope: the plain types, then the vendor's of each version (C7.1). */
function envelopeTypes(
  { versions, defaultVersion }: Operation['versions'],
  { vendor, defaultFormat }: Described,
): Types {
  const formats = FORMATS.toSorted((a, b) => Number(b === defaultFormat) - Number(a === defaultFormat))
  return [
    ...formats.map((format) => ({ type: PLAIN_TYPES[format], format, version: defaultVersion })),
    ...versions.flatMap((version) =>
      formats.map((format) => ({ type: vendorType(vendor, version, format), format, version })),
    ),
  ]
}

const PARSED_TYPES = [MEDIA_TYPE_OF.json, MEDIA_TYPE_OF.xml, MEDIA_TYPE_OF.form]

function bodyOf({ consumes, body, backend }: Operation, limit: number): BodyDescription | undefined {
  if (consumes !== undefined) return { kind: 'opaque', types: consumes }
  if (body.kind === 'none') return undefined
  return {
    kind: 'parsed',
    required: body.kind === 'required',
    types: body.types === undefined ? PARSED_TYPES : [...PARSED_TYPES, ...body.types.keys()],
    schema: body.schema,
    ownXml: backend.xml !== undefined,
    limit,
  }
}

function describeScopes(
  { actions, catalogue }: Described,
  areas: readonly AreaDescription[],
  hidden: ReadonlySet<string>,
): readonly ScopeDescription[] {
  const shown = new Set(areas.flatMap(({ operations }) => operations.flatMap(({ scopes }) => scopes.flat())))
  const secret = new Set(
    actions.routes
      .filter(({ action }) => hidden.has(action.area))
      .flatMap(({ methods }) => [...methods.values()])
      .flatMap(({ documentation }) => documentation?.scopes.flat() ?? []),
  )
  const isShown = (name: string): boolean => shown.has(name) || !secret.has(name)
  return catalogue.values.filter(isShown).map((name) => ({
    name,
    description: catalogue.get(name)?.description ?? name,
    includedIn: [...catalogue.satisfiers(name)].filter((other) => other !== name && isShown(other)),
  }))
}
