/** What a worker process runs: see supervisor/worker-process.ts. */
import type { Configuration } from '../settings/configuration.ts'
import { systemClock } from '../kernel/clock.ts'
import { runWorkerProcess } from '../supervisor/worker-process.ts'
import { startWorker } from './worker.ts'

runWorkerProcess<Configuration>((configuration, reports) =>
  startWorker(configuration, reports, { clock: systemClock, environment: process.env }),
)
