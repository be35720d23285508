import type { Readable } from 'node:stream'
import type { Backend, BackendAnswer, BackendBody, Call } from '../../contracts/backend.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import { hasNoContent } from '../../http/head.ts'
import { followedBy, type HeaderText } from '../../http/header-text.ts'
import type { Forwarding } from '../../contracts/carrier.ts'
import {
  compileRequestHeaders,
  type PathTemplate,
  type RequestHeaderRules,
  type RequestHeaders,
} from './request.ts'
import {
  cleanResponseHeaders,
  isConnectionFault,
  isOfFormat,
  isTimeout,
  judgeStatus,
  passedNames,
  refusalAnswer,
  upstreamFault,
} from './response.ts'
import { checkHealth, type EjectionRules, type HealthCheckRules } from './health.ts'
import type { UpstreamAddress } from '../../upstream/socket.ts'
import type { UpstreamRequest } from '../../upstream/request.ts'
import type { Identify } from './identity.ts'
import type { PoolRules } from '../../upstream/pool.ts'
import {
  NOT_SENT,
  type UpstreamCallback,
  type UpstreamReader,
  type UpstreamResponse,
} from '../../upstream/reader.ts'
import { NONE_TRIED, type TargetChanged, type Tried, UpstreamTargets } from './targets.ts'

export interface HttpBackendRules extends RequestHeaderRules, PoolRules {
  readonly name: string
  /** The upstream's instances; their base paths are put before every request's. */
  readonly targets: readonly UpstreamAddress[]
  /** Absent: the path of the client's request. */
  readonly path: PathTemplate | undefined
  /** What Host says in place of the target's own. */
  readonly host: string | undefined
  readonly identify: Identify
  readonly payload: 'bare' | 'envelope'
  /** The only headers of a client that pass, in lower case; undefined: all that may. */
  readonly requestHeaders: ReadonlySet<string> | undefined
  /** Response headers that pass beyond the defaults. */
  readonly responseHeaders: readonly string[]
  /** Further attempts at a call that may be repeated (C8.5). */
  readonly retries: number
  readonly ejection: EjectionRules
  readonly healthCheck: HealthCheckRules | undefined
  readonly targetChanged: TargetChanged
}

/** Methods that may be sent again without harm (RFC 9110 §9.2.1). */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
/** Its timer takes nothing below; the next attempt shall start at once. */
const AT_ONCE = 1

/** One call on its way: what the carrier sends, and how the client's leaving stops it. */
class Carriage implements Forwarding, UpstreamRequest {
  readonly method: string
  readonly path: string
  readonly headers: HeaderText
  readonly host: string | undefined
  readonly body: Buffer | Readable | undefined
  readonly length: number | undefined
  readonly eager: boolean
  /** Of the attempt that is under way. */
  fresh = false
  readonly #call: Call
  readonly #backend: HttpBackend
  readonly #settle: Settle
  readonly #retries: number
  /** Where it was sent already, the latest attempt included. */
  #tried: Tried = NONE_TRIED
  #gone: Fault | undefined
  #reader: UpstreamReader | undefined

  constructor(call: Call, headers: HeaderText, backend: HttpBackend, settle: Settle) {
    this.method = call.method
    this.path = backend.pathOf(call)
    this.headers = headers
    this.host = backend.host
    this.body = bodyOf(call)
    this.length = call.body.kind === 'stream' ? call.body.length : undefined
    this.eager = call.action.produces === undefined
    this.#call = call
    this.#backend = backend
    this.#settle = settle
    this.#retries = this.body === undefined && SAFE.has(call.method) ? backend.retries : 0
    call.onCancel(() => this.#cancel())
  }

  /** C8.5: after a connection fault, or, where it was too slow, if there is another target to ask. */
  retryDelay(error: Error | null, attempt: number): number | null {
    if (error === null || attempt >= this.#retries) return null
    const { targets } = this.#backend
    const again = isConnectionFault(error) || (isTimeout(error) && targets.hasAnother(this.#tried))
    return again ? AT_ONCE : null
  }

  /** The client may have left before a second attempt. */
  send(callback: UpstreamCallback): void {
    const target = this.#backend.targets.choose(this.#tried)
    this.fresh = this.#tried.length > 0
    this.#tried = [...this.#tried, target]
    this.#reader = target.send(this, callback)
    if (this.#gone) this.#reader.cancel(this.#gone)
  }

  answered(response: UpstreamResponse): void {
    try {
      this.#settle.resolve(this.#backend.judge(this.#call, response))
    } catch (error) {
      this.failed(error)
    }
  }

  failed(error: unknown): void {
    this.#settle.reject(upstreamFault(error))
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

interface Settle {
  readonly resolve: (answer: BackendAnswer) => void
  readonly reject: (fault: Fault) => void
}

function bodyOf({ body, method }: Call): Buffer | Readable | undefined {
  if (body.kind === 'none') return undefined
  // Content in them has no meaning (RFC 9110 §9.3.1), and receivers disagree on where it ends.
  if (method === 'GET' || method === 'HEAD') throw new Fault('body_unexpected')
  if (body.kind === 'bytes') return body.bytes
  if (body.kind === 'stream') return body.stream
  throw new Fault('internal', { detail: 'a value reached a backend that takes bytes' })
}

/** Forwards calls to an HTTP upstream (C8.1 to C8.4). */
export class HttpBackend implements Backend {
  readonly name: string
  readonly format: 'json' | 'xml'
  readonly payload: 'bare' | 'envelope'
  readonly #rules: HttpBackendRules
  readonly #clock: Clock
  readonly targets: UpstreamTargets
  readonly #passed: ReadonlySet<string>
  readonly #requestHeaders: RequestHeaders
  readonly #stopChecks: readonly (() => void)[]

  constructor(rules: HttpBackendRules, clock: Clock) {
    this.name = rules.name
    this.format = rules.format
    this.payload = rules.payload
    this.#rules = rules
    this.#clock = clock
    this.targets = new UpstreamTargets(rules.targets, rules, clock, rules.targetChanged)
    this.#passed = passedNames(rules.responseHeaders)
    this.#requestHeaders = compileRequestHeaders(rules)
    const { healthCheck, host } = rules
    this.#stopChecks = healthCheck
      ? this.targets.all.map((target) => checkHealth(target, healthCheck, { host }))
      : []
  }

  get retries(): number {
    return this.#rules.retries
  }

  get requestHeaders(): ReadonlySet<string> | undefined {
    return this.#rules.requestHeaders
  }

  get host(): string | undefined {
    return this.#rules.host
  }

  answer(call: Call): Promise<BackendAnswer> {
    const headers = this.headersOf(call)
    return headers instanceof Promise
      ? headers.then((signed) => this.#carry(call, signed))
      : this.#carry(call, headers)
  }

  #carry(call: Call, headers: HeaderText): Promise<BackendAnswer> {
    return new Promise((resolve, reject) => {
      call.carrier.carry(new Carriage(call, headers, this, { resolve, reject }))
    })
  }

  /** Without the base path of the target that it will go to. */
  pathOf(call: Call): string {
    const { path } = this.#rules
    return (path === undefined ? call.target.path : path(call)) + call.target.query
  }

  /** The headers of C8.2; at once, unless a token has to be signed first. */
  headersOf(call: Call): HeaderText | Promise<HeaderText> {
    const headers = this.#requestHeaders(call)
    const caller = this.#rules.identify(call)
    return caller instanceof Promise
      ? caller.then((signed) => followedBy(headers, signed))
      : followedBy(headers, caller)
  }

  /** What an upstream's response is as an answer. Throws the fault that it is instead (C8.4). */
  judge(call: Call, response: UpstreamResponse): BackendAnswer {
    const verdict = judgeStatus(response.statusCode, {
      conditional: 'if-none-match' in call.headers || 'if-modified-since' in call.headers,
      ranged: 'range' in call.headers,
      authorizationForwarded: this.#rules.forwardAuthorization && call.authorization !== undefined,
    })
    if (verdict.kind === 'answer') return this.#pass(call, response)
    return refusalAnswer(verdict, response, this.format, this.#clock.now())
  }

  #pass(call: Call, { statusCode, headers, body }: UpstreamResponse): BackendAnswer {
    const contentType = headers['content-type']
    if (call.action.produces === undefined && call.method !== 'HEAD' && !isOfRanges(statusCode, contentType))
      requireReadable(call, body, headers, this.format)
    return {
      status: statusCode,
      headers: cleanResponseHeaders(headers, this.#passed),
      body: passedBody(call.method, statusCode, body, contentType, headers['content-length']),
    }
  }

  healthy(): boolean {
    return this.targets.isHealthy
  }

  async close(): Promise<void> {
    for (const stop of this.#stopChecks) stop()
    await this.targets.close()
  }
}

const PARTIAL_CONTENT = 206

/** Several ranges at once (RFC 9110 §14.6): what the type of the whole is stands in each part. */
const isOfRanges = (status: number, contentType = ''): boolean =>
  status === PARTIAL_CONTENT && /^multipart\/byteranges\s*;/i.test(contentType)

/** An enveloped action's answer must be what the configuration says; compressed only if the client asked for it itself. */
function requireReadable(
  call: Call,
  body: Buffer | Readable,
  headers: UpstreamResponse['headers'],
  format: 'json' | 'xml',
): void {
  if (Buffer.isBuffer(body) && body.length === 0) return
  const coding = headers['content-encoding']?.toLowerCase() ?? 'identity'
  const plain = coding === 'identity' || 'accept-encoding' in call.headers
  if (plain && isOfFormat(headers['content-type'], format)) return
  if (!Buffer.isBuffer(body)) body.destroy()
  throw new Fault('upstream_broken', { detail: `unexpected Content-${plain ? 'Type' : 'Encoding'}` })
}

function passedBody(
  method: string,
  status: number,
  body: Buffer | Readable,
  contentType: string | undefined,
  declared: string | undefined,
): BackendBody {
  const whole = Buffer.isBuffer(body)
  if (method === 'HEAD' || hasNoContent(status)) {
    if (!whole) body.destroy()
    return { kind: 'none' }
  }
  if (whole) return { kind: 'bytes', bytes: body, contentType }
  return {
    kind: 'stream',
    stream: body,
    contentType,
    length: declared === undefined ? undefined : Number(declared),
  }
}
