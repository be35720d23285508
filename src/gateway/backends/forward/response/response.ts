import { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import type {
  BackendBody,
  Call,
  PossibleAnswers,
  UpstreamResponse,
} from '../../../../base/contracts/calls/backend.ts'
import {
  AUDIT_HEADER,
  connectionNames,
  HOP_BY_HOP,
  PROOF_NONCE_HEADER,
} from '../../../../base/http/head/end-to-end-headers.ts'
import { hasNoContent, isBodiless, isSafe } from '../../../../base/http/head/head.ts'
import type { PieceSource } from '../../../../base/http/body/pieces.ts'
import { referenceForLog } from '../../../../base/http/head/reference.ts'
import { tooFewDescriptors } from '../../../upstream/connection.ts'
import { Fault, type FaultCode, type FaultFacts } from '../../../../base/kernel/faults.ts'

interface StatusContext {
  /** A GET or HEAD that carried If-None-Match or If-Modified-Since: another method is never 304 (RFC 9110 §13.1). */
  readonly conditional: boolean
  /** A GET or HEAD that carried Range (RFC 9110 §14.2 defines it for no other): the bytes of the answer reach the client as they are. */
  readonly ranged: boolean
  /** The client's Authorization was passed on: a 401 is then the client's to see. */
  readonly authorizationForwarded: boolean
}

/** `answer`: it passes. `errors`: its own well-formed errors pass; without any, it is the fault. `fault`: always ours. */
export interface StatusVerdict {
  readonly kind: 'answer' | 'errors' | 'fault'
  readonly code: FaultCode
}

/** Statuses whose Retry-After the client gets. */
const WITH_RETRY_AFTER: ReadonlySet<number> = new Set([429, 502, 503, 504])

const ANSWER: StatusVerdict = { kind: 'answer', code: 'internal' }
const fault = (code: FaultCode): StatusVerdict => ({ kind: 'fault', code })
const errors = (code: FaultCode): StatusVerdict => ({ kind: 'errors', code })

/** Single statuses (C8.4). A 4xx takes the code of its row in the contract's table C2, if it has one. */
const BY_STATUS: ReadonlyMap<number, StatusVerdict> = new Map([
  [401, fault('upstream_broken')],
  [403, fault('upstream_forbade')],
  [404, errors('upstream_not_found')],
  [405, errors('upstream_method_not_allowed')],
  [406, errors('upstream_not_acceptable')],
  [407, fault('upstream_broken')],
  [413, errors('upstream_too_large')],
  [414, errors('upstream_too_large')],
  [415, errors('upstream_unsupported_media_type')],
  [429, errors('upstream_rate_limited')],
  [431, errors('upstream_too_large')],
  [502, fault('upstream_unavailable')],
  [503, fault('upstream_unavailable')],
  [504, fault('upstream_unavailable')],
])

const BROKEN = fault('upstream_broken')
const REFUSED = errors('upstream_refused')
const UNAUTHORISED = errors('upstream_unauthorised')

/** What an upstream's final status means for the client (C8.4). For every forwarding backend. */
export function checkStatus(status: number, context: StatusContext): StatusVerdict {
  // A client that asked for no range would take the part for the whole.
  if (status === 206) return context.ranged ? ANSWER : BROKEN
  if (status >= 200 && status < 300) return ANSWER
  if (status === 304 && context.conditional) return ANSWER
  if (status === 401 && context.authorizationForwarded) return UNAUTHORISED
  return BY_STATUS.get(status) ?? (status >= 400 && status < 500 ? REFUSED : BROKEN)
}

/** Every fault that an upstream's status may be; `upstream_unauthorised` only where Authorization is passed on. */
const STATUS_FAULTS: readonly FaultCode[] = codesOf([...BY_STATUS.values(), BROKEN, REFUSED])

/** The statuses of C2 with which an upstream's own errors pass; 401 too where Authorization is passed on. */
const OWN_ERROR_STATUSES: readonly number[] = [
  400, // as every 4xx that has no verdict of its own
  ...[...BY_STATUS].filter(([, { kind }]) => kind === 'errors').map(([status]) => status),
]

function codesOf(verdicts: readonly StatusVerdict[]): readonly FaultCode[] {
  return [...new Set(verdicts.map(({ code }) => code))]
}

/** For a status that the configuration gives in place of an upstream's own 4xx (C8.8). */
export const verdictOfStatus = (status: number): StatusVerdict =>
  BY_STATUS.get(status) ?? (status < 500 ? REFUSED : BROKEN)

type UpstreamHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

function pointingTo(status: number, { location }: UpstreamHeaders): string {
  const place = status >= 300 && status < 400 ? first(location) : undefined
  return place === undefined ? '' : `, which points to ${referenceForLog(place)}`
}

interface RefusedStatus {
  readonly given: number
  /** The status that the configuration gives in its place: it says what the upstream means, also that nothing was done. */
  readonly replaced?: number | undefined
  /** Why a redirect was not followed. */
  readonly stopped?: string | undefined
}

/** The fault of a status, with those headers of the upstream that a client needs: Retry-After, Allow, Content-Range. */
export function statusFault(
  { kind, code }: StatusVerdict,
  { given, replaced: status = given, stopped }: RefusedStatus,
  headers: UpstreamHeaders,
  now: number,
): Fault {
  const retryAfter = retryAfterSeconds(first(headers['retry-after']), now)
  const allow = first(headers['allow'])
  const contentRange = first(headers['content-range'])
  const facts: FaultFacts = {
    detail: `the upstream answered ${given}${pointingTo(given, headers)}${stopped === undefined ? '' : `: ${stopped}`}`,
    ...(retryAfter !== undefined && WITH_RETRY_AFTER.has(status) && { retryAfter }),
    ...(status === 416 && contentRange !== undefined && UNSATISFIED.test(contentRange) && { contentRange }),
    ...(status === 405 && { allow: methodNames(allow ?? '') }),
    ...(kind === 'errors' && { status }),
    ...((saysUnchanged(given) || saysUnchanged(status)) && { unchanged: true }),
  }
  return new Fault(code, facts)
}

/** The length of the data (RFC 9110 §14.4), in bytes or what the service counts in. A client whose download is complete learns it so. */
const UNSATISFIED = /^(?:[a-z]{1,20} )?\*\/[0-9]{1,15}$/i

/** Statuses with which a service says that it has done nothing: a 4xx, 501 (it cannot), 503 (not now). */
const saysUnchanged = (status: number): boolean =>
  (status >= 400 && status < 500) || status === 501 || status === 503

const first = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : value?.[0]

const methodNames = (allow: string): readonly string[] =>
  allow.split(',').flatMap((name) => (/^[A-Z]{1,20}$/.test(name.trim()) ? [name.trim()] : []))

const LONGEST_WAIT = 86_400

/** Retry-After as seconds or as a date (RFC 9110 §10.2.3), in whole seconds, at most a day; undefined if unreadable. */
function retryAfterSeconds(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  const seconds = /^\d{1,9}$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - now) / 1000)
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 0), LONGEST_WAIT)
}

type Format = 'json' | 'xml'

const TYPES: Readonly<Record<Format, RegExp>> = {
  json: /^(?:application|text)\/(?:json|[\w.-]+\+json)\s*(?:;|$)/i,
  xml: /^(?:application|text)\/(?:xml|[\w.-]+\+xml)\s*(?:;|$)/i,
}

/** Whether an enveloped action's body is what the backend's format says: a login page is not. None declared: it may be. */
export const isOfFormat = (contentType: string | undefined, format: Format): boolean =>
  contentType === undefined || TYPES[format].test(contentType.trim())

/** Faults by the error codes of node:http, sockets and TLS (C8.4). Any other code: the upstream could not be reached. */
const BY_CODE: Readonly<Record<string, FaultCode>> = {
  ETIMEDOUT: 'upstream_timeout',
  ECONNECT_TIMEOUT: 'upstream_timeout',
  ERR_INVALID_CHAR: 'internal',
}

/** Codes of node's parser, which reads the answers to upgrades: the connection closed in the middle. */
const CUT: ReadonlySet<string> = new Set(['HPE_INVALID_EOF_STATE', 'HPE_CLOSED_CONNECTION'])

/** Codes that blame this process or machine, and not the service: it has too many files and connections open. */
const NO_DESCRIPTOR: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE'])

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

function faultCodeOf(error: unknown): FaultCode {
  const code = codeOf(error)
  const known = Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined
  if (known !== undefined) return known
  return code.startsWith('HPE_') && !CUT.has(code) ? 'upstream_broken' : 'upstream_unreachable'
}

const faultOf = (error: unknown): Fault =>
  NO_DESCRIPTOR.has(codeOf(error))
    ? tooFewDescriptors(error)
    : new Fault(faultCodeOf(error), { cause: error, detail: codeOf(error) })

/**
 * The fault of a failed upstream call. The error goes to the log; the client reads the row's text (C2.6).
 * @param conceals whether to leave out what may name an address, as the messages of sockets do
 */
export function upstreamFault(error: unknown, conceals = false): Fault {
  const fault = error instanceof Fault ? error : faultOf(error)
  return conceals ? new Fault(fault.code, { ...fault.facts, cause: undefined }) : fault
}

export const unsent = ({ code, facts }: Fault): Fault => new Fault(code, { ...facts, unchanged: true })

/** Whether the connection failed, so that a safe call may be tried again (C8.5): not a timeout, not an answer. */
export const isConnectionFault = (error: unknown): boolean =>
  upstreamFault(error).code === 'upstream_unreachable'

/** Whether it was too slow, so that another target may be asked (C8.5). */
export const isTimeout = (error: unknown): boolean => upstreamFault(error).code === 'upstream_timeout'

/**
 * The headers of an upstream that reach the client (C8.3). An allow-list: a banner, an address or a cookie must not slip
 * through under a name that nobody thought of. A backend's `responseHeaders` adds names.
 */
const PASSED: ReadonlySet<string> = new Set([
  'etag',
  'last-modified',
  'content-disposition',
  'content-language',
  'content-encoding',
  'content-range',
  'accept-ranges',
  'preference-applied',
  'deprecation',
  'sunset',
])

/** These describe the connection or the body, or are Postern's to set, whatever the configuration says. */
const NEVER: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'content-length',
  'content-type',
  'x-request-id',
  'date',
  // a client would keep it as Postern's, and send it with its next proof
  PROOF_NONCE_HEADER.toLowerCase(),
  AUDIT_HEADER,
])

export type ResponseHeaders = Record<string, string | readonly string[]>

/** Compiles the names that pass: the defaults and a backend's own (lower or mixed case). */
export const passedNames = (more: readonly string[]): ReadonlySet<string> =>
  new Set([...PASSED, ...more.map((name) => name.toLowerCase()).filter((name) => !NEVER.has(name))])

export const isForbiddenResponseHeader = (name: string): boolean => NEVER.has(name.toLowerCase())

/** The upstream's headers that may reach the client, by lower-case name. What its Connection names is dropped too. */
export function cleanResponseHeaders(
  headers: IncomingHttpHeaders,
  passed: ReadonlySet<string>,
): ResponseHeaders {
  const named = connectionNames(headers.connection)
  const clean: ResponseHeaders = {}
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined && passed.has(name) && !named.has(name)) clean[name] = value
  }
  return clean
}

/**
 * A HEAD fails by its headers as its GET would (RFC 9110 §9.3.2).
 * @throws Fault `upstream_broken` where an enveloped action's answer has an unexpected type or coding
 */
export function successBody(call: Call, response: UpstreamResponse, format: 'json' | 'xml'): BackendBody {
  const { statusCode, headers } = response
  if (
    call.action.produces === undefined &&
    hasPayload(call, response) &&
    !isOfRanges(statusCode, headers['content-type'])
  )
    requireReadable(call, response, format)
  return bodyFor(call, response)
}

const NONE: BackendBody = { kind: 'none' }

/** Whether there is a body; for a HEAD, whether its GET would have one. */
export function hasPayload({ method }: Call, { statusCode, headers, body }: UpstreamResponse): boolean {
  if (hasNoContent(statusCode)) return false
  return method === 'HEAD' ? lengthOf(headers) !== 0 : !Buffer.isBuffer(body) || body.length > 0
}

/** The body as it came. For a HEAD, what it would be. */
export function bodyFor({ method }: Call, { statusCode, headers, body }: UpstreamResponse): BackendBody {
  const contentType = headers['content-type']
  if (method === 'HEAD' || hasNoContent(statusCode)) {
    if (!Buffer.isBuffer(body)) body.cancel()
    return method === 'HEAD' ? { kind: 'none', contentType, length: lengthOf(headers) } : NONE
  }
  return Buffer.isBuffer(body)
    ? { kind: 'bytes', bytes: body, contentType }
    : { kind: 'stream', pieces: body, contentType, length: lengthOf(headers) }
}

const lengthOf = ({ 'content-length': length }: UpstreamResponse['headers']): number | undefined =>
  length === undefined ? undefined : Number(length)

const PARTIAL_CONTENT = 206

/** Several ranges at once (RFC 9110 §14.6): each part states the type of the whole. */
const isOfRanges = (status: number, contentType = ''): boolean =>
  status === PARTIAL_CONTENT && /^multipart\/byteranges\s*;/i.test(contentType)

/** An enveloped action's answer must be what the configuration says; compressed only if the client asked for it itself. */
function requireReadable(call: Call, { headers, body }: UpstreamResponse, format: 'json' | 'xml'): void {
  const coding = headers['content-encoding']?.toLowerCase() ?? 'identity'
  const plain = coding === 'identity' || 'accept-encoding' in call.headers
  if (plain && isOfFormat(headers['content-type'], format)) return
  throw unexpected(plain ? 'Content-Type' : 'Content-Encoding', body)
}

/** The fault of an answer in which a header is not what was asked for. Its body is let go. */
export function unexpected(header: string, body: Buffer | PieceSource): Fault {
  if (!Buffer.isBuffer(body)) body.cancel()
  return new Fault('upstream_broken', { detail: `unexpected ${header}` })
}

interface AnswerSource {
  readonly method: string
  readonly requestHeaders?: ReadonlySet<string> | undefined
  /** The faults with which it fails, besides the statuses that it answers. */
  readonly faults: readonly FaultCode[]
}

/** The possible answers of a backend that answers with statuses of HTTP, for the description of the API (C11.3). */
export function answersByStatus({ method, requestHeaders, faults }: AnswerSource): PossibleAnswers {
  const gets = (name: string): boolean => requestHeaders?.has(name) ?? true
  const isRead = isBodiless(method)
  const all = [...new Set([...STATUS_FAULTS, ...faults])]
  return {
    successes: {
      other: true,
      notModified: isRead && (gets('if-none-match') || gets('if-modified-since')),
      precondition: !isSafe(method) && gets('if-match'),
      ranges: isRead && gets('range'),
    },
    faults: all,
    ownErrors: [...OWN_ERROR_STATUSES, ...(all.includes('upstream_unauthorised') ? [401] : [])],
    otherRefusals: true,
    bytes: true,
  }
}
