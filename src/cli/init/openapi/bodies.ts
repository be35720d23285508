/** What goes to the service and what comes back, as an operation of the configuration says it. */
import { type BodySchema, typesOf } from '../../../http/body-schema.ts'
import type { JsonValue } from '../../../http/json.ts'
import type { DescribedMethod } from '../configuration-text.ts'
import type { SchemaBook } from './named-schemas.ts'
import type { Contents, DescribedOperation } from './operations.ts'
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

function converted(
  value: JsonValue | undefined,
  side: Side,
  book: SchemaBook,
  tell: Tell,
): Pick<ConvertedSchema, 'schema' | 'items'> {
  const { schema, lost, items } = convertSchema(value, side, book)
  book.complete()
  const of = side === 'request' ? 'the body' : 'the answer'
  if (lost.size > 0) tell(`of the schema of ${of} these are left out: ${[...lost].join(', ')}`)
  return { schema, items: new Map([...book.itemsWithin(schema), ...items]) }
}

const AS_JSON = 'as JSON. If it wants another form, see upstream.format in config/reference.md'

type RequestKeys = Pick<DescribedMethod, 'body' | 'consumes'>

export function requestKeys(operation: DescribedOperation, book: SchemaBook, tell: Tell): RequestKeys {
  const { body, method } = operation
  if (body === undefined || body.contents.size === 0) return {}
  if (method === 'GET') {
    tell('a GET has no body: the one that is described is refused')
    return {}
  }
  const { json, form, xml, others } = sorted(body.contents)
  const read = json ?? form ?? xml
  if (read === undefined) return { consumes: others }
  if (json === undefined) tell(`its body reaches the service ${AS_JSON}`)
  if (others.length > 0) tell(`a body of ${others.join(', ')} is refused, because one of JSON is checked`)
  return {
    body: {
      ...(body.required ? {} : ({ required: false } as const)),
      ...(read.schema === undefined ? {} : { schema: converted(read.schema, 'request', book, tell).schema }),
    },
  }
}

/** The schema of `Data`, which always is an object (C8.6). Undefined if nothing is known of it. */
function dataOf(schema: BodySchema, book: SchemaBook): BodySchema | undefined {
  const { properties, ...named } = book.resolved(schema)
  const types = typesOf(named)
  const isObject = types.includes('object') || (types.length === 0 && properties !== undefined)
  if (isObject) return schema.$ref === undefined ? { ...schema, type: 'object' } : schema
  if (types.length === 0) return undefined
  const member = types.includes('array') ? 'Items' : 'Value'
  return { type: 'object', properties: { [member]: schema } }
}

type AnswerKeys = Pick<DescribedMethod, 'data' | 'items' | 'produces'>

export function answerKeys(operation: DescribedOperation, book: SchemaBook, tell: Tell): AnswerKeys {
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
