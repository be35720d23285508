import { Buffer } from 'node:buffer'
import { Worker } from 'node:worker_threads'
import { programBeside, threadEnvironment } from '../../base/files/beside.ts'
import { type After, after as realAfter } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { type Converted, type ConversionReply, faultOf, type Task, TOO_LARGE } from './tasks.ts'

/** The most threads. With two, one long conversion does not block the next. */
const MOST = 2
/**
 * How long a conversion may take, in milliseconds. The worst 16 MiB that were found, one key of blanks that becomes a name of XML,
 * take 7 s on a slow machine; a million keys take 3 s.
 */
const MOST_TIME = 30_000
/** How long an idle thread is kept, in milliseconds. It holds what its last conversions took, and starts in 0.1 s. */
const IDLE = 5000
/** The heap of a thread, in MiB. A million keys that become a value take less than 256. That one key takes more, and is refused. */
const HEAP = 512

interface ConvertedBytes extends Converted {
  readonly bytes: Buffer
}

interface Job {
  readonly task: Task
  readonly sharer: string
  readonly resolve: (converted: ConvertedBytes) => void
  readonly reject: (fault: Fault) => void
}

class Thread {
  readonly #worker: Worker
  readonly #after: After
  readonly #freed: () => void
  #job: Job | undefined
  /** True if it is being terminated and takes no further job. */
  #ending = false
  #cancelTimer: (() => void) | undefined

  constructor(after: After, freed: () => void, ended: (thread: Thread) => void) {
    this.#after = after
    this.#freed = freed
    this.#worker = new Worker(programBeside(import.meta.url, 'convert-thread'), {
      name: 'conversion',
      env: threadEnvironment(),
      resourceLimits: { maxOldGenerationSizeMb: HEAP },
    })
    this.#worker.unref()
    this.#worker
      .on('message', (reply: ConversionReply) => this.#settle(reply))
      .on('error', (error: Error & { code?: string }) => this.#fail(this.#faultOfError(error)))
      .once('exit', () => {
        this.#fail(new Fault('internal', { detail: 'the thread of a conversion has ended' }))
        this.#cancelTimer?.()
        ended(this)
      })
    this.#rest()
  }

  get isFree(): boolean {
    return this.#job === undefined && !this.#ending
  }

  run(job: Job): void {
    this.#job = job
    this.#cancelTimer?.()
    this.#cancelTimer = this.#after(MOST_TIME, () => {
      this.#fail(new Fault('conversion_busy', { detail: `a conversion took more than ${MOST_TIME} ms` }))
      this.end()
    })
    // A copy: other buffers may share the memory of these bytes, and a module may answer them again.
    const bytes = new Uint8Array(job.task.bytes)
    this.#worker.ref()
    try {
      this.#worker.postMessage({ ...job.task, bytes }, [bytes.buffer])
    } catch (cause) {
      this.#fail(new Fault('internal', { cause, detail: 'a conversion could not be handed over' }))
      this.#rest()
    }
  }

  end(): void {
    this.#ending = true
    void this.#worker.terminate()
  }

  #rest(): void {
    this.#worker.unref()
    this.#cancelTimer?.()
    this.#cancelTimer = this.#after(IDLE, () => this.end())
  }

  #settle(reply: ConversionReply): void {
    const job = this.#take()
    if ('bytes' in reply) job?.resolve({ ...reply, bytes: Buffer.from(reply.bytes.buffer) })
    else job?.reject(faultOf(reply))
    this.#rest()
    this.#freed()
  }

  #fail(fault: Fault): void {
    this.#take()?.reject(fault)
  }

  #take(): Job | undefined {
    const job = this.#job
    this.#job = undefined
    return job
  }

  #faultOfError(cause: Error & { code?: string }): Fault {
    const kind = this.#job?.task.kind
    const outOfMemory = cause.code === 'ERR_WORKER_OUT_OF_MEMORY' && kind !== undefined
    return new Fault(outOfMemory ? TOO_LARGE[kind] : 'internal', {
      cause,
      detail: 'a conversion ended its thread',
    })
  }
}

/** Runs tasks on worker threads, which are started when they are needed. */
export class Threads {
  readonly #after: After
  readonly #threads = new Set<Thread>()
  readonly #queue: Job[] = []
  /** The sharers whose jobs were given to threads lately, the latest one last. */
  readonly #served: string[] = []

  constructor(after: After = realAfter) {
    this.#after = after
  }

  /** @param sharer who has its turn among others, however many tasks it has */
  run(task: Task, sharer = ''): Promise<ConvertedBytes> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ task, sharer, resolve, reject })
      this.#next()
    })
  }

  close(): void {
    for (const thread of this.#threads) thread.end()
  }

  #next(): void {
    const thread = [...this.#threads].find(({ isFree }) => isFree) ?? this.#start()
    const job = thread && this.#takeNext()
    if (job !== undefined) thread?.run(job)
  }

  /** The first job of the sharer who was served least lately. */
  #takeNext(): Job | undefined {
    let next: Job | undefined
    let latest = Infinity
    for (const job of this.#queue) {
      const at = this.#served.lastIndexOf(job.sharer)
      if (at >= latest) continue
      next = job
      latest = at
    }
    if (next === undefined) return undefined
    this.#queue.splice(this.#queue.indexOf(next), 1)
    const known = this.#served.indexOf(next.sharer)
    if (known >= 0) this.#served.splice(known, 1)
    this.#served.push(next.sharer)
    if (this.#served.length > SLOTS.most) this.#served.shift()
    return next
  }

  #start(): Thread | undefined {
    if (this.#threads.size >= MOST) return undefined
    const thread = new Thread(
      this.#after,
      () => this.#next(),
      (ended) => {
        this.#threads.delete(ended)
        if (this.#queue.length > 0) this.#next()
      },
    )
    this.#threads.add(thread)
    return thread
  }
}

const SLOTS = { most: 16, waiting: 64, patience: 10_000 }

/** Conversions of large bodies on other threads (T4.7). There is one instance per process. */
export class Conversions {
  readonly #slots = new ConversionSlots(SLOTS)
  readonly #threads = new Threads()

  /**
   * Works with a slot, which is the memory of one large body. Rejects with Fault `conversion_busy`, `client_gone`, or with
   * what the work rejects with.
   */
  async withSlot<T>({ owner, client }: Sharer, onGone: OnGone, work: () => Promise<T>): Promise<T> {
    const leave = await this.#slots.enter(owner, onGone, client)
    try {
      return await work()
    } finally {
      leave()
    }
  }

  /** Runs a task on another thread. Rejects with its fault. */
  async run(task: Task, sharer?: Sharer): Promise<Buffer> {
    return (await this.#threads.run(task, keyOf(sharer))).bytes
  }

  /** The same, with what else was found. */
  runWhole(task: Task, sharer?: Sharer): Promise<ConvertedBytes> {
    return this.#threads.run(task, keyOf(sharer))
  }

  close(): void {
    this.#threads.close()
  }
}

/** For whom a body is converted. */
export interface Sharer {
  /** The name of the backend. */
  readonly owner: string
  /** Undefined: the client is not known. */
  readonly client: string | undefined
}

const keyOf = ({ owner, client = '' }: Sharer = { owner: '', client: undefined }): string =>
  `${owner} ${client}`

/** The part of its owner's slots that one client may have. */
const CLIENT_SHARE = 3 / 4

interface SlotRules {
  /** The most slots in use at once. One owner may have half of them, and one client of it three quarters of these. */
  readonly most: number
  readonly waiting: number
  /** How long a call waits, in milliseconds. */
  readonly patience: number
}

interface Waiting {
  readonly sharer: Sharer
  readonly enter: () => void
}

/** Gives a slot back. To be called once. */
type LeaveSlot = () => void

export type OnGone = (listener: () => void) => void

/** The value of Retry-After, in seconds. */
const RETRY_AFTER = 2

const busy = (detail: string): Fault => new Fault('conversion_busy', { detail, retryAfter: RETRY_AFTER })

/**
 * Limits how many large bodies are held for conversions at once, and so the memory for them. One backend gets at most
 * half of the slots, so that a slow one does not block the others, and one client at most three quarters of these, so that others
 * find one free. A client has half of the places to wait. A slot that comes free is given to the client that has the fewest.
 */
export class ConversionSlots {
  readonly #rules: SlotRules
  readonly #after: After
  /** How many slots are in use, by backend, and by backend and client. */
  readonly #inside = new Map<string, number>()
  #count = 0
  readonly #queue = new Set<Waiting>()

  constructor(rules: SlotRules, after: After = realAfter) {
    this.#rules = rules
    this.#after = after
  }

  /**
   * Waits for a slot. Rejects with Fault `conversion_busy` if too many wait already or no slot comes free in time, and
   * with `client_gone` when the client leaves: otherwise calls of clients that have left could fill the queue.
   */
  enter(owner: string, onGone?: OnGone, client?: string): Promise<LeaveSlot> {
    const sharer: Sharer = { owner, client }
    if (this.#isFree(sharer)) return Promise.resolve(this.#take(sharer))
    if (this.#isFull(sharer)) return Promise.reject(busy('too many wait for a conversion'))
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        sharer,
        enter: () => {
          cancel()
          resolve(this.#take(sharer))
        },
      }
      const giveUp = (fault: Fault): void => {
        cancel()
        this.#queue.delete(waiting)
        reject(fault)
      }
      const cancel = this.#after(this.#rules.patience, () =>
        giveUp(busy('no place for a conversion came free in time')),
      )
      this.#queue.add(waiting)
      onGone?.(() =>
        giveUp(new Fault('client_gone', { detail: 'the client left while it waited for a conversion' })),
      )
    })
  }

  #isFull(sharer: Sharer): boolean {
    const { waiting } = this.#rules
    const key = keyOf(sharer)
    const own = [...this.#queue].filter((each) => keyOf(each.sharer) === key).length
    return this.#queue.size >= waiting || (sharer.client !== undefined && own >= waiting / 2)
  }

  #insideOf(key: string): number {
    return this.#inside.get(key) ?? 0
  }

  #isFree({ owner, client }: Sharer): boolean {
    const { most } = this.#rules
    if (this.#count >= most || this.#insideOf(owner) >= most / 2) return false
    return client === undefined || this.#insideOf(keyOf({ owner, client })) < (most / 2) * CLIENT_SHARE
  }

  #take(sharer: Sharer): LeaveSlot {
    this.#add(sharer, 1)
    return () => this.#leave(sharer)
  }

  #add(sharer: Sharer, change: 1 | -1): void {
    this.#count += change
    for (const key of [sharer.owner, keyOf(sharer)]) {
      const now = this.#insideOf(key) + change
      if (now > 0) this.#inside.set(key, now)
      else this.#inside.delete(key)
    }
  }

  #leave(sharer: Sharer): void {
    this.#add(sharer, -1)
    let next: Waiting | undefined
    for (const waiting of this.#queue)
      if (this.#isFree(waiting.sharer) && (next === undefined || this.#hasFewer(waiting, next)))
        next = waiting
    if (next === undefined) return
    this.#queue.delete(next)
    next.enter()
  }

  #hasFewer(one: Waiting, other: Waiting): boolean {
    return this.#insideOf(keyOf(one.sharer)) < this.#insideOf(keyOf(other.sharer))
  }
}
