import type { AuditActor, AuditObject, AuditOutcome } from '../../base/contracts/records/audit.ts'
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { Fault, FaultCode } from '../../base/kernel/faults.ts'
import { CHECKS } from './order.ts'
import type { Decision, Findings } from './pipeline.ts'
import { personalParams, RecordedCall } from './recorded-call.ts'
import type { Runtime } from './runtime.ts'

/** Why a call is refused: the faults of the decision, and those with which Postern itself keeps it from its backend. */
const REFUSALS: ReadonlySet<FaultCode> = new Set<FaultCode>([
  ...CHECKS.flatMap(({ faults }) => faults).filter((code) => code !== 'client_gone'),
  'backend_busy',
  'audit_unavailable',
])

/** The record of a call; undefined if it needs none (C12.1.1). @param upgrade whether the call upgrades its connection */
export function recordOf(
  runtime: Runtime,
  exchange: Exchange,
  decision: Decision,
  findings: Findings,
  upgrade = false,
): RecordedCall | undefined {
  const rule = decision.operation.audit
  if (rule === undefined || !runtime.audit.on || (rule.calls === 'upgrade' && !upgrade)) return undefined
  const { business, fund, operation } = decision
  const { area, action } = operation.facts
  return (findings.record = new RecordedCall({
    runtime,
    exchange,
    decision,
    rule,
    actor: actorOf(findings),
    on: { business, fund, area, action, method: exchange.head.method },
  }))
}

/** In a report-only area the caller of a genuine token is only `claimed`: nothing was enforced (C12.1.6). */
function actorOf({ principal, observation }: Findings): AuditActor {
  if (principal === undefined) return { kind: 'anonymous' }
  const { isMachine, subject, client } = principal
  if (isMachine)
    return observation === undefined ? { kind: 'client', client } : { kind: 'client', claimed: client }
  return observation === undefined
    ? { kind: 'user', subject, client }
    : { kind: 'user', claimed: subject, client }
}

/** Statuses of an upstream that may hold an error. */
const TELLING: ReadonlySet<number> = new Set([200, 500])

/** The outcome of a call: what refused it, what failed, or what its backend answered (C12.1.3). */
function outcomeOf(
  fault: Fault | undefined,
  status: number,
  upstreamStatus: number | undefined,
): AuditOutcome {
  if (fault === undefined && status < 400) return 'success'
  // No refusal: the upstream tried, and says in a 200 or 500 that it failed (C8.8).
  if (fault === undefined && upstreamStatus !== undefined && TELLING.has(upstreamStatus)) return 'failed'
  const isRefused = fault === undefined || REFUSALS.has(fault.code)
  return isRefused || (status < 500 && fault.code !== 'client_gone') ? 'refused' : 'failed'
}

/**
 * Records how a call with an intent ended, before the first byte of its answer; or that it was refused.
 * @returns undefined if nothing is to be waited for: the answer of a plain read
 */
export function recordOutcome(
  runtime: Runtime,
  exchange: Exchange,
  findings: Findings,
  fault: Fault | undefined,
  status: number,
): Promise<void> | undefined {
  const { record } = findings
  if (record === undefined) {
    if (fault !== undefined) recordRefusal(runtime, exchange, findings, fault)
    return undefined
  }
  const { upstreamStatus } = findings
  const outcome = {
    outcome: outcomeOf(fault, status, upstreamStatus),
    reason: fault?.code,
    status,
    upstreamStatus,
  }
  return record.settle(outcome).then((settled) => {
    if (!settled && fault !== undefined) recordRefusal(runtime, exchange, findings, fault)
  })
}

/** Refusals are recorded singly up to a limit (C12.1.5). A failure after the decision is no refusal. */
function recordRefusal(
  { audit }: Runtime,
  { id, head, clientAddress }: Exchange,
  findings: Findings,
  { code }: Fault,
): void {
  if (!audit.on || !REFUSALS.has(code)) return
  const { principal, operation, business, fund, params } = findings
  const { clientKey } = principal ?? {}
  audit.refuse({ event: 'call.refused', reason: code, address: clientAddress, client: clientKey }, () => {
    const on: AuditObject = { business, fund, ...placeOf(operation), method: head.method }
    const personal = { 'actor.address': clientAddress, ...personalParams(params) }
    const actor = actorOf(findings)
    return { event: 'call.refused', outcome: 'refused', reason: code, requestId: id, actor, on, personal }
  })
}

const placeOf = (operation: Findings['operation']): Pick<AuditObject, 'area' | 'action'> =>
  operation === undefined ? {} : { area: operation.facts.area, action: operation.facts.action }
