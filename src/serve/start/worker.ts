/** Opens one serving process: what it serves with, and the public listener. */
import { NO_TRAIL } from '../../base/contracts/records/audit.ts'
import { Problems } from '../../base/config/problems.ts'
import type { Environment } from '../../base/config/validate.ts'
import type { KeptTrail } from '../../operate/hooks/kept-trail.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { withStartBudget } from '../../base/kernel/store-budget.ts'
import { WORKER_NUMBER, type WorkerMessages } from '../../base/contracts/processes/worker-pool.ts'
import type { StepDependencies } from '../../identity/steps/endpoint.ts'
import { ConnectionLimit } from '../../gateway/server/connection-limit.ts'
import { bindPublicListener } from '../../gateway/server/public-listener.ts'
import { compileServer } from '../../gateway/server/schema.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { RelayRecorder } from '../../operate/watch/recorders.ts'
import { type WorkerBase, openDependencies } from './dependencies.ts'
import { openMeasures, readCertificateExpiry } from '../parts/measures.ts'
import { closablesOf, closeAll, openParts } from '../parts/parts.ts'
import { ServingWorker } from './serving-worker.ts'
import { openState } from '../parts/state.ts'
import { STATE_PARTS, trailOpenerOf } from './settings.ts'

export interface WorkerOptions {
  readonly clock: Clock
  readonly environment: Environment
}

/**
 * Starts to serve in a worker process, which has a state of its own, and sends its records of the audit trail. Rejects as
 * `startServing` does. All that is opened is put onto the stack.
 */
export const startWorker = (
  configuration: Configuration,
  reports: WorkerMessages,
  opened: AsyncDisposableStack,
  { clock, environment }: WorkerOptions,
): Promise<ServingWorker> =>
  withStartBudget(async () => {
    const recorder = new RelayRecorder()
    const opener = await trailOpenerOf(configuration)
    const name = `worker-${environment[WORKER_NUMBER] ?? ''}`
    const measures = openMeasures(configuration, opener !== undefined, name)
    const trail = await opener?.openSent(configuration, { clock, recorder, metrics: measures.metrics })
    if (trail !== undefined) {
      opened.defer(() => trail.close())
      measures.gauges.add(() => trail.readings())
    }
    const audit = trail?.trail ?? NO_TRAIL
    const state = opened.use(
      await openState(configuration, {
        clock,
        recorder,
        audit,
        measures,
        ...STATE_PARTS,
      }),
    )
    state.feed.shareWith({ pollChanges: () => reports.changed() })
    const base = { clock, environment, state, audit, measures, recorder, opened }
    return startServing(configuration, base, reports, trail)
  })

/**
 * Starts to serve. Rejects with ConfigurationError, KeyError or StoreError, or with the system's error if the address cannot
 * be bound.
 *
 * @param trail the part of the audit trail that is this process's own, if there is one
 */
export async function startServing(
  configuration: Configuration,
  base: WorkerBase & { readonly recorder: RelayRecorder },
  reports: WorkerMessages,
  trail?: KeptTrail,
): Promise<ServingWorker> {
  const { recorder, measures, clock, opened } = base
  const dependencies = await openDependencies(configuration, base, reports)
  // Closed if the address cannot be bound: a module may hold connections that would keep the process.
  await using unbound = new AsyncDisposableStack()
  const parts = await openParts(configuration, dependencies)
  unbound.defer(() => closeAll(closablesOf(parts)))
  const connectionLimit = new ConnectionLimit({
    refused: measures.metrics.connectionRefused,
    note: (...args) => recorder.note(...args),
  })
  const listener = await bindPublicListener({
    connectionLimit,
    config: configuration.server,
    trustedProxies: compileServer(configuration.server, new Problems()),
    recorder,
    clock,
    earlyAdmission: dependencies.admission,
  })
  measures.gauges.add(() => readCertificateExpiry('server', listener.certificateValidTo()))
  const worker = new ServingWorker(parts, {
    dependencies,
    relay: recorder,
    listener,
    connectionLimit,
    reports,
    trail,
  })
  unbound.move()
  await dependencies.keyWatch?.start()
  opened.defer(() => dependencies.keyWatch?.stop())
  const { identity } = worker
  if (identity !== undefined) {
    const current = (): StepDependencies => (worker.identity ?? identity).dependencies
    const { audit, logouts } = dependencies
    opened.defer(await logouts.send({ audit, recorder, identity: current }))
  }
  return worker
}
