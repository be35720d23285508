/** The program of a worker process: see serve/processes/worker-process.ts. */
import '../../base/kernel/no-debugger.ts'
import module from 'node:module'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { collectSoon } from '../processes/allocator.ts'

// As in main.ts: first of all, and before what is compiled.
collectSoon(process.versions)
module.enableCompileCache()
const { systemClock } = await import('../../base/kernel/clock.ts')
const { runWorkerProcess } = await import('../processes/worker-process.ts')
const { startWorker } = await import('./worker.ts')

runWorkerProcess<Configuration>((configuration, reports, opened) =>
  startWorker(configuration, reports, opened, { clock: systemClock, environment: process.env }),
)
