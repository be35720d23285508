import { availableParallelism } from 'node:os'
import { opaque } from '../config/schema.ts'
import type { Report } from '../config/report.ts'

const MOST = 64

export const workersSchema = opaque<number | 'auto'>({
  default: 1,
  anyOf: [{ type: 'integer', minimum: 1, maximum: MOST }, { const: 'auto' }],
  description:
    'Number of processes that serve, or `auto` for one per core. With more than 1, a supervisor starts them.',
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
