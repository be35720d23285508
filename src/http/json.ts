import { Fault } from '../kernel/faults.ts'
import type { JsonObject, JsonValue } from './json-value.ts'
import { numberOf } from './number-literal.ts'
import { quoted } from './say.ts'
import { decodeUtf8 } from './utf8.ts'

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

/** JSON text of a value, without loss: literals as they came. What it writes, parseJson reads as the same value. */
export const stringifyJson = (value: JsonValue): string => JSON.stringify(value)

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

class JsonReader {
  private readonly text: string
  private readonly limits: JsonLimits
  private at = 0
  private depth = 0
  private nodes = 0

  constructor(text: string, limits: JsonLimits) {
    this.text = text
    this.limits = limits
  }

  read(): JsonValue {
    const value = this.value()
    if (!Number.isNaN(this.peek())) this.fail('something follows the value')
    return value
  }

  /** The next character that is not white space; NaN at the end. */
  private peek(): number {
    let code = this.text.charCodeAt(this.at)
    while (code <= SPACE && WHITE.has(code)) code = this.text.charCodeAt(++this.at)
    return code
  }

  private value(): JsonValue {
    const code = this.peek()
    if (++this.nodes > this.limits.nodes) this.fail(`more than ${this.limits.nodes} values`)
    if (code === QUOTE) return this.string()
    if (code === OPEN_OBJECT) return this.nested(() => this.object())
    if (code === OPEN_LIST) return this.nested(() => this.list())
    return this.scalar()
  }

  private nested<T>(read: () => T): T {
    if (++this.depth > this.limits.depth) this.fail(`nested more than ${this.limits.depth} levels deep`)
    this.at++
    const value = read()
    this.at++
    this.depth--
    return value
  }

  private object(): JsonObject {
    const object = Object.create(null) as JsonObject
    if (this.peek() === CLOSE_OBJECT) return object
    for (;;) {
      if (this.peek() !== QUOTE) this.fail('expected a key in double quotes')
      const start = this.at
      const key = this.string()
      if (key in object) this.fail(`the key ${quoted(key)} is there twice`, start, true)
      this.expect(COLON, 'expected ":" after the key')
      object[key] = this.value()
      if (this.peek() === CLOSE_OBJECT) return object
      this.expect(COMMA, 'expected "," or "}"')
    }
  }

  private list(): JsonValue[] {
    const list: JsonValue[] = []
    if (this.peek() === CLOSE_LIST) return list
    for (;;) {
      list.push(this.value())
      if (this.peek() === CLOSE_LIST) return list
      this.expect(COMMA, 'expected "," or "]"')
    }
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
    for (;;) {
      const code = this.text.charCodeAt(++this.at)
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
