import type { Buffer } from 'node:buffer'
import { errorsWherePresent, parseAny } from '../backends/forward/response/own-errors.ts'
import type { AnswerFormat, ErrorPlaces } from '../../base/contracts/calls/backend.ts'
import { isEnvelope, spliceEnvelope, successEnvelope, wrapPayload } from '../../base/http/envelope.ts'
import type { Format } from '../../base/http/head/accept.ts'
import {
  type JsonObject,
  type JsonPointer,
  type JsonValue,
  parseJson,
  pointerText,
  valueAt,
} from '../../base/http/body/json.ts'
import { BYTE_ORDER_MARK, checkJson, hasByteOrderMark, NotJson } from '../../base/http/body/json-check.ts'
import { bufferOf } from '../../base/http/body/read-body.ts'
import { charsetOf, decodeXml, DECODERS, doctypeOf, UTF_8 } from '../../base/http/xml/decode.ts'
import type { ItemNames } from '../../base/http/xml/key-sequences.ts'
import { ANSWER_LIMITS, checkDocument, type PlainXmlRules } from '../../base/http/xml/plain-document.ts'
import { partText, rootText } from '../../base/http/xml/plain-part.ts'
import { readPlainXml } from '../../base/http/xml/plain-read.ts'
import { ENVELOPE_SCHEMA, readXml, readXmlDocument } from '../../base/http/xml/read.ts'
import { type QuickBounds, SlowDocument, tooLong } from '../../base/http/xml/writer-rules.ts'
import { xmlOfJson } from '../../base/http/xml/xml-writer.ts'
import { Fault, type FaultCode, toFault } from '../../base/kernel/faults.ts'
import { AT_ONCE, isSmall, QUICK } from './at-once.ts'

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

/** Looks for errors in a success (C8.8). The result is JSON: a list of them, or null where it is a success. */
export interface SearchTask {
  readonly kind: 'search'
  readonly bytes: Uint8Array
  readonly contentType: string | undefined
  readonly places: ErrorPlaces
  readonly format: 'json' | 'xml'
}

/** @throws Fault `upstream_broken` for what does not parse: it may hold errors that nobody sees */
export function searchAnswer({ bytes, contentType, places, format }: SearchTask) {
  try {
    return errorsWherePresent(parseAny(bytes, format, contentType, 'answer'), places, format)
  } catch (thrown) {
    throw cannotConvert(thrown)
  }
}

/** Limits for an upstream's answer besides its bytes. They are higher than a client's; the depth protects the stack. */
const LIMITS = { depth: 200, nodes: 1_000_000, references: 1_000_000 }
/** The converted answer may be this many times as long as the limit: XML is longer than JSON. */
const MOST_GROWTH = 8

/** The envelope of a small answer. Undefined: it takes too long, so that another thread is to make it. Throws as `convertAnswer`. */
export function convertAtOnce(task: AnswerTask): Uint8Array | undefined {
  const work = isWrittenInOnePass(task) ? 'writing' : task.answerFormat.format === 'xml' ? 'xml' : 'json'
  if (!isSmall(task.bytes, work)) return undefined
  try {
    return convertAnswer(task, QUICK)
  } catch (thrown) {
    if (thrown instanceof SlowDocument) return undefined
    throw thrown
  }
}

/**
 * Throws Fault `upstream_broken`, `answer_unconvertible`, `answer_unmappable`, `answer_too_large`.
 * @param quick bounds beyond which it throws SlowDocument
 */
export function convertAnswer(task: AnswerTask, quick?: QuickBounds): Uint8Array {
  const { limit, answerFormat, to } = task
  if (answerFormat.payload === 'none') return successEnvelope(to, {})
  const most = limit * MOST_GROWTH
  const converted = isWrittenInOnePass(task)
    ? writeEnvelope(task, most, quick)
    : answerFormat.xml === undefined
      ? envelopeOf(task)
      : envelopeOfPlain(task, answerFormat.xml)
  if (converted.length <= most) return converted
  throw tooLong(most)
}

/** Whether an answer is JSON that becomes XML in one pass: without a value of it. */
const isWrittenInOnePass = ({ bytes, answerFormat: { format, data }, to }: AnswerTask): boolean =>
  to === 'xml' && format !== 'xml' && format !== 'text' && data === undefined && bytes.length > 0

/** Writes an answer in JSON as an envelope in XML. An answer that the writer refuses is read as a value: that tells the fault. */
function writeEnvelope(task: AnswerTask, most: number, quick: QuickBounds | undefined): Uint8Array {
  const { bytes, answerFormat, items } = task
  const json = bufferOf(bytes)
  const kind = answerFormat.payload === 'envelope' ? 'envelope' : 'payload'
  try {
    if (kind === 'envelope')
      checkJson(hasByteOrderMark(json) ? json.subarray(BYTE_ORDER_MARK.length) : json, true)
    return xmlOfJson(json, { layout: { kind }, items, ...LIMITS, most, quick })
  } catch (thrown) {
    if (!(thrown instanceof NotJson)) throw thrown
    if (quick !== undefined && bytes.length > AT_ONCE.json) throw new SlowDocument()
    return envelopeOf(task)
  }
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
