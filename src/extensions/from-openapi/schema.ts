/** Makes of a schema of OpenAPI what the configuration can say: never more than it demands, and what is lost is noted. */
import {
  type BodySchema,
  type BodyType,
  FORMATS,
  isNothing,
  NOTHING,
  ANYTHING,
} from '../../base/http/body/body-schema.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/http/body/json.ts'
import { listOf, objectOf, referenced, trimmedText, textsOf } from './operations.ts'

/** Which side the schema is for: a `readOnly` member need not be in a request, nor a `writeOnly` one in an answer. */
export type Side = 'request' | 'answer'

type Draft = { -readonly [Key in keyof BodySchema]: BodySchema[Key] }

interface Work {
  readonly side: Side
  readonly lost: Set<string>
  /** XML names of the items of arrays, by the name of the array. */
  readonly items: Map<string, string>
  readonly schemas: NamedParts
  /** The references that are being followed into one schema: it may contain itself. */
  readonly within: string[]
  /** Schemas that may still be read: parts that are joined could make a small description a huge configuration. */
  left: number
}

/** How schemas with a name are converted. */
export interface NamedParts {
  readonly document: JsonObject
  /** A reference to what a reference of the description names. @param nullable whether it may be null too */
  readonly refer: (pointer: string, side: Side, nullable: boolean) => BodySchema
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

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u').test('') || true
  } catch {
    return false
  }
}

const isLimit = (keyword: string): boolean => keyword === 'minimum' || keyword === 'maximum'
const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0

type Reader = (value: JsonValue, draft: Draft, work: Work, depth: number, schema: JsonObject) => void

/** Converts each keyword. It adds to `lost` the ones that a configuration cannot say. */
const KEYWORDS: Readonly<Record<string, Reader>> = {
  type(value, draft, { lost }) {
    const given = (typeof value === 'string' ? [value] : [...new Set(textsOf(value))]).filter(
      (type) => type !== 'file',
    )
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
    const names = [...new Set(textsOf(value))].filter((name) => objectOf(properties[name])[exempt] !== true)
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
    if (values.length === 0) lost.add('enum')
    else draft.enum = schema['nullable'] === true && !values.includes(null) ? [...values, null] : values
  },
  const(value, draft) {
    draft.const = value
  },
  pattern(value, draft, { lost }) {
    if (typeof value === 'string' && isPattern(value)) draft.pattern = value
    else lost.add('pattern')
  },
  format(value, draft, { lost }) {
    const name = trimmedText(value) ?? ''
    if (Object.hasOwn(FORMATS, name)) draft.format = name as keyof typeof FORMATS
    else if (!SILENT_FORMATS.has(name)) lost.add(`format ${name}`)
  },
  ...Object.fromEntries(
    NUMBERS.map((keyword): [string, Reader] => [
      keyword,
      (value, draft, { lost }) => {
        if (typeof value === 'number' && (isLimit(keyword) || isCount(value))) draft[keyword] = value
        else lost.add(keyword)
      },
    ]),
  ),
  allOf: (value, draft, work, depth) => {
    for (const part of listOf(value)) mergePart(draft, convert(part, work, depth + 1, true), work)
  },
  anyOf: (value, draft, work, depth) => takeOnly('anyOf', value, draft, work, depth),
  oneOf: (value, draft, work, depth) => takeOnly('oneOf', value, draft, work, depth),
  // In OpenAPI 3.0 the first two are switches for the limit.
  ...Object.fromEntries(
    ['exclusiveMinimum', 'exclusiveMaximum', 'uniqueItems'].map((keyword): [string, Reader] => [
      keyword,
      (value, _draft, { lost }) => {
        if (value !== false) lost.add(keyword)
      },
    ]),
  ),
  // Beside other keywords, or as one of several parts: what it names is joined with them.
  $ref(value, draft, work, depth) {
    const pointer = trimmedText(value) ?? ''
    if (work.within.includes(pointer)) {
      work.lost.add(`what ${pointer.split('/').at(-1) ?? ''} contains of itself`)
      return
    }
    work.within.push(pointer)
    const { properties, required, ...rest } = convert(
      referenced(work.schemas.document, pointer),
      work,
      depth + 1,
      true,
    )
    const own = { ...rest, ...draft }
    Object.assign(draft, own, {
      ...((properties ?? draft.properties) && { properties: { ...properties, ...draft.properties } }),
      ...((required ?? draft.required) && {
        required: [...new Set([...(required ?? []), ...(draft.required ?? [])])],
      }),
    })
    work.within.pop()
  },
}

const XML_NAME = /^[A-Za-z_][A-Za-z0-9._-]*$/

function noteItems(name: string, member: JsonValue | undefined, { items }: Work): void {
  const item = trimmedText(objectOf(objectOf(objectOf(member)['items'])['xml'])['name'])
  if (item !== undefined && XML_NAME.test(item)) items.set(name, item)
}

const isNull = (schema: JsonValue): boolean => isJsonObject(schema) && schema['type'] === 'null'

/** A configuration can say only one alternative besides null. */
function takeOnly(keyword: string, value: JsonValue, draft: Draft, work: Work, depth: number): void {
  const all = listOf(value)
  const [only, ...others] = all.filter((each) => !isNull(each) && each !== false)
  if (only === undefined || others.length > 0) {
    work.lost.add(keyword)
    return
  }
  mergePart(draft, convert(only, work, depth + 1, true), work)
  if (all.some(isNull)) allowNull(draft)
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

/** @param joined whether its keywords are wanted, and not a reference to them */
function convert(value: JsonValue | undefined, work: Work, depth: number, joined = false): BodySchema {
  work.left -= 1
  if (work.left < 0 || depth > DEEPEST) {
    work.lost.add('what is too deep or too much')
    return {}
  }
  if (typeof value === 'boolean') return value ? ANYTHING : NOTHING
  const schema = objectOf(value)
  const only = joined ? undefined : onlyReference(schema)
  if (only !== undefined) return work.schemas.refer(only.pointer, work.side, only.nullable)
  const draft: Draft = {}
  // Parts come last, so that the keywords next to them come first.
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
  // Parts that are joined with `false`.
  return isNothing(draft) ? NOTHING : draft
}

/** Keywords that demand nothing next to a reference: the words come from the schema that it names. */
const isWord = (keyword: string): boolean =>
  isSilent(keyword) || keyword === 'title' || keyword === 'description'

/** A schema that is what another one is, or null: written in any of the ways that OpenAPI has. */
export function onlyReference(
  schema: JsonObject,
): { readonly pointer: string; readonly nullable: boolean } | undefined {
  const keywords = Object.keys(schema).filter((keyword) => !isWord(keyword))
  const [keyword = ''] = keywords
  if (keywords.length !== 1) return undefined
  const nullable = schema['nullable'] === true
  const pointer = trimmedText(schema['$ref'])
  if (keyword === '$ref') return pointer === undefined ? undefined : { pointer, nullable }
  if (!isPart(keyword)) return undefined
  const parts = listOf(schema[keyword])
  const [part, ...others] = keyword === 'allOf' ? parts : parts.filter((each) => !isNull(each))
  if (others.length > 0 || part === undefined) return undefined
  const inner = onlyReference(objectOf(part))
  const orNull = nullable || (keyword !== 'allOf' && parts.length > 1)
  return inner && { pointer: inner.pointer, nullable: inner.nullable || orNull }
}

const isPart = (keyword: string): boolean => ['allOf', 'anyOf', 'oneOf'].includes(keyword)

export interface ConvertedSchema {
  readonly schema: BodySchema
  /** The keywords that were left out, and other reasons. */
  readonly lost: ReadonlySet<string>
  /** XML names of the items of arrays, by the name of the array. */
  readonly items: ReadonlyMap<string, string>
}

function orNull(schema: BodySchema): BodySchema {
  if (schema === ANYTHING) return schema
  if (isNothing(schema)) return { type: 'null' }
  const draft = { ...schema }
  allowNull(draft)
  return draft
}

/** @param options `joined`: a reference is replaced by what it names; `nullable`: it may be null as well */
export function convertSchema(
  value: JsonValue | undefined,
  side: Side,
  schemas: NamedParts,
  options: { readonly within?: string; readonly nullable?: boolean } = {},
): ConvertedSchema {
  const { within, nullable = false } = options
  const work: Work = {
    side,
    schemas,
    lost: new Set(),
    items: new Map(),
    left: MOST_SCHEMAS,
    within: within === undefined ? [] : [within],
  }
  const read = convert(value, work, 0)
  const schema = nullable ? orNull(read) : read
  return { schema, lost: work.lost, items: work.items }
}
