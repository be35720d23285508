/** The composition root: the supervisor's half of the service, and who serves under it. */
import { fileURLToPath } from 'node:url'
import type { Environment } from '../config/references.ts'
import { isSidecar, type Configuration } from '../settings/configuration.ts'
import type { Recorder } from '../contracts/recorder.ts'
import { NO_HOLDINGS } from '../directory/holdings.ts'
import { ServiceControl } from './control.ts'
import { reportOnlyAreas } from '../settings/dangers.ts'
import { LocalLockouts } from '../identity/guessing/lockouts.ts'
import { programBeside } from '../kernel/beside.ts'
import type { Clock } from '../kernel/clock.ts'
import { newSecret } from '../kernel/ids.ts'
import { adminRoutes } from '../operations/admin/openapi.ts'
import {
  type AdminListener,
  adminTokenFile,
  ensureAdminToken,
  startAdminListener,
} from '../operations/admin/listener.ts'
import type { OperatorControl } from '../operations/admin/routes.ts'
import { Exposition } from '../operations/metrics/exposition.ts'
import { FileWatch } from '../operations/file-watch.ts'
import { Health, WELL } from '../operations/health.ts'
import { gapLine, type LogDestination, openLog, standardOutput } from '../operations/log/log.ts'
import { endLostMeanwhile } from './recorded-holdings.ts'
import { readHoldings, Reloader } from './reload.ts'
import { serviceUrls, type ServiceUrls } from '../server/config.ts'
import { admitState, longestLifeOf, openState, type State } from './dependencies.ts'
import { countWorkers, type Reports, type WorkerPool } from '../supervisor/worker-pool.ts'
import { VERSION } from './version.ts'
import type { Worker } from './worker.ts'

export interface AppOptions {
  readonly clock: Clock
  readonly environment: Environment
  /** Standard output if not given. */
  readonly logDestination?: LogDestination
  /** Where the configuration comes from: from there it is reloaded. */
  readonly source?: ConfigurationSource
}

export interface ConfigurationSource {
  readonly file: string
  /** All that it consists of, as absolute paths: watched, and reloaded when one changes. */
  readonly files: ReadonlySet<string>
}

/** A service that answers. */
export interface Running extends ServiceUrls {
  readonly adminPort: number
  /** Where the token of the admin API is kept, if the configuration has none. */
  readonly adminTokenFile: string | undefined
  readonly pool: WorkerPool<Configuration>
  /** The one worker, where this very process serves; absent where there are several. */
  readonly worker: Worker | undefined
  readonly control: OperatorControl
  /** Stops taking calls, finishes those in flight, ends. Resolves with how many connections had to be cut. */
  close(): Promise<number>
}

/**
 * Starts the service that a configuration describes: in this process, or in as many as it wants. Rejects, with
 * nothing left open, with ConfigurationError, KeyFolderError, AdminTokenError, StoreError or what the system says of
 * an address.
 */
export async function startPostern(configuration: Configuration, options: AppOptions): Promise<Running> {
  const supervisor = openSupervisor(configuration, options)
  await admit(configuration, supervisor)
  reportReportOnlyAreas(configuration, supervisor)
  // Watched from the start: a change while the service starts is acted on as soon as it can be.
  const ready = Promise.withResolvers<ServiceControl>()
  const files = new FileWatch({
    changed: () => void ready.promise.then((control) => control.reload({ via: 'file change' })),
    recorder: supervisor.recorder,
  })
  files.watch(options.source?.files ?? new Set())
  const contentsChanged = (): void => void ready.promise.then((control) => control.reload({ via: 'worker' }))
  const pool = await startWorkerPool(configuration, options, supervisor, contentsChanged).catch(
    (error: unknown) => {
      files.close()
      throw error
    },
  )
  supervisor.pool = pool
  const opened: (() => Promise<void>)[] = []
  try {
    const control = await openControl(configuration, options, { supervisor, pool, files, opened })
    ready.resolve(control)
    const token = configuration.admin.token ?? (await ownAdminToken(configuration))
    const admin = await openAdmin(configuration, supervisor, control, token, options.clock)
    return {
      ...serviceUrls(configuration.server, pool.port),
      adminPort: admin.port,
      adminTokenFile:
        configuration.admin.token === undefined && !isSidecar(configuration)
          ? adminTokenFile(configuration.data)
          : undefined,
      pool,
      worker: isWorker(pool) ? pool : undefined,
      control,
      close: async () => {
        supervisor.health.drain()
        files.close()
        // Before anything is waited for: a reload or a restart that is under way must not keep the service from ending.
        const closed = pool.close()
        await control.stop()
        const cut = await closed
        await admin.close()
        for (const close of opened) await close()
        supervisor.recorder.note('info', 'stopped', { connectionsCut: cut })
        await supervisor.closeLog()
        return cut
      },
    }
  } catch (error) {
    files.close()
    await pool.close()
    for (const close of opened) await close()
    throw error
  }
}

/** A sidecar leaves nothing on disk (C11.2): unless its configuration gives a token, nobody can use its admin API. */
const ownAdminToken = (configuration: Configuration): Promise<string> =>
  isSidecar(configuration) ? Promise.resolve(newSecret()) : ensureAdminToken(configuration.data)

/** What the supervisor owns: the only registry, the only writer of the log, readiness, the count of failed logins. */
interface SupervisorParts {
  readonly exposition: Exposition
  readonly health: Health
  readonly recorder: Recorder
  readonly lockouts: LocalLockouts
  readonly reports: Reports
  /** Lines of the log, since the start. */
  readonly linesDropped: () => number
  /** Resolves when the log is written, after a second at most. */
  readonly closeLog: () => Promise<void>
  pool: WorkerPool<Configuration> | undefined
  /** Where a pool serves: the supervisor's own. */
  state: State | undefined
}

/** Loudly, at the start and after each reload. */
function reportReportOnlyAreas(
  configuration: Configuration,
  { exposition, recorder }: Pick<SupervisorParts, 'exposition' | 'recorder'>,
): void {
  const areas = reportOnlyAreas(configuration)
  exposition.showReportOnly(areas.length)
  if (areas.length > 0) recorder.note('warn', 'report_only_areas', { areas })
}

function openSupervisor(
  { log, identity }: Configuration,
  { clock, logDestination }: AppOptions,
): SupervisorParts {
  const sink = logDestination ?? standardOutput(gapLine(clock))
  const exposition = new Exposition({ version: VERSION, node: process.version })
  const own = openLog(log, { clock, destination: sink, actions: [] })
  const health = new Health()
  health.add({ name: 'workers', healthy: () => supervisor.pool?.isServing?.() ?? true })
  health.include(() => supervisor.pool?.condition() ?? WELL)
  const lockouts = new LocalLockouts(identity.guessing, clock)
  const supervisor: SupervisorParts = {
    exposition,
    health,
    recorder: own,
    lockouts,
    reports: {
      metrics: (plan, delta) => exposition.absorb(plan, delta),
      lines: (text, lost) => {
        if (lost > 0) sink.lose?.(lost)
        sink.write(text)
      },
      changed: () => {
        supervisor.pool?.pollChanges()
        void supervisor.state?.feed.refresh()
      },
      spent: () => undefined, // one worker has nobody to tell; a pool's tell each other by its board
      attempts: lockouts,
    },
    linesDropped: () => sink.dropped ?? 0,
    closeLog: async () => {
      own.close()
      await sink.end?.()
    },
    pool: undefined,
    state: undefined,
  }
  return supervisor
}

const isWorker = (pool: WorkerPool<Configuration>): pool is Worker => 'dependencies' in pool

/** Before anybody opens the store: what is found wrong with it later makes the service unready. */
async function admit(configuration: Configuration, supervisor: SupervisorParts): Promise<void> {
  const { later } = await admitState(configuration)
  let damaged = false
  supervisor.health.add({
    name: 'store',
    healthy: () => !damaged && supervisor.state?.store.trouble === undefined,
  })
  void later.then((error) => {
    if (error === undefined) return
    damaged = true
    supervisor.recorder.note('error', 'store.unfit', { detail: error.message })
  })
}

/** Only the kind in use is loaded: a supervisor of others serves nothing itself. */
async function startWorkerPool(
  configuration: Configuration,
  options: AppOptions,
  { reports, recorder }: SupervisorParts,
  contentsChanged: () => void,
): Promise<WorkerPool<Configuration>> {
  const size = countWorkers(configuration.workers)
  if (size === 1) {
    const { startWorker } = await import('./worker.ts')
    return startWorker(configuration, reports, options)
  }
  const { ClusterWorkerPool } = await import('../supervisor/cluster-worker-pool.ts')
  const program = fileURLToPath(programBeside(import.meta.url, 'worker-main'))
  return ClusterWorkerPool.start(configuration, {
    program,
    size,
    reports,
    note: (...args) => recorder.note(...args),
    contentsChanged,
    closeTimes: ({ server }) => server.timeouts,
  })
}

/** One worker's state is this process's; a pool's supervisor follows the change feed by itself. */
async function stateOf(
  configuration: Configuration,
  { clock }: AppOptions,
  supervisor: SupervisorParts,
  opened: (() => Promise<void>)[],
): Promise<State> {
  const { pool, recorder } = supervisor
  if (pool !== undefined && isWorker(pool)) return pool.dependencies.state
  const appended = (): void => supervisor.pool?.pollChanges()
  const state = await openState(configuration, { clock, recorder, appended })
  opened.push(() => state.close())
  supervisor.state = state
  return state
}

interface Started {
  readonly supervisor: SupervisorParts
  readonly pool: WorkerPool<Configuration>
  readonly files: FileWatch
  /** What is to be closed after the pool. */
  readonly opened: (() => Promise<void>)[]
}

async function openControl(
  configuration: Configuration,
  options: AppOptions,
  { supervisor, pool, files, opened }: Started,
): Promise<ServiceControl> {
  const { recorder, lockouts } = supervisor
  const { environment, source } = options
  const state = await stateOf(configuration, options, supervisor, opened)
  const parts = { state, pool, lockouts, recorder }
  if (source === undefined) {
    const holdings = (await readHoldings(configuration, environment)) ?? NO_HOLDINGS
    await endLostMeanwhile(holdings, { ...state, recorder })
    return new ServiceControl(configuration, { ...parts, holdings: () => holdings })
  }
  const reloader = await Reloader.open(configuration, {
    file: source.file,
    environment,
    pool,
    revoker: state.rules,
    tokenRevoker: state.tokenRevoker,
    store: state.store,
    adopting: (next) => state.longestLife.raise(longestLifeOf(next).all),
    recorder,
    changed: (next) => {
      control.adopt(next)
      lockouts.configure(next.identity.guessing)
      reportReportOnlyAreas(next, supervisor)
    },
    read: (read) => files.watch(read),
  })
  await endLostMeanwhile(reloader.holdings, { ...state, recorder })
  const control = new ServiceControl(configuration, { ...parts, holdings: () => reloader.holdings })
  control.reloadBy(reloader)
  return control
}

function openAdmin(
  { admin }: Configuration,
  { exposition, health, recorder, ...supervisor }: SupervisorParts,
  control: OperatorControl,
  token: string,
  clock: Clock,
): Promise<AdminListener> {
  return startAdminListener({
    config: admin,
    health,
    recorder,
    metrics: () => {
      supervisor.pool?.flush()
      exposition.showLogDropped(supervisor.linesDropped())
      return { contentType: exposition.contentType, text: exposition.text() }
    },
    api: { token, routes: adminRoutes(clock, VERSION), control },
  })
}
