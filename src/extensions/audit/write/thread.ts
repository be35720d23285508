import { Worker } from 'node:worker_threads'
import type { RecordWriting } from '../queue/record-queue.ts'
import { programBeside, threadEnvironment } from '../../../base/files/beside.ts'
import { type After, after as systemAfter } from '../../../base/kernel/clock.ts'
import type { AuditThreadMessage, ThreadPlan } from './audit-thread.ts'

/** The size of the young heap, in MiB. The records are not in the thread's heap. */
const YOUNG_HEAP = 2
/** Milliseconds between two starts. */
const RESTART = 1000

export interface WriterThreadParts {
  readonly onMessage: (message: AuditThreadMessage) => void
  /** The thread has ended, though it should not have; it is started again. */
  readonly died: (cause: unknown) => void
  readonly after?: After | undefined
  /** Resolves when it may be started. Absent where it may at once. */
  readonly begun?: Promise<void> | undefined
}

/** The writing thread of a trail: started at once, and again if it dies. It does not keep the process alive. */
export class WriterThread implements RecordWriting {
  readonly #plan: ThreadPlan
  readonly #parts: WriterThreadParts
  #worker: Worker | undefined
  #ending = false
  #awaited = false

  constructor(plan: ThreadPlan, parts: WriterThreadParts) {
    this.#plan = plan
    this.#parts = parts
    if (parts.begun === undefined) this.#run()
    else void parts.begun.then(() => this.#ending || this.#run())
  }

  /** Whether somebody waits for it: then it keeps the process alive. */
  await(awaited: boolean): void {
    if (awaited === this.#awaited || this.#ending) return
    this.#awaited = awaited
    if (awaited) this.#worker?.ref()
    else this.#worker?.unref()
  }

  /** Resolves when the thread has ended by itself, or after `ms` milliseconds, when it is cut off. */
  async ended(ms: number): Promise<void> {
    this.#ending = true
    const worker = this.#worker
    if (worker === undefined) return
    worker.ref()
    const exit = Promise.withResolvers<undefined>()
    worker.once('exit', () => exit.resolve(undefined))
    const cancel = (this.#parts.after ?? systemAfter)(ms, () => {
      void worker.terminate()
      exit.resolve(undefined)
    })
    await exit.promise
    cancel()
  }

  #run(): void {
    const worker = new Worker(programBeside(import.meta.url, 'audit-thread'), {
      name: 'audit',
      workerData: this.#plan,
      env: threadEnvironment(),
      // No limit to the rest: where that is small, V8 may end the whole process while it makes the thread, as it counts the pages
      // there that another thread which ends has left to it.
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_HEAP },
    })
    this.#worker = worker
    if (!this.#awaited) worker.unref()
    let cause: unknown
    worker
      .on('message', this.#parts.onMessage)
      .on('error', (error) => (cause = error))
      .once('exit', () => this.#exited(cause))
  }

  #exited(cause: unknown): void {
    this.#worker = undefined
    if (this.#ending) return
    // It may have ended before it could signal.
    this.#parts.onMessage(null)
    this.#parts.died(cause)
    ;(this.#parts.after ?? systemAfter)(RESTART, () => {
      if (!this.#ending) this.#run()
    })
  }
}
