/** What the audit trail keeps of calls (C12.1). */
import type { AuditEntry } from '../contracts/audit.ts'
import type { Call } from '../contracts/backend.ts'
import type { Runtime } from './runtime.ts'

/**
 * Records that a changing call is about to be made; undefined for any other call, without an allocation (C12.1.1).
 * Resolves with the `seq` of the intent. Rejects with Fault `audit_unavailable`; the backend must not be asked then.
 */
export const intendCall = ({ audit }: Pick<Runtime, 'audit'>, call: Call): Promise<number> | undefined =>
  call.action.audited && audit.on ? audit.require(intentOf(call)) : undefined

const intentOf = ({ id, action, method, business, fund, principal, clientAddress }: Call): AuditEntry => ({
  event: 'call.intended',
  outcome: 'pending',
  requestId: id,
  actor: { kind: 'user', subject: principal?.subject, client: principal?.client },
  on: { business, fund, area: action.area, action: action.action, method },
  personal: { 'actor.address': clientAddress },
})
