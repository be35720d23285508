import { Buffer } from 'node:buffer'
import { buildBody } from '../backends/templates/body.ts'
import { refuseMembers } from '../backends/templates/members.ts'
import type { BodyMaking, KeptMembers } from '../../base/contracts/calls/backend.ts'
import type { PlaceholderValues } from '../../base/contracts/calls/templates.ts'
import type { BodySchema } from '../../base/http/body/body-schema.ts'
import { formToJson, parseForm } from '../../base/http/body/form.ts'
import {
  JSON_LIMITS,
  type JsonObject,
  type JsonPointer,
  type JsonValue,
  parseJson,
  parseJsonPointer,
  plainText,
  stringifyJson,
  valueAt,
} from '../../base/http/body/json.ts'
import { NotJson } from '../../base/http/body/json-check.ts'
import { bufferOf } from '../../base/http/body/read-body.ts'
import type { BodyKind } from '../../base/http/head/media-type.ts'
import { type BodyValidator, compileValidator } from '../../base/http/body/validate-body.ts'
import { decodeBodyXml, doctypeOf } from '../../base/http/xml/decode.ts'
import type { ItemNames } from '../../base/http/xml/key-sequences.ts'
import { BODY_LIMITS, checkDocument, type PlainXmlRules } from '../../base/http/xml/plain-document.ts'
import { readPlainXml } from '../../base/http/xml/plain-read.ts'
import { writePlainXml } from '../../base/http/xml/plain-write.ts'
import { readXml } from '../../base/http/xml/read.ts'
import { writeXml } from '../../base/http/xml/write.ts'
import type { Layout } from '../../base/http/xml/writer-rules.ts'
import { xmlOfJson } from '../../base/http/xml/xml-writer.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'

const refused = (say: string): Fault => new Fault('body_malformed', { say })

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

/** Checks a client's body and converts it into the backend's format (C4.11, C7.6). */
export interface RequestTask {
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
export interface KeptTask {
  readonly kind: 'kept'
  readonly bytes: Uint8Array
  readonly as: BodyKind
  readonly schema: BodySchema | undefined
  readonly xml?: PlainXmlRules | undefined
  readonly fields: readonly { readonly name: string; readonly pointer: JsonPointer }[]
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

/** Limits for JSON that Postern has written itself. */
const ANYTHING = { depth: Infinity, nodes: Infinity }

export const writeMaking = (making: Making): string => JSON.stringify(making)

export const readMaking = (text: string): Making =>
  parseJson(Buffer.from(text), ANYTHING) as unknown as Making

type Parser = (bytes: Uint8Array, schema: BodySchema | undefined) => JsonValue

export const PARSERS: Readonly<Record<BodyKind, Parser>> = {
  json: (bytes) => parseJson(bytes),
  // The bytes were counted as they were read: a limit of XML's own must not be lower than the configured one.
  xml: (bytes, schema) => readXml(bytes, schema, { bytes: bytes.length }),
  form: (bytes, schema) => formToJson(parseForm(bytes), schema),
}

const REQUEST: Extract<Layout, { kind: 'document' }> = { kind: 'document', root: 'ApiRequest' }

const WRITERS: Readonly<Record<'json' | 'xml', (value: JsonValue, items: ItemNames) => Buffer>> = {
  json: (value) => Buffer.from(stringifyJson(value)),
  xml: (value, items) => writeXml(value, REQUEST.root, items),
}

export function convertRequest({ bytes, as, to, schema, kept, items, xml }: RequestTask): Uint8Array {
  const validate = bodyCheck(schema && compileValidator(schema), kept)
  return requestBody(as, bytes, to, { schema, items, xml, validate })
}

interface RequestRules extends Pick<RequestTask, 'schema' | 'items' | 'xml'> {
  readonly validate: BodyValidator | undefined
}

/**
 * A client's body in the backend's format, checked.
 * @throws Fault `body_malformed`, `unsupported_media_type`; what `validate` throws
 */
export function requestBody(
  as: BodyKind,
  bytes: Uint8Array,
  to: 'json' | 'xml',
  { schema, items, xml, validate }: RequestRules,
): Uint8Array {
  if (xml !== undefined) return plainRequest(as, bytes, xml, schema, validate)
  if (as === 'json' && to === 'xml' && validate === undefined) return xmlOfBody(bytes, items)
  const value = PARSERS[as](bytes, schema)
  validate?.(value)
  if (as === to) return bytes
  return as === 'json' ? xmlOfBody(bytes, items) : writeBody(value, to, items)
}

/** Writes a JSON body as XML from its bytes. A body that the writer refuses is read as a value: that tells the fault. */
function xmlOfBody(bytes: Uint8Array, items: ItemNames): Uint8Array {
  const rules = { layout: REQUEST, items, ...JSON_LIMITS, most: Infinity }
  return orBodyFault(() => {
    try {
      return xmlOfJson(bufferOf(bytes), rules)
    } catch (thrown) {
      if (thrown instanceof NotJson) return WRITERS.xml(parseJson(bytes), items)
      throw thrown
    }
  })
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
  if (value === undefined || as === to) return { bytes, found }
  const isOfBytes = as === 'json' && xml === undefined && bytes !== undefined
  return { bytes: isOfBytes ? xmlOfBody(bytes, items) : write(value), found }
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
function plainRequest(
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

/** A value in the backend's format. @throws Fault `body_malformed` */
const writeBody = (value: JsonValue, to: 'json' | 'xml', items: ItemNames): Buffer =>
  orBodyFault(() => WRITERS[to](value, items))

/** A character that XML cannot hold is the client's mistake in a body: 400, not the 500 of an answer. */
function orBodyFault(write: () => Buffer): Buffer {
  try {
    return write()
  } catch (thrown) {
    if (toFault(thrown).code !== 'answer_unconvertible') throw thrown
    throw new Fault('body_malformed', {
      cause: thrown,
      say: 'It holds a character that the data service cannot be sent.',
    })
  }
}
