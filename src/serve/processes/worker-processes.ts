import cluster from 'node:cluster'
import { performance } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import { messageOf } from '../../base/kernel/thrown.ts'
import { RateUsageExchange } from '../../gateway/limits/rate-usage-exchange.ts'
import { RunningTime } from '../../base/contracts/processes/open-requests.ts'
import type { RecordedWay } from '../../base/contracts/processes/recorded-way.ts'
import { Watchdog } from './watchdog.ts'
import { WorkerHandle } from './worker-handle.ts'
import {
  WORKER_NUMBER,
  type WorkerMessages,
  type WorkerStates,
} from '../../base/contracts/processes/worker-pool.ts'

export interface WorkerProcessesParts<C> {
  readonly size: number
  readonly reports: WorkerMessages
  /** Called with the way of each worker's records of the trail. Absent where none is kept. */
  readonly takeRecords?: (way: RecordedWay) => void
  readonly note: Recorder['note']
  /** Called when a worker ended that should not have. `livedMs`: how long it had served. */
  readonly died?: (worker: { readonly pid: number | undefined; readonly livedMs: number }) => void
  /** Called when a new worker reads other contents in the configuration's files than the workers that serve already. */
  readonly contentsChanged: () => void
  /** When the service ends: how long connections are accepted, then how long calls may take. Milliseconds. */
  readonly closeTimes: (configuration: C) => { readonly lameDuck: number; readonly drain: number }
}

/** After workers that die sooner than this, starts are delayed: a crash at start must not become a fork storm. */
const STEADY_MS = 5_000
const LONGEST_PAUSE_MS = 30_000
/** In addition to the time of calls in flight: a worker closes its backends and its store, and writes the end of its trail. */
const CLOSE_SLACK_MS = 15_000
const WHOLE_AGAIN_MS = 10_000

/** The worker processes. Each starts with the configuration in force, is watched, and is replaced when it dies. */
export class WorkerProcesses<C> {
  readonly #parts: WorkerProcessesParts<C>
  /** Workers exchange through it what they have admitted. */
  readonly #usage = new RateUsageExchange()
  readonly #time = new RunningTime()
  readonly #watchdog: Watchdog
  #workers: readonly WorkerHandle<C>[] = []
  readonly #starting = new Set<WorkerHandle<C>>()
  /** Workers that were asked to close, with the number of connections that each cut. */
  readonly #ending = new Map<WorkerHandle<C>, Promise<number>>()
  #inForce: C
  #opened: string | undefined
  #port = 0
  #closing = false
  #isOpen = false
  #hasty = 0

  constructor(configuration: C, parts: WorkerProcessesParts<C>) {
    this.#inForce = configuration
    this.#parts = parts
    this.#watchdog = new Watchdog(this.#time, parts.note, () => !this.isIncomplete(0))
    this.#usage.start()
    this.#time.start()
  }

  /** The workers that serve. A worker without a channel is not among them, even before its `exit` event. */
  get serving(): readonly WorkerHandle<C>[] {
    return this.#workers.filter(({ isGone }) => !isGone)
  }

  /** Every process: also those that start or end. */
  get all(): readonly WorkerHandle<C>[] {
    return [...new Set([...this.#workers, ...this.#starting, ...this.#ending.keys()])]
  }

  get responsive(): readonly WorkerHandle<C>[] {
    return this.serving.filter((worker) => !this.#watchdog.isFrozen(worker))
  }

  get states(): WorkerStates {
    const [serving, responsive] = [this.serving.length, this.responsive.length]
    const isEnding = [...this.#ending.keys()].filter(({ isGone }) => !isGone)
    return {
      serving: responsive,
      frozen: serving - responsive,
      starting: this.#starting.size,
      ending: isEnding.length,
    }
  }

  get port(): number {
    return this.#port
  }

  /** The digest that the first worker reported for the configuration in force. */
  get holdingsDigest(): string {
    return this.#opened ?? ''
  }

  get isClosing(): boolean {
    return this.#closing
  }

  get closeTimes(): { readonly lameDuck: number; readonly drain: number } {
    return this.#parts.closeTimes(this.#inForce)
  }

  /** All workers begin to answer, and those that start later do so at once. */
  async open(): Promise<void> {
    this.#isOpen = true
    await Promise.all(this.#workers.map((worker) => this.#open(worker)))
  }

  #open(worker: WorkerHandle<C>): Promise<void> {
    return this.killUnlessDone(worker, () => worker.request({ type: 'open' }))
  }

  /** Workers start with it from now on. Workers that are starting are updated to it. */
  putInForce(configuration: C, opened: string | undefined): void {
    this.#inForce = configuration
    this.#opened = opened
  }

  /** Kills the worker if the request fails: it is unknown then what the worker serves. Its replacement serves the right one. */
  async killUnlessDone(worker: WorkerHandle<C>, request: () => Promise<unknown>): Promise<void> {
    try {
      await request()
    } catch (error) {
      worker.kill(messageOf(error))
    }
  }

  async update(worker: WorkerHandle<C>, configuration: C): Promise<void> {
    const opened = await worker.request({ type: 'prepare', configuration })
    await worker.request({ type: 'commit' })
    worker.serves = configuration
    this.#compare(opened)
  }

  /** Replaces a worker. The new one serves before the old one stops. */
  async replace(worker: WorkerHandle<C>): Promise<void> {
    await this.add()
    this.#forget(worker)
    await this.#end(worker)
  }

  /** Starts one more worker. Rejects if it cannot serve. */
  async add(): Promise<void> {
    const link = this.#usage.join((usage) => worker.send({ type: 'usage', usage }))
    const reports: WorkerMessages = { ...this.#parts.reports, rateUsage: link.report }
    const number = this.#freeNumber()
    const worker = new WorkerHandle<C>(cluster.fork({ [WORKER_NUMBER]: number }), reports, this.#time, number)
    const { way } = worker
    if (way !== undefined) this.#parts.takeRecords?.(way)
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

  /** The lowest number that no living process has: one that replaces another continues its metrics. */
  #freeNumber(): number {
    const used = new Set(this.all.map(({ number }) => number))
    let number = 1
    while (used.has(number)) number += 1
    return number
  }

  /** Whether workers are missing, those that are starting not counted as missing. */
  isIncomplete(starting = this.#starting.size): boolean {
    return !this.#closing && this.serving.length + starting < this.#parts.size
  }

  async untilComplete(): Promise<void> {
    const deadline = performance.now() + WHOLE_AGAIN_MS
    while (this.isIncomplete(0) && performance.now() < deadline) await wait(50)
  }

  /** Starts a missing worker, and repeats that until it serves. */
  async recover(pause = 0): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, pause).unref())
    if (!this.isIncomplete()) return
    if (!(await this.#tryToAdd())) await this.recover(pauseAfter(this.#hasty))
  }

  /** Starts one more worker. If that fails, it resolves nevertheless, and the worker is started when it can be. */
  async addOrRecover(): Promise<void> {
    if (!(await this.#tryToAdd())) void this.recover(pauseAfter(this.#hasty))
  }

  /** Whether a worker was started, or none is needed any more. */
  async #tryToAdd(): Promise<boolean> {
    try {
      await this.add()
      return true
    } catch (cause) {
      if (this.#closing) return true
      this.#parts.note('error', 'worker_not_started', { cause })
      this.#hasty += 1
      return false
    }
  }

  /** From now on no worker is started or replaced. */
  startClosing(): void {
    this.#closing = true
    this.#usage.stop()
    for (const worker of this.#starting) worker.kill('the service ended while it started')
  }

  /** Ends all workers. Resolves, when all have ended, with the number of connections that were cut. */
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
    // It started while the pool was closing, so it is not needed.
    if (this.#closing) {
      worker.kill('the service ended while it started')
      return
    }
    this.#workers = [...this.#workers, worker]
    if (this.#isOpen) void this.#open(worker)
    this.#parts.note('info', 'worker_started', { pid: worker.pid })
    this.#watchdog.watch(worker)
    worker.onExit(() => {
      this.#forget(worker)
      if (worker.closing || this.#closing) return
      const livedMs = Math.round(performance.now() - since)
      this.#parts.note('error', 'worker_died', { pid: worker.pid, livedMs, cause: worker.fault })
      this.#parts.died?.({ pid: worker.pid, livedMs })
      this.#hasty = livedMs < STEADY_MS ? this.#hasty + 1 : 0
      void this.recover(pauseAfter(this.#hasty))
    })
  }

  /** Starts it with the configuration in force, even if that changes meanwhile. Resolves with the port. */
  async #bringUp(worker: WorkerHandle<C>): Promise<number> {
    const configuration = this.#inForce
    const { port, holdingsDigest } = await worker.request({ type: 'start', configuration })
    worker.serves = configuration
    this.#compare(holdingsDigest)
    while (worker.serves !== this.#inForce) await this.update(worker, this.#inForce)
    return port
  }

  /** A new worker read changed files. A reload is needed, because only a reload revokes what removed people hold. */
  #compare(opened: string): void {
    this.#opened ??= opened
    if (opened !== this.#opened) this.#parts.contentsChanged()
  }

  #forget(worker: WorkerHandle<C>): void {
    this.#workers = this.#workers.filter((other) => other !== worker)
  }
}

/** Milliseconds to wait before the next start. `hasty`: how many workers in a row died early. */
const pauseAfter = (hasty: number): number => (hasty < 2 ? 0 : Math.min(LONGEST_PAUSE_MS, 2 ** hasty * 250))
