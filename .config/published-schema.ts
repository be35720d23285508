/** config/schema.json: the JSON Schema for editors, without the keywords that only the loader reads. */
import { MARK, type SchemaView, type TSchema, viewOf, withKind } from '../src/base/config/schema.ts'
import { shareDefinitions } from './shared-definitions.ts'

type Json = Record<string, unknown>

const REFERENCE = '#/$defs/reference'
const DEFINITIONS = {
  reference: {
    description: 'A value that is kept in another file or in an environment variable.',
    oneOf: [
      {
        type: 'object',
        properties: { file: { type: 'string' } },
        required: ['file'],
        additionalProperties: false,
      },
      {
        type: 'object',
        properties: { env: { type: 'string' }, default: { type: 'string' } },
        required: ['env'],
        additionalProperties: false,
      },
    ],
  },
}

/** Keywords that only the loader reads, or that are handled apart. */
const OWN = new Set<string>([
  MARK,
  'expected',
  'plain',
  'isTemplate',
  'expectedKeys',
  'shapes',
  'within',
  'read',
  'option',
  'value',
  'takesAway',
  'hidden',
  'personal',
  'fixed',
  'retired',
  'after',
  'description',
  'default',
  'required',
])

/** Allows `key:` without a value: an empty section, or a key removed from the file that `extends` names. */
function orNothing(json: Json): Json {
  const nothing = { type: 'null' }
  if (typeof json['type'] === 'string') return { ...json, type: [json['type'], 'null'] }
  for (const word of ['anyOf', 'oneOf'])
    if (Array.isArray(json[word])) return { ...json, [word]: [...(json[word] as Json[]), nothing] }
  return json
}

const mapValues = (record: Readonly<Record<string, SchemaView>>): Json =>
  Object.fromEntries(
    Object.entries(record).map(([key, schema]) => {
      const json = publish(schema)
      return [key, json['type'] === 'object' ? orNothing(json) : json]
    }),
  )

const keyed = (record: Readonly<Record<string, SchemaView>>): Json =>
  Object.fromEntries(Object.entries(record).map(([keys, schema]) => [keys, orNothing(publish(schema))]))

function children(schema: SchemaView): Json {
  const { properties, patternProperties, items, anyOf } = schema
  return {
    ...(properties && { properties: mapValues(properties) }),
    // The loader refuses keys that match no pattern: editors should show that.
    ...(patternProperties && {
      patternProperties: keyed(patternProperties),
      additionalProperties: false,
    }),
    ...(items && { items: publish(items) }),
    ...(anyOf && { anyOf: anyOf.map(publish) }),
  }
}

function shapesOf({ shapes = {} }: SchemaView): Json {
  const all = Object.keys(shapes)
  const each = Object.entries(shapes).map(([kind, shape]) => {
    const { properties, ...rest } = withKind(kind, shape, all)
    return publish({ ...rest, properties: { ...properties, kind: { const: kind } } })
  })
  return { oneOf: each }
}

const REFERABLE: ReadonlySet<string | undefined> = new Set([
  'secret',
  'reference',
  'template',
  'textOrSecret',
  'path',
])

/** A map that has this key alone. */
const only = (key: string, value: Json): Json => ({
  type: 'object',
  properties: { [key]: value },
  required: [key],
  additionalProperties: false,
})

function body(schema: SchemaView): Json {
  const own = Object.fromEntries(Object.entries(schema).filter(([key]) => !OWN.has(key)))
  const plain = { ...own, ...children(schema) }
  if (schema.shapes) return shapesOf(schema)
  if (schema.within !== undefined) return { anyOf: [plain, only(schema.within, plain)] }
  if (schema[MARK] === 'secret' && schema.plain !== true) return { $ref: REFERENCE }
  if (schema.plain === false) return { anyOf: [{ ...plain, pattern: '\\{[A-Za-z]' }, { $ref: REFERENCE }] }
  if (REFERABLE.has(schema[MARK])) {
    return { anyOf: [plain, { $ref: REFERENCE }] }
  }
  return plain
}

/** A key with a default may be left out, although it always has a value after loading. */
function withoutDefaulted({ required, properties }: SchemaView): Json {
  const needed = required?.filter((key) => properties?.[key]?.default === undefined) ?? []
  return needed.length > 0 ? { required: needed } : {}
}

function publish(schema: SchemaView): Json {
  const { description, default: value } = schema
  return {
    ...(description !== undefined && { description }),
    ...(value !== undefined && { default: value }),
    ...body(schema),
    ...(schema.shapes ? {} : withoutDefaulted(schema)),
  }
}

/** The schema of a file, such as a configuration. With `extends` nothing is required: the other file may have it. */
export function publishedSchema(root: TSchema, title: string): Json {
  const { required, properties, ...rest } = publish(viewOf(root)) as { required?: string[]; properties: Json }
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title,
    ...rest,
    properties: {
      extends: {
        type: 'string',
        description: 'Another file of this kind. Its keys apply where this file does not set them.',
      },
      ...properties,
    },
    if: { not: { required: ['extends'] } },
    then: { required: required ?? [] },
  }
  return shareDefinitions(schema, DEFINITIONS)
}
