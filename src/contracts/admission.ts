import type { Fault } from '../kernel/faults.ts'
import type { Exchange } from './exchange.ts'
import type { Principal } from './principal.ts'

/** What a client's rate says to one call (C4.5). */
export interface Verdict {
  /** To be sent along whatever the answer becomes: `RateLimit` and its policy. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Fault `rate_limited` or `too_many_calls`; undefined lets the call in. */
  readonly refusal: Fault | undefined
}

/** Gives a place back. Calls after the first do nothing. */
export type Release = () => void

/** How much is let in (C4.5). Everything answers at once, from memory: it is asked on every call. */
export interface Admission {
  /**
   * Counts one call of the principal's client, and one more in flight until the exchange has ended. Undefined lets it
   * in and has nothing to tell.
   */
  admit(principal: Principal, exchange: Exchange): Verdict | undefined
  /**
   * Takes one of a backend's places for calls in flight. Absent, or undefined: that backend's calls are not counted.
   * @param client whose call it is; undefined where nobody vouches for that
   * @throws Fault `backend_busy` if all are taken, `too_many_backend_calls` if the client's part of them is
   */
  occupy?(backend: string, client: string | undefined): Release | undefined
}

/** Stands before every door, and before anything is decided about a request. */
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
 * What one worker has let in of budgets that it shares with others since it last told. Plain data, so that it can
 * cross to another process.
 */
export interface RateUsage {
  /** By client id. */
  readonly clients: Tallies
  /** By network: an IPv4 address, an IPv6 /64. */
  readonly addresses: Tallies
}
