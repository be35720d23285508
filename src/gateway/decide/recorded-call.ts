import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import type {
  AuditActor,
  AuditCall,
  AuditEntry,
  AuditObject,
  BodyHash,
} from '../../base/contracts/records/audit.ts'
import type { Call, CallBody, CallRecord, Tunnel, TunnelEnd } from '../../base/contracts/calls/backend.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import { isJsonObject, type JsonObject, parseJson, plainText } from '../../base/http/body/json.ts'
import { type BodyKind, parseMediaType } from '../../base/http/head/media-type.ts'
import { traceIdOf } from '../../base/http/head/trace-context.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { Slices } from '../../base/kernel/slices.ts'
import type { AuditRule } from '../actions/action-table.ts'
import { isSmall } from '../conversion/at-once.ts'
import type { OnGone } from '../conversion/conversions.ts'
import { keptOf } from '../conversion/bodies.ts'
import type { CallOutcome, Decision, OutcomeRecord } from './pipeline.ts'
import type { Runtime } from './runtime.ts'

interface RecordedCallParts {
  readonly runtime: Runtime
  readonly exchange: Exchange
  readonly decision: Decision
  readonly rule: AuditRule
  readonly actor: AuditActor
  readonly on: AuditObject
}

type Personal = Readonly<Record<string, string>>

/** The path parameters of a call, by where they belong in its record (C12.2.3). */
export const personalParams = (params: Readonly<Record<string, string>>): Personal =>
  prefixed('on.params.', params)

const prefixed = (prefix: string, values: Readonly<Record<string, string>>): Personal =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [prefix + name, value]))

/** The records of one call: its intent, the end of its streamed body, its outcome (C12.1.3). */
export class RecordedCall implements CallRecord, OutcomeRecord {
  readonly #parts: RecordedCallParts
  #traceId: string | undefined
  #version: number | undefined
  #body: Pick<AuditCall, 'type' | 'bytes' | 'body'> | undefined
  #kept: Personal = {}
  readonly #reported = new Map<string, string>()
  #upstreamStatus: number | undefined
  /** The `seq` of the intent, once it is durable; undefined if a report-only area goes on without one. */
  #intent: Promise<number | undefined> | undefined
  /** True if the intent has its outcome, or gets none. */
  #isSettled = false

  constructor(parts: RecordedCallParts) {
    this.#parts = parts
  }

  /**
   * Takes the client's body as it came: its HMAC, and the parts that are kept. A promise only where that takes long.
   * Rejects with Fault `conversion_busy`, `client_gone`.
   * @param as how it is read; undefined: it cannot be read
   */
  received(bytes: Buffer, as: BodyKind | undefined): Promise<void> | undefined {
    if (bytes.length === 0) return undefined
    const { runtime, rule } = this.#parts
    const fields = as === undefined || rule.fields.length === 0 ? undefined : as
    const hash = runtime.audit.bodyHash()
    if (bytes.length > PIECE || fields !== undefined) return this.#takeLater(bytes, fields, hash)
    hash.update(bytes)
    this.#body = { type: this.#mediaType(), bytes: bytes.length, body: hash.digest() }
    return undefined
  }

  async #takeLater(bytes: Buffer, as: BodyKind | undefined, hash: BodyHash): Promise<void> {
    const slices = new Slices()
    for (let at = 0; at < bytes.length; at += PIECE) {
      hash.update(bytes.subarray(at, at + PIECE))
      await slices.pause(AT_ONCE)
    }
    this.#body = { type: this.#mediaType(), bytes: bytes.length, body: hash.digest() }
    if (as !== undefined) this.#kept = prefixed('change.sent.', await this.#keep(bytes, as))
  }

  async #keep(bytes: Buffer, as: BodyKind): Promise<Record<string, string>> {
    const { runtime, decision, rule, exchange } = this.#parts
    const { backend, body } = decision.operation
    const task = { bytes, as, schema: body.schema, xml: backend.xml, fields: rule.fields }
    if (isSmall(bytes, as === 'xml' ? 'xml' : 'json')) return keptOf(task)
    const { conversions } = runtime
    const sharer = { owner: backend.name, client: decision.principal?.clientKey }
    const onGone: OnGone = (listener) => exchange.onGone(listener)
    const run = () => conversions.run({ kind: 'kept', ...task }, sharer)
    const kept = await conversions.withSlot(sharer, onGone, run)
    return JSON.parse(kept.toString()) as Record<string, string>
  }

  /** The body as its backend gets it: one that streams is hashed on its way, and its end has a record of its own. */
  watched(body: CallBody): CallBody {
    if (body.kind !== 'stream') return body
    this.#body = { type: this.#mediaType() }
    const hash = this.#parts.runtime.audit.bodyHash()
    const stream = new HashedStream(body.stream, hash, (passed) => void this.#bodyEnded(passed))
    this.#parts.exchange.onEnd(() => stream.stop())
    return { ...body, stream }
  }

  /**
   * Records that the call is about to be made. Undefined if that depends on what a module sends. Rejects with Fault
   * `audit_unavailable`: the backend must not be asked then.
   */
  intend({ traceparent, version }: Call): Promise<unknown> | undefined {
    this.#traceId = traceIdOf(traceparent)
    this.#version = version
    return this.#parts.rule.calls === 'change' ? undefined : (this.#intent = this.#require())
  }

  async beforeChange(method: string): Promise<void> {
    await (this.#intent ??= this.#require({ upstreamMethod: method }))
  }

  #require(change?: AuditEntry['change']): Promise<number | undefined> {
    const { runtime, exchange, decision } = this.#parts
    const { clientAddress } = exchange
    const entry: AuditEntry = {
      ...this.#entry('call.intended', 'pending'),
      call: { version: this.#version, ...this.#body, wouldRefuse: decision.observation?.fault?.code },
      change,
      personal: { 'actor.address': clientAddress, ...personalParams(decision.params), ...this.#kept },
    }
    const kept = runtime.audit.require(entry, decision.observation && GOES_ON)
    return kept.catch((thrown: unknown) => this.#notKept(thrown))
  }

  /** A report-only area refuses nothing: there the call goes on without a record that cannot be kept (C12.1.6). */
  #notKept(thrown: unknown): undefined {
    const { runtime, exchange, decision } = this.#parts
    this.#isSettled = true
    if (decision.observation === undefined) throw thrown
    const { code, facts } = toFault(thrown)
    const { detail, cause } = facts
    runtime.recorder.note('warn', 'call_not_recorded', {
      requestId: exchange.id,
      reason: code,
      detail,
      cause,
    })
  }

  upstreamAnswered(status: number, header: string | readonly string[] | undefined): void {
    this.#upstreamStatus = status
    if (header === undefined) return
    const { runtime, exchange, decision } = this.#parts
    const values = readReportedValues(header)
    if (values === undefined || this.#reported.size + values.size > MOST_REPORTED) {
      const backend = decision.operation.backend.name
      runtime.recorder.note('warn', 'audit_header_ignored', { requestId: exchange.id, backend })
      return
    }
    for (const [name, value] of values) this.#reported.set(name, value)
  }

  async settle({
    outcome,
    reason,
    status,
    upstreamStatus = this.#upstreamStatus,
  }: CallOutcome): Promise<boolean> {
    if (this.#intent === undefined) return false
    const intent = await this.#intent.catch(() => undefined)
    if (this.#isSettled) return intent !== undefined
    this.#isSettled = true
    const { runtime, exchange, decision } = this.#parts
    const ms = Math.round(runtime.clock.monotonic() - exchange.startedAt)
    await runtime.audit.settle({
      ...this.#entry('call.settled', outcome),
      reason,
      intent,
      call: { status, upstreamStatus, ms, wouldRefuse: decision.observation?.fault?.code },
      personal: this.#reportedValues(),
    })
    return true
  }

  /** The tunnel is open: that is the outcome of its intent. */
  async opened(tunnel: Tunnel): Promise<void> {
    const intent = await this.#intent
    if (intent === undefined) return
    this.#isSettled = true
    const { audit, clock } = this.#parts.runtime
    const openedAt = clock.monotonic()
    audit.note({ ...this.#entry('tunnel.opened', 'success'), intent, personal: this.#reportedValues() })
    tunnel.onEnd((end) => {
      const ms = Math.round(clock.monotonic() - openedAt)
      audit.note({
        ...this.#entry('tunnel.closed', 'success'),
        reason: TUNNEL_ENDS[end],
        intent,
        call: { ms },
      })
    })
  }

  async #bodyEnded({ whole, bytes, body }: Passed): Promise<void> {
    const intent = await this.#intent?.catch(() => undefined)
    if (intent === undefined) return
    const entry = this.#entry('call.body_ended', whole ? 'success' : 'failed')
    this.#parts.runtime.audit.note({ ...entry, intent, call: { ...this.#body, bytes, body } })
  }

  #entry(event: AuditEntry['event'], outcome: AuditEntry['outcome']): AuditEntry {
    const { exchange, actor, on } = this.#parts
    return { event, outcome, requestId: exchange.id, traceId: this.#traceId, actor, on }
  }

  #mediaType(): string | undefined {
    const given = this.#parts.exchange.head.headers['content-type']
    return given === undefined ? undefined : parseMediaType(given)?.type
  }

  #reportedValues(): Personal | undefined {
    return this.#reported.size === 0
      ? undefined
      : prefixed('change.upstream.', Object.fromEntries(this.#reported))
  }
}

const GOES_ON = { goesOn: true }

/** How many bytes of a body are hashed before other calls get a turn. */
const PIECE = 256 * 1024
/** Steps of `Slices`: the clock is read after each piece. */
const AT_ONCE = 256
/** The most values that upstreams report of one call. A module may send several requests for one call. */
const MOST_REPORTED = 64

/** Why a tunnel ended, where not one of its two sides closed it. */
const TUNNEL_ENDS: Readonly<Record<TunnelEnd, string | undefined>> = {
  closed: undefined,
  token: 'token',
  idle: 'idle',
  shutdown: 'shutdown',
}

interface Passed {
  readonly bytes: number
  /** The HMAC of these bytes, base64url. */
  readonly body: string
  /** Whether that was all. */
  readonly whole: boolean
}

/**
 * The client's streamed body as its backend reads it: it is hashed on its way (C12.2.2). It reads the client's stream
 * only when it is read itself, and no faster. It never destroys that stream, which belongs to `gateway/server/`.
 */
class HashedStream extends Readable {
  readonly #source: Readable
  readonly #hash: BodyHash
  readonly #ended: (passed: Passed) => void
  #bytes = 0
  #listening = false
  #over = false

  /** @param ended called once, at the end of the body or of this stream */
  constructor(source: Readable, hash: BodyHash, ended: (passed: Passed) => void) {
    super()
    this.#source = source
    this.#hash = hash
    this.#ended = ended
    // Its backend listens for itself, while it reads. A client may leave before and after.
    this.on('error', () => undefined)
  }

  override _read(): void {
    if (!this.#listening) this.#listen()
    this.#source.resume()
  }

  #listen(): void {
    this.#listening = true
    const source = this.#source
    if (source.destroyed || source.readableEnded) this.#broken()
    else
      source.on('data', this.#take).on('end', this.#end).on('error', this.#broken).on('close', this.#broken)
  }

  readonly #take = (piece: Buffer): void => {
    this.#bytes += piece.length
    this.#hash.update(piece)
    if (!this.push(piece)) this.#source.pause()
  }

  readonly #end = (): void => {
    this.#finish(true)
    this.push(null)
  }

  readonly #broken = (): void => {
    if (!this.#over) this.destroy(this.#source.errored ?? new Fault('client_gone'))
  }

  /** The exchange is over: a body that nobody has begun to read will not be read. */
  stop(): void {
    if (!this.#listening) this.#finish(false)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const source = this.#source
    source.off('data', this.#take).off('end', this.#end).off('error', this.#broken).off('close', this.#broken)
    if (!source.readableEnded) source.pause()
    this.#finish(false)
    done(error)
  }

  #finish(whole: boolean): void {
    if (this.#over) return
    this.#over = true
    this.#ended({ bytes: this.#bytes, body: this.#hash.digest(), whole })
  }
}

/** The most bytes of the JSON. */
const MOST_BYTES = 4096
const BASE64URL = /^[A-Za-z0-9_-]+={0,2}$/
/** The most objects within each other, and the most values of any kind. */
const LIMITS = { depth: 8, nodes: 200 }
/** How many names of objects become part of a value's name; a deeper value is kept as JSON. */
const MOST_LEVELS = 3
const MOST_VALUES = 64

/**
 * What an upstream says of a change by its header X-Postern-Audit (C12.2.2): values by their names, such as
 * `before.Status`. A text stays as it is, everything else is JSON.
 * @param header base64url of a JSON object
 * @returns undefined if it cannot be read
 */
function readReportedValues(header: string | readonly string[]): ReadonlyMap<string, string> | undefined {
  if (typeof header !== 'string' || header.length > MOST_BYTES * 1.4 || !BASE64URL.test(header))
    return undefined
  const bytes = Buffer.from(header, 'base64url')
  if (bytes.length > MOST_BYTES) return undefined
  const reported = parsed(bytes)
  const values = new Map<string, string>()
  if (reported !== undefined) addAll(values, reported, '', 1)
  return reported === undefined || values.size > MOST_VALUES ? undefined : values
}

function parsed(bytes: Buffer): JsonObject | undefined {
  try {
    const value = parseJson(bytes, LIMITS)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function addAll(values: Map<string, string>, from: JsonObject, above: string, level: number): void {
  for (const [name, value] of Object.entries(from)) {
    const whole = above + name
    if (level < MOST_LEVELS && isJsonObject(value)) addAll(values, value, `${whole}.`, level + 1)
    else values.set(whole, plainText(value))
  }
}
