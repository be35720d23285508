import { Fault } from '../kernel/faults.ts'
import type { Clock } from '../kernel/clock.ts'
import type { BodyWatch, RequestBody } from './request-body.ts'

/** Often enough for the bounds of T5.3; also how often node looks for heads that are late. */
export const CHECK_INTERVAL_MS = 1000

export interface SlowBodyLimits {
  /** Milliseconds that a body has before its rate is looked at. */
  readonly request: number
  /** Bytes per second on average. */
  readonly bodyRate: number
}

/**
 * Ends bodies that trickle in to hold a connection (T5.3). Node's `requestTimeout` is of no use for it: it would cut a
 * long, fast upload too. Watched only while somebody reads, and excused while it is we who hold the body up; then nothing
 * is read from the client, and that it has reset the connection is noticed here.
 */
export class SlowBodies implements BodyWatch {
  readonly #since = new Map<RequestBody, number>()
  readonly #limits: SlowBodyLimits
  readonly #clock: Clock

  constructor(limits: SlowBodyLimits, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
  }

  add(body: RequestBody): void {
    this.#since.set(body, this.#clock.monotonic())
  }

  delete(body: RequestBody): void {
    this.#since.delete(body)
  }

  /** Breaks those that are too slow, with Fault `request_timeout`, and those whose client is gone, with `client_gone`. */
  sweep(): void {
    const now = this.#clock.monotonic()
    for (const [body, since] of this.#since) {
      if (body.isLost) {
        body.break(new Fault('client_gone', { detail: 'the client left while its body was not read on' }))
        continue
      }
      const elapsed = now - since
      const due = (elapsed / 1000) * this.#limits.bodyRate
      if (elapsed < this.#limits.request || body.heldUp || body.received >= due) continue
      body.break(new Fault('request_timeout'))
    }
  }
}
