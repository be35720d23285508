/** Where a service may take the business from: the places that its description has, and those that were chosen. */
import { type JsonObject, parseJsonPointer, pointerText } from '../../base/http/body/json.ts'
import { countOf } from '../../operate/operation/terminal.ts'
import { BodyMembers } from './body-members.ts'
import { type DescribedOperation, listOf, shortText, objectOf, trimmedText } from './operations.ts'

/** `X-Tenant-ID`, `tenant_id` and `tenantId` are one name. */
export const foldParameter = (name: string): string =>
  name
    .toLowerCase()
    .replace(/^x[-_]/, '')
    .replaceAll(/[-_]/g, '')

const KINDS = ['header', 'path', 'query', 'body', 'host', 'identity'] as const
export type PlaceKind = (typeof KINDS)[number]

/** A place in a call: a parameter, or a member of the body. */
export interface NamedPlace {
  readonly kind: PlaceKind | 'cookie'
  /** The name of the parameter; a JSON Pointer into the body; empty for `host` and `identity`. */
  readonly name: string
}

/** The name of the parameter or member: the last step of a pointer. */
export const lastName = ({ kind, name }: NamedPlace): string =>
  kind === 'body' ? (parseJsonPointer(name).at(-1) ?? '') : name

/** `header:xero-tenant-id={business.tenant}`, read. */
export interface BusinessPlace extends NamedPlace {
  readonly kind: PlaceKind
  /** The value that Postern writes there. */
  readonly value: string
}

const PLACE = new RegExp(`^(${KINDS.join('|')})(?::([^=]+))?(?:=(.+))?$`, 's')
const NAMED: ReadonlySet<string> = new Set(['header', 'path', 'query', 'body'])
const BUSINESS = /\{business(?:\.([A-Za-z][A-Za-z0-9_-]{0,63}))?\}/g

const NOT_BUSINESS = /^(header|path|query|body|cookie):(.+)$/s

/** `body:/order/business`; undefined for what is no place. */
export function readNotBusiness(text: string): NamedPlace | undefined {
  const [, kind, name = ''] = NOT_BUSINESS.exec(text) ?? []
  if (kind === undefined || (kind === 'body' && !name.startsWith('/'))) return undefined
  return { kind: kind as NamedPlace['kind'], name }
}

export const PLACE_EXPECTED =
  'header:NAME, path:NAME, query:NAME, body:/POINTER, host or identity, and behind = what stands there, such as {business} or {business.tenant}'

/** Undefined for what is no place. */
export function readPlace(text: string): BusinessPlace | undefined {
  const [, kind, name = '', value = '{business}'] = PLACE.exec(text) ?? []
  if (kind === undefined || NAMED.has(kind) !== (name !== '')) return undefined
  if (kind === 'body' && !name.startsWith('/')) return undefined
  return value.search(BUSINESS) < 0 ? undefined : { kind: kind as PlaceKind, name, value }
}

/** The keys of values of a business that are named: `tenant` of `{business.tenant}`. */
export const keysIn = (places: readonly BusinessPlace[]): readonly string[] => [
  ...new Set(places.flatMap(({ value }) => [...value.matchAll(BUSINESS)].flatMap(([, key]) => key ?? []))),
]

export const placeText = ({ kind, name }: NamedPlace): string => (name === '' ? kind : `${kind}:${name}`)

/** `path:org`, or with what is put there `path:org={business.tenant}`. */
export const filledText = (place: BusinessPlace): string =>
  `${placeText(place)}${place.value === '{business}' ? '' : `=${place.value}`}`

/** `header:x-tenant (2 operations)`. */
export const countedText = (place: FoundPlace): string =>
  `${placeText(place)} (${countOf(place.operations, 'operation')})`

/** Whether both are one place: names of headers and parameters are compared folded, pointers as they are. */
export const isSamePlace = (one: NamedPlace, other: NamedPlace): boolean => keyOf(one) === keyOf(other)

/** A place that the description has. */
export interface FoundPlace extends NamedPlace {
  readonly operations: number
}

/** Where the business could be written, and which of these places have a usual name. */
export interface ProposedPlaces {
  readonly all: readonly FoundPlace[]
  readonly usual: readonly FoundPlace[]
}

/** Names of members of bodies that are often a business. Others are found where they are asked for. */
const LIKELY =
  /tenant|business|company|organi[sz]ation|^org|account|customer|workspace|mandant|realm|project|subscription|database/i

/**
 * All places, those with likely names first, then those of most operations.
 * @param asked pointers into bodies that are looked for under any names
 */
export function placesOf(
  operations: readonly DescribedOperation[],
  document: JsonObject,
  asked: readonly string[] = [],
): readonly FoundPlace[] {
  const uses = new Map<string, FoundPlace>()
  const last = new Set(asked.map((pointer) => parseJsonPointer(pointer).at(-1)))
  const members = new BodyMembers(document, (name) => LIKELY.test(name) || last.has(name))
  for (const operation of operations)
    for (const [key, place] of new Map(placesIn(operation, members).map((each) => [keyOf(each), each])))
      uses.set(key, { ...place, operations: (uses.get(key)?.operations ?? 0) + 1 })
  const isLikely = ({ name }: FoundPlace): number => Number(LIKELY.test(name))
  const host = hostOf(document)
  return [
    ...uses
      .values()
      .toArray()
      .toSorted((a, b) => isLikely(b) - isLikely(a) || b.operations - a.operations),
    ...(host?.includes('{') === true
      ? [{ kind: 'host', name: '', operations: operations.length } as const]
      : []),
  ]
}

const keyOf = ({ kind, name }: NamedPlace): string =>
  `${kind} ${kind === 'body' ? name : foldParameter(name)}`

function placesIn(
  { path, parameters, body }: DescribedOperation,
  members: BodyMembers,
): readonly Pick<FoundPlace, 'kind' | 'name'>[] {
  const sent = parameters.flatMap(({ in: kind, name }) =>
    kind === 'query' || kind === 'header' ? [{ kind, name: shortText(name) } as const] : [],
  )
  const inPath = [...path.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => ({ kind: 'path', name }) as const)
  const inBody = [...(body?.contents.values() ?? [])].flatMap((schema) =>
    members
      .in(schema)
      .filter(({ repeated, path: at }) => !repeated && at.length <= DEEPEST)
      .map((member) => ({ kind: 'body', name: pointerText(member.path) }) as const),
  )
  return [...sent, ...inPath, ...inBody]
}

/** How deep a member of a body may be to be proposed. */
const DEEPEST = 4

/** The host of the first server, with its variables as they are written; undefined if there is none. */
export function hostOf(document: JsonObject): string | undefined {
  const url = trimmedText(objectOf(listOf(document['servers'])[0])['url']) ?? ''
  return /^https?:\/\/([^/?#]+)/.exec(url)?.[1]
}

/** The host of a service, with the value of the business in it. */
export function hostTemplate(document: JsonObject, { value }: BusinessPlace): string {
  const host = hostOf(document)?.replace(/:\d+$/, '')
  return host?.includes('{') === true && /^\{[^{}]+\}$/.test(value)
    ? host.replace(/\{[^{}]+\}/, () => value)
    : value
}
