import { availableParallelism } from 'node:os'
import { opaque } from '../config/schema.ts'
import type { Report } from '../config/report.ts'
import type { AttemptLimiter } from '../contracts/lockouts.ts'
import type { RateUsage } from '../contracts/admission.ts'
import type { Condition } from '../operations/health.ts'
import type { Delta, Plan } from '../operations/metrics/metric-counts.ts'

const MOST = 64

export const workersSchema = opaque<number | 'auto'>({
  default: 1,
  anyOf: [{ type: 'integer', minimum: 1, maximum: MOST }, { const: 'auto' }],
  description:
    'Number of processes that serve, or `auto` for one per core. With more than 1, a supervisor starts them.',
})

export type WorkersConfig = number | 'auto'

/** How many processes a setting means on this machine. */
export const countWorkers = (config: WorkersConfig): number =>
  config === 'auto' ? Math.min(MOST, availableParallelism()) : config

/** Reports a setting that is no number of processes. */
export function compileWorkers(config: WorkersConfig, report: Report): void {
  const fits = config === 'auto' || (Number.isInteger(config) && config >= 1 && config <= MOST)
  if (!fits) report.error(['workers'], `expected "auto" or a whole number from 1 to ${MOST}`)
}

/** What whoever serves tells the supervisor. Never throws, never waits. */
export interface Reports {
  /** Counted since the last time, by a plan that stays the same object as long as the configuration does. */
  metrics(plan: Plan, delta: Delta): void
  /** Whole log lines; `lost`: how many are missing before them, since they could not be kept (T5.11). */
  lines(text: string, lost: number): void
  /** It has appended to the change feed: others should look. */
  changed(): void
  /** What it let in of rates that it shares with others (C4.5). */
  rateUsage(usage: RateUsage): void
  /** Counts attempts at passwords, for all who serve (C6.3.5). */
  readonly attempts: AttemptLimiter
}

/** Thrown by `prepare` where two read a file, and it changed in between. */
export class ContentsChanged extends Error {
  override readonly name = 'ContentsChanged'

  constructor() {
    super('a file changed while it was read')
  }
}

/**
 * Something that serves a configuration `C`: one process, or a pool of them behind the same verbs. A reload is
 * `prepare` (validate and open everything, change nothing), then `commit` or `abort`.
 */
export interface WorkerPool<C> {
  /** Of the public listener. */
  readonly port: number
  /** What `prepare` answered of what is in force. */
  readonly holdingsDigest: string
  /**
   * Opens everything; answers a digest of who is let in by what was opened. Rejects if the configuration cannot be
   * served; then nothing has changed.
   */
  prepare(configuration: C): Promise<string>
  /** What was prepared serves from now on; calls in flight finish on what they began with. */
  commit(): Promise<void>
  abort(): Promise<void>
  /** Somebody has appended to the change feed. */
  pollChanges(): void
  /** What others let in of the rates that are shared. */
  applyRemoteUsage(usage: RateUsage): void
  /** Reports what was counted since the last time. */
  flush(): void
  /** How its parts are, for /health/ready; of several processes, what they told last. Never throws, never waits. */
  condition(): Condition
  /** Whether anybody serves at the moment. Absent for one process: it is the one that is asked. */
  isServing?(): boolean
  /** Replaces every process, one after the other, without losing a call; answers how many. Absent for one process. */
  restart?(): Promise<number>
  /** Answers close their connections from now on, and websockets are told to leave. New connections are taken. */
  drain(): void
  /**
   * Stops taking calls, `lameDuck` milliseconds from now if given, else after the time that is configured; finishes
   * those in flight, ends. Resolves with how many connections were cut.
   */
  close(lameDuck?: number): Promise<number>
}

export type StartWorkerPool<C> = (configuration: C, reports: Reports) => Promise<WorkerPool<C>>
