import type { CallBody } from '../../contracts/backend.ts'
import type { Exchange } from '../../contracts/exchange.ts'
import type { BodySchema } from '../../http/body-schema.ts'
import {
  judgeContentType,
  judgeOwnContentType,
  MEDIA_TYPE_OF,
  type BodyKind,
} from '../../http/content-type.ts'
import { formToJson, parseForm } from '../../http/form.ts'
import { declaredBody, type BodyDeclaration } from '../../http/head-checks.ts'
import type { Head } from '../../http/head.ts'
import type { JsonValue } from '../../http/json-value.ts'
import { parseJson, stringifyJson } from '../../http/json.ts'
import { readBody } from '../../http/read-body.ts'
import { readXml } from '../../http/xml-read.ts'
import { writeXml } from '../../http/xml-write.ts'
import { Fault, toFault } from '../../kernel/faults.ts'
import type { BodyRule, Operation } from '../action.ts'

/** What C4.11 says of a body before any of it is read (C4.17). */
export type BodyPlan =
  | { readonly kind: 'none' }
  /** Of at most `limit` bytes; empty counts as none. */
  | { readonly kind: 'parsed'; readonly as: BodyKind; readonly limit: number }
  /** An action with `consumes`: streams through. */
  | { readonly kind: 'opaque'; readonly contentType: string | undefined; readonly length: number | undefined }

const NO_PLAN: BodyPlan = { kind: 'none' }
const NO_BODY: CallBody = { kind: 'none' }

/** First half of C4.11: Content-Type, then declared size, then whether there may or must be a body. */
export function judgeBody(head: Head, operation: Operation, limit: number): BodyPlan {
  const declared = declaredBody(head)
  const facts = {
    contentType: head.headers['content-type'],
    contentEncoding: head.headers['content-encoding'],
    hasBody: declared !== 0,
  }
  if (operation.consumes) {
    judgeOwnContentType(facts, operation.consumes)
    return planOpaque(facts.contentType, declared)
  }
  const kind = judgeContentType(facts)
  if (declared === 0 || kind === 'none') return planNothing(operation.body)
  if (declared !== 'chunked') {
    if (declared > limit) throw new Fault('body_too_large')
    if (operation.body.kind === 'none') throw new Fault('body_unexpected')
  }
  return { kind: 'parsed', as: kind, limit }
}

function planOpaque(contentType: string | undefined, declared: BodyDeclaration): BodyPlan {
  if (declared === 0) return NO_PLAN
  return { kind: 'opaque', contentType, length: declared === 'chunked' ? undefined : declared }
}

function planNothing(rule: BodyRule): BodyPlan {
  if (rule.kind === 'required') throw new Fault('body_missing')
  return NO_PLAN
}

/**
 * Second half of C4.11: the body is read, parses, fits the schema; answers it in the backend's format. At once where
 * there is nothing to read.
 */
export function takeBody(
  plan: BodyPlan,
  exchange: Pick<Exchange, 'body'>,
  operation: Operation,
): CallBody | Promise<CallBody> {
  if (plan.kind === 'none') return NO_BODY
  if (plan.kind === 'opaque') return { ...plan, kind: 'stream', stream: exchange.body }
  return readBody(exchange.body, plan.limit).then((bytes) => parseBody(plan, bytes, operation))
}

/** What is left of C4.11 once a body that is to be parsed has been read. */
export function parseBody(
  { as }: Extract<BodyPlan, { kind: 'parsed' }>,
  bytes: Buffer,
  operation: Operation,
): CallBody {
  if (bytes.length === 0) return (planNothing(operation.body), NO_BODY)
  if (operation.body.kind === 'none') throw new Fault('body_unexpected')
  return convertBody(as, bytes, operation)
}

type Parser = (bytes: Buffer, schema: BodySchema | undefined) => JsonValue

const PARSERS: Readonly<Record<BodyKind, Parser>> = {
  json: (bytes) => parseJson(bytes),
  // The bytes were counted as they were read: a limit of XML's own must not be lower than the configured one.
  xml: (bytes, schema) => readXml(bytes, schema, { bytes: bytes.length }),
  form: (bytes, schema) => formToJson(parseForm(bytes), schema),
}

type Writer = (value: JsonValue, items: Operation['items']) => string

const WRITERS: Readonly<Record<'json' | 'xml', Writer>> = {
  json: (value) => stringifyJson(value),
  xml: (value, items) => writeXml(value, 'ApiRequest', items),
}

/** A body that needs no conversion goes on byte for byte (C7.6), but never unparsed: what was judged is what is sent. */
function convertBody(kind: BodyKind, bytes: Buffer, operation: Operation): CallBody {
  const { body, action, items } = operation
  const { format } = action.backend
  const value = PARSERS[kind](bytes, body.schema)
  body.validate?.(value)
  if (format === 'value') return { kind: 'value', value }
  const converted = kind === format ? bytes : Buffer.from(write(value, format, items))
  return { kind: 'bytes', bytes: converted, contentType: MEDIA_TYPE_OF[format] }
}

/** What JSON can say and XML cannot is, in a request, the client's to mend: 400, not the 500 of an answer. */
function write(value: JsonValue, format: 'json' | 'xml', items: Operation['items']): string {
  try {
    return WRITERS[format](value, items)
  } catch (thrown) {
    if (toFault(thrown).code !== 'answer_unconvertible') throw thrown
    throw new Fault('body_malformed', {
      cause: thrown,
      say: 'It holds a character that the data service cannot be sent.',
    })
  }
}
