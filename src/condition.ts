/** How the parts of a configuration in force are, for /health/ready (C11.1). */
import type { Backend } from './contracts/backend.ts'
import type { Condition, Degradation } from './operations/health.ts'
import type { Parts } from './service.ts'

/**
 * A backend that does not answer makes nothing unready: the calls of other backends are served, and an instance that
 * is taken out of service for an upstream's sake takes the others with it. Never throws, never waits.
 */
export function conditionOf({ backends }: Pick<Parts, 'backends'>): Condition {
  return { failing: [], degraded: [...backends.values()].filter(isUnwell).map(degradedBackend) }
}

const isUnwell = (backend: Backend): boolean => backend.healthy?.() === false

const degradedBackend = ({ name }: Backend): Degradation => ({
  name: `backend ${name}`,
  reason: 'it does not answer as it should; its calls may fail',
})
