import { availableParallelism } from 'node:os'
import type { Problems } from '../../config/problems.ts'
import { opaque } from '../../config/schema.ts'
import type { RateUsage } from '../calls/admission.ts'
import type { TestTokenAnswer, TestTokenRequest } from '../people/claimed-callers.ts'
import type { DescribedCall, Explanation } from '../calls/explanation.ts'
import type { FoundPerson } from '../people/people.ts'
import type { AttemptLimiter } from '../people/lockouts.ts'
import type { FeedReading } from '../records/store.ts'
import type { Condition } from '../../kernel/health.ts'
import type { Delta, GaugeReading, PastCall, CallCount } from './reports.ts'

const MOST = 64

/** The environment variable by which a worker process learns its number, from 1. */
export const WORKER_NUMBER = 'POSTERN_WORKER'

export const workersSchema = opaque<number | 'auto'>({
  default: 1,
  anyOf: [{ type: 'integer', minimum: 1, maximum: MOST }, { const: 'auto' }],
  description:
    'Number of processes that serve, or `auto` for one per core. With more than 1, a supervisor starts them.',
})

type WorkersConfig = number | 'auto'

/** How many processes a setting means on this machine. */
export const countWorkers = (config: WorkersConfig): number =>
  config === 'auto' ? Math.min(MOST, availableParallelism()) : config

export function compileWorkers(config: WorkersConfig, problems: Problems): void {
  const fits = config === 'auto' || (Number.isInteger(config) && config >= 1 && config <= MOST)
  if (!fits) problems.error(['workers'], `expected "auto" or a whole number from 1 to ${MOST}`)
}

/** The reports of a serving process to its supervisor. The methods never throw and never wait. */
export interface WorkerMessages {
  /** The counts since the last report. */
  metrics(deltas: readonly Delta[]): void
  /** Calls since the last report, by client, business and area. */
  calls(counts: readonly CallCount[]): void
  /** Whole log lines. `lost`: the number of lines that were dropped before them (T5.11). */
  lines(text: string, lost: number): void
  /** The process appended to the change feed. The supervisor should read it; the pool lets the other workers do so. */
  changed(): void
  /** The calls that the process admitted under rates that it shares with other processes (C4.5). */
  rateUsage(usage: RateUsage): void
  /** Counts password attempts for all processes (C6.3.5). */
  readonly attempts: AttemptLimiter
}

export interface RecalledCall {
  readonly call: PastCall
  /** Undefined if the call's path is not kept. */
  readonly now: Explanation | undefined
}

/** Thrown if two processes read a file of the configuration and it changed in between. */
export class ContentsChanged extends Error {
  override readonly name = 'ContentsChanged'

  constructor() {
    super('a file changed while it was read')
  }
}

/** `frozen`: it serves, but has not answered for some time, and is about to be killed. */
type WorkerState = 'serving' | 'frozen' | 'starting' | 'ending'

export type WorkerStates = Readonly<Partial<Record<WorkerState, number>>>

/** Serves a configuration `C`. A reload is `prepare` (open everything, change nothing), then `commit` or `abort`. */
export interface WorkerPool<C> extends AsyncDisposable {
  readonly port: number
  /** The digest that `prepare` returned for the configuration in force. */
  readonly holdingsDigest: string
  /** Begins to answer. Requests that came before have waited. Called once. */
  open(): Promise<void>
  /**
   * Opens everything that the configuration names. Resolves with a digest of the people and their rights that were read
   * (`digestOfHoldings`). Rejects if the configuration cannot be served; nothing has changed then.
   */
  prepare(configuration: C): Promise<string>
  /** Puts the prepared configuration in force. Calls in flight finish on the one that they began with. */
  commit(): Promise<void>
  abort(): Promise<void>
  /** Explains a call that is described, and not made (C14). Rejects with Fault `internal` on a defect. */
  explain(call: DescribedCall): Promise<Explanation>
  /** Issues a test token, and does not record it (C11.5.7). */
  issueTestToken(request: TestTokenRequest): Promise<TestTokenAnswer>
  /** By the subject, in the configuration in force: also people that live elsewhere. Rejects with their Fault. */
  findPerson(subject: string): Promise<FoundPerson | undefined>
  /** A call that a serving process keeps (C14.4), and what would be decided about it now. Undefined if none keeps it. */
  recall(requestId: string): Promise<RecalledCall | undefined>
  /** Every process takes the keys and the secret of their place into use. Rejects if one that may serve has not. */
  followKeys(): Promise<void>
  /** Reads the change feed: another process appended to it. */
  pollChanges(): void
  /** Takes over what the supervisor has read of the change feed. */
  takeReading(reading: FeedReading): void
  /** Counts what other processes admitted under the rates that are shared. */
  applyRemoteUsage(usage: RateUsage): void
  flush(): void
  /** The state of the parts, for /health/ready; of several processes, what they reported last. Never throws or waits. */
  condition(): Condition
  /** The gauges of the processes that live; of several, as they reported last. Never throws or waits. */
  gauges(): readonly GaugeReading[]
  /** How many processes are in each state. Absent for one process. */
  states?(): WorkerStates
  /** Whether any worker serves. Absent for one process, which serves whenever it can answer this. */
  isServing?(): boolean
  /** Replaces every process, one after the other, without losing a call. Resolves with their number. Absent for one process. */
  restart?(): Promise<number>
  /** From now on responses close their connections and tunnels are asked to close. New connections are accepted. */
  drain(): void
  /**
   * Stops accepting calls after `lameDuck` milliseconds (default: the configured time), finishes those in flight, then
   * ends. Resolves with the number of connections that were cut. May be called again.
   */
  close(lameDuck?: number): Promise<number>
}
