/**
 * JSON as text. What many operations have alike is written once and then copied, which costs less than objects that
 * `JSON.stringify` writes again for each of them.
 */
export type JsonText = string

export function objectText(members: Iterable<readonly [name: string, value: JsonText]>): JsonText {
  let text = ''
  for (const [name, value] of members) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${value}`
  return `{${text}}`
}

/** One object with the members of both, neither of which is empty. No name may stand in both. */
export const mergedText = (one: JsonText, other: JsonText): JsonText =>
  `${one.slice(0, -1)},${other.slice(1)}`

export interface Reference {
  readonly $ref: string
}

export type Node = Readonly<Record<string, unknown>>

/** A section of `components` (OpenAPI 3.1 §4.8.7). */
type Section = 'schemas' | 'responses' | 'parameters' | 'headers' | 'examples'

interface Shared {
  readonly reference: Reference
  text: JsonText
}

/** What several operations share. Each stands once, and only if something refers to it. */
export class Components {
  readonly #sections = new Map<Section, Map<string, Shared>>()
  readonly #names = new Map<string, string>()
  readonly #remembered = new Map<string, JsonText>()
  readonly #counts = new Map<string, number>()
  readonly #numbers = new Map<object, number>()

  /** @param name of `A-Za-z0-9._-`; it says what is made: a second `make` of the same name is not called */
  share(section: Section, name: string, make: () => unknown): Reference {
    return this.shareText(section, name, () => JSON.stringify(make()))
  }

  /** The same for what is made as text. */
  shareText(section: Section, name: string, write: () => JsonText): Reference {
    let made = this.#sections.get(section)
    if (made === undefined) this.#sections.set(section, (made = new Map<string, Shared>()))
    let shared = made.get(name)
    if (shared === undefined) {
      shared = { reference: { $ref: `#/components/${section}/${name}` }, text: '' }
      // Known before it is written: a schema may refer to itself.
      made.set(name, shared)
      shared.text = write()
    }
    return shared.reference
  }

  /** For what has no name of its own: equal keys are one component. */
  shareEqual(section: Section, prefix: string, key: string, make: () => unknown): Reference {
    const full = `${section} ${prefix} ${key}`
    let name = this.#names.get(full)
    if (name === undefined) {
      this.#names.set(full, (name = this.#freeName(section, prefix)))
    }
    return this.share(section, name, make)
  }

  #freeName(section: Section, prefix: string): string {
    const count = (this.#counts.get(prefix) ?? 0) + 1
    this.#counts.set(prefix, count)
    const name = count === 1 ? prefix : `${prefix}-${count}`
    return this.#sections.get(section)?.has(name) === true ? this.#freeName(section, prefix) : name
  }

  /** What several operations have alike, without being a component: made and written once for each `key`. */
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

  /** @param more sections that are made elsewhere */
  toText(more: Node): JsonText {
    return objectText([
      ...[...this.#sections].map(
        ([section, made]) =>
          [section, objectText([...made].map(([name, { text }]) => [name, text] as const))] as const,
      ),
      ...Object.entries(more).map(([section, nodes]) => [section, JSON.stringify(nodes)] as const),
    ])
  }
}

/**
 * A text of the configuration for a `description`, which viewers show as CommonMark: with `<` as text, so that it begins
 * no HTML (CommonMark 0.31 §6.6).
 */
export const markdown = (text: string): string => text.replaceAll('<', '&lt;')
