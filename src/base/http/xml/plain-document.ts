import { printable } from '../body/read-body.ts'
import type { DecodedXml } from './decode.ts'
import { NamespaceScope } from './namespaces.ts'
import {
  type Attributes,
  checkText,
  type Declaration,
  malformed,
  parseXml,
  type XmlPosition,
  type RootExtent,
  type XmlLimits,
  type XmlListener,
} from './tree.ts'

/** How an upstream's own XML is read and written (C7.7). Plain data: it is sent to other threads. */
export interface PlainXmlRules {
  /** The name of the element that a JSON body becomes. Undefined: the one member of the body is the root. */
  readonly root: string | undefined
  readonly attributes: Readonly<Record<string, string>>
  /** Whether prefixes and namespace declarations are left out of JSON. */
  readonly stripNamespaces: boolean
  /** The known facts of the elements and attributes, as a tree: below it, the root elements. */
  readonly paths: PathRule
}

/** The configuration's rule for an element or attribute, and for those below it. */
export interface PathRule {
  /** The type of its text in JSON. Undefined: text. */
  readonly type: 'number' | 'boolean' | undefined
  /** Whether it is an array in JSON, also when there is one, or none. */
  readonly isArray: boolean
  /** By names as in JSON: `Fund`, `@id`. */
  readonly children: ReadonlyMap<string, PathRule>
}

const NO_RULE: PathRule = { type: undefined, isArray: false, children: new Map() }

/** The mapping without anything that a configuration says: the one member of a value is the root. */
export const AS_WRITTEN: PlainXmlRules = {
  root: undefined,
  attributes: {},
  stripNamespaces: false,
  paths: NO_RULE,
}

export const ruleOf = ({ children }: PathRule, name: string): PathRule => children.get(name) ?? NO_RULE

/** Bounds on a client's body, whose bytes are counted as it is read. */
export const BODY_LIMITS: XmlLimits = { depth: 100, nodes: 50_000, attributes: 256, references: 50_000 }
/** Bounds on an upstream's answer, whose bytes are counted as it is read. */
export const ANSWER_LIMITS: XmlLimits = {
  depth: 200,
  nodes: 1_000_000,
  attributes: 256,
  references: 1_000_000,
}

/** Gets what a document holds while it is checked. It may refuse it by throwing a fault. */
export interface ContentListener {
  open(name: string, attributes: Attributes | undefined, scope: NamespaceScope, place: XmlPosition): void
  text?(text: string, place: XmlPosition): void
  close(place: XmlPosition): void
}

/** XML 1.1 takes the first two for line ends and forbids the others. In XML 1.0 they are characters like any other. */
const OTHERWISE_IN_1_1 = /[\u0085\u2028\u007F-\u009F]/

/** Checks a service's own XML: it must be of the encoding that it declares, and well-formed by namespaces. */
class DocumentCheck implements XmlListener {
  readonly text: ((text: string, place: XmlPosition) => void) | undefined
  readonly #document: DecodedXml
  readonly #content: ContentListener | undefined
  readonly #scope = new NamespaceScope((why) => this.#refuse(why))
  #place: XmlPosition | undefined

  constructor(document: DecodedXml, content: ContentListener | undefined) {
    this.#document = document
    this.#content = content
    this.text = content?.text?.bind(content)
  }

  declared({ encoding: declared, version = '1.0' }: Declaration, place: XmlPosition): void {
    this.#place = place
    const { text, encoding } = this.#document
    if (encoding !== undefined && declared !== undefined && declared.toLowerCase() !== encoding)
      this.#refuse(`the declared encoding ${printable(declared)} is not that of the bytes, ${encoding}`)
    if (version !== '1.0' && OTHERWISE_IN_1_1.test(text))
      this.#refuse(`the version ${printable(version)} gives characters of the document another meaning`)
  }

  open(name: string, attributes: Attributes | undefined, place: XmlPosition): void {
    this.#scope.enter(name, attributes)
    this.#content?.open(name, attributes, this.#scope, place)
  }

  close(place: XmlPosition): void {
    this.#content?.close(place)
    this.#scope.leave()
  }

  instruction(target: string, place: XmlPosition): void {
    if (target.includes(':'))
      throw malformed(place, `the instruction ${printable(target)} has a colon in its name`)
  }

  #refuse(why: string): never {
    throw malformed(this.#place ?? { line: 1, column: 1 }, why)
  }
}

/**
 * Checks that a text is a well-formed XML 1.0 document, by namespaces too, within limits. Document type declarations are
 * the caller's to refuse.
 * @throws Fault `body_malformed` with line, column and reason; what `content` throws
 */
export function checkDocument(
  document: DecodedXml,
  limits: XmlLimits,
  content?: ContentListener,
): RootExtent {
  checkText(document.text, limits)
  return parseXml(document.text, limits, new DocumentCheck(document, content))
}
