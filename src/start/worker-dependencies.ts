/** What a worker's decisions read and drive, beyond one configuration: opened once, kept over reloads. */
import { Conversions } from '../gateway/conversion/conversions.ts'
import type { Environment } from '../config/references.ts'
import { isSidecar, type Configuration } from '../settings/configuration.ts'
import type { Recorder } from '../contracts/recorder.ts'
import { Hasher } from '../directory/hasher.ts'
import { OpenedFunds } from '../directory/opened-funds.ts'
import { StoredDirectory } from '../directory/stored-directory.ts'
import type { Clock } from '../kernel/clock.ts'
import { planKeys } from '../keys/config.ts'
import { IssuerKeys } from '../keys/issuer-keys.ts'
import { openKeys, type ServiceKeys } from '../keys/service-keys.ts'
import { watchKeys } from '../keys/watch-keys.ts'
import { compileLoad } from '../limits/config.ts'
import { LoadGuard } from '../limits/load-guard.ts'
import type { MaintenanceRecords } from '../operations/maintenance/records.ts'
import type { MaintenanceSwitches } from '../operations/maintenance/maintenance.ts'
import type { Dependencies } from './service.ts'
import { openState, type State } from './state.ts'
import type { ChangeFeed } from '../stores/change-feed.ts'
import { countWorkers } from '../supervisor/config.ts'
import type { Reports } from '../supervisor/worker-pool.ts'

export interface WorkerOptions {
  readonly clock: Clock
  readonly environment: Environment
}

/** A world with the concrete parts that a worker drives. */
export interface WorkerDependencies extends Dependencies {
  readonly admission: LoadGuard
  readonly switches: MaintenanceSwitches
  readonly feed: ChangeFeed
  readonly maintenance: MaintenanceRecords
  readonly state: State
}

/** Of an upstream's target: it gets no calls any more. */
const BAD_CHANGES: ReadonlySet<string> = new Set(['ejected', 'unhealthy', 'distrusted'])

const openOwnKeys = ({ data, keys, identity }: Configuration, clock: Clock): Promise<ServiceKeys> =>
  openKeys(planKeys(data, keys, identity.idToken.lifetime), clock)

/** Rejects, with nothing left open, with KeyFolderError or StoreError. */
export async function openDependencies(
  configuration: Configuration,
  { clock, environment }: WorkerOptions,
  recorder: Recorder,
  reports: Reports,
): Promise<WorkerDependencies> {
  const keys = isSidecar(configuration) ? undefined : await openOwnKeys(configuration, clock)
  const appended = (): void => reports.changed()
  const state = await openState(configuration, { clock, recorder, appended })
  const { store, feed, rules, ender, switches, maintenance } = state
  return {
    clock,
    environment,
    keys,
    issuerKeys: new IssuerKeys(clock, recorder),
    store,
    feed,
    state,
    maintenance,
    hasher: new Hasher(),
    attempts: reports.attempts,
    revocations: rules,
    rules,
    ender,
    switches,
    admission: openGuard(configuration, clock, recorder, reports),
    audit: { intend: () => undefined },
    openedFunds: new OpenedFunds(),
    targetChanged: (backend, target, change) =>
      recorder.note(BAD_CHANGES.has(change) ? 'warn' : 'info', `upstream_target_${change}`, {
        backend,
        target,
      }),
    moduleFailed: (backend, thrown, requestId) =>
      recorder.note('error', 'module_failed', { backend, requestId, cause: thrown }),
    conversions: new Conversions(),
    storedDirectory: new StoredDirectory({ store, feed, clock }),
  }
}

/**
 * Keeps our own keys in step with their folder until what it answers is called. A store in memory can be reached by
 * nobody else: `keys rotate --compromised` leaves its families to this process.
 */
export async function watchOwnKeys(
  { keys, store, ender }: WorkerDependencies,
  { store: { kind } }: Configuration,
  recorder: Recorder,
): Promise<() => void> {
  if (keys === undefined) return () => undefined
  const endFamilies = async (): Promise<void> =>
    recorder.note('warn', 'refresh_token_families_ended', { families: await ender.endAllFamilies() })
  const secretReplaced = kind === 'memory' ? endFamilies : () => Promise.resolve()
  return watchKeys({ keys, store, recorder, secretReplaced })
}

/** The number of workers is that of the start: a reload does not change it. */
const openGuard = (
  configuration: Configuration,
  clock: Clock,
  recorder: Recorder,
  reports: Reports,
): LoadGuard =>
  new LoadGuard(loadOf(configuration), {
    clock,
    workers: countWorkers(configuration.workers),
    tell: (spending) => reports.spent(spending),
    note: (level, event, facts) => recorder.note(level, event, facts),
  })

export const loadOf = ({ load, workers, backends }: Configuration) =>
  compileLoad(load, countWorkers(workers), Object.keys(backends).length)
