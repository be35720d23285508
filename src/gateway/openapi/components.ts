import { createHash } from 'node:crypto'

/**
 * JSON as text. Parts that many operations share are written once and then copied, which costs less than objects that
 * `JSON.stringify` writes again for each of them.
 */
export type JsonText = string

export function objectText(members: Iterable<readonly [name: string, value: JsonText]>): JsonText {
  let text = ''
  for (const [name, value] of members) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${value}`
  return `{${text}}`
}

/** One object with the members of both, neither of which is empty. No name may be in both. */
export const mergedText = (one: JsonText, other: JsonText): JsonText =>
  `${one.slice(0, -1)},${other.slice(1)}`

export interface Reference {
  readonly $ref: string
}

export type Node = Readonly<Record<string, unknown>>

/** A section of `components` (OpenAPI 3.1 §4.8.7). */
type Section = 'schemas' | 'responses' | 'parameters' | 'headers' | 'examples'

/** Sections whose components become types of generated clients, all in one name space. */
const TYPES: ReadonlySet<Section> = new Set(['schemas', 'responses', 'parameters'])

interface Shared {
  readonly name: string
  readonly reference: Reference
  text: JsonText
}

/** Where components are: tools look for what uses those of OpenAPI, and do not look into extensions. */
type Place = 'components' | 'x-postern-components'

/** The parts that several operations share. Each is written once, and only if something refers to it. */
export class Components {
  readonly #shared = new Map<string, Shared>()
  readonly #sections: Readonly<Record<Place, Map<Section, Shared[]>>> = {
    components: new Map(),
    'x-postern-components': new Map(),
  }
  /** The names that are taken, in lower case: generators make files of names, and some file systems know no case. */
  readonly #taken: Set<string>
  /** The form that came first, by the name of a schema of the configuration. */
  readonly #firstForms = new Map<string, string>()
  readonly #remembered = new Map<string, JsonText>()
  readonly #numbers = new Map<object, number>()
  #place: Place = 'components'

  /** @param reserved the names of schemas of the configuration: no other component gets one of them */
  constructor(reserved: Iterable<string> = []) {
    this.#taken = new Set(Array.from(reserved, (name) => name.toLowerCase()))
  }

  /** From here on, only extensions use new components. */
  beginExtensions(): void {
    this.#place = 'x-postern-components'
  }

  /**
   * @param name of `A-Za-z0-9._-`. It gets a number where another type has it.
   * @param key says what is made: a second `make` of the same key is not called
   */
  share(section: Section, name: string, make: () => unknown, key = name): Reference {
    return this.shareText(section, name, () => JSON.stringify(make()), key)
  }

  /** The same for a component that is made as text. */
  shareText(section: Section, name: string, write: () => JsonText, key = name): Reference {
    return this.#share(section, key, write, () => (TYPES.has(section) ? this.#free(name) : name))
  }

  /**
   * For a component without a name of its own: equal keys are one component. Its name depends on the key, not on other
   * components.
   */
  shareEqual(section: Section, prefix: string, key: string, make: () => unknown): Reference {
    const write = (): JsonText => JSON.stringify(make())
    return this.#share(section, `${prefix} ${key}`, write, () => this.#free(`${prefix}.${digestOf(key)}`))
  }

  /**
   * A schema of the configuration.
   * @param form tells the forms apart that it has in the document
   * @param otherName the name of a form that is not the first: the first one has the schema's own name
   */
  shareConfigured(name: string, form: string, otherName: string, make: () => unknown): Reference {
    const first = this.#firstForms.get(name) ?? form
    this.#firstForms.set(name, first)
    const write = (): JsonText => JSON.stringify(make())
    return this.#share('schemas', `${name} ${form}`, write, () =>
      form === first ? name : this.#free(otherName),
    )
  }

  #share(section: Section, key: string, write: () => JsonText, chooseName: () => string): Reference {
    const full = `${section} ${key}`
    let shared = this.#shared.get(full)
    if (shared === undefined) {
      const name = chooseName()
      shared = { name, reference: { $ref: `#/${this.#place}/${section}/${name}` }, text: '' }
      // Known before it is written: a schema may refer to itself.
      this.#shared.set(full, shared)
      this.#listOf(section).push(shared)
      shared.text = write()
    }
    return shared.reference
  }

  #listOf(section: Section): Shared[] {
    const sections = this.#sections[this.#place]
    let list = sections.get(section)
    if (list === undefined) sections.set(section, (list = []))
    return list
  }

  #free(name: string): string {
    let free = name
    for (let number = 2; this.#taken.has(free.toLowerCase()); number += 1) free = `${name}_${number}`
    this.#taken.add(free.toLowerCase())
    return free
  }

  /** A part that several operations share, without being a component: made and written once for each `key`. */
  remember(key: string, make: () => Node | readonly unknown[]): JsonText {
    let text = this.#remembered.get(key)
    if (text === undefined) this.#remembered.set(key, (text = JSON.stringify(make())))
    return text
  }

  /** A short part of a key that stands for an object itself: cheaper than what a long list consists of. */
  numberOf(value: object): number {
    let number = this.#numbers.get(value)
    if (number === undefined) this.#numbers.set(value, (number = this.#numbers.size))
    return number
  }

  /**
   * The members of the document that hold them, without braces.
   * @param more sections that are made elsewhere
   */
  toMembers(more: Node): JsonText {
    const further = Object.entries(more).map(([section, nodes]) => [section, JSON.stringify(nodes)] as const)
    const own = objectText([...this.#sectionsAt('components'), ...further])
    const ofExtensions = this.#sectionsAt('x-postern-components')
    return `"components":${own}${ofExtensions.length === 0 ? '' : `,"x-postern-components":${objectText(ofExtensions)}`}`
  }

  #sectionsAt(place: Place): readonly (readonly [Section, JsonText])[] {
    return [...this.#sections[place]].map(
      ([section, made]) =>
        [section, objectText(made.map(({ name, text }) => [name, text] as const))] as const,
    )
  }
}

/** Short, and the same at each start: it ends names that would be equal otherwise. */
export const digestOf = (key: string): string => createHash('sha256').update(key).digest('hex').slice(0, 8)

/**
 * A text of the configuration for a `description`, which viewers show as CommonMark: with `<` as text, so that it begins
 * no HTML (CommonMark 0.31 §6.6).
 */
export const escapedMarkdown = (text: string): string => text.replaceAll('<', '&lt;')
