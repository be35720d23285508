import type { Answer, Door, Exchange } from '../contracts/exchange.ts'
import type { DecisionEvent } from '../contracts/recorder.ts'
import { type Fault, toFault } from '../kernel/faults.ts'
import { carryOut, carryUpgrade } from './carry-out.ts'
import { describePrincipal, isUserinfo } from './userinfo.ts'
import { Findings } from './findings.ts'
import { goOn } from './go-on.ts'
import { OpenTunnels } from './open-tunnels.ts'
import { decide, decidePreflight, decideUserinfo } from './pipeline.ts'
import type { FaultRenderer } from './render.ts'
import { decideReportOnly, reportOnlyArea } from './report-only.ts'
import { guardBytes } from './represent.ts'
import type { Runtime } from './runtime.ts'

type Serve = (runtime: Runtime, exchange: Exchange, findings: Findings) => Answer | Promise<Answer>

const serveData: Serve = (runtime, exchange, findings) => {
  const area = reportOnlyArea(runtime, exchange.target)
  const decided =
    area === undefined
      ? decide(runtime, exchange, findings)
      : decideReportOnly(runtime, exchange, findings, area)
  const carry = exchange.upgrade === undefined ? carryOut : carryUpgrade
  return goOn(decided, (decision) => carry(runtime, exchange, decision, findings))
}

const serveUserinfo: Serve = async (runtime, exchange, findings) =>
  describePrincipal(runtime, await decideUserinfo(runtime, exchange, findings))

const servePreflight: Serve = async (runtime, exchange) => {
  await decidePreflight(runtime, exchange)
  return { status: 204, headers: runtime.cors?.preflight(exchange.head) ?? {}, body: undefined }
}

/**
 * The entrance to everything under `/api`, and to paths outside every door. `current` gives the runtime in force, read
 * once per call, so that a call is never judged by a mix of two configurations.
 */
export function apiDoor(current: () => Runtime, render: () => FaultRenderer): Door {
  const tunnels = new OpenTunnels(current)
  return (exchange) => {
    const runtime = current()
    const findings = new Findings()
    const userinfo = runtime.userinfo !== undefined && isUserinfo(exchange.target)
    const preflight = runtime.cors?.isPreflight(exchange.head) === true
    const serve = preflight ? servePreflight : userinfo ? serveUserinfo : serveData
    const finish = (answer: Answer, fault?: Fault): Answer => {
      if (answer.tunnel !== undefined) tunnels.add(answer.tunnel, exchange, findings, runtime)
      record(runtime, exchange, findings, userinfo ? 'userinfo' : 'api', fault, answer.status)
      return completed(answer, findings, runtime, exchange)
    }
    const refuse = (thrown: unknown): Answer => {
      const fault = toFault(thrown)
      return finish(render()(fault, exchange.head.headers.accept), fault)
    }
    let served: Answer | Promise<Answer>
    try {
      served = serve(runtime, exchange, findings)
    } catch (thrown) {
      return refuse(thrown)
    }
    return served instanceof Promise ? served.then(finish, refuse) : finish(served)
  }
}

/**
 * Adds what goes on every answer of this call: its rate (C4.5), what its browser wants to hear (C4.18), and in a
 * report-only area what keeps the browser from believing what no check has let through.
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
