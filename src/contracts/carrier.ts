import type { UpstreamCallback, UpstreamResponse } from '../upstream/reader.ts'

/** A request that a backend wants to be sent upstream, in as many attempts as it takes. */
export interface Forwarding {
  /** Sends one attempt. The callback is to be called once. */
  send(callback: UpstreamCallback): void
  /**
   * Asked after each attempt: milliseconds (more than 0) until the next one, or null if there is to be none (C8.5).
   *
   * @param error of the attempt; null if it was answered
   * @param attempt 0 for the first one
   */
  retryDelay(error: Error | null, attempt: number): number | null
  /** The upstream's answer. */
  answered(response: UpstreamResponse): void
  /** Why there is no answer: the error of the last attempt, or the Fault `client_gone`. */
  failed(error: Error): void
}

/** Carries a forwarding for the exchange that it belongs to. */
export interface Carrier {
  /** Sends the forwarding, and calls one of `answered` and `failed`, exactly once. Throws nothing. */
  carry(forwarding: Forwarding): void
}
