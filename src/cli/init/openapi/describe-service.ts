/** Makes of an OpenAPI description the areas, actions and scopes of a configuration. */
import { areDisjoint, parsePathPattern } from '../../../gateway/path-pattern.ts'
import type { JsonObject } from '../../../http/json-value.ts'
import type { DescribedAction, DescribedMethod, DescribedService, Level } from '../service.ts'
import { answerKeys, requestKeys, type Tell } from './bodies.ts'
import { describedAddress, type DescribedOperation, operationsOf, schemesOf } from './operations.ts'
import { lineOf, listOf, nameOf, objectOf, slugOf, textOf, wordsOf } from './parts.ts'
import { mapPath, type MappedPath, typedAction } from './path.ts'
import type { Description } from './read-description.ts'
import { ProposedScopes } from './scopes.ts'
import {
  type BoundParameters,
  boundParameters,
  clientsChoices,
  isCode,
  noBusinessText,
  parameterNames,
  type TargetParameters,
  targetOf,
  withCodes,
} from './targets.ts'

/** What a configuration cannot say, or somebody must decide. */
export interface Note {
  /** In the description; undefined: of it as a whole. */
  readonly line: number | undefined
  readonly what: string
}

export interface ServiceFromDescription {
  readonly service: DescribedService
  readonly notes: readonly Note[]
  /** The address that the description names; it may be a path alone. */
  readonly address: string | undefined
  /** Where a client would choose the business: nothing of such a description can be served. */
  readonly chosenByClients: readonly Note[]
  /** The names of all parameters that could be a code. */
  readonly parameters: readonly string[]
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** An operation with its place in the configuration. */
interface Placed {
  readonly operation: DescribedOperation
  readonly level: Level
  readonly area: string
  readonly mapped: MappedPath
  readonly bound: BoundParameters
  readonly types: Map<string, string>
}

class Work {
  readonly notes: Note[] = []
  readonly chosenByClients: Note[] = []
  readonly #lineOf: Description['lineOf']

  constructor({ lineOf }: Description) {
    this.#lineOf = lineOf
  }

  tell(path: readonly string[] | undefined, what: string): void {
    this.notes.push({ line: path && this.#lineOf(path), what })
  }

  tellOf({ at, method, path }: DescribedOperation): Tell {
    return (what) => this.tell(at, `${method} ${path}: ${what}`)
  }

  isChosen({ at, method, path }: DescribedOperation, place: string): void {
    this.chosenByClients.push({ line: this.#lineOf(at), what: `${method} ${path}: ${place}` })
  }
}

const pathParameters = ({ parameters }: DescribedOperation): readonly JsonObject[] =>
  parameters.filter((each) => each['in'] === 'path')

function placeOf(operation: DescribedOperation, targets: TargetParameters, work: Work): Placed | undefined {
  const tell = work.tellOf(operation)
  const mapped = METHODS.has(operation.method)
    ? mapPath(operation.path, pathParameters(operation), targets)
    : `${operation.method} is no method of an action`
  if (typeof mapped === 'string') {
    tell(`left out: ${mapped}`)
    return undefined
  }
  if (mapped.untyped.length > 0)
    tell(`any segment is taken for ${mapped.untyped.join(', ')}: the enum or pattern cannot be a type`)
  for (const { target, place } of clientsChoices(operation, targets))
    if (target === 'business') work.isChosen(operation, place)
    else tell(`the client chooses the fund by ${place}: the service must check that it may`)
  const area = slugOf(operation.tag ?? mapped.word) ?? slugOf(mapped.word) ?? 'api'
  const bound = boundParameters(operation, targets)
  const level = mapped.targets.has('fund') || bound.targets.has('fund') ? 'fund' : 'business'
  return { operation, level, area, mapped, bound, types: new Map(mapped.types) }
}

/** A place in the paths of actions where a parameter can stand. */
const spotOf = ({ level, area }: Placed, before: readonly string[]): string =>
  [level, area, ...before.map((segment) => segment.replace(/^\{.*\}$/, '{}'))].join('/')

/** Parameters of different types at one place must never fit the same segment. Those that may lose their types. */
function untieTypes(all: readonly Placed[], work: Work): void {
  const spots = new Map<string, { readonly placed: Placed; readonly name: string }[]>()
  for (const placed of all) {
    const segments = placed.mapped.action.split('/')
    for (const [at, segment] of segments.entries()) {
      const [, name] = /^\{(.+)\}$/.exec(segment) ?? []
      if (name === undefined) continue
      const spot = spotOf(placed, segments.slice(0, at))
      spots.set(spot, [...(spots.get(spot) ?? []), { placed, name }])
    }
  }
  for (const parameters of spots.values()) {
    const types = new Set(parameters.map(({ placed, name }) => placed.types.get(name) ?? ''))
    if (types.size < 2 || !areTied([...types])) continue
    for (const { placed, name } of parameters)
      if (placed.types.delete(name))
        work.tellOf(placed.operation)(
          `{${name}} takes any segment, because another path has another type there`,
        )
  }
}

function areTied(types: readonly string[]): boolean {
  const compiled = types.map((type) => {
    const [segment] = parsePathPattern(type === '' ? '{x}' : `{x:${type}}`)
    return segment?.kind === 'parameter' ? segment.type : undefined
  })
  return compiled.some((one, at) =>
    compiled
      .slice(at + 1)
      .some((other) => one === undefined || other === undefined || !areDisjoint(one, other)),
  )
}

function tellParameters({ parameters, unsaid }: DescribedOperation, tell: Tell): void {
  const cookies = parameters.filter((each) => each['in'] === 'cookie').map(({ name }) => nameOf(name))
  if (cookies.length > 0) tell(`cookies do not reach a service: ${cookies.join(', ')}`)
  if (unsaid.length > 0) tell(`left out, since a configuration has nothing like it: ${unsaid.join(', ')}`)
}

function methodOf(placed: Placed, scopes: ProposedScopes, tell: Tell): DescribedMethod {
  const { operation, area, mapped, bound } = placed
  const upstream = { ...(mapped.path === undefined ? {} : { path: mapped.path }), ...bound.upstream }
  const { rule, unsaid } = scopes.ruleOf(operation, area)
  if (unsaid) tell('its scopes are alternatives of several each; one was proposed instead')
  if (operation.isPublic)
    tell(`anybody may call it; here it takes a token with ${Object.values(rule).flat().join(' ')}`)
  tellParameters(operation, tell)
  return {
    ...(operation.summary === undefined ? {} : { summary: operation.summary }),
    ...(operation.description === undefined ? {} : { description: operation.description }),
    scopes: rule,
    ...requestKeys(operation, tell),
    ...answerKeys(operation, tell),
    ...(Object.keys(upstream).length > 0 && { upstream }),
  }
}

interface Draft {
  readonly level: Level
  readonly area: string
  readonly action: string
  readonly methods: Record<string, DescribedMethod>
}

/** Parameters of one type at one place are one, whatever their names. */
const keyOf = ({ level, area }: Placed, action: string): string =>
  [level, area, action.replaceAll(/\{[^{}:]+(?=[:}])/g, '{')].join('/')

function actionsOf(all: readonly Placed[], scopes: ProposedScopes, work: Work): readonly DescribedAction[] {
  const drafts = new Map<string, Draft>()
  for (const placed of all) {
    const { operation, level, area, mapped, types } = placed
    const action = typedAction(mapped.action, types)
    const key = keyOf(placed, action)
    const draft = drafts.get(key) ?? { level, area, action, methods: {} }
    const tell = work.tellOf(operation)
    if (Object.hasOwn(draft.methods, operation.method)) {
      tell(`left out: another operation has the same action, ${area}/${action}`)
      continue
    }
    drafts.set(key, draft)
    draft.methods[operation.method] = methodOf(placed, scopes, tell)
  }
  return [...drafts.values()]
}

function areasOf(actions: readonly DescribedAction[], document: JsonObject): DescribedService['areas'] {
  const texts = new Map(
    listOf(document['tags']).map((tag) => {
      const { name, description } = objectOf(tag)
      return [slugOf(textOf(name) ?? ''), wordsOf(description)]
    }),
  )
  const names = [...new Set(actions.map(({ area }) => area))]
  return Object.fromEntries(
    names.map((name) => {
      const description = texts.get(name)
      return [name, { backend: 'service', ...(description === undefined ? {} : { description }) }]
    }),
  )
}

const OWN_TOKEN = 'tokens of clients do not go on. If it shall get one of its own: backends.service.auth'

/** How the service wants to know Postern is for people to set: a secret belongs to it. */
const ADVICE: Readonly<Record<string, (scheme: JsonObject) => string>> = {
  apiKey: (scheme) =>
    scheme['in'] === 'cookie'
      ? 'a key in a cookie cannot be sent'
      : `if it shall go on: backends.service.${scheme['in'] === 'query' ? 'query' : 'headers'}: { ${nameOf(scheme['name'])}: { env: UPSTREAM_KEY } }`,
  basic: () => 'if it shall go on: backends.service.auth.basic',
  http: () => 'if it shall go on: backends.service.auth',
  oauth2: () => OWN_TOKEN,
  openIdConnect: () => OWN_TOKEN,
  mutualTLS: () => 'if it shall go on: backends.service.tls.cert and key',
}

function tellAddress(document: JsonObject, targets: TargetParameters, work: Work): void {
  const servers = listOf(document['servers'])
  if (servers.length > 1)
    work.tell(['servers'], 'of several servers the first is taken; --upstream names another')
  for (const [name, variable] of Object.entries(objectOf(objectOf(servers[0])['variables'])))
    if (targetOf(name, targets) !== undefined)
      work.tell(
        ['servers'],
        `the address has {${name}}: calls of every business go to that of "${nameOf(objectOf(variable)['default'])}", its default`,
      )
}

function tellWhole(
  document: JsonObject,
  operations: readonly DescribedOperation[],
  targets: TargetParameters,
  work: Work,
): void {
  for (const [name, value] of Object.entries(schemesOf(document))) {
    const scheme = objectOf(value)
    if (isCode(scheme, targets)) continue
    const advice = ADVICE[nameOf(scheme['type'])]?.(scheme)
    const at = document['swagger'] === undefined ? ['components', 'securitySchemes'] : ['securityDefinitions']
    if (advice !== undefined) work.tell([...at, name], `the service asks for ${name}; ${advice}`)
  }
  if (document['webhooks'] !== undefined)
    work.tell(['webhooks'], 'webhooks are left out: Postern carries calls of clients only')
  const headers = [...new Set(operations.flatMap((each) => each.headers))]
  if (headers.length > 0)
    work.tell(
      undefined,
      `answers have the headers ${headers.join(', ')}: name those for clients in backends.service.responseHeaders`,
    )
}

/** @param targets which of its parameters are the codes of businesses and of funds */
export function describeService(description: Description, targets: TargetParameters): ServiceFromDescription {
  const { document, breaches } = description
  const work = new Work(description)
  for (const { path, why } of breaches) work.tell(path, `breaks a rule of OpenAPI: ${lineOf(why) ?? ''}`)
  const operations = withCodes(operationsOf(document), schemesOf(document), targets)
  const isHead = ({ method, path }: DescribedOperation): boolean =>
    method === 'HEAD' && operations.some((other) => other.method === 'GET' && other.path === path)
  const placed = operations
    .filter((operation) => !isHead(operation))
    .flatMap((operation) => placeOf(operation, targets, work) ?? [])
  untieTypes(placed, work)
  const scopes = new ProposedScopes(schemesOf(document))
  const actions = actionsOf(placed, scopes, work)
  tellWhole(document, operations, targets, work)
  tellAddress(document, targets, work)
  const namesBusiness = ({ mapped, bound }: Placed): boolean =>
    mapped.targets.has('business') || bound.targets.has('business')
  const taken = placed.map(({ operation }) => operation)
  if (actions.length > 0 && !placed.some(namesBusiness)) work.tell(undefined, noBusinessText(taken))
  return {
    service: {
      ...{ scopes: scopes.scopes, readScopes: scopes.readScopes },
      ...{ areas: areasOf(actions, document), actions, path: '/{action}' },
      usesFunds: actions.some(({ level }) => level === 'fund'),
    },
    notes: work.notes.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0)),
    address: describedAddress(document),
    chosenByClients: work.chosenByClients,
    parameters: parameterNames(taken),
  }
}
