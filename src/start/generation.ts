import type { Exchange } from '../contracts/exchange.ts'
import type { Metrics } from '../operations/metrics/metrics.ts'
import type { Parts, Service } from './service.ts'

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
