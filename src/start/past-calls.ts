/** Calls of the past, and the decision about them that is asked for again (C14.4). */
import { byOperator, type Operator } from '../audit/audited-change.ts'
import type { AuditEntry } from '../contracts/audit.ts'
import type { DescribedCall } from '../contracts/explanation.ts'
import { explainAgain, type ExplainParts } from '../gateway/explain/explain.ts'
import type { RecalledCall } from '../processes/worker-pool.ts'
import type { LoggedCall } from '../watch/log/call-lines.ts'
import type { Difference, KeptCall, PastCall, PastCaller } from '../watch/past-calls.ts'

type Described = Pick<KeptCall, 'method' | 'accept' | 'contentType' | 'websocket' | 'clientAddress'> & {
  readonly path: string
}

const UPGRADE: DescribedCall['headers'] = [
  ['Connection', 'Upgrade'],
  ['Upgrade', 'websocket'],
]

const headersOf = (named: Readonly<Record<string, string | undefined>>): DescribedCall['headers'] =>
  Object.entries(named).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))

/** A call that is kept, and what would be decided about it now; that is undefined if its path is not known. */
export async function recallCall(
  parts: ExplainParts,
  { principal, clientAddress, ...call }: KeptCall,
): Promise<RecalledCall> {
  const { path } = call
  if (path === undefined) return { call, now: undefined }
  return { call, now: await explainAgain(parts, describePast({ ...call, path, clientAddress }), principal) }
}

/** Without its body and its other headers, which are not kept. */
const describePast = ({
  method,
  path,
  accept,
  contentType,
  websocket,
  clientAddress,
}: Described): DescribedCall => ({
  ...{ method, path, from: clientAddress, body: new Uint8Array(), token: undefined, caller: undefined },
  headers: [...headersOf({ Accept: accept, 'Content-Type': contentType }), ...(websocket ? UPGRADE : [])],
})

/**
 * The call of a line of the log, by the token that its client would be given for its user now. Undefined if the line has
 * no path.
 */
export function describeLogged({
  method,
  path,
  accept,
  caller,
  business,
}: LoggedCall): DescribedCall | undefined {
  if (path === undefined) return undefined
  return {
    ...{ method, path, from: undefined, body: new Uint8Array(), token: undefined },
    headers: headersOf({ Accept: accept }),
    caller: caller && claimedOf(caller, business),
  }
}

/** Whether a line tells all of the token that a decision looks at; true where there was none. */
export const saysToken = ({ caller }: LoggedCall): boolean =>
  caller === undefined || (caller.scope !== undefined && caller.target !== undefined)

/** A call that was let in is told without its scope; its business was that of its target. */
function claimedOf(
  { client, subject, issuer, scope, target }: PastCaller,
  business: string | undefined,
): DescribedCall['caller'] {
  const place = target ?? (scope === undefined && business !== undefined ? `b/${business}` : undefined)
  const key = issuer === undefined ? client : `${issuer}:${client}`
  return { client: key, user: subject, scope, target: place?.replace(/^target:/, '') }
}

/** The record of a question about a call of the past (C12.3). Its path may hold personal values, and is left out. */
export const recordOfPastQuestion = (
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
