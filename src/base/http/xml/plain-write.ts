import { XMLBuilder } from 'fast-xml-parser'
import { Fault } from '../../kernel/faults.ts'
import { isJsonObject, type JsonObject, type JsonValue, literalOf } from '../body/json.ts'
import { quoted } from '../body/read-body.ts'
import { NamespaceScope } from './namespaces.ts'
import { BODY_LIMITS, type PathRule, type PlainXmlRules, ruleOf } from './plain-document.ts'
import { ATTRIBUTE, TEXT } from './plain-read.ts'
import { DECLARATION, escapeAttribute, escapeText, isQName, isXmlText } from './syntax.ts'

function refuse(why: string): never {
  throw new Fault('body_malformed', { say: `For the data service it becomes XML: ${why}.`, quotes: true })
}

type Attributes = Record<string, string>

/**
 * fast-xml-parser's builder writes whatever it is given, so that what it is given must be right already:
 * - it does not check names: ours are qualified names, and so none of its own keys `@`, `#text`, `?…`;
 * - its entities are five passes over each text and know no `\r`: off, we escape;
 * - by default it writes `a="true"` as a bare `a`, and gives up below 100 levels (0: never);
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
type XmlNode = string | XmlParent
interface XmlParent {
  [name: string]: XmlNode | readonly XmlNode[] | Readonly<Attributes>
}

function buildXml(name: string, node: XmlNode): string {
  const root: XmlParent = {}
  setOwn(root, name, node)
  return builder.build(root)
}

/** Assignment, but for the one name that would set the prototype instead. */
function setOwn<T>(object: Record<string, T>, name: string, value: T): void {
  if (name === '__proto__')
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  else object[name] = value
}

const kindOf = (value: JsonValue): string =>
  value === null ? 'null' : Array.isArray(value) ? 'a list' : 'an object'

/** The text of a scalar. Where a number or boolean is expected, `null` is the empty text, as it is read there. */
function textOf(value: JsonValue, name: string, { type }: PathRule): string {
  if (value === null && type !== undefined) return ''
  if (typeof value === 'boolean') return String(value)
  if (typeof value === 'number' || JSON.isRawJSON(value)) return literalOf(value)
  if (typeof value !== 'string')
    refuse(`${quoted(name)} must be a text, a number or a boolean, and is ${kindOf(value)}`)
  if (!isXmlText(value)) refuse(`${quoted(name)} holds a character that XML cannot`)
  return value
}

/** Makes what fast-xml-parser's builder takes of a value: names checked, texts escaped. */
class ElementBuilder {
  readonly #scope = new NamespaceScope(refuse)
  readonly #most: number
  #depth = 0
  /** How many characters were written, without those between names and texts. */
  #length = 0

  constructor(most: number) {
    this.#most = most
  }

  element(name: string, value: JsonValue, rule: PathRule, given: Readonly<Attributes> = NONE): XmlNode {
    if (!isQName(name)) refuse(`${quoted(name)} is no name of an element`)
    if (++this.#depth > BODY_LIMITS.depth) refuse(`it is nested deeper than ${BODY_LIMITS.depth}`)
    this.#count(name)
    const node = isJsonObject(value)
      ? this.#parent(name, value, rule, given)
      : this.#leaf(name, value, rule, given)
    this.#depth--
    return node
  }

  /** A value that is in many places of a template is one in memory, and many when it is written. */
  #count(text: string): void {
    this.#length += text.length
    if (this.#length > this.#most)
      throw new Fault('body_too_large', { detail: `more than ${this.#most} characters of XML` })
  }

  #leaf(name: string, value: JsonValue, rule: PathRule, attributes: Readonly<Attributes>): XmlNode {
    this.#scope.enter(name, attributes)
    this.#scope.leave()
    const text = escapeText(textOf(value, name, rule))
    this.#count(text)
    return attributes === NONE ? text : { [ATTRIBUTE]: escaped(attributes), [TEXT]: text }
  }

  #parent(name: string, value: JsonObject, rule: PathRule, given: Readonly<Attributes>): XmlNode {
    const attributes = attributesOf(value, rule, given)
    for (const key in attributes) this.#count(attributes[key] ?? '')
    this.#scope.enter(name, attributes)
    const node: XmlParent = {}
    if (attributes !== NONE) node[ATTRIBUTE] = escaped(attributes)
    this.#content(name, value, rule, node)
    this.#scope.leave()
    return node
  }

  #content(name: string, value: JsonObject, rule: PathRule, node: XmlParent): void {
    const text = value[TEXT]
    let elements = 0
    for (const key in value) {
      if (key === TEXT || key.startsWith(ATTRIBUTE)) continue
      elements++
      setOwn(node, key, this.#member(key, value[key] ?? null, ruleOf(rule, key)))
    }
    if (text === undefined) return
    if (elements > 0) refuse(`${quoted(name)} holds both a text and elements`)
    const written = escapeText(textOf(text, name, rule))
    this.#count(written)
    node[TEXT] = written
  }

  #member(name: string, value: JsonValue, rule: PathRule): XmlNode | readonly XmlNode[] {
    if (!Array.isArray(value)) return this.element(name, value, rule)
    return value.map((item) => {
      if (Array.isArray(item)) refuse(`${quoted(name)} is a list within a list`)
      return this.element(name, item, rule)
    })
  }
}

const NONE: Readonly<Attributes> = {}

const escaped = (attributes: Readonly<Attributes>): Attributes => {
  const texts: Attributes = {}
  for (const name in attributes) setOwn(texts, name, escapeAttribute(attributes[name] ?? ''))
  return texts
}

/** The attributes of an object, and those that the configuration gives its element, which it must not contradict. */
function attributesOf(value: JsonObject, rule: PathRule, given: Readonly<Attributes>): Readonly<Attributes> {
  let attributes: Attributes | undefined
  for (const key in value) {
    if (!key.startsWith(ATTRIBUTE)) continue
    const name = key.slice(ATTRIBUTE.length)
    if (!isQName(name)) refuse(`${quoted(key)} is no name of an attribute`)
    attributes ??= { ...given }
    const text = textOf(value[key] ?? null, key, ruleOf(rule, key))
    if (Object.hasOwn(given, name) && given[name] !== text) refuse(`${quoted(key)} is not the body’s to set`)
    setOwn(attributes, name, text)
  }
  return attributes ?? given
}

/** The one member of a body that is built without a configured root. */
function rootOf(value: JsonValue): readonly [name: string, value: JsonValue] {
  const [first, ...others] = isJsonObject(value) ? Object.entries(value) : []
  if (first === undefined || others.length > 0 || Array.isArray(first[1]))
    refuse('expected an object with one member, which becomes the root element')
  return first
}

/**
 * The XML document of a JSON value (C7.7), as text to be sent in UTF-8: what `readPlainXml` reads back.
 * @param most characters, counted while it is made: then no memory is needed for what is not sent
 * @throws Fault `body_malformed` for what the mapping cannot say; `body_too_large`
 */
export function writePlainXml(
  value: JsonValue,
  { root, attributes, paths }: PlainXmlRules,
  most = Number.POSITIVE_INFINITY,
): string {
  const [name, content] = root === undefined ? rootOf(value) : ([root, value] as const)
  if (Array.isArray(content)) refuse('a list cannot be the root element')
  const given = Object.keys(attributes).length === 0 ? NONE : attributes
  return (
    DECLARATION + buildXml(name, new ElementBuilder(most).element(name, content, ruleOf(paths, name), given))
  )
}
