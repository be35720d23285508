/** Makes of a schema of OpenAPI what the configuration can say: never more than it demands, and what is lost is noted. */
import { type BodySchema, type BodyType, FORMATS } from '../../../http/body-schema.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../http/json.ts'
import type { DescribedMethod } from '../configuration-text.ts'
import {
  type Contents,
  type DescribedOperation,
  listOf,
  objectOf,
  referenced,
  textOf,
  textsOf,
} from './operations.ts'

/** Which side the schema is for: a `readOnly` member need not be in a request, nor a `writeOnly` one in an answer. */
type Side = 'request' | 'answer'

interface ConvertedSchema {
  readonly schema: BodySchema
  /** The keywords that were left out, and other reasons. */
  readonly lost: ReadonlySet<string>
  /** XML names of the items of arrays, by the name of the array. */
  readonly items: Readonly<Record<string, string>>
}

type Draft = { -readonly [Key in keyof BodySchema]: BodySchema[Key] }

interface Work {
  readonly side: Side
  readonly lost: Set<string>
  readonly items: Map<string, string>
  readonly document: JsonObject
  /** The references that are being followed: a schema may contain itself. */
  readonly within: string[]
  /** Schemas that may still be read: shared parts could make a small description a huge configuration. */
  left: number
}

const MOST_SCHEMAS = 2000
const DEEPEST = 20

const TYPES: ReadonlySet<string> = new Set<BodyType>([
  ...(['string', 'number', 'integer', 'boolean'] as const),
  ...(['array', 'object', 'null'] as const),
])

/** Formats that demand nothing that a check could find. */
const SILENT_FORMATS: ReadonlySet<string> = new Set([
  ...['int32', 'int64', 'float', 'double', 'password', 'byte', 'binary', 'file'],
])

/** Keywords that demand nothing. */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  ...['example', 'examples', 'default', 'deprecated', 'readOnly', 'writeOnly', 'xml', 'externalDocs'],
  ...['discriminator', 'nullable', '$schema', '$id', '$comment', '$anchor', '$defs', 'contentEncoding'],
  ...['contentMediaType', 'collectionFormat', 'name', 'in'],
])

const NUMBERS = ['minItems', 'maxItems', 'minLength', 'maxLength', 'minimum', 'maximum'] as const

type Scalar = string | number | boolean | null

const isScalar = (value: JsonValue | undefined): value is Scalar =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value)

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u').test('') || true
  } catch {
    return false
  }
}

type Reader = (value: JsonValue, draft: Draft, work: Work, depth: number, schema: JsonObject) => void

/** What each keyword becomes. It tells in `lost` what it cannot say. */
const KEYWORDS: Readonly<Record<string, Reader>> = {
  type(value, draft, { lost }) {
    const given = (typeof value === 'string' ? [value] : textsOf(value)).filter((type) => type !== 'file')
    const types = given.filter((type) => TYPES.has(type)) as BodyType[]
    if (types.length < given.length || types.length === 0) lost.add('type')
    else draft.type = types.length === 1 && types[0] !== undefined ? types[0] : types
  },
  title(value, draft) {
    if (typeof value === 'string') draft.title = value
  },
  description(value, draft) {
    if (typeof value === 'string') draft.description = value
  },
  properties(value, draft, work, depth) {
    const members = Object.entries(objectOf(value))
    draft.properties = Object.fromEntries(
      members.map(([name, member]) => {
        noteItems(name, member, work)
        return [name, convert(member, work, depth + 1)]
      }),
    )
  },
  required(value, draft, { side }, _depth, schema) {
    const properties = objectOf(schema['properties'])
    const exempt = side === 'request' ? 'readOnly' : 'writeOnly'
    const names = textsOf(value).filter((name) => objectOf(properties[name])[exempt] !== true)
    if (names.length > 0) draft.required = names
  },
  additionalProperties(value, draft, work, depth, schema) {
    // Without the patterns, `false` would refuse what they allow.
    if (schema['patternProperties'] !== undefined) return
    draft.additionalProperties = typeof value === 'boolean' ? value : convert(value, work, depth + 1)
  },
  items: (value, draft, work, depth) => void (draft.items = convert(value, work, depth + 1)),
  enum(value, draft, { lost }, _depth, schema) {
    const values = listOf(value)
    if (values.length === 0 || !values.every(isScalar)) lost.add('enum')
    else draft.enum = schema['nullable'] === true && !values.includes(null) ? [...values, null] : values
  },
  const(value, draft, { lost }) {
    if (isScalar(value)) draft.const = value
    else lost.add('const')
  },
  pattern(value, draft, { lost }) {
    if (typeof value === 'string' && isPattern(value)) draft.pattern = value
    else lost.add('pattern')
  },
  format(value, draft, { lost }) {
    const name = textOf(value) ?? ''
    if (Object.hasOwn(FORMATS, name)) draft.format = name as keyof typeof FORMATS
    else if (!SILENT_FORMATS.has(name)) lost.add(`format ${name}`)
  },
  ...Object.fromEntries(
    NUMBERS.map((keyword): [string, Reader] => [
      keyword,
      (value, draft, { lost }) => {
        if (typeof value === 'number') draft[keyword] = value
        else lost.add(keyword)
      },
    ]),
  ),
  allOf: (value, draft, work, depth) => {
    for (const part of listOf(value)) mergePart(draft, convert(part, work, depth + 1), work)
  },
  anyOf: (value, draft, work, depth) => takeOnly('anyOf', value, draft, work, depth),
  oneOf: (value, draft, work, depth) => takeOnly('oneOf', value, draft, work, depth),
  // In OpenAPI 3.0 the first two are switches beside the limit.
  ...Object.fromEntries(
    ['exclusiveMinimum', 'exclusiveMaximum', 'uniqueItems'].map((keyword): [string, Reader] => [
      keyword,
      (value, _draft, { lost }) => {
        if (value !== false) lost.add(keyword)
      },
    ]),
  ),
  // Other references were replaced when the description was read.
  $ref(value, draft, work, depth) {
    const pointer = textOf(value) ?? ''
    const target = referenced(work.document, pointer)
    if (target === undefined || work.within.includes(pointer)) {
      work.lost.add(`what ${pointer.split('/').at(-1) ?? ''} contains of itself`)
      return
    }
    work.within.push(pointer)
    Object.assign(draft, { ...convert(target, work, depth + 1), ...draft })
    work.within.pop()
  },
}

const XML_NAME = /^[A-Za-z_][A-Za-z0-9._-]*$/

function noteItems(name: string, member: JsonValue | undefined, { items }: Work): void {
  const item = textOf(objectOf(objectOf(objectOf(member)['items'])['xml'])['name'])
  if (item !== undefined && XML_NAME.test(item)) items.set(name, item)
}

const isNull = (schema: JsonValue): boolean => isJsonObject(schema) && schema['type'] === 'null'

/** Of several alternatives, one beside null can be said. */
function takeOnly(keyword: string, value: JsonValue, draft: Draft, work: Work, depth: number): void {
  const all = listOf(value)
  const [only, ...others] = all.filter((each) => !isNull(each))
  if (only === undefined || others.length > 0) {
    work.lost.add(keyword)
    return
  }
  mergePart(draft, convert(only, work, depth + 1), work)
  if (all.length > 1) allowNull(draft)
}

function allowNull(draft: Draft): void {
  if (draft.type === undefined) return
  const types = typeof draft.type === 'string' ? [draft.type] : draft.type
  if (!types.includes('null')) draft.type = [...types, 'null']
  if (draft.enum !== undefined && !draft.enum.includes(null)) draft.enum = [...draft.enum, null]
}

/** Both must hold. Members join; of two values of a keyword the first is kept, and the loss is noted. */
function mergePart(draft: Draft, part: BodySchema, { lost }: Work): void {
  const { properties, required, additionalProperties, title, description, ...rest } = part
  if (properties !== undefined) draft.properties = { ...properties, ...draft.properties }
  if (required !== undefined) draft.required = [...new Set([...(draft.required ?? []), ...required])]
  // Each part knows its own members only: together they would refuse each other's.
  if (additionalProperties !== undefined && additionalProperties !== true) lost.add('additionalProperties')
  if (title !== undefined) draft.title ??= title
  if (description !== undefined) draft.description ??= description
  for (const [keyword, value] of Object.entries(rest)) {
    const own = (draft as Record<string, unknown>)[keyword]
    if (own === undefined) Object.assign(draft, { [keyword]: value })
    else if (JSON.stringify(own) !== JSON.stringify(value)) lost.add(`allOf with two values of ${keyword}`)
  }
}

const isSilent = (keyword: string): boolean => ANNOTATIONS.has(keyword) || keyword.startsWith('x-')

function convert(value: JsonValue | undefined, work: Work, depth: number): BodySchema {
  work.left -= 1
  if (work.left < 0 || depth > DEEPEST) {
    work.lost.add('what is too deep or too much')
    return {}
  }
  const schema = objectOf(value)
  const draft: Draft = {}
  // Parts come last, so that what stands beside them is first.
  const entries = Object.entries(schema).sort(([a], [b]) => Number(isPart(a)) - Number(isPart(b)))
  for (const [keyword, given] of entries) {
    const reader = Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword] : undefined
    if (reader !== undefined) reader(given ?? null, draft, work, depth, schema)
    else if (!isSilent(keyword)) work.lost.add(keyword)
  }
  if (schema['nullable'] === true) allowNull(draft)
  if (entries.some(([keyword]) => isPart(keyword)) && draft.additionalProperties === false) {
    delete draft.additionalProperties
    work.lost.add('additionalProperties')
  }
  return draft
}

const isPart = (keyword: string): boolean => ['allOf', 'anyOf', 'oneOf'].includes(keyword)

/** @param document the whole description, for references of schemas that contain themselves */
function convertSchema(value: JsonValue | undefined, side: Side, document: JsonObject): ConvertedSchema {
  const work: Work = {
    ...{ side, document, lost: new Set(), items: new Map(), within: [], left: MOST_SCHEMAS },
  }
  const schema = convert(value, work, 0)
  return { schema, lost: work.lost, items: Object.fromEntries(work.items) }
}

// What goes to the service and what comes back, as an operation of the configuration says it.

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
