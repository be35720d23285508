import { SaxesParser } from 'saxes'
import { Fault } from '../kernel/faults.ts'
import { decodeUtf8, printable } from './read-body.ts'
import { hasMoreReferences, XSI } from './xml-syntax.ts'

/** Bounds on an XML body; what goes over one is refused as soon as it does, not when all of it has been read. */
export interface XmlLimits {
  readonly bytes: number
  /** Elements inside each other. */
  readonly depth: number
  /** Elements and attributes together. */
  readonly nodes: number
  /** Attributes of one element, namespace declarations included. */
  readonly attributes: number
  /** Character and entity references, counted by their `&`, those in CDATA and comments too. */
  readonly references: number
}

export const XML_LIMITS: XmlLimits = {
  bytes: 1024 ** 2,
  depth: 100,
  nodes: 50_000,
  attributes: 16,
  references: 50_000,
}

/** What an element's attributes say its value is. */
export type XmlMark = 'string' | 'number' | 'boolean' | 'array' | 'object' | 'null'

/** An element has children or text, never both: white space beside children is dropped. */
export interface XmlElement {
  readonly name: string
  readonly mark: XmlMark | undefined
  readonly children: readonly XmlElement[]
  readonly text: string
  /** Of its start tag, counted from 1. */
  readonly line: number
  readonly column: number
}

interface OpenElement extends XmlElement {
  text: string
  readonly children: OpenElement[]
  /** Whether the prefix `xsi` is declared here or above. */
  readonly xsi: boolean
}

type Attributes = Readonly<Record<string, string>>

const MARKS: ReadonlySet<string> = new Set<XmlMark>(['string', 'number', 'boolean', 'array', 'object'])
const NIL: Readonly<Record<string, boolean>> = { true: true, 1: true, false: false, 0: false }
const BLANK = /^[\t\n\r ]*$/
const BYTE_ORDER_MARK = '\u{FEFF}'
/** The namespaces of the prefixes `xml` and `xmlns` (Namespaces in XML 1.0 §3). */
const RESERVED: ReadonlySet<string> = new Set([
  'http://www.w3.org/XML/1998/namespace',
  'http://www.w3.org/2000/xmlns/',
])
const DECLARES_PREFIX = /^xmlns:(?!xml$|xmlns$)[^:]+$/

/** White space alone, or nothing (XML 1.0 §2.3). */
export const isBlank = (text: string): boolean => BLANK.test(text)

/** The fault of a body that is no XML, or no XML of ours. Line and column are counted from 1. */
export const malformed = (line: number, column: number, why: string, cause?: unknown): Fault => {
  const place = `XML line ${line}, column ${column}`
  // `why` and the cause may repeat a name, or a word behind an "&" that was not escaped.
  return new Fault('body_malformed', { say: `${place}: ${why}`, detail: place, cause, quotes: true })
}

const refused = (why: string): Fault => new Fault('body_malformed', { say: `XML: ${why}` })

/**
 * - Without `forceXMLVersion` a declared version other than 1.0 switches to XML 1.1's laxer characters.
 * - After an error it repairs and goes on if `error` has a listener: without one it throws, and so do we.
 * - Its namespace support costs a quarter more and knows nothing that the few allowed attributes need.
 * - It tells a DOCTYPE when it has read all of it, and references not at all: both are looked for beforehand.
 * - An eighth listener makes it five times slower (V8 turns the parser's object into a dictionary): seven will do.
 */
const OPTIONS = { xmlns: false, position: false, forceXMLVersion: true, defaultXMLVersion: '1.0' } as const

/** Parses one document into a tree. saxes is imported here alone. */
class TreeReader {
  readonly #parser = new SaxesParser<typeof OPTIONS>(OPTIONS)
  readonly #limits: XmlLimits
  readonly #open: OpenElement[] = []
  #root: OpenElement | undefined
  #nodes = 0
  #attributes = 0

  constructor(limits: XmlLimits) {
    this.#limits = limits
    this.#parser.on('processinginstruction', () => this.#refuse('a processing instruction is not allowed'))
    this.#parser.on('opentagstart', ({ name }) => this.#startElement(name))
    this.#parser.on('attribute', ({ name }) => this.#countAttribute(name))
    this.#parser.on('opentag', ({ name, attributes }) => this.#openElement(name, attributes))
    this.#parser.on('text', (text) => this.#addText(text))
    this.#parser.on('cdata', (text) => this.#addText(text))
    this.#parser.on('closetag', () => this.#open.pop())
  }

  read(text: string): XmlElement {
    try {
      this.#parser.write(text).close()
    } catch (thrown) {
      if (thrown instanceof Fault || !(thrown instanceof Error)) throw thrown
      throw malformed(this.#parser.line, this.#parser.column, printable(thrown.message), thrown)
    }
    if (this.#root === undefined) throw refused('the document has no element')
    return this.#root
  }

  #checkEncoding(): void {
    const { encoding } = this.#parser.xmlDecl
    if (encoding !== undefined && encoding.toLowerCase() !== 'utf-8')
      this.#refuse('the only encoding is UTF-8')
  }

  #startElement(name: string): void {
    this.#attributes = 0
    if (this.#nodes === 0) this.#checkEncoding()
    this.#countNode()
    if (this.#open.length >= this.#limits.depth)
      this.#refuse(`elements are nested deeper than ${this.#limits.depth}`)
    if (name.includes(':')) this.#refuse(`the element ${printable(name)} has a prefix`)
  }

  #countAttribute(name: string): void {
    this.#countNode()
    if (++this.#attributes > this.#limits.attributes)
      this.#refuse(`an element has more than ${this.#limits.attributes} attributes`)
    if (name === 'type' || name === 'xsi:nil' || name === 'xmlns' || DECLARES_PREFIX.test(name)) return
    this.#refuse(`the attribute ${printable(name)} is not known; there are xmlns, xsi:nil and type`)
  }

  #countNode(): void {
    if (++this.#nodes > this.#limits.nodes)
      this.#refuse(`there are more than ${this.#limits.nodes} elements and attributes`)
  }

  #openElement(name: string, attributes: Attributes): void {
    const parent = this.#open.at(-1)
    const xsi = this.#attributes > 0 && this.#declaresXsi(attributes) ? true : (parent?.xsi ?? false)
    const element: OpenElement = {
      name,
      mark: this.#attributes > 0 ? this.#markOf(attributes, xsi) : undefined,
      children: [],
      text: '',
      line: this.#parser.line,
      column: this.#parser.column,
      xsi,
    }
    if (parent === undefined) this.#root = element
    else this.#adopt(parent, element)
    this.#open.push(element)
  }

  #adopt(parent: OpenElement, child: OpenElement): void {
    if (parent.text !== '') {
      if (!isBlank(parent.text)) this.#refuse('an element holds both text and elements')
      parent.text = ''
    }
    parent.children.push(child)
  }

  #addText(text: string): void {
    const element = this.#open.at(-1)
    if (element === undefined) return // saxes lets nothing but white space stand outside the root
    if (element.children.length === 0) element.text += text
    else if (!isBlank(text)) this.#refuse('an element holds both text and elements')
  }

  /** Namespaces in XML 1.0 §3 and §5: a prefix is bound to something, `xsi` to its own namespace. */
  #declaresXsi(attributes: Attributes): boolean {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith('xmlns:') && value === '') this.#refuse(`${printable(name)} is bound to nothing`)
      if (name === 'xmlns:xsi' && value !== XSI) this.#refuse(`xmlns:xsi is not ${XSI}`)
      // Namespaces §3: these two are bound to their own prefixes, and are nobody else's default either.
      if (name.startsWith('xmlns') && RESERVED.has(value))
        this.#refuse(`${printable(name)} is bound to ${value}, which is reserved`)
    }
    return attributes['xmlns:xsi'] !== undefined
  }

  #markOf(attributes: Attributes, xsi: boolean): XmlMark | undefined {
    const { type, 'xsi:nil': nil } = attributes
    if (nil !== undefined && this.#isNil(nil, xsi)) {
      if (type !== undefined) this.#refuse('xsi:nil and type contradict each other')
      return 'null'
    }
    if (type === undefined || isMark(type)) return type
    return this.#refuse(`the type ${printable(type)} is not known; there are ${[...MARKS].join(', ')}`)
  }

  #isNil(nil: string, xsi: boolean): boolean {
    if (!xsi) this.#refuse(`xsi is not declared; write xmlns:xsi="${XSI}"`)
    const isNil = Object.hasOwn(NIL, nil) ? NIL[nil] : undefined
    return isNil ?? this.#refuse('xsi:nil is neither true nor false')
  }

  #refuse(why: string): never {
    throw malformed(this.#parser.line, this.#parser.column, why)
  }
}

const isMark = (type: string): type is XmlMark => MARKS.has(type)

/** Whether a DOCTYPE stands in the one place where saxes lets it: after declaration, comments and white space. */
function startsWithDoctype(text: string): boolean {
  let at = text.startsWith('<?xml') ? text.indexOf('?>') + 2 : 0
  for (;;) {
    while (at < text.length && isBlank(text.charAt(at))) at++
    if (!text.startsWith('<!--', at)) return text.startsWith('<!DOCTYPE', at)
    const end = text.indexOf('-->', at + 4)
    if (end < 0) return false
    at = end + 3
  }
}

/**
 * Parses UTF-8 bytes (one byte order mark is ignored) that are a well-formed XML 1.0 document of the subset of C7.5.
 * Throws Fault `body_malformed` with line, column and reason.
 */
export function readXmlTree(bytes: Uint8Array, limits: XmlLimits): XmlElement {
  if (bytes.byteLength > limits.bytes) throw refused(`there are more than ${limits.bytes} bytes`)
  const text = decodeUtf8(bytes)
  if (text.startsWith(BYTE_ORDER_MARK)) throw refused('there is more than one byte order mark') // saxes skips one too
  if (hasMoreReferences(text, limits.references))
    throw refused(`there are more than ${limits.references} references`)
  if (startsWithDoctype(text)) throw refused('a document type declaration is not allowed')
  return new TreeReader(limits).read(text)
}
