import { GRANTS } from '../identity/grants/grants.ts'
import { FAULTS } from '../kernel/fault-table.ts'
import { openLog } from '../watch/log/log.ts'
import { fanOut } from '../watch/recorders.ts'
import { compileMetrics } from '../watch/metrics/metrics.ts'
import type { PastCalls } from '../watch/past-calls.ts'
import { RecentCalls } from '../maintenance/recent-calls.ts'
import type { ServiceUrls } from '../server/schema.ts'
import type { WorkerMessages } from '../processes/worker-pool.ts'
import type { WorkerDependencies } from './dependencies.ts'
import { Generation } from './generation.ts'
import type { Parts } from './parts.ts'
import { nodeOf } from './node-id.ts'
import { compileService } from './compile-service.ts'

/** What outlives a configuration. */
interface Lasting {
  readonly dependencies: WorkerDependencies
  readonly reports: Pick<WorkerMessages, 'lines'>
  readonly urls: ServiceUrls
  readonly past: PastCalls
}

/** Compiles what serves one configuration, with its log, metrics and call counts. Nothing of it is in force yet. */
export function compileGeneration(parts: Parts, { dependencies, reports, urls, past }: Lasting): Generation {
  const { configuration, actions, backends } = parts
  const named = actions.actions.map(({ area, name }) => ({ area, action: name }))
  const metrics = compileMetrics({
    actions: named,
    backends: [...backends.keys()],
    reportOnly: [...actions.reportOnly.keys()],
    reasons: Object.keys(FAULTS),
    grants: [...GRANTS.keys()],
  })
  const destination = { write: (line: string) => reports.lines(line, 0) }
  const log = openLog(configuration.log, {
    clock: dependencies.machine,
    actions: named,
    destination,
    node: nodeOf(configuration),
  })
  const recentCalls = new RecentCalls(named)
  const recorder = fanOut(metrics.recorder, log, past, recentCalls)
  const service = compileService(parts, dependencies, urls, recorder)
  return new Generation({ parts, service, metrics, recentCalls, closeLog: () => log.close() })
}
