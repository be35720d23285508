import cluster from 'node:cluster'
import { setTimeout as wait } from 'node:timers/promises'
import type { Recorder } from '../contracts/recorder.ts'
import { RateUsageExchange } from '../limits/rate-usage-exchange.ts'
import type { Reports } from './worker-pool.ts'
import { RunningTime } from './open-orders.ts'
import { Watchdog } from './watchdog.ts'
import { WorkerHandle } from './worker-handle.ts'

export interface WorkerProcessesParts<C> {
  readonly size: number
  readonly reports: Reports
  readonly note: Recorder['note']
  /** A worker found other contents in the files of the configuration in force than those that serve already. */
  readonly contentsChanged: () => void
  /** How long new connections are taken when the service ends, and calls may take then: milliseconds. */
  readonly closeTimes: (configuration: C) => { readonly lameDuck: number; readonly drain: number }
}

/** A worker that dies sooner than this is not replaced at once, so that a crash at start does not become a fork storm. */
const STEADY_MS = 5_000
const LONGEST_PAUSE_MS = 30_000
/** Beyond the time that calls in flight have, for a worker to close what it has open. */
const CLOSE_SLACK_MS = 10_000
const WHOLE_AGAIN_MS = 10_000

/** The worker processes: each is started with what is in force, watched, and replaced when it dies. */
export class WorkerProcesses<C> {
  readonly #parts: WorkerProcessesParts<C>
  /** Where workers tell each other what they let in. */
  readonly #usage = new RateUsageExchange()
  readonly #time = new RunningTime()
  readonly #watchdog: Watchdog
  #workers: readonly WorkerHandle<C>[] = []
  readonly #starting = new Set<WorkerHandle<C>>()
  /** Told to end, and how many connections each will have cut. */
  readonly #ending = new Map<WorkerHandle<C>, Promise<number>>()
  #inForce: C
  #opened: string | undefined
  #port = 0
  #closing = false
  #hasty = 0

  constructor(configuration: C, parts: WorkerProcessesParts<C>) {
    this.#inForce = configuration
    this.#parts = parts
    this.#watchdog = new Watchdog({
      time: this.#time,
      note: parts.note,
      isComplete: () => !this.isIncomplete(0),
    })
    this.#usage.start()
    this.#time.start()
  }

  /** Those that serve. One that is gone counts no more, though its exit may not have been told yet. */
  get serving(): readonly WorkerHandle<C>[] {
    return this.#workers.filter(({ isGone }) => !isGone)
  }

  /** Those of them that do not stand still. */
  get responsive(): readonly WorkerHandle<C>[] {
    return this.serving.filter((worker) => !this.#watchdog.isFrozen(worker))
  }

  get port(): number {
    return this.#port
  }

  /** Who is let in by what is in force, as the first worker found it. */
  get holdingsDigest(): string {
    return this.#opened ?? ''
  }

  get isClosing(): boolean {
    return this.#closing
  }

  get closeTimes(): { readonly lameDuck: number; readonly drain: number } {
    return this.#parts.closeTimes(this.#inForce)
  }

  /** From here on workers start with it, and those that are starting will be brought to it. */
  putInForce(configuration: C, opened: string | undefined): void {
    this.#inForce = configuration
    this.#opened = opened
  }

  /** Nobody knows what a worker serves that did not carry out an order: its replacement serves what is in force. */
  async killUnlessDone(worker: WorkerHandle<C>, order: () => Promise<unknown>): Promise<void> {
    try {
      await order()
    } catch (error) {
      worker.kill(error instanceof Error ? error.message : String(error))
    }
  }

  async update(worker: WorkerHandle<C>, configuration: C): Promise<void> {
    const opened = await worker.request({ type: 'prepare', configuration })
    await worker.request({ type: 'commit' })
    worker.serves = configuration
    this.#compare(opened)
  }

  /** Another serves before this one stops. */
  async replace(worker: WorkerHandle<C>): Promise<void> {
    await this.add()
    this.#forget(worker)
    await this.#end(worker)
  }

  /** Starts one more. Rejects if it does not come to serve. */
  async add(): Promise<void> {
    const link = this.#usage.join((usage) => worker.applyRemoteUsage(usage))
    const reports = { ...this.#parts.reports, spent: link.report }
    const worker = new WorkerHandle<C>(cluster.fork(), reports, this.#time)
    worker.onExit(() => link.leave())
    this.#starting.add(worker)
    const since = performance.now()
    try {
      this.#port = await this.#bringUp(worker)
    } catch (error) {
      worker.kill('it did not start')
      throw error
    } finally {
      this.#starting.delete(worker)
    }
    this.#join(worker, since)
  }

  /** Whether a worker is missing that nobody is starting: a restart may have begun to replace the one that died. */
  isIncomplete(starting = this.#starting.size): boolean {
    return !this.#closing && this.serving.length + starting < this.#parts.size
  }

  /** Waits for the replacement of one that died, for so long. */
  async untilComplete(): Promise<void> {
    const deadline = performance.now() + WHOLE_AGAIN_MS
    while (this.isIncomplete(0) && performance.now() < deadline) await wait(50)
  }

  /** Starts what is missing, again and again if need be. */
  async recover(pause = 0): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, pause).unref())
    if (!this.isIncomplete()) return
    try {
      await this.add()
    } catch (cause) {
      if (this.#closing) return
      this.#parts.note('error', 'worker_not_started', { cause })
      this.#hasty += 1
      await this.recover(pauseAfter(this.#hasty))
    }
  }

  /** From now on nobody is started or replaced. */
  startClosing(): void {
    this.#closing = true
    this.#usage.stop()
    for (const worker of this.#starting) worker.kill('the service ended while it started')
  }

  /** Ends all of them. Resolves with how many connections were cut, when all are gone. */
  async close(): Promise<number> {
    for (const worker of this.#workers) void this.#end(worker)
    const cut = await Promise.all(this.#ending.values())
    this.#time.stop()
    return cut.reduce((sum, count) => sum + count, 0)
  }

  #end(worker: WorkerHandle<C>): Promise<number> {
    const end = worker.close(this.closeTimes.drain + CLOSE_SLACK_MS)
    this.#ending.set(worker, end)
    void end.then(() => !this.#closing && this.#ending.delete(worker))
    return end
  }

  #join(worker: WorkerHandle<C>, since: number): void {
    // What came up while the pool was closing has nobody to serve.
    if (this.#closing) {
      worker.kill('the service ended while it started')
      return
    }
    this.#workers = [...this.#workers, worker]
    this.#parts.note('info', 'worker_started', { pid: worker.pid })
    this.#watchdog.watch(worker)
    worker.onExit(() => {
      this.#forget(worker)
      if (worker.closing || this.#closing) return
      const livedMs = Math.round(performance.now() - since)
      this.#parts.note('error', 'worker_died', { pid: worker.pid, livedMs, cause: worker.fault })
      this.#hasty = livedMs < STEADY_MS ? this.#hasty + 1 : 0
      void this.recover(pauseAfter(this.#hasty))
    })
  }

  /** Starts it with what is in force, also if that changes while it starts. Answers the port. */
  async #bringUp(worker: WorkerHandle<C>): Promise<number> {
    const configuration = this.#inForce
    const { port, holdingsDigest } = await worker.request({ type: 'start', configuration })
    worker.serves = configuration
    this.#compare(holdingsDigest)
    while (worker.serves !== this.#inForce) await this.update(worker, this.#inForce)
    return port
  }

  /** Whoever was removed in a file that a worker reads anew loses what they hold by a reload alone. */
  #compare(opened: string): void {
    this.#opened ??= opened
    if (opened !== this.#opened) this.#parts.contentsChanged()
  }

  #forget(worker: WorkerHandle<C>): void {
    this.#workers = this.#workers.filter((other) => other !== worker)
  }
}

/** Milliseconds before the next start, after so many workers in a row that did not live long. */
const pauseAfter = (hasty: number): number => (hasty < 2 ? 0 : Math.min(LONGEST_PAUSE_MS, 2 ** hasty * 250))
