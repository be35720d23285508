/**
 * Where an operation of a description takes the code of a business or of a fund. Postern puts that of the call there, so
 * that no client chooses the business for itself.
 */
import { isJsonObject } from '../../../http/json-pointer.ts'
import type { JsonObject, JsonValue } from '../../../http/json-value.ts'
import type { DescribedMethod, Level } from '../service.ts'
import type { DescribedOperation } from './operations.ts'
import { listOf, nameOf, objectOf, referenced, textOf } from './parts.ts'

/** Which parameters are the codes of businesses and of funds, folded. */
export type TargetParameters = Readonly<Record<Level, ReadonlySet<string>>>

/** `X-Tenant-ID`, `tenant_id` and `tenantId` are one name. */
export const foldParameter = (name: string): string =>
  name
    .toLowerCase()
    .replace(/^x[-_]/, '')
    .replaceAll(/[-_]/g, '')

/** What a parameter is the code of; undefined: something else. */
export function targetOf(name: string, { business, fund }: TargetParameters): Level | undefined {
  const folded = foldParameter(name)
  if (business.has(folded)) return 'business'
  return fund.has(folded) ? 'fund' : undefined
}

/** Whether a way to be known to the service is a code: some ask for the tenant as for a key. */
export const isCode = (scheme: JsonObject, targets: TargetParameters): boolean =>
  scheme['type'] === 'apiKey' && targetOf(nameOf(scheme['name']), targets) !== undefined

/** Keys that are codes, as parameters. */
const keyParameters = (schemes: JsonObject, targets: TargetParameters): readonly JsonObject[] =>
  Object.values(schemes)
    .map(objectOf)
    .filter((scheme) => isCode(scheme, targets))
    .map((scheme) => ({ in: nameOf(scheme['in']), name: nameOf(scheme['name']) }))

/** The headers of operations that are the code of the business. */
const businessHeaders = (
  operations: readonly DescribedOperation[],
  targets: TargetParameters,
): readonly JsonObject[] =>
  operations
    .flatMap(({ parameters }) => parameters)
    .filter((each) => each['in'] === 'header' && targetOf(nameOf(each['name']), targets) === 'business')
    .map((each) => ({ in: 'header', name: nameOf(each['name']) }))

const placeOf = (parameter: JsonObject): string =>
  `${nameOf(parameter['in'])} ${nameOf(parameter['name']).toLowerCase()}`

/** What is a code for one operation of a service may be read by the others, also where their description lacks it. */
export function withCodes(
  operations: readonly DescribedOperation[],
  schemes: JsonObject,
  targets: TargetParameters,
): readonly DescribedOperation[] {
  const found = [...keyParameters(schemes, targets), ...businessHeaders(operations, targets)]
  const codes = new Map(found.map((each) => [placeOf(each), each]))
  return operations.map((operation) => {
    const own = new Set(operation.parameters.map(placeOf))
    const more = [...codes].flatMap(([place, code]) => (own.has(place) ? [] : [code]))
    return { ...operation, parameters: [...operation.parameters, ...more] }
  })
}

export interface BoundParameters {
  /** What of them is said in the configuration, in place of what a client sends. */
  readonly upstream: Pick<NonNullable<DescribedMethod['upstream']>, 'query' | 'headers'>
  readonly targets: ReadonlySet<Level>
}

/** The parameters in query and headers that are codes. */
export function boundParameters(
  { parameters }: DescribedOperation,
  targets: TargetParameters,
): BoundParameters {
  const found = parameters.flatMap((each) => {
    const name = nameOf(each['name'])
    const target = targetOf(name, targets)
    return target === undefined ? [] : [{ place: each['in'], name, target }]
  })
  const of = (place: string) => found.filter((each) => each.place === place)
  const said = (place: string) =>
    Object.fromEntries(of(place).map(({ name, target }) => [name, `{${target}}`]))
  const [query, headers] = [said('query'), said('header')]
  return {
    upstream: {
      ...(Object.keys(query).length > 0 && { query }),
      ...(Object.keys(headers).length > 0 && { headers }),
    },
    targets: new Set([...of('query'), ...of('header')].map(({ target }) => target)),
  }
}

/** A code in a place where a configuration can put nothing: the client's reaches the service there. */
export interface ClientsChoice {
  readonly target: Level
  /** `the cookie tenant`, `order.tenantId of the body`. */
  readonly place: string
}

export function clientsChoices(
  { parameters, body, document }: DescribedOperation,
  targets: TargetParameters,
): readonly ClientsChoice[] {
  const places = new Map<string, Level>()
  for (const each of parameters.filter((one) => one['in'] === 'cookie')) {
    const target = targetOf(nameOf(each['name']), targets)
    if (target !== undefined) places.set(`the cookie ${nameOf(each['name'])}`, target)
  }
  for (const schema of body?.contents.values() ?? [])
    for (const path of membersOf(schema, document)) {
      const target = targetOf(path.at(-1) ?? '', targets)
      if (target !== undefined) places.set(`${path.join('.')} of the body`, target)
    }
  return [...places].map(([place, target]) => ({ place, target }))
}

/** Parts of a schema whose members are the schema's own, or of items of it. */
const PARTS = ['items', 'additionalProperties'] as const
const ALTERNATIVES = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const

/** The paths of all members that a body may have. A schema that is met again is not read again. */
function membersOf(schema: JsonValue | undefined, document: JsonObject): readonly (readonly string[])[] {
  const seen = new Set<JsonObject>()
  const found: (readonly string[])[] = []
  const read = (value: JsonValue | undefined, path: readonly string[]): void => {
    if (!isJsonObject(value) || seen.has(value)) return
    seen.add(value)
    const pointer = textOf(value['$ref'])
    if (pointer !== undefined) read(referenced(document, pointer), path)
    for (const name of PARTS) read(value[name], path)
    for (const name of ALTERNATIVES) for (const part of listOf(value[name])) read(part, path)
    for (const [name, member] of Object.entries(objectOf(value['properties']))) {
      if (objectOf(member)['readOnly'] === true) continue
      found.push([...path, name])
      read(member, [...path, name])
    }
  }
  read(schema, [])
  return found
}

const NO_BUSINESS =
  'no path, query or header names a business: the service must read it from the header X-Postern-Business, or every business sees the same data'

/** How many names are proposed. */
const MOST_NAMES = 3

/** The names of parameters in path, query and headers, those of most operations first. */
export function parameterNames(operations: readonly DescribedOperation[]): readonly string[] {
  const uses = new Map<string, number>()
  for (const { path, parameters } of operations) {
    const sent = parameters.filter((each) => each['in'] === 'query' || each['in'] === 'header')
    const inPath = [...path.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => name)
    for (const name of new Set([...inPath, ...sent.map((each) => nameOf(each['name']))]))
      uses.set(name, (uses.get(name) ?? 0) + 1)
  }
  return [...uses].toSorted(([, one], [, other]) => other - one).map(([name]) => name)
}

/** What is told where no operation has a parameter that is taken for the code of a business. */
export function noBusinessText(operations: readonly DescribedOperation[]): string {
  const names = parameterNames(operations).slice(0, MOST_NAMES)
  if (names.length === 0) return NO_BUSINESS
  return `${NO_BUSINESS}. If a parameter is its code, remove the file and start again with --business-parameter NAME (the operations have ${names.join(', ')})`
}
