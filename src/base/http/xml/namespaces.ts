import { printable } from '../body/read-body.ts'
import { isQName } from './syntax.ts'

const XML = 'http://www.w3.org/XML/1998/namespace'
const XMLNS = 'http://www.w3.org/2000/xmlns/'

/** The prefix that an attribute declares a namespace for, `''` for the default one; undefined if it declares none. */
export function declaredPrefix(attribute: string): string | undefined {
  if (!attribute.startsWith('xmlns')) return undefined
  if (attribute === 'xmlns') return ''
  return attribute.startsWith('xmlns:') ? attribute.slice('xmlns:'.length) : undefined
}

/** The part of a name before the colon, or `''`. */
const prefixOf = (name: string): string => name.slice(0, Math.max(name.indexOf(':'), 0))

/** The part of a name behind the colon, or all of it. */
export const localOf = (name: string): string => name.slice(name.indexOf(':') + 1)

/** Why a prefix cannot be bound to a namespace (Namespaces in XML 1.0 §3, §5); undefined if it can. */
export function bindingProblem(prefix: string, uri: string): string | undefined {
  if (prefix === 'xmlns') return 'the prefix xmlns is declared'
  if (prefix === 'xml' ? uri !== XML : uri === XML) return `the namespace ${XML} belongs to the prefix xml`
  if (uri === XMLNS) return `the namespace ${XMLNS} is reserved`
  return prefix !== '' && uri === '' ? `the prefix ${printable(prefix)} is bound to nothing` : undefined
}

/**
 * The namespaces that are declared where a document is read or built. Calls `refuse` for an invalid namespace or an
 * undeclared prefix.
 */
export class NamespaceScope {
  /** The namespaces of each prefix, the innermost last. A chain of scopes would be searched through at each name. */
  readonly #uris = new Map<string, string[]>([
    ['', ['']],
    ['xml', [XML]],
  ])
  /** For each open element the prefixes that it declares. */
  readonly #declared: (readonly string[])[] = []
  readonly #refuse: (why: string) => never

  constructor(refuse: (why: string) => never) {
    this.#refuse = refuse
  }

  enter(name: string, attributes: Readonly<Record<string, string>> | undefined): void {
    this.#declared.push(attributes === undefined ? NONE : this.#declare(attributes))
    this.uriOf(name)
    if (attributes !== undefined) this.#checkNames(attributes)
  }

  /** The namespaces that are declared here, by prefixes: without those that every document has. */
  get declared(): readonly (readonly [prefix: string, uri: string])[] {
    return [...this.#uris].flatMap(([prefix, uris]) => {
      const uri = uris.at(-1) ?? ''
      return prefix === 'xml' || uri === '' ? [] : [[prefix, uri] as const]
    })
  }

  leave(): void {
    for (const prefix of this.#declared.pop() ?? NONE) {
      const uris = this.#uris.get(prefix)
      uris?.pop()
      // A prefix that is declared nowhere any more is not to be looked through.
      if (uris?.length === 0) this.#uris.delete(prefix)
    }
  }

  /** The namespace of an element's name, or of an attribute's that has a prefix. */
  uriOf(name: string): string {
    if (!name.includes(':')) return this.#uris.get('')?.at(-1) ?? ''
    if (!isQName(name)) this.#refuse(`${printable(name)} is no name with one prefix`)
    const uri = this.#uris.get(prefixOf(name))?.at(-1)
    return uri ?? this.#refuse(`the prefix of ${printable(name)} is not declared`)
  }

  #declare(attributes: Readonly<Record<string, string>>): readonly string[] {
    let declared: string[] | undefined
    for (const name in attributes) {
      const prefix = declaredPrefix(name)
      if (prefix === undefined) continue
      const uri = attributes[name] ?? ''
      const problem = bindingProblem(prefix, uri)
      if (problem !== undefined) this.#refuse(problem)
      const uris = this.#uris.get(prefix)
      if (uris === undefined) this.#uris.set(prefix, [uri])
      else uris.push(uri)
      ;(declared ??= []).push(prefix)
    }
    return declared ?? NONE
  }

  /** Every prefix is declared, and no two attributes have one name in one namespace (Namespaces in XML 1.0 §6.3). */
  #checkNames(attributes: Readonly<Record<string, string>>): void {
    let seen: Set<string> | undefined
    for (const name in attributes) {
      if (!name.includes(':')) continue
      if (declaredPrefix(name) !== undefined) {
        if (!isQName(name)) this.#refuse(`${printable(name)} is no name with one prefix`)
        continue
      }
      const expanded = `${localOf(name)} ${this.uriOf(name)}`
      if ((seen ??= new Set()).has(expanded)) this.#refuse(`the attribute ${printable(name)} stands twice`)
      seen.add(expanded)
    }
  }
}

const NONE: readonly string[] = []
