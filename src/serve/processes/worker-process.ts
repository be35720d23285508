import cluster from 'node:cluster'
import { isDeepStrictEqual } from 'node:util'
import type { RateUsage } from '../../base/contracts/calls/admission.ts'
import type { TestTokenRequest } from '../../base/contracts/people/claimed-callers.ts'
import type { DescribedCall } from '../../base/contracts/calls/explanation.ts'
import { fromMachineTime } from '../../base/kernel/clock.ts'
import { readingAt } from '../../state/stores/feed/feed-changes.ts'
import { type Condition, HEALTHY } from '../../base/kernel/health.ts'
import { type Notice, reportOfError, type Serving, type SupervisorMessage } from './messages.ts'
import { RemoteAttempts } from './shared-attempts.ts'
import { SUPERVISOR_SIGNALS } from './signals.ts'
import type { WorkerMessages, WorkerPool } from '../../base/contracts/processes/worker-pool.ts'
import type { Delta } from '../../base/contracts/processes/reports.ts'

/** Sends to the supervisor. `done` is called when the message was sent or could not be: without a supervisor it is dropped. */
const send = (notice: Notice, done: () => void = () => undefined): void => {
  if (process.connected && process.send) process.send(notice, undefined, {}, done)
  else done()
}

const LINES_MS = 50

/** Milliseconds between two checks whether the worker's condition has changed, and between two reports of its gauges. */
const STATE_MS = 500

class Channel implements WorkerMessages {
  readonly attempts = new RemoteAttempts(send)
  readonly #lines = new LineSender((text, lost, done) => send({ type: 'lines', text, lost }, done))
  #condition = HEALTHY

  constructor() {
    setInterval(() => this.flushLines(), LINES_MS).unref()
  }

  metrics(deltas: readonly Delta[]): void {
    if (deltas.length > 0) send({ type: 'metrics', deltas })
  }

  calls(counts: Parameters<WorkerMessages['calls']>[0]): void {
    if (counts.length > 0) send({ type: 'calls', counts })
  }

  lines(text: string): void {
    this.#lines.write(text)
  }

  changed(): void {
    send({ type: 'changed' })
  }

  rateUsage(usage: RateUsage): void {
    send({ type: 'rateUsage', usage })
  }

  condition(condition: Condition): void {
    if (isDeepStrictEqual(condition, this.#condition)) return
    this.#condition = condition
    send({ type: 'condition', condition })
  }

  state(pool: Pick<WorkerPool<never>, 'condition' | 'gauges'>): void {
    this.condition(pool.condition())
    send({ type: 'gauges', readings: pool.gauges() })
  }

  flushLines(): void {
    this.#lines.flush()
  }
}

const answersOf = <C>(serving: () => WorkerPool<C>) => ({
  explain: (call: DescribedCall) => serving().explain(call),
  issueTestToken: (request: TestTokenRequest) => serving().issueTestToken(request),
  findPerson: (subject: string) => serving().findPerson(subject),
  recall: (requestId: string) => serving().recall(requestId),
})

/** Starts to serve. The resources beneath are put onto `opened`; they are disposed at the pool's end and if this rejects. */
type StartWorker<C> = (
  configuration: C,
  reports: WorkerMessages,
  opened: AsyncDisposableStack,
) => Promise<WorkerPool<C>>

/** Runs this process as a worker of the supervisor that forked it. Returns at once; the channel keeps the process alive. */
export function runWorkerProcess<C>(start: StartWorker<C>): void {
  const channel = new Channel()
  let pool: WorkerPool<C> | undefined
  const get = (): WorkerPool<C> => {
    if (pool === undefined) throw new Error('the worker has not been started')
    return pool
  }
  let started: Promise<WorkerPool<C>> | undefined
  let ended: Promise<number> | undefined
  const opened = new AsyncDisposableStack()
  const close = async (serving: WorkerPool<C>): Promise<number> => {
    // No lame-duck time: the supervisor has waited already.
    const cut = await serving.close(0)
    await opened.disposeAsync()
    serving.flush() // once more: the trail has counted its last records
    return cut
  }
  /** Runs once, though the supervisor may end meanwhile. */
  const end = (): Promise<number> => (ended ??= close(get()))
  setInterval(() => pool && channel.state(pool), STATE_MS).unref()
  const work = {
    start: async (configuration: C) => {
      started = start(configuration, channel, opened).catch(async (error: unknown) => {
        await opened.disposeAsync()
        throw error
      })
      pool = await started
      // The supervisor must know the condition before the worker counts as serving.
      channel.state(pool)
      return { port: pool.port, holdingsDigest: pool.holdingsDigest } satisfies Serving
    },
    open: () => get().open(),
    prepare: (configuration: C) => get().prepare(configuration),
    commit: () => get().commit(),
    abort: () => get().abort(),
    ...answersOf(get),
    ping: () => undefined, // the answer alone shows that the event loop runs
    // Also while it starts: its keys may be read already.
    followKeys: async () => (await started?.catch(() => undefined))?.followKeys(),
    drain: () => get().drain(),
    close: async () => {
      const cut = await end()
      channel.flushLines()
      return cut
    },
  }
  const valueOf = (message: Extract<SupervisorMessage<C>, { id: number }>): unknown => {
    if ('configuration' in message) return work[message.type](message.configuration)
    if (message.type === 'explain') return work.explain(message.call)
    if (message.type === 'issueTestToken') return work.issueTestToken(message.request)
    if (message.type === 'findPerson') return work.findPerson(message.subject)
    if (message.type === 'recall') return work.recall(message.requestId)
    return work[message.type]()
  }
  const carryOut = async (message: Extract<SupervisorMessage<C>, { id: number }>): Promise<void> => {
    try {
      send({ type: 'done', id: message.id, value: await valueOf(message) })
    } catch (error) {
      send({ type: 'failed', id: message.id, error: reportOfError(error) })
    }
    if (message.type === 'close') process.disconnect?.()
  }
  process.on('message', (message: SupervisorMessage<C>) => {
    if (message.type === 'pollChanges') pool?.pollChanges()
    else if (message.type === 'reading') pool?.takeReading(readingAt(message.reading, fromMachineTime))
    else if (message.type === 'usage') pool?.applyRemoteUsage(message.usage)
    else if ('turn' in message) channel.attempts.receive(message)
    else void carryOut(message)
  })
  endWithSupervisor(() => {
    channel.attempts.end()
    return pool === undefined ? Promise.resolve(0) : end()
  })
}

/**
 * Ends the worker, after its calls in flight, when the supervisor is gone. node:cluster would end it at once, unless
 * `exitedAfterDisconnect` is set. Signals to the process group are ignored here: the supervisor acts on them.
 */
function endWithSupervisor(close: () => Promise<number>): void {
  for (const signal of SUPERVISOR_SIGNALS) process.on(signal, () => undefined)
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true
  process.on('disconnect', () => void close().finally(() => process.exit(0)))
}

/** Sends lines to the supervisor. `done` is called when they have left this process. */
type SendLines = (text: string, lost: number, done: () => void) => void

/** Characters of one message. Lines are sent together, because a message costs more than a line. */
const BUNDLE = 32_768
/** The most characters that wait in this process: a hanging supervisor must not fill its workers' memory (T5.11). */
const LIMIT = 1024 ** 2

/** A worker's log lines on their way to the supervisor. Beyond the limit they are dropped and counted. */
export class LineSender {
  readonly #send: SendLines
  #held = ''
  /** Characters that were sent and have not left this process yet. */
  #unsent = 0
  /** Lines dropped before those in `#held` and not reported yet. */
  #lost = 0

  constructor(send: SendLines) {
    this.#send = send
  }

  write(lines: string): void {
    if (this.#hasSpace(lines.length)) this.#held += lines
    else {
      // The lines that are held come before the dropped ones.
      this.flush()
      this.#lost += lines.split('\n').length - 1
    }
    if (this.#held.length > BUNDLE) this.flush()
  }

  flush(): void {
    if (this.#held === '' && (this.#lost === 0 || !this.#hasSpace(0))) return
    const [text, lost] = [this.#held, this.#lost]
    this.#held = ''
    this.#lost = 0
    this.#unsent += text.length
    this.#send(text, lost, () => (this.#unsent -= text.length))
  }

  /** After dropped lines, half of the limit must be free. Otherwise every second line could report a gap. */
  #hasSpace(more: number): boolean {
    return this.#held.length + this.#unsent + more <= (this.#lost > 0 ? LIMIT / 2 : LIMIT)
  }
}
