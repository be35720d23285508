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

/** How fast a bucket fills up with calls, and how many it holds. */
export interface BucketRate {
  /** Calls per millisecond. */
  readonly perMs: number
  /** Calls at once, after a rest. */
  readonly burst: number
}

/** The rates of clients in one process, of those that all nodes share. It answers from memory: a call never waits for the store. */
interface SharedBuckets {
  /** The part of a burst that all processes together may let in before they have asked the store: 0 to 1. */
  share: number
  /** As `Buckets.take` (gateway/limits/buckets.ts). */
  take(key: string, rate: BucketRate, now: number): number
  peek(key: string, rate: BucketRate, now: number): number
  sweep(count: number, now: number): void
}

/** The rates that several nodes share (C4.5). */
export interface SharedRates {
  readonly clients: SharedBuckets
  readonly exchange: {
    /** Processes that are alive on all nodes. */
    set processes(count: number)
    /** To be called often: tells the others what this process has let in, when that is due. Never throws. */
    tick(): void
  }
}

interface SharedRateParts {
  /** Most clients that are remembered. */
  readonly most: number
  readonly share: number
  /** Each process counts addresses for itself, because anybody can use many; those that call much are shared. */
  readonly addresses: {
    takeUsage(least: (rate: BucketRate) => number): readonly BucketUse[]
    limitTo(key: string, left: number): void
  }
  /** Clock.monotonic(). */
  readonly now: () => number
}

export interface BucketUse {
  readonly key: string
  readonly rate: BucketRate
  /** Calls that were let in since the last time. */
  readonly count: number
}

export type OpenSharedRates = (parts: SharedRateParts) => SharedRates
