import { Worker } from 'node:worker_threads'
import { after as realAfter, type After } from '../../kernel/clock.ts'
import { programBeside, threadEnvironment } from '../../kernel/beside.ts'
import { Fault } from '../../kernel/faults.ts'
import { faultOf, type Reply, type Task, TOO_LARGE } from './tasks.ts'

/** Threads at most. With two, one long conversion does not block the next. */
const MOST = 2
/** Milliseconds that a conversion may take. The worst 16 MiB that were found, a million keys, take 17 s on a slow machine. */
const MOST_TIME = 30_000
/** Milliseconds that an idle thread is kept. It holds what its last conversions took, and starts in 0.1 s. */
const IDLE = 5000
/** MiB of a thread's heap. The worst 16 MiB that were found, a million keys that become XML, take over 384. */
const HEAP = 512

interface Job {
  readonly task: Task
  readonly resolve: (bytes: Buffer) => void
  readonly reject: (fault: Fault) => void
}

/** A thread and its current job. */
class Thread {
  readonly #worker: Worker
  readonly #after: After
  readonly #freed: () => void
  #job: Job | undefined
  /** It is being terminated and takes no further job. */
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
      .on('message', (reply: Reply) => this.#settle(reply))
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
    // A copy: other buffers may share the memory of these bytes.
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

  #settle(reply: Reply): void {
    const job = this.#take()
    if ('bytes' in reply) job?.resolve(Buffer.from(reply.bytes.buffer))
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

  constructor(after: After = realAfter) {
    this.#after = after
  }

  /** Rejects with the fault of the task. */
  run(task: Task): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ task, resolve, reject })
      this.#next()
    })
  }

  close(): void {
    for (const thread of this.#threads) thread.end()
  }

  #next(): void {
    const thread = [...this.#threads].find(({ isFree }) => isFree) ?? this.#start()
    const job = thread && this.#queue.shift()
    if (job !== undefined) thread?.run(job)
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
