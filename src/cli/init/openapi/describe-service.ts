/** Makes of an OpenAPI description the areas, actions and scopes of a configuration. */
import { isIdentityScope } from '../../../config/scopes/catalogue.ts'
import { areDisjoint, parsePathPattern } from '../../../gateway/path-pattern.ts'
import { type JsonObject, pointerText } from '../../../http/json.ts'
import type { DescribedAction, DescribedMethod, DescribedService, Level } from '../configuration-text.ts'
import {
  describedAddress,
  type DescribedOperation,
  lineOf,
  listOf,
  nameOf,
  objectOf,
  chosenOperations,
  schemesOf,
  slugOf,
  textOf,
  textsOf,
  wordsOf,
} from './operations.ts'
import type { Description } from './read-description.ts'
import { BodyMembers } from './body-members.ts'
import { answerKeys, queryParameters, requestKeys, type Tell } from './bodies.ts'
import { type BusinessPlace, type FoundPlace, hostTemplate, placesOf } from './places.ts'
import { NamedSchemaSet } from './named-schemas.ts'
import {
  type BoundParameters,
  boundParameters,
  clientsChoices,
  isCode,
  mapPath,
  type MappedPath,
  noBusinessText,
  targetOf,
  type TargetParameters,
  typedAction,
  withCodes,
} from './targets.ts'

// Proposes scopes for operations: those that the description names, else two for each area.

/** RFC 6749 §3.3. */
const SCOPE = /^[\x21\x23-\x5B\x5D-\x7E]+$/
const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const WITH_SCOPES: ReadonlySet<unknown> = new Set(['oauth2', 'openIdConnect'])

/** Of a scheme of OpenAPI 3 by its flows, of one of 2.0 at once. */
function describedScopes(scheme: JsonObject): JsonObject {
  const flows = Object.values(objectOf(scheme['flows'])).map((flow) => objectOf(objectOf(flow)['scopes']))
  return Object.assign({}, objectOf(scheme['scopes']), ...flows) as JsonObject
}

/** About the service's data: the others are built in, or mean a target. */
const isOwnScope = (name: string): boolean =>
  SCOPE.test(name) && !isIdentityScope(name) && !name.startsWith('target:')

class ProposedScopes {
  readonly #schemes: JsonObject
  readonly #scopes = new Map<string, DescribedService['scopes'][string]>()
  /** Each way in which an operation that changes data is let in: the scopes that it takes together. */
  readonly #changing: (readonly string[])[] = []
  /** What operations that only read take. */
  readonly #reading = new Set<string>()

  constructor(schemes: JsonObject) {
    this.#schemes = schemes
  }

  get scopes(): DescribedService['scopes'] {
    return Object.fromEntries(this.#scopes)
  }

  /**
   * Those that change nothing. A scope that a change takes beside others, and that reading takes too, counts as
   * reading if one of the others is for changes only: it changes nothing alone.
   */
  get readScopes(): readonly string[] {
    const changing = new Set(
      this.#changing.flatMap((together) => {
        const own = together.filter((name) => !this.#reading.has(name))
        return own.length > 0 ? own : together
      }),
    )
    return [...this.#scopes.keys()].filter((name) => !changing.has(name))
  }

  /** The rule of an operation, and whether the description says one that cannot be said here. */
  ruleOf(operation: DescribedOperation, area: string): { rule: DescribedMethod['scopes']; unsaid: boolean } {
    const alternatives = operation.security
      .map((requirement) => this.#scopesOf(requirement))
      .filter((names) => names.length > 0)
    const [first, ...others] = alternatives
    const reads = READING.has(operation.method)
    const unsaid = others.length > 0 && alternatives.some((names) => names.length > 1)
    if (first === undefined || unsaid) {
      const label = lineOf(operation.tag) ?? area
      return { rule: { any: [this.#proposed(area, label, reads)] }, unsaid }
    }
    const names = [...new Set(alternatives.flat())]
    for (const name of names) this.#take(name)
    if (reads) for (const name of names) this.#reading.add(name)
    else this.#changing.push(...alternatives)
    return { rule: others.length > 0 ? { any: names } : { all: names }, unsaid }
  }

  #scopesOf(requirement: JsonObject): readonly string[] {
    return Object.entries(requirement).flatMap(([scheme, names]) =>
      WITH_SCOPES.has(objectOf(this.#schemes[scheme])['type']) ? textsOf(names).filter(isOwnScope) : [],
    )
  }

  #take(name: string): void {
    if (this.#scopes.has(name)) return
    const texts = Object.values(this.#schemes).map((scheme) => describedScopes(objectOf(scheme))[name])
    const description = texts.map(lineOf).find((text) => text !== undefined)
    this.#scopes.set(name, { description: description ?? name })
  }

  /** @param label the area as people write it: the consent page shows it */
  #proposed(area: string, label: string, reads: boolean): string {
    const [read, maintain] = [`${area}.read`, `${area}.maintain`]
    if (!this.#scopes.has(read)) this.#scopes.set(read, { description: `See ${label}` })
    if (reads) {
      this.#reading.add(read)
      return read
    }
    this.#changing.push([maintain])
    if (!this.#scopes.has(maintain))
      this.#scopes.set(maintain, { description: `See and change ${label}`, implies: [read] })
    return maintain
  }
}

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
  /** Where the business could stand. */
  readonly places: readonly FoundPlace[]
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
  readonly book: NamedSchemaSet
  readonly members: BodyMembers
  readonly #targets: TargetParameters
  readonly #lineOf: Description['lineOf']

  constructor({ document, lineOf }: Description, targets: TargetParameters) {
    this.members = new BodyMembers(document, (name) => targetOf(name, targets) !== undefined)
    this.#lineOf = lineOf
    this.#targets = targets
    this.book = new NamedSchemaSet(document, (path, what) => this.tell(path, what))
  }

  tell(path: readonly string[] | undefined, what: string): void {
    this.notes.push({ line: path && this.#lineOf(path), what })
  }

  /** Where the business is put into the body of an operation. */
  placesInBody({ body }: DescribedOperation): readonly BusinessPlace[] {
    const inBody = this.#targets.places?.filter(({ kind }) => kind === 'body') ?? []
    if (inBody.length === 0) return []
    const found = [...(body?.contents.values() ?? [])].flatMap((schema) => this.members.in(schema))
    const pointers = new Set(found.filter(({ repeated }) => !repeated).map(({ path }) => pointerText(path)))
    return inBody.filter(({ name }) => pointers.has(name))
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
  for (const { target, place } of clientsChoices(operation, targets, work.members))
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

function methodOf(placed: Placed, scopes: ProposedScopes, work: Work, tell: Tell): DescribedMethod {
  const { operation, area, mapped, bound } = placed
  const { upstream: sent, ...request } = requestKeys(operation, work.book, tell, work.placesInBody(operation))
  const upstream = {
    ...(mapped.path === undefined ? {} : { path: mapped.path }),
    ...bound.upstream,
    ...(sent && { body: sent }),
  }
  const { rule, unsaid } = scopes.ruleOf(operation, area)
  if (unsaid) tell('its scopes are alternatives of several each; one was proposed instead')
  if (operation.isPublic)
    tell(`anybody may call it; here it takes a token with ${Object.values(rule).flat().join(' ')}`)
  tellParameters(operation, tell)
  return {
    ...(operation.summary === undefined ? {} : { summary: operation.summary }),
    ...(operation.description === undefined ? {} : { description: operation.description }),
    scopes: rule,
    ...queryParameters(operation, (name) => Object.hasOwn(bound.upstream.query ?? {}, name), work.book),
    ...request,
    ...answerKeys(operation, work.book, tell),
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
    draft.methods[operation.method] = methodOf(placed, scopes, work, tell)
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
export function describeService(
  description: Description,
  targets: TargetParameters,
  only: readonly string[] = [],
): ServiceFromDescription {
  const { document, breaches } = description
  const work = new Work(description, targets)
  for (const { path, why } of breaches) work.tell(path, `breaks a rule of OpenAPI: ${lineOf(why) ?? ''}`)
  const operations = withCodes(chosenOperations(document, only), schemesOf(document), targets)
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
  const asked = targets.places ?? []
  const places = placesOf(
    placed.map(({ operation }) => operation),
    document,
    asked.flatMap(({ kind, name }) => (kind === 'body' ? [name] : [])),
  )
  if (actions.length > 0 && asked.length === 0 && !placed.some(namesBusiness))
    work.tell(undefined, noBusinessText(places))
  const host = asked.find(({ kind }) => kind === 'host')
  return {
    service: {
      ...{ scopes: scopes.scopes, readScopes: scopes.readScopes },
      ...{
        areas: areasOf(actions, document),
        actions,
        schemas: work.book.schemasIn(JSON.stringify(actions)),
        path: '/{action}',
      },
      ...(host && { host: hostTemplate(document, host) }),
      identity: asked.some(({ kind }) => kind === 'identity'),
      usesFunds: actions.some(({ level }) => level === 'fund'),
    },
    notes: work.notes.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0)),
    address: describedAddress(document),
    chosenByClients: work.chosenByClients,
    places,
  }
}
