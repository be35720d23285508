/** A configuration that was loaded, as it may be shown: every secret is replaced, whatever its value. */
import { MARK } from './pieces.ts'
import { mapItem, type SchemaView } from './schema-view.ts'

const HIDDEN = '[secret]'

/** The value of `schema`'s type without what stands where a secret may. */
export function withoutSecrets(schema: SchemaView, value: unknown): unknown {
  if (value === undefined) return undefined
  if (schema[MARK] === 'secret') return HIDDEN
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
