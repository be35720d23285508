import { Places, type Leave, type OnGone } from './places.ts'
import type { Task } from './tasks.ts'
import { Threads } from './threads.ts'

/** Bytes that are converted at once: the worst of that size takes some 10 ms, most take one. XML costs much more. */
const AT_ONCE = { xml: 8 * 1024, json: 64 * 1024 }

/** Whether a body is converted at once, needing neither a place nor a thread. @param xml whether XML is read or written */
export const isSmall = (bytes: Uint8Array, xml: boolean): boolean =>
  bytes.length <= (xml ? AT_ONCE.xml : AT_ONCE.json)

/** Large bodies that are read for a conversion, or converted, at once; who may wait for that, and how long. */
const PLACES = { most: 16, waiting: 64, patience: 10_000 }

/** Conversions of large bodies, beside the thread that serves (T4.7). One for the process. */
export class Conversions {
  readonly #places = new Places(PLACES)
  readonly #threads = new Threads()

  /**
   * Waits for a place, which stands for the memory of one large body. Rejects with Fault `conversion_busy`,
   * `client_gone`.
   * @param owner whose it is: a backend's name
   */
  enter(owner: string, onGone: OnGone): Promise<Leave> {
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
