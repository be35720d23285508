import type { OperationDescription } from '../../contracts/api-description.ts'
import type { BodySchema } from '../../http/body-schema.ts'
import { escapeName } from '../../http/xml-syntax.ts'
import type { WireCode } from '../../kernel/fault-table.ts'
import { type Components, markdown, type Node, type Reference } from './components.ts'

/** Element names of array items, by the name of the array (C7.5). */
type ItemNames = Readonly<Record<string, string>>

const ITEM = 'Item'

/**
 * A schema of JSON with what OpenAPI can say of the same value in XML (C7.5): an array is its element, with a child for
 * each item; a key that is no XML name is escaped. The attributes `type` and `xsi:nil` have no word in OpenAPI.
 * @param itemName of the items, where it is an array
 * @param element its own element, where that has another name than the key
 */
function withXml(
  schema: BodySchema,
  names: ItemNames,
  itemName: string,
  element?: string,
): BodySchema | Node {
  if (element === undefined && isPlain(schema)) return schema
  const { properties, items, additionalProperties, description, ...rest } = schema
  const xml = { ...(element !== undefined && { name: element }), ...(items && { wrapped: true }) }
  return {
    ...rest,
    ...(description !== undefined && { description: markdown(description) }),
    ...(properties && { properties: membersWithXml(properties, names) }),
    ...(items && { items: withXml(items, names, ITEM, itemName) }),
    ...(additionalProperties !== undefined && {
      additionalProperties:
        typeof additionalProperties === 'object'
          ? withXml(additionalProperties, names, ITEM)
          : additionalProperties,
    }),
    ...(Object.keys(xml).length > 0 && { xml }),
  }
}

/** Whether there is nothing to add: of most members. */
const isPlain = ({ properties, items, additionalProperties, description = '' }: BodySchema): boolean =>
  properties === undefined &&
  items === undefined &&
  typeof additionalProperties !== 'object' &&
  !description.includes('<')

const membersWithXml = (properties: Readonly<Record<string, BodySchema>>, names: ItemNames): Node =>
  Object.fromEntries(
    Object.entries(properties).map(([key, schema]) => {
      const element = escapeName(key)
      const itemName = Object.hasOwn(names, key) ? (names[key] ?? ITEM) : ITEM
      return [key, withXml(schema, names, itemName, element === key ? undefined : element)]
    }),
  )

const ROOT = { name: 'ApiResponse' }

const envelope = (errors: Node, data: Node | BodySchema): Node => ({
  type: 'object',
  required: ['Errors', 'Data'],
  properties: { Errors: errors, Data: data },
  xml: ROOT,
})

/** What `Data` is where a data service answers without a body (C8.6). A schema that requires nothing allows it anyway. */
const NOTHING: Node = {
  type: 'object',
  maxProperties: 0,
  description: 'The data service had no data to answer.',
}

const NO_ERRORS: Node = { type: 'array', maxItems: 0, xml: { wrapped: true } }

/** The envelope of a success, with `Data` as the operation describes it. */
export function successSchema({ id, answer }: OperationDescription, components: Components): Reference {
  if (answer.kind === 'own' || answer.data === undefined)
    return components.share('schemas', 'Success', () => envelope(NO_ERRORS, { type: 'object' }))
  const { data, items, mayBeEmpty } = answer
  return components.share('schemas', `Success.${id}`, () => {
    const described = withXml({ type: 'object', ...data }, items, ITEM)
    return envelope(NO_ERRORS, mayBeEmpty ? { anyOf: [described, NOTHING] } : described)
  })
}

/** The schema of a body that is parsed. */
export const bodySchema = (
  schema: BodySchema,
  { id, answer }: OperationDescription,
  components: Components,
) =>
  components.share('schemas', `Body.${id}`, () =>
    withXml(schema, answer.kind === 'envelope' ? answer.items : {}, ITEM),
  )

/**
 * The envelope of a failure.
 * @param codes those that it may have; undefined: any, since a data service's own errors pass (C8.4)
 */
export const failureSchema = (codes: readonly WireCode[] | undefined, components: Components): Reference =>
  components.share('schemas', ['Failure', ...(codes ?? [])].join('.'), () =>
    envelope(
      {
        type: 'array',
        minItems: 1,
        items: {
          type: 'object',
          required: ['Code', 'Message'],
          properties: {
            Code: { type: 'string', ...(codes && { enum: codes }) },
            Message: { type: 'string', description: 'For people.' },
          },
          xml: { name: 'Error' },
        },
        xml: { wrapped: true },
      },
      { type: 'object', maxProperties: 0 },
    ),
  )
