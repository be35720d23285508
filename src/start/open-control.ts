/** Opens the control of a service: on the state of its one worker, or on a state of its own. */
import { noticing } from '../audit/abandoned.ts'
import { trailReader } from '../audit/read/read-trail.ts'
import { planAudit } from '../audit/schema.ts'
import type { Environment } from '../config/validate.ts'
import { NO_TRAIL } from '../contracts/audit.ts'
import type { FeedReading } from '../contracts/store.ts'
import { type Holdings, NO_HOLDINGS } from '../directory/holdings.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Operators } from '../operator/operators.ts'
import type { WorkerPool } from '../processes/worker-pool.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'
import { SeenChanges } from '../stores/feed-progress.ts'
import type { FileWatch } from '../watch/file-watch.ts'
import { type ControlParts, ServiceControl } from './control.ts'
import { readMaintenance, readNode } from './measures.ts'
import { NodeBeat } from './node-beat.ts'
import { endLostMeanwhile, settleHoldings } from './holdings-record.ts'
import { readHoldings, Reloader } from './reload.ts'
import type { Worker } from './serving-worker.ts'
import { longestLifeOf, openState, type State } from './state.ts'
import { readingsOf, reportReportOnlyAreas, type Supervisor } from './observation.ts'

export interface ControlOptions {
  readonly clock: Clock
  readonly environment: Environment
  /** Where a reload reads the configuration from. Absent: the service cannot be reloaded. */
  readonly source?: ConfigurationSource
}

export interface ConfigurationSource {
  readonly file: string
  /** Every file that it consists of, as absolute paths. They are watched; a change of one reloads the configuration. */
  readonly files: ReadonlySet<string>
}

/** With one worker, its state. With several, the supervisor opens its own, and reads the change feed for all of them. */
async function stateOf(
  configuration: Configuration,
  { clock }: ControlOptions,
  supervisor: Supervisor,
  opened: (() => Promise<void>)[],
): Promise<State> {
  const { pool, recorder, audit = NO_TRAIL, measures } = supervisor
  if (pool !== undefined && isWorker(pool)) return pool.dependencies.state
  const appended = (): void => supervisor.pool?.pollChanges()
  const hasRead = (reading: FeedReading): void => supervisor.pool?.takeReading(reading)
  const state = await openState(configuration, { clock, recorder, audit, appended, hasRead, measures })
  opened.push(() => state.close())
  supervisor.state = state
  return state
}

export interface Started {
  readonly supervisor: Supervisor
  readonly pool: WorkerPool<Configuration>
  readonly files: FileWatch
  readonly operators: Operators
  /** To be called, in this order, after the pool is closed. */
  readonly opened: (() => Promise<void>)[]
}

export interface OpenedControl {
  readonly control: ServiceControl
  readonly state: State
  /** Of a node that shares its store. */
  readonly beat: NodeBeat | undefined
}

/** What gives orders to a service: it reloads, switches, revokes. */
export async function openControl(
  configuration: Configuration,
  options: ControlOptions,
  { supervisor, pool, files, opened, operators }: Started,
): Promise<OpenedControl> {
  const { recorder, lockouts, audit = NO_TRAIL, trailOwner } = supervisor
  const { environment, source } = options
  const state = await stateOf(configuration, options, supervisor, opened)
  joinNodes(configuration, state, supervisor, opened)
  let holdings = (): Holdings => NO_HOLDINGS
  const nameClients = ({ metrics }: Configuration): void =>
    supervisor.exposition.limitClients(metrics.clients, holdings().clients.keys())
  const agreed = (): Promise<boolean> => endOnceMore(holdings(), state, recorder)
  const beat = beatOf(configuration, state, options, supervisor, agreed)
  supervisor.measures.gauges.add(() => [...readMaintenance(state.maintenance), ...readNode(beat)])
  const parts: Omit<ControlParts, 'holdings'> = {
    ...{ state, pool, lockouts, recorder, audit, trailOwner, clock: options.clock, environment },
    trail: queriedTrail(configuration, supervisor),
    file: source?.file,
    readings: () => readingsOf(supervisor),
    readiness: () => supervisor.health.readiness(),
    callHistory: supervisor.callHistory,
    loads: supervisor.loads,
    startedAt: options.clock.now(),
  }
  if (source === undefined) {
    const served = (await readHoldings(configuration, environment)) ?? NO_HOLDINGS
    holdings = () => served
    nameClients(configuration)
    await endLostMeanwhile(served, { ...state, recorder })
    const control = new ServiceControl(configuration, { ...parts, holdings })
    return { control, state, beat }
  }
  const reloader = await Reloader.open(configuration, {
    file: source.file,
    files: source.files,
    audit,
    environment,
    pool,
    revoker: state.rules,
    tokenRevoker: state.tokenRevoker,
    store: state.store,
    adopting: (next) => state.longestLife.raise(longestLifeOf(next).all),
    recorder,
    changed: (next) => {
      control.adopt(next)
      beat?.adopt(next)
      operators.configure(next.admin.tokens)
      lockouts.configure(next.identity.guessing)
      reportReportOnlyAreas(next, supervisor)
      nameClients(next)
    },
    read: (read) => files.watch(read),
  })
  holdings = () => reloader.holdings
  nameClients(configuration)
  await endLostMeanwhile(reloader.holdings, { ...state, recorder })
  const control = new ServiceControl(configuration, { ...parts, holdings })
  control.reloadBy(reloader)
  return { control, state, beat }
}

/** The count of abandoned intents belongs to this process only from when it holds the lock of the trail. */
function queriedTrail(
  { data, ...configuration }: Configuration,
  { audit, trailOwner }: Supervisor,
): ControlParts['trail'] {
  const plan = planAudit(configuration.audit, data, isSidecar(configuration))
  if (plan === undefined || audit === undefined) return undefined
  const reader = noticing(
    trailReader(plan, async () => trailOwner?.remembered.read()),
    () => trailOwner?.abandoned,
  )
  return { ...reader, note: (entry) => audit.note(entry) }
}

/** Where several nodes share the store: failed logins count for all, and this one remembers what it has seen of the feed. */
function joinNodes(
  { data }: Configuration,
  { store, feed }: State,
  { lockouts, recorder }: Supervisor,
  opened: Started['opened'],
): void {
  if (store.shared === undefined) return
  lockouts.share(store.shared.lockouts)
  const seen = new SeenChanges({ data, feed, recorder })
  opened.unshift(() => seen.stop())
}

/**
 * All nodes have one configuration now: what it takes away is ended once more. Resolves with false if another node is about
 * it.
 */
async function endOnceMore(
  holdings: Holdings,
  { store, tokenRevoker }: State,
  recorder: Supervisor['recorder'],
): Promise<boolean> {
  const losses = await settleHoldings(holdings, { store, tokenRevoker })
  if (losses !== undefined && losses > 0)
    recorder.note('info', 'revoked_when_nodes_agreed', { rules: losses })
  return losses !== undefined
}

/** With a store that several nodes share, tells them of this one. */
function beatOf(
  configuration: Configuration,
  state: State,
  { clock: machine }: ControlOptions,
  { recorder }: Supervisor,
  agreed: () => Promise<boolean>,
): NodeBeat | undefined {
  const { shared } = state.store
  return shared && new NodeBeat(configuration, { nodes: shared.nodes, state, machine, recorder, agreed })
}

export const isWorker = (pool: WorkerPool<Configuration>): pool is Worker => 'dependencies' in pool
