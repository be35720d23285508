/** The parts of a worker that are opened once and kept over reloads: keys, store, change feed, limits, switches. */
import { EXTENSIONS, loadSecurityProfile, SETTINGS } from './settings.ts'
import type { Environment } from '../../base/config/validate.ts'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { SharedParts } from '../../base/contracts/records/store.ts'
import { Hasher } from '../../identity/directory/hashing/hasher.ts'
import { DisabledMarks } from '../../identity/directory/records/marks.ts'
import { OpenedFunds } from '../../identity/directory/records/places.ts'
import { StoredDirectory } from '../../identity/directory/records/stored-directory.ts'
import { StoredPlaces } from '../../identity/directory/records/stored-places.ts'
import { Conversions } from '../../gateway/conversion/conversions.ts'
import { endAllFamilies } from '../../identity/stored/token-revoker.ts'
import { type After, after as systemAfter, type Clock } from '../../base/kernel/clock.ts'
import { IssuerKeys } from '../../identity/keys/issuers/issuer-keys.ts'
import { openKeys, type ServiceKeys } from '../../identity/keys/signing/service-keys.ts'
import { KeyWatch } from '../../identity/keys/signing/watch-keys.ts'
import { LoadGuard } from '../../gateway/limits/load-guard.ts'
import { compileLoad } from '../../gateway/limits/schema.ts'
import type { MaintenanceSwitches } from '../../gateway/maintenance/maintenance.ts'
import type { MaintenanceRecords } from '../../gateway/maintenance/records.ts'
import { countWorkers, type WorkerMessages } from '../../base/contracts/processes/worker-pool.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import type { ChangeFeed } from '../../state/stores/feed/change-feed.ts'
import { ClientTallies } from '../../operate/watch/metrics/counts.ts'
import type { GaugeSources } from '../../operate/watch/metrics/gauges.ts'
import type { ProcessMetrics } from '../../operate/watch/metrics/metrics.ts'
import { keysPlanOf } from '../parts/key-plan.ts'
import type { EditingParts } from '../../identity/directory/editors/editing.ts'
import { type Measures, readKeys } from '../parts/measures.ts'
import type { Dependencies } from '../parts/parts.ts'
import type { State } from '../parts/state.ts'
import type { FindOpaqueTokens } from '../../identity/keys/issuers/opaque-tokens.ts'

/** On what a process serves: opened before it, by the process that serves and supervises, or by a worker process. */
export interface WorkerBase {
  /** The clock of this machine. */
  readonly clock: Clock
  readonly environment: Environment
  readonly state: State
  readonly audit: AuditTrail
  readonly measures: Measures
  /** It passes events to the configuration in force. */
  readonly recorder: Recorder
  /** To be disposed when nothing serves any more. */
  readonly opened: AsyncDisposableStack
  readonly pause?: EditingParts['pause']
}

/** The dependencies, with the concrete parts that a worker starts, polls and closes. */
export interface WorkerDependencies extends Dependencies {
  /** The clock of this machine: of lines of the log. */
  readonly machine: Clock
  /** Absent where there are no keys. */
  readonly keyWatch: KeyWatch | undefined
  readonly admission: LoadGuard
  readonly processes: LiveProcesses
  readonly hasher: Hasher
  readonly switches: MaintenanceSwitches
  readonly feed: ChangeFeed
  readonly maintenance: MaintenanceRecords
  readonly state: State
  readonly metrics: ProcessMetrics
  /** The gauges of this process, apart from those of a configuration. */
  readonly gauges: GaugeSources
}

const findOpaqueTokens: FindOpaqueTokens = (config) => {
  for (const { opaqueTokens } of EXTENSIONS) {
    const found = opaqueTokens?.(config)
    if (found !== undefined) return found
  }
  return undefined
}

/** Changes after which an upstream's target gets no calls. */
const EJECTIONS: ReadonlySet<string> = new Set(['ejected', 'unhealthy'])

/** Changes that operators are to see. */
const BAD_CHANGES: ReadonlySet<string> = new Set([...EJECTIONS, 'distrusted'])

/** Undefined in a sidecar, which issues nothing. */
async function openKeysOf(configuration: Configuration, state: State): Promise<ServiceKeys | undefined> {
  if (isSidecar(configuration)) return undefined
  const plan = await keysPlanOf(configuration, { kinds: SETTINGS.added.stores, store: state.store })
  return openKeys(plan, state.clock)
}

/** Opens everything. Rejects with KeyError or StoreError. */
export async function openDependencies(
  configuration: Configuration,
  { clock: machine, environment, state, audit, measures, recorder, opened, pause }: WorkerBase,
  reports: Pick<WorkerMessages, 'rateUsage' | 'attempts'>,
): Promise<WorkerDependencies> {
  const { clock, store, feed, rules, tokenRevoker, logouts, switches, maintenance } = state
  const keys = await openKeysOf(configuration, state)
  if (keys !== undefined) measures.gauges.add(() => readKeys(keys))
  const openSecurity = await loadSecurityProfile()
  const issuerKeys = new IssuerKeys(clock, recorder, findOpaqueTokens)
  opened.defer(() => issuerKeys.close())
  const conversions = new Conversions()
  opened.defer(() => conversions.close())
  const processes = new LiveProcesses(countWorkers(configuration.workers), store.shared)
  opened.defer(() => processes.stop())
  const storedPlaces = new StoredPlaces({ store, feed, clock, sealer: keys?.place })
  // On one machine a place is read in a millisecond, when it is named first.
  if (store.shared !== undefined) await storedPlaces.readAll()
  return {
    extensions: EXTENSIONS,
    addedBackends: SETTINGS.added.backends,
    clientForm: SETTINGS.added.clientForm,
    clock,
    machine,
    environment,
    keys,
    keyWatch: keys && watchOf(keys, state, configuration, recorder),
    security: openSecurity({ clock, recorder }),
    issuerKeys,
    store,
    feed,
    state,
    maintenance,
    hasher: new Hasher(),
    pause,
    attempts: reports.attempts,
    rules,
    tokenRevoker,
    logouts,
    switches,
    processes,
    admission: openGuard(configuration, state, recorder, reports),
    audit,
    openedFunds: new OpenedFunds(storedPlaces),
    targetChanged: (backend, target, change) => {
      const level = BAD_CHANGES.has(change) ? 'warn' : 'info'
      recorder.note(level, `upstream_target_${change}`, { backend, target })
      if (EJECTIONS.has(change)) recorder.upstream?.(backend, 'ejection')
    },
    retried: (backend) => recorder.upstream?.(backend, 'retry'),
    tokenChanged: (backend, reason, business) =>
      reason === undefined
        ? recorder.note('info', 'upstream_token_works_again', { backend, ...(business && { business }) })
        : recorder.note('warn', 'upstream_token_failed', {
            backend,
            ...(business && { business }),
            detail: reason,
          }),
    moduleFailed: (backend, thrown, requestId) =>
      recorder.note('error', 'module_failed', { backend, requestId, cause: thrown }),
    peopleFailed: (event, cause) => {
      recorder.note('error', event, { module: 'directory.people', cause })
      if (event === 'people_thread_replaced') measures.metrics.peopleThreadReplaced()
    },
    ...measures,
    conversions,
    tallies: new ClientTallies(),
    storedDirectory: new StoredDirectory({ store, feed, clock }),
    marks: await DisabledMarks.open({ store, feed }),
    storedPlaces,
  }
}

/**
 * Reloads our own keys when they change in their place. The command `keys rotate --compromised` cannot reach a store in
 * memory, so this process then ends the families itself.
 */
function watchOf(
  keys: ServiceKeys,
  { store, feed }: State,
  { store: { kind } }: Configuration,
  recorder: Recorder,
): KeyWatch {
  const endFamilies = async (): Promise<void> =>
    recorder.note('warn', 'refresh_token_families_ended', { families: await endAllFamilies(store) })
  const secretReplaced = kind === 'memory' ? endFamilies : () => Promise.resolve()
  return new KeyWatch({ keys, store, recorder, mark: () => feed.keys, secretReplaced })
}

/** The number of workers is fixed at the start; a reload does not change it. */
const openGuard = (
  configuration: Configuration,
  { clock, store }: Pick<State, 'clock' | 'store'>,
  recorder: Recorder,
  reports: Pick<WorkerMessages, 'rateUsage'>,
): LoadGuard =>
  new LoadGuard(loadOf(configuration), {
    clock,
    workers: countWorkers(configuration.workers),
    sendUsage: (usage) => reports.rateUsage(usage),
    openRates: store.shared?.openRates,
    note: (level, event, facts) => recorder.note(level, event, facts),
  })

/** The limits of a configuration for one of the processes that share them. */
export const loadOf = ({ load, workers, backends }: Configuration, processes = countWorkers(workers)) =>
  compileLoad(load, processes, Object.keys(backends).length)

/** Milliseconds between two looks. A node that dies is counted for ten seconds more. */
const INTERVAL = 10_000

/** How many processes share the limits of a configuration: those of this node, or of all nodes that share its store. */
class LiveProcesses {
  readonly #own: number
  readonly #nodes: Pick<SharedParts, 'live'> | undefined
  readonly #after: After
  #count: number
  #cancel: () => void = () => undefined
  #stopped = false
  /** Called when the number has changed. */
  changed: (count: number) => void = () => undefined

  /** @param own processes of this node that serve */
  constructor(own: number, nodes: Pick<SharedParts, 'live'> | undefined, after: After = systemAfter) {
    this.#own = own
    this.#nodes = nodes
    this.#after = after
    this.#count = own
    if (nodes !== undefined) this.#next(0)
  }

  get count(): number {
    return this.#count
  }

  stop(): void {
    this.#stopped = true
    this.#cancel()
  }

  #next(ms: number): void {
    if (!this.#stopped)
      this.#cancel = this.#after(ms, () => void this.#look().then(() => this.#next(INTERVAL)))
  }

  /** While the store is out of reach, the last number counts. */
  async #look(): Promise<void> {
    const live = await this.#nodes?.live().catch(() => undefined)
    if (live === undefined || this.#stopped) return
    const count = Math.max(this.#own, live.workers)
    if (count === this.#count) return
    this.#count = count
    this.changed(count)
  }
}
