/** Opens the pool that serves: this very process, or several processes that it supervises. */
import { fileURLToPath } from 'node:url'
import { plainFacts } from '../../base/contracts/records/audited-change.ts'
import type { Environment } from '../../base/config/validate.ts'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { EditingParts } from '../../identity/directory/editors/editing.ts'
import type { LocalLockouts } from '../../identity/guessing/lockouts.ts'
import { programBeside } from '../../base/files/beside.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import {
  countWorkers,
  type WorkerMessages,
  type WorkerPool,
} from '../../base/contracts/processes/worker-pool.ts'
import { ConnectionLimit } from '../../gateway/server/connection-limit.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { RelayRecorder } from '../../operate/watch/recorders.ts'
import { conditionOfStore } from './conditions.ts'
import { openMeasures } from '../parts/measures.ts'
import type { Observation } from './observation.ts'
import type { ServingWorker } from './serving-worker.ts'
import { STATE_PARTS } from './settings.ts'
import { openState, type State } from '../parts/state.ts'
import type { OwnedTrail } from '../../operate/hooks/kept-trail.ts'

/** Takes the reports of serving processes. One process that serves and supervises shares its rates and its state with nobody. */
export const messagesTo = (observation: Observation, lockouts: LocalLockouts): WorkerMessages => ({
  metrics: (deltas) => observation.exposition.absorb(deltas),
  calls: (counts) => observation.callHistory.absorb(counts),
  lines: observation.lines,
  changed: () => undefined,
  rateUsage: () => undefined,
  attempts: lockouts,
})

/** On what processes serve. */
export interface ServiceBase {
  readonly clock: Clock
  readonly environment: Environment
  readonly observation: Observation
  readonly audit: AuditTrail
  readonly opened: AsyncDisposableStack
  readonly pause?: EditingParts['pause']
}

interface Serving {
  /** The state of this process. */
  readonly state: State
  readonly pool: WorkerPool<Configuration>
  readonly worker: ServingWorker | undefined
}

/** Serves in this process. Rejects as `openState` and `startServing` do. */
export async function serveHere(
  configuration: Configuration,
  { clock, environment, observation, audit, opened, pause }: ServiceBase,
  messages: WorkerMessages,
): Promise<Serving> {
  const measures = openMeasures(configuration, audit.on)
  const relay = new RelayRecorder()
  const state = opened.use(
    await openState(configuration, {
      clock,
      recorder: relay,
      audit,
      measures,
      ...STATE_PARTS,
    }),
  )
  // Imported only here: a supervisor of several workers never needs the serving code, and saves its memory.
  const { startServing } = await import('./worker.ts')
  const base = { clock, environment, state, audit, measures, recorder: relay, opened, pause }
  const worker = opened.use(await startServing(configuration, base, messages))
  observation.health.include(() => worker.condition())
  return { state, pool: worker, worker }
}

/**
 * Serves in processes of their own, each of which opens a state. That of this process reads the change feed for all of them.
 * Rejects as `openState` does, and with what kept the first process from serving.
 */
export async function serveByProcesses(
  configuration: Configuration,
  {
    clock,
    observation,
    audit,
    opened,
    trailOwner,
  }: ServiceBase & { readonly trailOwner: OwnedTrail | undefined },
  messages: WorkerMessages,
  contentsChanged: () => void,
): Promise<Serving> {
  const { measures, health, recorder } = observation
  const state = opened.use(
    await openState(configuration, {
      clock,
      recorder,
      audit,
      measures,
      ...STATE_PARTS,
    }),
  )
  health.add({ name: 'store', healthy: () => state.store.trouble === undefined })
  // Only this process tells the other nodes that it is alive: the one write that comes by itself. Failures are reported by those
  // who serve.
  health.include(() => ({ failing: [], degraded: conditionOfStore(state).degraded }))
  const { ClusterWorkerPool } = await import('../processes/cluster-worker-pool.ts')
  const connectionLimit = new ConnectionLimit({
    refused: measures.metrics.connectionRefused,
    note: (...args) => recorder.note(...args),
  })
  health.include(() => connectionLimit.condition())
  const pool = opened.use(
    await ClusterWorkerPool.start(configuration, {
      program: fileURLToPath(programBeside(import.meta.url, 'worker-main')),
      size: countWorkers(configuration.workers),
      takes: (descriptor) => connectionLimit.takes(descriptor),
      takeRecords: (way) => trailOwner?.take(way),
      reports: { ...messages, changed: () => void state.feed.refresh() },
      note: (...args) => recorder.note(...args),
      died: ({ pid, livedMs }) => {
        measures.metrics.workerDied()
        audit.note({
          event: 'worker.died',
          outcome: 'failed',
          actor: { kind: 'service' },
          change: plainFacts({ pid, livedMs }),
        })
      },
      contentsChanged,
      closeTimes: ({ server }) => server.timeouts,
    }),
  )
  state.feed.shareWith(pool)
  health.add({ name: 'workers', healthy: () => pool.isServing() })
  health.include(() => pool.condition())
  return { state, pool, worker: undefined }
}
