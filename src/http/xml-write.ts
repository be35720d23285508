import { XMLBuilder } from 'fast-xml-parser'
import { Fault } from '../kernel/faults.ts'
import type { JsonObject, JsonValue } from './json.ts'
import { escapeName, escapeText, isXmlText, XSI } from './xml-syntax.ts'

/** The element name of an array's items, by the name of the array's member; any other array's are `Item`. */
export type ItemNames = Readonly<Record<string, string>>

/** What an envelope says of one failure (C2.1). */
export interface EnvelopeError {
  readonly code: string
  readonly message: string
}

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
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

type Attributes = Readonly<Record<string, string>>
/** What the builder takes: text, or an element's attributes (`@`), text (`#text`) and children by name. */
type Node = string | ParentNode
interface ParentNode {
  [name: string]: Node | readonly Node[] | Attributes
}

const OBJECT: Attributes = { type: 'object' }
const ARRAY: Attributes = { type: 'array' }
const NIL: Attributes = { 'xsi:nil': 'true' }
const NIL_NODE: Node = { '@': NIL }
const TRUE_NODE: Node = { '@': { type: 'boolean' }, '#text': 'true' }
const FALSE_NODE: Node = { '@': { type: 'boolean' }, '#text': 'false' }
const NUMBER: Attributes = { type: 'number' }
const NO_NAMES: ItemNames = {}

const unconvertible = (detail: string): Fault => new Fault('answer_unconvertible', { detail })

function textNode(text: string): string {
  if (!isXmlText(text)) throw unconvertible('a string holds a character that XML 1.0 cannot')
  return escapeText(text)
}

function numberNode(number: number): Node {
  if (!Number.isFinite(number)) throw unconvertible('a number that JSON cannot say')
  return { '@': NUMBER, '#text': String(number) }
}

/** Assignment, but for the one name that would set the prototype instead. */
function setOwn(node: ParentNode, name: string, value: Node): void {
  if (name === '__proto__')
    Object.defineProperty(node, name, { value, enumerable: true, configurable: true, writable: true })
  else node[name] = value
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
  node(value: JsonValue, name?: string): Node {
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
  members(object: JsonObject): ParentNode {
    this.#descend()
    const node: ParentNode = {} // with a null prototype the builder takes twice as long
    for (const [key, value] of Object.entries<JsonValue | undefined>(object)) {
      if (value === undefined) continue // as JSON.stringify does
      if (!key.isWellFormed()) throw unconvertible('a key holds half a surrogate pair')
      setOwn(node, escapeName(key), this.node(value, key))
    }
    this.#depth--
    return node
  }

  #composite(value: Extract<JsonValue, object | null>, name: string | undefined): Node {
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

  #array(values: readonly JsonValue[], name: string | undefined): Node {
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

function build(root: string, node: Node, walk: Walk): string {
  if (!walk.hasNil || typeof node === 'string') return DECLARATION + element(root, node)
  const own = node['@'] as Attributes | undefined
  // Declared once, at the root, for every null below it. A spread copies a member named `__proto__` as what it is.
  const declared: ParentNode = { ...node, '@': { 'xmlns:xsi': XSI, ...own } }
  return DECLARATION + element(root, declared)
}

const element = (root: string, node: Node): string => builder.build({ [escapeName(root)]: node })

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
