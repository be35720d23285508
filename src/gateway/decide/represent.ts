import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { AnswerFormat, BackendAnswer, BackendBody, Call } from '../../base/contracts/calls/backend.ts'
import type { Answer, Exchange } from '../../base/contracts/calls/exchange.ts'
import type { AcceptLines, Format, Negotiation } from '../../base/http/head/accept.ts'
import { tokenChallenge } from '../../base/http/head/authorization.ts'
import { readTag, readTagCondition, tagText, withOpaque } from '../../base/http/head/entity-tag.ts'
import { ENVELOPE_TYPE, errorsEnvelope, renderFault } from '../../base/http/envelope.ts'
import { stringifyJson } from '../../base/http/body/json.ts'
import { bufferOf } from '../../base/http/body/read-body.ts'
import { BytesInPieces, Passage, type PieceSource } from '../../base/http/body/pieces.ts'
import { type FaultRow, FAULTS } from '../../base/kernel/fault-table.ts'
import type { Fault } from '../../base/kernel/faults.ts'
import type { Operation } from '../actions/action-table.ts'
import {
  envelopeOf,
  envelopeStage,
  searchBody,
  tooLarge,
  verifyEnvelope,
  withoutBom,
  wrapJson,
  wrapStage,
} from './answer-body.ts'
import type { Negotiated } from './checks.ts'
import type { OnGone } from '../conversion/conversions.ts'
import type { Decision } from './pipeline.ts'
import { tokenSchemeOf } from './checks.ts'
import type { Runtime } from './runtime.ts'

type Headers = Readonly<Record<string, string | readonly string[]>>
type Enveloped = Extract<Negotiated, { kind: 'envelope' }>

/**
 * The client's answer, made from the backend's: wrapped, converted or passed on (C2.5, C8.6). Large bodies are converted
 * on another thread; only then, or for a stream that is converted, is the result a promise.
 * @throws the faults of `envelopeOf`; `upstream_broken` for JSON that does not parse or is not the promised envelope
 */
export function represent(
  answer: BackendAnswer,
  decision: Decision,
  call: Call,
  runtime: Runtime,
  exchange: Exchange,
): Answer | Promise<Answer> {
  const { negotiated } = decision
  if (answer.body.kind === 'errors') return refuse(answer, runtime, exchange)
  if (answer.status === 304)
    return { status: 304, headers: validatorsOf(answer, decision, exchange), body: undefined }
  return negotiated.kind === 'own'
    ? guarded(passOn(answer, decision, negotiated.type))
    : searched(answer, decision, call, negotiated, runtime, exchange)
}

/** Only where a success passes byte for byte, the client's Accept-Encoding and Range may be sent upstream. */
export const passesVerbatim = ({
  negotiated,
  operation,
}: Pick<Decision, 'negotiated' | 'operation'>): boolean =>
  negotiated.kind === 'own' ||
  (isWanted(operation.backend, negotiated) && operation.backend.isSearched !== true)

const isWanted = (
  { format, payload }: Pick<AnswerFormat, 'format' | 'payload'>,
  negotiated: Enveloped,
): boolean => payload === 'envelope' && format === negotiated.format

/** An upstream's own errors in our envelope with empty `Data` (C8.4), in the format of errors (C2.4). */
export function refuse(answer: BackendAnswer, runtime: Runtime, { head }: Exchange): Answer {
  const { negotiation } = runtime
  const format = negotiation.formatOfErrors(head.headers.accept)
  const errors = answer.body.kind === 'errors' ? answer.body.errors : []
  const headers = {
    ...answer.headers,
    ...NEGOTIATED,
    'Content-Type': ENVELOPE_TYPE[format],
    // A 401 passes only if the upstream got the client's own Authorization; the challenge is ours (C4.13).
    ...(answer.status === 401 && {
      'WWW-Authenticate': challengeOf(runtime, tokenSchemeOf(runtime, head), {}),
    }),
  }
  return { status: answer.status, headers, body: errorsEnvelope(format, errors) }
}

const NEGOTIATED = { Vary: 'Accept', 'Cache-Control': 'no-store' }

/** The answer's headers (C2.5). `no-store` is the default; an upstream's own `Cache-Control` replaces it. */
function headersOf(
  { headers, answerFormat }: BackendAnswer,
  decision: Decision,
  contentType?: string,
  converted = false,
): Headers {
  // Ranges are of the upstream's own bytes. Left out by destructuring: `delete` would cost 1 % of a call.
  const { 'accept-ranges': ranges, ...kept }: Record<string, string | readonly string[]> = headers
  if (ranges !== undefined && !converted) kept['accept-ranges'] = ranges
  if (headers['cache-control'] === undefined) kept['Cache-Control'] = 'no-store'
  // A cache may give an answer with a content coding only to clients that accept it.
  kept['Vary'] = headers['content-encoding'] === undefined ? 'Accept' : 'Accept, Accept-Encoding'
  if (contentType !== undefined) kept['Content-Type'] = contentType
  // A module need not make the same bytes from the same answer of its upstream.
  const { etag } = headers
  if (typeof etag === 'string')
    kept['etag'] = tagOf(etag, decision, (answerFormat?.exact ?? answerFormat === undefined) || !converted)
  return kept
}

const guarded = (answer: Answer): Answer => ({ ...answer, headers: guardBytes(answer.headers) })

/** The success of an action with `produces`, without an envelope (C7.1). */
function passOn(answer: BackendAnswer, decision: Decision, type: string): Answer {
  const { status, body } = answer
  const given = 'contentType' in body ? body.contentType : undefined
  // Without a body there is no type, and a media range or a list is not a type.
  const named = body.kind === 'none' || /[*,]/.test(type) ? undefined : type
  const headers = withLength(headersOf(answer, decision, given ?? named), body)
  return { status, headers, body: body.kind === 'value' ? stringifyJson(body.value) : payloadOf(body) }
}

const payloadOf = (body: BackendBody): Buffer | PieceSource | undefined =>
  body.kind === 'bytes' ? body.bytes : body.kind === 'stream' ? body.pieces : undefined

/** Adds a declared length, in bytes: of a stream, or of what a GET would get. gateway/server/write-answer counts a whole body. */
const withLength = (headers: Headers, body: BackendBody): Headers =>
  'length' in body && body.length !== undefined
    ? { ...headers, 'Content-Length': String(body.length) }
    : headers

/** Some services answer 200 where they mean an error (C8.8): an answer that may be one is held until that is known. */
function searched(
  answer: BackendAnswer,
  decision: Decision,
  call: Call,
  negotiated: Enveloped,
  runtime: Runtime,
  exchange: Exchange,
): Answer | Promise<Answer> {
  const { search, body } = answer
  if (search === undefined || (body.kind !== 'bytes' && body.kind !== 'stream'))
    return envelop(answer, decision, call, negotiated, runtime)
  const { answerLimit: limit, conversions } = runtime
  const rules = {
    limit,
    sharer: { owner: decision.operation.backend.name, client: decision.principal?.clientKey },
  }
  const settle = ({ bytes, found }: Awaited<ReturnType<typeof searchBody>>): Answer | Promise<Answer> => {
    if (found !== undefined) return refuse(search.answerFound(found), runtime, exchange)
    const whole = { kind: 'bytes', bytes, contentType: body.contentType } as const
    return envelop({ ...answer, body: whole }, decision, call, negotiated, runtime)
  }
  const known = searchBody(body, search, rules, conversions, (listener) => call.onCancel(listener))
  return known instanceof Promise ? known.then(settle) : settle(known)
}

function envelop(
  answer: BackendAnswer,
  decision: Decision,
  call: Call,
  negotiated: Enveloped,
  runtime: Runtime,
): Answer | Promise<Answer> {
  const backend = answer.answerFormat ?? decision.operation.backend
  const { status: given, body } = answer
  const status = given === 204 || given === 205 ? 200 : given
  const hasPayload = body.kind === 'stream' || (body.kind === 'bytes' && body.bytes.length > 0)
  const verbatim = hasPayload && isWanted(backend, negotiated)
  // HEAD has the validators of GET (RFC 9110 §9.3.2). It has no payload, so that the configuration decides.
  const isHead = call.method === 'HEAD' && body.kind !== 'value'
  const converted = isHead && answer.answerFormat === undefined ? !passesVerbatim(decision) : !verbatim
  const plainHeaders = headersOf(answer, decision, typeOfRanges(answer) ?? negotiated.contentType, converted)
  // An upstream's own elements may be those of a page with scripts: XML of C7.5 has no namespaces, and no such elements.
  const headers =
    backend.xml !== undefined && negotiated.format === 'xml' ? guardBytes(plainHeaders) : plainHeaders
  // The bytes of a backend of format `value` are JSON: a module's large value, which was written already.
  const isWrapped = negotiated.format === 'json' && isBareJson(backend)
  if (isHead) {
    const isHeld =
      decision.operation.backend.types === undefined && !isWrapped && !isWanted(backend, negotiated)
    // Its GET would have to be held as a whole, to be converted.
    if (isHeld && 'length' in body && (body.length ?? 0) > runtime.answerLimit)
      throw tooLarge(runtime.answerLimit)
    return { status, headers, body: undefined }
  }
  if (verbatim) return passEnvelope(answer, status, headers, negotiated)
  if (hasPayload && isWrapped) return wrapped(status, headers, body)
  const onGone: OnGone = (listener) => call.onCancel(listener)
  return convert(answer, decision, { status, headers }, { format: negotiated.format, onGone }, runtime)
}

/** Whether an answer becomes an envelope by text that is put before and behind it. */
const isBareJson = ({ format, payload, data }: Pick<AnswerFormat, 'format' | 'payload' | 'data'>): boolean =>
  format !== 'xml' && format !== 'text' && payload === 'bare' && data === undefined

/** The type of a 206 with several ranges (RFC 9110 §14.6); undefined for any other answer. */
function typeOfRanges({ status, body }: BackendAnswer): string | undefined {
  if (status !== 206 || (body.kind !== 'bytes' && body.kind !== 'stream')) return undefined
  return body.contentType?.startsWith('multipart/') === true ? body.contentType : undefined
}

/**
 * Passes on an upstream's envelope in the format that the client asked for. JSON is verified (C8.4): a whole body at
 * once, a stream while it passes. Not verified, but guarded, are XML, parts (206) and bodies with a content coding.
 * @throws Fault `upstream_broken` for a whole body that is no envelope; a stream breaks with it
 */
function passEnvelope(
  { body, headers: given }: BackendAnswer,
  status: number,
  headers: Headers,
  { format }: Enveloped,
): Answer {
  const sent = withLength(headers, body)
  if (format !== 'json' || status === 206 || isCoded(given))
    return { status, headers: guardBytes(sent), body: payloadOf(body) }
  if (body.kind === 'bytes') {
    const bytes = withoutBom(body.bytes)
    verifyEnvelope(bytes)
    return { status, headers: sent, body: bytes }
  }
  if (body.kind !== 'stream') return { status, headers: sent, body: undefined }
  return { status, headers: sent, body: new Passage(body.pieces, envelopeStage(body.length)) }
}

/** `identity` is no coding (RFC 9110 §8.4). */
const isCoded = ({ 'content-encoding': coding = 'identity' }: BackendAnswer['headers']): boolean =>
  String(coding).toLowerCase() !== 'identity'

/** The most bytes of a payload that is verified at once. A larger one is verified in pieces while it is sent. */
const AT_ONCE = 256 * 1024

function wrapped(status: number, headers: Headers, body: BackendBody): Answer {
  if (body.kind === 'bytes' && body.bytes.length <= AT_ONCE)
    return { status, headers, body: wrapJson(body.bytes) }
  const payload = payloadOf(body)
  const pieces = Buffer.isBuffer(payload) ? new BytesInPieces(payload) : payload
  return { status, headers, body: pieces && new Passage(pieces, wrapStage()) }
}

function convert(
  { body, answerFormat }: BackendAnswer,
  { operation, principal }: Decision,
  head: Pick<Answer, 'status' | 'headers'>,
  { format, onGone }: { readonly format: Enveloped['format']; readonly onGone: OnGone },
  { answerLimit, conversions }: Runtime,
): Answer | Promise<Answer> {
  const rules = {
    backend: answerFormat ?? operation.backend,
    to: format,
    items: operation.items,
    limit: answerLimit,
    client: principal?.clientKey,
  }
  const answerOf = (bytes: Uint8Array): Answer => ({ ...head, body: bufferOf(bytes) })
  const envelope = envelopeOf(body, rules, conversions, onGone)
  return envelope instanceof Promise ? envelope.then(answerOf) : answerOf(envelope)
}

/** A 304 has the validators that a 200 would have (RFC 9110 §15.4.5). */
function validatorsOf(answer: BackendAnswer, decision: Decision, { head }: Exchange): Headers {
  const { etag } = answer.headers
  const asked = head.headers['if-none-match']
  const headers = {
    ...headersOf(answer, decision, undefined, !passesVerbatim(decision)),
    ...(typeof etag === 'string' && { etag: confirmedTag(etag, decision, asked?.toString()) }),
  }
  return decision.negotiated.kind === 'own' ? guardBytes(headers) : headers
}

/**
 * Headers for bytes of an upstream that Postern did not read (C2.5). The sign-in pages have the same origin, so a
 * browser must not guess another type, and a page of an upstream must load nothing, run nothing and have no origin.
 */
const GUARDS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
}

const GUARDED: ReadonlySet<string> = new Set(Object.keys(GUARDS).map((name) => name.toLowerCase()))

/** Sets the guards of C2.5. They replace the upstream's headers of these names, in any case. */
export function guardBytes(headers: Answer['headers']): Answer['headers'] {
  const guarded: Record<string, string | readonly string[]> = {}
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined && !GUARDED.has(name.toLowerCase())) guarded[name] = value
  }
  return Object.assign(guarded, GUARDS)
}

/** Makes the answer of a fault under `/api`, and of requests that belong neither to `/api` nor to identity (C2.3). */
export type FaultRenderer = (fault: Fault, accept: AcceptLines, scheme?: string) => Answer

/** What every challenge of a deployment has (C4.13). */
type Challenging = Pick<Runtime, 'baseUrl' | 'resourceMetadata' | 'proofs'>

/** Renders faults as envelopes. Bodies, and challenges without a scope, are rendered in advance. */
export function compileFaultRenderer(negotiation: Negotiation, challenging: Challenging): FaultRenderer {
  const rows = Object.entries<FaultRow>(FAULTS)
  const ready = (scheme: string): ReadonlyMap<string, string> =>
    new Map(rows.map(([code, row]) => [code, challengeOf(challenging, scheme, row)]))
  const bearer = ready('Bearer')
  const others = challenging.proofs && ready(challenging.proofs.scheme)
  return (fault, accept, scheme = 'Bearer') => {
    const format: Format = negotiation.formatOfErrors(accept)
    const { status, contentType, body } = renderFault(fault, format)
    const headers: Record<string, string> = {
      'Content-Type': contentType,
      Vary: 'Accept',
      'Cache-Control': 'no-store',
    }
    const { retryAfter, allow, scope, contentRange, headers: more } = fault.facts
    if (status === 401)
      headers['WWW-Authenticate'] =
        scope === undefined
          ? ((scheme === 'Bearer' ? bearer : others)?.get(fault.code) ?? '')
          : challengeOf(challenging, scheme, fault.row, scope)
    if (retryAfter !== undefined || status === 503 || status === 429)
      headers['Retry-After'] = String(Math.max(1, Math.ceil(retryAfter ?? DEFAULT_RETRY_AFTER)))
    if (allow) headers.Allow = allow.join(', ')
    if (contentRange !== undefined) headers['Content-Range'] = contentRange
    return { status, headers: more === undefined ? headers : { ...headers, ...more }, body }
  }
}

/** The default of Retry-After, in seconds. Every 503 and 429 has one (C2). */
const DEFAULT_RETRY_AFTER = 5

function challengeOf(
  { baseUrl, proofs, resourceMetadata }: Challenging,
  called: string,
  { challenge: error, description = '', bound }: Partial<FaultRow>,
  scope?: string,
): string {
  const scheme = bound === true && proofs !== undefined ? proofs.scheme : called
  return tokenChallenge({
    scheme,
    realm: baseUrl,
    ...(error && { error, description }),
    ...(scope !== undefined && { scope }),
    ...(scheme === proofs?.scheme && { algs: proofs.algorithms }),
    resourceMetadata,
  })
}

// Entity tags of representations (C8.6). An upstream's tag is of its own bytes; Postern makes several representations of
// them. Each gets the upstream's tag with a mark behind it, so that no two have the same tag (RFC 9110 §8.8.1), and
// conditions go to the upstream with its own tag again.

type Represented = Pick<Decision, 'negotiated' | 'operation'>

const MARK = /-(?:json|xml|own)\.[\w-]{8}$/

/** The mark of bytes that pass unchanged, without an envelope. Only a tag that already ends like a mark gets it. */
const OWN = '-own.upstream'

/** To be raised when the same answer of an upstream becomes other bytes than before, by another version of Postern. */
const EDITION = 2

const marks = new WeakMap<Operation, Map<string, string>>()

/** The mark of a representation: a digest of all that decides which bytes are made from an upstream's. */
function markOf({ negotiated, operation }: Represented): string {
  if (negotiated.kind === 'own') return OWN
  const { contentType, version, format } = negotiated
  const own = marks.get(operation) ?? new Map<string, string>()
  marks.set(operation, own)
  const key = `${version} ${contentType}`
  const known = own.get(key)
  if (known !== undefined) return known
  const { backend, items } = operation
  const { types } = backend
  const facts: unknown[] = [EDITION, key, backend.format, backend.payload, backend.data, backend.xml, items]
  if (types !== undefined) facts.push(types)
  const digest = createHash('sha256').update(JSON.stringify(facts, withMaps)).digest('base64url')
  const mark = `-${format}.${digest.slice(0, 8)}`
  own.set(key, mark)
  return mark
}

const withMaps = (_name: string, value: unknown): unknown => (value instanceof Map ? [...value] : value)

/**
 * An upstream's `ETag` as the client gets it. A value that is no entity tag stays as it came.
 * @param isExact whether the same bytes of the upstream always become the same bytes: if not, the tag is weak
 */
function tagOf(etag: string, decision: Represented, isExact: boolean): string {
  const tag = readTag(etag)
  if (tag === undefined) return etag
  const { opaque } = tag
  const mark = markOf(decision)
  return tagText({
    weak: tag.weak || !isExact,
    opaque: mark === OWN && !MARK.test(opaque) ? opaque : opaque + mark,
  })
}

/**
 * The `ETag` of a 304. A client may still have a tag without a mark, from before there were marks. That tag is
 * confirmed: for another one the client has no stored answer (RFC 9111 §4.3.4).
 * @param asked the client's If-None-Match, if any
 */
function confirmedTag(etag: string, decision: Represented, asked: string | undefined): string {
  const marked = tagOf(etag, decision, true)
  const [given, shown] = [readTag(etag)?.opaque, readTag(marked)?.opaque]
  const condition = (asked !== undefined && readTagCondition(asked)) || '*'
  if (condition === '*' || condition.some(({ opaque }) => opaque === shown)) return marked
  const old = condition.find(({ opaque }) => opaque === given)
  return old === undefined ? marked : tagText(old)
}

const CONDITIONS = ['if-match', 'if-none-match', 'if-range'] as const

/**
 * Takes the marks out of a call's conditions. For GET and HEAD only the mark of the requested representation: a client
 * that has another one must not be answered that it has this one. A change is of the data, whatever its representation.
 * The other tags keep their marks, and so match none of the upstream's.
 */
export function unmarkConditions(
  headers: Record<string, string>,
  decision: Represented,
  method: string,
): void {
  for (const name of CONDITIONS) {
    const value = headers[name]
    if (value === undefined) continue
    const only = method === 'GET' || method === 'HEAD' ? markOf(decision) : undefined
    headers[name] = withOpaque(value, (opaque) => {
      const mark = MARK.exec(opaque)
      return mark === null || (only !== undefined && mark[0] !== only) ? opaque : opaque.slice(0, mark.index)
    })
  }
}
