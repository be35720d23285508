/** Which changes give nothing to anybody (C12.1.4): the schema says it of each value (`takesAway`). */
import { isDeepStrictEqual } from 'node:util'
import { mapItem, type SchemaView } from './schema.ts'

type Tree = Readonly<Record<string, unknown>>

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** True if the second value is the first, with less in it: as far as the schema knows. */
export function onlyLessens(schema: SchemaView, before: unknown, after: unknown): boolean {
  const { takesAway: way } = schema
  if (isDeepStrictEqual(before, after)) return true
  if (typeof way === 'object') return after === way.to
  if (isTree(before) && isTree(after)) return lessensMembers(schema, before, after)
  if (Array.isArray(before) && Array.isArray(after))
    return way === 'more' ? hasAll(after, before) : way === 'less' && hasAll(before, after)
  // Without a number another value counts, which may be lower.
  return way === 'less' && typeof before === 'number' && typeof after === 'number' && after < before
}

const hasAll = (all: readonly unknown[], some: readonly unknown[]): boolean =>
  some.every((item) => all.some((other) => isDeepStrictEqual(other, item)))

function lessensMembers(schema: SchemaView, before: Tree, after: Tree): boolean {
  const { properties, takesAway } = schema
  if (properties !== undefined)
    return Object.keys({ ...before, ...after }).every((key) =>
      onlyLessens(properties[key] ?? {}, before[key], after[key]),
    )
  const item = takesAway === 'less' ? mapItem(schema)?.item : undefined
  return (
    item !== undefined &&
    Object.entries(after).every(([key, value]) => key in before && onlyLessens(item, before[key], value))
  )
}
