import { Fault } from '../../kernel/faults.ts'
import { printable } from '../read-body.ts'
import { isBlank } from '../xml-tree.ts'
import type { ContentListener, Place } from './document.ts'
import { isSplit } from './fast-xml.ts'
import { declaredPrefix, localOf, type NamespaceScope } from './namespaces.ts'

type Attributes = Readonly<Record<string, string>>

interface OpenElement {
  hasText: boolean
  hasElements: boolean
  /** The namespace of each local name among its elements; kept only where prefixes are stripped. */
  names: Map<string, string> | undefined
}

const lost = ({ line, column }: Place, why: string): Fault =>
  new Fault('answer_unmappable', { detail: `XML line ${line}, column ${column}: ${why}` })

/** Refuses what JSON cannot hold without loss (C7.7), while a document is checked. Throws Fault `answer_unmappable`. */
export class LossCheck implements ContentListener {
  readonly #strip: boolean
  readonly #open: OpenElement[] = []

  constructor(stripNamespaces: boolean) {
    this.#strip = stripNamespaces
  }

  open(name: string, attributes: Attributes | undefined, scope: NamespaceScope, place: Place): void {
    const parent = this.#open.at(-1)
    if (parent !== undefined) {
      if (parent.hasText) throw lost(place, 'an element holds both text and elements')
      parent.hasElements = true
      if (this.#strip) this.#checkStripped(parent, name, scope, place)
    }
    checkNames(name, attributes, place)
    if (this.#strip && attributes !== undefined) checkStrippedAttributes(attributes, place)
    this.#open.push({ hasText: false, hasElements: false, names: undefined })
  }

  text(text: string, place: Place): void {
    const element = this.#open.at(-1)
    if (element === undefined || isBlank(text)) return
    if (element.hasElements) throw lost(place, 'an element holds both text and elements')
    element.hasText = true
  }

  close(): void {
    this.#open.pop()
  }

  #checkStripped(parent: OpenElement, name: string, scope: NamespaceScope, place: Place): void {
    const uri = scope.uriOf(name)
    const names = (parent.names ??= new Map<string, string>())
    const other = names.get(localOf(name))
    if (other === undefined) names.set(localOf(name), uri)
    else if (other !== uri)
      throw lost(place, `two elements of different namespaces are both ${printable(localOf(name))}`)
  }
}

function checkNames(name: string, attributes: Attributes | undefined, place: Place): void {
  if (isSplit(name)) throw lost(place, `the name ${printable(name)} cannot be read`)
  for (const attribute in attributes)
    if (isSplit(attribute)) throw lost(place, `the name ${printable(attribute)} cannot be read`)
}

function checkStrippedAttributes(attributes: Attributes, place: Place): void {
  const seen = new Set<string>()
  for (const name in attributes) {
    if (declaredPrefix(name) !== undefined) continue
    const local = localOf(name)
    if (seen.has(local)) throw lost(place, `two attributes of an element are both ${printable(local)}`)
    seen.add(local)
  }
}
