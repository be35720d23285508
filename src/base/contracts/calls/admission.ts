import type { Fault } from '../../kernel/faults.ts'
import type { Exchange } from './exchange.ts'
import type { Principal } from '../people/principal.ts'

/** Whether one call of a client is admitted, and the rate-limit headers of its answer (C4.5). */
export interface AdmissionVerdict {
  /** `RateLimit` and `RateLimit-Policy`. The answer carries them whether or not the call is refused. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Fault `rate_limited` or `too_many_calls`; undefined if the call is admitted. */
  readonly refusal: Fault | undefined
}

export interface Use {
  readonly now: number
  /** Undefined if there is no limit. */
  readonly most: number | undefined
}

export interface RateLeft {
  /** Calls per window. */
  readonly requests: number
  /** The length of the window, in seconds. */
  readonly per: number
  /** Calls at once, after a rest. */
  readonly burst: number
  /** Calls that may be made now. */
  readonly left: number
}

export interface AdmissionPreview {
  readonly verdict: AdmissionVerdict | undefined
  /** Undefined if the client has no rate. */
  readonly rate: RateLeft | undefined
  /** In this process. */
  readonly inFlight: Use
}

export interface BackendPreview {
  /** Fault `backend_busy` or `too_many_backend_calls`; undefined if there is room. */
  readonly refusal: Fault | undefined
  /** The calls of all clients, in this process. */
  readonly inFlight: Use
  /** The client's share of them. Undefined if it is not limited. */
  readonly ofClient: Use | undefined
}

export interface EarlyPreview {
  readonly refusal: Fault | undefined
  /** Undefined if addresses have no rate. */
  readonly rate: RateLeft | undefined
  /** The share of calls, 0 to 1, that is refused because the event loop is late. */
  readonly shed: number
}

/** Reports that a call is no longer in flight. Only the first call of this function counts. */
export type Release = () => void

/** Limits the calls that are admitted (C4.5). Synchronous and from memory, because every call goes through it. */
export interface Admission {
  /**
   * Counts one call of the principal's client, and counts it as in flight until the exchange has ended.
   * @returns undefined if the call is admitted and its answer needs no rate-limit headers
   */
  admit(principal: Principal, exchange: Exchange): AdmissionVerdict | undefined
  /**
   * Counts a call in flight to a backend. If the method is absent, or returns undefined, the backend has no limit.
   * @param client `Principal.clientKey` of the calling client; undefined if it was not verified
   * @throws Fault `backend_busy` if the backend has no place left; `too_many_backend_calls` if only the client's share
   *   is used up
   */
  occupy?(backend: string, client: string | undefined): Release | undefined
  /** The answer that `admit` would give now. Nothing is counted. If the method is absent, that is not known. */
  preview?(principal: Principal): AdmissionPreview
  previewBackend?(backend: string, client: string | undefined): BackendPreview
}

/** Limits that apply to every request, before the decision about it. */
export interface EarlyAdmission {
  /** Fault `address_rate_limited` or `overloaded`; undefined if the request may continue. */
  refuse(clientAddress: string): Fault | undefined
  /** The answer that `refuse` would give now. Nothing is counted. If the method is absent, nobody can tell. */
  previewAddress?(clientAddress: string): EarlyPreview
}

/** Numbers of calls by key. Both lists have the same length: `counts[i]` belongs to `keys[i]`. */
export interface Tallies {
  readonly keys: readonly string[]
  readonly counts: readonly number[]
}

/** Calls that one worker has admitted since its last message. Plain data: it is sent to another process. */
export interface RateUsage {
  /** By `Principal.clientKey`. */
  readonly clients: Tallies
  /** By network: an IPv4 address, an IPv6 /64. */
  readonly addresses: Tallies
}

/** Prefix of the keys of addresses. Anybody can use many, so their budgets may be forgotten after two days. */
export const OF_ADDRESS = 'a:'

/** The calls of one process under a rate that all nodes share: those used, and those that it asks for. */
export interface BudgetUse {
  readonly key: string
  /** Calls per millisecond. */
  readonly perMs: number
  /** Calls at once, after a rest. */
  readonly burst: number
  /** Calls that were let in and that nobody has taken out of the budget yet; below 0: taken out, and given back. */
  readonly spent: number
  /** Calls to be taken out now, for this process to let in. */
  readonly want: number
}

export interface BudgetGrant {
  readonly key: string
  /** Calls that were taken out for this process: at most what it wanted. */
  readonly granted: number
  /** Calls that are left in the budget; below 0 if more were let in than there were. */
  readonly level: number
}

/** Most keys of one request. */
export const MOST_USES = 500

/** The budgets of rates that several nodes share. A budget fills up by its rate, to its burst. */
export interface Budgets {
  /**
   * Exchanges the uses of several keys, MOST_USES at most. A number that `who` has used before changes nothing, so
   * a request may be repeated: then nothing is granted. A use without a grant in the answer must be sent again. Rejects with
   * Fault `identity_unavailable`.
   */
  exchange(who: string, number: number, uses: readonly BudgetUse[]): Promise<readonly BudgetGrant[]>
}
