import { setImmediate } from 'node:timers'
import type { LoadedFile } from '../../base/config/modules/import-file.ts'
import { type After, type Clock, monotonicMs } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { errorFromFacts } from './error-for-log.ts'
import { ModuleThread, type StartRunner } from './module-thread.ts'
import { PersonMistake } from './plain-person.ts'
import { type CallMessage, type CallName, type CallReply, type ModulePlan } from './serve-module.ts'

/** How long a call of the module may take, in milliseconds. */
const CALL_DEADLINE = 2000
/** The time between two starts of a thread, in milliseconds. */
const RESTART_AFTER = 1000

interface ModuleCallParts {
  readonly after: After
  readonly clock: Clock
  /** Called with what the module's code threw where no call waits for it any more. Must not throw. */
  readonly failed: (cause: Error) => void
  /** Called with why its thread was replaced. Must not throw. */
  readonly replaced: (cause: Error) => void
  readonly start?: StartRunner | undefined
}

export interface PersonCall<T> {
  readonly name: CallName
  readonly args: readonly unknown[]
  /** Reads what was answered. May throw PersonMistake. */
  readonly read: (answer: unknown) => T
}

type CallTrouble = 'late' | 'threw' | 'mistaken'

export class ModuleCallFault extends Fault {
  readonly trouble: CallTrouble

  constructor(trouble: CallTrouble, detail: string, cause?: Error) {
    super('people_unavailable', { detail: `directory.people: ${detail}`, cause, retryAfter: 1 })
    this.trouble = trouble
  }
}

interface Waiting {
  readonly message: CallMessage
  readonly settle: (answer: unknown) => void
  readonly reject: (thrown: unknown) => void
  readonly cancel: () => void
  /** A thread has ended before it began this call. */
  retried: boolean
}

/**
 * Calls the operator's code (C5.7), which may do anything: throw, never answer, answer late, throw later in a timer,
 * block its thread. Each of these is the trouble of that call only: a call that waited behind one that blocks is asked
 * once more, in the next thread.
 */
export class ModuleCalls {
  readonly #plan: Omit<ModulePlan, 'begun'>
  readonly #parts: ModuleCallParts
  /** By number, in the order in which they came. Callers bound how many there are. */
  readonly #waiting = new Map<number, Waiting>()
  #lastCall = 0
  #thread: ModuleThread | undefined
  #files: readonly LoadedFile[] = []
  #startedAt = 0
  #open = false
  #closed = false

  private constructor(plan: Omit<ModulePlan, 'begun'>, parts: ModuleCallParts) {
    this.#plan = plan
    this.#parts = parts
  }

  /** Rejects with why the module cannot be used. */
  static async open(plan: Omit<ModulePlan, 'begun'>, parts: ModuleCallParts): Promise<ModuleCalls> {
    const calls = new ModuleCalls(plan, parts)
    await calls.#start()
    return calls
  }

  /** The files that the module consists of, or did when its last thread ended. */
  get files(): readonly LoadedFile[] {
    return this.#files
  }

  /** Rejects with ModuleCallFault. An answer after the deadline is ignored. */
  run<T>({ name, args, read }: PersonCall<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    if (this.#closed) return Promise.reject(new ModuleCallFault('threw', `${name}: the module is closed`))
    const call = (this.#lastCall += 1)
    const message = { call, name, args, deadline: monotonicMs() + CALL_DEADLINE }
    const settle = (answer: unknown): void => {
      try {
        resolve(read(answer))
      } catch (thrown) {
        reject(thrown instanceof PersonMistake ? mistaken(name, thrown.message) : thrown)
      }
    }
    // If this process was held up, the answer may have arrived already: it is read in one more turn of the event loop.
    const cancel = this.#parts.after(CALL_DEADLINE, () => setImmediate(() => this.#late(call)))
    this.#waiting.set(call, { message, settle, reject, cancel, retried: false })
    if (this.#open) this.#send(message)
    else this.#restart()
    return promise
  }

  /** Never rejects: nothing is asked any more. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#thread?.close()
  }

  async #start(): Promise<void> {
    this.#startedAt = this.#parts.clock.monotonic()
    const thread = new ModuleThread(this.#plan, {
      after: this.#parts.after,
      start: this.#parts.start,
      replied: (reply) => this.#replied(reply),
      loaded: (files) => (this.#files = files),
      failed: (facts) => this.#parts.failed(errorFromFacts(facts)),
      ended: (why) => this.#ended(thread, why),
    })
    this.#thread = thread
    try {
      await thread.opened
    } catch (thrown) {
      this.#thread = undefined
      throw thrown
    }
    this.#open = true
    for (const { message } of this.#waiting.values()) this.#send(message)
  }

  /** Starts a thread again, but not in a tight loop. Calls wait for it, within their deadlines. */
  #restart(): void {
    if (this.#thread !== undefined || this.#closed) return
    const soon = this.#parts.clock.monotonic() - this.#startedAt < RESTART_AFTER
    const start = soon ? Promise.reject(new Error('its thread ended a moment ago')) : this.#start()
    start.catch((thrown: unknown) => {
      const cause = thrown instanceof Error ? thrown : undefined
      for (const call of [...this.#waiting.keys()])
        this.#fail(call, 'threw', 'cannot be called: the module was not made again', cause)
    })
  }

  #send(message: CallMessage): void {
    this.#thread?.send(message)
    // Behind the call: a thread that answers has taken it.
    this.#thread?.ping()
  }

  #late(call: number): void {
    if (!this.#waiting.has(call)) return
    this.#fail(call, 'late', `took more than ${CALL_DEADLINE} ms`)
    if (!this.#open) return
    this.#thread?.send({ abort: call })
    this.#thread?.ping()
  }

  #replied(reply: CallReply): void {
    if ('value' in reply) this.#take(reply.call)?.settle(reply.value)
    else if ('mistake' in reply) {
      const waiting = this.#take(reply.call)
      waiting?.reject(mistaken(waiting.message.name, reply.mistake))
    } else if (this.#waiting.has(reply.call))
      this.#fail(reply.call, 'threw', 'threw', errorFromFacts(reply.threw))
    else if (reply.stray) this.#parts.failed(errorFromFacts(reply.threw))
  }

  /** A call that the thread had begun may have ended it, so it fails; the others are asked once more. */
  #ended(thread: ModuleThread, why: Error): void {
    this.#open = false
    this.#thread = undefined
    this.#parts.replaced(why)
    for (const [call, waiting] of [...this.#waiting])
      if (call <= thread.begun || waiting.retried)
        this.#fail(call, 'late', 'was not answered: its thread was replaced', why)
      else waiting.retried = true
    if (this.#waiting.size > 0) this.#restart()
  }

  #fail(call: number, trouble: CallTrouble, what: string, cause?: Error): void {
    const waiting = this.#take(call)
    waiting?.reject(new ModuleCallFault(trouble, `${waiting.message.name} ${what}`, cause))
  }

  #take(call: number): Waiting | undefined {
    const waiting = this.#waiting.get(call)
    this.#waiting.delete(call)
    waiting?.cancel()
    return waiting
  }
}

const mistaken = (name: CallName, message: string): ModuleCallFault =>
  new ModuleCallFault('mistaken', `${name} answered nonsense: ${message}`)
