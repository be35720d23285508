import type { UpstreamCallback, UpstreamResponse } from '../upstream/reader.ts'

/** A request that a backend sends upstream, with its retries. */
export interface Forwarding {
  /** Sends one attempt. The callback must be called exactly once. */
  send(callback: UpstreamCallback): void
  /**
   * Called after each attempt. Returns the milliseconds until the next one (more than 0), or null for no retry (C8.5).
   *
   * @param error the attempt's error; null if it was answered
   * @param attempt 0 for the first attempt
   */
  retryDelay(error: Error | null, attempt: number): number | null
  /** Called with the upstream's answer. */
  answered(response: UpstreamResponse): void
  /** Called if there is no answer, with the error of the last attempt or the Fault `client_gone`. */
  failed(error: Error): void
}

/** Sends the forwarded requests of one exchange. */
export interface Carrier {
  /** Sends a forwarding and calls either `answered` or `failed`, exactly once. Never throws. */
  carry(forwarding: Forwarding): void
}
