import type { Task } from './tasks.ts'
import { Threads } from './threads.ts'
import { after as realAfter, type After } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'

/** Bytes that are converted at once: most take 1 ms, the worst some 10 ms. XML costs much more than JSON. */
const AT_ONCE = { xml: 8 * 1024, json: 64 * 1024 }

/** Whether a body is converted at once, without a slot and a thread. @param xml whether XML is read or written */
export const isSmall = (bytes: Uint8Array, xml: boolean): boolean =>
  bytes.length <= (xml ? AT_ONCE.xml : AT_ONCE.json)

/** Slots for large bodies that are read for a conversion or converted; calls that may wait for one, and how long. */
const PLACES = { most: 16, waiting: 64, patience: 10_000 }

/** Conversions of large bodies on other threads (T4.7). There is one instance per process. */
export class Conversions {
  readonly #places = new ConversionSlots(PLACES)
  readonly #threads = new Threads()

  /**
   * Waits for a slot: the memory of one large body. Rejects with Fault `conversion_busy`, `client_gone`.
   * @param owner the name of the backend
   */
  enter(owner: string, onGone: OnGone): Promise<LeaveSlot> {
    return this.#places.enter(owner, onGone)
  }

  /** Runs a task on another thread. Rejects with its fault. */
  run(task: Task): Promise<Buffer> {
    return this.#threads.run(task)
  }

  close(): void {
    this.#threads.close()
  }
}

export interface SlotRules {
  /** Slots in use at once. One owner may have half of them. */
  readonly most: number
  /** Calls that may wait for a slot. */
  readonly waiting: number
  /** Milliseconds that a call waits. */
  readonly patience: number
}

interface Waiting {
  readonly owner: string
  readonly enter: () => void
}

/** Gives a slot back. To be called once. */
export type LeaveSlot = () => void

/** Calls the listener when the client of the call has left. */
export type OnGone = (listener: () => void) => void

/** Seconds, for Retry-After. */
const RETRY_AFTER = 2

const busy = (detail: string): Fault => new Fault('conversion_busy', { detail, retryAfter: RETRY_AFTER })

/**
 * Limits how many large bodies are held for conversions at once, and so the memory for them. One backend gets at most
 * half of the slots, so that a slow one does not block the others.
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
   * Waits for a slot. Rejects with Fault `conversion_busy` if too many wait already or no slot comes free in time, and
   * with `client_gone` when the client leaves: else calls of clients that have left could fill the queue.
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
