import { Fault } from '../kernel/faults.ts'
import { Slices } from '../kernel/slices.ts'
import { type JsonObject, type JsonValue, numberOf } from './json-value.ts'
import { decodeUtf8, quoted } from './body-text.ts'

export interface JsonLimits {
  /** Objects and arrays within each other. */
  readonly depth: number
  /** Values of any kind, the containers included. */
  readonly nodes: number
}

export const JSON_LIMITS: JsonLimits = { depth: 100, nodes: 100_000 }

/**
 * Strict JSON (C7.6, T4.5): UTF-8 with at most one BOM, no duplicate keys, no lone surrogates, bounded in depth and
 * number of values; objects have no prototype, literals survive (see JsonValue). Throws Fault `body_malformed`,
 * saying where and why. Own parser, since JSON.parse sees neither duplicate keys nor, without a slow reviver, literals.
 */
export const parseJson = (bytes: Uint8Array, limits: JsonLimits = JSON_LIMITS): JsonValue =>
  new JsonReader(decodeUtf8(bytes), limits).read()

/** The same in slices, so that others are served in between: of a large text (T4.7). */
export const parseJsonInSlices = async (
  bytes: Uint8Array,
  limits: JsonLimits = JSON_LIMITS,
): Promise<JsonValue> => new JsonReader(decodeUtf8(bytes), limits).readInSlices()

/** JSON text of a value, without loss: literals as they came. What it writes, parseJson reads as the same value. */
export const stringifyJson = (value: JsonValue): string => JSON.stringify(value)

/** A value for people: a text as it is, all else as JSON. */
export const plainText = (value: JsonValue): string =>
  typeof value === 'string' ? value : stringifyJson(value)

const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

const WHITE = new Set([SPACE, 0x09, 0x0a, 0x0d])
const WORDS: readonly (readonly [string, JsonValue])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
]
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/** An object or a list that is being read. */
interface Level {
  readonly object: JsonObject | undefined
  readonly list: JsonValue[] | undefined
  key: string
}

/** Characters of a string that are looked at one by one, which for short ones is faster. */
const NEAR = 64
const NOT_PLAIN = /["\\\x00-\x1f]/g

class JsonReader {
  private readonly text: string
  private readonly limits: JsonLimits
  private at = 0
  private readonly levels: Level[] = []
  private root: JsonValue | undefined
  private nodes = 0

  constructor(text: string, limits: JsonLimits) {
    this.text = text
    this.limits = limits
  }

  read(): JsonValue {
    while (this.root === undefined) this.step()
    return this.end(this.root)
  }

  async readInSlices(): Promise<JsonValue> {
    const slices = new Slices()
    while (this.root === undefined) {
      this.step()
      const paused = slices.pause()
      if (paused) await paused
    }
    return this.end(this.root)
  }

  private end(root: JsonValue): JsonValue {
    if (!Number.isNaN(this.peek())) this.fail('something follows the value')
    return root
  }

  /** The next character that is not white space; NaN at the end. */
  private peek(): number {
    let code = this.text.charCodeAt(this.at)
    while (code <= SPACE && WHITE.has(code)) code = this.text.charCodeAt(++this.at)
    return code
  }

  /** Reads one value, or the beginning of one that holds others. */
  private step(): void {
    const code = this.peek()
    if (++this.nodes > this.limits.nodes) this.fail(`more than ${this.limits.nodes} values`)
    if (code === QUOTE) this.complete(this.string())
    else if (code === OPEN_OBJECT) this.open(Object.create(null) as JsonObject, undefined)
    else if (code === OPEN_LIST) this.open(undefined, [])
    else this.complete(this.scalar())
  }

  private open(object: JsonObject | undefined, list: JsonValue[] | undefined): void {
    if (this.levels.length >= this.limits.depth)
      this.fail(`nested more than ${this.limits.depth} levels deep`)
    this.at++
    const level = { object, list, key: '' }
    if (this.peek() === (object === undefined ? CLOSE_LIST : CLOSE_OBJECT)) {
      this.at++
      this.complete(object ?? list ?? [])
      return
    }
    this.levels.push(level)
    if (object !== undefined) this.key(level, object)
  }

  private key(level: Level, object: JsonObject): void {
    if (this.peek() !== QUOTE) this.fail('expected a key in double quotes')
    const start = this.at
    level.key = this.string()
    if (level.key in object) this.fail(`the key ${quoted(level.key)} is there twice`, start, true)
    this.expect(COLON, 'expected ":" after the key')
  }

  /** Puts a value where it belongs, and whatever ends with it. */
  private complete(given: JsonValue): void {
    let value = given
    for (let level = this.levels.at(-1); level !== undefined; level = this.levels.at(-1)) {
      const { object, list } = level
      if (object !== undefined) object[level.key] = value
      else list?.push(value)
      const close = object === undefined ? CLOSE_LIST : CLOSE_OBJECT
      if (this.peek() !== close) {
        this.expect(COMMA, object === undefined ? 'expected "," or "]"' : 'expected "," or "}"')
        if (object !== undefined) this.key(level, object)
        return
      }
      this.at++
      this.levels.pop()
      value = object ?? list ?? []
    }
    this.root = value
  }

  private expect(code: number, why: string): void {
    if (this.peek() !== code) this.fail(why)
    this.at++
  }

  private scalar(): JsonValue {
    NUMBER.lastIndex = this.at
    const literal = NUMBER.exec(this.text)?.[0]
    if (literal !== undefined) {
      this.at += literal.length
      return numberOf(literal)
    }
    const word = WORDS.find(([name]) => this.text.startsWith(name, this.at))
    if (word === undefined) this.fail('expected a value')
    this.at += word[0].length
    return word[1]
  }

  private string(): string {
    const start = this.at
    let escaped = false
    for (let near = start + NEAR; ;) {
      if (++this.at > near) near = this.skipPlain() + NEAR
      const code = this.text.charCodeAt(this.at)
      if (code === QUOTE) break
      if (code === BACKSLASH) {
        escaped = true
        this.at++
      } else if (!(code >= SPACE))
        this.fail(code < SPACE ? 'a control character in a string' : 'a string is not closed')
    }
    const end = this.at++
    return escaped ? this.unescape(start, end + 1) : this.text.slice(start + 1, end)
  }

  /** Goes on to the next character of a long string that is not plain: an expression finds it many times faster. */
  private skipPlain(): number {
    NOT_PLAIN.lastIndex = this.at
    return (this.at = NOT_PLAIN.exec(this.text)?.index ?? this.text.length)
  }

  private unescape(start: number, end: number): string {
    let value: unknown
    try {
      value = JSON.parse(this.text.slice(start, end))
    } catch {
      this.fail('a bad escape in a string', start)
    }
    if (typeof value !== 'string' || !value.isWellFormed())
      this.fail('half a surrogate pair in a string', start)
    return value
  }

  private fail(why: string, at = this.at, quotes = false): never {
    const before = this.text.slice(0, at)
    const line = before.split('\n').length
    const column = before.length - before.lastIndexOf('\n')
    throw new Fault('body_malformed', { say: `Line ${line}, column ${column}: ${why}.`, quotes })
  }
}
