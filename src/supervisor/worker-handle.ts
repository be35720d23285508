import {
  type Block,
  type Delta,
  holds,
  type Plan,
  rowAlone,
  seriesAt,
} from '../operations/metrics/metric-counts.ts'
import type { Worker } from 'node:cluster'
import type { RateUsage } from '../contracts/admission.ts'
import { HEALTHY, type Condition } from '../operations/health.ts'
import { AttemptCoordinator } from './shared-attempts.ts'
import type { Reports } from './worker-pool.ts'
import { errorOf, type Notice, type Order, type OrderResults } from './messages.ts'
import { OfferedConnections } from './shared-ports.ts'
import { OpenOrders, type RunningTime } from './open-orders.ts'

/** Something counted by a plan of its own. */
export interface Counted {
  readonly plan: Plan
  readonly delta: Delta
}

/** One series, as a block without a place. */
type Series = Pick<Block, 'family' | 'axes'>

interface GaugeValue {
  readonly series: Series
  readonly amount: number
}

/**
 * What one process adds to gauges. They are counted up and down like counters, but tell of what is: when the process
 * has ended, however that came, its part is nothing.
 */
export class GaugeShare {
  #gauges: readonly Block[] = []
  /** By series, since what was counted up by one plan may be counted down by the next; none at zero. */
  readonly #held = new Map<string, GaugeValue>()

  /** The plan that the deltas after it follow. */
  follow(plan: Plan): void {
    this.#gauges = plan.filter(({ family }) => family.type === 'gauge')
  }

  add({ cells, amounts }: Delta): void {
    for (const [at, cell] of cells.entries()) {
      const block = this.#gauges.find((gauge) => holds(gauge, cell))
      if (block !== undefined) this.#hold(seriesOf(block, cell), amounts[at] ?? 0)
    }
  }

  /** What brings its part back to zero, by a plan made for it; undefined if it is. Forgets it. */
  takeBack(): Counted | undefined {
    const held = [...this.#held.values()]
    this.#held.clear()
    if (held.length === 0) return undefined
    return {
      plan: held.map(({ series }, at) => ({ ...series, at, count: 1 })),
      delta: { cells: held.map((_, at) => at), amounts: held.map(({ amount }) => -amount) },
    }
  }

  #hold(series: Series, more: number): void {
    const key = JSON.stringify([series.family.name, series.axes])
    const amount = (this.#held.get(key)?.amount ?? 0) + more
    if (amount === 0) this.#held.delete(key)
    else this.#held.set(key, { series, amount })
  }
}

function seriesOf(block: Block, cell: number): Series {
  const rows = seriesAt(block, cell)
  return { family: block.family, axes: block.axes.map((axis, at) => rowAlone(axis, rows[at] ?? 0)) }
}

type Request<C> = Order<C> extends infer O ? (O extends { id: number } ? Omit<O, 'id'> : never) : never

/** Milliseconds that a worker has for each order. `start` and `prepare` open backends, which may wait for others. */
const PATIENCE_MS: Readonly<Record<Request<never>['type'], number>> = {
  start: 60_000,
  prepare: 60_000,
  commit: 10_000,
  abort: 10_000,
  ping: 5_000,
  drain: 5_000,
  close: 5_000,
}
/** A process that has been told to end, or killed, is gone by then; one that hangs in the kernel is not waited for. */
const LEAVE_MS = 5_000

/** The supervisor's end of the channel to one worker process. */
export class WorkerHandle<C> {
  readonly #worker: Worker
  readonly #time: RunningTime
  readonly #orders: OpenOrders
  readonly #offered: OfferedConnections
  readonly #attempts: AttemptCoordinator
  #plan: Plan = []
  readonly #gauges = new GaugeShare()
  #gone = false
  /** How its parts are, as it told last. */
  condition: Condition = HEALTHY
  readonly #exit = Promise.withResolvers<undefined>()
  /** Whether its end was asked for; one that was not is a death. */
  closing = false
  /** Why the supervisor killed it, if it did. */
  fault: string | undefined
  /** The configuration that it serves, as far as is known. */
  serves: C | undefined

  constructor(worker: Worker, reports: Reports, time: RunningTime) {
    this.#worker = worker
    this.#time = time
    this.#orders = new OpenOrders(time.after)
    this.#attempts = new AttemptCoordinator(reports.attempts, (order) => void this.#send(order))
    this.#offered = new OfferedConnections(worker.process)
    worker.on('message', (notice: Notice) => this.#receive(notice, reports))
    worker.on('error', () => undefined) // a send to a dead process; its exit is told anyway
    // Without the channel it can be told nothing more. It ends by itself where it was told to.
    worker.once('disconnect', () => {
      this.#orders.end()
      if (!this.closing) this.kill('it closed its channel')
    })
    worker.once('exit', () => {
      this.#gone = true
      this.#takeBackGauges(reports)
      this.#attempts.close()
      this.#orders.end()
      this.#exit.resolve(undefined)
    })
  }

  get pid(): number | undefined {
    return this.#worker.process.pid
  }

  /** Whether it can be told nothing more: it has ended, or is about to. */
  get isGone(): boolean {
    return this.#gone || !this.#worker.isConnected()
  }

  /** Resolves with the order's value. Rejects with OrderError, and always does one of the two. */
  request<K extends keyof OrderResults>(
    order: Request<C> & { readonly type: K },
    ms = PATIENCE_MS[order.type],
  ): Promise<OrderResults[K]> {
    const answer = this.#orders.give(ms, (id) => this.#send({ ...order, id }))
    return answer as Promise<OrderResults[K]>
  }

  applyRemoteUsage(usage: RateUsage): void {
    this.#send({ type: 'usage', usage })
  }

  pollChanges(): void {
    this.#send({ type: 'pollChanges' })
  }

  /** Connections that it was offered and has not taken yet. */
  get offered(): number {
    return this.#offered.count
  }

  /** From now on it is offered no more connections. */
  leaveRotation(): void {
    if (!this.#gone) this.#offered.stop()
  }

  /** Ends it gently, and with force after `ms`. Resolves with how many connections were cut, when it is gone. */
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

  /** Calls the listener once: soon, if it is gone already. */
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

  #send(order: Order<C>): boolean {
    if (this.isGone) return false
    this.#worker.send(order, () => undefined)
    return true
  }

  #receive(notice: Notice, reports: Reports): void {
    if (notice.type === 'done') this.#orders.done(notice.id, notice.value)
    else if (notice.type === 'failed') this.#orders.failed(notice.id, errorOf(notice.error))
    else if (notice.type === 'plan') this.#follow(notice.plan)
    else if (notice.type === 'metrics') this.#count(notice.delta, reports)
    else if (notice.type === 'lines') reports.lines(notice.text, notice.lost)
    else if (notice.type === 'enter' || notice.type === 'leave') this.#attempts.receive(notice)
    else if (notice.type === 'rateUsage') reports.rateUsage(notice.usage)
    else if (notice.type === 'condition') this.condition = notice.condition
    else reports.changed()
  }

  #follow(plan: Plan): void {
    this.#plan = plan
    this.#gauges.follow(plan)
  }

  #count(delta: Delta, reports: Reports): void {
    reports.metrics(this.#plan, delta)
    this.#gauges.add(delta)
    // What it sent before it died may be read after its exit is told.
    if (this.#gone) this.#takeBackGauges(reports)
  }

  #takeBackGauges(reports: Reports): void {
    const counted = this.#gauges.takeBack()
    if (counted !== undefined) reports.metrics(counted.plan, counted.delta)
  }
}
