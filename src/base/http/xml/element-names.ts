import { Buffer } from 'node:buffer'
import { isEscaped, unescapeName } from './syntax.ts'

/** The key of a member that elements are in Postern's dialect. There is one for all names that spell it (C7.5). */
export interface MemberKey {
  readonly text: string
  /** Without half a surrogate pair. */
  readonly isWhole: boolean
  /** The number of the object in which it was seen last. */
  seenIn: number
}

/** A name of elements. There is one for all elements of a document that have it. */
export interface ElementName {
  readonly text: string
  readonly key: MemberKey
}

interface SeenName extends ElementName {
  readonly isShared: boolean
  /** The name that stood behind it last. */
  next: SeenName | undefined
}

const newKey = (text: string): MemberKey => ({ text, isWhole: text.isWellFormed(), seenIn: 0 })
const newName = (text: string, key = newKey(text), isShared = true): SeenName => ({
  text,
  key,
  isShared,
  next: undefined,
})

/** The most names that documents share, and of how many characters. When there are too many, the next document begins anew. */
const MOST = { shared: 1000, length: 64 }
const shared = { names: new Map<string, SeenName>(), first: newName('') }

/** The key of an escaped name may be half a surrogate pair, and is no name then. */
const isShareable = (text: string): boolean =>
  text.length <= MOST.length && !isEscaped(text) && text.isWellFormed() && shared.names.size < MOST.shared

/**
 * The names of one document's elements. Most were in documents before it, and in the same order: then to compare is enough,
 * and the engine knows their strings as names of members already.
 */
export class ElementNames {
  readonly #own = new Map<string, SeenName>()
  /** Keys that hold `_x`: a name with the same characters spells another key. */
  readonly #escapedKeys = new Map<string, MemberKey>()
  #latest: SeenName

  constructor() {
    if (shared.names.size >= MOST.shared) {
      shared.names = new Map()
      shared.first = newName('')
    }
    this.#latest = shared.first
  }

  of(text: string): ElementName {
    const { next } = this.#latest
    const name = next?.text === text ? next : this.#find(text)
    if (name.isShared) this.#latest.next = name
    return (this.#latest = name)
  }

  #find(text: string): SeenName {
    return shared.names.get(text) ?? this.#own.get(text) ?? this.#add(text)
  }

  #add(text: string): SeenName {
    if (isShareable(text)) {
      // A copy, because a part of a document's text holds all of it.
      const name = newName(Buffer.from(text).toString())
      shared.names.set(name.text, name)
      return name
    }
    const name = newName(text, isEscaped(text) ? this.#keyOf(unescapeName(text)) : newKey(text), false)
    this.#own.set(text, name)
    return name
  }

  #keyOf(text: string): MemberKey {
    if (!isEscaped(text)) return this.#find(text).key
    const key = this.#escapedKeys.get(text) ?? newKey(text)
    this.#escapedKeys.set(text, key)
    return key
  }
}
