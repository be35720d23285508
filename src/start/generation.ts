import type { Exchange } from '../contracts/exchange.ts'
import type { Metrics } from '../operations/metrics/metrics.ts'
import type { Parts, Service } from './service.ts'
import type { Backend } from '../contracts/backend.ts'
import type { Store } from '../contracts/store.ts'
import type { IssuerCondition, IssuerKeys } from '../keys/issuer-keys.ts'
import type { Condition, Degradation } from '../operations/health.ts'

export interface GenerationParts {
  readonly parts: Parts
  readonly service: Service
  readonly metrics: Metrics
  readonly closeLog: () => void
}

/**
 * One configuration that is in force, or was: with who counts and logs for it, and how many calls it serves. A call
 * ends on what it began with, a stream or a websocket too, however long it takes.
 */
export class Generation {
  readonly parts: Parts
  readonly service: Service
  readonly metrics: Metrics
  readonly closeLog: () => void
  #calls = 0
  /** One for all calls: this is done for every one of them. */
  readonly #leave = (): void => {
    this.#calls -= 1
  }

  constructor({ parts, service, metrics, closeLog }: GenerationParts) {
    this.parts = parts
    this.service = service
    this.metrics = metrics
    this.closeLog = closeLog
  }

  /** It serves this exchange, until that has ended. */
  enter(exchange: Exchange): void {
    this.#calls += 1
    exchange.onEnd(this.#leave)
  }

  get isIdle(): boolean {
    return this.#calls === 0
  }
}

/** How the parts of a configuration in force are, for /health/ready (C11.1). */

/**
 * A backend that does not answer makes nothing unready: the calls of other backends are served, and an instance that
 * is taken out of service for an upstream's sake takes the others with it. A store that is gone or damaged does: nobody
 * can log in, and nothing can be revoked. Never throws, never waits.
 */
export function conditionOf(
  { backends }: Pick<Parts, 'backends'>,
  issuerKeys: IssuerKeys,
  { trouble }: Pick<Store, 'trouble'>,
): Condition {
  const issuers = issuerKeys.conditions()
  // As long as no issuer's keys were ever had, nobody can be let in: every call would be 503 (C4.15).
  const deaf = issuers.length > 0 && issuers.every(({ state }) => state === 'unknown')
  return {
    failing: [...(deaf ? ['issuer keys'] : []), ...(trouble === undefined ? [] : ['store'])],
    degraded: [
      ...[...backends.values()].filter(isUnwell).map(degradedBackend),
      ...issuers.filter(({ state }) => state !== 'fresh').map(degradedIssuer),
    ],
  }
}

const isUnwell = (backend: Backend): boolean => backend.healthy?.() === false

const degradedBackend = ({ name }: Backend): Degradation => ({
  name: `backend ${name}`,
  reason: 'it does not answer as it should; its calls may fail',
})

const degradedIssuer = ({ issuer, state }: IssuerCondition): Degradation => ({
  name: `issuer ${issuer}`,
  reason:
    state === 'unknown'
      ? 'its keys could not be fetched yet; calls with its tokens are 503'
      : 'its keys could not be fetched the last time; those that are known go on',
})
