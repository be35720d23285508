import { pipeline, Readable, type Transform } from 'node:stream'
import type { Backend, BackendAnswer, BackendBody, Call } from '../contracts/backend.ts'
import type { Answer, Exchange } from '../contracts/exchange.ts'
import { bearerChallenge } from '../http/authorization.ts'
import { ENVELOPE_TYPE, errorsEnvelope } from '../http/envelope.ts'
import { stringifyJson } from '../http/json.ts'
import type { Negotiated } from './checks.ts'
import type { OnGone } from './conversion/conversions.ts'
import type { Decision } from './pipeline.ts'
import { envelopeOf } from './read-answer.ts'
import { confirmedTag, tagOf } from './representation-tags.ts'
import type { Runtime } from './runtime.ts'
import {
  asciiOf,
  envelopeStream,
  verifyEnvelope,
  withoutBom,
  wrapJson,
  wrapJsonStream,
} from './json-answer.ts'

type Headers = Readonly<Record<string, string | readonly string[]>>
type Enveloped = Extract<Negotiated, { kind: 'envelope' }>

/**
 * The client's answer, made of the backend's: wrapped, converted or passed on (C2.5, C8.6). Large bodies are converted
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
    : envelop(answer, decision, call, negotiated, runtime)
}

/**
 * Whether a success reaches the client byte for byte. Only then may the client's Accept-Encoding and Range be sent
 * upstream.
 */
export const passesVerbatim = ({
  negotiated,
  operation,
}: Pick<Decision, 'negotiated' | 'operation'>): boolean =>
  negotiated.kind === 'own' || isWanted(operation.backend, negotiated)

const isWanted = ({ format, payload }: Pick<Backend, 'format' | 'payload'>, negotiated: Enveloped): boolean =>
  payload === 'envelope' && format === negotiated.format

/** An upstream's own errors in our envelope with empty `Data` (C8.4), in the format of errors (C2.4). */
export function refuse(answer: BackendAnswer, { negotiation, baseUrl }: Runtime, { head }: Exchange): Answer {
  const format = negotiation.formatOfErrors(head.headers.accept)
  const errors = answer.body.kind === 'errors' ? answer.body.errors : []
  const headers = {
    ...answer.headers,
    ...NEGOTIATED,
    'Content-Type': ENVELOPE_TYPE[format],
    // A 401 passes only if the upstream got the client's own Authorization; the challenge is ours (C4.13).
    ...(answer.status === 401 && { 'WWW-Authenticate': bearerChallenge({ realm: baseUrl }) }),
  }
  return { status: answer.status, headers, body: errorsEnvelope(format, errors) }
}

const NEGOTIATED = { Vary: 'Accept', 'Cache-Control': 'no-store' }

/** The answer's headers (C2.5). `no-store` is the default; an upstream's own `Cache-Control` replaces it. */
function headersOf(
  { headers, speech }: BackendAnswer,
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
  // Code of the user's need not make the same bytes of the same answer of its upstream's.
  const { etag } = headers
  if (typeof etag === 'string') kept['etag'] = tagOf(etag, decision, speech === undefined || !converted)
  return kept
}

const guarded = (answer: Answer): Answer => ({ ...answer, headers: guardBytes(answer.headers) })

/** The success of an action with `produces`, without an envelope (C7.1). */
function passOn(answer: BackendAnswer, decision: Decision, type: string): Answer {
  const { status, body } = answer
  const given = 'contentType' in body ? body.contentType : undefined
  // Nothing has no type, and a media range or a list is none.
  const named = body.kind === 'none' || /[*,]/.test(type) ? undefined : type
  const headers = withLength(headersOf(answer, decision, given ?? named), body)
  return { status, headers, body: body.kind === 'value' ? stringifyJson(body.value) : payloadOf(body) }
}

const payloadOf = (body: BackendBody): Buffer | Readable | undefined =>
  body.kind === 'bytes' ? body.bytes : body.kind === 'stream' ? body.stream : undefined

/** Adds a declared length, in bytes: of a stream, or of what a GET would get. server/exchange counts a whole body. */
const withLength = (headers: Headers, body: BackendBody): Headers =>
  'length' in body && body.length !== undefined
    ? { ...headers, 'Content-Length': String(body.length) }
    : headers

function envelop(
  answer: BackendAnswer,
  decision: Decision,
  call: Call,
  negotiated: Enveloped,
  runtime: Runtime,
): Answer | Promise<Answer> {
  const backend = answer.speech ?? decision.operation.backend
  const { status: given, body } = answer
  const status = given === 204 || given === 205 ? 200 : given
  const hasPayload = body.kind === 'stream' || (body.kind === 'bytes' && body.bytes.length > 0)
  const verbatim = hasPayload && isWanted(backend, negotiated)
  // HEAD has the validators of GET (RFC 9110 §9.3.2). It has no payload, so that the configuration decides.
  const isHead = call.method === 'HEAD' && body.kind !== 'value'
  const converted = isHead && answer.speech === undefined ? !passesVerbatim(decision) : !verbatim
  const plainHeaders = headersOf(answer, decision, typeOfRanges(answer) ?? negotiated.contentType, converted)
  // An upstream's own elements may be those of a page with scripts: XML of C7.5 has no namespaces, and no such elements.
  const headers =
    backend.xml !== undefined && negotiated.format === 'xml' ? guardBytes(plainHeaders) : plainHeaders
  if (isHead) return { status, headers, body: undefined }
  if (verbatim) return passEnvelope(answer, status, headers, negotiated)
  // The bytes of a backend of format `value` are JSON: a module's large value, which was written already.
  if (hasPayload && negotiated.format === 'json' && isBareJson(backend)) return wrapped(status, headers, body)
  const onGone: OnGone = (listener) => call.onCancel(listener)
  return convert(answer, decision, { status, headers }, { format: negotiated.format, onGone }, runtime)
}

/** Whether an answer becomes an envelope by what is put around it. */
const isBareJson = ({ format, payload, data }: Pick<Backend, 'format' | 'payload' | 'data'>): boolean =>
  format !== 'xml' && payload === 'bare' && data === undefined

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
    const text = asciiOf(bytes)
    verifyEnvelope(bytes, text)
    return { status, headers: sent, body: text ?? bytes, ascii: text !== undefined }
  }
  if (body.kind !== 'stream') return { status, headers: sent, body: undefined }
  return { status, headers: sent, body: through(body.stream, envelopeStream(body.length !== undefined)) }
}

/** `identity` is no coding (RFC 9110 §8.4). */
const isCoded = ({ 'content-encoding': coding = 'identity' }: BackendAnswer['headers']): boolean =>
  String(coding).toLowerCase() !== 'identity'

/** `pipeline`, since `pipe` passes no errors on: a stream that breaks must cut the client's connection (C8.4). */
const through = (stream: Readable, transform: Transform): Readable =>
  pipeline(stream, transform, () => undefined)

/** Bytes of a payload that is verified at once, in about 1 ms. A larger one is verified in pieces while it is sent. */
const AT_ONCE = 64 * 1024

function wrapped(status: number, headers: Headers, body: BackendBody): Answer {
  if (body.kind === 'bytes' && body.bytes.length <= AT_ONCE) {
    const envelope = wrapJson(body.bytes)
    return { status, headers, body: envelope, ascii: typeof envelope === 'string' }
  }
  const stream = body.kind === 'bytes' ? Readable.from(piecesOf(body.bytes)) : payloadOf(body)
  return { status, headers, body: stream instanceof Readable ? through(stream, wrapJsonStream()) : undefined }
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += AT_ONCE) yield bytes.subarray(at, at + AT_ONCE)
}

function convert(
  { body, speech }: BackendAnswer,
  { operation }: Decision,
  head: Pick<Answer, 'status' | 'headers'>,
  { format, onGone }: { readonly format: Enveloped['format']; readonly onGone: OnGone },
  { answerLimit, conversions }: Runtime,
): Answer | Promise<Answer> {
  const rules = {
    backend: speech ?? operation.backend,
    to: format,
    items: operation.items,
    limit: answerLimit,
  }
  const answerOf = (bytes: Uint8Array): Answer => ({ ...head, body: bufferOf(bytes) })
  const envelope = envelopeOf(body, rules, conversions, onGone)
  return envelope instanceof Promise ? envelope.then(answerOf) : answerOf(envelope)
}

const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

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
