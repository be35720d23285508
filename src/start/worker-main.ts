/** What a worker process runs: see processes/worker-process.ts. */
import type { Configuration } from '../settings/configuration.ts'
import { systemClock } from '../kernel/clock.ts'
import { runWorkerProcess } from '../processes/worker-process.ts'
import { startWorker } from './worker.ts'

runWorkerProcess<Configuration>((configuration, reports, opened) =>
  startWorker(configuration, reports, opened, { clock: systemClock, environment: process.env }),
)
