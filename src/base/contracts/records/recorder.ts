import type { Fault } from '../../kernel/faults.ts'
import type { TunnelEnd } from '../calls/backend.ts'
import type { Exchange } from '../calls/exchange.ts'
import type { Principal } from '../people/principal.ts'

/** One call, after its answer. Durations are in milliseconds. */
export interface DecisionEvent {
  readonly exchange: Exchange
  readonly door: 'api' | 'userinfo' | 'identity' | 'none'
  /** The fault that refused it; undefined if it was not refused. */
  readonly fault: Fault | undefined
  readonly status: number
  /** Index of the action in the compiled table (its metric slot); undefined if no action matched. */
  readonly slot: number | undefined
  readonly principal: Principal | undefined
  readonly business: string | undefined
  readonly fund: string | undefined
  /** In a report-only area: the fault that would have refused it. */
  readonly reported?: { readonly fault: Fault; readonly area: string } | undefined
  /** Time spent waiting for the backend; undefined if it was not called. */
  readonly upstreamMs: number | undefined
  /** The backend's status; undefined if it gave no answer. */
  readonly upstreamStatus?: number | undefined
  readonly totalMs: number
  /** The trace id (W3C Trace Context) that the service was sent, otherwise that of the client. Undefined if there was neither. */
  readonly traceId?: string | undefined
  /** The version of the action that was negotiated; undefined if the call was refused before. */
  readonly version?: number | undefined
}

export interface TokenEvent {
  readonly exchange: Exchange
  /** A name of the grant table, or `none` if the request had no supported grant_type. */
  readonly grant: string
  /** `issued` or the OAuth error. */
  readonly result: string
  readonly client: string | undefined
  readonly subject: string | undefined
  readonly business?: string | undefined
  readonly fund?: string | undefined
  readonly fault: Fault | undefined
}

export interface BackendEvent {
  readonly backend: string
  /** `answered`, or the fault's code. */
  readonly outcome: string
  readonly ms: number
}

/** Events of an upstream that are only counted: a further attempt at a call, or a target that was taken out because it failed. */
export type UpstreamEvent = 'retry' | 'ejection'

export interface TunnelEvent {
  readonly exchange: Exchange
  readonly backend: string
  /** Undefined when it opens. */
  readonly end: TunnelEnd | undefined
  /** How long it was open, in milliseconds; 0 when it opens. */
  readonly ms: number
}

/** Things that were used a second time, so that all that came of them was ended (C6.1.6, C6.1.7). */
export type Replayed = 'code' | 'refresh_token'

/** Records each event once. The log and the metrics are derived from these events. No method may throw. */
export interface Recorder {
  decision(event: DecisionEvent): void
  token(event: TokenEvent): void
  backend(event: BackendEvent): void
  tunnel?(event: TunnelEvent): void
  upstream?(backend: string, event: UpstreamEvent): void
  tokenCache(outcome: 'hit' | 'miss'): void
  replay?(of: Replayed): void
  /** Counts one more, besides tokens (`operate/watch/metrics/identity-counts.ts`). A label that is not known counts as `other`. */
  count?(of: string, ...labels: readonly string[]): void
  /** Any other event for operators. `event` is a stable name; `facts` must not contain a secret. */
  note(
    level: 'debug' | 'info' | 'warn' | 'error',
    event: string,
    facts?: Readonly<Record<string, unknown>>,
  ): void
}

/** Members of the event of a call for which no action was found. */
export const WITHOUT_ACTION = {
  slot: undefined,
  principal: undefined,
  business: undefined,
  fund: undefined,
  upstreamMs: undefined,
} as const satisfies Partial<DecisionEvent>

export const NO_RECORDER: Recorder = {
  decision: () => undefined,
  token: () => undefined,
  backend: () => undefined,
  tokenCache: () => undefined,
  note: () => undefined,
}
