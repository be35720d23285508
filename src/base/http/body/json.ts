import { Fault } from '../../kernel/faults.ts'
import { Slices } from '../../kernel/slices.ts'
import {
  BACKSLASH,
  CLOSE_LIST,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isWhiteSpace,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
  SPACE,
} from './json-bytes.ts'
import { decodeUtf8, quoted } from './read-body.ts'

/**
 * A value that JSON can say. Objects have a null prototype, so `__proto__` is plain data. A number whose literal
 * JavaScript would rewrite (`1e5`, `1.0`, `-0`, twenty digits) is kept as JSON.rawJSON, which JSON.stringify
 * writes back as it was (C7.5 "a number's literal survives").
 */
export type JsonValue = null | boolean | number | string | RawNumber | JsonValue[] | JsonObject

/** A value that is one text, number or boolean. */
export type ScalarValue = boolean | number | string | RawNumber

export interface JsonObject {
  [key: string]: JsonValue
}

export const newObject = (): JsonObject => Object.create(null) as JsonObject

/** A result of JSON.rawJSON. Only JSON.isRawJSON tells it from other objects. */
export interface RawNumber {
  readonly rawJSON: string
}

declare global {
  // ES2026 (JSON.parse source text access), in every Node that runs this; TypeScript's own library lacks it still.
  interface JSON {
    /** A value that JSON.stringify writes as this literal. Throws SyntaxError unless it is a JSON scalar. */
    rawJSON(literal: string): RawNumber
    isRawJSON(value: unknown): value is RawNumber
  }
}

/** A whole text that is a number (RFC 8259 §6): sign, integer part, fraction, exponent. */
const JSON_NUMBER = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** Throws SyntaxError if the literal is no JSON scalar. */
function numberOf(literal: string): number | RawNumber {
  const number = Number(literal)
  return String(number) === literal ? number : JSON.rawJSON(literal)
}

/** The value of a text that is a number as JSON writes it: no white space, leading zeros, `+` or NaN; otherwise undefined. */
export const parseNumberLiteral = (text: string): number | RawNumber | undefined =>
  JSON_NUMBER.test(text) ? numberOf(text) : undefined

/** How JSON writes a number: as it came, if that was kept. */
export const literalOf = (value: number | RawNumber): string =>
  typeof value === 'number' ? String(value) : value.rawJSON

/** A text, number or boolean as a text; undefined for all else. */
export function scalarText(value: JsonValue | undefined): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  return typeof value === 'number' || JSON.isRawJSON(value) ? literalOf(value) : undefined
}

/** Sign × 0.digits × 10^magnitude, without zeros at either end of `digits`; zero has none. */
interface Decimal {
  readonly sign: -1 | 1
  readonly digits: string
  readonly magnitude: number
}

function decimalOf(literal: string): Decimal | undefined {
  const [, minus, whole = '', fraction = '', exponent = '0'] = JSON_NUMBER.exec(literal) ?? []
  if (minus === undefined) return undefined
  const all = whole + fraction
  let start = 0
  let end = all.length
  while (start < end && all[start] === '0') start++
  while (start < end && all[end - 1] === '0') end--
  return {
    sign: minus === '' ? 1 : -1,
    digits: all.slice(start, end),
    magnitude: whole.length - start + Number(exponent),
  }
}

/** Whether a text is the literal of a whole number, in any spelling: `1e3` and `1.0` are. */
export function isIntegerLiteral(text: string): boolean {
  const decimal = decimalOf(text)
  return decimal !== undefined && (decimal.digits === '' || decimal.digits.length <= decimal.magnitude)
}

/** Orders two number literals by value, exactly, however long they are: negative, 0 or positive, as a sort wants it. */
export function compareLiterals(a: string, b: string): number {
  const [left, right] = [decimalOf(a), decimalOf(b)]
  if (left === undefined || right === undefined) throw new RangeError('not a number literal')
  const [leftSign, rightSign] = [signOf(left), signOf(right)]
  if (leftSign !== rightSign) return leftSign - rightSign
  return leftSign * compareMagnitudes(left, right)
}

const signOf = ({ sign, digits }: Decimal): number => (digits === '' ? 0 : sign)

function compareMagnitudes(a: Decimal, b: Decimal): number {
  if (a.magnitude !== b.magnitude) return a.magnitude < b.magnitude ? -1 : 1
  return a.digits === b.digits ? 0 : a.digits < b.digits ? -1 : 1
}

interface JsonLimits {
  /** Objects and arrays within each other. */
  readonly depth: number
  /** Values of any kind, the containers included. */
  readonly nodes: number
  /** Whether numbers are converted, as JSON.parse does, whatever their literal. */
  readonly converts?: boolean
}

/** The limits of a client's body. */
export const JSON_LIMITS: JsonLimits = { depth: 100, nodes: 100_000 }

/**
 * Strict JSON (C7.6, T4.5): UTF-8 with at most one BOM, no duplicate keys, no lone surrogates, bounded in depth and
 * number of values; objects have no prototype, literals survive (see JsonValue). Throws Fault `body_malformed`,
 * saying where and why. Own parser, because JSON.parse sees neither duplicate keys nor, without a slow reviver, literals.
 */
export const parseJson = (bytes: Uint8Array, limits: JsonLimits = JSON_LIMITS): JsonValue =>
  new JsonReader(decodeUtf8(bytes), limits).read()

/** The same in slices, so that others are served in between: of a large text (T4.7). */
export const parseJsonInSlices = async (
  bytes: Uint8Array,
  limits: JsonLimits = JSON_LIMITS,
): Promise<JsonValue> => new JsonReader(decodeUtf8(bytes), limits).readInSlices()

/** JSON text of a value, without loss: literals as they came. parseJson reads the same value from it. */
export const stringifyJson = (value: JsonValue): string => JSON.stringify(value)

/**
 * The same of an answer that a backend made as a value, which may be anything.
 * @throws Fault `answer_unconvertible` for what JSON.stringify throws for (a cycle, a BigInt, and in some engines thousands of
 *   levels; T4.5) and what it leaves out
 */
export function answerJson(value: JsonValue): string {
  try {
    const text = JSON.stringify(value) as string | undefined
    if (text !== undefined) return text
  } catch (cause) {
    throw new Fault('answer_unconvertible', { cause })
  }
  throw new Fault('answer_unconvertible', { detail: `JSON has no word for a ${typeof value}` })
}

/** A value for people: a text as it is, all else as JSON. */
export const plainText = (value: JsonValue): string =>
  typeof value === 'string' ? value : stringifyJson(value)

const WORDS: readonly (readonly [string, JsonValue])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
]
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

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
    while (code <= SPACE && isWhiteSpace(code)) code = this.text.charCodeAt(++this.at)
    return code
  }

  private step(): void {
    const code = this.peek()
    if (++this.nodes > this.limits.nodes) this.fail(`more than ${this.limits.nodes} values`)
    if (code === QUOTE) this.complete(this.string())
    else if (code === OPEN_OBJECT) this.open(newObject(), undefined)
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
      return this.limits.converts === true ? Number(literal) : numberOf(literal)
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

/** The names and indexes that lead to a part of a value (RFC 6901 §3), unescaped. None: the whole value. */
export type JsonPointer = readonly string[]

/** A JSON Pointer (RFC 6901 §3), for the schema of the configuration. */
export const POINTER_PATTERN = '^(/([^~/]|~[01])*)*$'

/** @param text a pointer as RFC 6901 writes it: it matches `POINTER_PATTERN` */
export const parseJsonPointer = (text: string): JsonPointer =>
  text
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))

export const pointerText = (pointer: JsonPointer): string =>
  pointer.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

const INDEX = /^(?:0|[1-9][0-9]{0,9})$/

/** The part that a pointer leads to (RFC 6901 §4); undefined if it leads nowhere. */
export function valueAt(value: JsonValue, pointer: JsonPointer): JsonValue | undefined {
  let found: JsonValue | undefined = value
  for (const step of pointer) {
    found = memberOf(found, step)
    if (found === undefined) return undefined
  }
  return found
}

function memberOf(value: JsonValue, step: string): JsonValue | undefined {
  if (Array.isArray(value)) return INDEX.test(step) ? value[Number(step)] : undefined
  return isJsonObject(value) && Object.hasOwn(value, step) ? value[step] : undefined
}

export const isJsonObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)

type Members = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value after a patch: `null` removes a member, objects are merged, everything else replaces. RFC 7396 §2. */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const before = isObject(target) ? target : {}
  const kept = Object.entries(before).filter(([name]) => !Object.hasOwn(patch, name))
  const changed = Object.entries(patch)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => {
      const old = Object.hasOwn(before, name) ? before[name] : undefined
      return [name, applyMergePatch(old, value)] as const
    })
  return Object.fromEntries([...kept, ...changed])
}
