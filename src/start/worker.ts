/** Opens one serving process: its state, its part of the audit trail and the public listener. */
import { withStartBudget } from '../kernel/store-budget.ts'
import type { Configuration } from '../settings/configuration.ts'
import { Problems } from '../config/problems.ts'
import { NO_TRAIL } from '../contracts/audit.ts'
import { RelayRecorder } from '../watch/recorders.ts'
import { compileServer } from '../server/schema.ts'
import { bindPublicListener } from '../server/public-listener.ts'
import { openParts } from './parts.ts'
import type { WorkerMessages } from '../processes/worker-pool.ts'
import { tellHeads } from './trail-owner.ts'
import { openMeasures, readCertificateExpiry, readTrail } from './measures.ts'
import { nodeOf } from './node-id.ts'
import { openAuditTrail, openDependencies, watchOwnKeys, type WorkerOptions } from './dependencies.ts'
import { ServingWorker, type Worker } from './serving-worker.ts'
import { conditionOfTrail } from './conditions.ts'

/**
 * Starts to serve. Rejects with ConfigurationError, KeyError or StoreError, or with the system's error if the
 * address cannot be bound. Nothing is left open then.
 */
export const startWorker = (
  configuration: Configuration,
  reports: WorkerMessages,
  options: WorkerOptions,
): Promise<Worker> => withStartBudget(() => start(configuration, reports, options))

async function start(
  configuration: Configuration,
  reports: WorkerMessages,
  options: WorkerOptions,
): Promise<Worker> {
  const relay = new RelayRecorder()
  const { audit: shared } = options
  const measures = openMeasures(configuration)
  const trailParts = { ...options, recorder: relay, meter: measures.metrics, node: nodeOf(configuration) }
  const own = shared ? undefined : await openAuditTrail(configuration, trailParts)
  if (own !== undefined) measures.gauges.add(() => readTrail(own))
  const audit = shared ?? own ?? NO_TRAIL
  const closeOwn = own && tellHeads(own, reports)
  const dependencies = await openDependencies(
    configuration,
    { ...options, audit, measures },
    relay,
    reports,
  ).catch(async (error: unknown) => {
    await closeOwn?.()
    throw error
  })
  try {
    const parts = await openParts(configuration, dependencies)
    const listener = await bindPublicListener({
      config: configuration.server,
      trustedProxies: compileServer(configuration.server, new Problems()),
      recorder: relay,
      clock: options.clock,
      earlyAdmission: dependencies.admission,
    })
    measures.gauges.add(() => readCertificateExpiry('server', listener.certificateValidTo()))
    const worker = new ServingWorker(parts, {
      dependencies,
      relay,
      listener,
      reports,
      closeTrail: () => closeOwn?.(),
      rollTrail: () => own?.roll(),
      trailCondition: () => conditionOfTrail(own),
    })
    worker.stopWatching = await watchOwnKeys(dependencies, configuration, relay)
    return worker
  } catch (error) {
    await dependencies.state.close()
    await closeOwn?.()
    throw error
  }
}
