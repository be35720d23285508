import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { JsonPointer, JsonValue, ScalarValue } from '../../http/body/json.ts'
import type { PieceSource } from '../../http/body/pieces.ts'
import type { PlainXmlRules } from '../../http/xml/plain-document.ts'
import type { RequestTarget } from '../../http/head/request-target.ts'
import type { FaultCode } from '../../kernel/faults.ts'
import type { Successes } from './api-description.ts'
import type { BusinessValues, Place } from '../people/places.ts'
import type { Principal } from '../people/principal.ts'
import type { BodyRecipe, PlaceholderValues } from './templates.ts'
import type { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/** The format of a backend's request and answer bodies. `value` is a JSON value in memory that is never serialised. */
export type BackendFormat = 'value' | 'json' | 'xml'

/** The part of an action's configuration that backends need. Frozen. */
export interface ActionFacts {
  readonly area: string
  /** As configured, with its parameters: `member-detail/{memberId}`. */
  readonly action: string
  readonly level: 'business' | 'fund'
  /** If true, the upstream's `Accept` is the vendor type (C8.2). */
  readonly versioned: boolean
  /** Whether a call changes nothing (RFC 9110 §9.2.1), by the client's method and by the upstream's (C8.7). */
  readonly safe: boolean
  /** The action's own response types (C7.1); undefined if its answers are envelopes. */
  readonly produces: readonly string[] | undefined
}

export type CallBody =
  | { readonly kind: 'none' }
  /** For a `value` backend. */
  | { readonly kind: 'value'; readonly value: JsonValue }
  /** In the backend's format; the client's own bytes where no conversion was needed (C7.6). */
  | { readonly kind: 'bytes'; readonly bytes: Buffer; readonly contentType: string }
  /** An opaque action's body (C7.1 `consumes`), unread. `length` in bytes if declared. */
  | {
      readonly kind: 'stream'
      readonly stream: Readable
      readonly contentType: string | undefined
      readonly length: number | undefined
    }

/** Keeps the audit trail's records of one call while a backend works on it (C12.1.3). Absent: none are kept. */
export interface CallRecord {
  /**
   * To be awaited before a request that is not safe is sent for a call that is. Rejects with Fault `audit_unavailable`:
   * then it must not be sent.
   * @param method of that request
   */
  beforeChange(method: string): Promise<void>
  /** @param header its `X-Postern-Audit`, as it came (C12.2.2) */
  upstreamAnswered(status: number, header: string | readonly string[] | undefined): void
}

/** One authorised call (C8.2). A backend gets exactly the request that was checked. */
export interface Call {
  readonly id: string
  readonly action: ActionFacts
  readonly version: number
  /** GET, HEAD, POST … as the client sent it and the action offers. */
  readonly method: string
  readonly target: RequestTarget
  /** Path parameters of the action, decoded. Segments of a rest parameter have a slash between them. */
  readonly params: Readonly<Record<string, string>>
  /** Declared parameters of the query (C4.11), typed by their schemas; with the defaults of those that it lacks. */
  readonly query: Readonly<Record<string, ScalarValue>>
  /** Parts of the client's checked body that templates name, by their JSON Pointer. */
  readonly found: Readonly<Record<string, JsonValue>>
  /** The values of the business, which templates name as `{business.KEY}` (C8.7). */
  readonly values: BusinessValues
  /** As in the URL, decoded. */
  readonly business: string
  readonly fund: string | undefined
  /**
   * Who calls. Undefined only in a report-only area, for a call that would have been refused: its caller was not
   * verified, so nothing about a caller may be sent upstream.
   */
  readonly principal: Principal | undefined
  /** The codes of the business and fund, for headers and tokens to upstreams. Undefined if `principal` is. */
  readonly place: Place | undefined
  /** The `iss` of the tokens that Postern signs for upstreams (C8.2). */
  readonly issuer: string
  /** Headers that may be forwarded, by lower-case name: not hop-by-hop, and none that Postern sets itself. */
  readonly headers: Readonly<Record<string, string>>
  /** The client's Authorization header, for backends configured to pass it on. */
  readonly authorization: string | undefined
  readonly body: CallBody
  /** For an action with `produces`: the negotiated type. */
  readonly accept: string | undefined
  readonly clientAddress: string
  readonly scheme: 'http' | 'https'
  readonly host: string
  /** `{base_url}`, without a slash at its end. */
  readonly baseUrl: string
  /** W3C Trace Context: the incoming one continued, or a new one. */
  readonly traceparent: string
  readonly carrier: Carrier
  /** Set for a call that the audit trail records, and for one that a module may make a changing one. */
  readonly record?: CallRecord | undefined
  /** To be called where a cookie of an answer was left out, because only Postern sets it (C8.3). */
  readonly cookieDropped: () => void
  /** Exchange.hold */
  readonly hold: (bytes: number) => boolean
  /** Calls the listener, at most once, when the client has left: the backend should stop working. */
  onCancel(listener: () => void): void
}

/** The successes of a backend (C8.6): data, envelopes, text that is the data, or nothing that is looked at. */
export type Payload = 'bare' | 'envelope' | 'text' | 'none'

/** The format of the bytes of an answer, where the backend does not tell. */
export interface AnswerFormat extends Pick<Backend, 'name' | 'payload' | 'xml' | 'data'> {
  readonly format: BackendFormat | 'text'
  /** Whether the same bytes of the upstream always become the same bytes. */
  readonly exact?: boolean
}

/** An error of an upstream's own, as it was found: the code may be any text. */
export interface FoundError {
  readonly code: string | undefined
  readonly message: string | undefined
}

/** The search of a success for errors, before it passes (C8.8). */
export interface ErrorSearch {
  readonly places: ErrorPlaces
  readonly format: 'json' | 'xml'
  /** The client's answer about the errors that were found. @throws Fault where the client is told none of them */
  readonly answerFound: (found: readonly FoundError[]) => BackendAnswer
}

/** Where errors are in an upstream's answers (C8.8). Plain data: it is sent to other threads. */
export interface ErrorPlaces {
  /** Leads to something where a 200 or 500 is an error. Undefined: none is. */
  readonly present: JsonPointer | undefined
  /** Where several errors are listed; the others then start at each item. Undefined: there is one. */
  readonly list: JsonPointer | undefined
  readonly code: JsonPointer | undefined
  /** Where the message may be: the first of these that leads to a text counts. */
  readonly messages: readonly JsonPointer[]
}

export interface BackendError {
  readonly code: string
  readonly message: string
}

/** A backend's answer. If there is none (unreachable, too slow, broken), the backend throws a fault instead (C8.4). */
export interface BackendAnswer {
  /** 2xx, 304, or an upstream's 4xx with `errors`. */
  readonly status: number
  /** End-to-end response headers that may reach the client, by lower-case name; no content-type, no content-length. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: BackendBody
  /** The format of the body, where the backend does not tell. */
  readonly answerFormat?: AnswerFormat | undefined
  /** Undefined: it passes unsearched. */
  readonly search?: ErrorSearch | undefined
}

export type BackendBody =
  /** An answer to HEAD may have the type and the length of what a GET would get. */
  | { readonly kind: 'none'; readonly contentType?: string | undefined; readonly length?: number | undefined }
  | { readonly kind: 'value'; readonly value: JsonValue }
  /** In the backend's format, or of `contentType` for an action with `produces`. */
  | { readonly kind: 'bytes'; readonly bytes: Buffer; readonly contentType: string | undefined }
  /** Pieces that break off do so with a Fault. */
  | {
      readonly kind: 'stream'
      readonly pieces: PieceSource
      readonly contentType: string | undefined
      readonly length: number | undefined
    }
  /** The upstream's own errors (C8.4, C8.8). */
  | {
      readonly kind: 'errors'
      readonly errors: readonly BackendError[]
      /** Where that is no 4xx: the upstream answered as if it had succeeded or failed. */
      readonly upstreamStatus?: number | undefined
    }

/** Why a tunnel ended. `closed`: the client or the upstream closed it. The others are Postern's reasons. */
export type TunnelEnd = 'closed' | 'token' | 'idle' | 'shutdown'

export interface Tunnel {
  /** True if it must be closed when the token that opened it expires or is revoked. */
  readonly endsWithToken: boolean
  /** Closes both sides within a second. The client gets the reason if the protocol can express it. */
  close(end: TunnelEnd): void
  /** Calls the listener once, when the client's connection is closed. */
  onEnd(listener: (end: TunnelEnd) => void): void
}

/** The result of an upgrade: an open tunnel, or the upstream's own refusal, which was not sent to the client yet. */
export type UpgradeOutcome =
  | { readonly kind: 'open'; readonly tunnel: Tunnel }
  | { readonly kind: 'refused'; readonly answer: BackendAnswer }

/** The answers that a backend may give to the calls of one operation (C8.4): the description for clients says so (C11.3). */
export interface PossibleAnswers {
  readonly successes: Successes
  readonly faults: readonly FaultCode[]
  /** The statuses of errors of its own, besides those of `otherRefusals`. */
  readonly ownErrors: readonly number[]
  /** Whether a 4xx that has no row in the table of faults keeps its status. */
  readonly otherRefusals: boolean
  /** Whether a success may be bytes, which are converted for a client that wants another format. */
  readonly bytes: boolean
}

export interface UpstreamTraffic {
  /** Connections that a call uses, tunnels included. */
  readonly active: number
  readonly idle: number
  readonly waiting: number
  /** Targets that get calls. */
  readonly healthy: number
  /** Targets that get none, because calls or health checks failed there. */
  readonly ejected: number
}

/** The parts of a client's body that templates need, and how another body is made. */
export interface BodyMaking {
  /** JSON Pointers of what templates outside the body name. */
  readonly pointers: readonly string[]
  /** Undefined: the client's body is sent on (C7.6). */
  readonly recipe: BodyRecipe | undefined
  /**
   * The values of the recipe's placeholders, but for those of the client's body.
   * @throws Fault `business_value_missing`, `unsendable_value`
   */
  fill(call: Call): PlaceholderValues
}

/**
 * Names by which calls tell the service their business: what a client sends under one does not reach the service (C8.7).
 */
export interface KeptOut {
  /** Headers that are left out, as `headerReading` makes them. */
  readonly headers: ReadonlySet<string>
  /** Undefined: no member of a body is refused. */
  readonly members: KeptMembers | undefined
}

/** Members of a client's body that are refused. Plain data: it goes to the threads that convert large bodies. */
export interface KeptMembers {
  readonly names: readonly string[]
  /** Whether the body is XML, or becomes XML: then names are compared without prefixes. */
  readonly isXml: boolean
  /** The part of the body that is sent. */
  readonly part: JsonPointer
  /** Whether that part is a document, whose only member is its root: the members of the root are looked at. */
  readonly isDocument: boolean
}

/** The request that an upstream would be sent for a call (C14.1). Plain data: it may cross to another process. */
export interface SentRequest {
  readonly method: string
  /** Where it goes, with the query. Of several targets, the first. */
  readonly url: string
  /** The other targets, one of which may get it as well. */
  readonly others: readonly string[]
  /** Lines as `name: value`, in the order in which they are sent. */
  readonly headers: readonly string[]
  readonly body: Uint8Array
}

export interface Previewing {
  /** The request that a call would be sent as, made by the code that sends it. Nobody is asked. */
  preview(call: Call): Promise<SentRequest>
}

/** The head of a request that asks for an upgrade (RFC 9110 §7.8): a GET of HTTP/1.1 without a body. */
export type UpgradeHead = Pick<IncomingMessage, 'headers'>

/** How a backend takes connections over. */
export interface BackendUpgrade {
  /** Whether a request asks for the protocol that the backend upgrades to. */
  isAsked(request: UpgradeHead): boolean
  /**
   * Takes a connection over, after the same decision as for `answer`. If it rejects with a Fault, it
   * has written nothing to the socket, so that the fault can be answered there over HTTP.
   * @param head bytes that the client has already sent after its request
   */
  take(call: Call, socket: Socket, head: Buffer): Promise<UpgradeOutcome>
}

/** A source of data behind the gateway (C8.1). */
export interface Backend {
  readonly name: string
  readonly format: BackendFormat
  /** `envelope`: its successful answers are envelopes already. Of all others Postern makes them (C8.6). */
  readonly payload: Payload
  /** The formats that answers of other media types are read as (C8.8). Undefined: there are none. */
  readonly types?: ReadonlyMap<string, 'json' | 'xml' | 'text'> | undefined
  /** Whether successes are searched for errors (C8.8): then it must not be asked for codings or parts of bytes. */
  readonly isSearched?: boolean
  /** `verbatim`: parts of the data in other units than bytes may be asked for (C8.8). */
  readonly ranges?: 'bytes' | 'verbatim'
  /** How its own XML is read and written, where it speaks any XML (C7.7). Undefined: its XML is that of C7.5. */
  readonly xml?: PlainXmlRules | undefined
  /** The part of a bare answer that is the data (C8.8). Undefined: all of it. */
  readonly data?: JsonPointer | undefined
  /** In lower case. Undefined: all headers that may be forwarded. Never one that Postern sets itself. */
  readonly requestHeaders?: ReadonlySet<string> | undefined
  /** The parts of a client's body that its templates need, and how another body is made (C8.7). Undefined: nothing. */
  readonly bodyUse?: BodyMaking | undefined
  /** Names of a client's call that do not reach it (C8.7). Undefined: no name is kept out. */
  readonly keptOut?: KeptOut | undefined
  /** Whether the operator's code sends requests for a call. Each unsafe one awaits the call's record. */
  readonly sendsAnything?: boolean
  /** Whether its templates name values of a business (C8.7). Without it, calls have none. */
  readonly namesValues?: boolean
  /** The answers that it may give to calls of an operation, by its method. Undefined: any answer of C8.4. */
  possibleAnswers?(action: ActionFacts, method: string): PossibleAnswers
  /**
   * The same for one call, with `***` in place of what is told to nobody (C14.1). Absent: code of the operator's makes what
   * is sent, or nothing is sent.
   * @throws Fault that would keep the call from being sent
   */
  masked?(call: Call): Backend & Previewing
  /** Rejects with a Fault if there is no usable answer (C8.4). */
  answer(call: Call): Promise<BackendAnswer>
  /** How it takes connections over. Absent: it does not. */
  readonly upgrade?: BackendUpgrade
  /** Whether it can answer now; for /health/ready and metrics. */
  healthy?(): boolean
  /** For metrics. Absent where there is no upstream. */
  traffic?(): UpstreamTraffic
  close(): Promise<void>
}

export interface Forwarding {
  /** Sends one attempt. The callback must be called exactly once. */
  send(callback: UpstreamCallback): void
  /**
   * Called after each attempt. Returns the milliseconds until the next one (more than 0), or null for no retry (C8.5).
   *
   * @param error the attempt's error; null if it was answered
   * @param attempt 0 for the first attempt
   */
  retryDelay(error: Error | null, attempt: number): number | null
  answered(response: UpstreamResponse): void
  /** Called if there is no answer, with the error of the last attempt or the Fault `client_gone`. */
  failed(error: Error): void
}

export interface Carrier {
  /** Sends a forwarding and calls either `answered` or `failed`, exactly once. Never throws. */
  carry(forwarding: Forwarding): void
}

export interface UpstreamResponse {
  readonly statusCode: number
  readonly headers: IncomingHttpHeaders
  /** Whole if it is not long, otherwise in pieces, which fail if the upstream breaks off. */
  readonly body: Buffer | PieceSource
}

/** Called exactly once. */
export type UpstreamCallback = (error: Error | null, response?: UpstreamResponse) => void
