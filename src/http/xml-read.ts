import { memberSchema, typesOf, type BodySchema, type BodyType } from './body-schema.ts'
import { type JsonObject, type JsonValue, parseNumberLiteral } from './json.ts'
import { printable } from './read-body.ts'
import { unescapeName } from './xml-syntax.ts'
import {
  isBlank,
  malformed,
  readXmlTree,
  XML_LIMITS,
  type XmlElement,
  type XmlLimits,
  type XmlMark,
} from './xml-tree.ts'

/** The envelope's own elements carry no mark (C2.2): this says what they are. `Data`'s content has its marks. */
export const ENVELOPE_SCHEMA: BodySchema = {
  type: 'object',
  properties: {
    Errors: {
      type: 'array',
      items: { type: 'object', properties: { Code: { type: 'string' }, Message: { type: 'string' } } },
    },
    Data: { type: 'object' },
  },
}

function refuse(element: XmlElement, why: string): never {
  throw malformed(element.line, element.column, `the element ${printable(element.name)} ${why}`)
}

/** Marks and schemas name numbers differently. */
const markOfType = (type: BodyType): XmlMark => (type === 'integer' ? 'number' : type)

/** What a schema expects of a value, in the words of marks; none where it says nothing about it. */
function expected(schema: BodySchema | undefined): readonly XmlMark[] {
  if (schema === undefined) return []
  const types = typesOf(schema)
  if (types.length > 0) return types.map(markOfType)
  if (schema.items !== undefined) return ['array']
  return schema.properties === undefined ? [] : ['object']
}

type Reader = (element: XmlElement, schema: BodySchema | undefined) => JsonValue

/** How an element of each kind is read, once the kind is known. */
const READERS: Readonly<Record<XmlMark, Reader>> = {
  string: (element) => leafText(element, 'text'),
  number: (element) =>
    parseNumberLiteral(leafText(element, 'a number')) ??
    refuse(element, 'is to be a number, but its text is none as JSON writes it'),
  boolean: (element) => {
    const text = leafText(element, 'true or false')
    return text === 'true' || (text === 'false' ? false : refuse(element, 'is to be true or false'))
  },
  null: (element) => {
    if (leafText(element, 'empty') !== '') refuse(element, 'is marked as null, but not empty')
    return null
  },
  array: (element, schema) => {
    noText(element, 'an array')
    const name = element.children[0]?.name
    for (const child of element.children)
      if (child.name !== name) refuse(child, `stands in an array of ${printable(name ?? '')}`)
    return readItems(element.children, schema)
  },
  object: (element, schema) => {
    noText(element, 'an object')
    return readMembers(element, schema)
  },
}

function leafText(element: XmlElement, kind: string): string {
  if (element.children.length > 0) refuse(element, `is to be ${kind}, but holds elements`)
  return element.text
}

function noText(element: XmlElement, kind: string): void {
  if (!isBlank(element.text)) refuse(element, `is to be ${kind}, but holds text`)
}

const readItems = (elements: readonly XmlElement[], schema: BodySchema | undefined): JsonValue[] =>
  elements.map((element) => readElement(element, schema?.items))

function readMembers(element: XmlElement, schema: BodySchema | undefined): JsonObject {
  const object = Object.create(null) as JsonObject // `__proto__` is a name like any other
  for (const [key, elements] of byKey(element.children)) {
    const [first, second] = elements
    if (first === undefined) continue
    const member = memberSchema(schema, key)
    if (second === undefined) object[key] = readElement(first, member)
    else if (expected(member).includes('array')) object[key] = readItems(elements, member)
    else refuse(second, 'is repeated')
  }
  return object
}

/** Members by their keys, of which several names may be spellings. */
function byKey(elements: readonly XmlElement[]): ReadonlyMap<string, readonly XmlElement[]> {
  const groups = new Map<string, XmlElement[]>()
  for (const element of elements) {
    const key = unescapeName(element.name)
    if (!key.isWellFormed()) refuse(element, 'names half a surrogate pair')
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [element])
    else group.push(element)
  }
  return groups
}

const SCALARS = {
  string: () => true,
  number: (text: string) => parseNumberLiteral(text) !== undefined,
  boolean: (text: string) => text === 'true' || text === 'false',
  array: isBlank,
  object: isBlank,
} as const satisfies Partial<Record<XmlMark, (text: string) => boolean>>
const LEAF_KINDS = ['string', 'number', 'boolean', 'array', 'object'] as const

/** The kind of an element without a mark: what the schema says, else text or object. Undefined: neither fits. */
function kindOf(element: XmlElement, kinds: readonly XmlMark[]): XmlMark | undefined {
  if (element.children.length > 0) {
    if (kinds.length === 0 || kinds.includes('object')) return 'object'
    return kinds.includes('array') ? 'array' : undefined
  }
  if (kinds.length === 0) return 'string'
  return LEAF_KINDS.find((kind) => kinds.includes(kind) && SCALARS[kind](element.text))
}

function readElement(element: XmlElement, schema: BodySchema | undefined): JsonValue {
  const kinds = expected(schema)
  if (element.mark !== undefined) {
    if (kinds.length > 0 && !kinds.includes(element.mark))
      refuse(element, `is marked as ${element.mark}, but ${kinds.join(' or ')} is expected`)
    return READERS[element.mark](element, schema)
  }
  const kind = kindOf(element, kinds)
  if (kind !== undefined) return READERS[kind](element, schema)
  // An array whose items stand without an element around them, and which has one: `<Tag>a</Tag>`.
  if (kinds.includes('array') && element.children.length === 0) return readItems([element], schema)
  return refuse(element, `does not hold what is expected: ${kinds.join(' or ')}`)
}

/** The same as an object whose one member is the root: for who looks for a part of it. Throws Fault `body_malformed`. */
export function readXmlDocument(bytes: Uint8Array, limits: Partial<XmlLimits> = XML_LIMITS): JsonObject {
  const root = readXmlTree(bytes, { ...XML_LIMITS, ...limits })
  const document = Object.create(null) as JsonObject
  document[unescapeName(root.name)] = readElement(root, undefined)
  return document
}

/**
 * The JSON value of an XML body (C7.5): by its marks, else by the action's schema, else text or object. The root may
 * have any name. Whether the value fits the schema in all else is for the schema's check to say. Throws Fault
 * `body_malformed`; its `say` names line, column, element and reason.
 */
export function readXml(
  bytes: Uint8Array,
  schema?: BodySchema,
  limits: Partial<XmlLimits> = XML_LIMITS,
): JsonValue {
  return readElement(readXmlTree(bytes, { ...XML_LIMITS, ...limits }), schema)
}
