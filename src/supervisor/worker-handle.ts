import type { Worker } from 'node:cluster'
import type { Spending } from '../contracts/spending.ts'
import type { Plan } from '../operations/ledger-plan.ts'
import type { Delta } from '../operations/ledger.ts'
import { WELL, type Condition } from '../operations/health.ts'
import { AttemptDesk } from './attempt-desk.ts'
import type { Reports } from './crew.ts'
import { GaugeShare } from './gauge-share.ts'
import { closeLostConnections } from './lost-connections.ts'
import type { Notice, Order } from './messages.ts'
import { errorOf } from './told-error.ts'

interface Waiting {
  readonly resolve: (value: number) => void
  readonly reject: (error: Error) => void
}

type Asked<C> = Order<C> extends infer O ? (O extends { ask: number } ? Omit<O, 'ask'> : never) : never

/** Far more than a drain takes: a worker that hangs must not keep the service from ending. */
const LONGEST_CLOSE_MS = 120_000

/** The supervisor's end of the channel to one worker process. */
export class WorkerHandle<C> {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  readonly #desk: AttemptDesk
  #asked = 0
  #plan: Plan = []
  readonly #gauges = new GaugeShare()
  #gone = false
  /** How its parts are, as it told last. */
  condition: Condition = WELL
  /** Whether its end was asked for; one that was not is a death. */
  closing = false

  constructor(worker: Worker, reports: Reports) {
    this.#worker = worker
    this.#desk = new AttemptDesk(reports.attempts, (told) => this.#send(told))
    closeLostConnections(worker.process)
    worker.on('message', (notice: Notice) => this.#hear(notice, reports))
    worker.on('error', () => undefined) // a send to a dead process; its exit is told anyway
    worker.once('exit', () => {
      this.#gone = true
      this.#takeBackGauges(reports)
      this.#desk.close()
      this.#fail(new Error('the worker process ended'))
    })
  }

  get pid(): number | undefined {
    return this.#worker.process.pid
  }

  /** Resolves with the order's value; rejects if the worker refuses or dies. */
  ask(order: Asked<C>): Promise<number> {
    const ask = (this.#asked += 1)
    return new Promise((resolve, reject) => {
      this.#waiting.set(ask, { resolve, reject })
      this.#send({ ...order, ask })
    })
  }

  hear(spending: Spending): void {
    this.#send({ type: 'hear', spending })
  }

  nudge(): void {
    this.#send({ type: 'nudge' })
  }

  async close(): Promise<number> {
    this.closing = true
    // It may have died a moment ago: then nobody tells of its exit any more.
    if (this.#worker.isDead()) return 0
    const gone = new Promise<void>((resolve) => this.#worker.once('exit', () => resolve()))
    const timer = setTimeout(() => this.kill(), LONGEST_CLOSE_MS)
    const cut = await this.ask({ type: 'close' }).catch(() => 0)
    await gone
    clearTimeout(timer)
    return cut
  }

  onExit(listener: () => void): void {
    this.#worker.once('exit', listener)
  }

  kill(): void {
    this.closing = true
    this.#worker.process.kill('SIGKILL')
  }

  #send(order: Order<C>): void {
    if (this.#worker.isConnected()) this.#worker.send(order, () => undefined)
  }

  #hear(notice: Notice, reports: Reports): void {
    if (notice.type === 'done') this.#take(notice.ask)?.resolve(notice.value)
    else if (notice.type === 'failed') this.#take(notice.ask)?.reject(errorOf(notice.error))
    else if (notice.type === 'plan') this.#follow(notice.plan)
    else if (notice.type === 'metrics') this.#count(notice.delta, reports)
    else if (notice.type === 'lines') reports.lines(notice.text, notice.lost)
    else if (notice.type === 'enter' || notice.type === 'leave') this.#desk.hear(notice)
    else if (notice.type === 'spent') reports.spent(notice.spending)
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

  #take(ask: number): Waiting | undefined {
    const waiting = this.#waiting.get(ask)
    this.#waiting.delete(ask)
    return waiting
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
