import type { Task } from './tasks.ts'
import { Threads } from './threads.ts'
import { after as realAfter, type After } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'

/** Bytes that are converted at once: the worst of that size takes some 10 ms, most take one. XML costs much more. */
const AT_ONCE = { xml: 8 * 1024, json: 64 * 1024 }

/** Whether a body is converted at once, needing neither a place nor a thread. @param xml whether XML is read or written */
export const isSmall = (bytes: Uint8Array, xml: boolean): boolean =>
  bytes.length <= (xml ? AT_ONCE.xml : AT_ONCE.json)

/** Large bodies that are read for a conversion, or converted, at once; who may wait for that, and how long. */
const PLACES = { most: 16, waiting: 64, patience: 10_000 }

/** Conversions of large bodies, beside the thread that serves (T4.7). One for the process. */
export class Conversions {
  readonly #places = new ConversionSlots(PLACES)
  readonly #threads = new Threads()

  /**
   * Waits for a place, which stands for the memory of one large body. Rejects with Fault `conversion_busy`,
   * `client_gone`.
   * @param owner whose it is: a backend's name
   */
  enter(owner: string, onGone: OnGone): Promise<LeaveSlot> {
    return this.#places.enter(owner, onGone)
  }

  /** Does a task on another thread. Rejects with its fault. */
  run(task: Task): Promise<Buffer> {
    return this.#threads.run(task)
  }

  close(): void {
    this.#threads.close()
  }
}

export interface SlotRules {
  /** Who may be inside at once. Of one owner, half of it. */
  readonly most: number
  /** Who may wait for a place. */
  readonly waiting: number
  /** Milliseconds that one waits. */
  readonly patience: number
}

interface Waiting {
  readonly owner: string
  readonly enter: () => void
}

/** Gives a place back. Once. */
export type LeaveSlot = () => void

/** Calls the listener when the client has left for whom something is done. */
export type OnGone = (listener: () => void) => void

/** Seconds, told to clients. */
const RETRY_AFTER = 2

const busy = (detail: string): Fault => new Fault('conversion_busy', { detail, retryAfter: RETRY_AFTER })

/**
 * Bounds how many large bodies are held for conversions at once, and so the memory for them. A backend has half of the
 * places at most: one whose answers come slowly keeps nobody else's waiting.
 */
export class ConversionSlots {
  readonly #rules: SlotRules
  readonly #after: After
  readonly #inside = new Map<string, number>()
  #count = 0
  readonly #queue = new Set<Waiting>()

  constructor(rules: SlotRules, after: After = realAfter) {
    this.#rules = rules
    this.#after = after
  }

  /**
   * Waits for a place. Rejects with Fault `conversion_busy` where too many wait already, or none comes free in time, and
   * with `client_gone`: else whoever asks and leaves, again and again, would be all who wait.
   */
  enter(owner: string, onGone?: OnGone): Promise<LeaveSlot> {
    if (this.#isFree(owner)) return Promise.resolve(this.#take(owner))
    if (this.#queue.size >= this.#rules.waiting) return Promise.reject(busy('too many wait for a conversion'))
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        owner,
        enter: () => {
          cancel()
          resolve(this.#take(owner))
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

  #isFree(owner: string): boolean {
    const { most } = this.#rules
    return this.#count < most && (this.#inside.get(owner) ?? 0) < most / 2
  }

  #take(owner: string): LeaveSlot {
    this.#count++
    this.#inside.set(owner, (this.#inside.get(owner) ?? 0) + 1)
    return () => this.#leave(owner)
  }

  #leave(owner: string): void {
    const left = (this.#inside.get(owner) ?? 1) - 1
    if (left > 0) this.#inside.set(owner, left)
    else this.#inside.delete(owner)
    this.#count--
    for (const waiting of this.#queue) {
      if (!this.#isFree(waiting.owner)) continue
      this.#queue.delete(waiting)
      waiting.enter()
      return
    }
  }
}
