import { isIPv4, isIPv6 } from 'node:net'
import { isIntegerLiteral, type JsonPointer, type JsonValue, parseNumberLiteral } from './json.ts'

/**
 * The shape of an action's request body: the part of JSON Schema 2020-12 that Postern reads. It types what XML and
 * forms say as text (C7.5, C7.6) and is what a body is checked against (C4.11). `base/config/json-schema.ts` reads it: `true` is
 * a schema without keywords, and `false` one whose `enum` is empty.
 */
export type BodyType = 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object' | 'null'

type BodyFormat = 'date' | 'date-time' | 'uuid' | 'email'

export interface BodySchema {
  /** In a configuration: `#/schemas/NAME`. Replaced by what it names when the actions are compiled. */
  readonly $ref?: string
  /** The name under `schemas` in the configuration, if the schema is one of those. It may contain itself. */
  readonly $id?: string
  /** Absent: anything. A list: one of them, such as `["string", "null"]`. */
  readonly type?: BodyType | readonly BodyType[]
  readonly properties?: Readonly<Record<string, BodySchema>>
  readonly required?: readonly string[]
  /** `false`: unknown fields are refused. A schema: they must fit it. Absent or `true`: they pass. */
  readonly additionalProperties?: boolean | BodySchema
  readonly items?: BodySchema
  readonly minItems?: number
  readonly maxItems?: number
  /** Objects and lists too: they are compared by value. */
  readonly enum?: readonly JsonValue[]
  readonly const?: JsonValue
  /** Unicode regular expression (`u`), not anchored. */
  readonly pattern?: string
  /** In Unicode code points. */
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly format?: BodyFormat
  readonly title?: string
  readonly description?: string
}

/** The schema `false`. */
export const NOTHING: { readonly enum: readonly never[] } = Object.freeze({ enum: Object.freeze([]) })

/** Whether a schema is `false`: no value fits. */
export const isNothing = (schema: BodySchema): boolean => schema.enum?.length === 0

const NONE: readonly BodyType[] = []

/** The types that a schema allows; empty where it allows all. */
export function typesOf(schema: BodySchema | undefined): readonly BodyType[] {
  const type = schema?.type
  if (type === undefined) return NONE
  return typeof type === 'string' ? [type] : type
}

export const allowsType = (schema: BodySchema | undefined, type: BodyType): boolean =>
  typesOf(schema).includes(type)

/** The schema of a member: its own, or that of unknown members, or none. Own members only, whatever the name. */
export function memberSchema(schema: BodySchema | undefined, name: string): BodySchema | undefined {
  if (schema === undefined) return undefined
  if (schema.properties !== undefined && Object.hasOwn(schema.properties, name))
    return schema.properties[name]
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
}

/** Whether every value that fits the schema has something where a JSON Pointer leads. */
export function requires(schema: BodySchema | undefined, pointer: JsonPointer): boolean {
  const [step, ...rest] = pointer
  if (step === undefined) return true
  if (schema === undefined) return false
  if (isOnly(schema, 'array'))
    return ITEM.test(step) && (schema.minItems ?? 0) > Number(step) && requires(schema.items ?? {}, rest)
  if (!isOnly(schema, 'object') || schema.required?.includes(step) !== true) return false
  return requires(memberSchema(schema, step) ?? {}, rest)
}

/** Whether no value that fits the schema has anything where a JSON Pointer leads: on the way it is closed, or no list or object. */
export function forbids(schema: BodySchema | undefined, [step, ...rest]: JsonPointer): boolean {
  if (step === undefined || schema === undefined) return false
  const types = typesOf(schema)
  const mayHold = (type: BodyType): boolean => types.length === 0 || types.includes(type)
  const isItem = mayHold('array') && ITEM.test(step)
  if (isItem && schema.items !== undefined && !mayHold('object')) return forbids(schema.items, rest)
  if (isItem) return false
  if (!mayHold('object')) return true
  const own = memberSchema(schema, step)
  return own === undefined ? schema.additionalProperties === false : forbids(own, rest)
}

const ITEM = /^(?:0|[1-9][0-9]*)$/

const isOnly = (schema: BodySchema, type: BodyType): boolean => {
  const types = typesOf(schema)
  return types.length === 1 && types[0] === type
}

interface FormatRow {
  readonly test: (text: string) => boolean
  /** Follows "must be". */
  readonly expected: string
}

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/
const TIME = /^([01]\d|2[0-3]):([0-5]\d):(?:[0-5]\d|(60))(?:\.\d+)?(?:[zZ]|([+-])([01]\d|2[0-3]):([0-5]\d))$/
const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i
/** The parts of an address of mail (RFC 5321 §4.1.2), with letters of other scripts: `Local-part`, `Domain`. */
const MAILBOX = /^(?:[^\s@"(),:;<>[\]\\.]+(?:\.[^\s@"(),:;<>[\]\\.]+)*|"[^\p{Cc}"\\]*")$/u
const DOMAIN = /^(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.)+[\p{L}\p{N}-]{2,63}$/u
const LITERAL = /^\[(?:IPv6:([0-9A-Fa-f:.]+)|([0-9.]+))\]$/

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

function isDate(text: string): boolean {
  const [, year, month, day] = (DATE.exec(text) ?? []).map(Number)
  if (year === undefined || month === undefined || day === undefined) return false
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  const days = (DAYS[month - 1] ?? 0) + (leap && month === 2 ? 1 : 0)
  return day >= 1 && day <= days
}

/** Whether a text is a time (RFC 3339 §5.6). A leap second is the last of a day in UTC (§5.7). */
function isTime(text: string): boolean {
  const [found, hours, minutes, leap, sign, offHours = 0, offMinutes = 0] = TIME.exec(text) ?? []
  if (found === undefined || leap === undefined) return found !== undefined
  const offset = Number(offHours) * 60 + Number(offMinutes)
  const inUtc = Number(hours) * 60 + Number(minutes) + (sign === '-' ? offset : -offset)
  return (inUtc + DAY) % DAY === DAY - 1
}

/** In minutes. */
const DAY = 24 * 60

/** Whether a text is a date and a time (RFC 3339 §5.6), where the T may be in lower case. */
const isDateTime = (text: string): boolean =>
  /^[tT]$/.test(text.charAt(10)) && isDate(text.slice(0, 10)) && isTime(text.slice(11))

function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@')
  if (at > 64 || text.length > 254 || !MAILBOX.test(text.slice(0, Math.max(at, 0)))) return false
  const domain = text.slice(at + 1)
  const [, six, four] = LITERAL.exec(domain) ?? []
  return DOMAIN.test(domain) || isIPv6(six ?? '') || isIPv4(four ?? '')
}

export const FORMATS: Readonly<Record<BodyFormat, FormatRow>> = {
  date: { test: isDate, expected: 'a date like 2001-12-31' },
  'date-time': { test: isDateTime, expected: 'a date and time like 2001-12-31T09:30:00Z' },
  uuid: { test: (text) => UUID.test(text), expected: 'a UUID like 7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f' },
  email: { test: isEmail, expected: 'an email address' },
}

/** The values of `format` in a schema. */
export const FORMAT_NAMES: readonly string[] = Object.keys(FORMATS)

type Reader = (text: string) => JsonValue | undefined

const READERS: Readonly<Partial<Record<BodyType, Reader>>> = {
  string: (text) => text,
  boolean: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  integer: (text) => (isIntegerLiteral(text) ? parseNumberLiteral(text) : undefined),
  number: parseNumberLiteral,
  null: (text) => (text === '' ? null : undefined),
}

/**
 * A text as the schema types it (C7.5, C7.6); undefined where it is not of any type that the schema allows. Without
 * a type, or where a string is allowed, it stays text: a text is never taken for a number by its looks.
 */
export function readTyped(text: string, schema: BodySchema | undefined): JsonValue | undefined {
  const types = typesOf(schema)
  if (types.length === 0 || types.includes('string')) return text
  for (const type of types) {
    const value = READERS[type]?.(text)
    if (value !== undefined) return value
  }
  return undefined
}

const EXPECTED: Readonly<Record<BodyType, string>> = {
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

/** The words for a schema's types in a message: `a number or null`. */
export const describeTypes = (types: readonly BodyType[]): string =>
  types.map((type) => EXPECTED[type]).join(' or ')

/** The schema `true`. It is written so, as `NOTHING` is written as `false`. */
export const ANYTHING: BodySchema = Object.freeze({})
