/**
 * The contract of `kind: module` (C8.1): what a file or package of your own must export to answer calls. Published as
 * `postern/backend`, and types alone: import it with `import type`. What each part is for: src/backends/README.md.
 */
import type { Readable } from 'node:stream'

/** What JSON can say. Members that are undefined are left out. */
export type Json =
  null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json | undefined }

/**
 * The default export of a module. Called once per process at start and by `postern check`, so it should open its
 * connections at the first call; what it throws is told as a problem of the configuration.
 * @param options `options` of the configuration, as written there
 */
export type ModuleFactory<Options = unknown> = (
  options: Options,
  context: ModuleContext,
) => ModuleBackend | Promise<ModuleBackend>

export interface ModuleContext {
  /** The backend's name in the configuration. */
  readonly name: string
  /**
   * Tells the directory of a fund that was made, so that its URLs are known from the next call on.
   * @throws TypeError if the fund's code can be no part of a scope value (RFC 6749 §3.3) or of a path
   */
  addFund(business: string, fund: string): void
}

export interface ModuleBackend {
  /** Answers one authorised call. What it throws is told to the client as a 500, and to the log whole. */
  answer(call: ModuleCall): ModuleAnswer | Promise<ModuleAnswer>
  /** Whether it could answer now, for readiness; true if not given. */
  healthy?(): boolean
  /** Called once, when nothing more will be asked. */
  close?(): void | Promise<void>
}

/** Who calls, as the verified access token says. */
export interface ModuleCaller {
  readonly subject: string
  readonly client: string
  /** The token's scope values. */
  readonly scopes: ReadonlySet<string>
}

/** One call that was authorised: its business, fund and action are the token's to use. */
export interface ModuleCall {
  /** X-Request-Id. */
  readonly id: string
  /** `area/action` as configured, with its parameters' names: `member-data/member-detail/{memberId}`. */
  readonly action: string
  /** The action version that was negotiated. */
  readonly version: number
  /** GET, POST …; a HEAD comes as GET, and the body of its answer is dropped. */
  readonly method: string
  readonly business: string
  /** Of a fund-level call. */
  readonly fund: string | undefined
  /** Path parameters of the action, decoded. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly caller: ModuleCaller
  /** The client's headers that may be passed on, by lower-case name; Authorization and Cookie are not among them. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: ModuleBody
  /** For an action with `produces`: the type that was negotiated. */
  readonly accept: string | undefined
  readonly clientAddress: string
  /** W3C Trace Context, for calls of your own. */
  readonly traceparent: string
  /** Aborted when the client has left or the time is up: stop working. */
  readonly signal: AbortSignal
}

export type ModuleBody =
  | { readonly kind: 'none' }
  /** JSON, XML or a form, read and checked by the action's schema. Objects have no prototype. */
  | { readonly kind: 'value'; readonly value: Json }
  /** Of an action with `consumes`, unread. `length` in bytes if declared. */
  | {
      readonly kind: 'stream'
      readonly stream: Readable
      readonly contentType: string | undefined
      readonly length: number | undefined
    }

export interface ModuleAnswer {
  /**
   * 200 if not given. 2xx; 304 to a conditional request; 4xx with or without `errors`; 503 for "not now". All else, and
   * 401, is told to the client as a 500.
   */
  readonly status?: number
  /** Those that `responseHeaders` or the defaults let pass reach the client. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** Nothing if not given: `Data` is then empty. */
  readonly body?: ModuleAnswerBody
}

export type ModuleAnswerBody =
  | { readonly kind: 'none' }
  /** The data, without an envelope: an object is `Data`, a list its `Items`, anything else its `Value`. */
  | { readonly kind: 'value'; readonly value: Json }
  /** JSON text; of an action with `produces` whatever `contentType` says. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array; readonly contentType?: string }
  | {
      readonly kind: 'stream'
      readonly stream: Readable
      readonly contentType?: string
      /** Bytes, if known. */
      readonly length?: number
    }
  /** With a 4xx: what the client reads. */
  | { readonly kind: 'errors'; readonly errors: readonly ModuleError[] }

export interface ModuleError {
  readonly code: string
  readonly message: string
}
