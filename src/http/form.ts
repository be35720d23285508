import { Fault } from '../kernel/faults.ts'
import { allowsType, memberSchema, typesOf, type BodySchema } from './body-schema.ts'
import type { JsonObject, JsonValue } from './json-value.ts'
import { printable } from './say.ts'
import { describeTypes, readTyped } from './typed-text.ts'
import { decodeUtf8 } from './utf8.ts'

/** Names and values as sent, decoded, in the order of first appearance. Names are literal: `a[b]` is just that. */
export type Form = ReadonlyMap<string, readonly string[]>

export interface FormLimits {
  /** Fields, repeats included. */
  readonly maxFields: number
}

export const FORM_LIMITS: FormLimits = { maxFields: 1000 }

const BAD_ESCAPE = /%(?![0-9A-Fa-f]{2})/

/**
 * A form body or a query (`application/x-www-form-urlencoded`), strictly: `+` is a space, raw spaces are tolerated
 * (C6.1.1), empty fields (`a=1&&b=2`) say nothing. Throws Fault `body_malformed` on a bad escape, on what is not
 * UTF-8, and over the limit (C7.6, T4.6).
 */
export function parseForm(body: string | Uint8Array, limits: FormLimits = FORM_LIMITS): Form {
  const text = typeof body === 'string' ? body : decodeUtf8(body)
  const form = new Map<string, string[]>()
  let fields = 0
  for (let start = 0, end = 0; start <= text.length; start = end + 1) {
    end = text.indexOf('&', start)
    if (end < 0) end = text.length
    if (end === start) continue
    if (++fields > limits.maxFields) throw malformed(`It has more than ${limits.maxFields} fields.`)
    addField(form, text.slice(start, end))
  }
  return form
}

function addField(form: Map<string, string[]>, field: string): void {
  const equals = field.indexOf('=')
  const name = decodePart(equals < 0 ? field : field.slice(0, equals))
  const value = equals < 0 ? '' : decodePart(field.slice(equals + 1), name)
  const values = form.get(name)
  if (values === undefined) form.set(name, [value])
  else values.push(value)
}

function decodePart(part: string, name?: string): string {
  const spaced = part.includes('+') ? part.replaceAll('+', ' ') : part
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch (cause) {
    const why = BAD_ESCAPE.test(spaced)
      ? 'has a % that two hexadecimal digits do not follow'
      : 'is not UTF-8 once decoded'
    throw malformed(
      `${name === undefined ? 'The name of a field' : `Field ${printable(name)}`} ${why}.`,
      cause,
    )
  }
}

const malformed = (say: string, cause?: unknown): Fault => new Fault('body_malformed', { say, cause })

/**
 * The parameters of an identity endpoint (C6.0): one without a value counts as absent. Throws Fault
 * `oauth_bad_request`, naming the parameter, if one is repeated (RFC 6749 §3.2).
 */
export function singleValues(form: Form): ReadonlyMap<string, string> {
  const single = new Map<string, string>()
  for (const [name, values] of form) {
    const [value, second] = values.filter((each) => each !== '')
    if (second !== undefined)
      throw new Fault('oauth_bad_request', { say: `${parameter(name)} was sent twice.` })
    if (value !== undefined) single.set(name, value)
  }
  return single
}

// RFC 6749 §5.2: an error_description may hold printable ASCII only, and neither quote nor backslash.
const parameter = (name: string): string =>
  /^[\w.:~-]{1,60}$/.test(name) ? `The parameter ${name}` : 'A parameter'

/**
 * A form as the JSON that the action's schema makes of it (C7.6). Throws Fault `body_invalid`, naming the field,
 * where a value is not of the schema's type or is repeated though the schema has no array there.
 */
export function formToJson(form: Form, schema?: BodySchema): JsonObject {
  const object = Object.create(null) as JsonObject
  for (const [name, values] of form) object[name] = fieldValue(name, values, memberSchema(schema, name))
  return object
}

function fieldValue(name: string, values: readonly string[], schema: BodySchema | undefined): JsonValue {
  const [first = '', second] = values
  const scalar = second === undefined ? readTyped(first, schema) : undefined
  if (scalar !== undefined) return scalar
  if (allowsType(schema, 'array')) return values.map((value) => scalarValue(name, value, schema?.items))
  if (second !== undefined) throw invalid(`Field ${printable(name)}: was sent twice, but takes one value.`)
  return scalarValue(name, first, schema)
}

function scalarValue(name: string, text: string, schema: BodySchema | undefined): JsonValue {
  const value = readTyped(text, schema)
  if (value !== undefined) return value
  const types = typesOf(schema)
  if (types.includes('object') || types.includes('array'))
    throw invalid(
      `Field ${printable(name)}: cannot be said in a form. Send application/json or application/xml.`,
    )
  throw invalid(`Field ${printable(name)}: must be ${describeTypes(types)}.`)
}

const invalid = (say: string): Fault => new Fault('body_invalid', { say })
