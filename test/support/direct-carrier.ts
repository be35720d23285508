import type { Carrier, Forwarding } from '../../src/contracts/carrier.ts'

function attempt(forwarding: Forwarding, count: number): void {
  forwarding.send((error, response) => {
    const delay = forwarding.retryDelay(error, count)
    if (delay !== null) setTimeout(attempt, delay, forwarding, count + 1)
    else if (response) forwarding.answered(response)
    else forwarding.failed(error!)
  })
}

/** Sends without a server: attempt after attempt, until there is an answer or no retry. */
export const directCarrier: Carrier = { carry: (forwarding) => attempt(forwarding, 0) }
