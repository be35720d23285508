import type { SqliteVerb, SqliteVerbs } from './sqlite-verbs.ts'
import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { programBeside } from '../kernel/beside.ts'
import { Fault } from '../kernel/faults.ts'
import { budget } from '../kernel/store-budget.ts'
import { BUSY_TIMEOUT, monotonicMs, type SqlitePlan } from './sqlite-file.ts'
import { StoreError } from './store-error.ts'

/** What passes between the thread that serves and the thread of the store. */
export type VerbRequest<V extends SqliteVerb = SqliteVerb> = {
  [Verb in V]: {
    readonly id: number
    readonly verb: Verb
    readonly args: Parameters<SqliteVerbs[Verb]>
    /** By `monotonicMs`, after which nobody waits for it any more. */
    readonly deadline: number
    /** Milliseconds that its statement may wait for a lock. */
    readonly patience: number
  }
}[V]

export type Reply =
  | { readonly id: number; readonly outcome: 'done'; readonly value: unknown }
  /** The store is out of reach for a while: the detail is for the log. */
  | { readonly id: number; readonly outcome: 'unavailable'; readonly detail: string }
  /** A mistake of the code. */
  | { readonly id: number; readonly outcome: 'broken'; readonly error: unknown }

/** What keeps the store from working, in words for the log; told when it changes. */
export interface TroubleMessage {
  readonly trouble: string | undefined
}

/** The first message of the thread. */
export type Opening = { readonly opened: true } | { readonly opened: false; readonly message: string }

/** Milliseconds within which every verb is answered, if only by a fault (T5.5: half a second). */
const ANSWER_WITHIN = 450
/** How many verbs may wait: far more than are ever answered in time. */
const PENDING_LIMIT = 1000
/** Milliseconds before a thread that died is started again. */
const RESTART_AFTER = 250
/** Seconds, told to clients. */
const RETRY_AFTER = 1

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
  readonly timer: NodeJS.Timeout
  /** Stops the clock of the request that waits. */
  readonly settled: (() => void) | undefined
}

/** Hears what keeps a store from working, or that nothing does any more. */
export type TroubleListener = (trouble: string | undefined) => void

/** Milliseconds: with less than that left nothing is asked. */
const LEAST = 10
const STEP = 50

/**
 * Milliseconds that a statement may wait for a lock, so that there is an answer in time however it ends. In steps: the
 * thread sets it only where it changes.
 */
const patienceOf = (within: number): number =>
  Math.min(BUSY_TIMEOUT, Math.round((within * BUSY_TIMEOUT) / ANSWER_WITHIN / STEP) * STEP)

const unavailable = (detail: string): Fault =>
  new Fault('identity_unavailable', { detail: `store: ${detail}`, retryAfter: RETRY_AFTER })

/**
 * The way to SQLite, which blocks: a statement waits for locks (up to 250 ms), for fsync, for a checkpoint, for a
 * disk that has stopped answering. On the thread that serves, each such wait would be everybody's, also of calls that
 * need no store at all; so SQLite has a thread of its own, and here only messages are sent.
 *
 * Measured: a verb costs the serving thread 7 to 25 µs this way, against 3 (read) to 15 (write) when called directly;
 * it takes 0.1 ms instead of 0.02. With synchronous=FULL, a direct write blocked the loop 0.4 ms, 11 at worst, on a
 * fast disk. The thread takes 25 ms to start, beside whatever else starts, and some 15 MB.
 */
export class SqliteLink {
  readonly #plan: SqlitePlan
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | undefined
  #startedAt = 0
  #lastId = 0
  #closed = false
  #trouble: string | undefined
  readonly #onTrouble: TroubleListener

  private constructor(plan: SqlitePlan, onTrouble: TroubleListener) {
    this.#plan = plan
    this.#onTrouble = onTrouble
  }

  /** What keeps the store from working, in words for the log: its files are gone, replaced or damaged. */
  get trouble(): string | undefined {
    return this.#trouble
  }

  /** Rejects with StoreError if the file is not fit to be used (T7). */
  static async open(plan: SqlitePlan, onTrouble: TroubleListener = () => undefined): Promise<SqliteLink> {
    const link = new SqliteLink(plan, onTrouble)
    await link.#start()
    return link
  }

  /**
   * Rejects with Fault `identity_unavailable` if there is no answer within 450 ms. All that one request asks has 400
   * together.
   */
  request<V extends SqliteVerb>(
    verb: V,
    ...args: Parameters<SqliteVerbs[V]>
  ): Promise<ReturnType<SqliteVerbs[V]>> {
    if (this.#closed) return Promise.reject(unavailable('it is closed'))
    if (this.#waiting.size >= PENDING_LIMIT) return Promise.reject(unavailable('too many wait for it'))
    const worker = this.#running()
    if (worker === undefined) return Promise.reject(unavailable('its thread has ended'))
    const time = budget()
    const within = Math.min(ANSWER_WITHIN, time?.left() ?? ANSWER_WITHIN)
    if (within < LEAST) return Promise.reject(unavailable('what this request asked before took too long'))
    const id = (this.#lastId += 1)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#fail(id, unavailable('no answer in time')), within)
      const settled = time?.spend()
      this.#waiting.set(id, { resolve: resolve as Waiting['resolve'], reject, timer, settled })
      worker.postMessage({ id, verb, args, deadline: monotonicMs() + within, patience: patienceOf(within) })
    })
  }

  /** What was asked before is still answered. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const worker = this.#worker
    if (worker === undefined) return
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    worker.postMessage('close')
    await ended
  }

  /** The thread; started again if it has ended (out of memory, say), though not in a hot loop. */
  #running(): Worker | undefined {
    if (this.#worker === undefined && monotonicMs() - this.#startedAt >= RESTART_AFTER)
      // Whether it opens is told to those who wait.
      this.#start().then(
        () => this.#setTrouble(undefined),
        (error: unknown) => this.#setTrouble(error instanceof Error ? error.message : String(error)),
      )
    return this.#worker
  }

  #start(): Promise<void> {
    this.#startedAt = monotonicMs()
    const worker = new Worker(programBeside(import.meta.url, 'sqlite-thread'), {
      name: 'store',
      workerData: this.#plan,
      env: threadEnvironment(),
    })
    this.#worker = worker
    return new Promise((resolve, reject) => {
      worker.on('message', (message: Opening | Reply | TroubleMessage) => {
        if ('outcome' in message) this.#settle(message)
        else if ('trouble' in message) this.#setTrouble(message.trouble)
        else if (message.opened) resolve()
        else reject(new StoreError(message.message))
      })
      worker.on('error', (error) =>
        reject(new StoreError('the thread of the store failed', { cause: error })),
      )
      worker.on('exit', () => {
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
    for (const id of [...this.#waiting.keys()]) this.#fail(id, unavailable('its thread has ended'))
  }

  #settle(reply: Reply): void {
    if (reply.outcome === 'done') this.#take(reply.id)?.resolve(reply.value)
    else this.#fail(reply.id, reply.outcome === 'broken' ? reply.error : unavailable(reply.detail))
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

/**
 * A thread takes over the compile cache of its process by the environment only (25 ms to start instead of 55), where
 * the folder stands without the last part, which is the version of Node. It needs nothing else of the environment.
 */
function threadEnvironment(): NodeJS.ProcessEnv {
  const folder = getCompileCacheDir()
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) }
}
