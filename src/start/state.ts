/** What happened, as a process of the service knows it: the store, the change feed, and what is read from it. */
import { isSidecar, type Configuration } from '../settings/configuration.ts'
import type { StoreConfig } from '../stores/config.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { Store } from '../contracts/store.ts'
import type { TokenRevoker } from '../contracts/tokens.ts'
import { Endings } from '../identity/tokens/endings.ts'
import type { Clock } from '../kernel/clock.ts'
import { LONGEST_ACCESS_TOKEN, LONGEST_FOREIGN_TOKEN, LONGEST_LEEWAY } from '../kernel/lifetimes.ts'
import { MaintenanceRecords } from '../operations/maintenance/records.ts'
import { MaintenanceSwitches } from '../operations/maintenance/maintenance.ts'
import { ChangeFeed } from '../stores/change-feed.ts'
import { RecordedLife, type LongestLife } from '../stores/longest-life.ts'
import { admitStore, openStore } from '../stores/open-store.ts'
import { startPurging } from '../stores/purge.ts'
import { RevocationRules } from '../stores/revocations.ts'

export interface State {
  readonly store: Store
  readonly feed: ChangeFeed
  readonly rules: RevocationRules
  readonly ender: TokenRevoker
  readonly longestLife: RecordedLife
  readonly switches: MaintenanceSwitches
  readonly maintenance: MaintenanceRecords
  close(): Promise<void>
}

export interface StateParts {
  readonly clock: Clock
  readonly recorder: Recorder
  /** This process has appended to the change feed: others should look. */
  readonly appended: () => void
}

/** Examines the store once, before any process of the service opens it (T5.12): see `admitStore`. */
export const admitState = (configuration: Configuration): ReturnType<typeof admitStore> =>
  admitStore(storeOf(configuration), configuration.data)

/** Rejects with StoreError, or Fault `identity_unavailable`, with nothing left open. */
export async function openState(configuration: Configuration, parts: StateParts): Promise<State> {
  const { clock, recorder } = parts
  const store = await openStore(storeOf(configuration), configuration.data, clock, (trouble) => {
    if (trouble === undefined) recorder.note('info', 'store.works_again')
    else recorder.note('error', 'store.unfit', { detail: trouble })
  })
  const { feed, longestLife } = await openRecords(store, configuration, parts)
  const switches = new MaintenanceSwitches(clock)
  const stopPurging = startPurging({ store, recorder })
  const rules = new RevocationRules({ feed, clock, recorder, longestLife })
  return {
    store,
    feed,
    rules,
    longestLife,
    ender: new Endings({ store, revoker: rules }),
    switches,
    maintenance: new MaintenanceRecords({ feed, switches, clock, recorder }),
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

/**
 * What a configuration gives, in milliseconds. In a sidecar always the longest that may be configured: a reload that
 * raises an issuer's `longestLife` lets in tokens that were issued, and revoked, before it.
 */
export function longestLifeOf(configuration: Configuration): LongestLife {
  if (isSidecar(configuration)) {
    const tokens = LONGEST_FOREIGN_TOKEN + LONGEST_LEEWAY
    return { tokens, all: tokens }
  }
  const { refreshToken, session, code } = configuration.identity
  const lives = [LONGEST_ACCESS_TOKEN, refreshToken.lifetime, session.lifetime, code.lifetime]
  return { tokens: LONGEST_ACCESS_TOKEN, all: Math.max(...lives) }
}

async function openRecords(
  store: Store,
  configuration: Configuration,
  parts: StateParts,
): Promise<Pick<State, 'feed' | 'longestLife'>> {
  try {
    const longestLife = await RecordedLife.open(store, longestLifeOf(configuration))
    return { feed: await ChangeFeed.open({ store, ...parts }), longestLife }
  } catch (error) {
    await store.close()
    throw error
  }
}
