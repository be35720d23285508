/** The JSON Schema that `schema.ts` builds, as the loader and the generators of documents read it. */
import { MARK, type Mark, type TSchema } from './schema.ts'

export interface SchemaView {
  readonly [MARK]?: Mark
  readonly type?: string
  readonly properties?: Readonly<Record<string, SchemaView>>
  readonly required?: readonly string[]
  readonly patternProperties?: Readonly<Record<string, SchemaView>>
  /** The keys of a map, described for people. */
  readonly expectedKeys?: string
  readonly additionalProperties?: boolean
  readonly minProperties?: number
  readonly items?: SchemaView
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly anyOf?: readonly SchemaView[]
  readonly enum?: readonly (string | number | boolean)[]
  readonly const?: string | number | boolean
  readonly pattern?: string
  readonly minLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly description?: string
  /** The value, described for people; shown instead of the pattern. */
  readonly expected?: string
  /** Whether a secret may be written as it is (hashes). */
  readonly plain?: boolean
  /** The schema for each value of `kind`. */
  readonly shapes?: Readonly<Record<string, SchemaView>>
}

export const viewOf = (schema: TSchema): SchemaView => schema

/** The allowed words of an enum, a constant or a union of constants; undefined for any other schema. */
export function wordsOf(schema: SchemaView): readonly (string | number | boolean)[] | undefined {
  if (schema.enum) return schema.enum
  if (schema.const !== undefined) return [schema.const]
  const constants = schema.anyOf?.map((branch) => branch.const)
  return constants?.every((constant) => constant !== undefined) === true ? constants : undefined
}

export interface MapItem {
  readonly keys: string
  readonly item: SchemaView
}

/** The schema of a map's values and the pattern of its keys; undefined for a section with known keys. */
export function mapItem(schema: SchemaView): MapItem | undefined {
  const [entry] = Object.entries(schema.patternProperties ?? {})
  return entry && { keys: entry[0], item: entry[1] }
}

/** The schema of one `kind`, with `kind` as its first key. */
export const withKind = (kind: string, shape: SchemaView, all: readonly string[]): SchemaView => ({
  ...shape,
  properties: { kind: { type: 'string', enum: all, description: `\`${kind}\`.` }, ...shape.properties },
  required: ['kind', ...(shape.required ?? []).filter((key) => key !== 'kind')],
})

const children = (schema: SchemaView): SchemaView[] => [
  ...Object.values(schema.properties ?? {}),
  ...Object.values(schema.patternProperties ?? {}),
  ...(schema.items ? [schema.items] : []),
  ...(schema.anyOf ?? []),
  ...Object.values(schema.shapes ?? {}),
]

const SECRET: ReadonlySet<Mark | undefined> = new Set<Mark | undefined>(['secret', 'template'])

/** Whether a value may contain a secret. Then no problem shows it. */
export const holdsSecret = (schema: SchemaView): boolean =>
  SECRET.has(schema[MARK]) || children(schema).some(holdsSecret)

/** A configuration that was loaded, as it may be shown: every secret is replaced, whatever its value. */

const HIDDEN = '[secret]'

/** The value of `schema`'s type without what stands where a secret may. */
export function withoutSecrets(schema: SchemaView, value: unknown): unknown {
  if (value === undefined) return undefined
  if (SECRET.has(schema[MARK])) return HIDDEN
  if (schema[MARK] === 'kinds') return withoutSecrets(shapeOf(schema, value), value)
  if (Array.isArray(value)) return listWithoutSecrets(schema.items, value)
  if (typeof value !== 'object' || value === null) return value
  const item = mapItem(schema)?.item
  const entries = Object.entries(value as Record<string, unknown>).map(([key, member]) => {
    const of = schema.properties?.[key] ?? item
    return [key, of ? withoutSecrets(of, member) : member]
  })
  return Object.fromEntries(entries)
}

const listWithoutSecrets = (items: SchemaView | undefined, list: readonly unknown[]): readonly unknown[] =>
  items === undefined ? list : list.map((item) => withoutSecrets(items, item))

function shapeOf({ shapes = {} }: SchemaView, value: unknown): SchemaView {
  const kind = typeof value === 'object' && value !== null && 'kind' in value ? String(value.kind) : ''
  return shapes[kind] ?? {}
}
