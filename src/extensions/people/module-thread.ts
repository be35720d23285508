import { performance } from 'node:perf_hooks'
import { setImmediate } from 'node:timers'
import { MessageChannel, type MessagePort, Worker, type WorkerOptions } from 'node:worker_threads'
import { programBeside, threadEnvironment } from '../../base/files/beside.ts'
import type { After } from '../../base/kernel/clock.ts'
import { hasCode } from '../../base/kernel/thrown.ts'
import type { LoadedFile } from '../../base/config/modules/import-file.ts'
import { type ErrorFacts, errorForLog } from './error-for-log.ts'
import type { CallReply, ModulePlan, ModuleMessage, ThreadData, PeopleThreadMessage } from './serve-module.ts'

/** How long the import and the making of the module may take, in milliseconds. */
const OPENED_WITHIN = 30_000
/** How long the thread may take to answer a ping, in milliseconds: as long as one call may take. */
const ANSWERED_WITHIN = 2000
/** How long `close` of the module may take, in milliseconds. */
const CLOSED_WITHIN = 3000
/** How long its thread may take to end after that, in milliseconds. */
const EXITED_WITHIN = 1000
/** The size of the thread's heap, in MiB. */
const HEAP = 256
/** How many threads of this process may block in the system, where nothing can end them. */
const MOST_STUCK = 3
/** How long a thread is silent before it counts as one of these, in milliseconds. It is shorter than `EXITED_WITHIN`. */
const SURELY_STUCK = 500

/** A thread, or what a test puts in its place. */
export interface Runner {
  readonly worker: Pick<Worker, 'on' | 'terminate' | 'unref'>
  /** Ours alone. The thread's `parentPort` is the module's: libraries that take themselves for a worker write to it. */
  readonly port: Pick<MessagePort, 'on' | 'postMessage' | 'close'>
}
export type StartRunner = (plan: ModulePlan) => Runner

interface ThreadParts {
  readonly after: After
  readonly start?: StartRunner | undefined
  readonly replied: (reply: CallReply) => void
  /** Called with the files that the module consists of, before it is opened and whenever there are more. */
  readonly loaded: (files: readonly LoadedFile[]) => void
  /** The module's code has thrown where no call was to blame. */
  readonly failed: (facts: ErrorFacts) => void
  /** It answers no more. Called once, if it was opened and not closed. */
  readonly ended: (why: Error) => void
}

export class ModuleThread {
  readonly #runner: Runner
  readonly #parts: ThreadParts
  readonly #begun: Int32Array
  readonly #opened = Promise.withResolvers<undefined>()
  readonly #exited = Promise.withResolvers<undefined>()
  #state: 'opening' | 'open' | 'ended' = 'opening'
  /** The time of a ping that is not answered yet, or of its end. */
  #silentSince: number | undefined
  #cancelPing: (() => void) | undefined
  #closed: (() => void) | undefined

  /** @throws Error if no further thread may be started */
  constructor(plan: Omit<ModulePlan, 'begun'>, parts: ThreadParts) {
    if ([...living].filter((thread) => thread.#state === 'ended').length >= MOST_STUCK)
      throw new Error(
        `${MOST_STUCK} threads of it block in the system and cannot be ended; restart the service`,
      )
    const begun = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
    this.#parts = parts
    this.#begun = new Int32Array(begun)
    this.#runner = (parts.start ?? startWorker)({ ...plan, begun })
    living.add(this)
    this.#runner.port.on('message', (message: PeopleThreadMessage) => this.#receive(message))
    this.#runner.worker
      .on('error', (thrown) => this.#end(reasonOfDeath(thrown)))
      .on('exit', (code) => {
        living.delete(this)
        this.#exited.resolve(undefined)
        this.#end(new Error(`it ended with exit code ${code}`))
      })
    const cancel = parts.after(OPENED_WITHIN, () =>
      this.#end(new Error(`it took more than ${OPENED_WITHIN} ms to be made`)),
    )
    this.#opened.promise.then(cancel, cancel)
  }

  /** Resolves when the module is made. Rejects with why it cannot be. */
  get opened(): Promise<void> {
    return this.#opened.promise
  }

  /** The number of the last call that the module has begun. */
  get begun(): number {
    return Atomics.load(this.#begun, 0)
  }

  send(message: ModuleMessage): void {
    this.#runner.port.postMessage(message)
  }

  /** Whether it has taken no message for so long that it may never end. */
  get isSilent(): boolean {
    return this.#silentSince !== undefined && performance.now() - this.#silentSince > SURELY_STUCK
  }

  /** Asks whether it still takes messages. If it does not, it ends. */
  ping(): void {
    if (this.#state !== 'open' || this.#cancelPing !== undefined) return
    this.send('ping')
    this.#silentSince = performance.now()
    // If this process was held up, the answer may have arrived already: it is read in one more turn of the event loop.
    this.#cancelPing = this.#parts.after(ANSWERED_WITHIN, () => setImmediate(() => this.#blocks()))
  }

  /** Never rejects. */
  async close(): Promise<void> {
    const closed = Promise.withResolvers<undefined>()
    this.#closed = () => closed.resolve(undefined)
    const cancel = this.#parts.after(CLOSED_WITHIN, this.#closed)
    if (this.#state === 'open') this.send('close')
    else closed.resolve(undefined)
    this.#state = 'ended'
    await Promise.race([closed.promise, this.#exited.promise])
    cancel()
    await this.#terminate()
  }

  #receive(message: PeopleThreadMessage): void {
    if (message === 'pong') this.#stopPing()
    else if (message === 'closed') this.#closed?.()
    else if ('call' in message) this.#parts.replied(message)
    else if ('failed' in message) this.#parts.failed(message.failed)
    else if ('files' in message) this.#parts.loaded(message.files)
    else if (!message.opened) this.#end(new Error(message.reason))
    else if (this.#state === 'opening') {
      this.#state = 'open'
      this.#opened.resolve(undefined)
    }
  }

  #blocks(): void {
    if (this.#cancelPing !== undefined)
      this.#end(new Error(`it did not answer for ${ANSWERED_WITHIN} ms: its code blocks`))
  }

  #stopPing(): void {
    this.#cancelPing?.()
    this.#cancelPing = undefined
    this.#silentSince = undefined
  }

  #end(why: Error): void {
    const before = this.#state
    if (before === 'ended') return
    this.#state = 'ended'
    const terminated = this.#terminate()
    // A command ends with this answer, and must know by then whether the thread blocks.
    if (before === 'opening') void terminated.then(() => this.#opened.reject(why))
    else this.#parts.ended(why)
  }

  /** A loop is ended at once. A call of the system is not: the thread stays until then, and nobody waits for it. */
  async #terminate(): Promise<void> {
    const { worker, port } = this.#runner
    port.close()
    if (!living.has(this)) return
    this.#silentSince ??= performance.now()
    void worker.terminate()
    const given = Promise.withResolvers<undefined>()
    const giveUp = this.#parts.after(EXITED_WITHIN, () => given.resolve(undefined))
    await Promise.race([given.promise, this.#exited.promise])
    giveUp()
    worker.unref()
  }
}

/** Not the options that `serve` starts itself with: they hold for all threads of the process. */
const isOfThreads = (option: string): boolean => !/^--(?:no-)?memory-(?:pool|reducer)-/.test(option)

const startWorker: StartRunner = (plan) => {
  watchExit()
  const start = (more: WorkerOptions): Runner => {
    const { port1, port2 } = new MessageChannel()
    const worker = new Worker(programBeside(import.meta.url, 'module-program'), {
      name: 'people',
      workerData: { plan, port: port2 } satisfies ThreadData,
      transferList: [port2],
      env: { ...process.env, ...threadEnvironment() },
      resourceLimits: { maxOldGenerationSizeMb: HEAP },
      ...more,
    })
    return { worker, port: port1 }
  }
  try {
    // An add-on that is not made for threads would load in the first one only.
    return start({ execArgv: [...process.execArgv.filter(isOfThreads), '--force-context-aware'] })
  } catch (thrown) {
    // Some options that an operator gives, such as those of V8, are none of a thread; it may only inherit them.
    if (hasCode(thrown, 'ERR_WORKER_INVALID_EXEC_ARGV')) return start({})
    throw thrown
  }
}

function reasonOfDeath(thrown: unknown): Error {
  const outOfMemory = (thrown as { readonly code?: unknown } | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY'
  return outOfMemory ? new Error(`it needed more than ${HEAP} MiB of memory`) : errorForLog(thrown)
}

const living = new Set<ModuleThread>()
let watching = false

/** At its end Node waits for all threads. One that blocks in the system would keep the process for ever. */
function watchExit(): void {
  if (watching) return
  watching = true
  process.on('exit', () => {
    if ([...living].some(({ isSilent }) => isSilent)) process.kill(process.pid, 'SIGKILL')
  })
}
