import { Readable } from 'node:stream'
import type { Exchange } from '../../src/base/contracts/calls/exchange.ts'
import type { DecisionEvent } from '../../src/base/contracts/records/recorder.ts'
import { Fault } from '../../src/base/kernel/faults.ts'
import { directCarrier } from './direct-carrier.ts'

/** An exchange that never was on a wire. */
export function fakeExchange(
  overrides: Partial<Exchange> & { headers?: Record<string, string>; method?: string } = {},
): Exchange {
  const { headers = {}, method = 'GET', ...rest } = overrides
  return {
    id: '0123456789abcdef0123456789abcdef',
    head: {
      method,
      rawTarget: '/api',
      httpVersion: '1.1',
      rawHeaders: [],
      headers,
      remoteAddress: '192.0.2.1',
    },
    target: new Fault('bad_target'),
    body: Readable.from([]),
    clientAddress: '192.0.2.1',
    scheme: 'http',
    startedAt: 0,
    carrier: directCarrier,
    hold: () => true,
    onGone: () => undefined,
    onEnd: () => undefined,
    ...rest,
  }
}

/** A decision that let a call through, unless told otherwise. */
export const fakeDecision = (overrides: Partial<DecisionEvent> = {}): DecisionEvent => ({
  exchange: fakeExchange(),
  door: 'api',
  fault: undefined,
  status: 200,
  slot: undefined,
  principal: undefined,
  business: undefined,
  fund: undefined,
  upstreamMs: undefined,
  totalMs: 1,
  ...overrides,
})
