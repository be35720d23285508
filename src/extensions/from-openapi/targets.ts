/**
 * Where an operation of a description takes the code of a business or of a fund. Postern puts that of the call there, so
 * that no client chooses the business for itself.
 */
import { BUILT_IN } from '../../gateway/backends/templates/sources.ts'
import { parsePathPattern } from '../../gateway/actions/path-pattern.ts'
import { type JsonObject, pointerText } from '../../base/http/body/json.ts'
import type { BodyMember } from './body-members.ts'
import {
  type BusinessPlace,
  countedText,
  foldParameter,
  type FoundPlace,
  isSamePlace,
  lastName,
  type NamedPlace,
  type PlaceKind,
  placeText,
} from './places.ts'
import { type DescribedOperation, listOf, shortText, objectOf, slugOf, trimmedText } from './operations.ts'
import type { DescribedMethod, Level } from '../../operate/hooks/first-configuration.ts'

/** Which parameters are the codes of businesses and of funds, folded. */
export interface TargetParameters extends Readonly<Record<Level, ReadonlySet<string>>> {
  /** Where the business is written; undefined: in each parameter of path, query or header with one of the names. */
  readonly places?: readonly BusinessPlace[] | undefined
  /** Places with one of the names that are no business. */
  readonly notBusiness?: readonly NamedPlace[] | undefined
}

/** The value that Postern writes at the place of a target; undefined: only a client writes it there. */
export function valueForPlace(
  target: Level,
  place: NamedPlace,
  { places }: TargetParameters,
): string | undefined {
  if (target === 'fund' || places === undefined) return place.kind === 'body' ? undefined : `{${target}}`
  return places.find((each) => isSamePlace(each, place))?.value
}

/** Whether a parameter is the code of a business or of a fund; undefined: neither. */
export function targetOf(name: string, { business, fund }: TargetParameters): Level | undefined {
  const folded = foldParameter(name)
  if (business.has(folded)) return 'business'
  return fund.has(folded) ? 'fund' : undefined
}

/** The target whose code is at a place; undefined: none. */
function targetAt(place: NamedPlace, targets: TargetParameters): Level | undefined {
  const target = targetOf(lastName(place), targets)
  const isNone = targets.notBusiness?.some((each) => isSamePlace(each, place)) === true
  return target === 'business' && isNone ? undefined : target
}

/** The place of a parameter; undefined: none that a business could be in. */
function placeAt({ in: kind, name }: JsonObject): NamedPlace | undefined {
  const isPlace = kind === 'query' || kind === 'header' || kind === 'path' || kind === 'cookie'
  return isPlace ? { kind, name: shortText(name) } : undefined
}

function targetOfParameter(parameter: JsonObject, targets: TargetParameters): Level | undefined {
  const place = placeAt(parameter)
  return place && targetAt(place, targets)
}

/** Whether a way to be known to the service is a code: some ask for the tenant as for a key. */
export const isCode = (scheme: JsonObject, targets: TargetParameters): boolean =>
  scheme['type'] === 'apiKey' && targetOfParameter(scheme, targets) !== undefined

/** Keys that are codes, as parameters. */
const keyParameters = (schemes: JsonObject, targets: TargetParameters): readonly JsonObject[] =>
  Object.values(schemes)
    .map(objectOf)
    .filter((scheme) => isCode(scheme, targets))
    .map((scheme) => ({ in: shortText(scheme['in']), name: shortText(scheme['name']) }))

/** The headers of operations that are the code of the business. */
const businessHeaders = (
  operations: readonly DescribedOperation[],
  targets: TargetParameters,
): readonly JsonObject[] =>
  operations
    .flatMap(({ parameters }) => parameters)
    .filter((each) => each['in'] === 'header' && targetOfParameter(each, targets) === 'business')
    .filter(
      ({ name }) =>
        valueForPlace('business', { kind: 'header', name: shortText(name) }, targets) !== undefined,
    )
    .map((each) => ({ in: 'header', name: shortText(each['name']) }))

const placeKey = (parameter: JsonObject): string =>
  `${shortText(parameter['in'])} ${shortText(parameter['name']).toLowerCase()}`

/** A code of one operation of a service may be read by the others, even if their description lacks it. */
export function withCodes(
  operations: readonly DescribedOperation[],
  schemes: JsonObject,
  targets: TargetParameters,
): readonly DescribedOperation[] {
  const found = [...keyParameters(schemes, targets), ...businessHeaders(operations, targets)]
  const codes = new Map(found.map((each) => [placeKey(each), each]))
  return operations.map((operation) => {
    const own = new Set(operation.parameters.map(placeKey))
    const more = [...codes].flatMap(([place, code]) => (own.has(place) ? [] : [code]))
    return { ...operation, parameters: [...operation.parameters, ...more] }
  })
}

export interface BoundParameters {
  /** The query parameters and headers that the configuration sets, in place of a client's. */
  readonly upstream: Pick<NonNullable<DescribedMethod['upstream']>, 'query' | 'headers'>
  readonly targets: ReadonlySet<Level>
  /** The places that are the business, with the value that is written there. */
  readonly business: readonly BusinessPlace[]
}

/** The parameters in query and headers that are codes. */
export function boundParameters(
  { parameters }: DescribedOperation,
  targets: TargetParameters,
): BoundParameters {
  const found = parameters.flatMap((each) => {
    const place = placeAt(each)
    if (place?.kind !== 'query' && place?.kind !== 'header') return []
    const target = targetAt(place, targets)
    const value = target && valueForPlace(target, place, targets)
    const { kind, name } = place
    return target === undefined || value === undefined ? [] : [{ kind, name, target, value }]
  })
  const of = (kind: PlaceKind) => found.filter((each) => each.kind === kind)
  const said = (kind: PlaceKind) => Object.fromEntries(of(kind).map(({ name, value }) => [name, value]))
  const [query, headers] = [said('query'), said('header')]
  return {
    upstream: {
      ...(Object.keys(query).length > 0 && { query }),
      ...(Object.keys(headers).length > 0 && { headers }),
    },
    targets: new Set(found.map(({ target }) => target)),
    business: found.filter(({ target }) => target === 'business'),
  }
}

/** A code in a place where a configuration can put nothing: the client's reaches the service there. */
export interface ClientsChoice {
  readonly target: Level
  readonly place: NamedPlace
  /** Whether it could be put there, if an option said so. */
  readonly isPlaceable: boolean
}

/** @param members of the bodies that reach the service. `isRead`: Postern reads them, and can put something there */
export function clientsChoices(
  { parameters }: DescribedOperation,
  targets: TargetParameters,
  members: readonly (BodyMember & { readonly isRead: boolean })[],
): readonly ClientsChoice[] {
  const places = new Map<string, ClientsChoice>()
  const note = (place: NamedPlace, isPlaceable: boolean): void => {
    const target = targetAt(place, targets)
    const isPut = isPlaceable && target !== undefined && valueForPlace(target, place, targets) !== undefined
    if (target !== undefined && !isPut) places.set(placeText(place), { target, place, isPlaceable })
  }
  for (const each of parameters) {
    const place = placeAt(each)
    if (place !== undefined) note(place, place.kind !== 'cookie')
  }
  for (const { path, repeated, isRead } of members)
    note({ kind: 'body', name: pointerText(path) }, isRead && !repeated)
  return [...places.values()]
}

/** How many places are proposed. */
const MOST_PLACES = 5

/** The note where the business is taken from nowhere. */
export function noBusinessText(places: readonly FoundPlace[]): string {
  const proposed = places.slice(0, MOST_PLACES)
  return [
    'no path, query or header names a business: the service must read it from the header X-Postern-Business (--business-in identity), or every business sees the same data',
    ...(proposed.length === 0
      ? []
      : [
          `If it stands in a place of these, remove the file and start again with it: ${proposed.map((each) => `--business-in ${countedText(each)}`).join(', ')}`,
        ]),
  ].join('. ')
}

// Makes of a path of a service the path of an action, and what the service is asked for.

export interface MappedPath {
  /** Which codes its segments are. */
  readonly targets: ReadonlySet<Level>
  /** Its parameters that are the business, with what is put there. */
  readonly business: readonly BusinessPlace[]
  /** A word of the path that names what it is about, for an operation without a tag. */
  readonly word: string
  /** `pets/{petId}`: parameters without their types. The shortest first; the next ones keep more words of the path. */
  readonly actions: readonly [string, ...string[]]
  /** The types of its parameters, by their names in `actions`: `uuid`, `integer`, `/a|b/`. */
  readonly types: ReadonlyMap<string, string>
  /** The path that the service is asked for. */
  readonly sent: string
  /** Parameters whose type cannot be said. */
  readonly untyped: readonly string[]
}

const LITERAL = /^[A-Za-z0-9._~-]+$/
/** Text that may be used unchanged in a path to a service. */
const SENDABLE = /^[A-Za-z0-9._~!$&'()*+,=:@-]*$/
const PARAMETER = /\{([^{}]+)\}/g
/** Names that mean something else in the path that a service is asked for (C8.7). */
const RESERVED: ReadonlySet<string> = new Set([...Object.keys(BUILT_IN), 'query', 'body'])

function parameterName(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9]+/g, '_')
  const begun = /^[A-Za-z]/.test(plain) ? plain : `p${plain}`
  return RESERVED.has(begun) ? `${begun}_` : begun
}

interface Segment {
  /** As the service has it. */
  readonly sent: string
  /** As the action has it; undefined: it is not a part of the action. */
  readonly own: string | undefined
  readonly target: Level | undefined
  /** The name of the parameter, where there is a target. */
  readonly name: string
}

type Placeholder = { readonly text: string; readonly target: Level | undefined }

function placeholderOf(name: string, own: string, targets: TargetParameters): Placeholder {
  const place = { kind: 'path', name } as const
  const target = targetAt(place, targets)
  const value = target && valueForPlace(target, place, targets)
  return value === undefined ? { text: `{${own}}`, target: undefined } : { text: value, target }
}

/** Names of parameters as an action may have them, each once. */
function ownNames(path: string): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  for (const [, name = ''] of path.matchAll(PARAMETER)) {
    const own = parameterName(name)
    let free = own
    for (let count = 2; [...names.values()].includes(free); count++) free = `${own}_${count}`
    if (!names.has(name)) names.set(name, free)
  }
  return names
}

/** A text instead of a segment says why there is none. */
function segmentOf(
  text: string,
  own: ReadonlyMap<string, string>,
  targets: TargetParameters,
): Segment | string {
  const names = [...text.matchAll(PARAMETER)].map(([, name = '']) => name)
  const [name, ...others] = names
  if (others.length > 0) return `the segment "${text}" has several parameters`
  if (!SENDABLE.test(text.replaceAll(PARAMETER, '')))
    return `the segment "${text}" has other characters than a path may`
  if (name === undefined) {
    const literal = LITERAL.test(text) ? text : slugOf(text)
    return literal === undefined
      ? `the segment "${text}" has no letter and no digit`
      : { sent: text, own: literal, target: undefined, name: '' }
  }
  const { text: placeholder, target } = placeholderOf(name, own.get(name) ?? name, targets)
  const before = slugOf(text.slice(0, text.indexOf('{')))
  return {
    sent: text.replace(PARAMETER, () => placeholder),
    // `orders({id})` is `orders/{id}`: without the word, it would take the place of every other action.
    own:
      target === undefined ? [before, placeholder].filter((part) => part !== undefined).join('/') : undefined,
    target,
    name,
  }
}

/**
 * The word before the code of a business or fund names what the code is of: `/funds/{fund}/members` is `members`. Where
 * another path is that too, it is `funds/members`, and then `funds/fund/members`.
 */
function actionsOf(segments: readonly Segment[]): MappedPath['actions'] {
  const words = segments.flatMap(({ own }) => own ?? [])
  const short = segments.flatMap(({ own }, at) =>
    own === undefined || (!own.includes('{') && segments[at + 1]?.target !== undefined) ? [] : [own],
  )
  const long = segments.flatMap(({ own, name }) => own ?? slugOf(name) ?? [])
  const first = short.length > 0 ? short : [words.at(-1) ?? 'root']
  const next = new Set([words, long].flatMap((each) => (each.length === 0 ? [] : [each.join('/')])))
  next.delete(first.join('/'))
  return [first.join('/'), ...next]
}

/** Parts at the beginning of a path that tell nothing of what it is about. */
const GENERAL = /^(?:api|rest|v\d+(?:\.\d+)*)$/i

function wordOf(action: string): string {
  const words = action.split('/').filter((segment) => !segment.includes('{'))
  return words.find((word) => !GENERAL.test(word)) ?? words[0] ?? 'api'
}

const isType = (type: string): boolean => {
  try {
    return parsePathPattern(`{x:${type}}`).length === 1
  } catch {
    return false
  }
}

/** Whether no number below zero fits. In OpenAPI 3.0 `exclusiveMinimum` is a switch for the limit. */
const isNatural = ({ minimum, exclusiveMinimum }: JsonObject): boolean =>
  (typeof minimum === 'number' && minimum > -1) ||
  (typeof exclusiveMinimum === 'number' && exclusiveMinimum >= -1)

/** Undefined: any segment. Null: what is demanded cannot be said. */
function typeOf(schema: JsonObject): string | null | undefined {
  const values = listOf(schema['enum']).map(shortText)
  const pattern = trimmedText(schema['pattern'])
  if (values.length > 0) {
    const type = `/${values.join('|')}/`
    return values.every((value) => /^\w+$/.test(value)) && isType(type) ? type : null
  }
  if (pattern !== undefined) {
    // The type is matched against the whole segment.
    const [, whole] = /^\^([^|]+)\$$/.exec(pattern) ?? []
    return whole !== undefined && isType(`/${whole}/`) ? `/${whole}/` : null
  }
  if (schema['type'] === 'integer') return isNatural(schema) ? 'integer' : 'signed'
  return schema['format'] === 'uuid' ? 'uuid' : undefined
}

/** The path of an action with the types of its parameters. */
export const typedAction = (action: string, types: ReadonlyMap<string, string>): string =>
  action.replaceAll(PARAMETER, (_all, name: string) => {
    const type = types.get(name)
    return type === undefined ? `{${name}}` : `{${name}:${type}}`
  })

/**
 * @param parameters the path parameters, with `name` and `schema`
 * @returns why the path cannot be an action's, if it cannot
 */
export function mapPath(
  path: string,
  parameters: readonly JsonObject[],
  targets: TargetParameters,
): MappedPath | string {
  const texts = path.replace(/^\//, '').replace(/\/$/, '').split('/')
  const own = ownNames(path)
  const mapped =
    texts[0] === '' && texts.length === 1 ? [] : texts.map((text) => segmentOf(text, own, targets))
  const refused = mapped.find((each) => typeof each === 'string')
  if (refused !== undefined) return refused
  const segments = mapped.filter((each) => typeof each !== 'string')
  const actions = actionsOf(segments)
  const sent = `/${segments.map((each) => each.sent).join('/')}${path.length > 1 && path.endsWith('/') ? '/' : ''}`
  const types = new Map<string, string>()
  const untyped: string[] = []
  for (const { name, schema } of parameters) {
    const type = typeOf(objectOf(schema))
    if (type === null) untyped.push(shortText(name))
    else if (type !== undefined) types.set(own.get(shortText(name)) ?? '', type)
  }
  try {
    for (const action of actions) parsePathPattern(typedAction(action, types))
  } catch (thrown) {
    return (thrown as Error).message
  }
  return {
    targets: new Set(segments.flatMap(({ target }) => target ?? [])),
    business: segments.flatMap(({ target, name }) =>
      target === 'business'
        ? [{ kind: 'path', name, value: valueForPlace(target, { kind: 'path', name }, targets) ?? '' }]
        : [],
    ),
    word: wordOf(actions[0]),
    actions,
    types,
    untyped,
    sent,
  }
}
