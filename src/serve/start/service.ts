/** The start of a service, from top to bottom: what is opened, in which order, and how it ends. */
import { resolve } from 'node:path'
import type { Operator } from '../../base/contracts/records/audited-change.ts'
import type { Environment } from '../../base/config/validate.ts'
import { type AuditTrail, NO_TRAIL } from '../../base/contracts/records/audit.ts'
import type { JoinedNode } from '../../base/contracts/records/store.ts'
import type { EditingParts } from '../../identity/directory/editors/editing.ts'
import { type Holdings, NO_HOLDINGS } from '../../identity/directory/records/holdings.ts'
import { unknownMembers } from '../../identity/directory/records/stored-directory.ts'
import { systemTimer } from '../../identity/guessing/guessing.ts'
import { LocalLockouts, recordLockout } from '../../identity/guessing/lockouts.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { localUrl } from '../../base/kernel/listen-address.ts'
import { outsideBudgets, withStartBudget } from '../../base/kernel/store-budget.ts'
import type { TrailLock } from '../../operate/trail/lock.ts'
import type { AdminListener } from '../../operate/listener.ts'
import { hasCode } from '../../base/kernel/thrown.ts'
import { DataFolderLock } from '../../operate/trail/announcement.ts'
import type { ServiceContext } from '../../operate/operation/context.ts'
import { OpenIntents } from '../../operate/operation/open-intents.ts'
import { Operators } from '../../operate/operation/operators.ts'
import { countWorkers, type WorkerPool } from '../../base/contracts/processes/worker-pool.ts'
import { serviceUrls, type ServiceUrls } from '../../gateway/server/schema.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { SeenChanges } from '../../state/stores/feed/feed-progress.ts'
import { FileWatch } from '../../base/contracts/processes/file-watch.ts'
import { admitDataFolder, useData } from '../parts/data-folder.ts'
import { DataSpace } from '../parts/data-space.ts'
import { endLostMeanwhile, settleHoldings } from '../parts/holdings-record.ts'
import { InForce } from '../parts/in-force.ts'
import { keysPlanOf } from '../parts/key-plan.ts'
import { readLoads, readLockouts, readMaintenance, readNode, readWorkers } from '../parts/measures.ts'
import { digestForNodes, nodeFacts, nodeIdOf } from './node.ts'
import { Observation, type ObservationOptions } from './observation.ts'
import { announceService, openAdmin, ownAdminToken, ownTokenFile, tellWhereTrailIs } from './open-admin.ts'
import { messagesTo, serveByProcesses, serveHere, type ServiceBase } from './open-pool.ts'
import { ConfigurationLoads, readHoldings, Reloader } from '../parts/reload.ts'
import { ServiceEvents } from './service-events.ts'
import type { ServingWorker } from './serving-worker.ts'
import { admitState, longestLifeOf, type State } from '../parts/state.ts'
import { compareWithMemory, rememberOwn } from '../parts/store-memory.ts'
import type { OwnedTrail, TrailOpener } from '../../operate/hooks/kept-trail.ts'
import { Turns } from './turns.ts'
import { VERSION } from '../parts/version.ts'
import { hasPeopleElsewhere, SETTINGS, trailOpener, trailOpenerOf } from './settings.ts'

export interface StartOptions extends ObservationOptions {
  readonly clock: Clock
  readonly environment: Environment
  /** Waits until other processes know of a change of the directory. Tests pass their own. */
  readonly pause?: EditingParts['pause']
  /** Where a reload reads the configuration from. Absent: the service cannot be reloaded. */
  readonly source?: ConfigurationSource
}

interface ConfigurationSource {
  readonly file: string
  /** Every file that it consists of, as absolute paths. They are watched; a change of one reloads the configuration. */
  readonly files: ReadonlySet<string>
}

/** A service that answers. */
export interface Running extends ServiceUrls {
  readonly adminPort: number
  /** The file that holds the token of the admin API. Absent where the configuration gives the token, and in a sidecar. */
  readonly adminTokenFile: string | undefined
  /** Whether another service used the data folder when this one started. */
  readonly sharesData: boolean
  readonly pool: WorkerPool<Configuration>
  /** The one worker, where this very process serves; absent where there are several. */
  readonly worker: ServingWorker | undefined
  /** The parts that operations work on. */
  readonly context: ServiceContext
  /**
   * Stops taking calls, finishes those in flight, then ends. Resolves with the number of connections that were cut. May be
   * called again.
   */
  close(): Promise<number>
}

/**
 * Starts the service that a configuration describes, in this process or in several. Rejects with ConfigurationError,
 * DataFolderError, KeyError, AdminTokenError or StoreError, or with the system's error if an address cannot be bound. Nothing is
 * left open then.
 */
export const startPostern = (configuration: Configuration, options: StartOptions): Promise<Running> =>
  withStartBudget(() => start(configuration, options))

// long: what is opened, in its order, on one page
async function start(configuration: Configuration, options: StartOptions): Promise<Running> {
  const { clock, environment, source } = options
  const { clientForm } = SETTINGS.added
  const sidecar = isSidecar(configuration)
  // Holds what the last record and the last line of the log need. The stack below ends first: it holds what serves.
  await using lasting = new AsyncDisposableStack()
  await using serving = new AsyncDisposableStack()

  const observation = lasting.use(new Observation(configuration, options))
  const { health, measures, recorder } = observation
  let connectionsCut: number | undefined
  lasting.defer(() => {
    if (connectionsCut !== undefined) recorder.note('info', 'stopped', { connectionsCut })
  })
  if (!sidecar) admitDataFolder(configuration, trailOpener !== undefined)
  await admitStore(configuration, observation)
  // Files that are written once are written before anything serves: a full disk must not end a service that does.
  const token = configuration.admin.token ?? (await ownAdminToken(configuration))
  // Before anything serves: where its port is taken, no client has had an answer. Requests about the service wait for that.
  const operators = new Operators(token, configuration.admin.tokens, clock)
  const serves = Promise.withResolvers<WorkerPool<Configuration>>()
  const operated = Promise.withResolvers<ServiceContext>()
  const recording = Promise.withResolvers<AuditTrail>()
  let isStarting = true
  health.add({ name: 'starting', healthy: () => !isStarting })
  let listener: AdminListener | undefined
  const openListener = async (): Promise<AdminListener> => {
    if (listener !== undefined) return listener
    const opened = await openAdmin(configuration, observation, {
      pool: serves.promise,
      audit: { note: (entry) => void recording.promise.then((trail) => trail.note(entry)) },
      operators,
      context: operated.promise,
    })
    serving.defer(() => opened.close())
    return (listener = opened)
  }
  // A change while the service starts, or waits to, is read when everything serves.
  const ready = Promise.withResolvers<Turns>()
  const reload = (order: Operator): void => void ready.promise.then((turns) => turns.reload(order))
  const loads = new ConfigurationLoads(clock, reload)
  measures.gauges.add(() => readLoads(loads))
  const files = new FileWatch(recorder, () => reload({ via: 'file change', channel: 'file' }))
  serving.defer(() => files.close())
  files.watch(source?.files ?? new Set())

  const opener = await trailOpenerOf(configuration)
  const locked = opener && (await lockTrail(opener, configuration, observation, openListener))
  const lock = locked && lasting.adopt(locked, (held) => held.release())
  // Before the trail, so that the folder counts as used until that is closed; behind the wait for one who has used it.
  const data = sidecar ? undefined : lasting.use(useData(configuration.data))
  const space = sidecar ? undefined : await watchSpace(configuration, observation, lasting)
  const trailOwner = lock && (await openTrail(opener, configuration, options, observation, { lock, lasting }))
  const audit = trailOwner?.trail ?? NO_TRAIL
  recording.resolve(audit)
  tellWhereTrailIs(configuration)
  if (data?.isShared === true) recorder.note('warn', 'data_shared', { detail: configuration.data })
  const trail = trailOwner?.queried
  await compareWithMemory(configuration, { clock, recorder, trail })
  const announcer =
    trailOwner ?? (sidecar ? undefined : lasting.use(new DataFolderLock(resolve(configuration.data))))
  const lockouts = openLockouts(configuration, clock, audit, observation)

  const admin = await openListener()

  observation.reportReportOnlyAreas(configuration)
  observation.exposition.limitClients(
    configuration.metrics.clients,
    Object.keys(configuration.directory.clients),
  )
  const base = { ...options, observation, audit, opened: serving }
  const messages = messagesTo(observation, lockouts)
  const contentsChanged = (): void => reload({ via: 'worker', channel: 'file' })
  const { state, pool, worker } =
    countWorkers(configuration.workers) === 1
      ? await serveHere(configuration, base, messages)
      : await serveByProcesses(configuration, { ...base, trailOwner }, messages, contentsChanged)
  health.include(() => observation.conditionOfLog())
  if (trailOwner !== undefined) health.include(() => trailOwner.condition())
  measures.gauges.add(() => [...readWorkers(pool.states?.()), ...readMaintenance(state.maintenance)])

  serves.resolve(pool)

  const kinds = SETTINGS.added.stores
  const current = new InForce(configuration, {
    plan: sidecar ? undefined : await keysPlanOf(configuration, { kinds, store: state.store }),
    state,
    clock,
    environment,
    clientForm,
    hasPeopleElsewhere,
    pause: options.pause,
  })
  const inForce = (next: Configuration): void => {
    current.adopt(next)
    joined?.changed()
    operators.configure(next.admin.tokens)
    lockouts.configure(next.identity.guessing)
    observation.reportReportOnlyAreas(next)
    observation.exposition.limitClients(next.metrics.clients, holdings().clients.keys())
  }
  const reloader =
    source && (await openReloader(configuration, source, { ...base, state, pool, files, inForce }))
  const served = reloader ?? {
    holdings: (await readHoldings(configuration, { environment, clientForm })) ?? NO_HOLDINGS,
  }
  const holdings = (): Holdings => served.holdings
  observation.exposition.limitClients(configuration.metrics.clients, holdings().clients.keys())
  rememberOwn(configuration, { clock, recorder, feed: state.feed, opened: serving })
  // Its port may be one that the system has chosen.
  const { listen } = configuration.server
  const address = `${listen.slice(0, listen.lastIndexOf(':') + 1)}${pool.port}`
  const inForceNow = (): Configuration => current.configuration
  const joined = joinNodes(configuration.data, { ...base, state, lockouts, holdings, address, inForceNow })
  measures.gauges.add(() => (joined === undefined ? [] : readNode(digestForNodes(inForceNow()), joined.live)))
  await endLostMeanwhile(holdings(), { ...state, recorder })

  const turns = new Turns({ reloader, pool, loads, recorder, audit })
  serving.defer(() => turns.stop())
  const intents = new OpenIntents(audit)
  serving.defer(() => intents.close())
  const context: ServiceContext = {
    intents,
    store: state.store,
    rules: state.rules,
    tokenRevoker: state.tokenRevoker,
    logouts: state.logouts,
    maintenance: state.maintenance,
    doubts: state.doubts,
    pool,
    holdings,
    lockouts,
    recorder,
    audit,
    clock,
    authUrl: () => serviceUrls(current.configuration.server, pool.port).authUrl,
    environment,
    settings: SETTINGS,
    version: VERSION,
    configuration: () => current.configuration,
    editors: () => current.editors(),
    keys: () => Promise.resolve(current.keys),
    readings: () => observation.readings(pool),
    readiness: () => health.readiness(),
    loads,
    callHistory: observation.callHistory,
    startedAt: clock.now(),
    file: source?.file,
    trailOwner,
    trail,
    reload: (operator) => turns.reload(operator),
    restart: (operator) => turns.restart(operator),
  }
  ready.resolve(turns)
  // The store of a sidecar forgets.
  if (!sidecar) await trailOwner?.compare(state.store, configuration)

  operated.resolve(context)
  // Once more: it is closed before what it works on.
  serving.defer(() => admin.close())
  isStarting = false
  await pool.open()
  // The first start has filled the folder since.
  void space?.measure()
  if (!sidecar) void outsideBudgets(() => noteUnknownMembers(state, observation))
  announceService(configuration, localUrl(configuration.admin.listen, admin.port), announcer)
  const watched = { audit, state, keys: current.keys, files: source?.files ?? [] }
  const events = new ServiceEvents(configuration, watched, clock)
  serving.defer(() => events.stop())
  events.start()

  const [servingParts, lastingParts] = [serving.move(), lasting.move()]
  const end = async (): Promise<number> => {
    // Whatever fails, the trail is closed, the log is written, and the locks are given back.
    try {
      try {
        // Not the reverse of the start: whoever balances load must know at once, and what is under way has its time.
        health.drain()
        files.close()
        // Begun before anything is awaited: a reload or restart that is under way must not delay the end.
        const closed = pool.close()
        closed.catch(() => undefined)
        // The store stays open until the last call has ended, and the admin listener tells until then how it goes.
        await joined?.stop()
        await turns.stop()
        await events.stop()
        connectionsCut = await closed
      } finally {
        await servingParts.disposeAsync()
      }
      events.noteStopped(connectionsCut)
      return connectionsCut
    } finally {
      await lastingParts.disposeAsync()
    }
  }
  let ended: Promise<number> | undefined
  return {
    ...serviceUrls(configuration.server, pool.port),
    adminPort: admin.port,
    adminTokenFile: ownTokenFile(configuration),
    sharesData: data?.isShared ?? false,
    pool,
    worker,
    context,
    close: () => (ended ??= end()),
  }
}

/**
 * Tells of members of stored clients that have no effect, and of clients that are refused for them. Whether the store can be read,
 * the feed tells.
 */
async function noteUnknownMembers({ store }: State, { recorder }: Observation): Promise<void> {
  const found = await unknownMembers(store, SETTINGS.added.clientForm).catch(() => undefined)
  if (found === undefined) return
  const { members, refused } = found
  if (members.length > 0) recorder.note('warn', 'client_members_unknown', { members })
  if (refused.length > 0)
    recorder.note('error', 'clients_refused', {
      clients: refused.slice(0, MOST_NAMED),
      number: refused.length,
    })
}

/** The most clients that the log names. */
const MOST_NAMED = 100

/**
 * Checks the store before any process opens it. The long part of the check continues in the background; damage that it
 * finds makes the service unready. Rejects as `admitState` does.
 */
async function admitStore(configuration: Configuration, { health, recorder }: Observation): Promise<void> {
  const { later } = await admitState(configuration, { recorder, stores: SETTINGS.added.stores })
  let damaged = false
  health.add({ name: 'store', healthy: () => !damaged })
  void later.then((error) => {
    if (error === undefined) return
    damaged = true
    recorder.note('error', 'store.unfit', { detail: error.message })
  })
}

/** Tells how much the data folder holds, and when its disk has little left. */
async function watchSpace(
  { data }: Configuration,
  { health, measures }: Observation,
  opened: AsyncDisposableStack,
): Promise<DataSpace> {
  const space = opened.use(new DataSpace(data))
  measures.gauges.add(() => space.readings())
  health.include(() => space.condition())
  await space.measure()
  return space
}

/**
 * Takes the lock of the trail. While another service has it, log and readiness say whom this one waits for, before it listens for
 * calls. Rejects as `TrailOpener.lock` does.
 */
async function lockTrail(
  opener: TrailOpener,
  configuration: Configuration,
  { recorder, health }: Observation,
  openListener: () => Promise<AdminListener>,
): Promise<TrailLock> {
  let isWaiting = true
  try {
    return await opener.lock(configuration, async (holder, place) => {
      const reason = `${holder} writes the trail in its folder: this service waits for its end, at most a minute`
      health.include(() => ({ failing: [], degraded: isWaiting ? [{ name: 'audit trail', reason }] : [] }))
      recorder.note('warn', 'audit_lock_awaited', { detail: `${reason} (${place})` })
      // The other one may have the same address until it ends: then only the log says so.
      await openListener().catch((thrown: unknown) => {
        if (!hasCode(thrown, 'EADDRINUSE')) throw thrown
      })
    })
  } finally {
    isWaiting = false
  }
}

/** Rejects as `TrailOpener.open` does. */
async function openTrail(
  opener: TrailOpener,
  configuration: Configuration,
  options: StartOptions,
  { measures: { metrics, gauges }, recorder }: Observation,
  { lock, lasting: opened }: { readonly lock: TrailLock; readonly lasting: AsyncDisposableStack },
): Promise<OwnedTrail> {
  const node = nodeIdOf(configuration)
  const owner = await opener.open(configuration, { ...options, lock, recorder, metrics, node })
  opened.defer(() => owner.close())
  gauges.add(() => owner.readings())
  return owner
}

/** Counts failed logins for all processes (C6.3.5). */
function openLockouts(
  configuration: Configuration,
  clock: Clock,
  audit: AuditTrail,
  { measures: { gauges } }: Observation,
): LocalLockouts {
  const begun: ConstructorParameters<typeof LocalLockouts>[3] = (lockout) => recordLockout(lockout, audit)
  const lockouts = new LocalLockouts(configuration.identity.guessing, clock, systemTimer, begun)
  if (!isSidecar(configuration)) gauges.add(() => readLockouts(lockouts))
  return lockouts
}

interface Reloading extends Pick<ServiceBase, 'environment' | 'observation' | 'audit'> {
  readonly state: State
  readonly pool: WorkerPool<Configuration>
  readonly files: FileWatch
  /** Called when another configuration is in force. */
  readonly inForce: (configuration: Configuration) => void
}

/** Rejects as `Reloader.open` does. */
const openReloader = (
  configuration: Configuration,
  { file, files }: ConfigurationSource,
  { environment, observation: { recorder }, audit, state, pool, files: watch, inForce }: Reloading,
): Promise<Reloader> =>
  Reloader.open(configuration, {
    file,
    files,
    audit,
    environment,
    settings: SETTINGS,
    clientForm: SETTINGS.added.clientForm,
    pool,
    rules: state.rules,
    tokenRevoker: state.tokenRevoker,
    store: state.store,
    adopting: (next) => state.longestLife.raise(longestLifeOf(next).all),
    recorder,
    changed: inForce,
    read: (read) => watch.watch(read),
  })

interface Joining extends ServiceBase {
  readonly state: State
  readonly lockouts: LocalLockouts
  readonly holdings: () => Holdings
  readonly address: string
  readonly inForceNow: () => Configuration
}

/**
 * Where several nodes share the store: tells them of this one, which counts failed logins with them and remembers what it has
 * seen of the feed.
 */
function joinNodes(
  data: string,
  { clock: machine, observation, opened, state, lockouts, holdings, address, inForceNow }: Joining,
): JoinedNode | undefined {
  const { store, feed, tokenRevoker } = state
  const { recorder } = observation
  if (store.shared === undefined) return undefined
  lockouts.share(store.shared.openTurns)
  const seen = new SeenChanges({ data, seen: () => feed.seen, recorder })
  opened.defer(() => seen.stop())
  const joined = store.shared.join({
    facts: () => nodeFacts(inForceNow(), { state, machine, address }),
    // All nodes have one configuration then: what it takes away is ended once more. False if another node is about it.
    agreed: async () => {
      const losses = await settleHoldings(holdings(), { store, tokenRevoker })
      if (losses !== undefined && losses > 0)
        recorder.note('info', 'revoked_when_nodes_agreed', { rules: losses })
      return losses !== undefined
    },
    failed: (cause) => recorder.note('error', 'node_beat_failed', { cause }),
  })
  opened.defer(() => joined.stop())
  return joined
}
