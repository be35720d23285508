/** The JSON Schema that the pieces build, as `validate.ts` and the generated documents read it. */
import { MARK, type Mark, type TSchema } from './pieces.ts'

export interface SchemaView {
  readonly [MARK]?: Mark
  readonly type?: string
  readonly properties?: Readonly<Record<string, SchemaView>>
  readonly required?: readonly string[]
  readonly patternProperties?: Readonly<Record<string, SchemaView>>
  /** What to expect of a map's keys, for people. */
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
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly description?: string
  /** What to expect, for people; instead of a pattern. */
  readonly expected?: string
  /** A secret may be written as it is. */
  readonly plain?: boolean
  /** Of `kinds`: shape by the value of `kind`. */
  readonly shapes?: Readonly<Record<string, SchemaView>>
}

export const viewOf = (schema: TSchema): SchemaView => schema

/** The words that a value is one of: an enum, a constant, or a union of constants. */
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

/** The schema of a map's values, and the pattern of its keys; undefined for a section of known keys. */
export function mapItem(schema: SchemaView): MapItem | undefined {
  const [entry] = Object.entries(schema.patternProperties ?? {})
  return entry && { keys: entry[0], item: entry[1] }
}

/** One shape of `kinds`, with `kind` as its first key. */
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

/** Whether a secret may stand in it: then nothing written there is ever shown. */
export const holdsSecret = (schema: SchemaView): boolean =>
  schema[MARK] === 'secret' || children(schema).some(holdsSecret)
