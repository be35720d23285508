import { Buffer } from 'node:buffer'
import { type FaultRow, FAULTS } from '../kernel/fault-table.ts'
import type { Fault } from '../kernel/faults.ts'
import type { Format } from './head/accept.ts'
import { answerJson, isJsonObject, type JsonObject, type JsonValue } from './body/json.ts'
import { toXmlText } from './xml/syntax.ts'
import type { ItemNames } from './xml/key-sequences.ts'
import { type EnvelopeError, writeXmlEnvelope, writeXmlErrors } from './xml/write.ts'

export type { EnvelopeError } from './xml/write.ts'

/** The Content-Type of an enveloped error, and of a success in a plain type (C2.5). */
export const ENVELOPE_TYPE: Readonly<Record<Format, string>> = {
  json: 'application/json; charset=utf-8',
  xml: 'application/xml; charset=utf-8',
}

/** An envelope as a JSON value (C2.1). */
interface Envelope {
  readonly Errors: readonly { readonly Code: string; readonly Message: string }[]
  readonly Data: JsonObject
}

/** An enveloped success (C2.1, C2.2). Throws Fault `answer_unconvertible` for data that the format cannot hold. */
export const successEnvelope = (format: Format, data: JsonObject, items?: ItemNames): Buffer =>
  format === 'xml' ? writeXmlEnvelope(data, items) : Buffer.from(`{"Errors":[],"Data":${answerJson(data)}}`)

/** The text before and behind the root element of an XML envelope's `Data`. */
const [BEFORE_DATA = '', AFTER_DATA = ''] = writeXmlEnvelope({})
  .toString()
  .split('<Data/>')
  .map((part, at) => (at === 0 ? `${part}<Data>` : `</Data>${part}`))

/** An enveloped success in XML whose `Data` holds one element, given as well-formed XML (C7.7). */
export const spliceEnvelope = (element: string): Buffer => Buffer.from(BEFORE_DATA + element + AFTER_DATA)

/** An enveloped failure of one or more errors; `Data` is empty. Characters of a message that XML cannot hold become U+FFFD. */
export const errorsEnvelope = (format: Format, errors: readonly EnvelopeError[]): Buffer =>
  Buffer.from(format === 'xml' ? writeXmlErrors(errors.map(toXmlError)) : writeJsonErrors(errors))

function writeJsonErrors(errors: readonly EnvelopeError[]): string {
  const entries = errors.map(({ code, message }) => ({ Code: code, Message: message }))
  return `{"Errors":${JSON.stringify(entries)},"Data":{}}`
}

const toXmlError = ({ code, message }: EnvelopeError): EnvelopeError => ({
  code: toXmlText(code),
  message: toXmlText(message),
})

export const errorEnvelope = (format: Format, code: string, message: string): Buffer =>
  errorsEnvelope(format, [{ code, message }])

const rendered = (format: Format): ReadonlyMap<string, Buffer> =>
  new Map(
    Object.entries<FaultRow>(FAULTS).map(([code, { wire, text }]) => [
      code,
      errorEnvelope(format, wire, text),
    ]),
  )

/** Every row of the table, rendered once: refusing must cost less than serving. */
const RENDERED: Readonly<Record<Format, ReadonlyMap<string, Buffer>>> = {
  json: rendered('json'),
  xml: rendered('xml'),
}

interface RenderedFault {
  readonly status: number
  readonly contentType: string
  /** Shared between answers: never written to. */
  readonly body: Buffer
}

/** A fault as the envelope of one error (C2.3, C2.6). Never throws. */
export function renderFault(fault: Fault, format: Format): RenderedFault {
  const { row, status, publicText } = fault
  const ready = publicText === row.text ? RENDERED[format].get(fault.code) : undefined
  const body = ready ?? errorEnvelope(format, row.wire, publicText)
  return { status, contentType: ENVELOPE_TYPE[format], body }
}

const isEntry = (value: JsonValue): boolean =>
  isJsonObject(value) && typeof own(value, 'Code') === 'string' && typeof own(value, 'Message') === 'string'

/** Own members only: a backend's object may have a prototype. */
const own = (object: JsonObject, name: string): JsonValue | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined

/** Whether a value is an envelope by C2.1: both members there, each of its shape. Further members are tolerated. */
export function isEnvelope(value: JsonValue): value is JsonObject & Envelope {
  if (!isJsonObject(value)) return false
  const errors = own(value, 'Errors')
  return Array.isArray(errors) && errors.every(isEntry) && isJsonObject(own(value, 'Data'))
}

/** The errors of a well-formed envelope that has at least one (C8.4); otherwise undefined. */
export function errorsOf(value: JsonValue): readonly EnvelopeError[] | undefined {
  if (!isEnvelope(value) || value.Errors.length === 0) return undefined
  return value.Errors.map(({ Code, Message }) => ({ code: Code, message: Message }))
}

/** The shape of a bare payload: it decides where the payload is in `Data` (C8.6). */
export type PayloadShape = 'object' | 'array' | 'scalar' | 'null'

/** The member of `Data` that an array or a scalar becomes. An object is `Data` itself; null leaves it empty. */
const MEMBER = { array: 'Items', scalar: 'Value' } as const

/** The `Data` of a bare payload (C8.6). */
export function wrapPayload(value: JsonValue): JsonObject {
  if (value === null) return {}
  if (isJsonObject(value)) return value
  return { [MEMBER[Array.isArray(value) ? 'array' : 'scalar']]: value }
}

const around = (before: string, after: string): readonly [string, string] => [
  `{"Errors":[],"Data":${before}`,
  `${after}}`,
]

/** The same for a payload as JSON text: the text before and behind it. The text of null is left out. */
export const TEXT_AROUND: Readonly<Record<PayloadShape, readonly [before: string, after: string]>> = {
  object: around('', ''),
  array: around(`{"${MEMBER.array}":`, '}'),
  scalar: around(`{"${MEMBER.scalar}":`, '}'),
  null: around('{', '}'),
}
