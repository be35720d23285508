import type { Principal } from '../contracts/principal.ts'
import type { Operation } from './action.ts'
import type { Asked } from './checks.ts'
import { toFault, type Fault } from '../kernel/faults.ts'

/**
 * What the decision has found out so far: for the record, also of a call that is refused half way. Every member is
 * there from the start, so that all calls' findings are of one shape for the engine.
 */
export class Findings {
  principal: Principal | undefined = undefined
  operation: Operation | undefined = undefined
  business: string | undefined = undefined
  fund: string | undefined = undefined
  /** Headers to send along whatever the answer (rate limits). */
  headers: Readonly<Record<string, string>> | undefined = undefined
  /** Milliseconds spent waiting for the backend. */
  upstreamMs: number | undefined = undefined
  /** What the backend answered. */
  upstreamStatus: number | undefined = undefined
  /** Set for a call of a report-only area. */
  observation: Observation | undefined = undefined

  /** What the URL names is known. */
  matched({ operation, business, fund }: Asked): void {
    this.operation = operation
    this.business = business
    this.fund = fund
  }
}

/** What a call of a report-only area would have been refused for, had its area enforced anything. */
export class Observation {
  readonly area: string
  #fault: Fault | undefined

  constructor(area: string) {
    this.area = area
  }

  /** The first failure, which would have won (C4). */
  get fault(): Fault | undefined {
    return this.#fault
  }

  /** Makes a check, and keeps what it throws. */
  hold<T>(check: () => T): T | undefined {
    try {
      return check()
    } catch (thrown) {
      this.keep(thrown)
      return undefined
    }
  }

  /** The same of a check that may take time. */
  async holdLater<T>(check: () => Promise<T>): Promise<T | undefined> {
    try {
      return await check()
    } catch (thrown) {
      this.keep(thrown)
      return undefined
    }
  }

  keep(thrown: unknown): void {
    this.#fault ??= toFault(thrown)
  }

  /** For the upstream: `X-Postern-Decision`, which no client can send (C8.2). */
  get header(): string {
    return this.#fault === undefined ? 'allow' : `would-refuse; reason=${this.#fault.code}`
  }
}
