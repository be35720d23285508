/**
 * Explains a call: one that is described, or one that was made (C14). Imported only where one is explained: commands need
 * nothing of the decision.
 */
import { byOperator, type Operator } from '../../base/contracts/records/audited-change.ts'
import type { AuditEntry } from '../../base/contracts/records/audit.ts'
import type { DescribedCall, Explanation } from '../../base/contracts/calls/explanation.ts'
import { WorkerRequestError } from '../../base/contracts/processes/open-requests.ts'
import type { RecalledCall } from '../../base/contracts/processes/worker-pool.ts'
import { compareDecisions } from '../settings/compare-decisions.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import type { LoggedCall } from '../watch/log/call-lines.ts'
import type { Difference, PastAnswer } from '../watch/past-calls.ts'
import type { ServiceContext } from '../operation/context.ts'
import { AdminError } from '../operation/errors.ts'
import type { PastCall, PastCaller } from '../../base/contracts/processes/reports.ts'

/**
 * Decides a call that is described, and explains it. Nothing of the token and the body is recorded, and the record stops
 * nothing (C12.1.4). Rejects with AdminError 503 if no process can be asked, and with an error if the explanation is not
 * what was decided: a defect.
 */
export async function explainAndRecord(
  call: DescribedCall,
  service: ServiceContext,
  operator: Operator,
): Promise<Explanation> {
  const { audit, pool } = service
  const explanation = await orNoProcess(pool.explain(call))
  if (audit.on) audit.note(recordOfQuestion(explanation, operator))
  return explanation
}

/**
 * What was decided about a call of the past, and what would be now: for the call of this request id, if a process keeps it,
 * or for the call of a line of the log. Undefined if no process keeps it. Rejects as `explainAndRecord` does.
 */
export async function explainPastCall(
  past: string | LoggedCall,
  service: ServiceContext,
  operator: Operator,
): Promise<PastAnswer | undefined> {
  const { pool, audit } = service
  const found = typeof past === 'string' ? await pool.recall(past) : await explainLogged(past, service)
  if (found === undefined) return undefined
  const { call: then, now } = found
  const difference = compareDecisions({ ...then, hasCaller: then.caller !== undefined }, now)
  if (audit.on) audit.note(recordOfPastQuestion(then, difference, operator))
  return { then, now, difference }
}

/** A sidecar issues no tokens, so it cannot tell which scope and target a client would be given. */
async function explainLogged(
  line: LoggedCall,
  { pool, configuration }: ServiceContext,
): Promise<RecalledCall> {
  const described = describeLogged(line)
  const cannotTell = isSidecar(configuration()) && !saysToken(line)
  const now = described === undefined || cannotTell ? undefined : await orNoProcess(pool.explain(described))
  return { call: line, now }
}

/** The answer of a serving process. Rejects with AdminError 503 if none could be asked. */
export function orNoProcess<T>(asked: Promise<T>): Promise<T> {
  return asked.catch((thrown: unknown) => {
    if (!(thrown instanceof WorkerRequestError)) throw thrown
    throw new AdminError(503, 'no process could be asked: try again')
  })
}

/** The record of a question (C12.3). A path may hold personal values: only what an action names is recorded. */
function recordOfQuestion(
  { outcome, method, refusal, action, caller }: Explanation,
  operator: Operator,
): AuditEntry {
  return {
    event: 'explain.asked',
    outcome: 'success',
    ...byOperator(operator),
    on: {
      business: action?.business,
      fund: action?.fund,
      area: action?.area,
      action: action?.action,
      method,
      subject: caller?.subject,
      client: caller?.client,
    },
    grant: { scope: caller?.scope, target: caller?.target },
    change: { answer: outcome, ...(refusal && { reason: refusal.reason }) },
  }
}

/**
 * The call of a line of the log, by the token that its client would be given for its user now. Undefined if the line has
 * no path.
 */
function describeLogged({ method, path, accept, caller, business }: LoggedCall): DescribedCall | undefined {
  if (path === undefined) return undefined
  return {
    method,
    path,
    body: new Uint8Array(),
    headers: accept === undefined ? [] : [['Accept', accept]],
    caller: caller && claimedOf(caller, business),
  }
}

/** Whether a line tells all of the token that a decision looks at; true if there was no token. */
const saysToken = ({ caller }: LoggedCall): boolean =>
  caller === undefined || (caller.scope !== undefined && caller.target !== undefined)

/** The line of a call that was let in has no scope; its business was that of its target. */
function claimedOf(
  { client, subject, issuer, scope, target }: PastCaller,
  business: string | undefined,
): DescribedCall['caller'] {
  const place = target ?? (scope === undefined && business !== undefined ? `b/${business}` : undefined)
  const key = issuer === undefined ? client : `${issuer}:${client}`
  return { client: key, user: subject, scope, target: place?.replace(/^target:/, '') }
}

/** The record of a question about a call of the past (C12.3). Its path may hold personal values, and is left out. */
const recordOfPastQuestion = (
  { requestId, method, caller }: PastCall,
  { then, now }: Difference,
  operator: Operator,
): AuditEntry => ({
  event: 'explain.asked',
  outcome: 'success',
  ...byOperator(operator),
  on: { kind: 'call', id: requestId, method, client: caller?.client, subject: caller?.subject },
  grant: { scope: caller?.scope, target: caller?.target },
  change: { then, now },
})
