import type { Fault } from '../kernel/faults.ts'
import type { Exchange } from './exchange.ts'
import type { Principal } from './principal.ts'

/** Whether one call of a client is let in, and what its answer says of the client's rate (C4.5). */
export interface Verdict {
  /** To be sent along whatever the answer becomes: `RateLimit` and its policy. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Fault `rate_limited` or `too_many_calls`; undefined lets the call in. */
  readonly refusal: Fault | undefined
}

/** Says that a call is no longer in flight. Calls after the first do nothing. */
export type Release = () => void

/** Limits how much is let in (C4.5). Answers at once, from memory: it is called for every call. */
export interface Admission {
  /**
   * Counts one call of the principal's client, and one more in flight until the exchange has ended. Undefined lets it
   * in and has nothing to tell.
   */
  admit(principal: Principal, exchange: Exchange): Verdict | undefined
  /**
   * Counts a call in flight to a backend. Absent, or undefined: that backend's calls are not counted.
   * @param client whose call it is; undefined where that was not verified
   * @throws Fault `backend_busy`; `too_many_backend_calls` if only the client's part is used up
   */
  occupy?(backend: string, client: string | undefined): Release | undefined
}

/** Limits that apply to every request, before anything is decided about it. */
export interface EarlyAdmission {
  /** Fault `address_rate_limited` or `overloaded`; undefined lets the request go on to its door. */
  refuse(clientAddress: string): Fault | undefined
}

/** So many calls, by key: two lists of one length. */
export interface Tallies {
  readonly keys: readonly string[]
  readonly counts: readonly number[]
}

/**
 * The calls that one worker has let in since its last message, for rates that it shares with others. Plain data, so that
 * it can be sent to another process.
 */
export interface RateUsage {
  /** By client id. */
  readonly clients: Tallies
  /** By network: an IPv4 address, an IPv6 /64. */
  readonly addresses: Tallies
}
