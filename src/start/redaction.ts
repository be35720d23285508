/** Carries out an operator's order to erase the personal values of a subject in the audit trail (C12.2.3). */
import { type AuditedChange, type Operator, plainFacts, recordGiving } from '../audit/audited-change.ts'
import type { AuditTrail } from '../contracts/audit.ts'
import type { Recorder } from '../contracts/recorder.ts'
import { AdminError } from '../operator/errors.ts'
import type { Redacted } from '../audit/read/read-trail.ts'
import type { WorkerPool } from '../processes/worker-pool.ts'
import type { Configuration } from '../settings/configuration.ts'
import type { TrailOwner } from './trail-owner.ts'

export interface RedactionRequest {
  readonly audit: AuditTrail
  readonly trailOwner: TrailOwner | undefined
  readonly pool: Pick<WorkerPool<Configuration>, 'rollTrail'>
  readonly recorder: Pick<Recorder, 'note'>
}

const NOT_ROLLED = 'nothing was erased: a worker process could not end its segment of the trail; try again'

/** As `ServiceContext.redact`. The log does not name the subject. */
export async function orderRedaction(
  subject: string,
  operator: Operator,
  { audit, trailOwner, pool, recorder }: RedactionRequest,
): Promise<Redacted | undefined> {
  const rollWorkers = (): Promise<void> =>
    pool.rollTrail().catch((cause: unknown) => {
      recorder.note('warn', 'audit_not_rolled', { cause, ...operator })
      throw new AdminError(503, NOT_ROLLED)
    })
  const redacted = await trailOwner?.redact(subject, rollWorkers, (change, erase) => {
    const act: AuditedChange = { event: 'audit.redacted', on: { subject }, change: plainFacts(change) }
    return recordGiving(audit, operator, act, erase)
  })
  if (redacted !== undefined) recorder.note('info', 'audit_redacted', { ...redacted, ...operator })
  return redacted
}
