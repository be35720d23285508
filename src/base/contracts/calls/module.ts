/**
 * The contract of `kind: module` (C8.1, C8.9): what your own file or package must export to answer calls. Published as
 * `postern/backend`. It holds types only: import it with `import type`. Explained in config/modules.md.
 */
import type { Readable } from 'node:stream'

/** A JSON value. Members that are undefined are left out. */
export type Json =
  null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json | undefined }

/**
 * The default export of a module. Called once per process at start, and by `postern check`. So it should open its
 * connections at the first call, not here. If it throws, that is reported as a problem of the configuration.
 * @param options `options` from the configuration, unchanged
 */
export type ModuleFactory<Options = unknown> = (
  options: Options,
  context: ModuleContext,
) => Module | Promise<Module>

export interface ModuleContext {
  /** The backend's name in the configuration. */
  readonly name: string
  /**
   * Adds a new fund to the directory, so that its URLs exist from the next call on. Await it before you answer: where the
   * business is in the store, the fund is written there. Rejects with an Error if the store cannot be reached.
   * @throws TypeError if the fund's code cannot be part of a scope value (RFC 6749 §3.3) or of a path
   */
  addFund(business: string, fund: string): Promise<void>
}

/**
 * Has `answer`. With `over` in its section it may have the short forms `request` and `response` instead, one of them or
 * both. Without `over` a module may have functions of its own with these names; the types leave that out.
 */
export type Module = ModuleHooks &
  (
    | (Pick<ModuleFunctions, 'answer'> & { request?: never; response?: never })
    | (Pick<ModuleFunctions, 'request'> & Partial<Pick<ModuleFunctions, 'response'>> & { answer?: never })
    | (Pick<ModuleFunctions, 'response'> & { answer?: never; request?: never })
  )

interface ModuleFunctions {
  /**
   * Answers one authorised call. If it throws, the client gets a 500 and the log gets the error. With `over` the call
   * is a ForwardedCall: `answer: (call: ForwardedCall) => call.forward()`.
   */
  answer(call: ModuleCall): ModuleAnswer | Promise<ModuleAnswer>
  /**
   * Short form of an `answer` that forwards once: returns the changes of that request. If it returns nothing, nothing
   * is changed. Without `response` the client gets what the upstream answers.
   */
  request(call: ForwardedCall): RequestChanges | undefined | Promise<RequestChanges | undefined>
  /**
   * Short form of an `answer` that forwards once: makes the client's answer of the upstream's, whatever its status is.
   * It is not called for a 304, nor if there was no answer: then the client gets 503.
   */
  response(call: ForwardedCall, answer: UpstreamAnswer): ModuleAnswer | Promise<ModuleAnswer>
}

interface ModuleHooks {
  /** Whether it can answer now, for readiness; true if the method is absent. With `over` the upstream's health counts too. */
  healthy?(): boolean
  /** Called once, after the last call. */
  close?(): void | Promise<void>
}

/** The caller, from the verified access token. */
export interface ModuleCaller {
  /** The user. Undefined where a machine calls for itself. */
  readonly subject: string | undefined
  readonly client: string
  /** The `iss` of the token. In a sidecar with several issuers, a subject or client is known only together with it. */
  readonly issuer: string
  /** The token's scope values. */
  readonly scopes: ReadonlySet<string>
}

/** One authorised call: the token may use this business, fund and action. */
export interface ModuleCall {
  /** X-Request-Id. */
  readonly id: string
  /** `area/action` as configured, with its parameters' names: `member-data/member-detail/{memberId}`. */
  readonly action: string
  /** The action version that was negotiated. */
  readonly version: number
  /** GET, POST …; a HEAD arrives as GET, and the body of its answer is dropped. */
  readonly method: string
  readonly business: string
  /** Undefined in a business-level call. */
  readonly fund: string | undefined
  /** Path parameters of the action, decoded. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly caller: ModuleCaller
  /** The client's headers that may be passed on, by lower-case name; Authorization and Cookie are not among them. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: ModuleBody
  /** For an action with `produces`: the media type that was negotiated. */
  readonly accept: string | undefined
  readonly clientAddress: string
  /** W3C Trace Context, for your own calls. */
  readonly traceparent: string
  /** Aborted when the client has left or the time limit is reached: stop working then. */
  readonly signal: AbortSignal
}

/** The call of a module with `over`, which runs around a backend that forwards (C8.9). */
export interface ForwardedCall extends ModuleCall {
  /** The request that the upstream is sent if nothing is changed. */
  readonly upstream: OutgoingRequest
  /**
   * Sends the client's request, with changes, to the upstream: at most 20 times for a call, 8 at once. Resolves with
   * the answer, whatever its status is. Rejects with a ForwardError if there is none; thrown on, it becomes the answer
   * that the client would have got without the module.
   */
  readonly forward: (changes?: RequestChanges) => Promise<UpstreamAnswer>
}

export type ModuleBody =
  | { readonly kind: 'none' }
  /** JSON, XML or a form, read and checked by the action's schema. Objects have no prototype. */
  | { readonly kind: 'value'; readonly value: Json }
  /** With `over`: XML for an upstream that speaks XML. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array; readonly contentType: string }
  /** The body of an action with `consumes`, unread. `length` in bytes if declared. */
  | {
      readonly kind: 'stream'
      readonly stream: Readable
      readonly contentType: string | undefined
      readonly length: number | undefined
    }

export interface ModuleAnswer {
  /**
   * 2xx; 304 to a conditional request; 4xx except 401, with or without `errors`; 503 for "not now". With any other
   * status the client gets a 500. 200 if absent.
   */
  readonly status?: number
  /** The client gets those that `responseHeaders` or the defaults allow. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** If absent, `Data` is empty. */
  readonly body?: ModuleAnswerBody
}

export type ModuleAnswerBody =
  | { readonly kind: 'none' }
  /** The data without an envelope. An object becomes `Data`, a list `Data.Items`, anything else `Data.Value`. */
  | { readonly kind: 'value'; readonly value: Json }
  /** JSON text; for an action with `produces`, of the type `contentType`. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array; readonly contentType?: string }
  | {
      readonly kind: 'stream'
      readonly stream: Readable
      readonly contentType?: string
      /** The length in bytes, if known. */
      readonly length?: number
    }
  /** With a 4xx: the errors that the client gets. */
  | { readonly kind: 'errors'; readonly errors: readonly ModuleError[] }
  /** With `over`: the body of an UpstreamAnswer, unread. */
  | UpstreamBody

export interface ModuleError {
  readonly code: string
  readonly message: string
}

export interface ForwardError extends Error {
  /**
   * Among others `upstream_unreachable`, `upstream_timeout`, `upstream_broken` (no HTTP, or changes that cannot be
   * sent), `upstream_token_unavailable` (no credentials for the upstream), `audit_unavailable` (nothing was sent),
   * `answer_too_large` and `client_gone`.
   */
  readonly code: string
}

/** A request as the upstream receives it, for signatures. */
export interface OutgoingRequest {
  /** GET, POST …; HEAD only if the module has neither `response` nor `answer`. */
  readonly method: string
  /** The request line's target: the base path of the backend's target, `path` and `query`. */
  readonly target: string
  /** Without the base path; canonical. */
  readonly path: string
  /** Empty, or `?` and what follows it. */
  readonly query: string
  /** The Host header. Undefined if the backend has several targets with hosts of their own. */
  readonly host: string | undefined
  /** Undefined if there is none, or if it is a stream. */
  readonly body: Uint8Array | undefined
  readonly contentType: string | undefined
  /** The same request with changes. Rejects with a ForwardError if they cannot be sent. */
  with(changes: RequestChanges): Promise<OutgoingRequest>
}

/** The parts of a request to the upstream that the module replaces. A part that is absent stays as it is. */
export interface RequestChanges {
  /** With GET and HEAD the client's body is left out. */
  readonly method?: string
  /** Begins with `/` and follows the base path of the target. Parts that are not constants must be percent-encoded. */
  readonly path?: string
  /** The whole query; what the backend's `query` adds is added to it. */
  readonly query?: string | URLSearchParams | Readonly<Record<string, string | readonly string[] | undefined>>
  /**
   * Set in addition to the client's headers or in place of them; undefined leaves one out. Host, Content-Type, Content-Length
   * and others that frame a message are not allowed, nor are those that Postern makes: X-Postern-…, X-Request-Id,
   * traceparent, Forwarded, X-Forwarded-…. The backend's own `headers` and `auth` win.
   */
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly body?: RequestBody
}

export type RequestBody =
  | { readonly kind: 'none' }
  /** Sent as JSON, of the type application/json if none is given. */
  | { readonly kind: 'value'; readonly value: Json; readonly contentType?: string }
  | { readonly kind: 'text'; readonly text: string; readonly contentType: string }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array; readonly contentType: string }
  | {
      readonly kind: 'stream'
      readonly stream: Readable
      readonly contentType: string
      /** The length in bytes, if known. */
      readonly length?: number
    }

/**
 * The upstream's answer. Returned as it is, it becomes what it would be without the module. `{ ...answer, status }`
 * and the like pass its body on unread.
 */
export interface UpstreamAnswer {
  readonly status: number
  /** By lower-case name, without those of the connection. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: UpstreamBody
  /**
   * The body as JSON; null if it is empty. Objects have no prototype. Rejects with a ForwardError if it is no JSON. As
   * `text` and `bytes`: all that a call reads is `server.limits.answer` at most.
   */
  json(): Promise<Json>
  /** The body as UTF-8. */
  text(): Promise<string>
  bytes(): Promise<Uint8Array>
  /** The body while it comes. It can be taken once, and not together with `json`, `text` and `bytes`. */
  stream(): Readable
}

/** Stands for the body of an UpstreamAnswer, which passes on as it came. Only `answer.body` itself does. */
export interface UpstreamBody {
  readonly kind: 'upstream'
  readonly contentType: string | undefined
  /** The length in bytes, if known. */
  readonly length: number | undefined
}
