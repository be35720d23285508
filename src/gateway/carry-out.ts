import { cleanRequestHeaders } from '../backends/client-headers.ts'
import type { Release } from '../contracts/admission.ts'
import type { BackendAnswer, Call, CallBody } from '../contracts/backend.ts'
import type { Answer, Exchange } from '../contracts/exchange.ts'
import { toFault } from '../kernel/faults.ts'
import { takeBody } from './checks/body.ts'
import type { Findings } from './findings.ts'
import type { Decision } from './pipeline.ts'
import { takeBodyAnyway } from './report-only.ts'
import { passesVerbatim, represent } from './represent.ts'
import type { Runtime } from './runtime.ts'
import { nextTraceparent } from './trace.ts'

/** What follows a decision: the body is read and judged, the audit trail told, the backend asked, its answer written. */
export async function carryOut(
  runtime: Runtime,
  exchange: Exchange,
  decision: Decision,
  findings: Findings,
): Promise<Answer> {
  const prepared = prepareCall(runtime, exchange, decision)
  const call = prepared instanceof Promise ? await prepared : prepared
  const intended = runtime.audit.intend(call)
  if (intended !== undefined) await intended
  return represent(await ask(runtime, exchange, decision, call, findings), decision, call, runtime, exchange)
}

/** The call that a backend gets. Reads the body, and so throws what of C4.11 is left; at once where there is none. */
export function prepareCall(runtime: Runtime, exchange: Exchange, decision: Decision): Call | Promise<Call> {
  const taken = decision.observation
    ? takeBodyAnyway(decision, exchange)
    : takeBody(decision.body, exchange.body, decision.operation)
  return taken instanceof Promise
    ? taken.then((body) => callOf(runtime, exchange, decision, body))
    : callOf(runtime, exchange, decision, taken)
}

function callOf(runtime: Runtime, exchange: Exchange, decision: Decision, body: CallBody): Call {
  const { head } = exchange
  const { operation, outcome } = decision
  return {
    id: exchange.id,
    action: operation.facts,
    version: outcome.version,
    method: head.method,
    target: decision.target,
    params: decision.params,
    business: decision.business,
    fund: decision.fund,
    principal: decision.principal,
    issuer: runtime.issuer,
    headers: requestHeaders(exchange, decision),
    authorization: head.headers.authorization,
    body,
    accept: outcome.kind === 'own' ? outcome.type : undefined,
    clientAddress: exchange.clientAddress,
    scheme: exchange.scheme,
    host: runtime.host,
    traceparent: nextTraceparent(head.headers.traceparent),
    onCancel: (listener) => exchange.onGone(listener),
  }
}

/** Tells the upstream of a report-only area what would have been decided. */
const DECISION_HEADER = 'x-postern-decision'

/** Codings and ranges are of the bytes as the upstream sends them: they go on only where those reach the client. */
function requestHeaders({ head }: Exchange, decision: Decision): Record<string, string> {
  const clean = cleanRequestHeaders(head)
  if (decision.observation) clean[DECISION_HEADER] = decision.observation.header
  if (passesVerbatim(decision)) return clean
  const named = 'accept-encoding' in clean || 'range' in clean || 'if-range' in clean
  return named ? Object.fromEntries(Object.entries(clean).filter(([name]) => !OF_BYTES.has(name))) : clean
}

/** Of the bytes as the upstream sends them. */
const OF_BYTES: ReadonlySet<string> = new Set(['accept-encoding', 'range', 'if-range'])

/**
 * Asks the backend, which has only so many places for calls in flight, and tells how long it took. The place is held
 * until the answer has been read.
 */
async function ask(
  { admission, clock, recorder }: Runtime,
  exchange: Exchange,
  { operation }: Decision,
  call: Call,
  findings: Findings,
): Promise<BackendAnswer> {
  const { backend } = operation.action
  const release = admission.occupy?.(backend.name)
  const started = clock.monotonic()
  let outcome = 'answered'
  try {
    const answer = await backend.answer(call)
    if (release !== undefined) releaseAfter(answer, exchange, release)
    return answer
  } catch (thrown) {
    release?.()
    outcome = toFault(thrown).code
    throw thrown
  } finally {
    findings.upstreamMs = clock.monotonic() - started
    recorder.backend({ backend: backend.name, outcome, ms: findings.upstreamMs })
  }
}

/** A stream is in flight until it is closed, or its exchange has ended, whoever was to have closed it. */
function releaseAfter({ body }: BackendAnswer, exchange: Exchange, release: Release): void {
  if (body.kind !== 'stream' || body.stream.closed) {
    release()
    return
  }
  body.stream.once('close', release)
  exchange.onEnd(release)
}
