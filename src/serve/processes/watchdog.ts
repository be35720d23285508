import type { Recorder } from '../../base/contracts/records/recorder.ts'
import { type RunningTime, WorkerRequestError } from '../../base/contracts/processes/open-requests.ts'
import type { WorkerHandle } from './worker-handle.ts'

/** Milliseconds between two pings of a worker, which has `PATIENCE_MS.ping` to answer. */
const PING_MS = 1000
/** The longest wait for a replacement before the next frozen worker is killed. */
const REPLACED_MS = 30_000

type Watched = Pick<WorkerHandle<never>, 'request' | 'kill' | 'onExit' | 'pid'>

/**
 * Finds frozen workers and kills them, so that they are replaced. It kills one at a time: the cause may be temporary, and
 * killing all would cut every connection. A worker that hashes passwords in other threads still answers a ping. One whose
 * event loop is blocked for that long serves nobody.
 */
export class Watchdog {
  readonly #time: Pick<RunningTime, 'after'>
  readonly #note: Recorder['note']
  readonly #isComplete: () => boolean
  readonly #frozen = new Set<Watched>()
  #relieving = false

  /** @param isComplete whether the configured number of workers serves */
  constructor(time: Pick<RunningTime, 'after'>, note: Recorder['note'], isComplete: () => boolean) {
    this.#time = time
    this.#note = note
    this.#isComplete = isComplete
  }

  watch(worker: Watched): void {
    let gone = false
    worker.onExit(() => {
      gone = true
      this.#frozen.delete(worker)
    })
    const look = async (): Promise<void> => {
      const late = await worker.request({ type: 'ping' }).then(() => false, isLate)
      if (gone) return
      if (late) void this.#suspect(worker)
      else this.#frozen.delete(worker)
      this.#time.after(PING_MS, () => void look())
    }
    void look()
  }

  isFrozen(worker: Watched): boolean {
    return this.#frozen.has(worker)
  }

  async #suspect(worker: Watched): Promise<void> {
    this.#frozen.add(worker)
    if (this.#relieving) return
    this.#relieving = true
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#note('error', 'worker_frozen', { pid: next.pid })
      await this.#relieve(next)
    }
    this.#relieving = false
  }

  #next(): Watched | undefined {
    const [first] = this.#frozen
    return first
  }

  async #relieve(worker: Watched): Promise<void> {
    worker.kill('it was frozen')
    for (let waited = 0; waited < REPLACED_MS; waited += PING_MS) {
      await this.#pause()
      if (!this.#frozen.has(worker) && this.#isComplete()) return
    }
    this.#frozen.delete(worker)
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#time.after(PING_MS, resolve))
  }
}

/** A worker that closed its channel is not frozen but about to end. */
const isLate = (error: unknown): boolean => error instanceof WorkerRequestError && error.end === 'late'
