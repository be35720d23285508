import type { Fault } from '../kernel/faults.ts'
import type { Call, TunnelEnd } from './backend.ts'
import type { Exchange } from './exchange.ts'
import type { Principal } from './principal.ts'

/** One decided and answered call. Durations in milliseconds. */
export interface DecisionEvent {
  readonly exchange: Exchange
  readonly door: 'api' | 'userinfo' | 'identity' | 'none'
  /** The fault that refused it, or undefined if it was let through and answered. */
  readonly fault: Fault | undefined
  readonly status: number
  /** The action's index in the compiled table (a metric slot), undefined where none was matched. */
  readonly slot: number | undefined
  readonly principal: Principal | undefined
  readonly business: string | undefined
  readonly fund: string | undefined
  /** In a report-only area: the fault that would have refused it. */
  readonly reported?: { readonly fault: Fault; readonly area: string } | undefined
  /** Time spent waiting for the backend; undefined if it was not asked. */
  readonly upstreamMs: number | undefined
  /** What the backend answered; undefined if it gave no answer. */
  readonly upstreamStatus?: number | undefined
  readonly totalMs: number
}

export interface TokenEvent {
  readonly exchange: Exchange
  /** From the table of grants, or `none` if the request named no known one. */
  readonly grant: string
  /** `issued` or the OAuth error. */
  readonly result: string
  readonly client: string | undefined
  readonly subject: string | undefined
  /** Of the target that was granted. */
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

/** A tunnel that was opened, or has ended. */
export interface TunnelEvent {
  /** Of the call that opened it. */
  readonly exchange: Exchange
  readonly backend: string
  /** Undefined when it opens. */
  readonly end: TunnelEnd | undefined
  /** How long it stood, in milliseconds; 0 when it opens. */
  readonly ms: number
}

/** What happened, told once. Log and metrics are functions of these events. Must never throw. */
export interface Recorder {
  decision(event: DecisionEvent): void
  token(event: TokenEvent): void
  backend(event: BackendEvent): void
  tunnel?(event: TunnelEvent): void
  tokenCache(outcome: 'hit' | 'miss'): void
  /** Anything else an operator should read: `event` is a stable name, `facts` hold no secret. */
  note(
    level: 'debug' | 'info' | 'warn' | 'error',
    event: string,
    facts?: Readonly<Record<string, unknown>>,
  ): void
}

/** The place of the audit trail (C12): awaited between the decision and the backend, and may refuse by a fault. */
export interface Audit {
  intend(call: Call): Promise<void> | undefined
}
