import { XMLBuilder } from 'fast-xml-parser'
import { Fault } from '../../kernel/faults.ts'
import type { JsonObject, JsonValue } from '../body/json.ts'
import { escapeName, escapeText, isXmlText, XSI } from './syntax.ts'
import type { Attributes } from './tree.ts'

/** The element name of an array's items, by the name of the array's member; any other array's are `Item`. */
export type ItemNames = Readonly<Record<string, string>>

/** One failure, as an envelope shows it (C2.1). */
export interface EnvelopeError {
  readonly code: string
  readonly message: string
}

export const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
const ROOT = 'ApiResponse'
const ITEM = 'Item'
/** The builder nests as deep as the value does: a bound instead of a stack that overflows. */
const MAX_DEPTH = 256

/**
 * fast-xml-parser's builder writes whatever it is given, so that what it is given must be right already:
 * - it does not check names: ours come from `escapeName`, which also keeps them off its own keys `@`, `#text`, `?…`;
 * - its entities are five passes over each text and know no `\r`: off, we escape;
 * - by default it writes `nil="true"` as a bare `nil`, and gives up below 100 levels (0: never);
 * - `jPath` (not in its types) spares it a path string per element.
 */
const OPTIONS = {
  format: false,
  ignoreAttributes: false,
  attributesGroupName: '@',
  textNodeName: '#text',
  suppressBooleanAttributes: false,
  suppressEmptyNode: true,
  processEntities: false,
  maxNestedTags: 0,
  jPath: false,
} as const
// eslint-disable-next-line @typescript-eslint/no-deprecated -- in favour of the package that this one re-exports
const builder = new XMLBuilder(OPTIONS)

/** The builder's input: text, or an element's attributes (`@`), text (`#text`) and children by name. All escaped. */
export type XmlNode = string | XmlParent
export interface XmlParent {
  [name: string]: XmlNode | readonly XmlNode[] | Attributes
}

export function buildXml(name: string, node: XmlNode): string {
  const root: XmlParent = {}
  setOwn(root, name, node)
  return builder.build(root)
}

/** Assignment, but for the one name that would set the prototype instead. */
export function setOwn<T>(object: Record<string, T>, name: string, value: T): void {
  if (name === '__proto__')
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  else object[name] = value
}

const OBJECT: Attributes = { type: 'object' }
const ARRAY: Attributes = { type: 'array' }
const NIL: Attributes = { 'xsi:nil': 'true' }
const NIL_NODE: XmlNode = { '@': NIL }
const TRUE_NODE: XmlNode = { '@': { type: 'boolean' }, '#text': 'true' }
const FALSE_NODE: XmlNode = { '@': { type: 'boolean' }, '#text': 'false' }
const NUMBER: Attributes = { type: 'number' }
const NO_NAMES: ItemNames = {}

const unconvertible = (detail: string): Fault => new Fault('answer_unconvertible', { detail })

function textNode(text: string): string {
  if (!isXmlText(text)) throw unconvertible('a string holds a character that XML 1.0 cannot')
  return escapeText(text)
}

function numberNode(number: number): XmlNode {
  if (!Number.isFinite(number)) throw unconvertible('a number that JSON cannot say')
  return { '@': NUMBER, '#text': String(number) }
}

/** One value's walk to a builder's tree. Remembers whether it met a null: the root must then declare `xsi`. */
class Walk {
  readonly #items: ItemNames
  #depth = 0
  hasNil = false

  constructor(items: ItemNames) {
    this.#items = items
  }

  /** `name` is the member's, or undefined for an array's item and the root. */
  node(value: JsonValue, name?: string): XmlNode {
    switch (typeof value) {
      case 'string':
        return textNode(value)
      case 'number':
        return numberNode(value)
      case 'boolean':
        return value ? TRUE_NODE : FALSE_NODE
      case 'object':
        return this.#composite(value, name)
      default:
        throw unconvertible(`a ${typeof value} is no JSON value`)
    }
  }

  /** An object's children; unmarked, also when there are none. */
  members(object: JsonObject): XmlParent {
    this.#descend()
    const node: XmlParent = {} // with a null prototype the builder takes twice as long
    for (const [key, value] of Object.entries<JsonValue | undefined>(object)) {
      if (value === undefined) continue // as JSON.stringify does
      if (!key.isWellFormed()) throw unconvertible('a key holds half a surrogate pair')
      setOwn(node, escapeName(key), this.node(value, key))
    }
    this.#depth--
    return node
  }

  #composite(value: Extract<JsonValue, object | null>, name: string | undefined): XmlNode {
    if (value === null) {
      this.hasNil = true
      return NIL_NODE
    }
    if (Array.isArray(value)) return this.#array(value, name)
    if (JSON.isRawJSON(value)) return { '@': NUMBER, '#text': value.rawJSON }
    const node = this.members(value)
    for (const _ in node) return node
    return { '@': OBJECT }
  }

  #array(values: readonly JsonValue[], name: string | undefined): XmlNode {
    this.#descend()
    const children = values.map((value) => this.node(value))
    this.#depth--
    return { '@': ARRAY, [this.#itemName(name)]: children }
  }

  #itemName(name: string | undefined): string {
    const configured = name !== undefined && Object.hasOwn(this.#items, name) ? this.#items[name] : undefined
    return configured === undefined ? ITEM : escapeName(configured)
  }

  #descend(): void {
    if (++this.#depth > MAX_DEPTH) throw unconvertible(`nested deeper than ${MAX_DEPTH}`)
  }
}

function build(root: string, node: XmlNode, walk: Walk): string {
  const name = escapeName(root)
  if (!walk.hasNil || typeof node === 'string') return DECLARATION + buildXml(name, node)
  const own = node['@'] as Attributes | undefined
  // Declared once, at the root, for every null below it. A spread copies a member named `__proto__` as what it is.
  return DECLARATION + buildXml(name, { ...node, '@': { 'xmlns:xsi': XSI, ...own } })
}

/**
 * The XML document of a JSON value (C7.5), with the XML declaration, as text to be sent in UTF-8. `readXml` is its
 * inverse. Throws Fault `answer_unconvertible` for text that XML 1.0 cannot hold and for nesting deeper than 256.
 */
export function writeXml(value: JsonValue, root: string = ROOT, items: ItemNames = NO_NAMES): string {
  const walk = new Walk(items)
  return build(root, walk.node(value), walk)
}

/** The XML envelope (C2.2), whose own Errors, Error, Code, Message and Data carry no mark. Throws as `writeXml`. */
export function writeXmlEnvelope(
  errors: readonly EnvelopeError[],
  data: JsonObject,
  items: ItemNames = NO_NAMES,
): string {
  const walk = new Walk(items)
  const Error = errors.map(({ code, message }) => ({ Code: textNode(code), Message: textNode(message) }))
  return build(ROOT, { Errors: { Error }, Data: walk.members(data) }, walk)
}
