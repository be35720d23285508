import { carryDirectly } from '../../src/gateway/backends/forward/forwarding.ts'

/** Sends without a server: attempt after attempt, until there is an answer or no retry. */
export const directCarrier = carryDirectly
