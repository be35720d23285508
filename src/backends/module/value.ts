import type { BackendBody } from '../../contracts/backend.ts'
import type { JsonObject, JsonValue } from '../../http/json-value.ts'
import { broken, isList, jsonPartOf, memberNames, MOST_LEVELS, type Place } from './part.ts'
import { writeLargeValue } from './value-text.ts'

/** Values, and characters of text, that are copied at once: a millisecond's work. */
const AT_ONCE = 2000
const TEXT_AT_ONCE = 64 * 1024

/**
 * The body of a value that a module answered: a copy if it is small, else JSON text, written in slices so that nobody
 * else waits (T4.7). A large value must therefore not be changed until its answer was sent.
 * @param limit bytes of a value as JSON
 * @throws Fault upstream_broken, answer_too_large; at once, or by the promise
 */
export function jsonBodyOf(given: unknown, limit: number): BackendBody | Promise<BackendBody> {
  const value = new Copier().copyAll(given)
  if (value !== undefined) return { kind: 'value', value }
  return writeLargeValue(given, limit).then((bytes) => ({ kind: 'bytes', bytes, contentType: undefined }))
}

/** Ends a copy that would take too long: the value is written instead. */
class TooLarge extends Error {
  override readonly name = 'TooLarge'
}

class Copier {
  #values = 0
  #text = 0

  /** Undefined if it is more than is copied at once. */
  copyAll(given: unknown): JsonValue | undefined {
    try {
      return this.#copy(given, () => 'value', 0)
    } catch (thrown) {
      if (thrown instanceof TooLarge) return undefined
      throw thrown
    }
  }

  #copy(given: unknown, place: Place, depth: number): JsonValue {
    if (++this.#values > AT_ONCE) throw new TooLarge()
    if (depth > MOST_LEVELS) throw broken(`answered a circle, or more than ${MOST_LEVELS} levels`)
    const part = jsonPartOf(given, place)
    if (typeof part === 'string') return this.#counted(part)
    if (typeof part !== 'object' || part === null || JSON.isRawJSON(part)) return part
    return isList(part) ? this.#list(part, place, depth) : this.#object(part, place, depth)
  }

  #counted(text: string): string {
    this.#text += text.length
    if (this.#text > TEXT_AT_ONCE) throw new TooLarge()
    return text
  }

  /** By its length, which a sparse one has much of, before anything is visited. */
  #list(given: readonly unknown[], place: Place, depth: number): JsonValue[] {
    const { length } = given
    if (this.#values + length > AT_ONCE) throw new TooLarge()
    const copied: JsonValue[] = []
    for (let at = 0; at < length; at++)
      copied.push(this.#copy(given[at], () => `${place()}[${at}]`, depth + 1))
    return copied
  }

  #object(given: Readonly<Record<string, unknown>>, place: Place, depth: number): JsonObject {
    const copied = Object.create(null) as JsonObject
    for (const name of memberNames(given)) {
      const member = given[name]
      if (member !== undefined)
        copied[this.#counted(name)] = this.#copy(member, () => `${place()}.${name}`, depth + 1)
    }
    return copied
  }
}

/** A value for a module: numbers are JavaScript's, whatever their literals were. */
export function plainValue(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value
  if (JSON.isRawJSON(value)) return Number(value.rawJSON)
  if (Array.isArray(value)) return value.map(plainValue)
  const copied = Object.create(null) as JsonObject
  for (const [name, member] of Object.entries(value)) copied[name] = plainValue(member)
  return copied
}
