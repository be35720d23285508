import { Buffer } from 'node:buffer'
import { errorsWherePresent, parseAny } from '../backends/forward/response/own-errors.ts'
import { buildBody } from '../backends/templates/body.ts'
import { refuseMembers } from '../backends/templates/members.ts'
import type {
  AnswerFormat,
  BodyMaking,
  ErrorPlaces,
  KeptMembers,
} from '../../base/contracts/calls/backend.ts'
import type { PlaceholderValues } from '../../base/contracts/calls/templates.ts'
import type { Format } from '../../base/http/head/accept.ts'
import type { BodySchema } from '../../base/http/body/body-schema.ts'
import { isEnvelope, spliceEnvelope, successEnvelope, wrapPayload } from '../../base/http/envelope.ts'
import { formToJson, parseForm } from '../../base/http/body/form.ts'
import {
  type JsonObject,
  type JsonPointer,
  type JsonValue,
  parseJson,
  parseJsonPointer,
  plainText,
  pointerText,
  stringifyJson,
  valueAt,
} from '../../base/http/body/json.ts'
import type { BodyKind } from '../../base/http/head/media-type.ts'
import { type BodyValidator, compileValidator } from '../../base/http/body/validate-body.ts'
import {
  charsetOf,
  decodeBodyXml,
  decodeXml,
  DECODERS,
  doctypeOf,
  UTF_8,
} from '../../base/http/xml/decode.ts'
import {
  ANSWER_LIMITS,
  BODY_LIMITS,
  checkDocument,
  type PlainXmlRules,
} from '../../base/http/xml/plain-document.ts'
import { partText, rootText } from '../../base/http/xml/plain-part.ts'
import { readPlainXml } from '../../base/http/xml/plain-read.ts'
import { writePlainXml } from '../../base/http/xml/plain-write.ts'
import { ENVELOPE_SCHEMA, readXml, readXmlDocument } from '../../base/http/xml/read.ts'
import { type ItemNames, writeXml } from '../../base/http/xml/write.ts'
import { Fault, type FaultCode, toFault } from '../../base/kernel/faults.ts'

const refused = (say: string): Fault => new Fault('body_malformed', { say })

/**
 * The envelope of an upstream's document: in XML with its root as it is, in JSON by the mapping.
 * @param data the part that is the data; undefined: all of it
 * @throws Fault `upstream_broken` where there is no such part; `answer_unmappable`; `answer_too_large`; `body_malformed`
 *   for what is not well-formed or cannot be read
 */
export function plainEnvelope(
  bytes: Uint8Array,
  contentType: string | undefined,
  rules: PlainXmlRules,
  to: Format,
  data?: JsonPointer,
): Buffer {
  if (bytes.length === 0) return successEnvelope(to, {})
  const document = decodeXml(bytes, contentType)
  if (doctypeOf(document.text) === 'subset') throw refused('XML: a DOCTYPE has an internal subset')
  if (to === 'json') {
    const value = readPlainXml(document, ANSWER_LIMITS, rules)
    return successEnvelope('json', data === undefined ? value : wrapPayload(partAt(value, data)))
  }
  if (data === undefined || data.length === 0)
    return spliceEnvelope(rootText(document.text, checkDocument(document, ANSWER_LIMITS)))
  const part = partText(document, ANSWER_LIMITS, data, rules)
  if (part === undefined) throw nothingAt(data)
  return spliceEnvelope(part)
}

/**
 * Checks a client's document, which is then sent on byte for byte.
 * @param validate the check of the action's schema, for the value of the document
 * @throws Fault `body_malformed`, `unsupported_media_type`; what `validate` throws
 */
export function checkPlainBody(
  bytes: Uint8Array,
  rules: PlainXmlRules,
  validate: BodyValidator | undefined,
): void {
  const document = decodePlainBody(bytes)
  if (validate === undefined) checkDocument(document, BODY_LIMITS)
  else validate(valueOf(readMapped(document, rules), rules))
}

/** The value of a client's document. @throws Fault `body_malformed`, `unsupported_media_type` */
const plainBodyValue = (bytes: Uint8Array, rules: PlainXmlRules, inOnePiece = false): JsonValue =>
  valueOf(readMapped(decodePlainBody(bytes), rules, inOnePiece), rules)

function decodePlainBody(bytes: Uint8Array): ReturnType<typeof decodeBodyXml> {
  const document = decodeBodyXml(bytes)
  if (doctypeOf(document.text) !== 'none') throw refused('XML: a document type declaration is not allowed')
  return document
}

function readMapped(
  document: Parameters<typeof readPlainXml>[0],
  rules: PlainXmlRules,
  inOnePiece = false,
): JsonObject {
  try {
    return readPlainXml(document, BODY_LIMITS, rules, inOnePiece)
  } catch (thrown) {
    const { code, facts } = toFault(thrown)
    if (code !== 'answer_unmappable') throw thrown
    throw new Fault('body_malformed', { say: facts.detail ?? '', quotes: true })
  }
}

/** The value of a JSON body with the same meaning: with a configured root its content, without the configured attributes. */
function valueOf(document: JsonObject, { root, attributes }: PlainXmlRules): JsonValue {
  if (root === undefined) return document
  const [content = ''] = Object.values(document)
  if (typeof content !== 'object' || content === null || Array.isArray(content)) return content
  const own = Object.entries<JsonValue>(content as JsonObject).filter(
    ([name, value]) => !(name.startsWith('@') && attributes[name.slice(1)] === value),
  )
  const [first] = own
  if (own.length === 1 && first?.[0] === '#text') return first[1]
  return Object.setPrototypeOf(Object.fromEntries(own), null) as JsonObject
}

/** The fault of an answer without the part that is the data: empty data would hide that the upstream has changed. */
const nothingAt = (pointer: JsonPointer): Fault =>
  new Fault('upstream_broken', { detail: `the upstream's answer has nothing at ${pointerText(pointer)}` })

/** The part of an upstream's answer that is the data (C8.8). @throws Fault `upstream_broken` */
function partAt(value: JsonValue, pointer: JsonPointer): JsonValue {
  const part = valueAt(value, pointer)
  if (part !== undefined) return part
  throw nothingAt(pointer)
}

/** Converts an upstream's answer into an envelope of another format (C8.6). */
export interface AnswerTask {
  readonly kind: 'answer'
  readonly bytes: Uint8Array
  /** The Content-Type as the upstream says. Its charset counts for XML of its own. */
  readonly contentType?: string | undefined
  readonly answerFormat: Pick<AnswerFormat, 'format' | 'payload' | 'xml' | 'data'>
  readonly to: Format
  readonly items: ItemNames
  /** `server.limits.answer`. */
  readonly limit: number
}

/** Checks a client's body and converts it into the backend's format (C4.11, C7.6). */
interface RequestTask {
  readonly kind: 'request'
  readonly bytes: Uint8Array
  readonly as: BodyKind
  readonly to: 'json' | 'xml'
  readonly schema: BodySchema | undefined
  /** Members that are refused (C8.7); undefined: none. */
  readonly kept?: KeptMembers | undefined
  readonly items: ItemNames
  /** The rules of an upstream that takes XML of its own (C7.7). */
  readonly xml?: PlainXmlRules | undefined
  /** A `Making`, as JSON: literals of numbers do not cross threads as values. */
  readonly making?: string
}

/** Reads parts of a client's body for its record (C12.2.2). The result is JSON: their texts, by name. */
interface KeptTask {
  readonly kind: 'kept'
  readonly bytes: Uint8Array
  readonly as: BodyKind
  readonly schema: BodySchema | undefined
  readonly xml?: PlainXmlRules | undefined
  readonly fields: readonly { readonly name: string; readonly pointer: JsonPointer }[]
}

/** Looks for errors in a success (C8.8). The result is JSON: a list of them, or null where it is a success. */
interface SearchTask {
  readonly kind: 'search'
  readonly bytes: Uint8Array
  readonly contentType: string | undefined
  readonly places: ErrorPlaces
  readonly format: 'json' | 'xml'
}

export type Task = AnswerTask | RequestTask | KeptTask | SearchTask

/** What a task has made. */
export interface Converted {
  readonly bytes: Uint8Array
  /** The values that templates name and the client's body had, as JSON. Only for a request with a `making`. */
  readonly found?: string | undefined
}

/** Runs a task. @throws the faults of `convertAnswer`, or of a request's body: `body_malformed`, `body_invalid` */
export function perform(task: Task): Converted {
  if (task.kind === 'answer') return { bytes: convertAnswer(task) }
  if (task.kind === 'search') return { bytes: Buffer.from(JSON.stringify(searchAnswer(task) ?? null)) }
  if (task.kind === 'kept') return { bytes: Buffer.from(JSON.stringify(keptOf(task))) }
  const { making, schema } = task
  if (making === undefined) return { bytes: convertRequest(task) }
  const client = task.bytes.length === 0 ? undefined : task.bytes
  const given = { ...task, bytes: client, validate: schema && compileValidator(schema) }
  const how = readMaking(making)
  const { bytes = NOTHING, found } = makeOf(checkedBody(given, how), given, how)
  return { bytes, found: stringifyJson(found) }
}

/** The check of a client's body that is sent on as it is, once it is parsed; undefined: there is none. */
export function bodyCheck(
  validate: BodyValidator | undefined,
  kept: KeptMembers | undefined,
): BodyValidator | undefined {
  if (kept === undefined) return validate
  return (value) => {
    validate?.(value)
    refuseMembers(value, kept)
  }
}

const NOTHING = new Uint8Array()
/** Limits for JSON that Postern has written itself. */
const ANYTHING = { depth: Infinity, nodes: Infinity }

export const writeMaking = (making: Making): string => JSON.stringify(making)

const readMaking = (text: string): Making => parseJson(Buffer.from(text), ANYTHING) as unknown as Making

/** @throws Fault `upstream_broken` for what does not parse: it may hold errors that nobody sees */
export function searchAnswer({ bytes, contentType, places, format }: SearchTask) {
  try {
    return errorsWherePresent(parseAny(bytes, format, contentType, 'answer'), places, format)
  } catch (thrown) {
    throw cannotConvert(thrown)
  }
}

/** The fault of a task that needs more memory than a thread may have. */
export const TOO_LARGE: Readonly<Record<Task['kind'], FaultCode>> = {
  answer: 'answer_too_large',
  request: 'body_too_large',
  kept: 'body_too_large',
  search: 'answer_too_large',
}

/** Limits for an upstream's answer besides its bytes. They are higher than a client's; the depth protects the stack. */
const LIMITS = { depth: 200, nodes: 1_000_000, references: 1_000_000 }
/** The converted answer may be this many times as long as the limit: XML is longer than JSON. */
const MOST_GROWTH = 8

/** Throws Fault `upstream_broken`, `answer_unconvertible`, `answer_unmappable`, `answer_too_large`. */
export function convertAnswer(task: AnswerTask): Uint8Array {
  const { limit, answerFormat, to } = task
  if (answerFormat.payload === 'none') return successEnvelope(to, {})
  const converted =
    answerFormat.xml === undefined ? envelopeOf(task) : envelopeOfPlain(task, answerFormat.xml)
  if (converted.length <= limit * MOST_GROWTH) return converted
  throw new Fault('answer_too_large', { detail: `converted, it has more than ${limit * MOST_GROWTH} bytes` })
}

const envelopeOf = ({ bytes, contentType, answerFormat, to, items, limit }: AnswerTask): Uint8Array =>
  successEnvelope(
    to,
    bytes.length === 0 && answerFormat.format !== 'text'
      ? {}
      : dataOf(parse(bytes, contentType, answerFormat, limit), answerFormat),
    items,
  )

/** Faults that speak of an answer already. */
const OF_ANSWERS: ReadonlySet<FaultCode> = new Set([
  'answer_unmappable',
  'answer_too_large',
  'upstream_broken',
])

function envelopeOfPlain(
  { bytes, contentType, answerFormat, to }: AnswerTask,
  rules: PlainXmlRules,
): Uint8Array {
  try {
    return plainEnvelope(bytes, contentType, rules, to, answerFormat.data)
  } catch (thrown) {
    throw OF_ANSWERS.has(toFault(thrown).code) ? thrown : cannotConvert(thrown)
  }
}

/** The `Data` of an answer (C8.6). Throws Fault `upstream_broken` if the answer is not the envelope that was promised. */
export function dataOf(
  value: JsonValue,
  { payload, data }: Pick<AnswerFormat, 'payload' | 'data'>,
): JsonObject {
  if (data !== undefined) return wrapPayload(partAt(value, data))
  if (payload !== 'envelope' || value === null) return wrapPayload(value)
  if (isEnvelope(value)) return value.Data
  throw new Fault('upstream_broken', { detail: 'the upstream answered something else than an envelope' })
}

function parse(
  bytes: Uint8Array,
  contentType: string | undefined,
  { format, payload, data }: AnswerTask['answerFormat'],
  limit: number,
): JsonValue {
  try {
    if (format === 'text') return decodeText(bytes, contentType)
    if (format !== 'xml') return parseJson(bytes, LIMITS)
    if (data !== undefined) return readXmlDocument(bytes, { ...LIMITS, bytes: limit })
    return readXml(bytes, payload === 'envelope' ? ENVELOPE_SCHEMA : undefined, { ...LIMITS, bytes: limit })
  } catch (thrown) {
    throw cannotConvert(thrown)
  }
}

/**
 * A text in the charset of its type (C8.6).
 * @throws Fault `body_malformed` for another charset, and for bytes that are not of it
 */
function decodeText(bytes: Uint8Array, contentType: string | undefined): string {
  const decoder = DECODERS.get(charsetOf(contentType) ?? UTF_8)
  if (decoder === undefined) throw refused('It is neither UTF-8 nor ISO-8859-1.')
  return decoder(bytes)
}

/** Our parsers throw faults of a request's body; here the upstream sent the bytes. */
export function cannotConvert(thrown: unknown): Fault {
  const { code, facts } = toFault(thrown)
  return new Fault('upstream_broken', {
    cause: thrown,
    detail: `the upstream's answer cannot be converted: ${code} ${facts.say ?? ''}`,
  })
}

type Parser = (bytes: Uint8Array, schema: BodySchema | undefined) => JsonValue

export const PARSERS: Readonly<Record<BodyKind, Parser>> = {
  json: (bytes) => parseJson(bytes),
  // The bytes were counted as they were read: a limit of XML's own must not be lower than the configured one.
  xml: (bytes, schema) => readXml(bytes, schema, { bytes: bytes.length }),
  form: (bytes, schema) => formToJson(parseForm(bytes), schema),
}

const WRITERS: Readonly<Record<'json' | 'xml', (value: JsonValue, items: ItemNames) => string>> = {
  json: (value) => stringifyJson(value),
  xml: (value, items) => writeXml(value, 'ApiRequest', items),
}

function convertRequest({ bytes, as, to, schema, kept, items, xml }: RequestTask): Uint8Array {
  const validate = bodyCheck(schema && compileValidator(schema), kept)
  if (xml !== undefined) return plainRequest(as, bytes, xml, schema, validate)
  const value = PARSERS[as](bytes, schema)
  validate?.(value)
  return as === to ? bytes : writeBody(value, to, items)
}

/** How a request uses a client's body that templates name, or that another body replaces (C8.7). */
export interface Making extends Pick<BodyMaking, 'pointers' | 'recipe'> {
  readonly values: PlaceholderValues
  /** The most bytes that are sent. */
  readonly most: number
}

export interface GivenBody extends Pick<RequestTask, 'to' | 'schema' | 'kept' | 'items' | 'xml'> {
  /** Undefined: the client sent none. */
  readonly bytes: Uint8Array | undefined
  readonly as: BodyKind | undefined
  readonly validate: BodyValidator | undefined
}

interface Made {
  /** Undefined: no body is sent. */
  readonly bytes: Uint8Array | undefined
  readonly found: JsonObject
}

/** The value of a client's body; undefined: it sent none. @throws Fault as `convertRequest` */
export function checkedBody(
  { bytes, as, schema, xml, validate }: GivenBody,
  { recipe }: Pick<Making, 'recipe'>,
): JsonValue | undefined {
  if (bytes === undefined || as === undefined) return undefined
  const value = valueOfBody(bytes, as, schema, xml, (recipe?.require ?? []).length > 0)
  validate?.(value)
  return value
}

function valueOfBody(
  bytes: Uint8Array,
  as: BodyKind,
  schema: BodySchema | undefined,
  xml: PlainXmlRules | undefined,
  inOnePiece: boolean,
): JsonValue {
  if (as !== 'xml') return PARSERS[as](bytes, schema)
  return xml === undefined
    ? readXml(bytes, schema, { bytes: bytes.length }, inOnePiece)
    : plainBodyValue(bytes, xml, inOnePiece)
}

/** Makes the body that is sent. @param value of the client's body, checked @throws Fault as `buildBody` */
export function makeOf(
  value: JsonValue | undefined,
  { bytes, as, to, items, xml, kept }: GivenBody,
  { pointers, recipe, values, most }: Making,
): Made {
  const write = (made: JsonValue): Uint8Array =>
    xml === undefined ? writeBody(made, to, items) : Buffer.from(writePlainXml(made, xml, most))
  const found = foundIn(value, pointers)
  if (recipe !== undefined) {
    const client = { value, bytes, as, kept, write: recipe.format === to ? write : undefined }
    return { bytes: buildBody(recipe, values, client, most), found }
  }
  if (kept !== undefined && value !== undefined) refuseMembers(value, kept)
  return { bytes: value === undefined || as === to ? bytes : write(value), found }
}

function foundIn(value: JsonValue | undefined, pointers: readonly string[]): JsonObject {
  const all = Object.create(null) as JsonObject
  if (value === undefined) return all
  for (const pointer of pointers) {
    const found = valueAt(value, parseJsonPointer(pointer))
    if (found !== undefined) all[pointer] = found
  }
  return all
}

/** The kept values by name: a text as it is, anything else as JSON. Absent values are left out. @throws Fault `body_malformed` */
export function keptOf({ bytes, as, schema, xml, fields }: Omit<KeptTask, 'kind'>): Record<string, string> {
  const value = xml !== undefined && as === 'xml' ? plainBodyValue(bytes, xml) : PARSERS[as](bytes, schema)
  const kept = Object.create(null) as Record<string, string>
  for (const { name, pointer } of fields) {
    const found = valueAt(value, pointer)
    if (found !== undefined) kept[name] = plainText(found)
  }
  return kept
}

/**
 * A body for an upstream that takes XML of its own (C7.7): XML is sent on byte for byte, anything else is built by the mapping.
 * @throws Fault `body_malformed`, `body_invalid`, `unsupported_media_type`
 */
export function plainRequest(
  kind: BodyKind,
  bytes: Uint8Array,
  rules: PlainXmlRules,
  schema: BodySchema | undefined,
  validate: BodyValidator | undefined,
): Uint8Array {
  if (kind === 'xml') {
    checkPlainBody(bytes, rules, validate)
    return bytes
  }
  const value = PARSERS[kind](bytes, schema)
  validate?.(value)
  return Buffer.from(writePlainXml(value, rules))
}

/**
 * A value in the backend's format. A character that XML cannot hold is the client's mistake here: 400, not the 500 of an
 * answer.
 * @throws Fault `body_malformed`
 */
export function writeBody(value: JsonValue, to: 'json' | 'xml', items: ItemNames): Buffer {
  try {
    return Buffer.from(WRITERS[to](value, items))
  } catch (thrown) {
    if (toFault(thrown).code !== 'answer_unconvertible') throw thrown
    throw new Fault('body_malformed', {
      cause: thrown,
      say: 'It holds a character that the data service cannot be sent.',
    })
  }
}

export type ConversionReply =
  | { readonly bytes: Uint8Array<ArrayBuffer>; readonly found?: string | undefined }
  | { readonly code: FaultCode; readonly say: string | undefined; readonly detail: string | undefined }

/** A fault as plain data for another thread. The message of its cause becomes part of the detail. */
export function replyOf(thrown: unknown): ConversionReply {
  const { code, facts } = toFault(thrown)
  const { cause } = facts
  const why = cause instanceof Error && !(cause instanceof Fault) ? cause.message : undefined
  const detail = [facts.detail, why].filter((part) => part !== undefined).join(': ')
  return { code, say: facts.say, detail: detail === '' ? undefined : detail }
}

export function faultOf({ code, say, detail }: Exclude<ConversionReply, { bytes: unknown }>): Fault {
  return new Fault(code, { ...(say !== undefined && { say }), ...(detail !== undefined && { detail }) })
}

/** Bytes that may be transferred to another thread: they own all of their memory, or are copied. */
export const own = (bytes: Uint8Array): Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength
    ? (bytes as Uint8Array<ArrayBuffer>)
    : new Uint8Array(bytes)
