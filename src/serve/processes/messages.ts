import type { RateUsage } from '../../base/contracts/calls/admission.ts'
import type { TestTokenAnswer, TestTokenRequest } from '../../base/contracts/people/claimed-callers.ts'
import type { DescribedCall, Explanation } from '../../base/contracts/calls/explanation.ts'
import type { FoundPerson } from '../../base/contracts/people/people.ts'
import type { AttemptStanding, GuessingKey } from '../../base/contracts/people/lockouts.ts'
import type { FeedReading } from '../../base/contracts/records/store.ts'
import type { FaultCode } from '../../base/kernel/faults.ts'
import type { Condition } from '../../base/kernel/health.ts'
import type { RecalledCall } from '../../base/contracts/processes/worker-pool.ts'
import type { Delta, GaugeReading, CallCount } from '../../base/contracts/processes/reports.ts'

/**
 * From the supervisor to a worker process. One with an `id` is a request and is answered by `done` or `failed`. `ping` only tests
 * that the worker answers.
 */
export type SupervisorMessage<C> =
  | { readonly type: 'start'; readonly id: number; readonly configuration: C }
  | { readonly type: 'prepare'; readonly id: number; readonly configuration: C }
  | {
      readonly type: 'open' | 'commit' | 'abort' | 'ping' | 'followKeys' | 'drain' | 'close'
      readonly id: number
    }
  | { readonly type: 'explain'; readonly id: number; readonly call: DescribedCall }
  | { readonly type: 'issueTestToken'; readonly id: number; readonly request: TestTokenRequest }
  | { readonly type: 'findPerson'; readonly id: number; readonly subject: string }
  | { readonly type: 'recall'; readonly id: number; readonly requestId: string }
  | { readonly type: 'pollChanges' }
  /** The supervisor's reading of the change feed; times are those of the machine. */
  | { readonly type: 'reading'; readonly reading: FeedReading }
  | { readonly type: 'usage'; readonly usage: RateUsage }
  /** About a password attempt: it may be made, it is refused, or it is over (`hold` in milliseconds). */
  | { readonly type: 'entered'; readonly turn: number }
  | {
      readonly type: 'refused'
      readonly turn: number
      readonly code: FaultCode
      readonly detail: string
      readonly retryAfter: number | undefined
    }
  | { readonly type: 'left'; readonly turn: number; readonly hold: number | undefined }

export interface Serving {
  readonly port: number
  /** As from `prepare`. */
  readonly holdingsDigest: string
}

export interface RequestResults {
  readonly start: Serving
  readonly open: undefined
  readonly prepare: string
  readonly commit: undefined
  readonly abort: undefined
  readonly explain: Explanation
  readonly issueTestToken: TestTokenAnswer
  readonly findPerson: FoundPerson | undefined
  readonly recall: RecalledCall | undefined
  readonly ping: undefined
  readonly followKeys: undefined
  readonly drain: undefined
  /** The number of connections that were cut. */
  readonly close: number
}

export type Notice =
  /** `value` has the type that `RequestResults` gives for the request. */
  | { readonly type: 'done'; readonly id: number; readonly value: unknown }
  | { readonly type: 'failed'; readonly id: number; readonly error: ErrorReport }
  | { readonly type: 'metrics'; readonly deltas: readonly Delta[] }
  /** All of the worker's gauges, sent at its start and each second. */
  | { readonly type: 'gauges'; readonly readings: readonly GaugeReading[] }
  | { readonly type: 'calls'; readonly counts: readonly CallCount[] }
  /** `lost`: the number of lines that were dropped before these. */
  | { readonly type: 'lines'; readonly text: string; readonly lost: number }
  | { readonly type: 'changed' }
  | { readonly type: 'rateUsage'; readonly usage: RateUsage }
  /** The state of the worker's parts, sent when it changes. */
  | { readonly type: 'condition'; readonly condition: Condition }
  /** A password attempt waits for its turn, or is over. */
  | {
      readonly type: 'enter'
      readonly turn: number
      readonly key: GuessingKey
      readonly standing: AttemptStanding
    }
  | { readonly type: 'leave'; readonly turn: number; readonly right: boolean | undefined }

/**
 * An error of a worker, as plain data. By name and code the command `serve` distinguishes an operator's mistake (a port
 * in use, a store that cannot be opened) from a defect, for which it prints a stack.
 */
interface ErrorReport {
  readonly name: string
  readonly message: string
  /** The code of a system error, such as `EADDRINUSE`. */
  readonly code: string | undefined
}

export function reportOfError(thrown: unknown): ErrorReport {
  if (!(thrown instanceof Error)) return { name: 'Error', message: String(thrown), code: undefined }
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined
  return { name: thrown.name, message: thrown.message, code }
}

export const errorOf = ({ name, message, code }: ErrorReport): Error =>
  Object.assign(new Error(message), { name, ...(code !== undefined && { code }) })
