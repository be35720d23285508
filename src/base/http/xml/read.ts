import type { Fault } from '../../kernel/faults.ts'
import { type BodySchema, type BodyType, memberSchema, typesOf } from '../body/body-schema.ts'
import { type JsonObject, type JsonValue, parseNumberLiteral } from '../body/json.ts'
import { decodeUtf8, printable } from '../body/read-body.ts'
import { doctypeOf } from './decode.ts'
import { isBlank, unescapeName, XSI } from './syntax.ts'
import {
  type Attributes,
  checkText,
  type Declaration,
  malformed,
  parseXml,
  type XmlPosition,
  malformedXml,
  type XmlElement,
  type XmlLimits,
  type XmlListener,
  type XmlMark,
  XmlTree,
} from './tree.ts'

/** Bounds on a body of Postern's dialect. */
interface BodyLimits extends XmlLimits {
  readonly bytes: number
}

export const XML_LIMITS: BodyLimits = {
  bytes: 1024 ** 2,
  depth: 100,
  nodes: 50_000,
  attributes: 16,
  references: 50_000,
}

const MARKS: ReadonlySet<string> = new Set<XmlMark>(['string', 'number', 'boolean', 'array', 'object'])
const NIL: Readonly<Record<string, boolean>> = { true: true, 1: true, false: false, 0: false }
/** The namespaces of the prefixes `xml` and `xmlns` (Namespaces in XML 1.0 §3). */
const RESERVED: ReadonlySet<string> = new Set([
  'http://www.w3.org/XML/1998/namespace',
  'http://www.w3.org/2000/xmlns/',
])
const DECLARES_PREFIX = /^xmlns:(?!xml$|xmlns$)[^:]+$/

/** The tree of a document in Postern's dialect (C7.5). Its methods throw Fault `body_malformed`. */
class MarkedTree extends XmlTree implements XmlListener {
  /** How many elements are open where the prefix `xsi` is declared; undefined: it is not. */
  #xsiFrom: number | undefined

  declared({ encoding }: Declaration, place: XmlPosition): void {
    if (encoding !== undefined && encoding.toLowerCase() !== 'utf-8')
      throw malformed(place, 'the only encoding is UTF-8')
  }

  instruction(_target: string, place: XmlPosition): void {
    throw malformed(place, 'a processing instruction is not allowed')
  }

  tag(name: string, place: XmlPosition): void {
    if (name.includes(':')) throw malformed(place, `the element ${printable(name)} has a prefix`)
  }

  attribute(name: string, place: XmlPosition): void {
    if (name === 'type' || name === 'xsi:nil' || name === 'xmlns' || DECLARES_PREFIX.test(name)) return
    throw malformed(place, `the attribute ${printable(name)} is not known; there are xmlns, xsi:nil and type`)
  }

  open(name: string, attributes: Attributes | undefined, place: XmlPosition): void {
    if (attributes !== undefined && declaresXsi(attributes, place)) this.#xsiFrom ??= this.depth
    const mark = attributes && markOf(attributes, this.#xsiFrom !== undefined, place)
    this.requireNoText(place)
    this.add(name, undefined, mark, place)
  }

  override close(place: XmlPosition): void {
    super.close(place)
    if (this.#xsiFrom !== undefined && this.depth <= this.#xsiFrom) this.#xsiFrom = undefined
  }

  protected fault(place: XmlPosition, why: string): Fault {
    return malformed(place, why)
  }
}

/** Namespaces in XML 1.0 §3 and §5: a prefix is bound to something, `xsi` to its own namespace. */
function declaresXsi(attributes: Attributes, place: XmlPosition): boolean {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('xmlns:') && value === '')
      throw malformed(place, `${printable(name)} is bound to nothing`)
    if (name === 'xmlns:xsi' && value !== XSI) throw malformed(place, `xmlns:xsi is not ${XSI}`)
    // Namespaces §3: these two are bound to their own prefixes, and are nobody else's default either.
    if (name.startsWith('xmlns') && RESERVED.has(value))
      throw malformed(place, `${printable(name)} is bound to ${value}, which is reserved`)
  }
  return attributes['xmlns:xsi'] !== undefined
}

function markOf(attributes: Attributes, xsi: boolean, place: XmlPosition): XmlMark | undefined {
  const { type, 'xsi:nil': nil } = attributes
  if (nil !== undefined && isNil(nil, xsi, place)) {
    if (type !== undefined) throw malformed(place, 'xsi:nil and type contradict each other')
    return 'null'
  }
  if (type === undefined || isMark(type)) return type
  throw malformed(place, `the type ${printable(type)} is not known; there are ${[...MARKS].join(', ')}`)
}

function isNil(nil: string, xsi: boolean, place: XmlPosition): boolean {
  if (!xsi) throw malformed(place, `xsi is not declared; write xmlns:xsi="${XSI}"`)
  const value = Object.hasOwn(NIL, nil) ? NIL[nil] : undefined
  if (value === undefined) throw malformed(place, 'xsi:nil is neither true nor false')
  return value
}

const isMark = (type: string): type is XmlMark => MARKS.has(type)

function readTree(bytes: Uint8Array, limits: BodyLimits, inOnePiece = false): XmlElement {
  if (bytes.byteLength > limits.bytes) throw malformedXml(`there are more than ${limits.bytes} bytes`)
  const text = decodeUtf8(bytes)
  checkText(text, limits)
  if (doctypeOf(text, false) !== 'none') throw malformedXml('a document type declaration is not allowed')
  const tree = new MarkedTree(inOnePiece ? text : undefined)
  parseXml(text, limits, tree)
  return tree.root
}

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
  throw malformed(element, `the element ${printable(element.name)} ${why}`)
}

/** Marks and schemas name numbers differently. */
const markOfType = (type: BodyType): XmlMark => (type === 'integer' ? 'number' : type)

/** The kinds of value that a schema expects, in the words of marks; empty where it says nothing about it. */
function expected(schema: BodySchema | undefined): readonly XmlMark[] {
  if (schema === undefined) return []
  const types = typesOf(schema)
  if (types.length > 0) return types.map(markOfType)
  if (schema.items !== undefined) return ['array']
  return schema.properties === undefined ? [] : ['object']
}

type Reader = (element: XmlElement, schema: BodySchema | undefined) => JsonValue

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

/** Members by their keys; several names may be spellings of one key. */
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

/** The kind of an element without a mark: what the schema says, otherwise text or object. Undefined: neither fits. */
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
export function readXmlDocument(bytes: Uint8Array, limits: Partial<BodyLimits> = XML_LIMITS): JsonObject {
  const root = readTree(bytes, { ...XML_LIMITS, ...limits })
  const document = Object.create(null) as JsonObject
  document[unescapeName(root.name)] = readElement(root, undefined)
  return document
}

/**
 * The JSON value of an XML body (C7.5): by its marks, else by the action's schema, else text or object. The root may
 * have any name. Whether the value fits the schema in all else is for the schema's check to say. Throws Fault
 * `body_malformed`; its `say` names line, column, element and reason.
 * @param inOnePiece whether a text that stands in several pieces is refused: see `XmlTree`
 */
export function readXml(
  bytes: Uint8Array,
  schema?: BodySchema,
  limits: Partial<BodyLimits> = XML_LIMITS,
  inOnePiece = false,
): JsonValue {
  return readElement(readTree(bytes, { ...XML_LIMITS, ...limits }, inOnePiece), schema)
}
