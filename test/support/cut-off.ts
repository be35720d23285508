import { Fault } from '../../src/base/kernel/faults.ts'
import type { StartedPostern } from './start-postern.ts'

/** The change feed cannot be read until the returned function is called. Everything else of the store answers. */
export async function cutOff({ world: { store, state } }: StartedPostern): Promise<() => void> {
  const changes = store.changes.bind(store)
  const fail = (): Promise<never> =>
    Promise.reject(new Fault('identity_unavailable', { detail: 'the network is down' }))
  Object.assign(store, { changes: fail })
  // A reading that was under way may succeed still.
  await state.feed.refresh()
  return () => Object.assign(store, { changes })
}
