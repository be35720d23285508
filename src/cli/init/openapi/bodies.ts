/** What goes to the service and what comes back, as an operation of the configuration says it. */
import { type BodySchema, typesOf } from '../../../http/body-schema.ts'
import { type JsonValue, parseJsonPointer } from '../../../http/json.ts'
import type { DescribedMethod } from '../configuration-text.ts'
import type { BusinessPlace } from './places.ts'
import type { NamedSchemaSet } from './named-schemas.ts'
import { type Contents, type DescribedOperation, nameOf, wordsOf } from './operations.ts'
import { convertSchema, type ConvertedSchema, type Side } from './schema.ts'

/** Tells what cannot be said. */
export type Tell = (what: string) => void

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json$|^\*\/\*$|^application\/\*$/
const XML_TYPE = /^(?:application|text)\/(?:[\w.+-]+\+)?xml$/
const FORM = 'application/x-www-form-urlencoded'

interface Sorted {
  /** What Postern reads and writes as JSON; undefined if it has no schema. */
  readonly json: { readonly schema: JsonValue | undefined } | undefined
  readonly form: { readonly schema: JsonValue | undefined } | undefined
  readonly xml: { readonly schema: JsonValue | undefined } | undefined
  /** All others. */
  readonly others: readonly string[]
}

function sorted(contents: Contents): Sorted {
  const first = (fits: (type: string) => boolean): Sorted['json'] => {
    const [, ...found] = [...contents].find(([type]) => fits(type)) ?? []
    return found.length === 0 ? undefined : { schema: found[0] }
  }
  const isOther = (type: string): boolean => !JSON_TYPE.test(type) && !XML_TYPE.test(type) && type !== FORM
  return {
    json: first((type) => JSON_TYPE.test(type)),
    form: first((type) => type === FORM),
    xml: first((type) => XML_TYPE.test(type)),
    others: [...contents.keys()].filter(isOther),
  }
}

/** The schemas of bodies that reach the service, and whether Postern reads them: others are streamed. */
export function sentSchemas({ body, method }: DescribedOperation): {
  readonly isRead: boolean
  readonly schemas: readonly (JsonValue | undefined)[]
} {
  if (body === undefined || method === 'GET') return { isRead: false, schemas: [] }
  const { json, form, xml } = sorted(body.contents)
  const read = [json, form, xml].filter((each) => each !== undefined)
  return read.length === 0
    ? { isRead: false, schemas: [...body.contents.values()] }
    : { isRead: true, schemas: read.map(({ schema }) => schema) }
}

function converted(
  value: JsonValue | undefined,
  side: Side,
  book: NamedSchemaSet,
  tell: Tell,
): Pick<ConvertedSchema, 'schema' | 'items'> {
  const { schema, lost, items } = convertSchema(value, side, book)
  book.complete()
  const of = side === 'request' ? 'the body' : 'the answer'
  if (lost.size > 0) tell(`of the schema of ${of} these are left out: ${[...lost].join(', ')}`)
  return { schema, items: new Map([...book.itemsWithin(schema), ...items]) }
}

const AS_JSON = 'as JSON. If it wants another form, see upstream.format in config/reference.md'

interface RequestKeys extends Pick<DescribedMethod, 'body' | 'consumes'> {
  readonly upstream?: NonNullable<DescribedMethod['upstream']>['body']
}

export function requestKeys(
  operation: DescribedOperation,
  book: NamedSchemaSet,
  tell: Tell,
  places: readonly BusinessPlace[],
): RequestKeys {
  const { body, method } = operation
  if (body === undefined || body.contents.size === 0) return {}
  if (method === 'GET') {
    tell('a GET has no body: the one that is described is refused')
    return {}
  }
  const { json, form, xml, others } = sorted(body.contents)
  const read = json ?? form ?? xml
  if (read === undefined) return { consumes: others }
  if (json === undefined && form === undefined) tell(`its body reaches the service ${AS_JSON}`)
  if (others.length > 0) tell(`a body of ${others.join(', ')} is refused, because one of JSON is checked`)
  const schema = read.schema === undefined ? undefined : converted(read.schema, 'request', book, tell).schema
  const own = places.reduce((left, { name }) => left && book.without(left, parseJsonPointer(name)), schema)
  const closed = json === undefined && form !== undefined ? closedForm(own, book) : undefined
  if (json === undefined && form !== undefined)
    tell(
      closed === undefined
        ? `its body reaches the service ${AS_JSON}`
        : 'a form with other fields than those that are described is refused',
    )
  const sent = {
    ...(closed && ({ format: 'form' } as const)),
    ...(places.length > 0 && { set: Object.fromEntries(places.map(({ name, value }) => [name, value])) }),
  }
  return {
    body: {
      ...(body.required ? {} : ({ required: false } as const)),
      ...(own === undefined ? {} : { schema: closed ?? own }),
    },
    ...(Object.keys(sent).length > 0 && { upstream: sent }),
  }
}

const SCALARS: ReadonlySet<string> = new Set(['string', 'number', 'integer', 'boolean'])

const isScalar = (schema: BodySchema): boolean => {
  const types = typesOf(schema)
  return types.length > 0 && types.every((type) => SCALARS.has(type))
}

/** The schema of a form that Postern can write: it knows all fields, and each is a text or a list of texts. */
function closedForm(schema: BodySchema | undefined, book: NamedSchemaSet): BodySchema | undefined {
  if (schema === undefined) return undefined
  const { properties = {}, ...form } = book.resolved(schema)
  const isField = (field: BodySchema): boolean =>
    isScalar(field) ||
    (typesOf(field).join('') === 'array' && field.items !== undefined && isScalar(field.items))
  if (!Object.values(properties).every(isField) || typesOf(form).some((type) => type !== 'object'))
    return undefined
  return { ...form, type: 'object', properties, additionalProperties: false }
}

/** A name that a configuration can have (C4.11). */
const QUERY_NAME = /^[^\s{}&;=#%+]{1,64}$/

/** What is checked of the query: single texts, numbers and booleans. Others pass unchecked. */
export function queryParameters(
  { parameters }: DescribedOperation,
  isPosterns: (name: string) => boolean,
  book: NamedSchemaSet,
): Pick<DescribedMethod, 'parameters'> {
  const own = parameters.flatMap((each) => {
    const name = nameOf(each['name'])
    if (each['in'] !== 'query' || isPosterns(name) || !QUERY_NAME.test(name)) return []
    const { schema: converted } = convertSchema(each['schema'], 'request', book)
    book.complete()
    const schema = book.resolved(converted)
    if (!isScalar(schema) || typeof schema.type !== 'string') return []
    const description = wordsOf(each['description']) ?? schema.description
    const told = description === undefined ? schema : { ...schema, description }
    const parameter = Object.fromEntries(Object.entries(told).filter(([key]) => key !== 'required'))
    return [[name, { ...parameter, ...(each['required'] === true && { required: true }) }] as const]
  })
  return own.length === 0 ? {} : { parameters: Object.fromEntries(own) }
}

/** The schema of `Data`, which always is an object (C8.6). Undefined if nothing is known of it. */
function dataOf(schema: BodySchema, book: NamedSchemaSet): BodySchema | undefined {
  const { properties, ...named } = book.resolved(schema)
  const types = typesOf(named)
  const isObject = types.includes('object') || (types.length === 0 && properties !== undefined)
  if (isObject) return schema.$ref === undefined ? { ...schema, type: 'object' } : schema
  if (types.length === 0) return undefined
  const member = types.includes('array') ? 'Items' : 'Value'
  return { type: 'object', properties: { [member]: schema } }
}

type AnswerKeys = Pick<DescribedMethod, 'data' | 'items' | 'produces'>

export function answerKeys(operation: DescribedOperation, book: NamedSchemaSet, tell: Tell): AnswerKeys {
  const { json, xml, others } = sorted(operation.answers)
  const read = json ?? xml
  if (read === undefined) {
    if (others.includes('text/event-stream')) tell('an event stream needs a backend of kind stream')
    return others.length === 0 ? {} : { produces: others }
  }
  if (json === undefined) tell('the service answers XML: see upstream.format in config/reference.md')
  if (others.length > 0) tell(`answers of ${others.join(', ')} are not passed on, because others are JSON`)
  if (read.schema === undefined) return {}
  const { schema, items } = converted(read.schema, 'answer', book, tell)
  const data = dataOf(schema, book)
  return {
    ...(items.size > 0 ? { items: Object.fromEntries(items) } : {}),
    ...(data === undefined ? {} : { data }),
  }
}
