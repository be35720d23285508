/** Schemas of the configuration as OpenAPI has them. Those that have a name there are components. */
import { type BodySchema, isNothing } from '../../base/http/body/body-schema.ts'
import { escapeName } from '../../base/http/xml/syntax.ts'
import { type Components, escapedMarkdown, type Node, type Reference } from './components.ts'
import { classWords } from './names.ts'

/** Element names of array items, by the name of the array (C7.5). */
type ItemNames = Readonly<Record<string, string>>

const ITEM = 'Item'

type SchemaNode = BodySchema | Node

/** `false` as an object: not every reader of OpenAPI takes a boolean everywhere. */
const NEVER: Node = { not: {} }

interface Context {
  readonly names: ItemNames
  readonly components: Components
}

/**
 * A schema of JSON with what OpenAPI can say of the same value in XML (C7.5): an array is its element, with a child for
 * each item; a key that is no XML name is escaped. The attributes `type` and `xsi:nil` have no word in OpenAPI.
 */
export const schemaNode = (schema: BodySchema, names: ItemNames, components: Components): SchemaNode =>
  nodeOf(schema, { names, components }, ITEM)

/**
 * @param itemName the name of the items, where it is an array
 * @param element its own element, where that has another name than the key
 */
function nodeOf(schema: BodySchema, context: Context, itemName: string, element?: string): SchemaNode {
  // The place of an array decides the name of its items, so an array whose items have a name is written there itself.
  if (schema.$id === undefined || (schema.items !== undefined && itemName !== ITEM))
    return ownNode(schema, context, itemName, element)
  const reference = referenceTo(schema, schema.$id, context)
  return element === undefined ? { ...reference } : { ...reference, xml: { name: element } }
}

function ownNode(schema: BodySchema, context: Context, itemName: string, element?: string): SchemaNode {
  if (isNothing(schema)) return NEVER
  if (element === undefined && isPlain(schema)) return schema
  const { properties, items, additionalProperties, description, ...more } = schema
  const { $id: name, ...rest } = more
  const xml = { ...(element !== undefined && { name: element }), ...(items && { wrapped: true }) }
  return {
    ...(name === undefined ? more : rest),
    ...(description !== undefined && { description: escapedMarkdown(description) }),
    ...(properties && { properties: membersOf(properties, context) }),
    ...(items && { items: nodeOf(items, context, ITEM, itemName) }),
    ...(additionalProperties !== undefined && {
      additionalProperties:
        typeof additionalProperties === 'object'
          ? nodeOf(additionalProperties, context, ITEM)
          : additionalProperties,
    }),
    ...(Object.keys(xml).length > 0 && { xml }),
  }
}

/** Whether there is nothing to add, as for most members. */
const isPlain = ({ $id, properties, items, additionalProperties, description = '' }: BodySchema): boolean =>
  $id === undefined &&
  properties === undefined &&
  items === undefined &&
  typeof additionalProperties !== 'object' &&
  !description.includes('<')

const membersOf = (properties: Readonly<Record<string, BodySchema>>, context: Context): Node =>
  Object.fromEntries(
    Object.entries(properties).map(([key, schema]) => {
      const element = escapeName(key)
      const itemName = Object.hasOwn(context.names, key) ? (context.names[key] ?? ITEM) : ITEM
      return [key, nodeOf(schema, context, itemName, element === key ? undefined : element)]
    }),
  )

/** One component for all operations that name the items of its arrays alike. */
function referenceTo(schema: BodySchema, name: string, context: Context): Reference {
  const { names, components } = context
  const arrays = Object.keys(names).length === 0 ? undefined : arraysWithin(schema)
  const used = Object.entries(names)
    .filter(([key]) => arrays?.has(key))
    .toSorted()
  const items = used.map(([, item]) => classWords(item)).join('')
  return components.shareConfigured(name, JSON.stringify(used), `${name}With${items || 'Item'}`, () =>
    ownNode(schema, context, ITEM),
  )
}

/** The names of all schemas of the configuration that are reached from these. */
export function namesWithin(schemas: Iterable<BodySchema>): ReadonlySet<string> {
  const names = new Set<string>()
  const seen = new Set<BodySchema>()
  const read = (part: BodySchema | boolean | undefined): void => {
    if (typeof part !== 'object' || seen.has(part)) return
    seen.add(part)
    if (part.$id !== undefined) names.add(part.$id)
    Object.values(part.properties ?? {}).forEach(read)
    read(part.items)
    read(part.additionalProperties)
  }
  for (const schema of schemas) read(schema)
  return names
}

const arraysOf = new WeakMap<BodySchema, ReadonlySet<string>>()

/** The names of all members that are arrays, in the schema and in what it contains. */
function arraysWithin(schema: BodySchema): ReadonlySet<string> {
  const known = arraysOf.get(schema)
  if (known !== undefined) return known
  const found = new Set<string>()
  const seen = new Set<BodySchema>()
  const read = (part: BodySchema): void => {
    if (seen.has(part)) return
    seen.add(part)
    for (const [name, member] of Object.entries(part.properties ?? {})) {
      if (member.items !== undefined) found.add(name)
      read(member)
    }
    if (part.items !== undefined) read(part.items)
    if (typeof part.additionalProperties === 'object') read(part.additionalProperties)
  }
  read(schema)
  arraysOf.set(schema, found)
  return found
}
