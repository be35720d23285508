import { Fault } from '../../kernel/faults.ts'
import { printable } from '../read-body.ts'
import { type JsonObject, type JsonValue, parseNumberLiteral } from '../json.ts'
import type { DecodedXml } from './decode.ts'
import { checkDocument } from './document.ts'
import { elementOf, parseRoot, type ParsedElement, TEXT, textOf } from './fast-xml.ts'
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

function readElement(element: ParsedElement, rule: PathRule): JsonValue {
  const { name, attributes } = element
  const object = newObject()
  for (const key in attributes)
    object[key] = valueOf(decodeAttribute(attributes[key] ?? ''), key, ruleOf(rule, key))
  if (!readElements(element, object, rule)) {
    const text = decodeReferences(textOf(element))
    if (attributes === undefined)
      return (text === '' ? withEmptyArrays(undefined, rule) : undefined) ?? valueOf(text, name, rule)
    if (text !== '') object[TEXT] = valueOf(text, name, rule)
  }
  return withEmptyArrays(object, rule) ?? object
}

/** Elements of one name are a list, in the place of the first. @returns whether there are any elements */
function readElements({ content }: ParsedElement, object: JsonObject, rule: PathRule): boolean {
  let found = false
  for (const node of content) {
    const element = elementOf(node)
    if (element === undefined) continue
    const { name } = element
    if (rule.type !== undefined)
      throw new Fault('answer_unmappable', { detail: `XML: what is a ${rule.type} holds ${printable(name)}` })
    const below = ruleOf(rule, name)
    add(object, name, readElement(element, below), below.isArray)
    found = true
  }
  return found
}

/** No element is read as an array: what is one here are the elements before. */
function add(object: JsonObject, name: string, value: JsonValue, isArray: boolean): void {
  const before = object[name]
  if (before === undefined) object[name] = isArray ? [value] : value
  else if (Array.isArray(before)) before.push(value)
  else object[name] = [before, value]
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
  object[root.name] = readElement(root, ruleOf(paths, root.name))
  return object
}
