import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { JsonValue } from '../http/json-value.ts'
import type { RequestTarget } from '../http/request-target.ts'
import type { Carrier } from './carrier.ts'
import type { Place } from './places.ts'
import type { Principal } from './principal.ts'

/** The format that a backend takes and gives: `value` is a JSON value in memory, never serialised. */
export type BackendFormat = 'value' | 'json' | 'xml'

/** What of the action a backend may want to know. From the configuration, frozen. */
export interface ActionFacts {
  readonly area: string
  /** As configured, with its parameters: `member-detail/{memberId}`. */
  readonly action: string
  readonly level: 'business' | 'fund'
  /** True if it has more than one version or says so: the upstream's Accept then is the vendor type (C8.2). */
  readonly versioned: boolean
  /** Own response types (C7.1); absent where the envelope applies. */
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

/** One authorised call (C8.2): what was judged is what a backend gets. */
export interface Call {
  readonly id: string
  readonly action: ActionFacts
  readonly version: number
  /** GET, HEAD, POST … as the client sent it and the action offers. */
  readonly method: string
  readonly target: RequestTarget
  /** Path parameters of the action, decoded. */
  readonly params: Readonly<Record<string, string>>
  /** As the URL has it, decoded. */
  readonly business: string
  readonly fund: string | undefined
  /**
   * Who calls. Absent only in a report-only area, for a call that would have been refused: nobody vouches for its
   * client, and nothing may be told of who it is.
   */
  readonly principal: Principal | undefined
  /** The business and fund as codes: what others may be told. Absent where `principal` is. */
  readonly place: Place | undefined
  /** Postern's own name as an issuer: of tokens that it makes for upstreams (C8.2). */
  readonly issuer: string
  /** End-to-end request headers that may go on, by lower-case name: no hop-by-hop, none that Postern makes itself. */
  readonly headers: Readonly<Record<string, string>>
  /** The client's Authorization header, for backends configured to pass it on. */
  readonly authorization: string | undefined
  readonly body: CallBody
  /** For an action with `produces`: the negotiated type. */
  readonly accept: string | undefined
  readonly clientAddress: string
  readonly scheme: 'http' | 'https'
  readonly host: string
  /** W3C Trace Context: the incoming one continued, or a new one. */
  readonly traceparent: string
  /** Sends what a backend forwards for this call. */
  readonly carrier: Carrier
  /** The client has left: stop working. Called at most once. */
  onCancel(listener: () => void): void
}

export interface BackendError {
  readonly code: string
  readonly message: string
}

/** A backend's answer. Failures that are not an answer (unreachable, too slow, broken) are thrown as faults (C8.4). */
export interface BackendAnswer {
  /** 2xx, 304, or an upstream's 4xx with `errors`. */
  readonly status: number
  /** End-to-end response headers that may reach the client, by lower-case name; no content-type, no content-length. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: BackendBody
}

export type BackendBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'value'; readonly value: JsonValue }
  /** In the backend's format, or of `contentType` for an action with `produces`. */
  | { readonly kind: 'bytes'; readonly bytes: Buffer; readonly contentType: string | undefined }
  /** A stream that breaks is destroyed with a Fault. */
  | {
      readonly kind: 'stream'
      readonly stream: Readable
      readonly contentType: string | undefined
      readonly length: number | undefined
    }
  /** The upstream's own errors, of a 4xx whose envelope was well formed (C8.4). */
  | { readonly kind: 'errors'; readonly errors: readonly BackendError[] }

/** What ended a tunnel: one of its two sides (`closed`), or Postern, and why. */
export type TunnelEnd = 'closed' | 'token' | 'idle' | 'shutdown'

/** A client's connection that was handed over to a backend, and is no HTTP any more. */
export interface Tunnel {
  /** Whether it shall end when the token that opened it expires or is revoked. */
  readonly endsWithToken: boolean
  /** Tells the client why, as far as the protocol has words for it, and ends both sides within a second. */
  close(end: TunnelEnd): void
  /** Calls the listener once, when the client's connection is closed. */
  onEnd(listener: (end: TunnelEnd) => void): void
}

/** What an upgrade came to: a tunnel that runs, or an upstream's own refusal, of which nothing was sent yet. */
export type UpgradeOutcome =
  | { readonly kind: 'open'; readonly tunnel: Tunnel }
  | { readonly kind: 'refused'; readonly answer: BackendAnswer }

/** A source of data behind the gateway (C8.1). */
export interface Backend {
  readonly name: string
  readonly format: BackendFormat
  /** `envelope`: its successes are envelopes already and pass; `bare`: they are wrapped (C8.6). */
  readonly payload: 'bare' | 'envelope'
  /** The client's headers that it takes, in lower case; left out, all that may go on. Postern's own are not among them. */
  readonly requestHeaders?: ReadonlySet<string> | undefined
  answer(call: Call): Promise<BackendAnswer>
  /**
   * Takes a connection over, after the same decision as `answer` (websocket only). Rejects with a fault like `answer`,
   * and then has written nothing to the socket: the refusal is a plain answer on it.
   * @param head what the client sent behind its request already
   */
  upgrade?(call: Call, socket: Socket, head: Buffer): Promise<UpgradeOutcome>
  /** Whether it could answer now; for /health/ready and metrics. */
  healthy?(): boolean
  close(): Promise<void>
}
