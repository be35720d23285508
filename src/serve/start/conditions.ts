/** How the store is, as one process sees it: a part of what /health/ready answers (C11.1). */
import type { Store, View } from '../../base/contracts/records/store.ts'
import type { StoreDoubts } from '../../state/stores/feed/store-doubts.ts'
import type { Condition, Degradation } from '../../base/kernel/health.ts'

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
