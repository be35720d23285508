import { Buffer } from 'node:buffer'
import type { Readable } from 'node:stream'
import type {
  BackendAnswer,
  Call,
  Carrier,
  Forwarding,
  UpstreamCallback,
  UpstreamResponse,
} from '../../../base/contracts/calls/backend.ts'
import { AUDIT_HEADER } from '../../../base/http/head/end-to-end-headers.ts'
import { isBodiless, isSafe } from '../../../base/http/head/head.ts'
import { followedBy, type HeaderText } from '../../../base/http/head/header-text.ts'
import type { HttpUrl } from '../../../base/http/head/reference.ts'
import { Fault } from '../../../base/kernel/faults.ts'
import { NOT_SENT, type UpstreamReader } from '../../upstream/reader.ts'
import type { UpstreamRequest, UpstreamTimeouts } from '../../upstream/request.ts'
import { credentialsFor, type Authorized } from './auth/credentials.ts'
import { type FollowRedirects, type Redirectable, type Redirected, urlOf } from './target/redirects.ts'
import { isConnectionFault, isTimeout, unsent, upstreamFault } from './response/response.ts'
import { NONE_TRIED, type Tried, type UpstreamTarget, type UpstreamTargets } from './target/targets.ts'

/** What a forwarded call needs of its backend. `T` is what it makes of the upstream's response. */
export interface ForwardingBackend<T = BackendAnswer> {
  readonly host: string | undefined
  /** Whether errors of connections may not tell where the call went. */
  readonly conceals: boolean
  readonly retries: number
  readonly targets: UpstreamTargets
  /** Undefined: those of the connections. */
  readonly timeouts: UpstreamTimeouts | undefined
  methodOf(call: Call): string
  pathOf(call: Call): string
  /** For GET and HEAD; undefined: none are followed. */
  readonly redirects: FollowRedirects | undefined
  /** @throws Fault where the response is no answer (C8.4) */
  answerOf(call: Call, response: UpstreamResponse, source: ResponseSource): T | Promise<T>
}

/** Where a response came from: what its call says of the attempt that it answers. */
export type ResponseSource = Readonly<Pick<CallForwarding, 'url' | 'redirected'>>

const FOLLOWED: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/** The shortest timer there is, in milliseconds. */
const AT_ONCE = 1

const UNAUTHORIZED = 401

/** One call that is forwarded: its attempts, its end, and its cancellation when the client leaves. */
export class CallForwarding<T = BackendAnswer> implements Forwarding, UpstreamRequest {
  readonly method: string
  readonly path: string
  /** The headers of the attempt under way, credentials included. */
  headers: HeaderText
  readonly host: string | undefined
  readonly body: Buffer | Readable | undefined
  readonly length: number | undefined
  readonly eager: boolean
  readonly hold: Call['hold']
  readonly timeouts: UpstreamTimeouts | undefined
  /** Whether the attempt under way needs a new connection. */
  fresh = false
  redirected: Redirected | undefined
  readonly #call: Call
  readonly #backend: ForwardingBackend<T>
  readonly #settle: Settle<T>
  readonly #retries: number
  /** The headers without our credentials. */
  readonly #common: HeaderText
  #authorized: Authorized | undefined
  /** Whether the call was sent again with other credentials, which happens once. */
  #isRenewed = false
  /** The targets of all attempts, the latest one included. */
  #tried: Tried = NONE_TRIED
  #gone: Fault | undefined
  #reader: UpstreamReader | undefined

  /**
   * @param headers those of every call
   * @param authorized the credentials that go with them to the upstream, and to nobody else
   */
  constructor(
    call: Call,
    headers: HeaderText,
    authorized: Authorized | undefined,
    backend: ForwardingBackend<T>,
    settle: Settle<T>,
  ) {
    this.method = backend.methodOf(call)
    this.path = backend.pathOf(call)
    this.#common = headers
    this.#authorized = authorized
    this.headers = authorized === undefined ? headers : followedBy(headers, authorized.line)
    this.host = backend.host
    this.body = bodyOf(call, this.method)
    this.timeouts = backend.timeouts
    this.length = call.body.kind === 'stream' ? call.body.length : undefined
    this.eager = call.action.produces === undefined
    this.hold = call.hold
    this.#call = call
    this.#backend = backend
    this.#settle = settle
    this.#retries = this.body === undefined && call.action.safe && isSafe(this.method) ? backend.retries : 0
    call.onCancel(() => this.#cancel())
  }

  /** Another attempt follows a connection fault, and a timeout if another target can be asked (C8.5). */
  retryDelay(error: Error | null, attempt: number): number | null {
    if (error === null || attempt >= this.#retries) return null
    const { targets } = this.#backend
    const again = isConnectionFault(error) || (isTimeout(error) && targets.hasAnother(this.#tried))
    return again ? AT_ONCE : null
  }

  /** One attempt. Another one follows it where the upstream refused our credentials, and there are others (C8.7). */
  send(callback: UpstreamCallback): void {
    const renewable = this.#authorized?.credentials.renewable === true
    this.#sendOnce(renewable ? this.#unlessRefused(callback) : callback)
  }

  /** If the client has left meanwhile, it is cancelled at once. */
  #sendOnce(callback: UpstreamCallback): void {
    const target = this.#backend.targets.choose(this.#tried)
    this.fresh = this.#tried.length > 0
    if (this.fresh) this.#backend.targets.retried()
    this.#tried = [...this.#tried, target]
    this.redirected = undefined
    const { redirects } = this.#backend
    const isFollowed = redirects !== undefined && FOLLOWED.has(this.method) && FOLLOWED.has(this.#call.method)
    const last = isFollowed ? redirects(this.#redirectable(target, callback)) : callback
    this.#reading(target.send(this, last))
  }

  #reading(reader: UpstreamReader): void {
    this.#reader = reader
    if (this.#gone) reader.cancel(this.#gone)
  }

  #redirectable(target: UpstreamTarget, callback: UpstreamCallback): Redirectable {
    return {
      call: this.#call,
      request: this,
      target,
      callback,
      reading: (reader) => this.#reading(reader),
      redirected: (how) => (this.redirected = how),
    }
  }

  /** The URL of the latest attempt. Made when it is asked for. */
  get url(): HttpUrl {
    const target = this.#tried.at(-1) ?? this.#backend.targets.choose(NONE_TRIED)
    return this.redirected?.url ?? urlOf(target, this.path)
  }

  #unlessRefused(callback: UpstreamCallback): UpstreamCallback {
    return (error, response) => {
      const renewed = response?.statusCode === UNAUTHORIZED ? this.#renewed() : undefined
      if (response === undefined || renewed === undefined) {
        callback(error, response)
        return
      }
      if (!Buffer.isBuffer(response.body)) response.body.cancel()
      renewed
        .then((authorized) => {
          this.#authorized = authorized
          this.headers = followedBy(this.#common, authorized.line)
          this.#sendOnce(this.#unlessRefused(callback))
        })
        .catch(callback)
    }
  }

  /** Other credentials; undefined if the call is not to be sent again. Those that were refused are not sent again. */
  #renewed(): Promise<Authorized> | undefined {
    // Another origin, to which a redirect led, did not get them.
    if (this.#authorized === undefined || this.redirected?.left === true) return undefined
    const { credentials, line } = this.#authorized
    if (!credentials.refused(line) || this.#retries === 0 || this.#isRenewed) return undefined
    this.#isRenewed = true
    return Promise.resolve(credentialsFor(this.#call, credentials))
  }

  answered(response: UpstreamResponse): void {
    const { record } = this.#call
    if (record !== undefined) record.upstreamAnswered(response.statusCode, response.headers[AUDIT_HEADER])
    try {
      this.#settle.resolve(this.#backend.answerOf(this.#call, response, this))
    } catch (error) {
      this.#settle.reject(upstreamFault(error, this.#backend.conceals))
    }
  }

  failed(error: unknown): void {
    const fault = upstreamFault(error, this.#backend.conceals)
    const isSent = this.#reader !== undefined && this.#reader.progress !== NOT_SENT
    this.#settle.reject(isSent ? fault : unsent(fault))
  }

  #cancel(): void {
    const upstream = this.#reader === undefined ? NOT_SENT : this.#reader.progress
    this.#gone = new Fault('client_gone', {
      detail:
        upstream === NOT_SENT
          ? 'the client left before anything was sent to the upstream'
          : 'the client left while the upstream was working: the call was cancelled, and may have been carried out',
      ...(upstream !== undefined && { upstream }),
    })
    this.#reader?.cancel(this.#gone)
  }
}

interface Settle<T> {
  readonly resolve: (answer: T | Promise<T>) => void
  readonly reject: (fault: Fault) => void
}

function bodyOf({ body, method }: Call, sent: string): Buffer | Readable | undefined {
  if (body.kind === 'none') return undefined
  const isMade = body.kind === 'bytes' && !isBodiless(sent)
  if (isBodiless(method) && !isMade) throw new Fault('body_unexpected')
  // Only in a report-only area does a body come this far that the configuration does not know.
  if (isBodiless(sent)) return undefined
  if (body.kind === 'bytes') return body.bytes
  if (body.kind === 'stream') return body.stream
  throw new Fault('internal', { detail: 'a value reached a backend that takes bytes' })
}

/** For forwardings without a reply of their own: a module may send several at once for one call. */
export const carryDirectly: Carrier = { carry: (forwarding) => attempt(forwarding, 0) }

function attempt(forwarding: Forwarding, count: number): void {
  const done: UpstreamCallback = (error, response) => {
    const delay = forwarding.retryDelay(error, count)
    if (delay !== null) setTimeout(attempt, delay, forwarding, count + 1)
    else if (response !== undefined) forwarding.answered(response)
    else forwarding.failed(error ?? new Error('an attempt ended without an answer'))
  }
  try {
    forwarding.send(done)
  } catch (error) {
    forwarding.failed(error instanceof Error ? error : new Error('an attempt failed', { cause: error }))
  }
}
