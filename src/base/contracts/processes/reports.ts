// Reports between processes: plain data only.

/** Amounts to add to the series of one family of metrics. */
export interface Delta {
  /** The name of the family. */
  readonly name: string
  /** The number of each series. A family's series are shown in the order of these numbers. */
  readonly series: readonly number[]
  /** The values of the labels of the first series, in the order of the family, then those of the next. */
  readonly labels: readonly string[]
  /** One number for each series; for a histogram one per bucket, one beyond the last bound, and the sum. */
  readonly amounts: readonly number[]
}

/** One series of a gauge, as one process sees it now. */
export interface GaugeReading {
  /** The name of the family. */
  readonly name: string
  /** The values of the labels, in the order of the family. */
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

/** A call as operators see it. */
export interface PastCall {
  readonly requestId: string
  /** When its head had been read; for a line of the log, when it was written. In milliseconds since the epoch. */
  readonly at: number | undefined
  readonly method: string
  /** Without the query. Undefined if the target could not be read, or is longer than 1,024 characters. */
  readonly path: string | undefined
  readonly status: number
  /** The fault that refused it; undefined if it was let through. */
  readonly reason: string | undefined
  /** In a report-only area: the fault that would have refused it. */
  readonly wouldRefuse: string | undefined
  /** Details of the fault, which are in the log and not in the answer. */
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

/** Calls of one client for one business in one place. */
export interface CallCount {
  /** As allow lists name it. Empty if no client was verified, and for clients beyond `MOST_ROWS` (gateway/maintenance/recent-calls.ts). */
  readonly client: string
  /** The business of the token's target. Empty if it has none. */
  readonly business: string
  /** `area/NAME`; `service` for a call below `/api` without an action; `identity` for the identity endpoints. */
  readonly place: string
  readonly calls: number
}
