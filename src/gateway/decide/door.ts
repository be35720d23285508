import type { Tunnel, TunnelEnd } from '../../base/contracts/calls/backend.ts'
import type { Answer, Door, Exchange } from '../../base/contracts/calls/exchange.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import type { DecisionEvent } from '../../base/contracts/records/recorder.ts'
import { stringifyJson } from '../../base/http/body/json.ts'
import { incomingTraceId } from '../../base/http/head/trace-context.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { recordOutcome } from './call-records.ts'
import { carryOut, carryUpgrade } from './carry-out.ts'
import { isUserinfo, tokenSchemeOf, type Verification, VerifyFirst } from './checks.ts'
import { decide, decidePreflight, decideUserinfo, type Decision, Findings, isPreflight } from './pipeline.ts'
import { decideReportOnly, reportOnlyArea } from './report-only.ts'
import { type FaultRenderer, guardBytes } from './represent.ts'
import type { Runtime } from './runtime.ts'

/** The decision about a call of an action, by the rules of its area. @throws what `decide` or `decideReportOnly` throws */
export function decideData(
  runtime: Runtime,
  exchange: Exchange,
  findings: Findings,
  verified?: Verification,
): Decision | VerifyFirst | Promise<Decision> {
  const area = runtime.reportOnly.size === 0 ? undefined : reportOnlyArea(runtime, exchange.target)
  return area === undefined
    ? decide(runtime, exchange, findings, verified)
    : decideReportOnly(runtime, exchange, findings, area, verified)
}

type Serve = (
  runtime: Runtime,
  exchange: Exchange,
  findings: Findings,
  verified: Verification | undefined,
) => Answer | Promise<Answer> | VerifyFirst

const serveData: Serve = (runtime, exchange, findings, verified) => {
  const decision = decideData(runtime, exchange, findings, verified)
  if (decision instanceof VerifyFirst) return decision
  const carry = exchange.upgrade === undefined ? carryOut : carryUpgrade
  if (decision instanceof Promise)
    return decision.then((decided) => carry(runtime, exchange, decided, findings))
  return carry(runtime, exchange, decision, findings)
}

const USERINFO_HEADERS = {
  'Content-Type': 'application/json; charset=utf-8',
  'Cache-Control': 'no-store, must-revalidate, no-cache, max-age=0',
  Vary: 'Accept',
}

/** Answers userinfo: the claims of C5.6 as a bare JSON object (C6.3.1). Rejects as `Resource.describe` does. */
async function describePrincipal({ userinfo }: Runtime, principal: Principal): Promise<Answer> {
  if (userinfo === undefined) throw new Fault('unknown_action')
  return { status: 200, headers: USERINFO_HEADERS, body: stringifyJson(await userinfo.describe(principal)) }
}

const serveUserinfo: Serve = (runtime, exchange, findings, verified) => {
  const principal = decideUserinfo(runtime, exchange, findings, verified)
  return principal instanceof VerifyFirst ? principal : describePrincipal(runtime, principal)
}

const servePreflight: Serve = (runtime, exchange, _findings, verified) =>
  decidePreflight(runtime, exchange, verified) ?? {
    status: 204,
    headers: runtime.cors?.preflight(exchange.head) ?? {},
    body: undefined,
  }

/**
 * Answers everything under `/api`, and paths that no other door takes.
 * @param current the runtime in force. It is read once per call, so that no call is decided by a mix of two
 *   configurations, also where the call has to wait for the verification of its token.
 */
export function apiDoor(current: () => Runtime, render: () => FaultRenderer): Door {
  const tunnels = new OpenTunnels(current)

  function answer(
    runtime: Runtime,
    exchange: Exchange,
    verified: Verification | undefined,
  ): Answer | Promise<Answer> | VerifyFirst {
    const findings = new Findings()
    const userinfo = isUserinfo(runtime, exchange)
    const serve = isPreflight(runtime, exchange) ? servePreflight : userinfo ? serveUserinfo : serveData
    const finish = (served: Answer, fault?: Fault, isRecorded = false): Answer | Promise<Answer> => {
      const recorded = isRecorded
        ? undefined
        : recordOutcome(runtime, exchange, findings, fault, served.status)
      if (recorded !== undefined) return recorded.then(() => finish(served, fault, true))
      if (served.tunnel !== undefined) tunnels.add(served.tunnel, exchange, findings, runtime)
      record(runtime, exchange, findings, userinfo ? 'userinfo' : 'api', fault, served.status)
      return completed(served, findings, runtime, exchange)
    }
    const refuse = (thrown: unknown): Answer | Promise<Answer> => {
      const fault = toFault(thrown)
      const { head } = exchange
      return finish(render()(fault, head.headers.accept, tokenSchemeOf(runtime, head)), fault)
    }
    let served: ReturnType<Serve>
    try {
      served = serve(runtime, exchange, findings, verified)
    } catch (thrown) {
      return refuse(thrown)
    }
    if (served instanceof VerifyFirst) return served
    return served instanceof Promise ? served.then(finish, refuse) : finish(served)
  }

  /** A second decision that asks for the verification again is a defect: there is no third one. */
  async function verifyAndAnswer(
    runtime: Runtime,
    exchange: Exchange,
    { token }: VerifyFirst,
  ): Promise<Answer> {
    const verified = await runtime.tokens.verify(token, exchange).catch(toFault)
    const answered = await answer(runtime, exchange, verified)
    if (!(answered instanceof VerifyFirst)) return answered
    throw new Fault('internal', { detail: 'a decision asked twice for the verification of one token' })
  }

  return (exchange) => {
    const runtime = current()
    const answered = answer(runtime, exchange, undefined)
    return answered instanceof VerifyFirst ? verifyAndAnswer(runtime, exchange, answered) : answered
  }
}

/**
 * Adds the headers of every answer of this call: its rate (C4.5), what its client needs for its next proof (C4.4a), what its
 * browser needs to see (C4.18) and, in a report-only area, what keeps a browser from running bytes that no check has let
 * through.
 */
function completed(
  answer: Answer,
  { headers: more, proofHeaders, observation }: Findings,
  { cors }: Runtime,
  { head }: Exchange,
): Answer {
  const isPlain = more === undefined && proofHeaders === undefined
  if (isPlain && cors === undefined && observation === undefined) return answer
  const own = observation === undefined ? answer.headers : guardBytes(answer.headers)
  const headers = isPlain ? own : { ...own, ...more, ...proofHeaders }
  return { ...answer, headers: cors?.onAnswer(head, headers) ?? headers }
}

const reportedBy = ({ observation }: Findings): DecisionEvent['reported'] =>
  observation?.fault && { fault: observation.fault, area: observation.area }

function record(
  { clock, recorder }: Runtime,
  exchange: Exchange,
  findings: Findings,
  door: 'api' | 'userinfo',
  fault: Fault | undefined,
  status: number,
): void {
  recorder.decision({
    exchange,
    door,
    fault,
    status,
    slot: findings.operation?.action.slot,
    principal: findings.principal,
    business: findings.business,
    fund: findings.fund,
    reported: reportedBy(findings),
    upstreamMs: findings.upstreamMs,
    upstreamStatus: findings.upstreamStatus,
    totalMs: clock.monotonic() - exchange.startedAt,
    traceId: findings.traceId ?? incomingTraceId(exchange.head.headers.traceparent),
    version: findings.version,
  })
}

/** A revocation is in force in every process within 250 ms; a tunnel ends within a second of it (C4.16). */
const SWEEP_MS = 250

/** The open tunnels of this process. They are counted, and each ends with the token that opened it (C4.16). */
export class OpenTunnels {
  readonly #current: () => Runtime
  readonly #watched = new Map<Tunnel, Principal>()
  #timer: NodeJS.Timeout | undefined

  /** @param current the runtime in force, because tunnels outlive the one that opened them */
  constructor(current: () => Runtime) {
    this.#current = current
  }

  /**
   * Counts a tunnel. Its end is recorded with the recorder that recorded its beginning: a later runtime may not have
   * its backend any more, and the tunnel would be counted as open for ever.
   */
  add(
    tunnel: Tunnel,
    exchange: Exchange,
    { principal, operation }: Findings,
    { clock, recorder }: Runtime,
  ): void {
    if (principal === undefined || operation === undefined) return
    const openedAt = clock.monotonic()
    const record = (end: TunnelEnd | undefined): void => {
      const ms = clock.monotonic() - openedAt
      recorder.tunnel?.({ exchange, backend: operation.backend.name, end, ms })
    }
    record(undefined)
    if (tunnel.endsWithToken) this.#watch(tunnel, principal)
    tunnel.onEnd((end) => {
      this.#watched.delete(tunnel)
      record(end)
    })
  }

  #watch(tunnel: Tunnel, principal: Principal): void {
    this.#watched.set(tunnel, principal)
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  #sweep(): void {
    const { tokens } = this.#current()
    for (const [tunnel, principal] of this.#watched) {
      if (tokens.isCurrent(principal)) continue
      this.#watched.delete(tunnel)
      tunnel.close('token')
    }
    if (this.#watched.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
