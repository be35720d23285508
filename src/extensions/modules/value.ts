import { Buffer } from 'node:buffer'
import type { BackendBody } from '../../base/contracts/calls/backend.ts'
import type { JsonObject, JsonValue, RawNumber } from '../../base/http/body/json.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { Slices } from '../../base/kernel/slices.ts'
import { broken } from './stream.ts'

/** A module's code is trusted, but its mistakes must not take the process with them: a circle ends here. */
const MOST_LEVELS = 200
const MOST_VALUES = 1_000_000
/** How many members one object may have: to list 100,000 names takes 10 ms without a break, 400,000 names take 64 ms. */
const MOST_MEMBERS = 100_000

/** How many values, and how many characters of text, are copied at once: a millisecond's work. */
const AT_ONCE = 2000
const TEXT_AT_ONCE = 64 * 1024

type ValueBody = Extract<BackendBody, { kind: 'value' | 'bytes' }>

/**
 * The body of a value that a module answered: a copy if it is small, otherwise JSON text, written in slices so that other
 * calls do not wait (T4.7). A large value must therefore not be changed until its answer was sent.
 * @param limit bytes of a value as JSON
 * @throws Fault upstream_broken, answer_too_large; at once, or by the promise
 */
export function jsonBodyOf(given: unknown, limit: number): ValueBody | Promise<ValueBody> {
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

  /** Counts the length before it visits anything: that of a sparse list may be billions. */
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

/** A value for a module: numbers are JavaScript's, without their literals. */
export function plainValue(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value
  if (JSON.isRawJSON(value)) return Number(value.rawJSON)
  if (Array.isArray(value)) return value.map(plainValue)
  const copied = Object.create(null) as JsonObject
  for (const [name, member] of Object.entries(value)) copied[name] = plainValue(member)
  return copied
}

/** A list or object that is being written, and how far. */
interface Level {
  readonly list: boolean
  readonly given: Readonly<Record<string, unknown>> | readonly unknown[]
  /** Undefined for a list. */
  readonly names: readonly string[] | undefined
  readonly length: number
  next: number
  first: boolean
}

/** How much JSON becomes one piece of bytes, in characters. */
const PIECE = 64 * 1024

/** @param limit in bytes @throws Fault upstream_broken for what JSON cannot say, answer_too_large */
const writeLargeValue = (given: unknown, limit: number): Promise<Buffer> =>
  new ValueWriter(limit).write(given)

class ValueWriter {
  readonly #limit: number
  readonly #slices = new Slices()
  readonly #levels: Level[] = []
  readonly #pieces: Buffer[] = []
  #values = 0
  #size = 0
  #text = ''

  constructor(limit: number) {
    this.#limit = limit
  }

  async write(given: unknown): Promise<Buffer> {
    await this.#value(given)
    for (let level = this.#levels.at(-1); level !== undefined; level = this.#levels.at(-1)) {
      const paused = this.#slices.pause()
      if (paused) await paused
      const written = this.#step(level)
      if (written) await written
    }
    this.#flush()
    return Buffer.concat(this.#pieces, this.#size)
  }

  #step(level: Level): Promise<void> | undefined {
    const { next, names, given, length } = level
    if (next >= length) {
      this.#levels.pop()
      this.#put(level.list ? ']' : '}')
      return undefined
    }
    level.next++
    if (names === undefined) {
      if (next > 0) this.#put(',')
      return this.#value((given as readonly unknown[])[next])
    }
    const name = names[next] ?? ''
    const member = (given as Readonly<Record<string, unknown>>)[name]
    if (member === undefined) return undefined
    if (!level.first) this.#put(',')
    level.first = false
    if (name.length <= PIECE) {
      this.#put(`${JSON.stringify(name)}:`)
      return this.#value(member)
    }
    return this.#longName(name, member)
  }

  async #longName(name: string, member: unknown): Promise<void> {
    await this.#longText(name)
    this.#put(':')
    await this.#value(member)
  }

  #value(given: unknown): Promise<void> | undefined {
    if (++this.#values > MOST_VALUES) throw broken(`answered more than ${MOST_VALUES} values`)
    const part = jsonPartOf(given, () => this.#place())
    if (typeof part === 'string' && part.length > PIECE) return this.#longText(part)
    if (typeof part !== 'object' || part === null || JSON.isRawJSON(part)) this.#put(JSON.stringify(part))
    else this.#open(part)
    return undefined
  }

  #open(given: Level['given']): void {
    if (this.#levels.length >= MOST_LEVELS)
      throw broken(`answered a circle, or more than ${MOST_LEVELS} levels`)
    const list = isList(given)
    const names = list ? undefined : memberNames(given)
    const length = names === undefined ? (given as readonly unknown[]).length : names.length
    if (this.#values + length > MOST_VALUES) throw broken(`answered more than ${MOST_VALUES} values`)
    this.#levels.push({ list, given, names, length, next: 0, first: true })
    this.#put(list ? '[' : '{')
  }

  /** In pieces that never end between the halves of a surrogate pair, which JSON would then escape. */
  async #longText(text: string): Promise<void> {
    if (this.#size + text.length > this.#limit) throw this.#tooLarge()
    this.#put('"')
    for (let at = 0; at < text.length;) {
      let end = Math.min(text.length, at + PIECE)
      if (isHighSurrogate(text.charCodeAt(end - 1)) && end < text.length) end--
      this.#put(JSON.stringify(text.slice(at, end)).slice(1, -1))
      at = end
      const paused = this.#slices.pause(PIECE)
      if (paused) await paused
    }
    this.#put('"')
  }

  #put(text: string): void {
    this.#text += text
    if (this.#text.length >= PIECE) this.#flush()
  }

  #flush(): void {
    const piece = Buffer.from(this.#text)
    this.#text = ''
    this.#size += piece.length
    if (this.#size > this.#limit) throw this.#tooLarge()
    this.#pieces.push(piece)
  }

  #tooLarge(): Fault {
    return new Fault('answer_too_large', {
      detail: `the module answered more than ${this.#limit} bytes of JSON`,
    })
  }

  #place(): string {
    const steps = this.#levels.map(({ names, next }) =>
      names === undefined ? `[${next - 1}]` : `.${(names[next - 1] ?? '').slice(0, PLACE_NAME)}`,
    )
    return `value${steps.join('')}`
  }
}

/** How much of a name is logged, in characters. */
const PLACE_NAME = 40

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

/** A value's place, put together only where it is logged. */
type Place = () => string

/**
 * The JSON form of a module's value, its members unread: `toJSON` is called, as JSON.stringify does. Values that
 * JSON.stringify silently writes as null or leaves out (NaN, functions, maps) are refused.
 * @throws Fault upstream_broken, naming the place for the log
 */
function jsonPartOf(
  given: unknown,
  place: Place,
): null | string | boolean | number | RawNumber | readonly unknown[] | Readonly<Record<string, unknown>> {
  let part = given
  for (let level = 0; hasToJson(part); level++) {
    if (level > MOST_LEVELS) throw broken(`answered a toJSON without end at ${place()}`)
    part = part.toJSON()
  }
  if (part === null || typeof part === 'string' || typeof part === 'boolean') return part
  if (typeof part === 'number') {
    if (Number.isFinite(part)) return part
    throw broken(`answered ${part} at ${place()}; JSON has no word for it`)
  }
  if (typeof part !== 'object') throw broken(`answered a ${typeof part} at ${place()}`)
  if (JSON.isRawJSON(part) || Array.isArray(part)) return part
  const prototype: unknown = Object.getPrototypeOf(part)
  if (prototype === null || prototype === Object.prototype) return part as Readonly<Record<string, unknown>>
  throw broken(`answered a ${part.constructor.name} at ${place()}; expected plain objects`)
}

const hasToJson = (given: unknown): given is { readonly toJSON: () => unknown } =>
  typeof given === 'object' && given !== null && 'toJSON' in given && typeof given.toJSON === 'function'

/** Array.isArray does not narrow to readonly lists. */
const isList = (part: object): part is readonly unknown[] => Array.isArray(part)

/** @throws Fault upstream_broken for more than 100,000 */
function memberNames(given: Readonly<Record<string, unknown>>): readonly string[] {
  const names = Object.keys(given)
  if (names.length > MOST_MEMBERS) throw broken(`answered an object of more than ${MOST_MEMBERS} members`)
  return names
}
