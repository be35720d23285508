/** What was added to the series of one family. Plain data, to be sent to another process. */
export interface Delta {
  /** Of the family. */
  readonly name: string
  /** A number for each series. Those of a family are shown in the order of these numbers. */
  readonly series: readonly number[]
  /** Of one series after the other: the values of the family's labels, in its order. */
  readonly labels: readonly string[]
  /** Of each series: one number; of a histogram one per bucket, one beyond the last bound, and the sum. */
  readonly amounts: readonly number[]
}

/** One series of a gauge as one process sees it now. Plain data, so that it can be sent to another process. */
export interface GaugeReading {
  /** Of the family. */
  readonly name: string
  /** The values of the family's labels, in its order. */
  readonly labels: readonly string[]
  readonly value: number
}

/** Whose token a call came with. */
export interface PastCaller {
  readonly client: string
  /** Undefined for a machine. */
  readonly subject: string | undefined
  /** Only with several issuers. */
  readonly issuer: string | undefined
  /** With the target among its values. Undefined if it is not known: the log has it for refused calls only. */
  readonly scope: string | undefined
  /** `target:b/ACME`; undefined if the token had none, or if it is not known. */
  readonly target: string | undefined
}

/** A call as operators see it. Plain data. */
export interface PastCall {
  readonly requestId: string
  /** Milliseconds since the epoch, when its head had been read; of a line of the log, when it was written. */
  readonly at: number | undefined
  readonly method: string
  /** Without the query. Undefined if the target could not be read, or is longer than 1,024 characters. */
  readonly path: string | undefined
  readonly status: number
  /** The fault that refused it; undefined if it was let through. */
  readonly reason: string | undefined
  /** In a report-only area: the fault that would have refused it. */
  readonly wouldRefuse: string | undefined
  /** What only the log says of the fault. */
  readonly detail: string | undefined
  /** Undefined if its token was not verified. */
  readonly caller: PastCaller | undefined
  readonly accept: string | undefined
  readonly contentType: string | undefined
  readonly websocket: boolean
  /** As in W3C Trace Context. */
  readonly traceId: string | undefined
  /** The version of the action; undefined if the call was refused before one was negotiated. */
  readonly version: number | undefined
}

/** Calls of one client for one business in one place. Plain data, so that it can be sent to another process. */
export interface CallCount {
  /** As allow lists name it; empty if nobody was verified, or for those beyond MOST_ROWS. */
  readonly client: string
  /** Of the token's target; empty if it has none. */
  readonly business: string
  /** `area/NAME`; `service` for a call below `/api` without an action; `identity` for the identity endpoints. */
  readonly place: string
  readonly calls: number
}
