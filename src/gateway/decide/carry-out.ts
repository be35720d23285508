import type { Admission, Release } from '../../base/contracts/calls/admission.ts'
import type {
  Backend,
  BackendAnswer,
  BodyMaking,
  Call,
  CallBody,
  UpgradeOutcome,
} from '../../base/contracts/calls/backend.ts'
import type { Answer, Exchange, Upgrade } from '../../base/contracts/calls/exchange.ts'
import { type BusinessValues, NO_VALUES } from '../../base/contracts/people/places.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import {
  cleanRequestHeaders,
  CONDITIONS_OF_CHANGES,
  withoutOwnCookies,
} from '../../base/http/head/end-to-end-headers.ts'
import { type Head, isSafe } from '../../base/http/head/head.ts'
import { isPieces, Passage } from '../../base/http/body/pieces.ts'
import { nextTraceparent, nextTracestate, traceIdOf } from '../../base/http/head/trace-context.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { NO_BODY, readCallBody, readMadeBody } from './body.ts'
import { recordOf } from './call-records.ts'
import type { Decision, Findings } from './pipeline.ts'
import type { RecordedCall } from './recorded-call.ts'
import { readBodyUnrefused } from './report-only.ts'
import { passesVerbatim, refuse, represent, unmarkConditions } from './represent.ts'
import type { Runtime } from './runtime.ts'

/**
 * Carries out a decision: the body is read and checked, the audit trail is written, the backend is called, its answer is
 * represented. Without a body and an audit trail, only the backend is waited for.
 * Throws and rejects with the faults of C4.11 that are left, of the audit trail, of C4.5 (`callSlot`) and of the backend
 * (C8.4).
 */
export function carryOut(
  runtime: Runtime,
  exchange: Exchange,
  decision: Decision,
  findings: Findings,
): Promise<Answer> {
  const record = recordOf(runtime, exchange, decision, findings)
  findings.version = decision.negotiated.version
  const proceed = (call: Call): Promise<Answer> => {
    findings.traceId = traceIdOf(call.traceparent)
    const intended = record?.intend(call)
    if (intended === undefined) return callBackend(runtime, exchange, decision, call, findings)
    return intended.then(() => callBackend(runtime, exchange, decision, call, findings))
  }
  const call = callToBackend(runtime, exchange, decision, record)
  return call instanceof Promise ? call.then(proceed) : proceed(call)
}

/**
 * A call as the backend is handed it. A promise only where there is a body to read, or values of the business.
 * Throws and rejects with the faults of C4.11 that are left and of `valuesFor`.
 */
export function callToBackend(
  runtime: Runtime,
  exchange: Exchange,
  decision: Decision,
  record?: RecordedCall,
): Call | Promise<Call> {
  const { bodyUse } = decision.operation.backend
  if (bodyUse !== undefined) return callWithMade(runtime, exchange, decision, bodyUse, record)
  const callWith = (body: CallBody): Call | Promise<Call> => {
    const values = valuesFor(runtime, decision)
    return values instanceof Promise
      ? values.then((found) => callOf(runtime, exchange, decision, body, found, record))
      : callOf(runtime, exchange, decision, body, values, record)
  }
  const body = readBodyOf(runtime, exchange, decision, record)
  return body instanceof Promise ? body.then(callWith) : callWith(body)
}

/** How many bytes of a body are sent at most for each byte that a client's may have (C8.7). */
const MOST_GROWTH = 4

/** A call whose templates name the client's body, or whose body is made. Rejects as `readMadeBody`. */
async function callWithMade(
  runtime: Runtime,
  exchange: Exchange,
  decision: Decision,
  use: BodyMaking,
  record: RecordedCall | undefined,
): Promise<Call> {
  const { conversions, bodyLimit } = runtime
  const { operation } = decision
  const values = await valuesFor(runtime, decision)
  const frame = callOf(runtime, exchange, decision, NO_BODY, values, record)
  const { pointers, recipe } = use
  const making = { pointers, recipe, values: use.fill(frame), most: MOST_GROWTH * bodyLimit }
  const made = await readMadeBody(
    decision.body,
    exchange,
    operation,
    conversions,
    making,
    record,
    decision.principal?.clientKey,
  )
  return { ...frame, ...made }
}

/** Reads the body: the rest of C4.11. A promise only where there is a body to read. */
export const readBodyOf = (
  { conversions }: Runtime,
  exchange: Exchange,
  decision: Decision,
  record?: RecordedCall,
): CallBody | Promise<CallBody> =>
  decision.observation
    ? readBodyUnrefused(decision, exchange, conversions, record)
    : readCallBody(
        decision.body,
        exchange,
        decision.operation,
        conversions,
        record,
        decision.principal?.clientKey,
      )

/**
 * The values of the business that templates may name (C8.7). Looked up only where they name any.
 * @throws Fault `place_judge_unavailable`, as the promise's result
 */
function valuesFor(
  { places }: Runtime,
  { operation, business }: Decision,
): BusinessValues | Promise<BusinessValues> {
  if (operation.backend.namesValues !== true || places === undefined) return NO_VALUES
  return (
    places.valuesOf(business) ??
    places.lookForValues(business).catch((cause: unknown) => {
      throw new Fault('place_judge_unavailable', { cause, unchanged: true })
    })
  )
}

function callOf(
  runtime: Runtime,
  exchange: Exchange,
  decision: Decision,
  body: CallBody,
  values: BusinessValues,
  record: RecordedCall | undefined,
): Call {
  const { head } = exchange
  const { operation, negotiated } = decision
  return {
    id: exchange.id,
    action: operation.facts,
    version: negotiated.version,
    method: head.method,
    target: decision.target,
    params: decision.params,
    query: decision.query,
    found: NOTHING,
    values,
    business: decision.business,
    fund: decision.fund,
    principal: decision.principal,
    place: decision.place,
    issuer: runtime.issuer,
    headers: requestHeaders(exchange, decision, body),
    authorization: head.headers.authorization,
    body: record === undefined ? body : record.watched(body),
    accept: negotiated.kind === 'own' ? negotiated.type : undefined,
    clientAddress: exchange.clientAddress,
    scheme: exchange.scheme,
    host: runtime.host,
    baseUrl: runtime.baseUrl,
    traceparent: nextTraceparent(head.headers.traceparent),
    carrier: exchange.carrier,
    record,
    cookieDropped: () =>
      runtime.recorder.note('warn', 'cookie_dropped', {
        requestId: exchange.id,
        backend: operation.backend.name,
      }),
    hold: (bytes) => exchange.hold(bytes),
    onCancel: (listener) => exchange.onGone(listener),
  }
}

const NOTHING = Object.freeze(Object.create(null) as Record<string, never>)

/** Tells the upstream of a report-only area what the decision would have been. */
const DECISION_HEADER = 'x-postern-decision'

/**
 * The client's headers for the upstream. Where the client does not get the upstream's own bytes, `Accept-Encoding` and
 * ranges are left out: they would mean other bytes.
 * @throws Fault `unsendable_argument` for a condition of a change that would be dropped
 */
function requestHeaders(
  { head, upgrade }: Exchange,
  decision: Decision,
  body: CallBody,
): Record<string, string> {
  const { backend } = decision.operation
  const { requestHeaders: allowed, keptOut } = backend
  const clean = cleanRequestHeaders(head, allowed, upgrade !== undefined, keptOut?.headers)
  if (body.kind === 'stream') describeBody(clean, head)
  if (!isSafe(head.method)) requireConditions(clean, head)
  unmarkConditions(clean, decision, head.method)
  if (clean['tracestate'] !== undefined) continueTracestate(clean, head)
  if (decision.observation) clean[DECISION_HEADER] = decision.observation.header
  if (passesVerbatim(decision)) return clean
  const named = 'accept-encoding' in clean || 'range' in clean || 'if-range' in clean
  if (!named) return clean
  const left = backend.ranges === 'verbatim' && asksForUnit(clean) ? OF_CODINGS : OF_BYTES
  return Object.fromEntries(Object.entries(clean).filter(([name]) => !left.has(name)))
}

function continueTracestate(clean: Record<string, string>, { headers }: Head): void {
  const next = nextTracestate(clean['tracestate'] ?? '', headers.traceparent)
  if (next === undefined) delete clean['tracestate']
  else clean['tracestate'] = next
}

/** Whether a part in another unit than bytes is asked for. Some services have the unit in a header of its own. */
const asksForUnit = ({ range, 'range-unit': unit = '' }: Readonly<Record<string, string>>): boolean =>
  range !== undefined && !BYTES.test(range) && !BYTES.test(unit)

const BYTES = /^\s*bytes\b/i

/**
 * A body that passes unread keeps its codings and its range (RFC 9110 §14.5), whatever the backend's `requestHeaders`
 * say: without them the upstream would store it as something else.
 */
function describeBody(clean: Record<string, string>, { headers }: Head): void {
  for (const name of ['content-encoding', 'content-range'] as const) {
    const value = headers[name]
    if (value !== undefined) clean[name] = value
  }
}

/** A change whose condition is dropped would be made to data that the client has not seen (C8.2). */
function requireConditions(clean: Record<string, string>, { headers }: Head): void {
  for (const name of CONDITIONS_OF_CHANGES) {
    const folded = name.toLowerCase()
    if (headers[folded] !== undefined && !(folded in clean))
      throw new Fault('unsendable_argument', {
        say: `${name} is not passed on here, so the change would be made to any version of the data. Leave it out.`,
      })
  }
}

/** Headers about the bytes as the upstream sends them. */
const OF_BYTES: ReadonlySet<string> = new Set(['accept-encoding', 'range', 'if-range'])
const OF_CODINGS: ReadonlySet<string> = new Set(['accept-encoding'])

/** The call counts as in flight until the answer has been read. */
function callBackend(
  runtime: Runtime,
  exchange: Exchange,
  decision: Decision,
  call: Call,
  findings: Findings,
): Promise<Answer> {
  const { admission, clock, recorder } = runtime
  const { backend } = decision.operation
  const release = callSlot(admission, decision)
  const started = clock.monotonic()
  const failed = (thrown: unknown): never => {
    release?.()
    const ms = (findings.upstreamMs = clock.monotonic() - started)
    recorder.backend({ backend: backend.name, outcome: toFault(thrown).code, ms })
    throw afterSending(thrown, call)
  }
  const answered = (given: BackendAnswer): Answer | Promise<Answer> => {
    const headers = withoutOwnCookies(given.headers, call.cookieDropped)
    const clean = headers === given.headers ? given : { ...given, headers }
    const answer = release === undefined ? clean : releaseAfter(clean, exchange, release)
    findings.upstreamStatus = statusOf(answer)
    const ms = (findings.upstreamMs = clock.monotonic() - started)
    return knownOrNot(() => representRecorded(answer, decision, call, { runtime, exchange, ms }), call)
  }
  try {
    return backend.answer(call).then(answered, failed)
  } catch (thrown) {
    return failed(thrown)
  }
}

/** The status that the upstream answered, not the one that an error of its own becomes. */
const statusOf = ({ status, body }: BackendAnswer): number =>
  (body.kind === 'errors' ? body.upstreamStatus : undefined) ?? status

/** @throws and rejects with what `afterSending` makes of a fault */
function knownOrNot(make: () => Answer | Promise<Answer>, call: Call): Answer | Promise<Answer> {
  try {
    const made = make()
    return made instanceof Promise
      ? made.catch((thrown: unknown) => Promise.reject(afterSending(thrown, call)))
      : made
  } catch (thrown) {
    throw afterSending(thrown, call)
  }
}

/**
 * The fault of a call that the backend has got. Where the call may have changed something, and nobody knows whether it
 * did, the client must not be asked to send it again (C8.4a).
 */
function afterSending(thrown: unknown, { method }: Call): Fault {
  const fault = toFault(thrown)
  const isKnown = fault.facts.unchanged === true || fault.status < 500 || fault.code === 'audit_unavailable'
  if (isKnown || isSafe(method)) return fault
  return new Fault('outcome_unknown', { cause: fault.facts.cause, detail: `${fault.code}: ${fault.message}` })
}

/**
 * Counts a call in flight, of the backend and of the client at this backend (C4.5). In a report-only area the limit of
 * the client is only reported; that of the backend is enforced there too.
 * @returns what to call when the call has ended
 * @throws Fault `backend_busy`, `too_many_backend_calls`
 */
export function callSlot(
  admission: Admission,
  { operation, principal, observation }: Decision,
): Release | undefined {
  const { name } = operation.backend
  const client = principal?.clientKey
  if (observation === undefined) return admission.occupy?.(name, client)
  try {
    return admission.occupy?.(name, client)
  } catch (thrown) {
    if (toFault(thrown).code !== 'too_many_backend_calls') throw thrown
    observation.keep(thrown)
    return admission.occupy?.(name, undefined)
  }
}

/** A body in pieces is in flight until it was read, or at the latest until its exchange has ended. */
function releaseAfter(answer: BackendAnswer, exchange: Exchange, release: Release): BackendAnswer {
  const { body } = answer
  if (body.kind !== 'stream') {
    release()
    return answer
  }
  exchange.onEnd(release)
  return { ...answer, body: { ...body, pieces: new Passage(body.pieces, undefined, release) } }
}

const SWITCHED = 101

/** The backend takes the connection over, or answers why not. Rejects with the faults of `carryOut`. */
export async function carryUpgrade(
  runtime: Runtime,
  exchange: Exchange,
  decision: Decision,
  findings: Findings,
): Promise<Answer> {
  const { operation } = decision
  // A reload may have come between the reading of the upgrade and the decision: then the upgrade is ignored (T2.5).
  if (exchange.upgrade === undefined || !operation.upgrade)
    return carryOut(runtime, exchange, decision, findings)
  const record = recordOf(runtime, exchange, decision, findings, true)
  findings.version = decision.negotiated.version
  const call = await callToBackend(runtime, exchange, decision, record)
  findings.traceId = traceIdOf(call.traceparent)
  await record?.intend(call)
  const release = callSlot(runtime.admission, decision)
  try {
    const opened = await handOver(runtime, operation.backend, call, exchange.upgrade, findings)
    findings.upstreamStatus = opened.kind === 'open' ? SWITCHED : opened.answer.status
    if (opened.kind === 'refused') return (release?.(), refuse(opened.answer, runtime, exchange))
    await record?.opened(opened.tunnel)
    return open(opened, release)
  } catch (thrown) {
    release?.()
    throw thrown
  }
}

/** The call counts as in flight for as long as the tunnel is open. */
function open({ tunnel }: Extract<UpgradeOutcome, { kind: 'open' }>, release: Release | undefined): Answer {
  if (release !== undefined) tunnel.onEnd(release)
  return { status: SWITCHED, headers: {}, body: undefined, tunnel }
}

async function handOver(
  { clock, recorder }: Runtime,
  backend: Backend,
  call: Call,
  { socket, head }: Upgrade,
  findings: Findings,
): Promise<UpgradeOutcome> {
  const started = clock.monotonic()
  let outcome: string = ANSWERED
  try {
    if (backend.upgrade === undefined) throw new Fault('internal', { detail: 'a backend without upgrades' })
    return await backend.upgrade.take(call, socket, head)
  } catch (thrown) {
    outcome = toFault(thrown).code
    throw thrown
  } finally {
    findings.upstreamMs = clock.monotonic() - started
    recorder.backend({ backend: backend.name, outcome, ms: findings.upstreamMs })
  }
}

interface Represented {
  readonly runtime: Runtime
  readonly exchange: Exchange
  /** How long the backend took to answer, in milliseconds. */
  readonly ms: number
}

const ANSWERED = 'answered'

/** An answer that cannot be represented is recorded as a failure of the backend. */
function representRecorded(
  answer: BackendAnswer,
  decision: Decision,
  call: Call,
  how: Represented,
): Answer | Promise<Answer> {
  const { runtime, exchange } = how
  const { name } = decision.operation.backend
  let represented: Answer | Promise<Answer>
  try {
    represented = represent(answer, decision, call, runtime, exchange)
  } catch (thrown) {
    return recordUnusable(thrown, name, how)
  }
  if (!(represented instanceof Promise)) return recordAnswer(represented, name, how)
  return represented.then(
    (made) => recordAnswer(made, name, how),
    (thrown: unknown) => recordUnusable(thrown, name, how),
  )
}

function recordUnusable(thrown: unknown, backend: string, { runtime, ms }: Represented): never {
  runtime.recorder.backend({ backend, outcome: toFault(thrown).code, ms })
  throw thrown
}

/** The outcome of a stream is known at its end: it is verified while it passes, and may break. */
function recordAnswer(answer: Answer, backend: string, { runtime, exchange, ms }: Represented): Answer {
  const { recorder } = runtime
  const { body } = answer
  if (!isPieces(body)) {
    recorder.backend({ backend, outcome: ANSWERED, ms })
    return answer
  }
  let outcome: string = ANSWERED
  const pieces = new Passage(body, undefined, (error) => {
    if (error !== undefined) outcome = noteCut(error, exchange, backend, recorder) ?? outcome
  })
  exchange.onEnd(() => recorder.backend({ backend, outcome, ms }))
  return { ...answer, body: pieces }
}

/**
 * A stream may break after the call's log line was written. The client's connection is then cut, and this line says
 * why.
 * @returns the code of what broke it; undefined if the client has left
 */
function noteCut(thrown: unknown, { id }: Exchange, backend: string, recorder: Recorder): string | undefined {
  const { code, facts } = toFault(thrown)
  if (code === 'client_gone') return undefined
  const { detail, cause } = facts
  recorder.note('warn', 'answer_cut', { requestId: id, backend, reason: code, detail, cause })
  return code
}
