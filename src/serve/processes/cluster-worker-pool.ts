/**
 * Several worker processes on one port, by node:cluster with round-robin. The supervisor accepts connections and hands
 * them over, so no connection is lost when a worker is replaced. (With SO_REUSEPORT the kernel gives new connections to a
 * socket that is about to close: 181 of 5,000 calls failed in a rolling restart; here none did.)
 *
 * A worker may die or freeze at any moment (T5.9). Every request to it still settles (OpenRequests). After a reload every
 * worker serves the configuration in force: a worker that did not confirm it is killed and replaced.
 */
import cluster from 'node:cluster'
import { performance } from 'node:perf_hooks'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import type { TestTokenAnswer, TestTokenRequest } from '../../base/contracts/people/claimed-callers.ts'
import type { DescribedCall, Explanation } from '../../base/contracts/calls/explanation.ts'
import type { FoundPerson } from '../../base/contracts/people/people.ts'
import type { FeedReading } from '../../base/contracts/records/store.ts'
import { timerMs, toMachineTime } from '../../base/kernel/clock.ts'
import { withoutDebugger } from '../../base/kernel/no-debugger.ts'
import { readingAt } from '../../state/stores/feed/feed-changes.ts'
import { type Condition, conditionOfPool, mergeConditions } from '../../base/kernel/health.ts'
import { WorkerRequestError } from '../../base/contracts/processes/open-requests.ts'
import { SharedPorts } from './shared-ports.ts'
import type { WorkerHandle } from './worker-handle.ts'
import {
  ContentsChanged,
  type RecalledCall,
  type WorkerPool,
  type WorkerStates,
} from '../../base/contracts/processes/worker-pool.ts'
import { WorkerProcesses, type WorkerProcessesParts } from './worker-processes.ts'
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'

interface WorkerPoolParts<C> extends WorkerProcessesParts<C> {
  /** The file that a worker process runs; it calls `runWorkerProcess`. */
  readonly program: string
  /** Whether a connection with this descriptor is taken. */
  readonly takes: (descriptor: number) => boolean
}

/** If a worker dies while a reload is prepared, the reload is tried once more. */
const ATTEMPTS = 2
/** Turns of the event loop without an offered connection after which all are handed over. */
const QUIET_TURNS = 3
/** A bound, because a frozen worker never accepts what it is offered. */
const LONGEST_HANDOVER_MS = 2000
/** The descriptors of a worker process, in their order: those of the supervisor, its messages, its records, their progress. */
const STDIO: ('inherit' | 'ipc' | 'pipe')[] = ['inherit', 'inherit', 'inherit', 'ipc', 'pipe', 'pipe']

interface Prepared<C> {
  readonly configuration: C
  readonly by: readonly WorkerHandle<C>[]
  readonly opened?: string
}

export class ClusterWorkerPool<C> implements WorkerPool<C> {
  readonly #ports: SharedPorts
  readonly #workers: WorkerProcesses<C>
  readonly #size: number
  #prepared: Prepared<C> | undefined
  #closed: Promise<number> | undefined

  private constructor(configuration: C, parts: WorkerPoolParts<C>) {
    this.#size = parts.size
    this.#ports = new SharedPorts(parts.takes)
    const changed = (): void => {
      this.pollChanges()
      parts.reports.changed()
    }
    this.#workers = new WorkerProcesses(configuration, { ...parts, reports: { ...parts.reports, changed } })
  }

  /**
   * Resolves when every worker serves or has failed to start: one that failed is tried again, while the others serve. Rejects,
   * with no process left, if the first one cannot start.
   */
  static async start<C>(configuration: C, parts: WorkerPoolParts<C>): Promise<ClusterWorkerPool<C>> {
    cluster.schedulingPolicy = cluster.SCHED_RR
    const execArgv = [...withoutDebugger(process.execArgv)]
    cluster.setupPrimary({ exec: parts.program, args: [], execArgv, serialization: 'advanced', stdio: STDIO })
    const pool = new ClusterWorkerPool(configuration, parts)
    try {
      // The first one alone: it creates the keys, which the others find. If it fails, none is started.
      await pool.#workers.add()
      await Promise.all(Array.from({ length: parts.size - 1 }, () => pool.#workers.addOrRecover()))
    } catch (error) {
      await pool.close(0)
      throw error
    }
    return pool
  }

  get port(): number {
    return this.#workers.port
  }

  get holdingsDigest(): string {
    return this.#workers.holdingsDigest
  }

  isServing(): boolean {
    return this.#workers.responsive.length > 0
  }

  condition(): Condition {
    const serving = this.#workers.responsive.length
    const reason = `${serving} of ${this.#size} serve`
    const own = { failing: [], degraded: serving < this.#size ? [{ name: 'workers', reason }] : [] }
    const workers = conditionOfPool(this.#workers.serving.map((worker) => worker.condition))
    return mergeConditions([own, workers])
  }

  states(): WorkerStates {
    return this.#workers.states
  }

  gauges(): readonly GaugeReading[] {
    return this.#workers.all.filter(({ isGone }) => !isGone).flatMap((worker) => worker.gauges)
  }

  open(): Promise<void> {
    return this.#workers.open()
  }

  async prepare(configuration: C): Promise<string> {
    for (let attempt = 1; ; attempt++)
      try {
        return await this.#prepareAll(configuration)
      } catch (error) {
        await this.abort()
        const isGone = error instanceof WorkerRequestError && error.end === 'gone'
        if (!isGone || attempt === ATTEMPTS || this.#workers.isClosing) throw error
        await this.#workers.untilComplete()
      }
  }

  /** The first worker prepares alone: a configuration that crashes the process which opens it must not crash all. */
  async #prepareAll(configuration: C): Promise<string> {
    const by = this.#workers.serving
    const [first, ...others] = by
    if (first === undefined) throw new WorkerRequestError('gone', 'no worker process serves at the moment')
    this.#prepared = { configuration, by }
    const prepare = (worker: WorkerHandle<C>) => worker.request({ type: 'prepare', configuration })
    const opened = await prepare(first)
    if ((await all(others.map(prepare))).some((other) => other !== opened)) throw new ContentsChanged()
    this.#prepared = { configuration, by, opened }
    return opened
  }

  async commit(): Promise<void> {
    const prepared = this.#prepared
    if (prepared === undefined) return
    this.#prepared = undefined
    const { configuration, by, opened } = prepared
    const workers = this.#workers
    workers.putInForce(configuration, opened)
    const commit = async (worker: WorkerHandle<C>): Promise<void> => {
      await worker.request({ type: 'commit' })
      worker.serves = configuration
    }
    await Promise.all(by.map((worker) => workers.killUnlessDone(worker, () => commit(worker))))
    // Workers that started meanwhile with the configuration before.
    const late = workers.serving.filter(({ serves }) => serves !== configuration)
    await Promise.all(
      late.map((worker) => workers.killUnlessDone(worker, () => workers.update(worker, configuration))),
    )
  }

  async abort(): Promise<void> {
    const { by } = this.#prepared ?? { by: [] }
    this.#prepared = undefined
    await Promise.all(
      by.map((worker) => this.#workers.killUnlessDone(worker, () => worker.request({ type: 'abort' }))),
    )
  }

  explain(call: DescribedCall): Promise<Explanation> {
    return this.#askAny((worker) => worker.request({ type: 'explain', call }))
  }

  issueTestToken(request: TestTokenRequest): Promise<TestTokenAnswer> {
    return this.#askAny((worker) => worker.request({ type: 'issueTestToken', request }))
  }

  findPerson(subject: string): Promise<FoundPerson | undefined> {
    return this.#askAny((worker) => worker.request({ type: 'findPerson', subject }))
  }

  /** Any worker can answer; if it ends, another one is asked. Rejects with WorkerRequestError, or its error. */
  async #askAny<T>(ask: (worker: WorkerHandle<C>) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const [worker] = this.#workers.responsive
      if (worker === undefined) throw new WorkerRequestError('gone', 'no worker process serves at the moment')
      try {
        return await ask(worker)
      } catch (error) {
        if (!(error instanceof WorkerRequestError) || error.end !== 'gone' || attempt === ATTEMPTS)
          throw error
      }
    }
  }

  /** All are asked, because one worker had the call. A worker that ends or does not answer has no answer to give. */
  async recall(requestId: string): Promise<RecalledCall | undefined> {
    const ask = (worker: WorkerHandle<C>): Promise<RecalledCall | undefined> =>
      worker.request({ type: 'recall', requestId }).catch(() => undefined)
    const answers = await Promise.all(this.#workers.serving.map(ask))
    return answers.find((answer) => answer !== undefined)
  }

  async followKeys(): Promise<void> {
    await all(this.#workers.all.map((worker) => worker.followKeys()))
  }

  applyRemoteUsage(): void {
    // Nothing to do: the workers of a pool exchange their usage in WorkerProcesses, and no other process serves.
  }

  pollChanges(): void {
    for (const worker of this.#workers.serving) worker.send({ type: 'pollChanges' })
  }

  takeReading(reading: FeedReading): void {
    const sent = readingAt(reading, toMachineTime)
    for (const worker of this.#workers.serving) worker.send({ type: 'reading', reading: sent })
  }

  flush(): void {
    // Workers flush by themselves, so that a scrape never waits for one.
  }

  /** Replaces every worker, one after the other. The new one serves before the old one stops. */
  async restart(): Promise<number> {
    const workers = this.#workers
    const before = workers.serving
    try {
      for (const worker of before)
        if (workers.serving.includes(worker) && !workers.isClosing) await workers.replace(worker)
      return before.length
    } catch (error) {
      if (workers.isClosing) return 0
      throw error
    } finally {
      if (workers.isIncomplete()) void workers.recover()
    }
  }

  drain(): void {
    for (const worker of this.#workers.serving) worker.request({ type: 'drain' }).catch(() => undefined)
  }

  /** Workers accept connections as long as the port is open. They end after they got everything that was handed over. */
  close(lameDuck = this.#workers.closeTimes.lameDuck): Promise<number> {
    return (this.#closed ??= this.#close(lameDuck))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(0)
  }

  async #close(lameDuck: number): Promise<number> {
    this.#workers.startClosing()
    if (this.#workers.serving.length > 0) {
      this.drain()
      await wait(timerMs(lameDuck))
      await this.#ports.close()
      await this.#untilHandedOver()
      for (const worker of this.#workers.serving) worker.leaveRotation()
    }
    return this.#workers.close()
  }

  async #untilHandedOver(): Promise<void> {
    const deadline = performance.now() + LONGEST_HANDOVER_MS
    let turns = 0
    while (turns < QUIET_TURNS && performance.now() < deadline) {
      await nextTurn()
      turns = this.#workers.serving.some(({ offered }) => offered > 0) ? 0 : turns + 1
    }
  }
}

/** The results of all requests. Rejects with a worker's own error if there is one: it says more than a WorkerRequestError. */
async function all<T>(requests: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(requests)
  const failures = results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason as unknown] : [],
  )
  const reported = failures.find((failure) => !(failure instanceof WorkerRequestError))
  if (failures.length > 0) throw reported ?? failures[0]
  return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
}
