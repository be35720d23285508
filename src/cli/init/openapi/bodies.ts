/** What goes to the service and what comes back, as an operation of the configuration says it. */
import type { BodySchema } from '../../../http/body-schema.ts'
import type { JsonValue } from '../../../http/json-value.ts'
import type { DescribedMethod } from '../service.ts'
import type { Contents, DescribedOperation } from './operations.ts'
import { convertSchema, type ConvertedSchema } from './schema.ts'

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
  side: 'request' | 'answer',
  { document }: DescribedOperation,
  tell: Tell,
): ConvertedSchema {
  const made = convertSchema(value, side, document)
  const of = side === 'request' ? 'the body' : 'the answer'
  if (made.lost.size > 0) tell(`of the schema of ${of} these are left out: ${[...made.lost].join(', ')}`)
  return made
}

const AS_JSON = 'as JSON. If it wants another form, see upstream.format in config/reference.md'

type RequestKeys = Pick<DescribedMethod, 'body' | 'consumes'>

export function requestKeys(operation: DescribedOperation, tell: Tell): RequestKeys {
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
      ...(read.schema === undefined
        ? {}
        : { schema: converted(read.schema, 'request', operation, tell).schema }),
    },
  }
}

const typesOf = ({ type }: BodySchema): readonly string[] =>
  type === undefined ? [] : typeof type === 'string' ? [type] : type

/** The schema of `Data`, which always is an object (C8.6). Undefined if nothing is known of it. */
function dataOf(schema: BodySchema): BodySchema | undefined {
  const types = typesOf(schema)
  if (types.includes('object')) return { ...schema, type: 'object' }
  if (types.length === 0) return schema.properties === undefined ? undefined : { ...schema, type: 'object' }
  const member = types.includes('array') ? 'Items' : 'Value'
  return { type: 'object', properties: { [member]: schema } }
}

type AnswerKeys = Pick<DescribedMethod, 'data' | 'items' | 'produces'>

export function answerKeys(operation: DescribedOperation, tell: Tell): AnswerKeys {
  const { json, xml, others } = sorted(operation.answers)
  const read = json ?? xml
  if (read === undefined) {
    if (others.includes('text/event-stream')) tell('an event stream needs a backend of kind stream')
    return others.length === 0 ? {} : { produces: others }
  }
  if (json === undefined) tell('the service answers XML: see upstream.format in config/reference.md')
  if (others.length > 0) tell(`answers of ${others.join(', ')} are not passed on, because others are JSON`)
  if (read.schema === undefined) return {}
  const { schema, items } = converted(read.schema, 'answer', operation, tell)
  const data = dataOf(schema)
  return {
    ...(Object.keys(items).length > 0 ? { items } : {}),
    ...(data === undefined ? {} : { data }),
  }
}
