import { Fault } from '../../kernel/faults.ts'
import { type JsonObject, type JsonValue, newObject, parseNumberLiteral } from '../body/json.ts'
import { printable } from '../body/read-body.ts'
import type { DecodedXml } from './decode.ts'
import { declaredPrefix, localOf, type NamespaceScope } from './namespaces.ts'
import {
  checkDocument,
  type ContentListener,
  type PathRule,
  type PlainXmlRules,
  ruleOf,
} from './plain-document.ts'
import { type Attributes, type XmlPosition, type XmlElement, type XmlLimits, XmlTree } from './tree.ts'

/** Before the names of attributes in JSON. */
export const ATTRIBUTE = '@'
/** The name of an element's text in JSON, where it has attributes too. */
export const TEXT = '#text'

const unmappable = (why: string): Fault => new Fault('answer_unmappable', { detail: `XML${why}` })

/** Refuses what JSON cannot hold without loss (C7.7), by Fault `answer_unmappable`. */
class MappableTree extends XmlTree implements ContentListener {
  readonly #strip: boolean
  /** Where prefixes are stripped: the namespace of each local name among the elements of the open ones, by their depth. */
  readonly #names: Map<string, string>[] = []

  constructor(stripNamespaces: boolean, document: string | undefined) {
    super(document)
    this.#strip = stripNamespaces
  }

  open(name: string, attributes: Attributes | undefined, scope: NamespaceScope, place: XmlPosition): void {
    this.requireNoText(place)
    if (this.#strip && this.depth > 0) this.#checkStripped(name, scope, place)
    this.#checkNames(name, attributes, place)
    if (this.#strip && attributes !== undefined) this.#checkStrippedAttributes(attributes, place)
    this.add(name, attributes, undefined, place)
  }

  override close(place: XmlPosition): void {
    super.close(place)
    if (this.#names.length > this.depth + 1) this.#names.length = this.depth + 1
  }

  protected fault({ line, column }: XmlPosition, why: string): Fault {
    return unmappable(` line ${line}, column ${column}: ${why}`)
  }

  #checkStripped(name: string, scope: NamespaceScope, place: XmlPosition): void {
    const names = (this.#names[this.depth] ??= new Map<string, string>())
    const uri = scope.uriOf(name)
    const other = names.get(localOf(name))
    if (other === undefined) names.set(localOf(name), uri)
    else if (other !== uri)
      throw this.fault(place, `two elements of different namespaces are both ${printable(localOf(name))}`)
  }

  #checkNames(name: string, attributes: Attributes | undefined, place: XmlPosition): void {
    if (isSplit(name)) throw this.fault(place, `the name ${printable(name)} cannot be read`)
    for (const attribute in attributes)
      if (isSplit(attribute)) throw this.fault(place, `the name ${printable(attribute)} cannot be read`)
  }

  #checkStrippedAttributes(attributes: Attributes, place: XmlPosition): void {
    const seen = new Set<string>()
    for (const name in attributes) {
      if (declaredPrefix(name) !== undefined) continue
      const local = localOf(name)
      if (seen.has(local))
        throw this.fault(place, `two attributes of an element are both ${printable(local)}`)
      seen.add(local)
    }
  }
}

/** Whether a name holds a character of XML that JavaScript takes for white space: most who read it would see two names. */
const isSplit = (name: string): boolean => /[\u1680\uFEFF]/.test(name)

type Typed = Exclude<PathRule['type'], undefined>

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

/** By type, with the white space around it cut off (XML Schema part 2 §4.3.6). */
const READERS: Readonly<Record<Typed, (text: string) => JsonValue | undefined>> = {
  number: parseNumberLiteral,
  boolean: (text) => BOOLEANS.get(text),
}

const isBlankAt = (text: string, at: number): boolean => ' \t\n\r'.includes(text.charAt(at))

/** Without the white space of XML around it. An expression with `+$` would try each blank as the first one (T2.9). */
function trimmed(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && isBlankAt(text, start)) start++
  while (start < end && isBlankAt(text, end - 1)) end--
  return text.slice(start, end)
}

/** The value of a text. One that is empty where a number or boolean is expected is null. */
function valueOf(text: string, name: string, { type }: PathRule): JsonValue {
  if (type === undefined) return text
  const bare = trimmed(text)
  if (bare === '') return null
  const value = READERS[type](bare)
  if (value !== undefined) return value
  throw unmappable(`: the text of ${printable(name)} is no ${type}`)
}

class ValueReader {
  readonly #strip: boolean

  constructor(stripNamespaces: boolean) {
    this.#strip = stripNamespaces
  }

  nameOf({ name }: XmlElement): string {
    return this.#strip ? localOf(name.text) : name.text
  }

  read(element: XmlElement, rule: PathRule): JsonValue {
    const { first, text } = element
    const object = this.#attributes(element, rule)
    if (first !== undefined) {
      const filled = object ?? newObject()
      this.#elements(first, filled, rule)
      return withEmptyArrays(filled, rule) ?? filled
    }
    const name = this.nameOf(element)
    if (object === undefined)
      return (text === '' ? withEmptyArrays(undefined, rule) : undefined) ?? valueOf(text, name, rule)
    if (text !== '') object[TEXT] = valueOf(text, name, rule)
    return withEmptyArrays(object, rule) ?? object
  }

  #attributes({ attributes }: XmlElement, rule: PathRule): JsonObject | undefined {
    let object: JsonObject | undefined
    for (const name in attributes) {
      if (this.#strip && declaredPrefix(name) !== undefined) continue
      const key = ATTRIBUTE + (this.#strip ? localOf(name) : name)
      object ??= newObject()
      object[key] = valueOf(attributes[name] ?? '', key, ruleOf(rule, key))
    }
    return object
  }

  /** Elements of one name are a list, in the place of the first. */
  #elements(first: XmlElement, object: JsonObject, rule: PathRule): void {
    for (let element: XmlElement | undefined = first; element !== undefined; element = element.next) {
      const name = this.nameOf(element)
      if (rule.type !== undefined) throw unmappable(`: what is a ${rule.type} holds ${printable(name)}`)
      const below = ruleOf(rule, name)
      add(object, name, this.read(element, below), below.isArray)
    }
  }
}

/** No element is read as an array: an array here holds the elements before. */
function add(object: JsonObject, name: string, value: JsonValue, isArray: boolean): void {
  const before = object[name]
  if (before === undefined) object[name] = isArray ? [value] : value
  else if (Array.isArray(before)) before.push(value)
  else object[name] = [before, value]
}

/** Adds what is always an array and is not there. Without an object it makes one, if there is such an array. */
function withEmptyArrays(object: JsonObject | undefined, rule: PathRule): JsonObject | undefined {
  let filled = object
  for (const [name, { isArray }] of rule.children) {
    if (!isArray) continue
    filled ??= newObject()
    if (!Object.hasOwn(filled, name)) filled[name] = []
  }
  return filled
}

/**
 * The JSON value of a document (C7.7): an object whose one member is the root.
 * @param inOnePiece whether a text that stands in several pieces is refused: see `XmlTree`
 * @throws Fault `body_malformed` for what is not well-formed or over a limit; `answer_unmappable` for what JSON cannot
 *   hold without loss
 */
export function readPlainXml(
  document: DecodedXml,
  limits: XmlLimits,
  { stripNamespaces, paths }: PlainXmlRules,
  inOnePiece = false,
): JsonObject {
  const tree = new MappableTree(stripNamespaces, inOnePiece ? document.text : undefined)
  checkDocument(document, limits, tree)
  const values = new ValueReader(stripNamespaces)
  const name = values.nameOf(tree.root)
  const object = newObject()
  object[name] = values.read(tree.root, ruleOf(paths, name))
  return object
}
