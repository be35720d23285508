import { Fault } from '../../kernel/faults.ts'
import { printable } from '../body-text.ts'
import { type JsonObject, type JsonValue, parseNumberLiteral } from '../json-value.ts'
import type { DecodedXml } from './decode.ts'
import { checkDocument } from './document.ts'
import { ATTRIBUTE, ELEMENT, parseRoot, TEXT, type XmlNode, type XmlParent } from './fast-xml.ts'
import { LossCheck } from './losses.ts'
import { decodeAttribute, decodeReferences } from './references.ts'
import { type PathRule, type PlainXmlLimits, type PlainXmlRules, ruleOf } from './rules.ts'
import { plainRootText } from './splice.ts'

const newObject = (): JsonObject => Object.create(null) as JsonObject

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
  throw new Fault('answer_unmappable', { detail: `XML: the text of ${printable(name)} is no ${type}` })
}

/** The text of an element, or of an attribute. */
const textAt = (node: XmlParent, key: string): string => {
  const text = node[key]
  return typeof text === 'string' ? text : ''
}

function readElement(node: XmlNode, name: string, rule: PathRule): JsonValue {
  if (typeof node === 'string') {
    const empty = node === '' ? withEmptyArrays(undefined, rule) : undefined
    return empty ?? valueOf(decodeReferences(node), name, rule)
  }
  const object = newObject()
  readAttributes(node, object, rule)
  if (readElements(node, object, rule) === 0) {
    const text = decodeReferences(textAt(node, TEXT))
    if (text !== '') object[TEXT] = valueOf(text, name, rule)
  }
  return withEmptyArrays(object, rule) ?? object
}

function readAttributes(node: XmlParent, object: JsonObject, rule: PathRule): void {
  for (const key in node)
    if (key.startsWith(ATTRIBUTE))
      object[key] = valueOf(decodeAttribute(textAt(node, key)), key, ruleOf(rule, key))
}

/** @returns how many there are */
function readElements(node: XmlParent, object: JsonObject, rule: PathRule): number {
  let count = 0
  for (const key in node) {
    if (!key.startsWith(ELEMENT)) continue
    const name = key.slice(ELEMENT.length)
    if (rule.type !== undefined)
      throw new Fault('answer_unmappable', { detail: `XML: what is a ${rule.type} holds ${printable(name)}` })
    const below = ruleOf(rule, name)
    const values = (node[key] as readonly XmlNode[]).map((each) => readElement(each, name, below))
    count += values.length
    const [first = ''] = values
    object[name] = values.length === 1 && !below.isArray ? first : values
  }
  return count
}

/** Adds what is always an array and does not stand there. Without an object it makes one, if there is such an array. */
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
 * @throws Fault `body_malformed` for what is not well-formed or over a limit; `answer_unmappable` for what JSON cannot
 *   hold without loss
 */
export function readPlainXml(
  document: DecodedXml,
  limits: PlainXmlLimits,
  { stripNamespaces, paths }: PlainXmlRules,
): JsonObject {
  const extent = checkDocument(document, limits, new LossCheck(stripNamespaces))
  const root = parseRoot(plainRootText(document.text, extent), stripNamespaces ? 'strip' : 'keep')
  const object = newObject()
  readElements(root, object, paths)
  return object
}
