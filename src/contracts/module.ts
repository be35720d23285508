/**
 * The contract of `kind: module` (C8.1): what your own file or package must export to answer calls. Published as
 * `postern/backend`. It holds types only: import it with `import type`. Explained in src/backends/README.md.
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
) => ModuleBackend | Promise<ModuleBackend>

export interface ModuleContext {
  /** The backend's name in the configuration. */
  readonly name: string
  /**
   * Adds a new fund to the directory, so that its URLs exist from the next call on.
   * @throws TypeError if the fund's code cannot be part of a scope value (RFC 6749 §3.3) or of a path
   */
  addFund(business: string, fund: string): void
}

export interface ModuleBackend {
  /** Answers one authorised call. If it throws, the client gets a 500 and the log gets the error. */
  answer(call: ModuleCall): ModuleAnswer | Promise<ModuleAnswer>
  /** Whether it can answer now, for readiness; true if the method is absent. */
  healthy?(): boolean
  /** Called once, after the last call. */
  close?(): void | Promise<void>
}

/** The caller, from the verified access token. */
export interface ModuleCaller {
  readonly subject: string
  readonly client: string
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
      /** Bytes, if known. */
      readonly length?: number
    }
  /** With a 4xx: the errors that the client gets. */
  | { readonly kind: 'errors'; readonly errors: readonly ModuleError[] }

export interface ModuleError {
  readonly code: string
  readonly message: string
}
