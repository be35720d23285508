import { Fault } from '../../kernel/faults.ts'
import type { DecodedXml } from './decode.ts'
import { declaredPrefix, localOf, type NamespaceScope } from './namespaces.ts'
import { checkDocument, type ContentListener, type PlainXmlRules, ruleOf } from './plain-document.ts'
import { escapeAttribute } from './syntax.ts'
import type { Attributes, XmlPosition, RootExtent, XmlLimits } from './tree.ts'

/**
 * What may be left out of a well-formed root, and CDATA, which may hold what looks like it. No other `<` of a well-formed
 * document is followed by `!` or `?`.
 */
const MARKUP = /<!--[^]*?-->|<\?[^]*?\?>|<!\[CDATA\[[^]*?\]\]>/g
const CDATA = '<![CDATA['
const EMPTY_CDATA = `${CDATA}]]>`

/**
 * The root of a well-formed document, without comments and processing instructions; all else stays as it is written.
 * Text on both sides of what is left out must not become one piece of markup: `]]<!---->>` would be `]]>`, which no text
 * may hold (XML 1.0 §2.4), and a carriage return and a line feed would be one line end (§2.11). An empty CDATA section
 * keeps them apart.
 */
export function rootText(text: string, { start, end }: RootExtent): string {
  const root = text.slice(start, end)
  if (!root.includes('<!--') && !root.includes('<?')) return root
  return root.replace(MARKUP, (found: string, at: number) => {
    if (found.startsWith(CDATA)) return found
    const before = root.charAt(at - 1)
    return before === ']' || before === '\r' ? EMPTY_CDATA : ''
  })
}

interface FoundElement extends RootExtent {
  readonly name: string
  /** The namespaces to be declared for it, because it is taken out of where they are declared. */
  readonly declarations: string
}

/** How many times as long as the document its namespaces may be that are declared anew for each part. */
const MOST_GROWTH = 8

/** Finds the elements that a path of names leads to, while a document is checked. */
class PartFinder implements ContentListener {
  readonly found: FoundElement[] = []
  /** Whether their parent element was found. */
  isParentThere = false
  readonly #text: string
  readonly #path: readonly string[]
  readonly #strip: boolean
  #depth = 0
  /** How many of the open elements are the path's first steps. */
  #matched = 0
  readonly #seen: number[] = []
  /** Characters of all declarations that are made anew. */
  #declared = 0
  #open: Omit<FoundElement, 'end'> | undefined

  constructor(text: string, path: readonly string[], strip: boolean) {
    this.#text = text
    this.#path = path
    this.#strip = strip
    this.isParentThere = path.length === 1
  }

  open(
    name: string,
    attributes: Attributes | undefined,
    scope: NamespaceScope,
    { position }: XmlPosition,
  ): void {
    const depth = this.#depth++
    if (this.#matched !== depth || this.#path[depth] !== (this.#strip ? localOf(name) : name)) return
    this.#matched++
    this.#seen[depth] = (this.#seen[depth] ?? 0) + 1
    if (this.#matched === this.#path.length - 1) this.isParentThere = true
    if (this.#matched < this.#path.length) return
    const start = this.#text.lastIndexOf('<', position - 1)
    this.#open = { name, start, declarations: this.#declare(attributes, scope) }
  }

  /** Counted as they are made: a short document may have many parts within many declarations (T4.7). */
  #declare(attributes: Attributes | undefined, scope: NamespaceScope): string {
    const declarations = declarationsFor(attributes, scope)
    this.#declared += declarations.length
    if (this.#declared <= MOST_GROWTH * this.#text.length) return declarations
    throw new Fault('answer_too_large', { detail: 'declarations of namespaces make it too long' })
  }

  close({ position }: XmlPosition): void {
    if (this.#matched !== this.#depth--) return
    if (this.#matched-- === this.#path.length && this.#open) this.found.push({ ...this.#open, end: position })
  }

  /** Whether a step before the last one is there twice: then it is an array in JSON, and no path goes through it. */
  get isAmbiguous(): boolean {
    return this.#seen.slice(0, this.#path.length - 1).some((count) => count > 1)
  }
}

function declarationsFor(attributes: Attributes | undefined, scope: NamespaceScope): string {
  const own = new Set(Object.keys(attributes ?? {}).map(declaredPrefix))
  let text = ''
  for (const [prefix, uri] of scope.declared)
    if (!own.has(prefix)) text += ` ${prefix === '' ? 'xmlns' : `xmlns:${prefix}`}="${escapeAttribute(uri)}"`
  return text
}

/**
 * The elements of a document that a path leads to, one after the other, as they are; with the namespaces of the elements
 * around them.
 * @returns undefined if the path leads nowhere
 * @throws Fault `body_malformed` as `checkDocument`; `answer_too_large`
 */
export function partText(
  document: DecodedXml,
  limits: XmlLimits,
  path: readonly string[],
  { stripNamespaces, paths }: PlainXmlRules,
): string | undefined {
  const finder = new PartFinder(document.text, path, stripNamespaces)
  checkDocument(document, limits, finder)
  if (finder.isAmbiguous) return undefined
  if (finder.found.length === 0)
    return finder.isParentThere && path.reduce(ruleOf, paths).isArray ? '' : undefined
  let text = ''
  for (const part of finder.found) {
    const element = rootText(document.text, part)
    const nameEnd = 1 + part.name.length
    text += element.slice(0, nameEnd) + part.declarations + element.slice(nameEnd)
  }
  return text
}
