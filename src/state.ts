/** What happened, as a process of the service knows it: the store, the change feed, and what is read from it. */
import { isSidecar, type Configuration } from './configuration.ts'
import type { StoreConfig } from './stores/config.ts'
import type { Recorder } from './contracts/recorder.ts'
import type { Store } from './contracts/store.ts'
import type { Ender } from './contracts/tokens.ts'
import { Endings } from './identity/tokens/endings.ts'
import type { Clock } from './kernel/clock.ts'
import { LONGEST_ACCESS_TOKEN, LONGEST_FOREIGN_TOKEN } from './kernel/lifetimes.ts'
import { MaintenanceBook } from './operations/maintenance-book.ts'
import { MaintenanceSwitches } from './operations/maintenance.ts'
import { ChangeFeed } from './stores/change-feed.ts'
import { openStore } from './stores/open-store.ts'
import { startPurging } from './stores/purge.ts'
import { RevocationRules } from './stores/revocations.ts'

export interface State {
  readonly store: Store
  readonly feed: ChangeFeed
  readonly rules: RevocationRules
  readonly ender: Ender
  readonly switches: MaintenanceSwitches
  readonly maintenance: MaintenanceBook
  close(): Promise<void>
}

export interface StateParts {
  readonly clock: Clock
  readonly recorder: Recorder
  /** This process has appended to the change feed: others should look. */
  readonly appended: () => void
}

/** Rejects with StoreError, or Fault `identity_unavailable`, with nothing left open. */
export async function openState(configuration: Configuration, parts: StateParts): Promise<State> {
  const { clock, recorder } = parts
  const store = await openStore(storeOf(configuration), configuration.data, clock)
  const feed = await openFeed(store, parts)
  const switches = new MaintenanceSwitches(clock)
  const stopPurging = startPurging({ store, recorder })
  const longestLife = { tokens: LONGEST_ACCESS_TOKEN, all: LONGEST_FOREIGN_TOKEN }
  const rules = new RevocationRules({ feed, clock, recorder, longestLife })
  return {
    store,
    feed,
    rules,
    ender: new Endings({ store, revoker: rules }),
    switches,
    maintenance: new MaintenanceBook({ feed, switches, clock, recorder }),
    close: async () => {
      stopPurging()
      await feed.stop()
      await store.close()
    },
  }
}

/** A sidecar leaves nothing on disk (C11.2). */
const storeOf = (configuration: Configuration): StoreConfig =>
  isSidecar(configuration) ? { kind: 'memory' } : configuration.store

async function openFeed(store: Store, parts: StateParts): Promise<ChangeFeed> {
  try {
    return await ChangeFeed.open({ store, ...parts })
  } catch (error) {
    await store.close()
    throw error
  }
}
