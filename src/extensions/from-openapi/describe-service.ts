/** Makes of an OpenAPI description the areas, actions and scopes of a configuration. */
import { type JsonObject, parseJsonPointer, pointerText } from '../../base/http/body/json.ts'
import { type Named, nameActions, type Placed } from './action-names.ts'
import { type BodyMember, BodyMembers } from './body-members.ts'
import { proposedAnswerKeys, queryParameters, requestKeys, sentSchemas } from './bodies.ts'
import { NamedSchemaSet } from './named-schemas.ts'
import {
  addressIn,
  chosenOperations,
  type DescribedOperation,
  isOf,
  listOf,
  shortText,
  objectOf,
  schemesOf,
  slugOf,
  trimmedText,
  descriptionText,
} from './operations.ts'
import {
  type BusinessPlace,
  filledText,
  type FoundPlace,
  hostTemplate,
  isSamePlace,
  type NamedPlace,
  placesOf,
} from './places.ts'
import { ProposedScopes } from './proposed-scopes.ts'
import type { Description } from './read-description.ts'
import {
  boundParameters,
  type ClientsChoice,
  clientsChoices,
  isCode,
  mapPath,
  noBusinessText,
  targetOf,
  type TargetParameters,
  withCodes,
} from './targets.ts'
import type { Tell } from './tell.ts'
import type {
  DescribedAction,
  DescribedMethod,
  DescribedService,
  Level,
} from '../../operate/hooks/first-configuration.ts'

/** A note about something that a configuration cannot say, or that somebody must decide. */
export interface Note {
  /** The line in the description; undefined for a note about all of it. */
  readonly line: number | undefined
  readonly what: string
  /** The same without the parts that differ: notes of one kind can be told in one line. */
  readonly kind: string
  /** The names that are counted in that line. */
  readonly names: readonly string[]
}

/** Where the business of an operation is. */
export interface OperationBusiness {
  /** `GET /accounts/{AccountId}/balances`. */
  readonly operation: string
  /** `AREA/ACTION`; undefined: it was left out. */
  readonly action: string | undefined
  /** `path:AccountId`. */
  readonly business: readonly string[]
  /** Whether an option says that it belongs to nobody. */
  readonly shared: boolean
}

export interface ServiceFromDescription {
  readonly service: DescribedService
  readonly notes: readonly Note[]
  /** Where a client would choose the business: nothing of such a description can be served. */
  readonly chosenByClients: readonly (Note & ClientsChoice)[]
  readonly operations: readonly OperationBusiness[]
  /** Where the business could be written. */
  readonly places: readonly FoundPlace[]
  /** Places that were said to be no business, and that no operation has. */
  readonly notBusinessUnused: readonly NamedPlace[]
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

class Work {
  readonly notes: Note[] = []
  readonly chosenByClients: (Note & ClientsChoice)[] = []
  readonly book: NamedSchemaSet
  readonly members: BodyMembers
  readonly #targets: TargetParameters
  readonly #lineOf: Description['lineOf']

  constructor({ document, lineOf }: Description, targets: TargetParameters) {
    this.members = new BodyMembers(document, (name) => targetOf(name, targets) !== undefined)
    this.#lineOf = lineOf
    this.#targets = targets
    this.book = new NamedSchemaSet(document, (path, ...said) => this.tell(path, ...said))
  }

  tell(path: readonly string[] | undefined, ...[what, kind = what, names = []]: Parameters<Tell>): void {
    this.notes.push({ line: path && this.#lineOf(path), what, kind, names })
  }

  /** The members of the bodies of an operation that have the name of a business or fund. */
  membersOf(operation: DescribedOperation): readonly (BodyMember & { readonly isRead: boolean })[] {
    const { isRead, schemas } = sentSchemas(operation, this.book.document)
    return schemas.flatMap((schema) => this.members.in(schema).map((member) => ({ ...member, isRead })))
  }

  /** Where the business is put into the body of an operation. */
  placesInBody(operation: DescribedOperation): readonly BusinessPlace[] {
    const inBody = this.#targets.places?.filter(({ kind }) => kind === 'body') ?? []
    if (inBody.length === 0) return []
    const found = this.membersOf(operation).filter(({ repeated, isRead }) => isRead && !repeated)
    const pointers = new Set(found.map(({ path }) => pointerText(path)))
    return inBody.filter(({ name }) => pointers.has(name))
  }

  tellOf({ at, method, path }: DescribedOperation): Tell {
    return (what, kind = what, names = []) => this.tell(at, `${method} ${path}: ${what}`, kind, names)
  }

  isChosen({ at, method, path }: DescribedOperation, choice: ClientsChoice): void {
    const what = `${method} ${path}: ${placeWords(choice.place)}`
    this.chosenByClients.push({ ...choice, line: this.#lineOf(at), what, kind: what, names: [] })
  }
}

/** `the cookie tenant`, `order.tenantId of the body`. */
const placeWords = ({ kind, name }: NamedPlace): string =>
  kind === 'body' ? `${parseJsonPointer(name).join('.')} of the body` : `the ${kind} ${name}`

const pathParameters = ({ parameters }: DescribedOperation): readonly JsonObject[] =>
  parameters.filter((each) => each['in'] === 'path')

function placeOf(operation: DescribedOperation, targets: TargetParameters, work: Work): Placed | undefined {
  const tell = work.tellOf(operation)
  const mapped = METHODS.has(operation.method)
    ? mapPath(operation.path, pathParameters(operation), targets)
    : `${operation.method} is no method of an action`
  if (typeof mapped === 'string') {
    tell(`left out: ${mapped}`, 'operations are left out: their method or path is none of an action')
    return undefined
  }
  if (mapped.untyped.length > 0)
    tell(
      `any segment is taken for ${mapped.untyped.join(', ')}: the enum or pattern cannot be a type`,
      'any segment is taken for parameters whose enum or pattern cannot be a type',
    )
  for (const choice of clientsChoices(operation, targets, work.membersOf(operation)))
    if (choice.target === 'business') work.isChosen(operation, choice)
    else
      tell(
        `the client chooses the fund by ${placeWords(choice.place)}: the service must check that it may`,
        'the client chooses the fund: the service must check that it may',
      )
  const area = slugOf(operation.tag ?? mapped.word) ?? slugOf(mapped.word) ?? 'api'
  const bound = boundParameters(operation, targets)
  const level = mapped.targets.has('fund') || bound.targets.has('fund') ? 'fund' : 'business'
  const inCall = [...mapped.business, ...bound.business, ...work.placesInBody(operation)]
  const outside = targets.places?.filter(({ kind }) => kind === 'host' || kind === 'identity') ?? []
  return { operation, level, area, mapped, bound, business: [...inCall, ...outside].map(filledText) }
}

function tellParameters({ parameters, unsaid }: DescribedOperation, tell: Tell): void {
  const cookies = parameters.filter((each) => each['in'] === 'cookie').map(({ name }) => shortText(name))
  const noCookies = 'cookies do not reach a service'
  if (cookies.length > 0) tell(`${noCookies}: ${cookies.join(', ')}`, noCookies, cookies)
  const noWords = 'left out, because a configuration has nothing like it'
  if (unsaid.length > 0) tell(`${noWords}: ${unsaid.join(', ')}`, noWords, unsaid)
}

function methodOf(named: Named, scopes: ProposedScopes, work: Work, tell: Tell): DescribedMethod {
  const { operation, area, path, bound } = named
  const { upstream: sent, ...request } = requestKeys(operation, work.book, tell, work.placesInBody(operation))
  const { types, ...answer } = proposedAnswerKeys(operation, work.book, tell)
  const upstream = {
    ...(path === undefined ? {} : { path }),
    ...bound.upstream,
    ...(sent && { body: sent }),
    ...(types && { types }),
  }
  const { rule, unsaid } = scopes.ruleOf(operation, area)
  if (unsaid) tell('its scopes are alternatives of several each; one was proposed instead')
  if (operation.isPublic)
    tell(
      `anybody may call it; here it takes a token with ${Object.values(rule).flat().join(' ')}`,
      'anybody may call these; here they take a token',
    )
  tellParameters(operation, tell)
  return {
    ...(operation.summary === undefined ? {} : { summary: operation.summary }),
    ...(operation.description === undefined ? {} : { description: operation.description }),
    scopes: rule,
    ...queryParameters(operation, (name) => Object.hasOwn(bound.upstream.query ?? {}, name), work.book, tell),
    ...request,
    ...answer,
    ...(Object.keys(upstream).length > 0 && { upstream }),
  }
}

interface Draft {
  readonly level: Level
  readonly area: string
  readonly action: string
  readonly methods: Record<string, DescribedMethod>
}

function actionsOf(all: readonly Named[], scopes: ProposedScopes, work: Work): readonly DescribedAction[] {
  const drafts = new Map<string, Draft>()
  for (const named of all) {
    const { operation, level, area, action } = named
    const key = `${level} ${area} ${action}`
    const draft = drafts.get(key) ?? { level, area, action, methods: {} }
    drafts.set(key, draft)
    draft.methods[operation.method] = methodOf(named, scopes, work, work.tellOf(operation))
  }
  return [...drafts.values()]
}

function areasOf(actions: readonly DescribedAction[], document: JsonObject): DescribedService['areas'] {
  const texts = new Map(
    listOf(document['tags']).map((tag) => {
      const { name, description } = objectOf(tag)
      return [slugOf(trimmedText(name) ?? ''), descriptionText(description)]
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

/** People must set how the service authenticates Postern, because a secret belongs to it. */
const ADVICE: Readonly<Record<string, (scheme: JsonObject) => string>> = {
  apiKey: (scheme) =>
    scheme['in'] === 'cookie'
      ? 'a key in a cookie cannot be sent'
      : `if it shall go on: backends.service.${scheme['in'] === 'query' ? 'query' : 'headers'}: { ${shortText(scheme['name'])}: { env: UPSTREAM_KEY } }`,
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
  for (const part of addressIn(document).unsaid)
    work.tell(
      ['servers'],
      `"${part}" of the address is left out: write its value into backends.service.target`,
    )
  for (const [name, variable] of Object.entries(objectOf(objectOf(servers[0])['variables'])))
    if (targetOf(name, targets) !== undefined)
      work.tell(
        ['servers'],
        `the address has {${name}}: calls of every business go to that of "${shortText(objectOf(variable)['default'])}", its default`,
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
    const advice = ADVICE[shortText(scheme['type'])]?.(scheme)
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

export interface Choice {
  /** The operations that are taken; none: all. */
  readonly only?: readonly string[]
  /** The operations that belong to no business. */
  readonly shared?: readonly string[]
}

const operationText = ({ method, path }: DescribedOperation): string => `${method} ${path}`

/** Remarks in the configuration about operations without a business, by the action. */
function remarksOf(
  all: readonly Named[],
  shared: readonly string[],
): NonNullable<DescribedService['remarks']> {
  const remarks = new Map<string, string[]>()
  for (const { operation, level, area, action, business } of all) {
    if (business.length > 0) continue
    const what = shared.some((each) => isOf(operation, each))
      ? `is shared: it belongs to no business (--shared)`
      : `has no business: every business gets the same from it`
    const key = `${level} ${area} ${action}`
    remarks.set(key, [...(remarks.get(key) ?? []), `${operationText(operation)} ${what}`])
  }
  return ({ level, area, action }) => remarks.get(`${level} ${area} ${action}`) ?? []
}

/** @param targets which of its parameters are the codes of businesses and of funds */
export function describeService(
  description: Description,
  targets: TargetParameters,
  { only = [], shared = [] }: Choice = {},
): ServiceFromDescription {
  const { document, breaches, broken } = description
  const work = new Work(description, targets)
  for (const { path, why } of breaches)
    work.tell(path, `breaks a rule of OpenAPI: ${why}`, 'breaks a rule of OpenAPI', [why])
  for (const { path, why } of broken)
    work.tell(
      path.length === 0 ? undefined : path,
      `${why}: what it stands for counts as not described`,
      'references lead nowhere: what they stand for counts as not described',
    )
  const operations = withCodes(chosenOperations(document, only), schemesOf(document), targets)
  const isHead = ({ method, path }: DescribedOperation): boolean =>
    method === 'HEAD' && operations.some((other) => other.method === 'GET' && other.path === path)
  const placed = operations
    .filter((operation) => !isHead(operation))
    .flatMap((operation) => placeOf(operation, targets, work) ?? [])
  const { named, displaced } = nameActions(placed, ({ operation }, parameter) =>
    work.tellOf(operation)(
      `{${parameter}} takes any segment, because another path has another type there`,
      'parameters take any segment, because another path has another type there',
    ),
  )
  for (const { placed: each, action, by } of displaced)
    work.tellOf(each.operation)(
      `left out: ${operationText(by.operation)} has the same action, ${each.area}/${action}`,
      'operations are left out: another one has the same action',
    )
  const scopes = new ProposedScopes(schemesOf(document))
  const actions = actionsOf(named, scopes, work)
  tellWhole(document, operations, targets, work)
  tellAddress(document, targets, work)
  const asked = targets.places ?? []
  const places = placesOf(
    placed.map(({ operation }) => operation),
    document,
    asked.flatMap(({ kind, name }) => (kind === 'body' ? [name] : [])),
  )
  if (actions.length > 0 && asked.length === 0 && !placed.some(({ business }) => business.length > 0))
    work.tell(undefined, noBusinessText(places))
  const host = asked.find(({ kind }) => kind === 'host')
  const kept = new Map(named.map((each) => [each.operation, each]))
  return {
    service: {
      scopes: scopes.scopes,
      readScopes: scopes.readScopes,
      areas: areasOf(actions, document),
      actions,
      schemas: work.book.schemasIn(JSON.stringify(actions)),
      path: '/{action}',
      ...(host && { host: hostTemplate(document, host) }),
      identity: asked.some(({ kind }) => kind === 'identity'),
      usesFunds: actions.some(({ level }) => level === 'fund'),
      remarks: remarksOf(named, shared),
    },
    notes: work.notes.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0)),
    chosenByClients: work.chosenByClients,
    places,
    operations: operations.map((operation) => {
      const own = kept.get(operation)
      const business = own?.business ?? []
      return {
        operation: operationText(operation),
        action: own && `${own.area}/${own.action}`,
        business,
        shared: business.length === 0 && shared.some((each) => isOf(operation, each)),
      }
    }),
    notBusinessUnused: (targets.notBusiness ?? []).filter(
      (place) => !operations.some((operation) => isTaken(operation, place, targets, work)),
    ),
  }
}

/** Whether an operation has something at a place, with the name of a business. */
function isTaken(
  operation: DescribedOperation,
  place: NamedPlace,
  targets: TargetParameters,
  work: Work,
): boolean {
  const everything = { ...targets, places: [], notBusiness: [] }
  const choices = clientsChoices(operation, everything, work.membersOf(operation))
  return choices.some((each) => each.target === 'business' && isSamePlace(each.place, place))
}
