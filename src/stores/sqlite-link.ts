import { Worker } from 'node:worker_threads'
import { programBeside, threadEnvironment } from '../kernel/beside.ts'
import { Fault } from '../kernel/faults.ts'
import { budget, goesFirst, STORE_TIME } from '../kernel/store-budget.ts'
import { monotonicMs, type SqlitePlan } from './sqlite-file.ts'
import type { SqliteVerb, SqliteVerbs } from './sqlite-verbs.ts'
import { RefusedWrites } from './refused-writes.ts'
import { StoreError } from './store-error.ts'
import { countConnection } from './store-files.ts'
import type { TroubleListener } from './trouble.ts'
import { messageOf } from '../kernel/thrown.ts'

/** A request to the thread of the store. */
export type VerbRequest<V extends SqliteVerb = SqliteVerb> = {
  [Verb in V]: {
    readonly id: number
    readonly verb: Verb
    readonly args: Parameters<SqliteVerbs[Verb]>
    /** `monotonicMs` after which nobody waits for the reply. */
    readonly deadline: number
  }
}[V]

export type Reply =
  | { readonly id: number; readonly outcome: 'done'; readonly value: unknown }
  /** The store cannot answer at the moment. The detail is for the log. `refusal`: it can be read, and takes no write. */
  | {
      readonly id: number
      readonly outcome: 'unavailable'
      readonly detail: string
      readonly refusal?: string | undefined
    }
  /** A programming error. */
  | { readonly id: number; readonly outcome: 'broken'; readonly error: unknown }

/** Sent when it changes: why the store does not work, in words for the log; undefined if it works. */
export interface TroubleMessage {
  readonly trouble: string | undefined
}

/** What the thread sends while it runs. */
export type ThreadMessage = readonly Reply[] | TroubleMessage

/** The first message of the thread. The descriptors are of the store's files, and stay open when the thread ends. */
export type Opening =
  | { readonly opened: true; readonly descriptors: readonly number[] }
  | { readonly opened: false; readonly descriptors: readonly number[]; readonly message: string }

/** Verbs that may wait at once: more than can be answered in time. What comes beyond it fails at once. */
const PENDING_LIMIT = 1000
/** Milliseconds before a thread that died is started again. */
const RESTART_AFTER = 250
/** Seconds, for Retry-After. */
const RETRY_AFTER = 1

interface Waiting {
  readonly verb: SqliteVerb
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
  readonly timer: NodeJS.Timeout
  /** Ends the charge to the time budget of the request. */
  readonly settled: (() => void) | undefined
}

const isReplies = (message: Opening | ThreadMessage): message is readonly Reply[] => Array.isArray(message)

/** Milliseconds. If less time is left, the verb fails at once. */
const MIN_TIME = 10
const unavailable = (detail: string): Fault =>
  new Fault('identity_unavailable', { detail: `store: ${detail}`, retryAfter: RETRY_AFTER })

/**
 * Sends verbs to a thread in which SQLite runs. SQLite blocks: a statement waits for locks, for fsync, for a checkpoint,
 * for a disk that stopped answering. On the thread that serves, all calls would wait with it, also those that need no
 * store.
 *
 * Measured: a verb costs the serving thread 7 to 25 µs this way, against 3 (read) to 15 (write) when called directly,
 * and takes 0.1 ms instead of 0.02. What is asked in one turn of the event loop goes in one message: under load that
 * takes a quarter off a refresh. With synchronous=FULL, a direct write blocked the event loop for 0.4 ms, at worst
 * 11, on a fast disk. The thread needs 25 ms to start, in parallel to the rest, and about 15 MB.
 */
export class SqliteLink {
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
  readonly #onTrouble: TroubleListener

  private constructor(plan: SqlitePlan, onTrouble: TroubleListener) {
    this.#plan = plan
    this.#onTrouble = onTrouble
  }

  /** Why the store does not work, in words for the log; undefined if it works. */
  get trouble(): string | undefined {
    return this.#trouble
  }

  /** Of the contract of stores. */
  get refusesWrites(): string | undefined {
    return this.#refusals.reason
  }

  /** Milliseconds for all that one request asks, as the plan says. */
  get deadline(): number | undefined {
    return this.#plan.deadline
  }

  /** Rejects with StoreError if the file cannot be used (T7). */
  static async open(plan: SqlitePlan, onTrouble: TroubleListener = () => undefined): Promise<SqliteLink> {
    const link = new SqliteLink(plan, onTrouble)
    await link.#start()
    return link
  }

  /**
   * Runs one verb. Rejects with Fault `identity_unavailable` if there is no answer in time: within what is left to the
   * request (kernel/store-budget.ts), and outside of requests within what the plan says.
   */
  request<V extends SqliteVerb>(
    verb: V,
    ...args: Parameters<SqliteVerbs[V]>
  ): Promise<ReturnType<SqliteVerbs[V]>> {
    if (this.#closed) return Promise.reject(unavailable('it is closed'))
    if (this.#waiting.size >= PENDING_LIMIT && !goesFirst())
      return Promise.reject(unavailable('too many wait for it'))
    if (this.#running() === undefined) return Promise.reject(unavailable('its thread has ended'))
    const time = budget()
    const { deadline = STORE_TIME, answerWithin = deadline } = this.#plan
    const within = time?.left() ?? answerWithin
    if (within < MIN_TIME) return Promise.reject(unavailable('what this request asked before took too long'))
    const id = (this.#lastId += 1)
    return new Promise((resolve, reject) => {
      // If this process was held up, the answer may have arrived already: it is read in one more turn of the event loop.
      const timer = setTimeout(
        () => setImmediate(() => this.#fail(id, unavailable('no answer in time'))),
        within,
      )
      const settled = time?.spend()
      this.#waiting.set(id, { verb, resolve: resolve as Waiting['resolve'], reject, timer, settled })
      // As in VerbRequest: the compiler does not see that verb and arguments belong together.
      this.#ask({ id, verb, args, deadline: monotonicMs() + within } as VerbRequest)
    })
  }

  /** One message for all that is asked in a turn: to send one and to wake the thread costs more than most verbs. */
  #ask(request: VerbRequest): void {
    this.#asked.push(request)
    if (this.#asked.length === 1) setImmediate(() => this.#sendAsked())
  }

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
      this.#start().then(
        () => this.#setTrouble(undefined),
        (error: unknown) => this.#setTrouble(messageOf(error)),
      )
    return this.#worker
  }

  #start(): Promise<void> {
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
      worker.on('message', (message: Opening | ThreadMessage) => {
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
    this.#onTrouble(trouble)
  }

  #abandon(worker: Worker): void {
    if (this.#worker === worker) this.#worker = undefined
    // Their callers are told of a failure now: another thread must not write what they asked for.
    this.#asked = []
    for (const id of [...this.#waiting.keys()]) this.#fail(id, unavailable('its thread has ended'))
  }

  #settle(reply: Reply): void {
    this.#noteRefusal(reply)
    if (reply.outcome === 'done') this.#take(reply.id)?.resolve(reply.value)
    else this.#fail(reply.id, reply.outcome === 'broken' ? reply.error : unavailable(reply.detail))
  }

  #noteRefusal(reply: Reply): void {
    const verb = this.#waiting.get(reply.id)?.verb
    if (verb === undefined) return
    if (reply.outcome === 'done') this.#refusals.taken(verb)
    else if (reply.outcome === 'unavailable' && reply.refusal !== undefined)
      this.#refusals.refused(verb, reply.refusal)
  }

  #fail(id: number, reason: unknown): void {
    this.#take(id)?.reject(reason)
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    clearTimeout(waiting?.timer)
    waiting?.settled?.()
    return waiting
  }
}
