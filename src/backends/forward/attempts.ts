import type { Carrier, Forwarding } from '../../contracts/carrier.ts'
import type { UpstreamCallback } from '../../upstream/reader.ts'

/**
 * Sends forwardings that have no reply of their own: a module may send several at once for one call, and a reply
 * carries one at a time.
 */
export const carryDirectly: Carrier = { carry: (forwarding) => attempt(forwarding, 0) }

function attempt(forwarding: Forwarding, count: number): void {
  const done: UpstreamCallback = (error, response) => {
    const delay = forwarding.retryDelay(error, count)
    if (delay !== null) setTimeout(attempt, delay, forwarding, count + 1)
    else if (response !== undefined) forwarding.answered(response)
    else forwarding.failed(error ?? new Error('an attempt ended without an answer'))
  }
  try {
    forwarding.send(done)
  } catch (error) {
    forwarding.failed(error instanceof Error ? error : new Error('an attempt failed', { cause: error }))
  }
}
