import { availableParallelism } from 'node:os'
import { opaque } from '../config/pieces.ts'
import type { Report } from '../config/report.ts'

const MOST = 64

export const workersSchema = opaque<number | 'auto'>({
  default: 1,
  description:
    'Processes that serve: a number, or `auto` for one a core. With 1, one process does everything; with more, a ' +
    'supervisor starts them, replaces one that dies, and owns the admin listener, the metrics and the log.',
})

export type WorkersConfig = number | 'auto'

/** How many processes a setting means on this machine. */
export const countWorkers = (config: WorkersConfig): number =>
  config === 'auto' ? Math.min(MOST, availableParallelism()) : config

/** Reports a setting that is no number of processes. */
export function compileWorkers(config: WorkersConfig, report: Report): void {
  const fits = config === 'auto' || (Number.isInteger(config) && config >= 1 && config <= MOST)
  if (!fits) report.error(['workers'], `expected "auto" or a whole number from 1 to ${MOST}`)
}
