import { SaxesParser } from 'saxes'
import { Fault } from '../../kernel/faults.ts'
import { printable } from '../body/read-body.ts'
import { type ElementName, ElementNames } from './element-names.ts'
import { hasMoreReferences, isBlank } from './syntax.ts'

/** Bounds on a document. A document that exceeds one is refused at once, not when all of it has been read. */
export interface XmlLimits {
  /** Elements inside each other. */
  readonly depth: number
  /** Elements and attributes together. */
  readonly nodes: number
  /** Attributes of one element, namespace declarations included. */
  readonly attributes: number
  /** Character and entity references, counted by their `&`, those in CDATA and comments too. */
  readonly references: number
}

export type Attributes = Readonly<Record<string, string>>

/** The kinds of value that the attributes of Postern's dialect can give an element (C7.5). */
export type XmlMark = 'string' | 'number' | 'boolean' | 'array' | 'object' | 'null'

/** An element holds elements or text, never both: white space between elements is dropped. */
export interface XmlElement {
  readonly name: ElementName
  /** Undefined: it has none. In Postern's dialect they are not kept, but for the mark. */
  readonly attributes: Attributes | undefined
  readonly mark: XmlMark | undefined
  /** The first element in it. */
  readonly first: XmlElement | undefined
  /** The element behind it, in the same one. */
  readonly next: XmlElement | undefined
  readonly text: string
  /** The line of its start tag, counted from 1. */
  readonly line: number
  readonly column: number
}

export interface XmlPosition {
  /** Counted from 1, as the column is. */
  readonly line: number
  readonly column: number
  /** Index in the text, behind what was read last. */
  readonly position: number
}

export interface Declaration {
  readonly encoding?: string | undefined
  readonly version?: string | undefined
}

/** Gets what a document holds while it is parsed. It may refuse it by throwing a fault. */
export interface XmlListener {
  /** Before the first element. */
  declared?(declaration: Declaration, place: XmlPosition): void
  /** The name of a start tag, and then of each of its attributes, before the rest of the tag is read. */
  tag?(name: string, place: XmlPosition): void
  attribute?(name: string, place: XmlPosition): void
  open(name: string, attributes: Attributes | undefined, place: XmlPosition): void
  readonly text?: ((text: string, place: XmlPosition) => void) | undefined
  close(place: XmlPosition): void
  instruction(target: string, place: XmlPosition): void
}

/** Indexes in a document's text: of the root's first character, and behind its last one. */
export interface RootExtent {
  readonly start: number
  readonly end: number
}

/** The fault of a body that is no XML, or not of its dialect. Line and column are counted from 1. */
export const malformed = (
  { line, column }: Omit<XmlPosition, 'position'>,
  why: string,
  cause?: unknown,
): Fault => {
  const place = `XML line ${line}, column ${column}`
  // `why` and the cause may repeat a name, or a word behind an "&" that was not escaped.
  return new Fault('body_malformed', { say: `${place}: ${why}`, detail: place, cause, quotes: true })
}

/** The same for all of the document. */
export const malformedXml = (why: string): Fault => new Fault('body_malformed', { say: `XML: ${why}` })

/**
 * What is checked before a text is parsed: a second byte order mark, which saxes would skip, and so would whoever reads
 * the root behind another start; and references, which saxes does not report.
 * @throws Fault `body_malformed`
 */
export function checkText(text: string, { references }: Pick<XmlLimits, 'references'>): void {
  if (text.startsWith('\u{FEFF}')) throw malformedXml('there is more than one byte order mark')
  if (hasMoreReferences(text, references)) throw malformedXml(`there are more than ${references} references`)
}

/**
 * - Without `forceXMLVersion` a declared version other than 1.0 switches to XML 1.1's laxer characters, which no document
 *   of XML 1.0 can hold.
 * - After an error it repairs and continues if `error` has a listener: without one it throws, and so do we.
 * - Its namespace support looks for each prefix in all open elements, and costs a quarter more: see namespaces.ts.
 * - It reports a DOCTYPE only when it has read all of it: see `doctypeOf`.
 * - An eighth listener makes it five times slower (V8 turns the parser's object into a dictionary): seven will do.
 */
const OPTIONS = { xmlns: false, position: false, forceXMLVersion: true, defaultXMLVersion: '1.0' } as const

/** Parses one document within limits. saxes is imported here alone. */
class DocumentParser {
  readonly #parser = new SaxesParser<typeof OPTIONS>(OPTIONS)
  readonly #text: string
  readonly #limits: XmlLimits
  readonly #listener: XmlListener
  #depth = 0
  #nodes = 0
  #attributes = 0
  #start = 0
  #end = 0

  constructor(text: string, limits: XmlLimits, listener: XmlListener) {
    this.#text = text
    this.#limits = limits
    this.#listener = listener
    const parser = this.#parser
    parser.on('processinginstruction', ({ target }) => listener.instruction(target, parser))
    parser.on('opentagstart', ({ name }) => this.#startTag(name))
    parser.on('attribute', ({ name }) => this.#countAttribute(name))
    parser.on('opentag', ({ name, attributes }) =>
      listener.open(name, this.#attributes > 0 ? attributes : undefined, parser),
    )
    parser.on('closetag', () => this.#closeElement())
    if (listener.text === undefined) return
    parser.on('text', (piece) => listener.text?.(piece, parser))
    parser.on('cdata', (piece) => listener.text?.(piece, parser))
  }

  parse(): RootExtent {
    try {
      this.#parser.write(this.#text).close()
    } catch (thrown) {
      if (thrown instanceof Fault || !(thrown instanceof Error)) throw thrown
      throw malformed(this.#parser, printable(thrown.message), thrown)
    }
    return { start: this.#start, end: this.#end }
  }

  #startTag(name: string): void {
    this.#attributes = 0
    if (this.#nodes === 0) {
      // The parser is behind the root's name, in which there is no `<`.
      this.#start = this.#text.lastIndexOf('<', this.#parser.position - 1)
      this.#listener.declared?.(this.#parser.xmlDecl, this.#parser)
    }
    this.#countNode()
    if (++this.#depth > this.#limits.depth)
      this.#refuse(`elements are nested deeper than ${this.#limits.depth}`)
    this.#listener.tag?.(name, this.#parser)
  }

  #countAttribute(name: string): void {
    this.#countNode()
    if (++this.#attributes > this.#limits.attributes)
      this.#refuse(`an element has more than ${this.#limits.attributes} attributes`)
    this.#listener.attribute?.(name, this.#parser)
  }

  #countNode(): void {
    if (++this.#nodes > this.#limits.nodes)
      this.#refuse(`there are more than ${this.#limits.nodes} elements and attributes`)
  }

  #closeElement(): void {
    this.#listener.close(this.#parser)
    if (--this.#depth === 0) this.#end = this.#parser.position
  }

  #refuse(why: string): never {
    throw malformed(this.#parser, why)
  }
}

/**
 * Parses a text as a well-formed XML 1.0 document. Document type declarations are the caller's to refuse.
 * @throws Fault `body_malformed` with line, column and reason; what `listener` throws
 */
export const parseXml = (text: string, limits: XmlLimits, listener: XmlListener): RootExtent =>
  new DocumentParser(text, limits, listener).parse()

interface OpenElement extends XmlElement {
  first: OpenElement | undefined
  next: OpenElement | undefined
  last: OpenElement | undefined
  readonly parent: OpenElement | undefined
  text: string
  /** Index in the document, behind its start tag. */
  readonly from: number
}

const CDATA = { begins: '<![CDATA[', ends: ']]>' } as const

/** Whether the content of an element without elements is a text as it is, or one CDATA section. */
const isOnePiece = (content: string): boolean =>
  !content.includes('<') ||
  (content.startsWith(CDATA.begins) && content.indexOf(CDATA.ends) === content.length - CDATA.ends.length)

/** The tree of a document, as it is parsed. A dialect's class says what may stand in it, and adds the elements. */
export abstract class XmlTree {
  readonly #document: string | undefined
  #root: OpenElement | undefined
  #open: OpenElement | undefined
  readonly #names = new ElementNames()
  #depth = 0

  /**
   * @param document given where a text beside which a comment, an instruction or a CDATA section stands is refused: many
   *   services read the first of such pieces only, be it a comment
   */
  constructor(document?: string) {
    this.#document = document
  }

  protected abstract fault(place: XmlPosition, why: string): Fault

  /** To be asked for once the document has been parsed. */
  get root(): XmlElement {
    if (this.#root === undefined) throw malformedXml('the document has no element')
    return this.#root
  }

  protected get depth(): number {
    return this.#depth
  }

  /** @throws the dialect's fault where the open element already holds text */
  protected requireNoText(place: XmlPosition): void {
    const text = this.#open?.text ?? ''
    if (text !== '' && !isBlank(text)) throw this.fault(place, MIXED)
  }

  /** Adds an element, which is open from here on. */
  protected add(
    name: string,
    attributes: Attributes | undefined,
    mark: XmlMark | undefined,
    { line, column, position }: XmlPosition,
  ): void {
    const parent = this.#open
    const element: OpenElement = {
      name: this.#names.of(name),
      attributes,
      mark,
      first: undefined,
      next: undefined,
      last: undefined,
      parent,
      text: '',
      from: position,
      line,
      column,
    }
    this.#open = element
    this.#depth++
    if (parent === undefined) {
      this.#root = element
      return
    }
    parent.text = ''
    if (parent.last === undefined) parent.first = element
    else parent.last.next = element
    parent.last = element
  }

  text(text: string, place: XmlPosition): void {
    const element = this.#open
    if (element === undefined) return // saxes lets nothing but white space stand outside the root
    if (element.first === undefined) element.text += text
    else if (!isBlank(text)) throw this.fault(place, MIXED)
  }

  close(place: XmlPosition): void {
    const element = this.#open
    this.#open = element?.parent
    this.#depth--
    if (this.#document === undefined || element === undefined || element.text === '') return
    const to = this.#document.lastIndexOf('<', place.position - 1)
    if (element.first === undefined && !isOnePiece(this.#document.slice(element.from, to)))
      throw this.fault(place, `the text of ${printable(element.name.text)} is in several pieces`)
  }
}

const MIXED = 'an element holds both text and elements'
