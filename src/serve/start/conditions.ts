/** How store and audit trail are, as one process sees them: parts of what /health/ready answers (C11.1, C12.4.3). */
import type { OpenTrail } from '../../state/audit/write/trail.ts'
import type { Store, View } from '../../base/contracts/records/store.ts'
import type { StoreDoubts } from '../../state/stores/feed/store-doubts.ts'
import type { Condition, Degradation } from '../../base/kernel/health.ts'
import type { TrailOwner } from '../parts/trail-owner.ts'

export interface StoreCondition {
  readonly store: Pick<Store, 'trouble' | 'refusesWrites' | 'shared'>
  readonly feed: { readonly age: number }
  readonly view: Pick<View, 'isOutdated'>
  readonly doubts: Pick<StoreDoubts, 'reasons'>
}

/** How old the change feed may be before that is a degradation, in milliseconds. */
const OLD_FEED = 5000

/**
 * A store that is gone or damaged is a failure: nobody can log in and nothing can be revoked. A store that several nodes share
 * is a degradation at first: no other node would do better, and data calls continue with what is known. So is one that takes no
 * writes.
 */
export function conditionOfStore({ view, ...state }: StoreCondition): Condition {
  const { store } = state
  const isLost = store.trouble !== undefined && store.shared === undefined
  if (isLost || view.isOutdated) return { failing: ['store'], degraded: [] }
  return { failing: [], degraded: reasonsOf(state).map((reason) => ({ name: 'store', reason })) }
}

const reasonsOf = ({
  store: { refusesWrites },
  feed,
  doubts,
}: Omit<StoreCondition, 'view'>): readonly Degradation['reason'][] => [
  ...(feed.age > OLD_FEED
    ? ['it cannot be read: nobody can log in, and data calls go on with what was known']
    : []),
  ...(refusesWrites === undefined
    ? []
    : [`it takes no writes: ${refusesWrites}. Logins and refreshes fail, and data calls go on`]),
  ...doubts.reasons,
]

const UNWRITABLE = 'records cannot be written: what must be recorded first is refused with 503'
const LATE =
  'records are late: its disk took longer than `audit.timeout`. What must be recorded first is refused with 503 while that is so'
const UNSIGNED = 'what is recorded cannot be signed'
const DISPLACED =
  'somebody removed, moved or changed a file of it while it was written: run `postern audit verify`; this stands until a restart'

const REPLACED =
  'the store remembers another trail in this folder, which was removed: run `postern audit verify`; this stands until a restart with that trail'

/** @param owner of the process that signs */
export function conditionOfTrail(
  trail: Pick<OpenTrail, 'state'> | undefined,
  owner?: Pick<TrailOwner, 'signer' | 'remembered'>,
): Condition {
  const signer = owner?.signer.state
  const { writable = true, held = 0, displaced = 0 } = trail?.state ?? {}
  const reasons = [
    ...(writable ? [] : [UNWRITABLE]),
    // A disk that hangs fails no attempt.
    ...(writable && held > 0 ? [LATE] : []),
    ...(signer?.signing === false ? [UNSIGNED] : []),
    ...(owner?.remembered.isReplaced === true ? [REPLACED] : []),
    ...(displaced > 0 || (signer?.displaced ?? 0) > 0 ? [DISPLACED] : []),
  ]
  return { failing: [], degraded: reasons.map((reason) => ({ name: 'audit trail', reason })) }
}
