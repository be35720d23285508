import type { AttemptStanding, GuessingKey } from '../contracts/lockouts.ts'
import type { RateUsage } from '../contracts/admission.ts'
import type { FaultCode } from '../kernel/faults.ts'
import type { Condition } from '../operations/health.ts'
import type { Delta, Plan } from '../operations/metrics/metric-counts.ts'

/**
 * What the supervisor asks of a worker process. `id` numbers a request that is answered by `done` or `failed`; `ping`
 * asks for the answer alone.
 */
export type Order<C> =
  | { readonly type: 'start'; readonly id: number; readonly configuration: C }
  | { readonly type: 'prepare'; readonly id: number; readonly configuration: C }
  | { readonly type: 'commit' | 'abort' | 'ping' | 'drain' | 'close'; readonly id: number }
  | { readonly type: 'pollChanges' }
  | { readonly type: 'usage'; readonly usage: RateUsage }
  /** Of a password attempt: its turn has come, it may not be made, it is over (`hold` in ms). */
  | { readonly type: 'entered'; readonly turn: number }
  | {
      readonly type: 'refused'
      readonly turn: number
      readonly code: FaultCode
      readonly detail: string
      readonly retryAfter: number | undefined
    }
  | { readonly type: 'left'; readonly turn: number; readonly hold: number }

/** A worker that serves. */
export interface Serving {
  readonly port: number
  /** As of `prepare`. */
  readonly holdingsDigest: string
}

/** What an order that is answered comes to, by its type. */
export interface OrderResults {
  readonly start: Serving
  readonly prepare: string
  readonly commit: undefined
  readonly abort: undefined
  readonly ping: undefined
  readonly drain: undefined
  /** Connections that were cut. */
  readonly close: number
}

/** What a worker process answers and tells. */
export type Notice =
  /** `value` is what `Values` says of the order. */
  | { readonly type: 'done'; readonly id: number; readonly value: unknown }
  | { readonly type: 'failed'; readonly id: number; readonly error: ErrorReport }
  /** The numbering that the deltas after it follow. */
  | { readonly type: 'plan'; readonly plan: Plan }
  | { readonly type: 'metrics'; readonly delta: Delta }
  /** `lost`: how many are missing before them. */
  | { readonly type: 'lines'; readonly text: string; readonly lost: number }
  | { readonly type: 'changed' }
  | { readonly type: 'rateUsage'; readonly usage: RateUsage }
  /** How its parts are, told when it has changed. */
  | { readonly type: 'condition'; readonly condition: Condition }
  /** A password attempt wants its turn, and has had it. */
  | {
      readonly type: 'enter'
      readonly turn: number
      readonly key: GuessingKey
      readonly standing: AttemptStanding
    }
  | { readonly type: 'leave'; readonly turn: number; readonly right: boolean | undefined }

/**
 * What went wrong in a worker, as the channel carries it. Name and code are what `serve` tells an operator's trouble
 * (a port that is taken, a store that cannot be opened) from a defect by: without them it would print a stack.
 */
export interface ErrorReport {
  readonly name: string
  readonly message: string
  /** Of the system's errors: `EADDRINUSE`. */
  readonly code: string | undefined
}

export function reportOfError(thrown: unknown): ErrorReport {
  if (!(thrown instanceof Error)) return { name: 'Error', message: String(thrown), code: undefined }
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined
  return { name: thrown.name, message: thrown.message, code }
}

export const errorOf = ({ name, message, code }: ErrorReport): Error =>
  Object.assign(new Error(message), { name, ...(code !== undefined && { code }) })
