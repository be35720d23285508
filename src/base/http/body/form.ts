import { Fault } from '../../kernel/faults.ts'
import {
  allowsType,
  type BodySchema,
  describeTypes,
  memberSchema,
  readTyped,
  typesOf,
} from './body-schema.ts'
import type { JsonObject, JsonValue } from './json.ts'
import { decodeUtf8, printable } from './read-body.ts'

/** Names and values as sent, decoded, in the order of first appearance. Names are literal: `a[b]` is just that. */
export type Form = ReadonlyMap<string, readonly string[]>

interface FormReading {
  /** Fields, repeats included. */
  readonly maxFields?: number
  /**
   * Names that may be repeated to the client. Any other name is a mistake of the client's, and may be the tail of a
   * password with an unescaped `&`: such a field is named by its number.
   */
  readonly known?: ReadonlySet<string>
}

const MOST_FIELDS = 1000

const NONE: ReadonlySet<string> = new Set()

const BAD_ESCAPE = /%(?![0-9A-Fa-f]{2})/

/**
 * A form body or a query (`application/x-www-form-urlencoded`), strictly: `+` is a space, raw spaces are tolerated
 * (C6.1.1), empty fields (`a=1&&b=2`) say nothing. Throws Fault `body_malformed` on a bad escape, on what is not
 * UTF-8, and over the limit (C7.6, T4.6).
 */
export function parseForm(
  body: string | Uint8Array,
  { maxFields = MOST_FIELDS, known = NONE }: FormReading = {},
): Form {
  const text = typeof body === 'string' ? body : decodeUtf8(body)
  const form = new Map<string, string[]>()
  let fields = 0
  for (let start = 0, end = 0; start <= text.length; start = end + 1) {
    end = text.indexOf('&', start)
    if (end < 0) end = text.length
    if (end === start) continue
    if (++fields > maxFields) throw malformed(`It has more than ${maxFields} fields.`)
    addField(form, text.slice(start, end), fields, known)
  }
  return form
}

function addField(
  form: Map<string, string[]>,
  field: string,
  number: number,
  known: ReadonlySet<string>,
): void {
  const equals = field.indexOf('=')
  const name = decodePart(
    equals < 0 ? field : field.slice(0, equals),
    () => `The name of field number ${number}`,
  )
  const described = (): string => (known.has(name) ? `Field ${printable(name)}` : `Field number ${number}`)
  const value = equals < 0 ? '' : decodePart(field.slice(equals + 1), described)
  const values = form.get(name)
  if (values === undefined) form.set(name, [value])
  else values.push(value)
}

function decodePart(part: string, described: () => string): string {
  const spaced = part.includes('+') ? part.replaceAll('+', ' ') : part
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch (cause) {
    const why = BAD_ESCAPE.test(spaced)
      ? 'has a % that two hexadecimal digits do not follow'
      : 'is not UTF-8 once decoded'
    throw malformed(`${described()} ${why}.`, cause)
  }
}

const malformed = (say: string, cause?: unknown): Fault => new Fault('body_malformed', { say, cause })

/**
 * The parameters of an identity endpoint (C6.0): one without a value counts as absent. Throws Fault
 * `oauth_bad_request` if one is repeated (RFC 6749 §3.2), naming it if it is `known`.
 */
export function singleValues(form: Form, known: ReadonlySet<string>): ReadonlyMap<string, string> {
  const single = new Map<string, string>()
  for (const [name, values] of form) {
    const [value, second] = values.filter((each) => each !== '')
    if (second !== undefined) {
      const described = known.has(name) ? `The parameter ${name}` : 'A parameter'
      throw new Fault('oauth_bad_request', { say: `${described} was sent twice.` })
    }
    if (value !== undefined) single.set(name, value)
  }
  return single
}

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
  if (second !== undefined) throw invalid(name, 'was sent twice, but takes one value', schema)
  return scalarValue(name, first, schema)
}

function scalarValue(name: string, text: string, schema: BodySchema | undefined): JsonValue {
  const value = readTyped(text, schema)
  if (value !== undefined) return value
  const types = typesOf(schema)
  if (types.includes('object') || types.includes('array'))
    throw invalid(name, 'cannot be said in a form. Send application/json or application/xml', schema)
  throw invalid(name, `must be ${describeTypes(types)}`, schema)
}

/** A field that the schema does not know has a name of the client's own. */
const invalid = (name: string, why: string, schema: BodySchema | undefined): Fault =>
  new Fault('body_invalid', {
    say: `Field ${printable(name)}: ${why}.`,
    quotes: schema === undefined,
  })
