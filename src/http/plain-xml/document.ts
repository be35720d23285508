import { SaxesParser } from 'saxes'
import { Fault } from '../../kernel/faults.ts'
import { printable } from '../read-body.ts'
import { malformed } from '../xml-tree.ts'
import { hasMoreReferences } from '../xml-syntax.ts'
import type { DecodedXml } from './decode.ts'
import { NamespaceScope } from './namespaces.ts'
import type { PlainXmlLimits } from './rules.ts'

/** Indexes in a document's text: of the root's first character, and behind its last one. */
export interface RootExtent {
  readonly start: number
  readonly end: number
}

type Attributes = Readonly<Record<string, string>>

/** Is told what a document holds, while it is checked. It may refuse it by throwing a fault. */
export interface ContentListener {
  /** @param attributes undefined: it has none */
  open(name: string, attributes: Attributes | undefined, scope: NamespaceScope, place: Place): void
  text(text: string, place: Place): void
  close(place: Place): void
}

/** Where the parser is, counted from 1. */
export interface Place {
  readonly line: number
  readonly column: number
  /** Index in the text, behind what was read last. */
  readonly position: number
}

/** XML 1.1 takes the first two for line ends and forbids the others. In XML 1.0 they are characters like any other. */
const OTHERWISE_IN_1_1 = /[\u0085\u2028\u007F-\u009F]/

/**
 * - Without `forceXMLVersion` a declared version of 1.1 would allow what no envelope of XML 1.0 can hold.
 * - Its own namespace support looks for each prefix in all open elements.
 * - Without a listener for `error` it throws at the first error.
 */
const OPTIONS = { xmlns: false, position: false, forceXMLVersion: true, defaultXMLVersion: '1.0' } as const

/** Checks one document by saxes, namespaces included, within limits. */
class DocumentCheck {
  readonly #parser = new SaxesParser<typeof OPTIONS>(OPTIONS)
  readonly #document: DecodedXml
  readonly #limits: PlainXmlLimits
  readonly #scope = new NamespaceScope((why) => this.#refuse(why))
  #depth = 0
  #nodes = 0
  #attributes = 0
  #start = 0
  #end = 0

  constructor(document: DecodedXml, limits: PlainXmlLimits, content: ContentListener | undefined) {
    this.#document = document
    this.#limits = limits
    this.#parser.on('opentagstart', () => this.#startElement())
    this.#parser.on('attribute', () => this.#countAttribute())
    this.#parser.on('opentag', ({ name, attributes }) => {
      const given = this.#attributes > 0 ? attributes : undefined
      this.#scope.enter(name, given)
      content?.open(name, given, this.#scope, this.#parser)
    })
    this.#parser.on('processinginstruction', ({ target }) => {
      if (target.includes(':')) this.#refuse(`the instruction ${printable(target)} has a colon in its name`)
    })
    this.#parser.on('closetag', () => {
      content?.close(this.#parser)
      this.#closeElement()
    })
    if (content === undefined) return
    this.#parser.on('text', (text) => content.text(text, this.#parser))
    this.#parser.on('cdata', (text) => content.text(text, this.#parser))
  }

  check(): RootExtent {
    try {
      this.#parser.write(this.#document.text).close()
    } catch (thrown) {
      if (thrown instanceof Fault || !(thrown instanceof Error)) throw thrown
      throw malformed(this.#parser.line, this.#parser.column, printable(thrown.message), thrown)
    }
    return { start: this.#start, end: this.#end }
  }

  #startElement(): void {
    this.#attributes = 0
    if (this.#nodes === 0) this.#startRoot()
    this.#countNode()
    if (++this.#depth > this.#limits.depth)
      this.#refuse(`elements are nested deeper than ${this.#limits.depth}`)
  }

  /** The parser stands behind the root's name, in which there is no `<`. */
  #startRoot(): void {
    const { text, encoding } = this.#document
    this.#start = text.lastIndexOf('<', this.#parser.position - 1)
    const { encoding: declared, version = '1.0' } = this.#parser.xmlDecl
    if (encoding !== undefined && declared !== undefined && declared.toLowerCase() !== encoding)
      this.#refuse(`the declared encoding ${printable(declared)} is not that of the bytes, ${encoding}`)
    if (version !== '1.0' && OTHERWISE_IN_1_1.test(text))
      this.#refuse(`the version ${printable(version)} gives characters of the document another meaning`)
  }

  #closeElement(): void {
    this.#scope.leave()
    if (--this.#depth === 0) this.#end = this.#parser.position
  }

  #countAttribute(): void {
    this.#countNode()
    if (++this.#attributes > this.#limits.attributes)
      this.#refuse(`an element has more than ${this.#limits.attributes} attributes`)
  }

  #countNode(): void {
    if (++this.#nodes > this.#limits.nodes)
      this.#refuse(`there are more than ${this.#limits.nodes} elements and attributes`)
  }

  #refuse(why: string): never {
    throw malformed(this.#parser.line, this.#parser.column, why)
  }
}

/**
 * Checks that a text is a well-formed XML 1.0 document, by namespaces too, within limits. Document type declarations are
 * the caller's to refuse.
 * @throws Fault `body_malformed` with line, column and reason; what `content` throws
 */
export function checkDocument(
  document: DecodedXml,
  limits: PlainXmlLimits,
  content?: ContentListener,
): RootExtent {
  const refused = (why: string): Fault => new Fault('body_malformed', { say: `XML: ${why}` })
  // saxes would skip one, and so would whoever reads the root behind another start.
  if (document.text.startsWith('\u{FEFF}')) throw refused('there is more than one byte order mark')
  if (hasMoreReferences(document.text, limits.references))
    throw refused(`there are more than ${limits.references} references`)
  return new DocumentCheck(document, limits, content).check()
}
