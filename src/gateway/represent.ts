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

/** A backend's answer as the client asked for it (C2.5, C8.6): converted, wrapped, or passed on. */
export function represent(
  answer: BackendAnswer,
  decision: Decision,
  call: Call,
  runtime: Runtime,
  exchange: Exchange,
): Answer | Promise<Answer> {
  const { negotiated } = decision
  if (answer.body.kind === 'errors') return refuse(answer, runtime, exchange)
  if (answer.status === 304) return { status: 304, headers: validatorsOf(answer, decision), body: undefined }
  return negotiated.kind === 'own'
    ? guarded(passOn(answer, negotiated.type))
    : envelop(answer, decision, call, negotiated, runtime)
}

/** Whether an answer's bytes will reach the client as they are: then its Accept-Encoding and ranges may go upstream. */
export const passesVerbatim = ({
  negotiated,
  operation,
}: Pick<Decision, 'negotiated' | 'operation'>): boolean =>
  negotiated.kind === 'own' || speaks(operation.action.backend, negotiated)

const speaks = ({ format, payload }: Backend, negotiated: Enveloped): boolean =>
  payload === 'envelope' && format === negotiated.format

/** An upstream's own errors in our envelope, `Data` emptied (C8.4), in the format of errors (C2.4). */
export function refuse(answer: BackendAnswer, { negotiation, baseUrl }: Runtime, { head }: Exchange): Answer {
  const format = negotiation.formatOfErrors(head.headers.accept)
  const errors = answer.body.kind === 'errors' ? answer.body.errors : []
  const headers = {
    ...answer.headers,
    ...NEGOTIATED,
    'Content-Type': ENVELOPE_TYPE[format],
    // C4.13: an upstream's 401 passes where it was sent the client's own token, and then with our challenge.
    ...(answer.status === 401 && { 'WWW-Authenticate': bearerChallenge({ realm: baseUrl }) }),
  }
  return { status: answer.status, headers, body: errorsEnvelope(format, errors) }
}

const NEGOTIATED = { Vary: 'Accept', 'Cache-Control': 'no-store' }

/** An upstream's `Cache-Control` counts for the data that is its own; what Postern makes is not stored (C2.5). */
function headersOf({ headers }: BackendAnswer, contentType?: string, converted = false): Headers {
  // The ranges that an upstream offers are of its own bytes. Left out, not deleted: that would cost 1 % of a call.
  const { 'accept-ranges': ranges, ...told }: Record<string, string | readonly string[]> = headers
  if (ranges !== undefined && !converted) told['accept-ranges'] = ranges
  if (headers['cache-control'] === undefined) told['Cache-Control'] = 'no-store'
  // What is not coded may be given to everyone; what is, not to those who can't read it.
  told['Vary'] = headers['content-encoding'] === undefined ? 'Accept' : 'Accept, Accept-Encoding'
  if (contentType !== undefined) told['Content-Type'] = contentType
  if (converted) weakenEtag(told)
  return told
}

const guarded = (answer: Answer): Answer => ({ ...answer, headers: guardBytes(answer.headers) })

/** An action with `produces`: the success goes on as the backend gave it (C7.1). */
function passOn(answer: BackendAnswer, type: string): Answer {
  const { status, body } = answer
  if (body.kind === 'none') return { status, headers: headersOf(answer), body: undefined }
  const given = body.kind === 'bytes' || body.kind === 'stream' ? body.contentType : undefined
  // A range, or several, is what was asked for; what it is only its maker could have said.
  const headers = withLength(headersOf(answer, given ?? (/[*,]/.test(type) ? undefined : type)), body)
  return { status, headers, body: body.kind === 'value' ? stringifyJson(body.value) : payloadOf(body) }
}

const payloadOf = (body: BackendBody): Buffer | Readable | undefined =>
  body.kind === 'bytes' ? body.bytes : body.kind === 'stream' ? body.stream : undefined

/** A stream's declared length goes on; that of bytes is seen by whoever writes them. */
const withLength = (headers: Headers, body: BackendBody): Headers =>
  body.kind === 'stream' && body.length !== undefined
    ? { ...headers, 'Content-Length': String(body.length) }
    : headers

function envelop(
  answer: BackendAnswer,
  decision: Decision,
  call: Call,
  negotiated: Enveloped,
  runtime: Runtime,
): Answer | Promise<Answer> {
  const { backend } = decision.operation.action
  const { status: given, body } = answer
  const status = given === 204 || given === 205 ? 200 : given
  const hasPayload = body.kind === 'stream' || (body.kind === 'bytes' && body.bytes.length > 0)
  const verbatim = hasPayload && speaks(backend, negotiated)
  // HEAD tells the validators that GET would (RFC 9110 §9.3.2): it has no payload to tell them by.
  const isHead = call.method === 'HEAD' && body.kind !== 'value'
  const converted = isHead ? !passesVerbatim(decision) : !verbatim
  const headers = headersOf(answer, typeOfRanges(answer) ?? negotiated.contentType, converted)
  if (isHead) return { status, headers, body: undefined }
  if (verbatim) return passEnvelope(answer, status, headers, negotiated)
  // A module's bytes are JSON text too: what it answers as a value never comes here as bytes, unless it is large.
  if (hasPayload && backend.format !== 'xml' && negotiated.format === 'json' && backend.payload === 'bare')
    return wrapped(status, headers, body)
  const onGone: OnGone = (listener) => call.onCancel(listener)
  return convert(answer, decision, { status, headers }, { format: negotiated.format, onGone }, runtime)
}

/** Of an answer that holds several ranges of what was asked for (RFC 9110 §14.6). */
function typeOfRanges({ status, body }: BackendAnswer): string | undefined {
  if (status !== 206 || (body.kind !== 'bytes' && body.kind !== 'stream')) return undefined
  return body.contentType?.startsWith('multipart/') === true ? body.contentType : undefined
}

/**
 * An upstream's envelope in the format that was asked for goes on as it came, verified if it is JSON (C8.4): whole where
 * it is whole, else as it passes. A part of one (206) is no JSON by itself, and what is coded is not decoded for it.
 */
function passEnvelope(
  { body, headers: given }: BackendAnswer,
  status: number,
  headers: Headers,
  { format }: Enveloped,
): Answer {
  const told = withLength(headers, body)
  if (format !== 'json' || status === 206 || isCoded(given))
    return { status, headers: guardBytes(told), body: payloadOf(body) }
  if (body.kind === 'bytes') {
    const bytes = withoutBom(body.bytes)
    const text = asciiOf(bytes)
    verifyEnvelope(bytes, text)
    return { status, headers: told, body: text ?? bytes, ascii: text !== undefined }
  }
  if (body.kind !== 'stream') return { status, headers: told, body: undefined }
  return { status, headers: told, body: through(body.stream, envelopeStream(body.length !== undefined)) }
}

/** `identity` says that nothing is coded (RFC 9110 §8.4). */
const isCoded = ({ 'content-encoding': coding = 'identity' }: BackendAnswer['headers']): boolean =>
  String(coding).toLowerCase() !== 'identity'

/** Pipeline, not pipe: a stream that breaks must break what it goes through, so that the client sees a cut (C8.4). */
const through = (stream: Readable, transform: Transform): Readable =>
  pipeline(stream, transform, () => undefined)

/** Bytes of a payload that is verified at once: a millisecond's work. A larger one is, piece by piece, as it is sent. */
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
  { body }: BackendAnswer,
  { operation }: Decision,
  head: Pick<Answer, 'status' | 'headers'>,
  { format, onGone }: { readonly format: Enveloped['format']; readonly onGone: OnGone },
  { answerLimit, conversions }: Runtime,
): Answer | Promise<Answer> {
  const rules = { backend: operation.action.backend, to: format, items: operation.items, limit: answerLimit }
  const answerOf = (bytes: Uint8Array): Answer => ({ ...head, body: bufferOf(bytes) })
  const envelope = envelopeOf(body, rules, conversions, onGone)
  return envelope instanceof Promise ? envelope.then(answerOf) : answerOf(envelope)
}

const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** 304 tells the validators that 200 would (RFC 9110 §15.4.5). */
function validatorsOf(answer: BackendAnswer, decision: Decision): Headers {
  const headers = headersOf(answer, undefined, !passesVerbatim(decision))
  return decision.negotiated.kind === 'own' ? guardBytes(headers) : headers
}

/** The bytes are not the upstream's any more: its strong validator is a weak one at best (RFC 9110 §8.8.1). */
function weakenEtag(headers: Record<string, string | readonly string[]>): void {
  const { etag } = headers
  if (typeof etag === 'string' && etag.startsWith('"')) headers['etag'] = `W/${etag}`
}

/**
 * What goes with bytes that are an upstream's own, whatever they are (C7.1 `produces`, report-only areas): the sign-in
 * pages have the same origin. So a browser takes them for nothing but what their type says, and opens them as a page
 * that loads nothing, runs nothing and has no origin.
 */
const GUARDS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
}

const GUARDED: ReadonlySet<string> = new Set(Object.keys(GUARDS).map((name) => name.toLowerCase()))

/** With the guards in the place of what the upstream says of it, in whatever spelling. */
export function guardBytes(headers: Answer['headers']): Answer['headers'] {
  const guarded: Record<string, string | readonly string[]> = {}
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined && !GUARDED.has(name.toLowerCase())) guarded[name] = value
  }
  return Object.assign(guarded, GUARDS)
}
