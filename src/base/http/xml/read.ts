import type { Fault } from '../../kernel/faults.ts'
import { type BodySchema, type BodyType, memberSchema } from '../body/body-schema.ts'
import { type JsonObject, type JsonValue, newObject, parseNumberLiteral } from '../body/json.ts'
import { decodeUtf8, printable } from '../body/read-body.ts'
import { doctypeOf } from './decode.ts'
import { isBlank, XSI } from './syntax.ts'
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

const MARKS = ['string', 'number', 'boolean', 'array', 'object'] as const
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
  /** Whether the tag that is read declares a namespace. */
  #declares = false

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
    if (name === 'type' || name === 'xsi:nil') return
    this.#declares = true
    if (name === 'xmlns' || DECLARES_PREFIX.test(name)) return
    throw malformed(place, `the attribute ${printable(name)} is not known; there are xmlns, xsi:nil and type`)
  }

  open(name: string, attributes: Attributes | undefined, place: XmlPosition): void {
    if (this.#declares && attributes !== undefined && declaresXsi(attributes, place))
      this.#xsiFrom ??= this.depth
    this.#declares = false
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
  for (const name in attributes) {
    const value = attributes[name] ?? ''
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
  if (type === undefined) return undefined
  // Not the text of the document: the engine knows this string as the name of a reader.
  const mark = MARKS.find((each) => each === type)
  if (mark !== undefined) return mark
  throw malformed(place, `the type ${printable(type)} is not known; there are ${MARKS.join(', ')}`)
}

function isNil(nil: string, xsi: boolean, place: XmlPosition): boolean {
  if (!xsi) throw malformed(place, `xsi is not declared; write xmlns:xsi="${XSI}"`)
  const value = Object.hasOwn(NIL, nil) ? NIL[nil] : undefined
  if (value === undefined) throw malformed(place, 'xsi:nil is neither true nor false')
  return value
}

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
  throw malformed(element, `the element ${printable(element.name.text)} ${why}`)
}

/** Marks and schemas name numbers differently. */
const MARK_OF: Readonly<Record<BodyType, readonly [XmlMark]>> = {
  string: ['string'],
  number: ['number'],
  integer: ['number'],
  boolean: ['boolean'],
  array: ['array'],
  object: ['object'],
  null: ['null'],
}
const ANY: readonly XmlMark[] = []

const kindsOf = new WeakMap<BodySchema, readonly XmlMark[]>()

/** The kinds of value that a schema expects, in the words of marks; empty where it says nothing about it. */
function expected(schema: BodySchema | undefined): readonly XmlMark[] {
  if (schema === undefined) return ANY
  const known = kindsOf.get(schema)
  if (known !== undefined) return known
  const kinds = marksOf(schema)
  kindsOf.set(schema, kinds)
  return kinds
}

function marksOf(schema: BodySchema): readonly XmlMark[] {
  const { type } = schema
  if (typeof type === 'string') return MARK_OF[type]
  if (type !== undefined && type.length > 0) return type.flatMap((each) => MARK_OF[each])
  if (schema.items !== undefined) return MARK_OF.array
  return schema.properties === undefined ? ANY : MARK_OF.object
}

type Reader = (element: XmlElement, schema: BodySchema | undefined) => JsonValue

/** The value of a text, by the kind that it is to be; undefined: it is none of it. In the order in which they are tried. */
const TEXTS: Readonly<Record<Exclude<XmlMark, 'null'>, (text: string) => JsonValue | undefined>> = {
  string: (text) => text,
  number: parseNumberLiteral,
  boolean: (text) => (text === 'true' || text === 'false' ? text === 'true' : undefined),
  array: (text) => (isBlank(text) ? [] : undefined),
  object: (text) => (isBlank(text) ? newObject() : undefined),
}
const TEXT_KINDS = Object.keys(TEXTS) as (keyof typeof TEXTS)[]

const READERS: Readonly<Record<XmlMark, Reader>> = {
  string: (element) => leafText(element, 'text'),
  number: (element) =>
    TEXTS.number(leafText(element, 'a number')) ??
    refuse(element, 'is to be a number, but its text is none as JSON writes it'),
  boolean: (element) =>
    TEXTS.boolean(leafText(element, 'true or false')) ?? refuse(element, 'is to be true or false'),
  null: (element) => {
    if (leafText(element, 'empty') !== '') refuse(element, 'is marked as null, but not empty')
    return null
  },
  array: (element, schema) => {
    noText(element, 'an array')
    const name = element.first?.name
    for (let item = element.first; item !== undefined; item = item.next)
      if (item.name !== name) refuse(item, `stands in an array of ${printable(name?.text ?? '')}`)
    const items: JsonValue[] = []
    for (let item = element.first; item !== undefined; item = item.next)
      items.push(readElement(item, schema?.items))
    return items
  },
  object: (element, schema) => {
    noText(element, 'an object')
    return readMembers(element, schema)
  },
}

function leafText(element: XmlElement, kind: string): string {
  if (element.first !== undefined) refuse(element, `is to be ${kind}, but holds elements`)
  return element.text
}

function noText(element: XmlElement, kind: string): void {
  if (!isBlank(element.text)) refuse(element, `is to be ${kind}, but holds text`)
}

function readMembers(element: XmlElement, schema: BodySchema | undefined): JsonObject {
  if (isRepeating(element)) return readRepeated(element, schema)
  const object = newObject()
  for (let member = element.first; member !== undefined; member = member.next) {
    const { text } = member.name.key
    object[text] = readElement(member, memberSchema(schema, text))
  }
  return object
}

let objects = 0

/** Whether two members have one key. */
function isRepeating(object: XmlElement): boolean {
  let isRepeated = false
  objects++
  for (let member = object.first; member !== undefined; member = member.next) {
    const { key } = member.name
    if (!key.isWhole) refuse(member, 'names half a surrogate pair')
    isRepeated ||= key.seenIn === objects
    key.seenIn = objects
  }
  return isRepeated
}

/** Members some of which are the items of an array, or the fault. */
function readRepeated({ first }: XmlElement, schema: BodySchema | undefined): JsonObject {
  const groups = new Map<string, XmlElement[]>()
  for (let member = first; member !== undefined; member = member.next) {
    const { text } = member.name.key
    const group = groups.get(text)
    if (group === undefined) groups.set(text, [member])
    else group.push(member)
  }
  const object = newObject()
  for (const [key, members] of groups) {
    const member = memberSchema(schema, key)
    const [only, second] = members
    if (second === undefined) object[key] = only === undefined ? null : readElement(only, member)
    else if (expected(member).includes('array'))
      object[key] = members.map((each) => readElement(each, member?.items))
    else refuse(second, 'is repeated')
  }
  return object
}

/** By its mark; without one it is what the schema says, or else a text or an object. */
function readElement(element: XmlElement, schema: BodySchema | undefined): JsonValue {
  const kinds = expected(schema)
  const { mark, first, text } = element
  if (mark !== undefined) {
    if (kinds.length > 0 && !kinds.includes(mark))
      refuse(element, `is marked as ${mark}, but ${kinds.join(' or ')} is expected`)
    return READERS[mark](element, schema)
  }
  if (first !== undefined) {
    if (kinds.length === 0 || kinds.includes('object')) return READERS.object(element, schema)
    if (kinds.includes('array')) return READERS.array(element, schema)
  } else {
    if (kinds.length === 0) return text
    for (const kind of TEXT_KINDS) {
      const value = kinds.includes(kind) ? TEXTS[kind](text) : undefined
      if (value !== undefined) return value
    }
    // An array whose items stand without an element around them, and which has one: `<Tag>a</Tag>`.
    if (kinds.includes('array')) return [readElement(element, schema?.items)]
  }
  return refuse(element, `does not hold what is expected: ${kinds.join(' or ')}`)
}

/** The same as an object whose one member is the root: for who looks for a part of it. Throws Fault `body_malformed`. */
export function readXmlDocument(bytes: Uint8Array, limits: Partial<BodyLimits> = XML_LIMITS): JsonObject {
  const root = readTree(bytes, { ...XML_LIMITS, ...limits })
  const document = newObject()
  document[root.name.key.text] = readElement(root, undefined)
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
