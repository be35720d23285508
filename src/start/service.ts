/** The composition root: starts the supervisor's parts, the workers and the admin listener, and connects them. */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { planAudit } from '../audit/schema.ts'
import { NO_TRAIL } from '../contracts/audit.ts'
import { isSidecar, type Configuration } from '../settings/configuration.ts'
import type { ServiceControl } from './control.ts'
import { programBeside } from '../kernel/beside.ts'
import { newSecret } from '../kernel/ids.ts'
import { localUrl } from '../kernel/listen-address.ts'
import { withStartBudget } from '../kernel/store-budget.ts'
import { adminRoutes } from '../operator/openapi.ts'
import { type AdminListener, startAdminListener } from '../operator/listener.ts'
import { DataFolderLock, pointToTrail } from '../operator/announcement.ts'
import { Operators } from '../operator/operators.ts'
import { adminTokenFile, ensureAdminToken } from '../operator/token-file.ts'
import type { ServiceContext } from '../operator/context.ts'
import { plainFacts } from '../audit/audited-change.ts'
import { FileWatch } from '../watch/file-watch.ts'
import { serviceUrls, type ServiceUrls } from '../server/schema.ts'
import { useData } from './data-users.ts'
import { ServiceEvents } from './service-events.ts'
import { countWorkers, type WorkerPool } from '../processes/worker-pool.ts'
import {
  admitStore,
  openSupervisor,
  reportReportOnlyAreas,
  scrape,
  type Supervisor,
  type SupervisorOptions,
} from './observation.ts'
import type { NodeBeat } from './node-beat.ts'
import { nodeOf } from './node-id.ts'
import { openTrailOwner } from './trail-owner.ts'
import { VERSION } from './version.ts'
import type { Worker } from './serving-worker.ts'
import { type ControlOptions, isWorker, openControl, type Started } from './open-control.ts'

export type AppOptions = SupervisorOptions & ControlOptions

/** A service that answers. */
export interface Running extends ServiceUrls {
  readonly adminPort: number
  /** The file that holds the token of the admin API. Absent where the configuration gives the token, and in a sidecar. */
  readonly adminTokenFile: string | undefined
  /** Whether another service used the data folder when this one started. */
  readonly sharesData: boolean
  readonly pool: WorkerPool<Configuration>
  /** The one worker, where this very process serves; absent where there are several. */
  readonly worker: Worker | undefined
  /** What operations work on. */
  readonly context: ServiceContext
  /** Stops taking calls, finishes those in flight, then ends. Resolves with the number of connections that were cut. */
  close(): Promise<number>
}

/**
 * Starts the service that a configuration describes, in this process or in several. Rejects with ConfigurationError,
 * KeyError, AdminTokenError or StoreError, or with the system's error if an address cannot be bound. Nothing is
 * left open then.
 */
export const startPostern = (configuration: Configuration, options: AppOptions): Promise<Running> =>
  withStartBudget(() => start(configuration, options))

async function start(configuration: Configuration, options: AppOptions): Promise<Running> {
  const supervisor = openSupervisor(configuration, options)
  await admitStore(configuration, supervisor)
  supervisor.trailOwner = await openTrailOwner(configuration, {
    ...options,
    recorder: supervisor.recorder,
    meter: supervisor.measures.metrics,
    anchorFailed: supervisor.measures.metrics.anchorFailed,
    node: nodeOf(configuration),
  })
  supervisor.audit = supervisor.trailOwner?.trail
  const use = isSidecar(configuration) ? undefined : useData(configuration.data)
  if (use?.isShared === true) supervisor.recorder.note('warn', 'data_shared', { detail: configuration.data })
  try {
    const running = await startServing(configuration, options, supervisor)
    return {
      ...running,
      sharesData: use?.isShared ?? false,
      close: () => running.close().finally(() => use?.end()),
    }
  } catch (error) {
    use?.end()
    await supervisor.trailOwner?.close()
    throw error
  }
}

async function startServing(
  configuration: Configuration,
  options: AppOptions,
  supervisor: Supervisor,
): Promise<Omit<Running, 'sharesData'>> {
  reportReportOnlyAreas(configuration, supervisor)
  const { metrics, directory } = configuration
  supervisor.exposition.limitClients(metrics.clients, Object.keys(directory.clients))
  // Files are watched before the workers start, so that a change meanwhile is not missed. The reload waits for `ready`.
  const ready = Promise.withResolvers<ServiceControl>()
  const reload = (via: string): void =>
    void ready.promise.then((control) => control.reload({ via, channel: 'file' }))
  const files = new FileWatch(supervisor.recorder, () => reload('file change'))
  files.watch(options.source?.files ?? new Set())
  const contentsChanged = (): void => reload('worker')
  const pool = await startWorkerPool(configuration, options, supervisor, contentsChanged).catch(
    (error: unknown) => {
      files.close()
      throw error
    },
  )
  supervisor.pool = pool
  const opened: (() => Promise<void>)[] = []
  try {
    const token = configuration.admin.token ?? (await ownAdminToken(configuration))
    const operators = new Operators(token, configuration.admin.tokens, options.clock)
    const { control, state, beat } = await openControl(configuration, options, {
      supervisor,
      pool,
      files,
      opened,
      operators,
    })
    ready.resolve(control)
    // The store of a sidecar forgets.
    if (!isSidecar(configuration)) await supervisor.trailOwner?.remembered.compare(state.store, configuration)
    const admin = await openAdmin(configuration, supervisor, control.context, operators)
    const announced = announce(configuration, localUrl(configuration.admin.listen, admin.port), supervisor)
    const { keysPlan } = control
    const watched = { audit: supervisor.audit, state, keysPlan, files: options.source?.files ?? [] }
    const events = new ServiceEvents(configuration, watched, options.clock)
    control.acts.reported = (act) => events.reported(act)
    events.start()
    return {
      ...serviceUrls(configuration.server, pool.port),
      adminPort: admin.port,
      adminTokenFile: ownTokenFile(configuration),
      pool,
      worker: isWorker(pool) ? pool : undefined,
      context: control.context,
      close: () =>
        endService({ supervisor, pool, files, opened, operators, control, admin, events, beat, announced }),
    }
  } catch (error) {
    files.close()
    await pool.close()
    for (const close of opened) await close()
    throw error
  }
}

interface Serving extends Started {
  readonly control: ServiceControl
  readonly admin: AdminListener
  readonly events: ServiceEvents
  readonly beat: NodeBeat | undefined
  readonly announced: DataFolderLock | undefined
}

/**
 * Tells commands of this service, as long as it holds the lock of its trail; where none is kept, that of its data folder. A
 * sidecar without a trail writes nothing to disk, and is found by its configuration.
 */
function announce(
  configuration: Configuration,
  adminUrl: string,
  { trailOwner }: Supervisor,
): DataFolderLock | undefined {
  const data = resolve(configuration.data)
  const announcement = { adminUrl, ...(ownTokenFile(configuration) !== undefined && { data }) }
  const plan = planAudit(configuration.audit, configuration.data, isSidecar(configuration))
  if (trailOwner === undefined || plan === undefined)
    return isSidecar(configuration) ? undefined : new DataFolderLock(data, announcement)
  trailOwner.announce(announcement)
  if (!isSidecar(configuration)) pointToTrail(data, plan.folder)
  return undefined
}

/** Resolves with the number of connections that were cut. */
async function endService(serving: Serving): Promise<number> {
  const { supervisor, pool, files, opened, control, admin, events, beat, announced } = serving
  supervisor.health.drain()
  files.close()
  // Called before anything is awaited: a reload or restart that is under way must not delay the end.
  const closed = pool.close()
  // The store stays open until the last call has ended.
  await beat?.stop()
  await control.stop()
  await events.stop()
  const cut = await closed
  await admin.close()
  for (const close of opened) await close()
  events.noteStopped(cut)
  announced?.release()
  await supervisor.trailOwner?.close()
  supervisor.recorder.note('info', 'stopped', { connectionsCut: cut })
  await supervisor.closeLog()
  return cut
}

/**
 * A sidecar writes nothing to disk (C11.2). Unless its configuration gives a token, its admin API gets a random one that
 * nobody knows, so nobody can use it.
 */
const ownAdminToken = (configuration: Configuration): Promise<string> =>
  isSidecar(configuration) ? Promise.resolve(newSecret()) : ensureAdminToken(configuration.data)

const ownTokenFile = (configuration: Configuration): string | undefined =>
  configuration.admin.token === undefined && !isSidecar(configuration)
    ? adminTokenFile(configuration.data)
    : undefined

/** Imports only the kind in use: a supervisor of several workers never needs the serving code, and saves its memory. */
async function startWorkerPool(
  configuration: Configuration,
  options: AppOptions,
  { audit, reports, recorder, measures }: Supervisor,
  contentsChanged: () => void,
): Promise<WorkerPool<Configuration>> {
  const size = countWorkers(configuration.workers)
  if (size === 1) {
    const { startWorker } = await import('./worker.ts')
    return startWorker(configuration, reports, { ...options, audit: audit ?? NO_TRAIL })
  }
  const { ClusterWorkerPool } = await import('../processes/cluster-worker-pool.ts')
  const program = fileURLToPath(programBeside(import.meta.url, 'worker-main'))
  return ClusterWorkerPool.start(configuration, {
    program,
    size,
    reports,
    note: (...args) => recorder.note(...args),
    died: ({ pid, livedMs }) => {
      measures.metrics.workerDied()
      audit?.note({
        event: 'worker.died',
        outcome: 'failed',
        actor: { kind: 'service' },
        change: plainFacts({ pid, livedMs }),
      })
    },
    contentsChanged,
    closeTimes: ({ server }) => server.timeouts,
  })
}

function openAdmin(
  { admin }: Configuration,
  supervisor: Supervisor,
  context: ServiceContext,
  operators: Operators,
): Promise<AdminListener> {
  const { audit, health, recorder } = supervisor
  return startAdminListener({
    config: admin,
    health,
    recorder,
    metrics: () => scrape(supervisor),
    operators,
    api: { audit: audit ?? NO_TRAIL, routes: adminRoutes(VERSION), context },
  })
}
