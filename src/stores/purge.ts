import type { Recorder } from '../contracts/recorder.ts'
import type { Store } from '../contracts/store.ts'
import { toFault } from '../kernel/faults.ts'
import { after as systemAfter, type After } from '../kernel/after.ts'

export interface PurgeParts {
  readonly store: Store
  readonly recorder: Pick<Recorder, 'note'>
  readonly after?: After
  /** 0 to 1. */
  readonly random?: () => number
}

const INTERVAL = 60_000
/** Some 10 ms of work in a large store, 30 at worst: what others ask meanwhile waits no longer than that. */
const BATCH = 200
/** Milliseconds between batches, in which others have their turn. */
const PAUSE = 50

/**
 * Removes what has expired, once a minute, in small batches. The intervals differ by up to a quarter, so that
 * processes which started together don't all do it in the same moment. Answers what stops it.
 */
export function startPurging({
  store,
  recorder,
  after = systemAfter,
  random = Math.random,
}: PurgeParts): () => void {
  let cancel: () => void
  let stopped = false
  const next = (removed: number): void => {
    if (stopped) return
    const pause = removed > 0 ? PAUSE : INTERVAL * (0.75 + random() / 2)
    cancel = after(pause, () => void purge().then(next))
  }
  const purge = async (): Promise<number> => {
    try {
      return await store.purge(BATCH)
    } catch (thrown) {
      if (stopped) return 0
      recorder.note('warn', 'store.purge_failed', { reason: toFault(thrown).message })
      return 0
    }
  }
  next(0)
  return () => {
    stopped = true
    cancel()
  }
}
