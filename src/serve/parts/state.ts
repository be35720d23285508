/** The recorded state: the store, the change feed, and what is read from the feed. */
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import {
  type FeedReading,
  isShared,
  type Store,
  type StoreAtStart,
  type View,
} from '../../base/contracts/records/store.ts'
import {
  type LogoutNotices,
  NO_NOTICES,
  type OpenLogoutNotices,
} from '../../identity/dependencies/logouts.ts'
import { StoreTokenRevoker } from '../../identity/stored/token-revoker.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { LONGEST_ACCESS_TOKEN, LONGEST_FOREIGN_TOKEN, LONGEST_LEEWAY } from '../../base/kernel/lifetimes.ts'
import { StoreClock, TrustedOffset } from '../../base/kernel/store-clock.ts'
import { MaintenanceSwitches } from '../../gateway/maintenance/maintenance.ts'
import { MaintenanceRecords } from '../../gateway/maintenance/records.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import type { SharedStoreKinds } from '../../operate/settings/shared-stores.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { ChangeFeed } from '../../state/stores/feed/change-feed.ts'
import { readOwnMemory, readSeen, type SeenFeed } from '../../state/stores/feed/feed-progress.ts'
import { MeasuredStore } from '../../state/stores/measured-store.ts'
import { examineStore, openStore, startPurging } from '../../state/stores/open-store.ts'
import { type LongestLife, RecordedLife, RevocationRules } from '../../state/stores/feed/revocations.ts'
import { planSqlite, type StoreConfig } from '../../state/stores/schema.ts'
import { ClockDrift, compareClock, StoreDoubts } from '../../state/stores/feed/store-doubts.ts'
import type { TroubleListener } from '../../state/stores/link/store-error.ts'
import { idOfStore } from '../../state/stores/sqlite/store-files.ts'
import { FeedView } from '../../state/stores/feed/view.ts'
import { type Measures, readClock, readStore } from './measures.ts'

/** The recorded state as one process sees it: the store, the change feed, and what is read from the feed. */
export interface State extends AsyncDisposable {
  /** The time that all nodes of the store share; with a store of this machine alone its own clock. */
  readonly clock: Clock
  /** What this process knows of the store. */
  readonly view: View
  readonly doubts: StoreDoubts
  readonly store: Store
  readonly feed: ChangeFeed
  readonly rules: RevocationRules
  readonly tokenRevoker: StoreTokenRevoker
  readonly logouts: LogoutNotices
  readonly longestLife: RecordedLife
  readonly switches: MaintenanceSwitches
  readonly maintenance: MaintenanceRecords
  /** Takes over what another process of the machine has read of the feed, and of the store's clock. */
  take(reading: FeedReading): void
}

export interface StateParts {
  readonly clock: Clock
  readonly recorder: Recorder
  readonly audit: AuditTrail
  readonly measures: Measures
  readonly openNotices: OpenLogoutNotices
  readonly stores: SharedStoreKinds
  /** Milliseconds within which the store must answer; undefined: as callers of the service need it. */
  readonly answerWithin?: number
}

/** Examines the store once, before any process of the service opens it (T5.12). Rejects as `examineStore` does, and with StoreError. */
export async function admitState(
  configuration: Configuration,
  { recorder, stores }: Pick<StateParts, 'recorder' | 'stores'>,
): ReturnType<typeof examineStore> {
  const config = storeOf(configuration)
  await stores.get(config.kind)?.admit(config, troubleNotes(recorder))
  return examineStore(config, configuration.data)
}

const troubleNotes =
  (recorder: Recorder): TroubleListener =>
  (trouble) => {
    if (trouble === undefined) recorder.note('info', 'store.works_again')
    else recorder.note('error', 'store.unfit', { detail: trouble })
  }

/** Opens the state. Rejects with StoreError or Fault `identity_unavailable`; nothing is left open then. */
export async function openState(configuration: Configuration, parts: StateParts): Promise<State> {
  await using opened = new AsyncDisposableStack()
  const { clock: machine, recorder, audit, measures, answerWithin, openNotices, stores } = parts
  const config = storeOf(configuration)
  const { clock, offset } = sharedClock(config, parts)
  const options = { onTrouble: troubleNotes(recorder), answerWithin, offset }
  const shared = stores.get(config.kind)
  const unmeasured = await (shared
    ? shared.open(config, clock, options)
    : openStore(config, configuration.data, clock, options))
  const store = new MeasuredStore(unmeasured, clock, measures.metrics.storeCalled)
  opened.defer(() => store.close())
  const found = await store.shared?.atStart()
  if (offset && found) compareClock(offset, found, machine)
  const longestLife = await RecordedLife.open(store, longestLifeOf(configuration))
  const { seen, lacks } = found ? seenOfShared(configuration, found) : seenOfOwn(configuration, config)
  const feed = await ChangeFeed.open({ store, clock, machine, recorder, seen })
  opened.defer(() => feed.stop())
  const doubts = new StoreDoubts({ feed, clock, offset, lacks })
  const view = new FeedView({ feed, offset, maxAge: store.shared?.maxAge ?? NEVER })
  opened.defer(() => view.stop())
  const drift = offset && new ClockDrift({ store: clock, offset, machine, recorder })
  opened.defer(() => drift?.stop())
  if (!isSidecar(configuration)) measures.gauges.add(() => [...readStore(store, feed), ...readClock(drift)])
  const switches = new MaintenanceSwitches(clock)
  opened.defer(startPurging({ store, recorder }))
  const rules = new RevocationRules({ feed, clock, recorder, longestLife, view })
  const logouts = isSidecar(configuration) ? NO_NOTICES : await openNotices(store, clock)
  const state = {
    clock,
    view,
    doubts,
    store,
    feed,
    rules,
    longestLife,
    tokenRevoker: new StoreTokenRevoker(store, rules, logouts),
    logouts,
    switches,
    maintenance: new MaintenanceRecords({ feed, switches, clock, recorder, audit }),
    take: (reading: FeedReading) => {
      offset?.read(reading.page.now, reading.askedAt, reading.answeredAt)
      feed.take(reading)
    },
  }
  const inUse = opened.move()
  return { ...state, [Symbol.asyncDispose]: () => inUse.disposeAsync() }
}

interface Seen {
  readonly seen?: SeenFeed | undefined
  readonly lacks?: readonly string[] | undefined
}

function seenOfShared({ data }: Configuration, { contentsDoubted }: StoreAtStart): Seen {
  const before = readSeen(data)
  // Changes since a backup was restored would hide that from a node that starts later.
  return { seen: before && { ...before, doubted: before.doubted || contentsDoubted } }
}

/** Whether it is doubted was decided before any process opened it (store-memory.ts). */
function seenOfOwn({ data }: Configuration, config: StoreConfig): Seen {
  if (config.kind !== 'sqlite') return {}
  const memory = readOwnMemory(data, idOfStore(planSqlite(config, data).path))
  if (memory?.doubted !== true) return {}
  return { seen: { sequence: memory.sequence, doubted: true }, lacks: memory.lacks }
}

/**
 * How old the view may be, in milliseconds, with a store of this machine alone: nobody else can revoke anything while
 * it is out of reach.
 */
const NEVER = Number.POSITIVE_INFINITY

/**
 * With a store that several nodes share, its clock: a node whose own clock is ahead would otherwise issue tokens that outlive
 * the revocation rules of the others.
 */
function sharedClock(
  config: StoreConfig,
  { clock: machine, recorder }: Pick<StateParts, 'clock' | 'recorder'>,
): { readonly clock: Clock; readonly offset: TrustedOffset | undefined } {
  if (!isShared(config)) return { clock: machine, offset: undefined }
  const offset = new TrustedOffset((doubt) => {
    if (doubt === undefined) recorder.note('info', 'store.clock_believed')
    else recorder.note('error', 'store.clock_jumped', { seconds: Math.round(doubt / 1000) })
  })
  return { clock: new StoreClock(offset, machine), offset }
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
