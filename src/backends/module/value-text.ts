import { Fault } from '../../kernel/faults.ts'
import { Slices } from '../../kernel/slices.ts'
import { broken, isList, jsonPartOf, memberNames, MOST_LEVELS, MOST_VALUES } from './part.ts'

/** A list or object that is being written, and how far. */
interface Level {
  readonly list: boolean
  readonly given: Readonly<Record<string, unknown>> | readonly unknown[]
  /** Of an object; of a list the indices are. */
  readonly names: readonly string[] | undefined
  readonly length: number
  next: number
  first: boolean
}

/** Characters of JSON that become one piece of bytes. */
const PIECE = 64 * 1024

/**
 * A large value of a module's as JSON text, written in slices.
 * @param limit in bytes
 * @throws Fault upstream_broken for what JSON cannot say, answer_too_large
 */
export const writeLargeValue = (given: unknown, limit: number): Promise<Buffer> =>
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

  /** Writes a level's next member, or its end. */
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

/** Characters of a name that are told. */
const PLACE_NAME = 40

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
