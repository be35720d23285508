/** The bodies to and from the service, as an operation of the configuration says them. */
import { Problems } from '../../base/config/problems.ts'
import { compileQueryRule } from '../../gateway/actions/parameters.ts'
import type { ParameterConfig } from '../../gateway/actions/schema.ts'
import { type BodySchema, isNothing, NOTHING, typesOf } from '../../base/http/body/body-schema.ts'
import { MEDIA_TYPE_OF } from '../../base/http/head/media-type.ts'
import { type JsonObject, type JsonValue, parseJsonPointer } from '../../base/http/body/json.ts'
import type { BusinessPlace } from './places.ts'
import type { NamedSchemaSet } from './named-schemas.ts'
import {
  type Contents,
  type DescribedOperation,
  shortText,
  objectOf,
  referenced,
  descriptionText,
} from './operations.ts'
import { convertSchema, type ConvertedSchema, type Side } from './schema.ts'
import { LOST, type Tell } from './tell.ts'
import type { DescribedMethod } from '../../operate/hooks/first-configuration.ts'

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json$/
const ANY_TYPE: ReadonlySet<string> = new Set(['*/*', 'application/*'])
const XML_TYPE = /^(?:application|text)\/(?:[\w.+-]+\+)?xml$/

interface Found {
  readonly type: string
  readonly schema: JsonValue | undefined
}

interface Sorted {
  /** The body that Postern reads and writes as JSON; undefined if it has no schema. The plain type comes first. */
  readonly json: Found | undefined
  readonly form: Found | undefined
  readonly xml: Found | undefined
  /** All others. */
  readonly others: readonly string[]
}

/** Whether a schema is of bytes. @param side a body without a schema may be anything; such an answer is JSON mostly */
function isBinary(schema: JsonValue | undefined, side: Side, document: JsonObject): boolean {
  const pointer = objectOf(schema)['$ref']
  const own = typeof pointer === 'string' ? objectOf(referenced(document, pointer)) : objectOf(schema)
  if (side === 'request' && Object.keys(own).length === 0) return true
  return own['format'] === 'binary' || own['type'] === 'file' || own['contentMediaType'] !== undefined
}

function sorted(contents: Contents, side: Side, document: JsonObject): Sorted {
  const all = [...contents].map(([type, schema]) => ({ type, schema }))
  const isJson = ({ type, schema }: Found): boolean =>
    JSON_TYPE.test(type) || (ANY_TYPE.has(type) && !isBinary(schema, side, document))
  const json = all.find(({ type }) => type === MEDIA_TYPE_OF.json) ?? all.find(isJson)
  const form = all.find(({ type }) => type === MEDIA_TYPE_OF.form)
  const xml = all.find(({ type }) => XML_TYPE.test(type))
  // Only one of several types of JSON is read: they may say different things, as those of patches do.
  const others = all.filter((each) => each !== json && each !== form && !XML_TYPE.test(each.type))
  return { json, form, xml, others: others.map(({ type }) => type) }
}

/** A type of JSON that a service knows by its name; undefined for the plain one. */
const ownType = (found: Found | undefined): string | undefined =>
  found === undefined || found.type === MEDIA_TYPE_OF.json || ANY_TYPE.has(found.type)
    ? undefined
    : found.type

/** The schemas of bodies that reach the service, and whether Postern reads them: others are streamed. */
export function sentSchemas(
  { body, method }: DescribedOperation,
  document: JsonObject,
): { readonly isRead: boolean; readonly schemas: readonly (JsonValue | undefined)[] } {
  if (body === undefined || method === 'GET') return { isRead: false, schemas: [] }
  const { json, form, xml } = sorted(body.contents, 'request', document)
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
  if (lost.size > 0)
    tell(`of the schema of ${of} these are left out: ${[...lost].join(', ')}`, LOST, [...lost])
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
  const { json, form, xml, others } = sorted(body.contents, 'request', book.document)
  const read = json ?? form ?? xml
  if (read === undefined) return { consumes: others }
  if (json === undefined && form === undefined) tell(`its body reaches the service ${AS_JSON}`)
  if (others.length > 0)
    tell(
      `a body of ${others.join(', ')} is refused, because one of ${read.type} is checked`,
      'bodies of other types are refused, because one type is checked',
      others,
    )
  const schema = read.schema === undefined ? undefined : converted(read.schema, 'request', book, tell).schema
  const own = places.reduce((left, { name }) => left && book.without(left, parseJsonPointer(name)), schema)
  const closed = json === undefined && form !== undefined ? closedForm(own, book) : undefined
  if (json === undefined && form !== undefined)
    tell(
      closed === undefined
        ? `its body reaches the service ${AS_JSON}`
        : 'a form with other fields than those that are described is refused',
    )
  const type = ownType(json)
  const sent = {
    // The service is sent what it is described to take, and a client may name that too.
    ...(type !== undefined && { type }),
    ...(closed && ({ format: 'form' } as const)),
    ...(places.length > 0 && { set: Object.fromEntries(places.map(({ name, value }) => [name, value])) }),
  }
  return {
    body: {
      ...(body.required ? {} : ({ required: false } as const)),
      ...(own === undefined ? {} : { schema: closed ?? own }),
      ...(type !== undefined && { types: { [type]: 'json' } as const }),
    },
    ...(Object.keys(sent).length > 0 && { upstream: sent }),
  }
}

const SCALARS: ReadonlySet<string> = new Set(['string', 'number', 'integer', 'boolean'])

const isScalar = (schema: BodySchema): boolean => {
  const types = typesOf(schema)
  return types.length > 0 && types.every((type) => SCALARS.has(type))
}

/** A schema without some of its keywords. */
const without = <K extends keyof BodySchema>(schema: BodySchema, ...keywords: readonly K[]) =>
  Object.fromEntries(
    Object.entries(schema).filter(([keyword]) => !keywords.some((each) => each === keyword)),
  ) as Omit<BodySchema, K>

/** A field as it can be written: what it refers to, with its type. A form has no null. */
function fieldOf(schema: BodySchema, book: NamedSchemaSet): BodySchema | undefined {
  const resolved = book.resolved(schema)
  if (isNothing(resolved)) return NOTHING
  const values = resolved.enum?.filter((value) => value !== null)
  const told = typesOf(resolved).filter((type) => type !== 'null')
  const isText = told.length === 0 && values?.every((value) => typeof value === 'string') === true
  const [type, ...others] = isText ? (['string'] as const) : told
  if (type === undefined || (others.length > 0 && told.includes('array'))) return undefined
  const own: BodySchema = {
    ...without(resolved, 'type', 'enum'),
    type: others.length === 0 ? type : told,
    ...(values && { enum: values }),
  }
  if (type !== 'array') return isScalar(own) ? own : undefined
  const items = resolved.items && fieldOf(resolved.items, book)
  return items !== undefined && isScalar(items) ? { ...own, items } : undefined
}

/** The schema of a form that Postern can write: it knows all fields, and each is a text or a list of texts. */
function closedForm(schema: BodySchema | undefined, book: NamedSchemaSet): BodySchema | undefined {
  if (schema === undefined) return undefined
  const { properties = {}, ...form } = book.resolved(schema)
  if (typesOf(form).some((type) => type !== 'object')) return undefined
  const fields: Record<string, BodySchema> = {}
  for (const [name, each] of Object.entries(properties)) {
    const field = fieldOf(each, book)
    if (field === undefined) return undefined
    fields[name] = field
  }
  return { ...form, type: 'object', properties: fields, additionalProperties: false }
}

/** A name that a configuration can have (C4.11). */
const QUERY_NAME = /^[^\s{}&;=#%+]{1,64}$/

const UNCHECKED =
  'query parameters are not checked, because their schemas contradict themselves or their names are one'
const EMPTY = 'query parameters are not checked, because they may be empty'

/** The schema of a text that may be empty besides; undefined: there is none, because an empty text is no number. */
function orEmpty(schema: BodySchema): BodySchema | undefined {
  if (schema.type !== 'string') return undefined
  const words = schema.enum ?? (schema.const === undefined ? undefined : [schema.const])
  const open = without(schema, 'minLength', 'format', 'pattern', 'const', 'enum')
  return { ...open, ...(words && { enum: [...new Set([...words, ''])] }) }
}

/** The parameters of the query that are checked: single texts, numbers and booleans. Others pass unchecked. */
export function queryParameters(
  { parameters }: DescribedOperation,
  isPosterns: (name: string) => boolean,
  book: NamedSchemaSet,
  tell: Tell,
): Pick<DescribedMethod, 'parameters'> {
  const own: Record<string, ParameterConfig> = {}
  for (const each of parameters) {
    const name = shortText(each['name'])
    if (each['in'] !== 'query' || isPosterns(name) || !QUERY_NAME.test(name)) continue
    const { schema: converted } = convertSchema(each['schema'], 'request', book)
    book.complete()
    const resolved = book.resolved(converted)
    if (isNothing(resolved)) {
      own[name] = NOTHING
      continue
    }
    const schema = each['allowEmptyValue'] === true ? orEmpty(resolved) : resolved
    if (schema === undefined)
      tell(`the query parameter ${name} is not checked: it may be empty`, EMPTY, [name])
    if (schema === undefined || !isScalar(schema) || typeof schema.type !== 'string') continue
    const description = descriptionText(each['description']) ?? schema.description
    const parameter: ParameterConfig = {
      ...without(schema, 'required'),
      ...(description !== undefined && { description }),
      ...(each['required'] === true && { required: true }),
    }
    const [problem] = problemsOf({ ...own, [name]: parameter })
    if (problem === undefined) own[name] = parameter
    else tell(`the query parameter ${name} is not checked: ${problem}`, UNCHECKED, [name])
  }
  return Object.keys(own).length === 0 ? {} : { parameters: own }
}

/** The messages of a configuration's check about parameters. */
function problemsOf(parameters: Readonly<Record<string, ParameterConfig>>): readonly string[] {
  const problems = new Problems()
  compileQueryRule(parameters, [], problems)
  return problems.list.map(({ message }) => message)
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

type AnswerKeys = Pick<DescribedMethod, 'data' | 'items' | 'produces'> &
  Pick<NonNullable<DescribedMethod['upstream']>, 'types'>

export function proposedAnswerKeys(
  operation: DescribedOperation,
  book: NamedSchemaSet,
  tell: Tell,
): AnswerKeys {
  const { json, xml, others } = sorted(operation.answers, 'answer', book.document)
  const read = json ?? xml
  if (read === undefined) {
    if (others.includes('text/event-stream')) tell('an event stream needs a backend of kind stream')
    return others.length === 0 ? {} : { produces: others }
  }
  if (json === undefined) tell('the service answers XML: see upstream.format in config/reference.md')
  if (others.length > 0)
    tell(
      `answers of ${others.join(', ')} are not passed on, because others are ${read.type}`,
      'answers of other types are not passed on, because one type is read',
      others,
    )
  const type = ownType(json)
  const asked = type === undefined ? {} : ({ types: { [type]: 'json' } } as const)
  if (read.schema === undefined) return asked
  const { schema, items } = converted(read.schema, 'answer', book, tell)
  const data = dataOf(schema, book)
  return {
    ...asked,
    ...(items.size > 0 ? { items: Object.fromEntries(items) } : {}),
    ...(data === undefined ? {} : { data }),
  }
}
