import type { Answer, Door, Exchange } from '../contracts/exchange.ts'
import type { DecisionEvent } from '../contracts/recorder.ts'
import { Fault, toFault } from '../kernel/faults.ts'
import { carryOut, carryUpgrade } from './carry-out.ts'
import { recordOutcome } from './call-records.ts'
import { VerifyFirst, type Verification } from './checks.ts'
import { Findings } from './findings.ts'
import { OpenTunnels } from './open-tunnels.ts'
import { decidePreflight, decideUserinfo, isPreflight } from './pipeline.ts'
import type { FaultRenderer } from './render.ts'
import { decideData } from './report-only.ts'
import { guardBytes } from './represent.ts'
import type { Runtime } from './runtime.ts'
import { describePrincipal, isUserinfo } from './userinfo.ts'

/** One decision about a call and, if it passed, what follows. */
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
      return finish(render()(fault, exchange.head.headers.accept), fault)
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

  /** A second decision has what the first one lacked; one that asks again is a defect, and no third one is made. */
  async function verifyAndAnswer(
    runtime: Runtime,
    exchange: Exchange,
    { token }: VerifyFirst,
  ): Promise<Answer> {
    const verified = await runtime.tokens.verify(token).catch(toFault)
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
 * Adds what goes on every answer of this call: its rate (C4.5), what its browser needs to see (C4.18) and, in a
 * report-only area, what keeps a browser from running bytes that no check has let through.
 */
function completed(
  answer: Answer,
  { headers: more, observation }: Findings,
  { cors }: Runtime,
  { head }: Exchange,
): Answer {
  if (more === undefined && cors === undefined && observation === undefined) return answer
  const own = observation === undefined ? answer.headers : guardBytes(answer.headers)
  const headers = { ...own, ...more }
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
  })
}
