/** The recorded state: the store, the change feed, and what is read from the feed. */
import type { AuditTrail } from '../contracts/audit.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { Store } from '../contracts/store.ts'
import type { TokenRevoker } from '../contracts/tokens.ts'
import { StoreTokenRevoker } from '../identity/tokens/token-revoker.ts'
import type { Clock } from '../kernel/clock.ts'
import { LONGEST_ACCESS_TOKEN, LONGEST_FOREIGN_TOKEN, LONGEST_LEEWAY } from '../kernel/lifetimes.ts'
import { MaintenanceSwitches } from '../operations/maintenance/maintenance.ts'
import { MaintenanceRecords } from '../operations/maintenance/records.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'
import { ChangeFeed } from '../stores/change-feed.ts'
import type { StoreConfig } from '../stores/config.ts'
import { type LongestLife, RecordedLife } from '../stores/longest-life.ts'
import { MeasuredStore } from '../stores/measured-store.ts'
import { examineStore, openStore, startPurging } from '../stores/open-store.ts'
import { RevocationRules } from '../stores/revocations.ts'
import { type Measures, readStore } from './measures.ts'

/** The recorded state as one process sees it: the store, the change feed, and what is read from the feed. */
export interface State {
  readonly store: Store
  readonly feed: ChangeFeed
  readonly rules: RevocationRules
  readonly tokenRevoker: TokenRevoker
  readonly longestLife: RecordedLife
  readonly switches: MaintenanceSwitches
  readonly maintenance: MaintenanceRecords
  close(): Promise<void>
}

export interface StateParts {
  readonly clock: Clock
  readonly recorder: Recorder
  readonly audit: AuditTrail
  /** Called when this process appended to the change feed, so that others read it. */
  readonly appended: () => void
  readonly measures: Measures
  /** Milliseconds within which the store must answer; undefined: as callers of the service need it. */
  readonly answerWithin?: number
}

/** Examines the store once, before any process of the service opens it (T5.12). Rejects as `examineStore` does. */
export const admitState = (configuration: Configuration): ReturnType<typeof examineStore> =>
  examineStore(storeOf(configuration), configuration.data)

/** Opens the state. Rejects with StoreError or Fault `identity_unavailable`; nothing is left open then. */
export async function openState(configuration: Configuration, parts: StateParts): Promise<State> {
  const { clock, recorder, audit, measures, answerWithin } = parts
  const onTrouble = (trouble: string | undefined): void => {
    if (trouble === undefined) recorder.note('info', 'store.works_again')
    else recorder.note('error', 'store.unfit', { detail: trouble })
  }
  const options = { onTrouble, answerWithin }
  const opened = await openStore(storeOf(configuration), configuration.data, clock, options)
  const store = new MeasuredStore(opened, clock, measures.metrics.storeCalled)
  const { feed, longestLife } = await openRecords(store, configuration, parts)
  if (!isSidecar(configuration)) measures.gauges.add(() => readStore(store, feed))
  const switches = new MaintenanceSwitches(clock)
  const stopPurging = startPurging({ store, recorder })
  const rules = new RevocationRules({ feed, clock, recorder, longestLife })
  return {
    store,
    feed,
    rules,
    longestLife,
    tokenRevoker: new StoreTokenRevoker({ store, revoker: rules }),
    switches,
    maintenance: new MaintenanceRecords({ feed, switches, clock, recorder, audit }),
    close: async () => {
      stopPurging()
      await feed.stop()
      await store.close()
    },
  }
}

/** A sidecar writes nothing to disk (C11.2). */
const storeOf = (configuration: Configuration): StoreConfig =>
  isSidecar(configuration) ? { kind: 'memory' } : configuration.store

/**
 * The longest life of tokens, and of everything revocable, in milliseconds. In a sidecar it is the longest that may be
 * configured: a reload that raises an issuer's `longestLife` accepts tokens that were issued, and revoked, before it.
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
