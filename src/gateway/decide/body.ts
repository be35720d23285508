import { Buffer } from 'node:buffer'
import { roughLength } from '../backends/templates/body.ts'
import type { Call, CallBody } from '../../base/contracts/calls/backend.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { CheckDescription, CheckResult } from '../../base/contracts/calls/explanation.ts'
import { type BodyDeclaration, declaredBody, type Head } from '../../base/http/head/head.ts'
import { type JsonObject, parseJson, parseJsonInSlices } from '../../base/http/body/json.ts'
import {
  type BodyKind,
  checkContentType,
  checkOwnContentType,
  MEDIA_TYPE_OF,
} from '../../base/http/head/media-type.ts'
import type { RequestTarget } from '../../base/http/head/request-target.ts'
import { bufferOf, readBody } from '../../base/http/body/read-body.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { BodyRule, Operation } from '../actions/action-table.ts'
import { NO_QUERY, type QueryValues } from '../actions/parameters.ts'
import { isSmall } from '../conversion/at-once.ts'
import type { Conversions, OnGone, Sharer } from '../conversion/conversions.ts'
import {
  bodyCheck,
  checkedBody,
  type GivenBody,
  makeOf,
  type Making,
  PARSERS,
  requestBody,
  writeMaking,
} from '../conversion/bodies.ts'

/** How the body is to be taken; known before any of it is read (C4.11, C4.17). */
export type BodyPlan =
  | { readonly kind: 'none' }
  /** A body of at most `limit` bytes; an empty one counts as none. */
  | { readonly kind: 'parsed'; readonly as: BodyKind; readonly limit: number }
  /** An action with `consumes`: streams through. */
  | { readonly kind: 'opaque'; readonly contentType: string | undefined; readonly length: number | undefined }

const NO_PLAN: BodyPlan = { kind: 'none' }
export const NO_BODY: CallBody = { kind: 'none' }

/**
 * First part of C4.11.
 * @returns the declared parameters, with the defaults of those that the query lacks
 * @throws Fault `query_invalid`
 */
export const checkParameters = ({ query }: RequestTarget, { query: rule }: Operation): QueryValues =>
  rule === undefined ? NO_QUERY : rule.read(query)

/** Describes the result of the first part of C4.11. None of the query's values is repeated. */
export function explainParameters(
  operation: Operation | undefined,
  { fault }: CheckResult,
): CheckDescription {
  const declared = operation?.query?.parameters
  const names = declared?.map(({ name, required }) => (required ? `${name} (required)` : name)) ?? []
  const passed =
    names.length === 0
      ? 'No parameter of the query is declared: all pass unchecked.'
      : `Declared: ${names.join(', ')}. What the query has of them fits.`
  return {
    facts: {
      declared: declared?.map(({ name }) => name),
      required: declared?.filter(({ required }) => required).map(({ name }) => name),
    },
    words:
      operation === undefined
        ? 'Which parameters it takes is not known without the action.'
        : (fault?.fullText ?? passed),
  }
}

/**
 * Second part of C4.11: Content-Type, then the declared size, then whether there may or must be a body.
 * @param limit bytes
 * @throws Fault `unsupported_media_type`, `body_partial`, `body_too_large`, `body_unexpected`, `body_missing`
 */
export function checkBody(head: Head, operation: Operation, limit: number): BodyPlan {
  const declared = declaredBody(head)
  const facts = {
    contentType: head.headers['content-type'],
    contentEncoding: head.headers['content-encoding'],
    hasBody: declared !== 0,
  }
  if (operation.consumes) {
    checkOwnContentType(facts, operation.consumes)
    return planOpaque(facts.contentType, declared)
  }
  const kind = checkContentType(facts, undefined, operation.body.types)
  if (declared === 0 || kind === 'none') return planNothing(operation.body)
  if (head.headers['content-range'] !== undefined) throw new Fault('body_partial')
  if (declared !== 'chunked') {
    if (declared > limit) throw new Fault('body_too_large')
    if (operation.body.kind === 'none') throw new Fault('body_unexpected')
  }
  return { kind: 'parsed', as: kind, limit }
}

/** The plan for a body that passes unread. */
export function planOpaque(contentType: string | undefined, declared: BodyDeclaration): BodyPlan {
  if (declared === 0) return NO_PLAN
  return { kind: 'opaque', contentType, length: declared === 'chunked' ? undefined : declared }
}

function planNothing(rule: BodyRule): BodyPlan {
  if (rule.kind === 'required') throw new Fault('body_missing')
  return NO_PLAN
}

/**
 * Last part of C4.11: reads the body, parses it, checks it against the schema. A promise only where there is a body to
 * read. Throws and rejects with Fault `body_too_large`, `body_malformed`, `body_missing`, `body_unexpected`,
 * `body_invalid`, `client_gone`, `conversion_busy`.
 * @returns the body in the backend's format
 */
export function readCallBody(
  plan: BodyPlan,
  exchange: Pick<Exchange, 'body' | 'onGone'>,
  operation: Operation,
  conversions: Conversions,
  record?: BodyRecord,
  client?: string,
): CallBody | Promise<CallBody> {
  if (plan.kind === 'none') return NO_BODY
  if (plan.kind === 'opaque') return { ...plan, kind: 'stream', stream: exchange.body }
  const onGone: OnGone = (listener) => exchange.onGone(listener)
  return readBody(exchange.body, plan.limit).then((bytes) => {
    const body = parseBody(plan, { bytes, onGone, client }, operation, conversions)
    return record === undefined ? body : recorded(body, record, bytes, plan.as)
  })
}

const TAKEN = {
  none: 'There is no body, and none is needed.',
  parsed: 'The body parses, and fits the action.',
  opaque: 'The body passes unread.',
} as const

/** Describes the result of the second and the last part of C4.11. No part of the body is repeated. @param bytes how many there are */
export function explainBody(
  head: Head,
  bytes: number,
  limit: number,
  operation: Operation | undefined,
  plan: BodyPlan | undefined,
  { verdict, fault }: CheckResult,
): CheckDescription {
  const rule = operation?.body.kind
  const contentType = head.headers['content-type']
  const declared = declaredBody(head)
  const taken = verdict === 'unknown' ? 'The body is not read.' : TAKEN[plan?.kind ?? 'none']
  return {
    facts: { contentType, declared, bytes, limit, rule, consumes: operation?.consumes, taken: plan?.kind },
    words:
      rule === undefined ? 'What body it takes is not known without the action.' : (fault?.fullText ?? taken),
  }
}

/** Takes a body that has been read and that passed its checks, as it came (C12.2.2). */
export interface BodyRecord {
  /** A promise only where that takes long. */
  received(bytes: Buffer, as: BodyKind | undefined): Promise<void> | undefined
}

function recorded(
  body: CallBody | Promise<CallBody>,
  record: BodyRecord,
  bytes: Buffer,
  as: BodyKind,
): CallBody | Promise<CallBody> {
  if (body instanceof Promise) return body.then((checked) => recorded(checked, record, bytes, as))
  return record.received(bytes, as)?.then(() => body) ?? body
}

interface Received {
  readonly bytes: Buffer
  readonly onGone: OnGone
  /** The client whose call it is; undefined if it is not known. */
  readonly client?: string | undefined
}

/** Does the rest of C4.11 once the body has been read. Throws and rejects as `readCallBody`. */
export function parseBody(
  { as }: Extract<BodyPlan, { kind: 'parsed' }>,
  received: Received,
  operation: Operation,
  conversions: Conversions,
): CallBody | Promise<CallBody> {
  const { bytes } = received
  if (bytes.length === 0) return (planNothing(operation.body), NO_BODY)
  if (operation.body.kind === 'none') throw new Fault('body_unexpected')
  const use = operation.backend.bodyUse === undefined ? operation : inOwnFormat(as, operation)
  return isSmall(bytes, as === 'xml' || use.backend.xml !== undefined ? 'xml' : 'json')
    ? convertBody(as, bytes, use)
    : convertLarge(as, received, use, conversions)
}

/** The parts of an operation by which a body is checked and converted. */
type BodyUse = Pick<Operation, 'body' | 'items'> & {
  readonly backend: Pick<Operation['backend'], 'name' | 'format' | 'xml' | 'keptOut'>
}

/** For an explanation: a body that another one is made of (C8.7) is checked and not made, so it stays in its own format. */
const inOwnFormat = (as: BodyKind, { body, items, backend: { name, xml, keptOut } }: Operation): BodyUse => ({
  body,
  items,
  backend: as === 'xml' ? { name, format: 'xml', xml, keptOut } : { name, format: 'json', keptOut },
})

/** A body that needs no conversion is sent on byte for byte (C7.6), but only after it was parsed and checked. */
function convertBody(kind: BodyKind, bytes: Buffer, { body, backend, items }: BodyUse): CallBody {
  const { format, xml, keptOut } = backend
  const validate = bodyCheck(body.validate, keptOut?.members)
  const { schema } = body
  if (format !== 'value') {
    const converted = requestBody(kind, bytes, format, { schema, items, xml, validate })
    return { kind: 'bytes', bytes: bufferOf(converted), contentType: MEDIA_TYPE_OF[format] }
  }
  const value = PARSERS[kind](bytes, schema)
  validate?.(value)
  return { kind: 'value', value }
}

/** The same for a large one, on another thread (T4.7). A value is parsed here, in slices: it cannot cross threads. */
function convertLarge(
  kind: BodyKind,
  { bytes, onGone, client }: Received,
  { body, backend, items }: BodyUse,
  conversions: Conversions,
): Promise<CallBody> {
  const { format, name, xml, keptOut } = backend
  const to = format === 'xml' ? 'xml' : 'json'
  const { schema } = body
  const kept = keptOut?.members
  const sharer = { owner: name, client }
  const task = { kind: 'request', bytes, as: kind, to, schema, kept, items, xml } as const
  return conversions.withSlot<CallBody>(sharer, onGone, async () => {
    const checked = await conversions.run(task, sharer)
    if (format === 'value') return { kind: 'value', value: await parseJsonInSlices(checked) }
    return { kind: 'bytes', bytes: checked, contentType: MEDIA_TYPE_OF[format] }
  })
}

/** The body that is sent for a call whose templates name the client's, or make another one (C8.7). */
interface MadeBody {
  readonly body: CallBody
  readonly found: Call['found']
}

/**
 * As `readCallBody`, where the operation's backend has a `bodyUse`. Throws and rejects with the faults of `buildBody`
 * besides.
 */
export function readMadeBody(
  plan: BodyPlan,
  exchange: Pick<Exchange, 'body' | 'onGone'>,
  operation: Operation,
  conversions: Conversions,
  making: Making,
  record?: BodyRecord,
  client?: string,
): MadeBody | Promise<MadeBody> {
  const onGone: OnGone = (listener) => exchange.onGone(listener)
  const make = (bytes: Buffer | undefined, as: BodyKind | undefined) =>
    makeBody({ bytes, as, onGone, client }, operation, conversions, making)
  if (plan.kind === 'opaque')
    throw new Fault('internal', { detail: 'a body that is not read was to be made' })
  if (plan.kind === 'none') return make(undefined, undefined)
  return readBody(exchange.body, plan.limit).then(async (bytes) => {
    if (bytes.length === 0) return (planNothing(operation.body), make(undefined, undefined))
    if (operation.body.kind === 'none') throw new Fault('body_unexpected')
    const made = await make(bytes, plan.as)
    await record?.received(bytes, plan.as)
    return made
  })
}

interface GivenBytes extends Pick<Received, 'onGone' | 'client'> {
  readonly bytes: Buffer | undefined
  readonly as: BodyKind | undefined
}

function makeBody(
  { bytes, as, onGone, client }: GivenBytes,
  { body, backend, items }: Operation,
  conversions: Conversions,
  making: Making,
): MadeBody | Promise<MadeBody> {
  const { recipe } = making
  const to = backend.format === 'xml' ? 'xml' : 'json'
  const type = recipe?.type ?? MEDIA_TYPE_OF[to]
  const isXml = as === 'xml' || backend.xml !== undefined || recipe?.format === 'xml'
  const given: GivenBody = {
    bytes,
    as,
    to,
    schema: body.schema,
    kept: backend.keptOut?.members,
    validate: body.validate,
    items,
    xml: backend.xml,
  }
  const isAtOnce = (length: number): boolean => isSmall({ length }, isXml ? 'xml' : 'json')
  if (isAtOnce(bytes?.length ?? 0)) {
    const value = checkedBody(given, making)
    if (recipe === undefined || isAtOnce(roughLength(recipe, making.values, { value, bytes }))) {
      const made = makeOf(value, given, making)
      return { body: bodyOf(made.bytes, type), found: made.found }
    }
  }
  return makeElsewhere(given, type, { conversions, making, sharer: { owner: backend.name, client }, onGone })
}

interface Elsewhere {
  readonly conversions: Conversions
  readonly making: Making
  readonly sharer: Sharer
  readonly onGone: OnGone
}

function makeElsewhere(
  { bytes = NOTHING, as = 'json', to, schema, kept, items, xml }: GivenBody,
  type: string,
  { conversions, making, sharer, onGone }: Elsewhere,
): Promise<MadeBody> {
  return conversions.withSlot(sharer, onGone, async () => {
    const request = { kind: 'request', bytes, as, to, schema, kept, items, xml } as const
    const task = { ...request, making: writeMaking(making) }
    const made = await conversions.runWhole(task, sharer)
    const found = parseJson(Buffer.from(made.found ?? '{}'), FOUND_LIMITS) as JsonObject
    return { body: bodyOf(made.bytes, type), found }
  })
}

const NOTHING = Buffer.alloc(0)
/** They were kept when the body was parsed. */
const FOUND_LIMITS = { depth: Infinity, nodes: Infinity }

/** An empty one, such as a form without fields, is none. */
const bodyOf = (bytes: Uint8Array | undefined, contentType: string): CallBody =>
  bytes === undefined || bytes.length === 0 ? NO_BODY : { kind: 'bytes', bytes: bufferOf(bytes), contentType }
