import { XMLBuilder, XMLParser } from 'fast-xml-parser'

/** What the builder takes: text, or an element by its members. Texts are as in XML, escaped. */
export type XmlNode = string | XmlParent
export interface XmlParent {
  [name: string]: XmlNode | readonly XmlNode[] | Readonly<Record<string, string>>
}

export const TEXT = '#text'
export const ATTRIBUTE = '@'
/** Before each element's name in what the parser gives; see `parserOf`. No name begins with it. */
const ELEMENT = '.'
const ATTRIBUTES = ':@'

/** A piece of an element's content as the parser gives it, with one member of these. Texts are as in XML, escaped. */
interface ParsedNode {
  /** An element by its name behind `.`, with its content; or `#text`. */
  readonly [name: string]: readonly ParsedNode[] | string | Readonly<Record<string, string>> | undefined
  /** By names behind `@`. */
  readonly [ATTRIBUTES]?: Readonly<Record<string, string>>
}

/**
 * fast-xml-parser's parser takes anything for XML, so that it gets only what `checkDocument` has accepted, without
 * prolog, comments, CDATA and processing instructions (`plainRootText`):
 * - by default it turns text into numbers, cuts white space off, and decodes entities: all off, we decode once;
 * - it throws at elements named `constructor`, and renames others of Object's members: their names get a `.` before
 *   them, but not twice, since those of empty elements pass through `transformTagName` again;
 * - it has no depth limit of our number, so that it gets one that is never reached;
 * - it reads names up to what JavaScript takes for white space, two of which a name may hold: see `isSplit`;
 * - to group elements by name (and to ask `isArray` about each) takes it three times as long as all else: it gives the
 *   content in order, and to-json.ts groups.
 */
const parserOf = (removeNSPrefix: boolean): XMLParser =>
  new XMLParser({
    removeNSPrefix,
    preserveOrder: true,
    ignoreAttributes: false,
    attributeNamePrefix: ATTRIBUTE,
    textNodeName: TEXT,
    parseTagValue: false,
    parseAttributeValue: false,
    trimValues: false,
    processEntities: false,
    jPath: false,
    maxNestedTags: Number.MAX_SAFE_INTEGER,
    transformTagName: (name) => (name.startsWith(ELEMENT) ? name : ELEMENT + name),
  })

const PARSERS = { keep: parserOf(false), strip: parserOf(true) } as const

/** An element as it was parsed. Texts and values are as in XML, escaped. */
export interface ParsedElement {
  readonly name: string
  /** By names behind `@`. */
  readonly attributes: Readonly<Record<string, string>> | undefined
  readonly content: readonly ParsedNode[]
}

/** Parses the root element of a document that was checked. Prefixes and declarations are left out by `strip`. */
export function parseRoot(text: string, namespaces: 'keep' | 'strip'): ParsedElement {
  const [root] = PARSERS[namespaces].parse(text) as readonly ParsedNode[]
  const element = root && elementOf(root)
  if (element === undefined) throw new TypeError('a document that was checked has no root')
  return element
}

/** The element that a piece of content is; undefined for a text. */
export function elementOf(node: ParsedNode): ParsedElement | undefined {
  for (const key in node)
    if (key.startsWith(ELEMENT))
      return {
        name: key.slice(ELEMENT.length),
        attributes: node[ATTRIBUTES],
        content: node[key] as readonly ParsedNode[],
      }
  return undefined
}

/** The text of an element that holds no elements. */
export const textOf = ({ content }: ParsedElement): string =>
  content.map(({ [TEXT]: text }) => (typeof text === 'string' ? text : '')).join('')

/** Whether a name holds a character that is white space for JavaScript, and none for XML. */
export const isSplit = (name: string): boolean => /[\u1680\uFEFF]/.test(name)

/** As in xml-write.ts, which says why: it writes what it is given, so that names were checked and texts escaped before. */
const BUILDER = {
  format: false,
  ignoreAttributes: false,
  attributesGroupName: ATTRIBUTE,
  textNodeName: TEXT,
  suppressBooleanAttributes: false,
  suppressEmptyNode: true,
  processEntities: false,
  maxNestedTags: 0,
  jPath: false,
} as const
// eslint-disable-next-line @typescript-eslint/no-deprecated -- in favour of the package that this one re-exports
const builder = new XMLBuilder(BUILDER)

/** Writes one element. */
export const buildRoot = (name: string, node: XmlNode): string => {
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
