import type { Principal } from '../contracts/principal.ts'
import type { Operation } from './action.ts'
import type { Asked } from './checks/action.ts'
import type { Observation } from './observation.ts'

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
