/** A JSON Schema as the rows of a table: its members by their paths, at any depth. */
import { type BodySchema, typesOf } from '../../http/body-schema.ts'
import { AREA_TEXTS as T } from './texts/area.ts'

export interface MemberRow {
  /** `Address.Locality`; the items of a list are `Tags[]`. */
  readonly path: string
  readonly type: string
  readonly rule: string
  readonly description: string | undefined
}

/** Deeper members are left out: a page is no place for them. */
const DEEPEST = 8

/** The members of an object's schema, in their order; empty for a schema that names none. */
export function memberRows(schema: BodySchema, under = '', depth = 0): readonly MemberRow[] {
  if (depth > DEEPEST) return []
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const path = under === '' ? name : `${under}.${name}`
    const required = schema.required?.includes(name) ?? false
    return [rowOf(path, member, required), ...memberRows(member, path, depth + 1)]
  })
  return schema.items === undefined ? own : [...own, ...memberRows(schema.items, `${under}[]`, depth + 1)]
}

const rowOf = (path: string, schema: BodySchema, required: boolean): MemberRow => ({
  path,
  type: typeText(schema),
  rule: [...(required ? [T.required] : []), ...rulesOf(schema)].join('; '),
  description: schema.description ?? schema.title,
})

function typeText(schema: BodySchema): string {
  const types = typesOf(schema)
  if (types.length === 0) return T.anything
  const word = (type: (typeof types)[number]): string =>
    type === 'array' && schema.items ? T.list(typeText(schema.items)) : T.typeWords[type]
  return types.map(word).join(T.or)
}

const has = (...values: readonly unknown[]): boolean => values.some((value) => value !== undefined)

function rulesOf(schema: BodySchema): readonly string[] {
  const { format, maxItems, maxLength, maximum, minItems, minLength, minimum, pattern } = schema
  const R = T.rules
  return [
    ...(schema.enum ? [R.enum(schema.enum.map(String))] : []),
    ...(schema.const === undefined ? [] : [R.const(String(schema.const))]),
    ...(format ? [R.format[format]] : []),
    ...(pattern === undefined ? [] : [R.pattern(pattern)]),
    ...(has(minLength, maxLength) ? [R.length(minLength, maxLength)] : []),
    ...(has(minItems, maxItems) ? [R.items(minItems, maxItems)] : []),
    ...(has(minimum, maximum) ? [R.range(minimum, maximum)] : []),
    ...(schema.additionalProperties === false ? [R.closed] : []),
  ]
}
