import { setImmediate } from 'node:timers'
import { Worker } from 'node:worker_threads'
import { programBeside, threadEnvironment } from '../../../base/files/beside.ts'
import { monotonicMs, whenLate } from '../../../base/kernel/clock.ts'
import { budget, goesFirst, STORE_TIME } from '../../../base/kernel/store-budget.ts'
import { messageOf } from '../../../base/kernel/thrown.ts'
import type { SqlitePlan } from './sqlite-file.ts'
import type { StoreOpening, ReadingVerb, Reply, StoreThreadMessage, VerbRequest } from './sqlite-requests.ts'
import type { SqliteVerb, SqliteVerbs } from './sqlite-verbs.ts'
import { StoreError, type TroubleListener } from '../link/store-error.ts'
import { countConnection } from './store-files.ts'
import {
  MIN_TIME,
  QUEUE_LIMIT,
  RefusedWrites,
  spentBefore,
  tooMany,
  unavailable,
} from '../link/store-link.ts'

/** Milliseconds before a thread that died is started again. */
const RESTART_AFTER = 250
/** Milliseconds after which a question is held up: most are answered in one. Another thread is ready in 50 more. */
const HELD_UP = 100

/** Milliseconds that a file may take to be rewritten. */
const FORGET_TIME = 600_000

interface Question {
  readonly verb: SqliteVerb
  readonly args: readonly unknown[]
  readonly isReading: boolean
  /** `monotonicMs` after which nobody waits for the reply. */
  readonly deadline: number
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
  /** Ends the charge to the time budget of the request. */
  readonly settled: (() => void) | undefined
}

interface Waiting {
  readonly question: Question
  readonly timers: readonly NodeJS.Timeout[]
}

interface LinkListeners {
  readonly onTrouble: TroubleListener
  /** Called when a reading is held up, or a write, behind which the next reading would be. */
  readonly onHeldUp?: () => void
}

const isReplies = (message: StoreOpening | StoreThreadMessage): message is readonly Reply[] =>
  Array.isArray(message)

/**
 * Sends verbs to a thread in which SQLite runs. SQLite blocks: a statement waits for locks, for fsync, for a checkpoint,
 * for a disk that stopped answering. On the thread that serves, all calls would wait with it, also those that need no
 * store.
 *
 * Measured: a verb costs the serving thread 7 to 25 µs this way, against 3 (read) to 15 (write) when called directly,
 * and takes 0.1 ms instead of 0.02. All requests of one turn of the event loop go in one message: under load that
 * takes a quarter off a refresh. With synchronous=FULL, a direct write blocked the event loop for 0.4 ms, at worst
 * 11, on a fast disk. The thread needs 40 ms to start, in parallel to the rest, and about 20 MB.
 */
class SqliteLink {
  readonly #plan: SqlitePlan
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | undefined
  /** Asked for in this turn of the event loop, and not yet sent to the thread. */
  #asked: VerbRequest[] = []
  #startedAt = 0
  #lastId = 0
  #closed = false
  #trouble: string | undefined
  readonly #refusals = new RefusedWrites()
  readonly #listeners: LinkListeners

  constructor(plan: SqlitePlan, listeners: LinkListeners) {
    this.#plan = plan
    this.#listeners = listeners
  }

  /** Why the store does not work, in words for the log; undefined if it works. */
  get trouble(): string | undefined {
    return this.#trouble
  }

  get refusesWrites(): string | undefined {
    return this.#refusals.reason
  }

  /** Within what is left to the request (base/kernel/store-budget.ts). Rejects with Fault `identity_unavailable`. */
  request<V extends SqliteVerb>(
    verb: V,
    ...args: Parameters<SqliteVerbs[V]>
  ): Promise<ReturnType<SqliteVerbs[V]>> {
    return this.#put(verb, args, false) as Promise<ReturnType<SqliteVerbs[V]>>
  }

  /** The same for what changes nothing: another link may answer it (`handReadingsTo`). */
  read<V extends ReadingVerb>(
    verb: V,
    ...args: Parameters<SqliteVerbs[V]>
  ): Promise<ReturnType<SqliteVerbs[V]>> {
    return this.#put(verb, args, true) as Promise<ReturnType<SqliteVerbs[V]>>
  }

  /** With the time that they have left. Answers that come here for them are ignored. */
  handReadingsTo(other: SqliteLink): void {
    if (other.#worker === undefined) return
    for (const [id, { question, timers }] of this.#waiting) {
      if (!question.isReading) continue
      this.#waiting.delete(id)
      timers.forEach(clearTimeout)
      other.#enter(question, question.deadline - monotonicMs())
    }
  }

  #put(verb: SqliteVerb, args: readonly unknown[], isReading: boolean): Promise<unknown> {
    if (this.#closed) return Promise.reject(unavailable('it is closed'))
    if (this.#waiting.size >= QUEUE_LIMIT && !goesFirst()) return Promise.reject(tooMany())
    if (this.#running() === undefined) return Promise.reject(unavailable('its thread has ended'))
    const time = budget()
    const { deadline = STORE_TIME, answerWithin = deadline } = this.#plan
    const within = verb === 'forget' ? FORGET_TIME : (time?.left() ?? answerWithin)
    if (within < MIN_TIME) return Promise.reject(spentBefore())
    return new Promise((resolve, reject) => {
      const deadline = monotonicMs() + within
      this.#enter({ verb, args, isReading, deadline, resolve, reject, settled: time?.spend() }, within)
    })
  }

  #enter(question: Question, within: number): void {
    const { verb, args, deadline } = question
    const id = (this.#lastId += 1)
    const timers = [whenLate(within, () => this.#fail(id, unavailable('no answer in time')))]
    const { onHeldUp } = this.#listeners
    if (onHeldUp !== undefined)
      timers.push(whenLate(HELD_UP, () => !this.#closed && this.#waiting.has(id) && onHeldUp()))
    this.#waiting.set(id, { question, timers })
    // As in VerbRequest: the compiler does not see that verb and arguments belong together.
    this.#asked.push({ id, verb, args, deadline } as VerbRequest)
    if (this.#asked.length === 1) setImmediate(() => this.#sendAsked())
  }

  /** One message for all that is asked in a turn: to send one and to wake the thread costs more than most verbs. */
  #sendAsked(): void {
    const asked = this.#asked
    this.#asked = []
    if (asked.length > 0) this.#worker?.postMessage(asked)
  }

  /** Resolves when the thread has ended. Earlier requests are still answered. Later ones are rejected. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const worker = this.#worker
    if (worker === undefined) return
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    this.#sendAsked()
    worker.postMessage('close')
    await ended
  }

  /** The thread. If it has ended (out of memory, for example), it is started again, but not in a tight loop. */
  #running(): Worker | undefined {
    if (this.#worker === undefined && monotonicMs() - this.#startedAt >= RESTART_AFTER)
      // Requests that wait learn of a failure when the thread ends.
      this.open().then(
        () => this.#setTrouble(undefined),
        (error: unknown) => this.#setTrouble(messageOf(error)),
      )
    return this.#worker
  }

  /** Starts the thread. Rejects with StoreError if the file cannot be used (T7). */
  open(): Promise<void> {
    this.#startedAt = monotonicMs()
    const connection = countConnection(this.#plan.path)
    const worker = new Worker(programBeside(import.meta.url, 'sqlite-thread'), {
      name: 'store',
      workerData: this.#plan,
      env: threadEnvironment(),
      // Else the descriptor of the database would be closed before the connection that a thread that dies leaves behind.
      trackUnmanagedFds: false,
    })
    this.#worker = worker
    return new Promise((resolve, reject) => {
      worker.on('message', (message: StoreOpening | StoreThreadMessage) => {
        if (isReplies(message)) for (const reply of message) this.#settle(reply)
        else if ('trouble' in message) this.#setTrouble(message.trouble)
        else {
          connection.keep(message.descriptors)
          if (message.opened) resolve()
          else reject(new StoreError(message.message))
        }
      })
      worker.on('error', (error) =>
        reject(new StoreError('the thread of the store failed', { cause: error })),
      )
      worker.on('exit', () => {
        connection.end()
        reject(new StoreError('the thread of the store has ended'))
        this.#abandon(worker)
      })
    })
  }

  #setTrouble(trouble: string | undefined): void {
    if (trouble === this.#trouble) return
    this.#trouble = trouble
    this.#listeners.onTrouble(trouble)
  }

  #abandon(worker: Worker): void {
    if (this.#worker === worker) this.#worker = undefined
    // Their callers get a failure now: another thread must not write what they asked for.
    this.#asked = []
    for (const id of [...this.#waiting.keys()]) this.#fail(id, unavailable('its thread has ended'))
  }

  #settle(reply: Reply): void {
    this.#noteRefusal(reply)
    if (reply.outcome === 'done') this.#take(reply.id)?.resolve(reply.value)
    else this.#fail(reply.id, reply.outcome === 'broken' ? reply.error : unavailable(reply.detail))
  }

  #noteRefusal(reply: Reply): void {
    const verb = this.#waiting.get(reply.id)?.question.verb
    if (verb === undefined) return
    if (reply.outcome === 'done') this.#refusals.taken(verb)
    else if (reply.outcome === 'unavailable' && reply.refusal !== undefined)
      this.#refusals.refused(verb, reply.refusal)
  }

  #fail(id: number, reason: unknown): void {
    this.#take(id)?.reject(reason)
  }

  #take(id: number): Question | undefined {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return undefined
    this.#waiting.delete(id)
    waiting.timers.forEach(clearTimeout)
    waiting.question.settled?.()
    return waiting.question
  }
}

/** The reads and writes that a SqliteStore sends to its database. */
export type SqliteRequests = Pick<
  SqliteLinks,
  'read' | 'write' | 'close' | 'trouble' | 'refusesWrites' | 'patience'
>

/**
 * The threads of one store. One does all that is asked, until it holds up something: it waits for a lock, a disk or a long
 * list then, and a reading that comes later would have too little time left on a busy machine. From then on a second one
 * reads: in WAL mode a reading waits for no lock and no flush, so the change feed is read in time (C11.7.2). Most processes
 * never need it, and it costs each 20 MB and 50 ms of a processor.
 */
export class SqliteLinks {
  readonly #plan: SqlitePlan
  readonly #onTrouble: TroubleListener
  readonly #writes: SqliteLink
  #reads: SqliteLink | undefined
  #opening: Promise<void> | undefined
  /** The trouble of either thread that was reported last: each is reported once. */
  #trouble: string | undefined

  private constructor(plan: SqlitePlan, onTrouble: TroubleListener) {
    this.#plan = plan
    this.#onTrouble = onTrouble
    this.#writes = new SqliteLink(plan, {
      onTrouble: () => this.#reportTrouble(),
      onHeldUp: () => this.#openReads(),
    })
  }

  static async open(plan: SqlitePlan, onTrouble: TroubleListener = () => undefined): Promise<SqliteLinks> {
    const links = new SqliteLinks(plan, onTrouble)
    await links.#writes.open()
    return links
  }

  get trouble(): string | undefined {
    return this.#writes.trouble ?? this.#reads?.trouble
  }

  get refusesWrites(): string | undefined {
    return this.#writes.refusesWrites
  }

  get patience(): number | undefined {
    return this.#plan.deadline
  }

  readonly write: SqliteLink['request'] = (verb, ...args) => this.#writes.request(verb, ...args)

  readonly read: SqliteLink['read'] = (verb, ...args) => (this.#reads ?? this.#writes).read(verb, ...args)

  /** Resolves when the threads have ended. Earlier requests are still answered. Later ones are rejected. */
  async close(): Promise<void> {
    await Promise.all([this.#writes.close(), this.#opening?.then(() => this.#reads?.close())])
  }

  /** If that fails, the readings wait on, and the next one that is held up tries again. Files in trouble are left alone. */
  #openReads(): void {
    if (this.#opening !== undefined || this.#writes.trouble !== undefined) return
    const reads = new SqliteLink(this.#plan, { onTrouble: () => this.#reportTrouble() })
    this.#opening = reads.open().then(
      () => {
        this.#reads = reads
        this.#writes.handReadingsTo(reads)
      },
      () => {
        this.#opening = undefined
      },
    )
  }

  #reportTrouble(): void {
    const { trouble } = this
    if (trouble === this.#trouble) return
    this.#trouble = trouble
    this.#onTrouble(trouble)
  }
}
