/** What works badly in the audit trail of a process, for /health/ready (C12.4.3). */
import type { OpenTrail } from '../audit/trail.ts'
import type { Condition } from '../watch/health.ts'
import type { TrailOwner } from './trail-owner.ts'

const UNWRITABLE = 'records cannot be written: what must be recorded first is refused with 503'
const UNSIGNED = 'what is recorded cannot be signed'
const DISPLACED =
  'somebody removed, moved or changed a file of it while it was written: run `postern audit verify`; this stands until a restart'

const REPLACED =
  'the store remembers another trail in this folder, which was removed: run `postern audit verify`; this stands until a restart with that trail'

/** @param keeper of the process that signs */
export function conditionOfTrail(
  trail: Pick<OpenTrail, 'state'> | undefined,
  keeper?: Pick<TrailOwner, 'signer' | 'remembered'>,
): Condition {
  const signer = keeper?.signer?.state
  const { writable = true, held = 0, displaced = 0 } = trail?.state ?? {}
  const reasons = [
    // A record that was not written in time shows a disk that hangs, which fails no attempt.
    ...(writable && held === 0 ? [] : [UNWRITABLE]),
    ...(signer?.signing === false ? [UNSIGNED] : []),
    ...(keeper?.remembered.isReplaced === true ? [REPLACED] : []),
    ...(displaced > 0 || (signer?.displaced ?? 0) > 0 ? [DISPLACED] : []),
  ]
  return { failing: [], degraded: reasons.map((reason) => ({ name: 'audit trail', reason })) }
}
