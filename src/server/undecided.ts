import type { Exchange } from '../contracts/exchange.ts'
import type { DecisionEvent } from '../contracts/recorder.ts'
import type { Fault } from '../kernel/faults.ts'

/** What is recorded of a request that no door has decided on. */
export const undecided = (exchange: Exchange, fault: Fault, totalMs: number): DecisionEvent => ({
  exchange,
  door: 'none',
  fault,
  status: fault.status,
  slot: undefined,
  principal: undefined,
  business: undefined,
  fund: undefined,
  upstreamMs: undefined,
  totalMs,
})
