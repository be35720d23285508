import type { Worker } from 'node:cluster'
import { Duplex } from 'node:stream'
import { type Condition, HEALTHY } from '../../base/kernel/health.ts'
import { errorOf, type Notice, type RequestResults, type SupervisorMessage } from './messages.ts'
import {
  OpenRequests,
  type RunningTime,
  WorkerRequestError,
} from '../../base/contracts/processes/open-requests.ts'
import {
  PROGRESS_DESCRIPTOR,
  type RecordedWay,
  RECORDS_DESCRIPTOR,
} from '../../base/contracts/processes/recorded-way.ts'
import { AttemptCoordinator } from './shared-attempts.ts'
import { OfferedConnections } from './shared-ports.ts'
import type { WorkerMessages } from '../../base/contracts/processes/worker-pool.ts'
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'

type Request<C> =
  SupervisorMessage<C> extends infer O ? (O extends { id: number } ? Omit<O, 'id'> : never) : never

/**
 * How long a worker may take for each request, in milliseconds. `start` and `prepare` open backends, which may wait for others; the
 * record of a token may wait for a slow disk.
 */
const PATIENCE_MS: Readonly<Record<Request<never>['type'], number>> = {
  start: 60_000,
  open: 5_000,
  prepare: 60_000,
  commit: 10_000,
  abort: 10_000,
  ping: 5_000,
  followKeys: 5_000,
  explain: 5_000,
  issueTestToken: 15_000,
  findPerson: 15_000,
  recall: 5_000,
  drain: 5_000,
  close: 5_000,
}
/** Milliseconds after which a process that was asked to end, or killed, is gone; one that hangs in the kernel is not waited for. */
const LEAVE_MS = 5_000

/** The supervisor's end of the channel to one worker process. */
export class WorkerHandle<C> {
  /** No other living worker has it. */
  readonly number: number
  readonly #worker: Worker
  readonly #time: RunningTime
  readonly #requests: OpenRequests
  readonly #offered: OfferedConnections
  readonly #attempts: AttemptCoordinator
  #gone = false
  condition: Condition = HEALTHY
  gauges: readonly GaugeReading[] = []
  readonly #exit = Promise.withResolvers<undefined>()
  /** Whether its end was asked for; one that was not is a death. */
  closing = false
  /** Why the supervisor killed it, if it did. */
  fault: string | undefined
  /** The configuration that it serves, as far as is known. */
  serves: C | undefined

  constructor(worker: Worker, reports: WorkerMessages, time: RunningTime, number: number) {
    this.number = number
    this.#worker = worker
    this.#time = time
    this.#requests = new OpenRequests(time.after)
    this.#attempts = new AttemptCoordinator(reports.attempts, (message) => void this.send(message))
    this.#offered = new OfferedConnections(worker.process)
    worker.on('message', (notice: Notice) => this.#receive(notice, reports))
    worker.on('error', () => undefined) // a send to a dead process, whose `exit` event comes anyway
    // Without the channel it gets no requests. If it was asked to close, it ends by itself.
    worker.once('disconnect', () => {
      this.#requests.end()
      if (!this.closing) this.kill('it closed its channel')
    })
    worker.once('exit', () => {
      this.#gone = true
      this.#attempts.close()
      this.#requests.end()
      this.#exit.resolve(undefined)
    })
  }

  /** The way of its records of the trail; undefined if there was no descriptor left for it. */
  get way(): RecordedWay | undefined {
    const { stdio } = this.#worker.process as { readonly stdio?: readonly unknown[] }
    const [records, progress] = [stdio?.[RECORDS_DESCRIPTOR], stdio?.[PROGRESS_DESCRIPTOR]]
    return records instanceof Duplex && progress instanceof Duplex ? { records, progress } : undefined
  }

  get pid(): number | undefined {
    return this.#worker.process.pid
  }

  /** Whether it can get no more requests: it has ended or is about to. */
  get isGone(): boolean {
    return this.#gone || !this.#worker.isConnected()
  }

  /** Resolves with the result. Rejects with WorkerRequestError or with the worker's error. Always settles. */
  request<K extends keyof RequestResults>(
    request: Request<C> & { readonly type: K },
    ms = PATIENCE_MS[request.type],
  ): Promise<RequestResults[K]> {
    const answer = this.#requests.give(ms, (id) => this.send({ ...request, id }))
    return answer as Promise<RequestResults[K]>
  }

  /** Asks it to take the keys into use, or sees its process end. Rejects with WorkerRequestError, or with the worker's error. */
  async followKeys(): Promise<void> {
    try {
      await this.request({ type: 'followKeys' })
    } catch (error) {
      if (!(error instanceof WorkerRequestError) || error.end !== 'gone') throw error
      await this.#leave()
      if (!this.#gone) throw error
    }
  }

  /** The number of connections that were offered to it and not accepted yet. */
  get offered(): number {
    return this.#offered.count
  }

  leaveRotation(): void {
    if (!this.#gone) this.#offered.stop()
  }

  /** Asks it to close; kills it after `ms`. Resolves, when it has ended, with the number of connections it cut. */
  async close(ms: number): Promise<number> {
    this.closing = true
    this.leaveRotation()
    const cut = await this.request({ type: 'close' }, ms).catch(() => undefined)
    if (cut !== undefined) await this.#leave()
    if (!this.#gone) {
      this.kill('it did not end')
      await this.#leave()
    }
    return cut ?? 0
  }

  /** Calls the listener once, when the process ends or soon if it has ended. */
  onExit(listener: () => void): void {
    void this.#exit.promise.then(listener)
  }

  kill(fault: string): void {
    this.fault ??= fault
    this.#worker.process.kill('SIGKILL')
  }

  #leave(): Promise<void> {
    return new Promise((resolve) => {
      const forget = this.#time.after(LEAVE_MS, resolve)
      this.onExit(() => {
        forget()
        resolve()
      })
    })
  }

  /** Whether it could be sent. */
  send(message: SupervisorMessage<C>): boolean {
    if (this.isGone) return false
    this.#worker.send(message, () => undefined)
    return true
  }

  #receive(notice: Notice, reports: WorkerMessages): void {
    if (notice.type === 'done') this.#requests.done(notice.id, notice.value)
    else if (notice.type === 'failed') this.#requests.failed(notice.id, errorOf(notice.error))
    else if (notice.type === 'metrics') reports.metrics(notice.deltas)
    else if (notice.type === 'gauges') this.gauges = notice.readings
    else if (notice.type === 'calls') reports.calls(notice.counts)
    else if (notice.type === 'lines') reports.lines(notice.text, notice.lost)
    else if (notice.type === 'enter' || notice.type === 'leave') this.#attempts.receive(notice)
    else if (notice.type === 'rateUsage') reports.rateUsage(notice.usage)
    else if (notice.type === 'condition') this.condition = notice.condition
    else reports.changed()
  }
}
