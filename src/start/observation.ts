/** The supervisor's half of the service: the log's writer, the metrics registry, readiness and the count of failed logins. */
import type { OpenTrail } from '../audit/trail.ts'
import type { Recorder } from '../contracts/recorder.ts'
import { systemTimer } from '../identity/guessing/guessing.ts'
import { LocalLockouts, recordLockout } from '../identity/guessing/lockouts.ts'
import type { Clock } from '../kernel/clock.ts'
import { CallHistory } from '../maintenance/call-history.ts'
import type { WorkerMessages, WorkerPool } from '../processes/worker-pool.ts'
import { type Configuration, isSidecar } from '../settings/configuration.ts'
import { reportOnlyAreas } from '../settings/dangers.ts'
import { type Condition, Health, HEALTHY, mergeConditions } from '../watch/health.ts'
import { gapLine, type LogDestination, openLog, standardOutput } from '../watch/log/log.ts'
import { Exposition } from '../watch/metrics/exposition.ts'
import { FAMILIES } from '../watch/metrics/families.ts'
import { type GaugeReading, type GaugeSources, reading, readingOf } from '../watch/metrics/gauges.ts'
import { ConfigurationLoads } from './configuration-loads.ts'
import {
  type Measures,
  openMeasures,
  readAbandoned,
  readLoads,
  readLockouts,
  readSigner,
  readTrail,
  readWorkers,
} from './measures.ts'
import { nodeOf } from './node-id.ts'
import { admitState, type State } from './state.ts'
import { conditionOfStore, conditionOfTrail } from './conditions.ts'
import type { TrailOwner } from './trail-owner.ts'
import { VERSION } from './version.ts'

export interface SupervisorOptions {
  readonly clock: Clock
  /** Standard output if not given. */
  readonly logDestination?: LogDestination
}

/** The parts of which a service has exactly one, however many processes serve. */
export interface Supervisor {
  readonly exposition: Exposition
  /** What this process counts and reads, other than the worker that it may be too. */
  readonly measures: Measures
  readonly loads: ConfigurationLoads
  /** Calls of the last hour, as all processes counted them. */
  readonly callHistory: CallHistory
  readonly health: Health
  readonly recorder: Recorder
  /** Counts failed logins for all processes (C6.3.5). */
  readonly lockouts: LocalLockouts
  readonly reports: WorkerMessages
  /** How many lines of the log were dropped since the start. */
  readonly linesDropped: () => number
  /** Resolves when the log is written, or after one second. */
  readonly closeLog: () => Promise<void>
  /** Of the configuration in force. */
  reportOnlyAreas: number
  /** Absent until the workers serve. */
  pool: WorkerPool<Configuration> | undefined
  /** The audit trail of this process. Absent where none is kept, and until it is open. */
  audit: OpenTrail | undefined
  /** What only this process does with the audit trail. Absent as `audit` is. */
  trailOwner: TrailOwner | undefined
  /** The supervisor's own connection to the store. Only with several workers: one worker shares its own. */
  state: State | undefined
}

/** Opens the log, the metrics registry, readiness and the count of failed logins. */
export function openSupervisor(
  configuration: Configuration,
  { clock, logDestination }: SupervisorOptions,
): Supervisor {
  const { log, identity } = configuration
  const measures = openMeasures(configuration)
  const loads = new ConfigurationLoads(clock)
  const callHistory = new CallHistory(clock)
  const sink = logDestination ?? standardOutput(gapLine(clock))
  const exposition = new Exposition({ version: VERSION, node: process.version })
  const recorder = openLog(log, { clock, destination: sink, actions: [], node: nodeOf(configuration) })
  const health = new Health()
  health.add({ name: 'workers', healthy: () => supervisor.pool?.isServing?.() ?? true })
  health.include(() => conditionOf(supervisor, sink))
  const lockouts = new LocalLockouts(identity.guessing, clock, systemTimer, (begun) => {
    if (supervisor.audit !== undefined) recordLockout(begun, supervisor.audit)
  })
  const supervisor: Supervisor = {
    exposition,
    measures,
    loads,
    callHistory,
    health,
    recorder,
    lockouts,
    reports: {
      metrics: (deltas) => exposition.absorb(deltas),
      calls: (counts) => callHistory.absorb(counts),
      lines: (text, lost) => {
        if (lost > 0) sink.lose?.(lost)
        sink.write(text)
      },
      changed: () => {
        supervisor.pool?.pollChanges()
        void supervisor.state?.feed.refresh()
      },
      rateUsage: () => undefined, // a single worker shares its rates with nobody; a pool's workers exchange usage in the pool
      trailHead: (head) => supervisor.trailOwner?.report(head),
      trailEnded: (writer) => supervisor.trailOwner?.ended(writer),
      attempts: lockouts,
    },
    linesDropped: () => sink.dropped ?? 0,
    closeLog: async () => {
      recorder.close()
      await sink.end?.()
    },
    reportOnlyAreas: 0,
    pool: undefined,
    audit: undefined,
    trailOwner: undefined,
    state: undefined,
  }
  exposition.absorb(measures.metrics.take())
  measures.gauges.add(() => [readingOf(FAMILIES.logWritable, sink.trouble === undefined)])
  addSources(measures.gauges, supervisor, isSidecar(configuration))
  return supervisor
}

const conditionOf = ({ pool, state, audit, trailOwner }: Supervisor, sink: LogDestination): Condition =>
  mergeConditions([
    pool?.condition() ?? HEALTHY,
    // Only this process tells the other nodes that it is alive: the one write that comes by itself.
    degradedStore(state),
    conditionOfLog(sink),
    conditionOfTrail(audit, trailOwner),
  ])

/** The service goes on without its log, so readiness is the place where somebody learns of it. */
const conditionOfLog = ({ trouble }: LogDestination): Condition =>
  trouble === undefined ? HEALTHY : { failing: [], degraded: [{ name: 'log', reason: trouble }] }

/** What fails is told by those who serve. */
const degradedStore = (state: State | undefined): Condition =>
  state === undefined ? HEALTHY : { failing: [], degraded: conditionOfStore(state).degraded }

function addSources(gauges: GaugeSources, supervisor: Supervisor, sidecar: boolean): void {
  gauges.add(() => [reading(FAMILIES.reportOnlyAreas, supervisor.reportOnlyAreas)])
  gauges.add(() => readLoads(supervisor.loads))
  gauges.add(() => (supervisor.audit === undefined ? [] : readTrail(supervisor.audit)))
  gauges.add(() => readSigner(supervisor.trailOwner?.signer?.state))
  gauges.add(() => readAbandoned(supervisor.trailOwner?.abandoned))
  gauges.add(() => (supervisor.pool === undefined ? [] : readWorkers(supervisor.pool.states?.())))
  if (!sidecar) gauges.add(() => readLockouts(supervisor.lockouts))
}

/** The gauges of all processes that live, as each of them has read them last. */
export const readingsOf = ({ measures, pool }: Supervisor): readonly GaugeReading[] => [
  ...measures.gauges.read(),
  ...(pool?.gauges() ?? []),
]

/** All metrics of the service, in the text format of Prometheus. */
export function scrape(supervisor: Supervisor): {
  readonly contentType: string
  readonly text: Promise<string>
} {
  const { exposition, pool, measures } = supervisor
  pool?.flush()
  exposition.absorb(measures.metrics.take())
  exposition.showLogDropped(supervisor.linesDropped())
  return { contentType: exposition.contentType, text: exposition.text(readingsOf(supervisor)) }
}

/**
 * Checks the store before any process opens it. The long part of the check goes on in the background; damage that it
 * finds makes the service unready. Rejects as `admitState` does.
 */
export async function admitStore(configuration: Configuration, supervisor: Supervisor): Promise<void> {
  const { later } = await admitState(configuration, supervisor.recorder)
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

/**
 * Warns of areas that refuse nothing, and counts them in the metrics: at the start and after each reload, so that nobody
 * overlooks them.
 */
export function reportReportOnlyAreas(
  configuration: Configuration,
  supervisor: Pick<Supervisor, 'recorder' | 'reportOnlyAreas'>,
): void {
  const areas = reportOnlyAreas(configuration)
  supervisor.reportOnlyAreas = areas.length
  if (areas.length > 0) supervisor.recorder.note('warn', 'report_only_areas', { areas })
}
