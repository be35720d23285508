import { XMLBuilder, XMLParser } from 'fast-xml-parser'

/** What the builder takes and the parser gives: text, or an element by its members. Texts are as in XML, escaped. */
export type XmlNode = string | XmlParent
export interface XmlParent {
  [name: string]: XmlNode | readonly XmlNode[] | Readonly<Record<string, string>>
}

export const TEXT = '#text'
export const ATTRIBUTE = '@'
/** Before each element's name in what the parser gives; see `parserOf`. No name begins with it. */
export const ELEMENT = '.'

/**
 * fast-xml-parser's parser takes anything for XML, so that it gets only what `checkDocument` has accepted, without
 * prolog, comments, CDATA and processing instructions (`plainRootText`):
 * - by default it turns text into numbers, cuts white space off, and decodes entities: all off, we decode once;
 * - it throws at elements named `constructor`, and renames others of Object's members: their names get a `.` before
 *   them, but not twice, since those of empty elements pass through `transformTagName` again;
 * - it has no depth limit of our number, so that it gets one that is never reached;
 * - it reads names up to what JavaScript takes for white space, two of which a name may hold: see `isSplit`.
 * Every element is an array, so that the caller sees them all alike.
 */
const parserOf = (removeNSPrefix: boolean): XMLParser =>
  new XMLParser({
    removeNSPrefix,
    ignoreAttributes: false,
    attributeNamePrefix: ATTRIBUTE,
    textNodeName: TEXT,
    parseTagValue: false,
    parseAttributeValue: false,
    trimValues: false,
    processEntities: false,
    isArray: (_name, _path, _leaf, isAttribute) => !isAttribute,
    jPath: false,
    maxNestedTags: Number.MAX_SAFE_INTEGER,
    transformTagName: (name) => (name.startsWith(ELEMENT) ? name : ELEMENT + name),
  })

const PARSERS = { keep: parserOf(false), strip: parserOf(true) } as const

/** Parses the root element of a document that was checked. Prefixes and declarations are left out by `strip`. */
export const parseRoot = (text: string, namespaces: 'keep' | 'strip'): XmlParent =>
  PARSERS[namespaces].parse(text) as XmlParent

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
